"""tiktoken: ranks, a pattern and special tokens, for vocabularies of byte-level BPE.

Ranks that are ids. tiktoken joins the neighbours whose joined bytes have the lowest rank, leftmost first,
which is the rule of `koktok.tokenizer.models`; a rank is the place of a piece and its id at once. One thing is tiktoken's own:
a whole pretoken that is a piece is taken as that piece, without joining. That makes no difference where every piece
encodes to itself, and this is checked here, piece by piece.

There is no normalizer in tiktoken, and no code in the folder: ranks as base64, and a JSON file with the rest. Mistral's
tekken files hold the same in one JSON, with the control tokens in front; they are read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from koktok.errors import ArtifactError, MissingExtraError
from koktok.files import Product
from koktok.formats.hf import parsed
from koktok.formats.limits import unsupported_reason
from koktok.text.patterns import PUBLISHED, TIKTOKEN
from koktok.vocab import BYTE_OF, Vocab, check_sparse

if TYPE_CHECKING:
    import tiktoken

    from koktok.text.pretokenize import Pattern


SPEC = "tiktoken.json"
FORMAT = 1


def _without_manifest(folder: Path) -> tuple[str, ...]:
    """What an older koktok exported, which wrote no manifest."""
    try:
        spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
        return (SPEC, str(spec["ranks"])) if {"format", "name", "sha256", "pat_str"} <= spec.keys() else ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


EXPORT = Product("tiktoken.sha256", "tiktoken export", frozenset({SPEC}), earlier=_without_manifest)
"""The folder of an export."""


@dataclass(frozen=True)
class Ranks:
    """What a `tiktoken.Encoding` is made of.

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
                f"the ranks have no piece for {len(missing)} of the 256 bytes, first 0x{missing[0]:02X}; "
                "a byte-level vocabulary wants them all"
            )
        taken: dict[int, object] = {}
        for piece, i in (*self.ranks.items(), *self.specials.items()):
            if not isinstance(i, int) or isinstance(i, bool):
                raise ArtifactError(f"the id {i!r} of {piece!r} is no whole number")
            if i < 0 or i in taken:
                raise ArtifactError(
                    f"the id {i} of {piece!r} is {'negative' if i < 0 else f'that of {taken[i]!r}, too'}"
                )
            taken[i] = piece
        check_sparse(taken, self.name)

    def encoding(self) -> tiktoken.Encoding:
        """The encoding, for the library tiktoken; give it normalized text."""
        try:
            import tiktoken
        except ImportError as error:
            raise MissingExtraError("tiktoken", "tiktoken") from error
        try:
            return tiktoken.Encoding(
                self.name,
                pat_str=self.pattern,
                mergeable_ranks=dict(self.ranks),
                special_tokens=dict(self.specials),
            )
        except ValueError as error:
            raise ArtifactError(f"tiktoken refuses `{self.name}`: {error}") from error

    def text(self) -> str:
        """The ranks file: a line is a piece in base64, a space, its rank; by rank."""
        rows = sorted(self.ranks.items(), key=lambda row: row[1])
        return "".join(f"{base64.b64encode(piece).decode('ascii')} {rank}\n" for piece, rank in rows)

    def digest(self) -> str:
        """SHA-256 of the ranks file, as tiktoken's `expected_hash` wants it."""
        return hashlib.sha256(self.text().encode()).hexdigest()


def ranks_of(vocab: Vocab, pattern: Pattern, name: str = "koktok", *, jamo: bool = False) -> Ranks:
    """The ranks of a byte-level BPE vocabulary.

    Examples
    --------
    >>> from koktok.text.pretokenize import Pattern
    >>> ranks = ranks_of(Vocab.bpe_bytes(["ê°", "ê°Ģ"], specials=["</s>"]), Pattern())
    >>> ranks.encoding().encode("가나"), ranks.specials
    ([257, 167, 224, 246], {'</s>': 258})
    """
    reason = unsupported_reason("tiktoken", vocab, jamo=jamo)
    if reason:
        raise ArtifactError(f"no tiktoken ranks: {reason}", hint="koktok train TEXT --model bpe-bytes --out FOLDER")
    ranks = {bytes(BYTE_OF[char] for char in piece): i for i, piece in enumerate(vocab.pieces)}
    return Ranks(name, pattern.regex, ranks, dict(vocab.special_ids))


