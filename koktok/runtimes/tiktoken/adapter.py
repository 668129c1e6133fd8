"""`tiktoken:`, ranks with a pattern, and Mistral's tekken files, which are the same in JSON."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import InputError, UsageError, asking
from koktok.files import read_utf8, typed
from koktok.model.note import Note
from koktok.model.tokens import ByteTable
from koktok.model.vocab import BYTE_CHARS
from koktok.runtimes.huggingface.tokenizer_json import added_nodes, bpe_node, whole_json
from koktok.runtimes.library import IdsAndSpans, LibraryTokenizer
from koktok.runtimes.tiktoken import ranks as tiktoken
from koktok.runtimes.tiktoken.ranks import VOCABULARIES, RanksPattern, published


class Tiktoken(LibraryTokenizer):
    """Ranks, a pattern and special tokens."""

    library: ClassVar[str] = "tiktoken"
    cuts_specials = True

    def __init__(
        self,
        ranks: tiktoken.Ranks,
        *,
        spec: str = "",
        name: str = "",
        notes: Sequence[Note] = (),
    ) -> None:
        spec = spec or ranks.name
        self.ranks = ranks
        self._runner = ranks.encoding()
        whole = hashlib.sha256(ranks.pattern.encode())
        for written, i in sorted(ranks.ranks.items(), key=lambda row: row[1]):
            whole.update(i.to_bytes(4, "little") + len(written).to_bytes(4, "little") + written)
        whole.update(repr(sorted(ranks.specials.items())).encode())
        super().__init__(
            spec,
            name or ranks.name,
            size=self._runner.max_token_value + 1,
            digest=whole.hexdigest()[:16],
            libraries={"tiktoken": version("tiktoken")},
            notes=notes,
            special_ids=ranks.specials.values(),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            partial(Tiktoken, spec=self.spec, name=self.name, notes=self.notes),
            (self.ranks,),
            {"signature": self.signature},
        )

    @cached_property
    def byte_table(self) -> ByteTable:
        table = [b""] * (self._runner.max_token_value + 1)
        for written, i in self.ranks.ranks.items():
            table[i] = written
        return ByteTable(table)

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:
        """Ids, on two cores; text that the pattern does not match is dropped."""
        with asking(self.library):
            if specials:
                return list(self._runner.encode_batch(list(lines), num_threads=2, allowed_special="all"))
            return list(self._runner.encode_ordinary_batch(list(lines), num_threads=2))

    def read(self, text: str, *, specials: bool = False, template: bool = False) -> IdsAndSpans:  # noqa: ARG002
        """One text; the bytes of one character share its offsets, as in `koktok.model.models`."""
        with asking(self.library):
            ids = self._runner.encode(text, allowed_special="all") if specials else self._runner.encode_ordinary(text)
        return ids, self._offsets(text, ids, self.special_ids if specials else ())

    def _offsets(self, text: str, ids: Sequence[int], specials: Collection[int]) -> list[tuple[int, int]]:
        owner = [i for i, char in enumerate(text) for _ in range(len(char.encode()))]
        spans, start = [], 0
        for i in ids:
            end = start + len(self.tokens[i].encode() if i in specials else self.tokens[i])
            if end > len(owner):
                break
            spans.append((owner[start], owner[end - 1] + 1))
            start = end
        if start != len(owner) or len(spans) != len(ids):
            raise self._lossy(text)
        return spans

    def _lossy(self, text: str) -> InputError:
        return InputError(
            f"the pattern of `{self.ranks.name}` does not match a part of this text, and tiktoken drops it: {text[:60]!r}",
            hint="koktok import RANKS --pattern with a regular expression that matches every character",
        )

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        left_out = self.special_ids if skip_special_tokens else frozenset()
        return str(self._runner.decode([int(i) for i in ids if i not in left_out]))

    @cached_property
    def tokens(self) -> Sequence[str]:
        """The string of every id, with GPT-2's characters for bytes."""
        tokens = ["".join(BYTE_CHARS[byte] for byte in written) for written in self.byte_table.written]
        for token, i in self.ranks.specials.items():
            tokens[i] = token
        return tuple(tokens)

    @property
    def specials(self) -> Mapping[str, int]:
        """Special tokens and their ids."""
        return self.ranks.specials

    def files(self) -> dict[str, str | bytes]:
        """The files of `koktok.runtimes.tiktoken.ranks`."""
        return {**tiktoken.files(self.ranks)}

    def tokenizer_json(self) -> dict[str, Any]:
        """A tokenizer.json that does the same: byte-level BPE with these ranks as merges."""
        ranks = self.ranks
        spelled = {self.tokens[i]: i for i in sorted(ranks.ranks.values())}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        # Oniguruma reads the plus of \p{N}{1,3}+ as a repetition, other engines as possessive.
        regex = re.sub(r"(\{\d+(?:,\d*)?\})\+", r"\1", ranks.pattern)
        split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        return whole_json(
            added_tokens=added_nodes(ranks.specials, {}),
            pre_tokenizer={"type": "Sequence", "pretokenizers": [split, level]},
            decoder=level,
            # Special tokens are in the table, too: else the library would assign ids after its end.
            model=bpe_node(
                spelled | dict(ranks.specials), sorted(spelled, key=spelled.__getitem__), ignore_merges=True
            ),
        )


def open_tiktoken(spec: str, path: Path, pattern: str = "") -> Tiktoken:
    """A file of `base64 rank` lines with a pattern by name or in another file; or koktok's export, which has both."""
    if path.is_dir():
        return Tiktoken(tiktoken.load(path), spec=spec)
    known = published(pattern or path.stem)
    if known is None and pattern and Path(pattern).is_file():
        known = RanksPattern(read_utf8(Path(pattern)).rstrip("\n"))
    return _opened(spec, path, known, pattern)


def open_ranks(spec: str, path: Path, pattern: str | None, specials: Mapping[str, int] | None) -> Tiktoken:
    """A file of ranks, with a pattern by name or as a regular expression, and special tokens of the caller."""
    known = published(pattern or path.stem)
    if known is None and pattern is not None:
        known = RanksPattern(pattern)
    return _opened(spec, path, known, specials=specials)


def _opened(
    spec: str,
    path: Path,
    known: RanksPattern | None,
    pattern: str = "",
    *,
    specials: Mapping[str, int] | None = None,
) -> Tiktoken:
    """Ranks with the special tokens of the caller, or with those of the published vocabulary that they are."""
    if known is None:
        problem = f"the pattern `{pattern}` is not known" if pattern else f"`{path}` has ranks, and no pattern"
        raise UsageError(
            f"{problem}; expected one of {', '.join(VOCABULARIES)}, or a file", hint=typed(f"tiktoken:{path}#cl100k")
        )
    ranks = tiktoken.Ranks(path.stem, known.regex, tiktoken.ranks_from_text(read_utf8(path), str(path)), {})
    given = known.specials_of(ranks) if specials is None else specials
    return Tiktoken(replace(ranks, specials=dict(given)), spec=spec)


def open_tekken(spec: str, path: Path) -> Tiktoken:
    """A tekken.json of Mistral: ranks, pattern and control tokens in one file."""
    ranks = tiktoken.ranks_from_tekken(read_utf8(path), str(path), path.stem)
    return Tiktoken(ranks, spec=spec)
