"""From the words of a spec to a `Subject`; each library is loaded only when its kind is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from koktok.errors import InputError, KoktokError, UsageError
from koktok.foreign.analysers import ANALYSERS
from koktok.foreign.base import Subject
from koktok.foreign.trivial import TRIVIAL

__all__ = ["KINDS", "open_spec", "parse_spec"]

KINDS: Final[dict[str, str]] = {
    "koktok": "koktok:DIR, a folder that koktok trained",
    "hf": "hf:PATH, a tokenizer.json or the folder that holds it",
    "sp": "sp:FILE.model, a SentencePiece model",
    "wordpiece": "wordpiece:vocab.txt, a cased BERT vocabulary",
    "tiktoken": "tiktoken:FILE#PATTERN, ranks and a pattern (cl100k, o200k, ..., or a file), or a folder of koktok's export",
    "tekken": "tekken:FILE.json, Mistral's ranks",
    "kiwi-sw": "kiwi-sw:FILE, a vocabulary of Kiwi's SwTokenizer",
    "plain": "plain:FILE#UNIT, a list of characters, jamo or MeCab morphemes (char, jamo, mecab)",
    "package": "package:NAME, a vocabulary that an installed package carries (o200k_base, llama3, ...)",
}
"""Each kind of spec, with its line of help. Without a colon: analysers, trivial rows, or a path that is guessed."""


def parse_spec(text: str) -> tuple[str, str]:
    """The kind of a spec and what it names; a bare path is guessed from what lies there.

    Raises
    ------
    UsageError
        When the kind is not known.
    InputError
        When a bare path does not exist or cannot be guessed.

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
    bare, _, pattern = text.partition("#")
    path = Path(bare)
    if bare and path.is_dir():
        for name, found in (
            ("koktok.toml", "koktok"),
            ("tokenizer.json", "hf"),
            ("tokenizer.model", "sp"),
            ("tiktoken.json", "tiktoken"),
            ("vocab.txt", "wordpiece"),
            ("tok.vocab", "plain"),
        ):
            if (path / name).is_file() and not (found == "plain" and list(path.glob("*.model"))):
                return (_json_kind(path / name), text) if found == "hf" else (found, text)
        if list(path.glob("*.model")):
            return "sp", text
        if (path / "model.json").is_file():
            return "hf", text
        raise InputError(f"the folder `{text}` holds no tokenizer that is known", hint=", ".join(KINDS.values()))
    if path.is_file():
        if path.suffix == ".json":
            return _json_kind(path), text
        if path.suffix == ".tiktoken" or pattern:
            return "tiktoken", text
        return {".model": "sp", ".txt": "wordpiece", ".vocab": "plain"}.get(path.suffix, "tiktoken"), text
    known = ", ".join([*KINDS, *ANALYSERS, *TRIVIAL])
    what = f"the kind `{kind}` is not known" if colon and "/" not in kind else f"`{text}` is no file or folder"
    raise UsageError(f"{what}; wanted a path or one of {known}", hint="hf:path/to/tokenizer.json")


def _json_kind(path: Path) -> str:
    """Which library a JSON file is for, by its own keys."""
    with path.open("rb") as file:
        head = file.read(4096)
    if b'"token_bytes"' in head:
        return "tekken"
    return "kiwi-sw" if b'"simple_tag"' in head or b'"integrate_allomorph"' in head else "hf"


def open_spec(text: str) -> Subject:
    """The tokenizer that a spec names.

    Parameters
    ----------
    text : str
        `kind:what` (see `KINDS`), an analyser, a trivial row, or a path.

    Raises
    ------
    KoktokError
        When it cannot run here; the message says why, and the hint what to install or type.

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
    if kind == "package":
        from koktok.foreign.packages import open_package

        return open_package(text, rest)
    where, _, option = rest.partition("#") if kind in ("tiktoken", "plain") else (rest, "", "")
    path = Path(where)
    if not path.exists():
        raise InputError(f"`{text}`: there is no file or folder `{where}`")
    try:
        return _open(text, kind, path, option)
    except KoktokError:
        raise
    except (OSError, UnicodeDecodeError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"`{text}` cannot be read: {type(error).__name__}: {error}") from error


def _open(text: str, kind: str, path: Path, option: str) -> Subject:
    if kind == "koktok":
        from koktok.foreign.koktok_adapter import open_own

        return open_own(text, path)
    if kind == "hf":
        from koktok.foreign.huggingface_adapter import open_hf

        return open_hf(text, path)
    if kind == "wordpiece":
        from koktok.foreign.huggingface_adapter import open_wordpiece

        return open_wordpiece(text, path)
    if kind == "sp":
        from koktok.foreign.sentencepiece_adapter import open_sp

        return open_sp(text, path)
    if kind == "kiwi-sw":
        from koktok.foreign.kiwi_adapter import open_kiwi_sw

        return open_kiwi_sw(text, path)
    if kind == "plain":
        from koktok.foreign.lists import open_plain

        return open_plain(text, path, option)
    from koktok.foreign.tiktoken_adapter import open_tekken, open_tiktoken

    return open_tekken(text, path) if kind == "tekken" else open_tiktoken(text, path, option)
