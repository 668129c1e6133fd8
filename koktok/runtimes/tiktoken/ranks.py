"""tiktoken: ranks, a pattern and special tokens, for vocabularies of byte-level BPE.

tiktoken merges the neighbours whose merged bytes have the lowest rank, leftmost first, as `koktok.model.models`; a rank is
the priority of a piece and its id. One rule is tiktoken's own: a whole pretoken that is a piece becomes that piece, without
merging. It makes no difference if every piece encodes to itself, which is checked here, piece by piece.

tiktoken has no normalizer. The folder holds no code: ranks as base64, and a JSON file with the rest. Mistral's tekken files
have the same in one JSON file, with the control tokens first; they can be read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from koktok.errors import ArtifactError, MissingExtraError, asking
from koktok.files import Product, read_utf8
from koktok.model.definition import Definition
from koktok.model.vocab import BYTE_OF, Vocab, VocabKind
from koktok.runtimes.huggingface.tokenizer_json import check_sparse, parsed
from koktok.runtimes.limits import first_that_holds
from koktok.text.patterns import PUBLISHED, TIKTOKEN

if TYPE_CHECKING:
    import tiktoken


SPEC = "tiktoken.json"
FORMAT = 1


EXPORT = Product("tiktoken.sha256", "tiktoken export", frozenset({SPEC}))
"""The folder of an export."""


@dataclass(frozen=True)
class Ranks:
    """The content of a `tiktoken.Encoding`.

    Examples
    --------
    >>> ranks = Ranks("tiny", ".+", {bytes([i]): i for i in range(256)} | {b"ab": 256}, {"</s>": 257})
    >>> ranks.encoding().encode("abc")
    [256, 99]
    """

    name: str
    pattern: str
    ranks: Mapping[bytes, int]
    specials: Mapping[str, int]

    def __post_init__(self) -> None:
        missing = [byte for byte in range(256) if bytes([byte]) not in self.ranks]
        if missing:
            raise ArtifactError(
                f"expected ranks of all 256 bytes, got none for {len(missing)}, first 0x{missing[0]:02X}"
            )
        taken: dict[int, object] = {}
        for piece, i in (*self.ranks.items(), *self.specials.items()):
            if not isinstance(i, int) or isinstance(i, bool) or i < 0:
                raise ArtifactError(f"expected a whole number from 0 as id of {piece!r}, got {i!r}")
            if i in taken:
                raise ArtifactError(f"the id {i} of {piece!r} is that of {taken[i]!r}, too")
            taken[i] = piece
        check_sparse(taken, self.name)

    def encoding(self) -> tiktoken.Encoding:
        """The encoding of the library tiktoken, for normalized text."""
        try:
            import tiktoken
        except ImportError as error:
            raise MissingExtraError("tiktoken", "tiktoken") from error
        with asking("tiktoken", self.name):
            return tiktoken.Encoding(
                self.name,
                pat_str=self.pattern,
                mergeable_ranks=dict(self.ranks),
                special_tokens=dict(self.specials),
            )

    def text(self) -> str:
        """The ranks file: lines of a piece in base64, a space and its rank, by rank."""
        rows = sorted(self.ranks.items(), key=lambda row: row[1])
        return "".join(f"{base64.b64encode(piece).decode('ascii')} {rank}\n" for piece, rank in rows)

    def digest(self) -> str:
        """SHA-256 of the ranks file, for tiktoken's `expected_hash`."""
        return hashlib.sha256(self.text().encode()).hexdigest()


KIND: Final[VocabKind] = "bpe-bytes"
"""The kind of vocabulary that ranks can hold."""


def refuses(one: Definition) -> str:
    """The reason why ranks cannot hold a tokenizer, or '' if they can."""
    return first_that_holds(_obstacles(one), one.vocab.kind)


def _obstacles(one: Definition) -> Iterator[tuple[str, object]]:
    """The cheapest to test first."""
    yield "tiktoken-kind", one.vocab.kind != KIND
    yield "tiktoken-jamo", one.jamo
    yield "tiktoken-stray", _stray(one.vocab)


def _stray(vocab: Vocab) -> str:
    """A piece that does not encode to itself, or ''."""
    from koktok.model.models import BpeModel

    # The same ranks over the characters that spell bytes: so a piece with half a character can be encoded, too.
    model = BpeModel(Vocab("bpe", vocab.pieces, byte_fallback=False))
    return next((piece for i, piece in enumerate(vocab.pieces) if model.encode(piece)[0] != [i]), "")


def ranks_of(one: Definition, name: str = "koktok") -> Ranks:
    """The ranks of a byte-level BPE vocabulary.

    Examples
    --------
    >>> from koktok.model.vocab import Vocab
    >>> ranks = ranks_of(Definition(Vocab.bpe_bytes(["ê°", "ê°Ģ"], specials=["</s>"])))
    >>> ranks.encoding().encode("가나"), ranks.specials
    ([257, 167, 224, 246], {'</s>': 258})
    """
    vocab, reason = one.vocab, refuses(one)
    if reason:
        raise ArtifactError(f"no tiktoken ranks: {reason}", hint="koktok train TEXT --model bpe-bytes --out FOLDER")
    ranks = {bytes(BYTE_OF[char] for char in piece): i for i, piece in enumerate(vocab.pieces)}
    return Ranks(name, one.pattern.regex, ranks, dict(vocab.special_ids))


