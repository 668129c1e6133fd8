"""Analyses as short strings: what the cache keeps and what worker processes send.

The row of a word, a morpheme a line as `start end tag form`, the form only where it is not the surface.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from koktok.segment.policy import Morpheme, Segmenter, Spans


def serialize(word: str, morphemes: Iterable[tuple[int, int, str, str]]) -> str:
    r"""Serialize the morphemes of one word as a row; no morphemes give the empty row.

    Examples
    --------
    >>> serialize("갔다", [Morpheme(0, 1, "VV", "가"), Morpheme(1, 2, "EF", "다")])
    '0 1 VV 가\n1 2 EF '
    """
    return "\n".join([f"{a} {b} {tag} {'' if form == word[a:b] else form}" for a, b, tag, form in morphemes])


def deserialize(word: str, row: str) -> tuple[Morpheme, ...]:
    r"""Deserialize a row to its morphemes."""
    morphemes = []
    for line in row.split("\n") if row else ():
        start, end, tag, form = line.split(" ", 3)
        a, b = int(start), int(end)
        morphemes.append(Morpheme(a, b, tag, form or word[a:b]))
    return tuple(morphemes)


def spans_of(rows: Sequence[str]) -> Spans:
    r"""The morphemes of many rows as columns.

    Examples
    --------
    >>> found = spans_of(["0 2 NNG \n2 3 JX ", "", "0 1 VV 가"])
    >>> found.word.tolist(), found.end.tolist(), [found.tags[i] for i in found.tag]
    ([0, 0, 2], [2, 3, 1], ['NNG', 'JX', 'VV'])
    """
    import polars as pl
    from polars import col

    table = pl.DataFrame({"row": rows}, schema={"row": pl.String}).with_row_index("word").filter(col.row != "")
    lines = table.lazy().with_columns(col.row.str.split("\n")).explode("row")
    fields = lines.with_columns(col.row.str.splitn(" ", 4).struct.rename_fields(["a", "b", "tag", "form"])).unnest(
        "row"
    )
    found = fields.select(col("word", "a", "b").cast(pl.Int64), col.tag).collect()
    tags = found["tag"].unique().sort()
    tag = found["tag"].cast(pl.Enum(tags)).to_physical().cast(pl.Int64)
    word, start, end = (found[name].to_numpy() for name in ("word", "a", "b"))
    return Spans(word, start, end, tag.to_numpy(), tags.to_list())


def serialized_rows(segmenter: Segmenter, words: Iterable[str]) -> Generator[str]:
    """Rows of any segmenter, in the order of the words; from one that has rows already they come as they are."""
    ready = getattr(segmenter, "serialized", None)
    if ready is not None:
        yield from ready(words)
        return
    asked = list(words)
    for word, morphemes in zip(asked, segmenter.analyse(asked), strict=True):
        yield serialize(word, morphemes)
