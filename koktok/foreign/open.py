"""From the words of a reference to a `ForeignTokenizer`; each library is loaded only when its kind is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from koktok.errors import ArtifactError, InputError, KoktokError, UsageError
from koktok.foreign.analysers import ANALYSERS, open_segmenter
from koktok.foreign.base import ForeignTokenizer
from koktok.foreign.trivial import TRIVIAL
from koktok.formats.detect import Detected, detect
from koktok.vocabularies import folder_of

KINDS: Final[dict[str, str]] = {
    "koktok": "koktok:DIR, a folder that koktok wrote, or koktok:NAME, a vocabulary that travels with it",
    "hf": "hf:PATH, a tokenizer.json or the folder that holds it",
    "sp": "sp:FILE.model, a SentencePiece model",
    "wordpiece": "wordpiece:vocab.txt, a BERT vocabulary",
    "gpt2": "gpt2:vocab.json, with its merges.txt beside it",
    "tiktoken": "tiktoken:FILE#PATTERN, ranks and a pattern (cl100k, o200k, ..., or a file), or a folder of koktok's export",
    "tekken": "tekken:FILE.json, Mistral's ranks",
    "package": "package:NAME, a vocabulary that an installed package carries (o200k_base, llama3, ...)",
    "dpe": "dpe:DIR, a segmentation that koktok segment --learn wrote",
}
"""Each kind of reference, with its line of help. Without a colon: analysers, trivial rows, or a path, which is looked at."""


def parse_spec(text: str) -> tuple[str, str]:
    """The kind of a reference and what it names; what lies at a bare path is told by its content.

    Examples
    --------
    >>> parse_spec("sp:model/tok.model"), parse_spec("kiwi"), parse_spec("syllables")
    (('sp', 'model/tok.model'), ('analyser', 'kiwi'), ('trivial', 'syllables'))
    """
    kind, colon, rest = text.partition(":")
    if colon and kind in KINDS:
        if not rest:
            raise UsageError(f"`{text}` names nothing; wanted {KINDS[kind]}")
        return kind, rest
    if text in ANALYSERS:
        return "analyser", text
    if text in TRIVIAL:
        return "trivial", text
    path = Path(text.partition("#")[0])
    if path.parts and path.exists():
        return detect(path).kind, text
    known = ", ".join([*KINDS, *ANALYSERS, *TRIVIAL])
    what = f"the kind `{kind}` is not known" if colon and "/" not in kind else f"`{text}` is no file or folder"
    raise UsageError(f"{what}; wanted a path or one of {known}", hint="hf:path/to/tokenizer.json")


def is_reference(text: str) -> bool:
    """True for what names a tokenizer otherwise than by a path.

    Examples
    --------
    >>> [is_reference(text) for text in ("package:llama3", "syllables", "my-tokenizer", "C:/my-tokenizer")]
    [True, True, False, False]
    """
    named = text.partition(":")[0] in KINDS and ":" in text
    return (named or text in ANALYSERS or text in TRIVIAL) and not Path(text).exists()


def open_spec(text: str) -> ForeignTokenizer:
    """The tokenizer that a reference names.

    Examples
    --------
    >>> rows = open_spec("syllables").encode(["한국 말"])
    >>> rows[0].spans.tolist()
    [[0, 1], [1, 2], [3, 4]]
    """
    kind, rest = parse_spec(text)
    if kind == "analyser":
        return ANALYSERS[rest]()
    if kind == "trivial":
        return TRIVIAL[rest]()
    if kind == "dpe":
        return open_segmenter(text)
    if kind == "package":
        from koktok.foreign.packages import open_package

        return open_package(text, rest, open_definition)
    where, _, option = rest.partition("#") if kind == "tiktoken" else (rest, "", "")
    path = folder_of(Path(text)) if kind == "koktok" else Path(where)
    if not path.exists():
        raise InputError(f"`{text}`: there is no file or folder `{where}`")
    if path.is_dir():
        return open_definition(detect(path, kind), text, option)
    return open_definition(Detected(kind, path), text, option)  # type: ignore[arg-type]


def open_definition(found: Detected, spec: str, option: str = "") -> ForeignTokenizer:
    """The tokenizer of a file, as the library runs it that it was written for."""
    try:
        return _opened(found, spec, option)
    except KoktokError:
        raise
    except (OSError, UnicodeDecodeError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"`{spec}` cannot be read: {type(error).__name__}: {error}") from error


def _opened(found: Detected, spec: str, option: str) -> ForeignTokenizer:
    path = found.path
    match found.kind:
        case "koktok":
            from koktok.foreign.koktok_adapter import open_own

            return open_own(spec, path)
        case "hf":
            from koktok.foreign.huggingface_adapter import open_hf

            return open_hf(spec, path)
        case "gpt2":
            from koktok.foreign.huggingface_adapter import open_gpt2

            return open_gpt2(spec, path)
        case "wordpiece":
            from koktok.foreign.huggingface_adapter import open_wordpiece

            return open_wordpiece(spec, path)
        case "sp":
            from koktok.foreign.sentencepiece_adapter import open_sp

            return open_sp(spec, path)
        case "tekken":
            from koktok.foreign.tiktoken_adapter import open_tekken

            return open_tekken(spec, path)
        case "tiktoken":
            from koktok.foreign.tiktoken_adapter import open_tiktoken

            return open_tiktoken(spec, path, option)
