"""Analysing on Spark: distinct words only, one Kiwi a worker, and what is known already is joined away first.

The lexicon of many machines (`koktok.segment.lexicon_file`), the same file that one machine writes. Words are spread
over tasks; each Python worker keeps one analyser in a child process (`koktok.segment.workers`), so a word that kills or
stalls it costs that word and no task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.cluster.spark import told_plainly
from koktok.cluster.tables import PLACED, gathered, packed, placed, rows_of, unpacked
from koktok.count.counting import read
from koktok.errors import AnalyserError, InputError
from koktok.pipeline.road import trained_on
from koktok.recipe import Recipe
from koktok.segment import Segmenter, bare, segmenter_for
from koktok.segment.lexicon_file import Lexicon, write_lexicon
from koktok.segment.packed import packed_rows
from koktok.segment.workers import PATIENCE, supervised
from koktok.text.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


_WORDS = 1 << 12
"""Words that travel together."""

_TASK = 20_000
"""Words of a task: a few seconds of Kiwi."""

_KEPT: dict[tuple[str, str], Segmenter] = {}
"""Analysers of this process, by signature: Spark keeps its Python workers from task to task, and they keep Kiwi."""


def words_to_analyse(text: Sequence[Source] | Iterable[Any], recipe: Recipe | None = None) -> list[str]:
    """The distinct words that a training asks the analyser about, without leading spaces, by code point.

    Examples
    --------
    >>> words_to_analyse(["나는 집에", "2개"], Recipe().changed(holdout=0.0))
    ['개', '나는', '집에']
    """
    recipe = recipe or Recipe()
    counts, _, _ = trained_on(read(text, holdout=recipe.holdout, runs=recipe.train.superwords > 0), recipe, [])
    return sorted({bare(word) for word in counts.words} - {""})


def segment_to_file(
    spark: SparkSession,
    text: Sequence[Source] | Iterable[Any],
    out: str | Path,
    recipe: Recipe | None = None,
    *,
    lexicon: str | Path | None = None,
    user_dictionary: str | None = None,
    partitions: int | None = None,
    patience: float = PATIENCE,
) -> Lexicon:
    """Analyse the words that a training will ask about into a lexicon, which `koktok train --lexicon` takes."""
    import polars as pl
    import pyarrow as pa

    recipe = recipe or Recipe()
    name = recipe.segment.segmenter
    dictionary = None
    if user_dictionary is not None:
        try:
            dictionary = Path(user_dictionary).read_bytes()
        except OSError as error:
            raise InputError(f"the user dictionary `{user_dictionary}` cannot be read: {error}") from error
    signature = segmenter_for(name, user_dictionary=user_dictionary).signature()
    known = pl.LazyFrame(schema={"word": pl.String, "row": pl.String})
    if lexicon is not None:
        stored = Lexicon.open(lexicon)
        if stored.signature != signature:
            raise AnalyserError(
                f"the lexicon `{lexicon}` was made by {stored.signature}, and here is {signature}",
                hint="leave the lexicon out, or install that version",
            )
        known = stored.frame.filter(~pl.col("word").is_in(list(stored.quarantined)))
    words = pl.LazyFrame({"word": words_to_analyse(text, recipe)}, schema={"word": pl.String})
    asked = words.join(known.select("word"), on="word", how="anti", maintain_order="left").collect()

    def analysed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return analyse(batches, name, dictionary, signature, patience)

    quarantined: dict[str, str] = {}

    def fresh() -> Iterator[pl.DataFrame]:
        if asked.is_empty():  # nothing for Spark to do
            return
        values = [packed(part) for part in asked.iter_slices(_WORDS)]
        table = spark.createDataFrame(pa.table({"place": pa.array(range(len(values)), pa.int32()), "packed": values}))
        tasks = partitions or -(-len(asked) // _TASK)
        for _, part in gathered(table.repartitionByRange(tasks, "place").mapInArrow(analysed, PLACED)):
            quarantined.update(part.drop_nulls("failure").select("word", "failure").iter_rows())
            yield part.select("word", "row")

    with told_plainly():
        new = pl.concat([pl.DataFrame(schema=known.collect_schema()), *fresh()])
        whole = pl.concat([known, new.lazy()]).sort("word", "row") if lexicon is not None else new.lazy()
        return write_lexicon(Path(out), whole.collect().iter_slices(), signature, quarantined)


def analyse(
    batches: Iterable[pa.RecordBatch], name: str, dictionary: bytes | None, signature: str, patience: float
) -> Iterator[pa.RecordBatch]:
    """A task: tables of words in, their rows out; where the analyser failed, why."""
    import polars as pl

    segmenter = _kept(name, dictionary, signature, patience)
    failed: dict[str, str] = getattr(segmenter, "quarantined", {})

    def done() -> Iterator[tuple[int, pl.DataFrame]]:
        for place, value in rows_of(batches):
            words = unpacked(value)["word"].to_list()
            rows = list(packed_rows(segmenter, words))
            why = pl.Series("failure", [failed.get(word) for word in words], pl.String)
            yield place, pl.DataFrame({"word": words, "row": rows, "failure": why})

    return placed(done())


def _kept(name: str, dictionary: bytes | None, signature: str, patience: float) -> Segmenter:
    """The analyser of this process."""
    key = (signature, f"{patience}")
    if key not in _KEPT:
        path = None
        if dictionary is not None:
            with tempfile.NamedTemporaryFile(prefix="koktok-", suffix=".tsv", delete=False) as file:
                file.write(dictionary)
            path = file.name
        found = supervised(name, user_dictionary=path, processes=1, patience=patience)
        if found.signature() != signature:
            raise AnalyserError(
                f"a worker has the analyser {found.signature()}, and the driver {signature}",
                hint="the same image, or the same pip install, on driver and workers",
            )
        _KEPT[key] = found
    return _KEPT[key]
