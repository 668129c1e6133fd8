"""Files of gold morphemes: CoNLL-U treebanks, KLUE-DP, and Sejong-style lines of `form TAB morpheme/TAG+morpheme/TAG`."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from koktok.errors import InputError, UsageError
from koktok.gold.corpus import GoldCorpus, Word

__all__ = ["FORMATS", "read_gold"]

FORMATS: Final = ("conllu", "klue-dp", "sejong")

HUMAN: Final = re.compile(r"(^|[^a-z])(kaist|ksl)([^a-z]|$)", re.I)
"""Treebanks whose morphemes people annotated, by file name; GSD's are automatic, of the others it is not stated."""


def read_gold(path: str | Path, *, name: str | None = None, kind: str | None = None) -> GoldCorpus:
    """Read a gold file.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        For tables; the file name without its ending by default.
    kind : str, optional
        One of `FORMATS`; guessed from the content by default.

    Raises
    ------
    UsageError
        When the kind is not known.
    InputError
        When the file cannot be read, or holds no sentence of that kind.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
        lines = unicodedata.normalize("NFC", raw.decode("utf-8-sig")).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the gold file `{path}` cannot be read: {error}") from error
    kind = kind or _guess(lines)
    if kind not in FORMATS:
        raise UsageError(f"`{kind}` is no kind of gold; wanted one of {', '.join(FORMATS)}")
    try:
        sentences = list({"conllu": _conllu, "klue-dp": _klue, "sejong": _sejong}[kind](lines))
    except (IndexError, ValueError) as error:
        raise InputError(f"the gold file `{path}` is no {kind}: {error}") from error
    if not sentences:
        raise InputError(
            f"the gold file `{path}` holds no sentence",
            hint="CoNLL-U, KLUE-DP, or lines of word TAB form/TAG+form/TAG",
        )
    digest = hashlib.sha256(raw).hexdigest()[:16]
    human = kind == "conllu" and HUMAN.search(path.name) is not None
    return GoldCorpus.of(name or path.stem, sentences, human=human, digest=digest)


def _guess(lines: list[str]) -> str:
    rows = [line for line in lines[:200] if line and not line.startswith("#")]
    columns = [line.split("\t") for line in rows]
    if columns and all(len(row) == 10 for row in columns):
        return "conllu"
    return "klue-dp" if columns and all(len(row) == 6 and row[0].isdigit() for row in columns) else "sejong"


def _conllu(lines: list[str]) -> Iterator[list[Word]]:
    """Words in ten columns; UD Kaist moves the full morphemes of auxiliaries and copulas to OrigLemma in MISC.

    In the treebank's older training part, punctuation stands by itself in `text` although no SpaceAfter=No is there;
    the words, not the comment, make the sentence here, as it only moves edges between eojeols.
    """
    words: list[Word] = []
    space = False
    for line in [*lines, ""]:
        if not line.strip():
            if words:
                yield words
            words, space = [], False
        elif not line.startswith("#"):
            row = line.split("\t")
            if not row[0].isdigit():  # 3-4 and 5.1: multiword tokens and empty nodes
                continue
            misc = dict(pair.split("=", 1) for pair in row[9].split("|") if "=" in pair)
            words.append((row[1], _parts(misc.get("OrigLemma", row[2]), row[1]), _parts(row[4], row[4]), space))
            space = misc.get("SpaceAfter") != "No"


def _parts(joined: str, whole: str) -> list[str]:
    """Morphemes or tags joined by `+`, where a plus sign may be one of them."""
    if joined == "+" or (joined == whole and joined.strip("+") == ""):
        return [joined]
    return joined.split("+")


def _klue(lines: list[str]) -> Iterator[list[Word]]:
    """KLUE-DP: index, form, morphemes between spaces, tags between `+`."""
    words: list[Word] = []
    for line in [*lines, ""]:
        if not line.strip() or line.startswith("##"):
            if words:
                yield words
            words = []
        else:
            row = line.split("\t")
            words.append((row[1], row[2].split(" "), row[3].split("+"), True))


def _sejong(lines: list[str]) -> Iterator[list[Word]]:
    """`form TAB morpheme/TAG+…`, one eojeol a line; sentences end at an empty line or where a column says EOS or BOS."""
    words: list[Word] = []
    for number, line in enumerate([*lines, ""], start=1):
        row = line.rstrip().split("\t")
        if len(row) < 2 or not line.strip():
            if words:
                yield words
            words = []
            continue
        if " " in row[0].strip():
            raise ValueError(f"line {number} holds a text of several words, and one eojeol was wanted")
        if "BOS" in row[1:-1] and words:
            yield words
            words = []
        pairs = re.findall(r"(?:^|\+)(.+?)/([A-Z]+[A-Z_-]*)(?=\+|$)", row[-1])
        forms = [re.sub(r"__\d+$", "", form) for form, _ in pairs]
        words.append((row[0], forms, [tag for _, tag in pairs], True))
        if "EOS" in row[1:-1]:
            yield words
            words = []
