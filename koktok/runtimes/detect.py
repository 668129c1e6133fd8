"""The kind of tokenizer at a path, detected from the content; the name of a file decides only if the content is ambiguous."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from koktok.errors import ArtifactError
from koktok.files import read_bounded, typed
from koktok.model.vocab import UNKNOWN
from koktok.runtimes.folder import MARK
from koktok.runtimes.tiktoken.ranks import SPEC, ranks_from_text

DetectedKind = Literal["koktok", "transformers", "hf", "sp", "wordpiece", "gpt2", "tiktoken", "tekken"]

NAMES: Final[dict[str, str]] = {
    "koktok": "a koktok folder",
    "transformers": "a folder of transformers",
    "hf": "a tokenizer.json",
    "sp": "a SentencePiece model",
    "wordpiece": "a vocab.txt",
    "gpt2": "a vocab.json with its merges.txt",
    "tiktoken": "a tiktoken ranks file",
    "tekken": "a tekken.json",
}
"""The description of each kind."""

IN_A_FOLDER = (
    *("tokenizer.json", "tokenizer.model", SPEC, "vocab.txt", "*.model"),
    *("model.json", "vocab.json", "*.tiktoken", "tekken*.json"),
)
"""Files that are searched in a folder, the preferred ones first."""

NAMING: Final = ("tokenizer_config.json", "config.json", "special_tokens_map.json", "added_tokens.json")
"""Files that say how transformers reads the vocabulary beside them: its class, and further tokens."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The file or folder of a tokenizer, and its kind."""

    kind: DetectedKind
    path: Path

    def __str__(self) -> str:
        return NAMES[self.kind]


def detect(path: Path, kind: str = "") -> Detected:
    """The tokenizer at a path; a vocabulary beside files of transformers is one with them, but not a file of ranks."""
    if not path.is_dir():
        found = _kind(path)
        with_others = found not in ("tiktoken", "tekken") and not (path.parent / MARK).is_file()
        if with_others and kind in ("", "transformers") and is_of_transformers(path.parent):
            return Detected("transformers", path.parent)
        return Detected(found, path.parent if path.name == SPEC else path)
    if (path / MARK).is_file() and kind in ("", "koktok"):
        return Detected("koktok", path)
    if kind in ("", "hf", "transformers") and is_of_transformers(path):
        return Detected("transformers", path)
    for file in (file for name in IN_A_FOLDER for file in sorted(path.glob(name))):
        if file.is_file() and (file.name != "vocab.json" or _merges(file)):
            detected = Detected(_kind(file), path if file.name == SPEC else file)
            if kind in ("", detected.kind):
                return detected
    if kind:
        raise ArtifactError(f"the folder `{path}` does not hold {NAMES[kind]}", hint=typed(f"{kind}:{path}/FILE"))
    names = ", ".join(name for name in IN_A_FOLDER if "*" not in name)
    raise ArtifactError(f"the folder `{path}` holds no tokenizer that koktok reads", hint=f"one of {names}")


def is_of_transformers(folder: Path) -> bool:
    """Whether files of a folder say how transformers reads its vocabulary."""
    return any((folder / name).exists() for name in NAMING)


def _merges(vocab: Path) -> bool:
    return (vocab.parent / "merges.txt").is_file()


def _kind(path: Path) -> DetectedKind:
    data = read_bounded(path, what="the file of a tokenizer", hint="koktok import FILE --out FOLDER")
    if not data.strip():
        raise ArtifactError(f"`{path}` is empty", hint="fetch it again")
    if data[:4] == b"GGUF":
        raise ArtifactError(
            f"`{path}` is a GGUF; koktok writes those, and reads the files that they are converted from",
            hint="koktok import tokenizer.json or tokenizer.model",
        )
    if data.lstrip()[:1] == b"{":
        return _kind_of_json(path, data)
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return "sp"
    try:
        ranks_from_text(next(line for line in lines if line.strip()))
    except ArtifactError:
        pass
    else:
        return "tiktoken"  # Llama 3 calls its ranks tokenizer.model
    by_name: dict[str, DetectedKind] = {".model": "sp", ".tiktoken": "tiktoken"}
    if path.suffix in by_name:
        return by_name[path.suffix]
    pieces = [line.split("\t")[0] for line in lines]
    if any(name in pieces for name in UNKNOWN):
        words = [piece for piece in pieces if piece and not (piece[0] in "[<" and piece[-1] in "]>")]
        alone = max(map(len, words), default=0) == 1  # KoCharELECTRA: characters, not pieces of words
        if not alone and not any("\t" in line for line in lines):
            return "wordpiece"
    raise ArtifactError(
        f"`{path}` is none of: {', '.join(NAMES[kind] for kind in get_args(DetectedKind)[2:])}",
        hint="a vocab.txt has one piece in a line, among them [UNK]; a list of pieces alone has no rules of segmentation",
    )


def _kind_of_json(path: Path, data: bytes) -> DetectedKind:
    if path.name == SPEC:
        return "tiktoken"
    if path.name == "vocab.json" and _merges(path):
        return "gpt2"
    if b'"token_bytes"' in data[:4096]:
        return "tekken"
    return "hf"