def files(ranks: Ranks, normalizer: str = "", javascript: str = "") -> dict[str, str]:
    """The files of an export: NAME.tiktoken, and tiktoken.json with everything else."""
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
    """Read an export back."""
    place = Path(folder)
    spec: dict[str, Any]
    try:
        spec = json.loads((place / SPEC).read_text(encoding="utf-8"))
        newer = spec["format"] != FORMAT
        name, pattern, digest = str(spec["name"]), str(spec["pat_str"]), str(spec["sha256"])
        specials = {str(token): int(i) for token, i in spec["special_tokens"].items()}
        file = place / Path(str(spec["ranks"])).name
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(
            f"`{place}` is no tiktoken export of koktok: {type(error).__name__}: {error}",
            hint="koktok export FOLDER --to tiktoken --out NEW-FOLDER",
        ) from error
    if newer:
        raise ArtifactError(
            f"`{place}` has format {spec['format']!r}; this koktok reads {FORMAT}", hint="pip install -U koktok"
        )
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise ArtifactError(
            f"`{file}` is not the file that {SPEC} was written with", hint="koktok export FOLDER --to tiktoken"
        )
    return Ranks(name, pattern, ranks_from_text(text, str(file)), specials)


def ranks_from_text(text: str, where: str = "the ranks file") -> dict[bytes, int]:
    r"""Read a ranks file: lines of base64, a space, a rank."""
    found: dict[bytes, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line:
            continue
        try:
            piece, rank = line.split()
            key, value = base64.b64decode(piece, validate=True), int(rank)
        except (ValueError, binascii.Error) as error:
            raise ArtifactError(
                f"line {number} of `{where}` is no base64, space, rank: {line[:60]!r}",
                hint="a .tiktoken file has lines like `IQ== 0`",
            ) from error
        if key in found:
            raise ArtifactError(f"line {number} of `{where}` gives the piece {key!r} a second time")
        found[key] = value
    if not found:
        raise ArtifactError(f"`{where}` holds no ranks", hint="a .tiktoken file has lines like `IQ== 0`")
    return found


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
"""Special tokens of the tekken files that name none, as mistral-common has them (DEPRECATED_SPECIAL_TOKENS)."""


def ranks_from_tekken(text: str, where: str = "tekken.json", name: str = "tekken") -> Ranks:
    """Read a tekken.json of Mistral: ranks, pattern and control tokens in one file; the control tokens come first."""
    form = parsed(text, where)
    try:
        config = form["config"]
        controls = int(config["default_num_special_tokens"])
        kept = form["vocab"][: int(config["default_vocab_size"]) - controls]
        ranks = {base64.b64decode(entry["token_bytes"]): int(entry["rank"]) + controls for entry in kept}
        named = {int(row["rank"]): str(row["token_str"]) for row in form.get("special_tokens") or ()}
        named = named or dict(enumerate(_TEKKEN_NAMES))
        # mistral-common calls those that nobody names <SPECIAL_n>, too.
        specials = {named.get(i, f"<SPECIAL_{i}>"): i for i in range(controls)}
        return Ranks(name, str(config["pattern"]), ranks, specials)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ArtifactError(f"`{where}` is no tekken.json: {type(error).__name__}: {error}") from error


# --- What a file of ranks does not hold ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RanksPattern:
    """A pattern, and the special tokens of its vocabulary with their ids."""

    regex: str
    specials: Mapping[str, int] = field(default_factory=dict)


VOCABULARIES: Final[Mapping[str, RanksPattern]] = {
    "gpt2": RanksPattern(TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}),
    "p50k_base": RanksPattern(TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}),
    "cl100k_base": RanksPattern(
        TIKTOKEN["cl100k"],
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": RanksPattern(PUBLISHED["o200k"], {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    "llama3": RanksPattern(PUBLISHED["llama3"]),
    "llama4": RanksPattern(PUBLISHED["o200k"]),
    "qwen2": RanksPattern(PUBLISHED["qwen2"]),
    "qwen3.5": RanksPattern(PUBLISHED["qwen3.5"]),
}
"""As tiktoken and the models' authors give them."""


def published(name: str) -> RanksPattern | None:
    """What belongs to the ranks of that name, with or without tiktoken's "_base"; None where there is none."""
    return VOCABULARIES.get(name) or VOCABULARIES.get(f"{name}_base")
