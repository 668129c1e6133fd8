"""Words to cuts between their morphemes; reading order: policy, serialized, cache, kiwi and the other analysers, workers, then this file.

A segmenter is two methods: `analyse(words)` gives the morphemes of each word, `signature()` says what changes them. The boundary policy
selects the borders that become cuts afterwards, so that a cached analysis serves every policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from koktok import hangul
from koktok.count import Counts
from koktok.errors import UsageError
from koktok.progress import Done
from koktok.segment.policy import CutColumns, Morpheme, Policy, Segmenter, codas_of, cuts_of_words
from koktok.segment.segmented import Cut, SegmentedCounts
from koktok.segment.serialized import deserialize, serialized_rows, spans_of

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "ANALYSERS",
    "DEFAULT",
    "NONE",
    "Analyser",
    "Morpheme",
    "Policy",
    "Segmenter",
    "Whitespace",
    "analyser_of",
    "check_dictionary",
    "segment_counts",
    "segmenter_for",
    "text_to_analyse",
]


MAX_ANALYSED = 100
"""Longer words are not analysed: no Korean eojeol has 100 characters (the longest in 77 MB of text that are words have
under 30), while repeated or unspaced text of that length has stalled and crashed analysers."""


class Whitespace:
    """The segmenter that cuts nowhere: words stay whole, and training is what it is without an analyser."""

    def signature(self) -> str:
        """Always the same."""
        return "whitespace"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """No morphemes for any word."""
        return (() for _ in words)


@dataclass(frozen=True, kw_only=True)
class Analyser:
    """A morphological analyser: its class, and what those who use it ask."""

    place: str
    """Module and class, imported when it is used."""

    by_name: bool = False
    """Whether the class runs several analysers, and takes the name."""

    dictionary: bool = False
    """Whether it reads a user dictionary, in Kiwi's format."""

    learns: bool = False
    """Whether it learns from the words of the text, and so needs their counts."""

    in_process: bool = False
    """Whether it runs in the process of the caller: no word stalls or ends it."""

    analyses: bool = True
    """False where words stay whole: there is nothing to wait for and nothing to keep."""


ANALYSERS: Final[Mapping[str, Analyser]] = {
    "kiwi": Analyser(place="koktok.segment.kiwi:KiwiSegmenter", dictionary=True),
    "mecab": Analyser(place="koktok.segment.mecab:MecabSegmenter"),
    "okt": Analyser(place="koktok.segment.konlpy:KonlpySegmenter", by_name=True),
    "komoran": Analyser(place="koktok.segment.konlpy:KonlpySegmenter", by_name=True),
    "kkma": Analyser(place="koktok.segment.konlpy:KonlpySegmenter", by_name=True),
    "hannanum": Analyser(place="koktok.segment.konlpy:KonlpySegmenter", by_name=True),
    "khaiii": Analyser(place="koktok.segment.khaiii:KhaiiiSegmenter"),
    "soynlp": Analyser(place="koktok.segment.soynlp:SoynlpSegmenter", learns=True, in_process=True),
    "whitespace": Analyser(place="koktok.segment:Whitespace", in_process=True, analyses=False),
}
"""The analysers by name; whoever wants to know something of one asks its row."""

DEFAULT: Final = "kiwi"
"""That of every recipe and command that names none."""

NONE: Final = "whitespace"
"""That which leaves words whole."""

LEARNT_FOLDER = "dpe:"
"""Before the folder of a segmentation that was learnt, in place of a name."""


def analyser_of(name: str) -> Analyser:
    """The row of an analyser, or of a segmentation that was learnt."""
    if name.startswith(LEARNT_FOLDER):
        return Analyser(place="koktok.segment.dpe.segmenter:DpeSegmenter", in_process=True)
    if name not in ANALYSERS:
        known = " | ".join([*ANALYSERS, f"{LEARNT_FOLDER}FOLDER"])
        raise UsageError(f"the segmenter `{name}` is not known", hint=f"--segmenter {known}")
    return ANALYSERS[name]


def segmenter_for(
    name: str,
    *,
    user_dictionary: str | None = None,
    threads: int | None = None,
    counts: Mapping[str, int] | None = None,
) -> Segmenter:
    """A segmenter by name."""
    row = analyser_of(name)
    if name.startswith(LEARNT_FOLDER):
        from koktok.segment.dpe.segmenter import DpeSegmenter

        return DpeSegmenter.load(
            name.removeprefix(LEARNT_FOLDER),
            lambda beside: segmenter_for(beside or NONE, user_dictionary=user_dictionary, threads=threads),
        )
    check_dictionary(name, user_dictionary)
    module, _, attribute = row.place.partition(":")
    options: dict[str, Any] = {"name": name} if row.by_name else {}
    if row.dictionary:
        options |= {"user_dictionary": user_dictionary, "threads": threads}
    if row.learns:
        options |= {"counts": counts}
    segmenter: Segmenter = getattr(import_module(module), attribute)(**options)
    return segmenter


