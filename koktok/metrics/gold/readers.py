"""Files of gold morphemes: CoNLL-U treebanks, KLUE-DP, lines of a word or of a sentence with its morphemes and their tags.

Which files people are known to have annotated, and the refusal of those that hold too few morphemes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from koktok.errors import InputError, UsageError
from koktok.files import MOST_TEXT, read_bounded
from koktok.metrics.gold.align_words import align_words
from koktok.metrics.gold.sentences import GoldCorpus, Word
from koktok.text.normalize import normalized

HUMAN: Final = {
    # UD_Korean-Kaist, every release from 2.2 to 2.16: dev, test, train
    "a486c5fe5a49aec7f081b7e55339c17d6742c2c1", "e5d366d7085a2e7776eea40248d80e6b4c15c4f2", "6f87b81a4370f000a6f05852207368c0d94a3101",
    "2e85ec8ffb026f9bb9ba4e9028ac598427e78d48", "0706a17019419db17bd76e36ff7e45b9677f3786", "b8903fa7d586b7aa83dbfe47b69d92ff3c9ff646",
    "870d2dbdbc37ba5a09fda563a17e11ec1c6cfd34", "30c906ab93bcb0102b868541bb8fee582f0ba766", "e0bba6202d4efb6d0796ef7d35a895df1a85903d",
    "28825ba58914d99265680d3003763bf1b98def77", "8bcc495ec649afaac81c8c348d80b8e03defbb52", "379e01f3d5c36d1986881788fa3a46a7aad6826b",
    # Kaist, the documents outside dev and test, from emorynlp/ud-korean in ten columns
    "e2bf4340d6df62b1de85fc5551c89358499a8465",
    # UD_Korean-KSL, releases 2.15 and 2.16: dev, test, train
    "422e62a77331e79c3793639777e2979ab1c5f44f", "8686c71c43723da2bb0ebd3a571a6d569d0ed6e3", "ba296693a1e15f264e23c4092b6ee794274f80c0",
    "874491e14b6f5a0163aa7a5586bad03838678d38", "e01995f69cb253865f65dbad18dc657babb1e356", "8b3a3fe3931bb68ae6c7e98a22bc6b37d14b353a",
}  # fmt: skip
"""Files whose morphemes people annotated, by the id that git gives their bytes (`git hash-object FILE`). GSD's morphemes are automatic;
of KLUE-DP, JHE and Kiwi's files it is not stated who made them."""

LEAST_COVERAGE: Final = 0.8
"""A gold that can score fewer of its words is none: UD_Korean-PUD has 17 %, its words are stems and particles, not morphemes."""


MOST = 1000
"""Characters and morphemes of a word of gold, and words of a sentence whose morphemes are dealt to them."""


def read_gold(
    path: str | Path, *, name: str | None = None, kind: str | None = None, human: bool | None = None
) -> GoldCorpus:
    """Read a gold file."""
    path = Path(path)
    try:
        raw = read_bounded(path, MOST_TEXT, "a treebank")
        lines = normalized("NFC", raw.decode("utf-8-sig")).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the gold file `{path}` cannot be read: {error}") from error
    kind = kind or _guess(lines)
    if kind not in FORMATS:
        raise UsageError(f"expected a kind of gold, one of {', '.join(FORMATS)}, got `{kind}`")
    try:
        read = [*_READERS[kind](lines)]
    except (IndexError, ValueError) as error:
        raise InputError(f"the gold file `{path}` is not {kind}: {error}") from error
    long = (
        form for words, _ in read for form, parts, *_ in words if max(len(form), *map(len, parts), len(parts)) > MOST
    )
    if (form := next(long, None)) is not None:
        raise InputError(
            f"a word of the gold file `{path}`, {form[:20]!r} …, is too long; expected at most {MOST:,} characters and morphemes",
            hint="a word is what stands between spaces",
        )
    if not read:
        raise InputError(
            f"the gold file `{path}` holds no sentence",
            hint="CoNLL-U, KLUE-DP, lines of word TAB form/TAG+form/TAG, or of sentence TAB form/TAG form/TAG",
        )
    corpus = GoldCorpus.of(
        name or path.stem,
        [words for words, _ in read],
        human=_blob(raw) in HUMAN if human is None else human,
        digest=hashlib.sha256(raw).hexdigest()[:16],
        documents=[document for _, document in read],
    )
    if corpus.coverage < LEAST_COVERAGE:
        why = ", ".join(f"{reason} ({n:,})" for reason, n in corpus.skipped.most_common())
        raise InputError(
            f"the gold file `{path}` has morphemes for {corpus.coverage:.0%} of its {corpus.words:,} words, and at "
            f"least {LEAST_COVERAGE:.0%} are required; not scored: {why}",
            hint="a treebank with every morpheme in LEMMA and its tag in XPOS, joined by `+`, as UD_Korean-Kaist",
        )
    return corpus


