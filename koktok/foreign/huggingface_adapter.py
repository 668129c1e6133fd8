"""`hf:` and `wordpiece:`, by the tokenizers library."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, InputError
from koktok.foreign.base import Rows, Subject
from koktok.foreign.engines import asking
from koktok.foreign.spans import ByteTable, Spans, rows_by_bytes
from koktok.foreign.trial import prove
from koktok.hangul import has_syllable, is_conjoining
from koktok.vocab import BYTE_OF, check_sparse

__all__ = ["HuggingFace", "open_hf", "open_wordpiece"]

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class HuggingFace(Subject):
    """A tokenizer.json.

    Parameters
    ----------
    spec, name, notes
        As in `Subject`.
    text : str
        The JSON.
    """

    def __init__(self, spec: str, name: str, text: str, *, notes: Sequence[str] = ()) -> None:
        from tokenizers import Tokenizer

        try:
            form = json.loads(text)
            prove("tokenizers", text, where=spec, content=form if isinstance(form, dict) else {})
            self.tokenizer = Tokenizer.from_str(text)
        except ArtifactError:
            raise
        except Exception as error:  # the library raises plain Exception
            raise InputError(f"`{spec}` is no tokenizer that `tokenizers` can read: {error}") from error
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        ids: dict[str, int] = self.tokenizer.get_vocab(with_added_tokens=True)
        check_sparse(ids.values(), spec)
        size = max(ids.values(), default=-1) + 1
        self._pieces = [""] * size
        for piece, i in ids.items():
            self._pieces[i] = piece
        added = {token["id"]: token for token in form.get("added_tokens") or []}
        specials = {i for i, token in added.items() if token.get("special")}
        unknown = form["model"].get("unk_token") or form["model"].get("unk_id")
        found = ids.get(unknown) if isinstance(unknown, str) else unknown
        unknown_ids = {found} if isinstance(found, int) and found < size else set()
        steps = set(_kinds(form.get("decoder")))
        falls_back = bool(form["model"].get("byte_fallback")) or "ByteFallback" in steps
        if falls_back:  # then a byte piece may stand where the format asks for an unknown one; no text makes it unknown
            unknown_ids = {i for i in unknown_ids if not BYTE.fullmatch(self._pieces[i])}
        self._spaced = "WordPiece" not in steps and form["model"].get("type") != "WordPiece"
        bare = form["model"].get("continuing_subword_prefix") or ""
        suffix = form["model"].get("end_of_word_suffix") or ""
        levels = steps | set(_kinds(form.get("pre_tokenizer")))
        bytes_of = BYTE_OF if "ByteLevel" in levels else None
        metaspace = "Metaspace" in levels or "▁" in json.dumps(
            [form.get("decoder"), form.get("normalizer")], ensure_ascii=False
        )
        self._table: list[bytes] = []
        byte_ids = set()
        for i, piece in enumerate(self._pieces):
            if i in specials or i in unknown_ids:
                self._table.append(b"")
            elif i in added:
                self._table.append(added[i]["content"].encode())
            elif falls_back and (found := BYTE.fullmatch(piece)):
                self._table.append(bytes([int(found[1], 16)]))
                byte_ids.add(i)
            elif bytes_of is not None and all(c in bytes_of for c in piece):
                self._table.append(bytes(bytes_of[c] for c in piece))
            else:
                text_of = piece.removeprefix(bare) if bare else piece
                text_of = text_of.removesuffix(suffix) if suffix else text_of
                self._table.append((text_of.replace("▁", " ") if metaspace else text_of).encode())
        super().__init__(
            spec,
            name,
            size=size,
            digest=hashlib.sha256(text.encode()).hexdigest()[:16],
            libraries={"tokenizers": version("tokenizers")},
            notes=notes,
            unknown_ids=unknown_ids,
            byte_ids=byte_ids,
            special_ids=specials - unknown_ids,
        )
        self._silent = specials | unknown_ids
        self._bytes = ByteTable(self._table)

    def encode(self, lines: Sequence[str]) -> Rows:
        """As `Subject.encode`."""
        with asking("tokenizers"):
            found = self.tokenizer.encode_batch(list(lines), add_special_tokens=False)

        def offsets(which: list[int]) -> list[Spans]:
            return [found[k].offsets for k in which]

        return rows_by_bytes(lines, [e.ids for e in found], self._bytes, offsets, spaced=self._spaced)

    def decode(self, ids: Sequence[int]) -> str | None:
        """As `Subject.decode`."""
        with asking("tokenizers"):
            return str(self.tokenizer.decode([int(i) for i in ids], skip_special_tokens=False))

    def token_bytes(self, i: int) -> bytes | None:
        """As `Subject.token_bytes`."""
        return None if i in self._silent else self._table[i]

    def piece(self, i: int) -> str:
        """As `Subject.piece`."""
        return self._pieces[i]


def _kinds(part: Any) -> list[str]:
    """The `type` of every step in a part of a tokenizer.json."""
    if isinstance(part, dict):
        own = [part["type"]] if isinstance(part.get("type"), str) else []
        return own + [kind for value in part.values() for kind in _kinds(value)]
    return [kind for item in part for kind in _kinds(item)] if isinstance(part, list) else []


def open_hf(spec: str, path: Path) -> Subject:
    """A tokenizer.json, or the folder that holds one."""
    if path.is_dir():
        inside = [path / name for name in ("tokenizer.json", "model.json") if (path / name).is_file()]
        if not inside:
            raise InputError(f"`{path}` holds no tokenizer.json", hint=f"hf:{path}/tokenizer.json")
        path = inside[0]
    name = path.stem if path.stem not in ("tokenizer", "model") else path.resolve().parent.name
    return HuggingFace(spec, name, path.read_text(encoding="utf-8"))


def open_wordpiece(spec: str, path: Path) -> Subject:
    """A vocab.txt of BERT, cased; jamo vocabularies get decomposed input."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    from koktok.foreign.rewriting import Adapted, decomposed

    path = path / "vocab.txt" if path.is_dir() else path
    pieces = path.read_text(encoding="utf-8").split("\n")
    unknown = next((p for p in ("[UNK]", "<unk>") if p in pieces), None)
    if unknown is None:
        raise InputError(f"`{path}` holds neither [UNK] nor <unk>, so it is no WordPiece vocabulary")
    words = [p for p in pieces if p and not (p[0] in "[<" and p[-1] in "]>")]
    if max(map(len, words), default=0) == 1:  # KoCharELECTRA: a list of characters, not of word pieces
        from koktok.foreign.lists import open_plain

        return open_plain(spec, path, "char")
    jamo = sum(any(map(is_conjoining, piece)) for piece in pieces)
    whole = sum(map(has_syllable, pieces))
    vocab = {piece: i for i, piece in enumerate(pieces) if piece}
    bert = Tokenizer(models.WordPiece(vocab, unk_token=unknown))
    bert.normalizer = normalizers.BertNormalizer(strip_accents=False, lowercase=False)
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece(prefix="##")
    control = [
        p for p in pieces if re.fullmatch(r"\[(PAD|UNK|CLS|SEP|MASK|BOS|EOS|unused\d+)\]|<(pad|unk|s|/s|mask)>", p)
    ]
    bert.add_special_tokens([p for p in control if "unused" not in p])
    name = path.resolve().parent.name if path.stem == "vocab" else path.stem
    notes = ["WordPiece, cased: spaces are lost, and a word with an unknown character is one unknown token"]
    inner = HuggingFace(spec, name, bert.to_str(), notes=notes)
    if jamo > whole:
        return Adapted(inner, decomposed, note="input NFKD (conjoining jamo)")
    return inner
