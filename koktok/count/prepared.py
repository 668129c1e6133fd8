"""Raw words to pre-tokens: each distinct word normalized and cut once, which is exact as words are cut apart anyhow.

Nine words in ten are Hangul syllables, letters and the like, which no rule touches and
no pattern cuts; polars finds them by a regular expression, and only the others become strings. Runs of words likewise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import col

from koktok.count.counts import WORD, Counts, summed
from koktok.hangul import SYLLABLE, SYLLABLES
from koktok.text.blocklist import ADDRESS
from koktok.text.normalize import Normalizer
from koktok.text.patterns import PublishedPattern
from koktok.text.pretokenize import Pattern

_ASCII = [
    chr(i) for i in (*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1), *range(33, 65), *range(91, 97))
]
_CHUNK = 1 << 19  # runs whose words are looked up at once


def texts_of(frame: pl.DataFrame, *, addresses: bool = True, after_a_space: bool = False) -> pl.DataFrame:
    """The rows of a table of words or runs, perhaps without web addresses and all with a space before them; not yet summed.

    Of a word the text before an address stays, and a run is cut there. After a space words at the beginning of a line are like others.

    Examples
    --------
    >>> words = Counts.from_mapping({" (출처:http://a.kr/b?c=1)": 2, " www.a.kr": 3, "집": 1}).frame
    >>> texts_of(words, addresses=False, after_a_space=True).rows()
    [(' 집', 1), (' (출처:', 2)]
    >>> texts_of(Counts.from_mapping({" 나는 (출처:http://a.kr/b?c=1) 집에": 1}).frame, addresses=False).rows()
    [(' 나는 (출처:', 1), (' 집에', 1)]
    """
    if not addresses and (there := frame["word"].str.contains(ADDRESS)).any():
        parts = col.word.str.replace_all(rf" *{ADDRESS}[^ ]*", "\n").str.split("\n")
        heads = frame.filter(there).with_columns(parts).explode("word").filter(col.word.str.strip_chars() != "")
        frame = pl.concat([frame.filter(~there), heads])
    if after_a_space:
        spaced = pl.when(col.word.str.contains(r"^\s")).then(col.word).otherwise(pl.lit(" ") + col.word)
        frame = frame.with_columns(word=spaced)
    return frame


def prepare(counts: Counts, normalizer: Normalizer, pattern: Pattern) -> Counts:
    """Counts of the pre-tokens of counted words."""
    return Counts.from_frame(summed([pretokens_of(counts.frame, normalizer, pattern)]))


def pretokens_of(frame: pl.DataFrame, normalizer: Normalizer, pattern: Pattern) -> pl.DataFrame:
    """The pre-tokens of a table of words and their numbers; not yet summed."""
    same = _untouched(frame["word"], normalizer, pattern)
    frame = frame.select("word", "n")
    n: dict[str, int] = {}
    for word, times in frame.filter(~same).iter_rows():
        for pretoken in pattern.pretokenize(normalizer(word)):
            n[pretoken] = n.get(pretoken, 0) + times
    return pl.concat([frame.filter(same), pl.DataFrame([[*n], [*n.values()]], schema=frame.schema)])


def prepare_runs(
    runs: Counts, normalizer: Normalizer, pattern: Pattern, words: tuple[str, ...] | None = None
) -> Counts:
    """Counts of the parts of runs that lie between cuts of the pattern, and between words that are none of `words`.

    Words that a minimum count leaves out of training are unknown, and so are their gaps.
    """
    frame = runs.frame
    same = _untouched(frame["word"], normalizer, pattern) & ~frame["word"].str.contains("[.?!] ")
    chunks: dict[str, list[int]] = {}
    for run, *numbers in frame.filter(~same).iter_rows():
        for chunk in pattern.pretokenize(normalizer(run)):
            chunks[chunk] = [a + b for a, b in zip(chunks.get(chunk, [0] * len(numbers)), numbers, strict=True)]
    changed = pl.DataFrame([[chunk, *numbers] for chunk, numbers in chunks.items()], schema=frame.schema, orient="row")
    prepared = [changed, frame.filter(same)]
    if words is not None:
        known = _numbered(words)
        prepared = [frame.clear(), *(part for some in prepared for part in _known_parts(some, known))]
    return Counts.from_frame(summed(prepared))


def _known_parts(runs: pl.DataFrame, known: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The parts of runs between words that are not known, with the numbers of their runs."""
    for some in runs.iter_slices(_CHUNK):
        rows = some.with_row_index("run")
        words = rows.with_columns(col.word.str.extract_all(WORD)).explode("word")
        unknown = ~words["word"].is_in(known["word"].implode())
        broken = col.run.is_in(words["run"].filter(unknown).unique().implode())
        yield rows.filter(~broken).drop("run")
        parts = words.with_columns(part=unknown.cum_sum()).filter(~unknown & broken)
        parts = parts.group_by("run", "part").agg(col.word.str.join(), col(*runs.columns[1:]).first())
        yield summed([parts.select(runs.columns)])


def _numbered(words: tuple[str, ...]) -> pl.DataFrame:
    return pl.DataFrame({"word": words}, schema={"word": pl.String}).with_row_index("number")


def words_in(runs: Counts, words: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where each run's words begin in what follows; their places in `words`, -1 where there is none; code points before each."""
    known = _numbered(words)
    many, tables = [], [pl.DataFrame(schema={"number": pl.UInt32, "size": pl.UInt32})]
    for some in runs.column.to_frame().iter_slices(_CHUNK):
        lists = some.select(col.word.str.extract_all(WORD))
        many.append(lists["word"].list.len())
        each = lists.explode("word").join(known, on="word", how="left", maintain_order="left")
        tables.append(each.select("number", size=col.word.str.len_chars()))
    table = pl.concat(tables)
    starts = np.concatenate([[0], *many]).cumsum(dtype=np.int64)
    behind = table["size"].to_numpy().cumsum(dtype=np.int64)
    before = np.concatenate([[0], behind])[:-1]
    numbers = table["number"].cast(pl.Int64).fill_null(-1).to_numpy()
    return starts, numbers, before - np.repeat(before[starts[:-1]], np.diff(starts))


def _untouched(words: pl.Series, normalizer: Normalizer, pattern: Pattern) -> pl.Series:
    """True for words of nothing but Hangul syllables and the ASCII characters that stay as they are beside them."""
    safe = untouched(normalizer, pattern)
    if safe is None:
        return pl.repeat(False, len(words), eager=True)
    several = "" if isinstance(pattern, PublishedPattern) else " "  # published patterns cut within white space
    return words.str.contains(rf"^ ?[{SYLLABLE}{several}{re.escape(safe)}]*$")


@lru_cache(maxsize=8)
def untouched(normalizer: Normalizer, pattern: Pattern) -> str | None:
    """The ASCII characters that, in any company of each other and of Hangul syllables, are neither changed nor cut.

    None where syllables themselves are not safe. Pairs are enough, because a cut depends only on the two characters beside it, and
    in a published pattern on their kinds; rules that look further (repeated signs, digits by threes) show in a run of forty.
    """
    every = "".join(chr(code) * 10 for code in SYLLABLES)
    if normalizer(every) != every or pattern.pretokenize(every) != [every]:
        return None
    kept = ["가"]
    for char in _ASCII:
        run = char * 40
        pairs = [a + b for other in [*kept, char] for a, b in ((char, other), (other, char))]
        whole = all(normalizer(text) == text and pattern.pretokenize(text) == [text] for text in (run, *pairs))
        if whole and pattern.pretokenize(" " + char) == [" " + char]:
            kept.append(char)
    return "".join(kept[1:])