def check_dictionary(name: str, user_dictionary: str | None) -> None:
    """Refuse a user dictionary that the analyser does not read."""
    if user_dictionary is not None and not analyser_of(name).dictionary:
        raise UsageError("a user dictionary works with Kiwi only", hint=f"--segmenter {DEFAULT}")


def text_to_analyse(word: str) -> str:
    """The word without its leading spaces, or '' if it is not analysed."""
    stripped = word.lstrip(" ")
    return stripped if len(stripped) <= MAX_ANALYSED and hangul.has_syllable(stripped) else ""


def texts_to_analyse(words: pl.Series) -> pl.Series:
    """`text_to_analyse` of each word of a column."""
    import polars as pl

    stripped = words.str.strip_chars_start(" ")
    asked = (stripped.str.len_chars() <= MAX_ANALYSED) & stripped.str.contains(f"[{hangul.SYLLABLE}]")
    return pl.select(pl.when(asked).then(stripped).otherwise(pl.lit(""))).to_series()


def segment_counts(
    counts: Counts,
    segmenter: Segmenter,
    policy: Policy,
    *,
    as_jamo: bool = False,
    on_progress: Done | None = None,
) -> SegmentedCounts:
    """Cut every distinct word once.

    Examples
    --------
    >>> words = Counts.from_mapping({" 집에": 2, "집에": 1})
    >>> segment_counts(words, Whitespace(), Policy.parse("morphemes"))
    SegmentedCounts(words=2, cuts=0, total=3)
    """
    texts = texts_to_analyse(counts.column)
    asked = texts.filter(texts != "").unique().sort().to_list()
    if on_progress:
        on_progress(0, len(asked))
    rows = [*_with_progress(serialized_rows(segmenter, asked), len(asked), on_progress)]
    found = cuts_of_words(asked, spans_of(rows), policy)
    if as_jamo:
        return _segmented_in_jamo(counts, asked, rows, found, policy)
    return _assembled(counts, texts, asked, found)


def _with_progress(rows: Iterable[str], total: int, on_progress: Done | None) -> Iterator[str]:
    """Rows, with progress on the way."""
    for done, row in enumerate(rows, start=1):
        yield row
        if on_progress and (done % 4096 == 0 or done == total):
            on_progress(done, total)


def _assembled(counts: Counts, texts: pl.Series, asked: Sequence[str], found: CutColumns) -> SegmentedCounts:
    """Every word with the cuts of its text, shifted by its leading spaces."""
    import polars as pl

    rows = pl.DataFrame({"text": asked}, schema={"text": pl.String}).with_row_index("number")
    joined = texts.to_frame("text").join(rows, on="text", how="left", maintain_order="left")
    number = joined["number"].cast(pl.Int64).fill_null(-1).to_numpy()
    n = np.append(found.n, 0)  # of -1
    start = np.concatenate([[0], np.cumsum(n[number])])
    at = np.repeat((np.cumsum(n) - n)[number] - start[:-1], n[number]) + np.arange(start[-1])
    sizes, rest = (column.str.len_chars().to_numpy().astype(np.int32) for column in (counts.column, texts))
    moved = found.offset[at] + np.repeat(sizes - rest, n[number])
    confidence = np.ones(len(at), np.float32)
    return SegmentedCounts(counts.words, counts.n, start, moved, found.kind[at], confidence, counts.seen)


def _segmented_in_jamo(
    counts: Counts, asked: Sequence[str], rows: Sequence[str], found: CutColumns, policy: Policy
) -> SegmentedCounts:
    """Cuts in conjoining jamo, where finals may be morphemes of their own."""
    cuts: dict[str, list[Cut]] = {}
    for text, row, between in zip(asked, rows, found, strict=True):
        inside = _in_jamo(text, list(between), codas_of(text, deserialize(text, row), policy))
        if inside:
            cuts[text] = inside
    spelled = [hangul.split(word) for word in counts.words]
    whole = SegmentedCounts.from_items(
        (letters, _shifted(word, cuts), n) for letters, (word, n) in zip(spelled, counts.items(), strict=True)
    )
    if counts.seen is None:
        return whole
    return replace(whole, seen=counts.seen[sorted(range(len(spelled)), key=spelled.__getitem__)])


def _in_jamo(text: str, cuts: list[Cut], codas: Iterable[Cut]) -> list[Cut]:
    """Cuts of a word as cuts of its jamo: between syllables, and before the finals that are morphemes of their own."""
    places: dict[int, Cut] = {}
    for cut in cuts:
        (at,) = hangul.split_cuts(text, [cut.offset])
        places[at] = cut._replace(offset=at)
    for cut in codas:
        (at,) = hangul.split_cuts(text, [(cut.offset, "coda")])
        places[at] = cut._replace(offset=at)
    return [places[at] for at in sorted(places)]


def _shifted(word: str, cuts: dict[str, list[Cut]]) -> Sequence[Cut]:
    """The cuts of a word without spaces, shifted by the leading spaces of this one."""
    text = word.lstrip(" ")
    found = cuts.get(text, [])
    spaces = len(word) - len(text)
    return [cut._replace(offset=cut.offset + spaces) for cut in found] if spaces else found
