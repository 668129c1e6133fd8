"""Analysis on Spark: only the distinct words that no lexicon holds yet, one Kiwi for each Python worker.

The result is the lexicon that one machine writes (`koktok.segment.lexicon_file`). Each worker runs its analyser in a
child process (`koktok.segment.workers`), so a word that kills or stalls it costs that word and no task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.cluster.spark import plain_errors
from koktok.count.counting import counting
from koktok.errors import AnalyserError
from koktok.files import MOST_TEXT, read_bounded
from koktok.pipeline.words import training_words
from koktok.recipe import Recipe
from koktok.segment import Segmenter, segmenter_for, text_to_analyse
from koktok.segment.lexicon_file import Lexicon, write_lexicon
from koktok.segment.serialized import serialized_rows
from koktok.segment.workers import TIMEOUT, in_subprocess
from koktok.text.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


_TASK = 20_000
"""Words of a task: a few seconds of Kiwi."""

_KEPT: dict[tuple[str, str], Segmenter] = {}
"""The analysers of this process, by signature: Spark keeps its Python workers from task to task, and they keep Kiwi."""


def words_to_analyse(text: Sequence[Source] | Iterable[Any], recipe: Recipe | None = None) -> list[str]:
    """Return the distinct words that a training analyses, without leading spaces, in code-point order."""
    recipe = recipe or Recipe()
    with counting(text, holdout=recipe.holdout, runs=recipe.train.superwords > 0) as counted:
        _, words = training_words(counted, recipe)
    return sorted({text_to_analyse(word) for word in words.counts.words} - {""})


def segment_to_file(
    spark: SparkSession,
    text: Sequence[Source] | Iterable[Any],
    out: str | Path,
    recipe: Recipe | None = None,
    *,
    lexicon: str | Path | None = None,
    user_dictionary: str | None = None,
    partitions: int | None = None,
    timeout: float = TIMEOUT,
    force: bool = False,
) -> Lexicon:
    """Analyse the words of a training into a lexicon for `koktok train --lexicon`."""
    import polars as pl

    recipe = recipe or Recipe()
    name = recipe.segment.segmenter
    dictionary = None
    if user_dictionary is not None:
        dictionary = read_bounded(Path(user_dictionary), MOST_TEXT, "a user dictionary")
    signature = segmenter_for(name, user_dictionary=user_dictionary).signature()
    known = pl.LazyFrame(schema={"word": pl.String, "row": pl.String})
    if lexicon is not None:
        stored = Lexicon.open(lexicon)
        stored.check(signature)
        known = stored.frame.filter(~pl.col("word").is_in(list(stored.quarantined)))
    words = pl.LazyFrame({"word": words_to_analyse(text, recipe)}, schema={"word": pl.String})
    unknown = words.join(known.select("word"), on="word", how="anti", maintain_order="left").collect()

    def analysed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return analyse(batches, name, dictionary, signature, timeout)

    new = pl.DataFrame(schema={"word": pl.String, "row": pl.String, "failure": pl.String})
    if not unknown.is_empty():
        with plain_errors():
            table = spark.createDataFrame(unknown.to_arrow(compat_level=pl.CompatLevel.oldest()))
            table = table.repartition(partitions or -(-len(unknown) // _TASK))
            new = pl.DataFrame(table.mapInArrow(analysed, "word string, row string, failure string").toArrow())
    quarantined = dict(new.drop_nulls("failure").select("word", "failure").iter_rows())
    whole = pl.concat([known, new.lazy().select("word", "row")]).sort("word", "row").collect()
    return write_lexicon(Path(out), whole.iter_slices(), signature, quarantined, force=force)


def analyse(
    batches: Iterable[pa.RecordBatch], name: str, dictionary: bytes | None, signature: str, timeout: float
) -> Iterator[pa.RecordBatch]:
    """Analyse a task's words: rows of word, analysis, and the reason where the analyser failed."""
    import pyarrow as pa

    segmenter = _analyser(name, dictionary, signature, timeout)
    failures: dict[str, str] = getattr(segmenter, "quarantined", {})
    for batch in batches:
        words = batch.column(0).to_pylist()
        rows = list(serialized_rows(segmenter, words))
        columns = [words, rows, [failures.get(word) for word in words]]
        yield pa.record_batch([pa.array(column, pa.string()) for column in columns], ["word", "row", "failure"])


def _analyser(name: str, dictionary: bytes | None, signature: str, timeout: float) -> Segmenter:
    """Return the analyser of this process; the first call starts it."""
    key = (signature, f"{timeout}")
    if key not in _KEPT:
        path = None
        if dictionary is not None:
            with tempfile.NamedTemporaryFile(prefix="koktok-", suffix=".tsv", delete=False) as file:
                file.write(dictionary)
            path = file.name
        started = in_subprocess(name, user_dictionary=path, processes=1, timeout=timeout)
        if started.signature() != signature:
            raise AnalyserError(
                f"a worker has the analyser {started.signature()}, and the driver {signature}",
                hint="install the same versions on driver and workers",
            )
        _KEPT[key] = started
    return _KEPT[key]