def _blob(raw: bytes) -> str:
    """The blob id of git."""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def _guess(lines: list[str]) -> str:
    rows = [line for line in lines[:200] if line.strip() and not line.startswith("#")]
    columns = [line.split("\t") for line in rows]
    if columns and all(len(row) == 10 for row in columns):
        return "conllu"
    if columns and all(len(row) == 6 and row[0].isdigit() for row in columns):
        return "klue-dp"
    several = [len(row) > 1 and all(map(_TAGGED.fullmatch, row[1].split(" "))) for row in columns]
    return "kiwi" if several and all(several) and any(" " in row[0].strip() for row in columns) else "sejong"


Read = Iterator[tuple[list[Word], str]]
"""Sentences: their words, and the document that they are of."""


def _conllu(lines: list[str]) -> Read:
    """Words in ten columns; UD Kaist moves the full morphemes of auxiliaries and copulas to OrigLemma in MISC.

    In the treebank's older training part, punctuation is separate in `text` although SpaceAfter=No is missing;
    the words, not the comment, make the sentence here, as it only moves edges between eojeols. The document is what
    `newdoc id` names, or `sent_id` without its last number.
    """
    words: list[Word] = []
    space, document, named = False, "", False
    for line in [*lines, ""]:
        if not line.strip():
            if words:
                yield words, document
            words, space = [], False
        elif line.startswith("#"):
            key, _, value = line[1:].partition("=")
            if key.strip() == "newdoc id":
                document, named = value.strip(), True
            elif key.strip() == "sent_id" and not named:
                document = re.sub(r"[-_.:/]?s?(?<!\d)\d+$", "", value.strip())
        else:
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


def _klue(lines: list[str]) -> Read:
    """KLUE-DP: index, form, morphemes between spaces, tags between `+`."""
    words: list[Word] = []
    for line in [*lines, ""]:
        if not line.strip() or line.startswith("##"):
            if words:
                yield words, ""
            words = []
        else:
            row = line.split("\t")
            words.append((row[1], row[2].split(" "), row[3].split("+"), True))


_TAG: Final = r"[A-Z][A-Z_-]*"
_TAGGED: Final = re.compile(rf"((?:(?!/{_TAG}\+).)+?)(?:__\d+)?/({_TAG})")
"""One morpheme, the number of its sense (갈퀴밥__1) where there is one, and its tag."""


def _sejong(lines: list[str]) -> Read:
    """`form TAB morpheme/TAG+…`, one eojeol a line; sentences end at an empty line or where a column says EOS or BOS."""
    words: list[Word] = []
    for number, line in enumerate([*lines, ""], start=1):
        row = line.rstrip().split("\t")
        if len(row) < 2 or not line.strip():
            if words:
                yield words, ""
            words = []
            continue
        if " " in row[0].strip():
            raise ValueError(f"line {number} has a text of several words; expected one eojeol")
        if "BOS" in row[1:-1] and words:
            yield words, ""
            words = []
        pairs = list(_pairs(row[-1]))
        forms = [re.sub(r"__\d+$", "", form) for form, _ in pairs]
        words.append((row[0], forms, [tag for _, tag in pairs], True))
        if "EOS" in row[1:-1]:
            yield words, ""
            words = []


def _pairs(joined: str) -> Iterator[tuple[str, str]]:
    """`morpheme/TAG` joined by `+`; a morpheme may hold both signs."""
    at = 0
    for tag in re.finditer(rf"/({_TAG})(?=\+|$)", joined):
        if tag.start() > at:
            yield joined[at : tag.start()], tag[1]
            at = tag.end() + 1


def _kiwi(lines: list[str]) -> Read:
    """`sentence TAB morpheme/TAG morpheme/TAG …`, and perhaps more columns, the same in standard spelling.

    The morphemes are assigned to the words by alignment; a name of several words (로마_제국/NNP) is as many morphemes. A sentence
    whose morphemes cannot be assigned keeps its words without any, so that they are masked and counted.
    """
    for number, line in enumerate(lines, start=1):
        row = line.split("\t")
        if not line.strip():
            continue
        tagged = [_TAGGED.fullmatch(item) for item in row[1].split(" ")] if len(row) > 1 else []
        if not tagged or not all(tagged):
            raise ValueError(f"line {number} is not a sentence, a tab and morphemes with tags")
        pairs = [(part, m[2]) for m in tagged if m for part in (m[1].split("_") if all(m[1].split("_")) else [m[1]])]
        words = row[0].split()
        possible = max([len(words), *map(len, words)]) <= MOST  # the work grows with the square of both
        counts = (align_words(words, [form for form, _ in pairs]) if possible else None) or [0] * len(words)
        sentence: list[Word] = []
        at = 0
        for word, n in zip(words, counts, strict=True):
            mine = pairs[at : at + n]
            sentence.append((word, [form for form, _ in mine], [tag for _, tag in mine], True))
            at += n
        yield sentence, ""


_READERS: Final[dict[str, Callable[[list[str]], Read]]] = {
    "conllu": _conllu,
    "klue-dp": _klue,
    "sejong": _sejong,
    "kiwi": _kiwi,
}
FORMATS: Final = tuple(_READERS)