def files(ranks: Ranks, normalizer: str = "", javascript: str = "") -> dict[str, str]:
    """The files of an export: NAME.tiktoken, and tiktoken.json with the rest."""
    spec = {
        "format": FORMAT,
        "name": ranks.name,
        "ranks": f"{ranks.name}.tiktoken",
        "sha256": ranks.digest(),
        "pat_str": ranks.pattern,
        "special_tokens": dict(ranks.specials),
        "n_vocab": len(ranks.ranks) + len(ranks.specials),
        "normalizer": normalizer,
    }
    if javascript:
        spec["pat_str_js"] = javascript
    return {f"{ranks.name}.tiktoken": ranks.text(), SPEC: json.dumps(spec, ensure_ascii=False, indent=1) + "\n"}


def load(folder: str | Path) -> Ranks:
    """Read an export."""
    place = Path(folder)
    spec: dict[str, Any]
    try:
        spec = json.loads(read_utf8(place / SPEC))
        newer = spec["format"] != FORMAT
        name, pattern, digest = str(spec["name"]), str(spec["pat_str"]), str(spec["sha256"])
        specials = {str(token): int(i) for token, i in spec["special_tokens"].items()}
        file = place / Path(str(spec["ranks"])).name
        text = read_utf8(file)
    except ArtifactError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(
            f"`{place}` is not a tiktoken export of koktok: {type(error).__name__}: {error}",
            hint="koktok export FOLDER --to tiktoken --out NEW-FOLDER",
        ) from error
    if newer:
        raise ArtifactError(
            f"`{place}` has format {spec['format']!r}; this koktok reads {FORMAT}", hint="pip install -U koktok"
        )
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise ArtifactError(
            f"`{file}` was changed: its digest differs from that in {SPEC}", hint="koktok export FOLDER --to tiktoken"
        )
    return Ranks(name, pattern, ranks_from_text(text, str(file)), specials)


def ranks_from_text(text: str, where: str = "the ranks file") -> dict[bytes, int]:
    r"""Read a ranks file: lines of base64, a space, a rank."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line:
            continue
        try:
            piece, rank = line.split()
            key, value = base64.b64decode(piece, validate=True), int(rank)
        except (ValueError, binascii.Error) as error:
            raise ArtifactError(
                f"line {number} of `{where}`: expected a piece in base64, a space and a rank, got {line[:60]!r}",
                hint="a .tiktoken file has lines like `IQ== 0`",
            ) from error
        if key in ranks:
            raise ArtifactError(f"line {number} of `{where}` has the piece {key!r} a second time")
        ranks[key] = value
    if not ranks:
        raise ArtifactError(f"`{where}` holds no ranks", hint="a .tiktoken file has lines like `IQ== 0`")
    return ranks


_TEKKEN_NAMES = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *(
        "[/TOOL_RESULTS]",
        "[TOOL_CALLS]",
        "[IMG]",
        "<pad>",
        "[IMG_BREAK]",
        "[IMG_END]",
        "[PREFIX]",
        "[MIDDLE]",
        "[SUFFIX]",
    ),
    *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
"""Special tokens of tekken files without own names, from mistral-common (DEPRECATED_SPECIAL_TOKENS)."""


def ranks_from_tekken(text: str, where: str = "tekken.json", name: str = "tekken") -> Ranks:
    """Read a tekken.json of Mistral: ranks, pattern and control tokens in one file; the control tokens come first."""
    form = parsed(text, where)
    try:
        config = form["config"]
        controls = int(config["default_num_special_tokens"])
        entries = form["vocab"][: int(config["default_vocab_size"]) - controls]
        ranks = {base64.b64decode(entry["token_bytes"]): int(entry["rank"]) + controls for entry in entries}
        names = {int(row["rank"]): str(row["token_str"]) for row in form.get("special_tokens") or ()}
        names = names or dict(enumerate(_TEKKEN_NAMES))
        specials = {names.get(i, f"<SPECIAL_{i}>"): i for i in range(controls)}  # as mistral-common names them
        return Ranks(name, str(config["pattern"]), ranks, specials)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ArtifactError(f"`{where}` is not a tekken.json: {type(error).__name__}: {error}") from error


# --- Patterns and special tokens, which a file of ranks does not hold ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class RanksPattern:
    """A pattern, and the special tokens of the published vocabulary that has it, whose file of ranks has this SHA-256."""

    regex: str
    specials: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""

    def specials_of(self, ranks: Ranks) -> Mapping[str, int]:
        """The special tokens of the published vocabulary, if these are its ranks: anybody's ranks may have its pattern."""
        return self.specials if self.sha256 and ranks.digest() == self.sha256 else {}


VOCABULARIES: Final[Mapping[str, RanksPattern]] = {
    "gpt2": RanksPattern(
        TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}, "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
    ),
    "p50k_base": RanksPattern(
        TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}, "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
    ),
    "cl100k_base": RanksPattern(
        TIKTOKEN["cl100k"],
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": RanksPattern(
        PUBLISHED["o200k"],
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "llama3": RanksPattern(PUBLISHED["llama3"]),
    "llama4": RanksPattern(PUBLISHED["o200k"]),
    "qwen2": RanksPattern(PUBLISHED["qwen2"]),
    "qwen3.5": RanksPattern(PUBLISHED["qwen3.5"]),
}
"""Those of tiktoken and of the authors of the models."""


def published(name: str) -> RanksPattern | None:
    """The pattern for ranks of that name, with or without tiktoken's "_base"; None for an unknown name."""
    return VOCABULARIES.get(name) or VOCABULARIES.get(f"{name}_base")
