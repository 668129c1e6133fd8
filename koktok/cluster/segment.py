"""Analysing on Spark: distinct words only, one Kiwi a worker, and what is known already is joined away first.

This file adds: the lexicon of many machines (`koktok.segment.lexicon`), the same file that one machine writes. Words are spread
over tasks; each Python worker keeps one analyser in a child process (`koktok.segment.workers`), so a word that kills or
stalls it costs that word and no task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.cluster.spark import ordered_parts, told_plainly
from koktok.errors import AnalyserError, InputError
from koktok.recipe import Recipe
from koktok.segment import Segmenter, bare, segmenter_for
from koktok.segment.lexicon import Lexicon, write_lexicon
from koktok.segment.packed import packed_rows
from koktok.segment.workers import PATIENCE, supervised
from koktok.waist import usual_minimum_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["segment_to_file", "words_to_analyse"]

_ANALYSED = "word string, row string, failure string"
_KEPT: dict[tuple[str, str], Segmenter] = {}
"""Analysers of this process, by signature: Spark keeps its Python workers from task to task, and they keep Kiwi."""


def words_to_analyse(counts: DataFrame, recipe: Recipe | None = None) -> DataFrame:
    """The distinct words that a training from these counts asks the analyser about: column `word`.

    Parameters
    ----------
    counts : DataFrame
        Columns `word` and `n`: a count file, or what `koktok.cluster.spark.count_words` gives.
    recipe : Recipe, optional
        Its normalizer, pattern and minimum count act.
    """
    from pyspark.sql import functions as f

    recipe = recipe or Recipe()

    def prepared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from koktok.cluster.task import prepared

        return prepared(batches, recipe)

    raw = counts.select("word", f.col("n").cast("bigint").alias("n")).filter("n > 0")
    summed = raw.mapInArrow(prepared, "word string, n bigint").groupBy("word").agg(f.sum("n").alias("n"))
    least = recipe.train.min_count
    if not least:
        with told_plainly():
            times = summed.groupBy("n").count().toArrow()
        least = usual_minimum_of(*(times[name].to_numpy().astype(np.int64) for name in ("n", "count")))

    def bared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            words = dict.fromkeys(bare(word) for word in batch.column("word").to_pylist())
            yield pa.record_batch([pa.array([word for word in words if word], pa.string())], ["word"])

    return summed.filter(f.col("n") >= least).select("word").mapInArrow(bared, "word string").distinct()


def segment_to_file(
    counts: DataFrame,
    out: str | Path,
    recipe: Recipe | None = None,
    *,
    lexicon: str | Path | None = None,
    user_dictionary: str | None = None,
    partitions: int | None = None,
    patience: float = PATIENCE,
) -> Lexicon:
    """Analyse the words of counts into a lexicon, which `koktok train --lexicon` takes.

    Parameters
    ----------
    counts : DataFrame
        As `words_to_analyse`.
    out : str or Path
        Parquet file on the driver's disk.
    recipe : Recipe, optional
        Its normalizer, pattern, minimum count and analyser act.
    lexicon : str or Path, optional
        One that is there already: its words are not asked again, but for those that were quarantined, and they stand in the
        new one too. May be `out` itself.
    user_dictionary : str, optional
        Path of a dictionary for Kiwi; it is sent to the workers.
    partitions : int, optional
        Tasks; Spark's own number by default. Some 20,000 words a task are a few seconds of Kiwi.
    patience : float
        Seconds that the analyser may take for 256 words, and for a word of a batch that failed.

    Raises
    ------
    AnalyserError
        When Kiwi cannot be loaded, a worker has another version than the driver, or it fails on a thousand words.
    InputError
        When something cannot be read or written.
    """
    from pyspark.sql import functions as f

    recipe = recipe or Recipe()
    name = recipe.segment.segmenter
    dictionary = None
    if user_dictionary is not None:
        try:
            dictionary = Path(user_dictionary).read_bytes()
        except OSError as error:
            raise InputError(f"the user dictionary `{user_dictionary}` cannot be read: {error}") from error
    signature = segmenter_for(name, user_dictionary=user_dictionary).signature()

    def analysed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return analyse(batches, name, dictionary, signature, patience)

    words = words_to_analyse(counts, recipe)
    known = None
    if lexicon is not None:
        stored = Lexicon.open(lexicon)
        if stored.signature != signature:
            raise AnalyserError(
                f"the lexicon `{lexicon}` was made by {stored.signature}, and here is {signature}",
                hint="leave the lexicon out, or install that version",
            )
        failed = f.col("word").isin(list(stored.quarantined)) if stored.quarantined else f.lit(False)
        table = counts.sparkSession.read.parquet(Path(lexicon).absolute().as_uri())
        known = table.filter(~failed).select("word", "row", f.lit(None).cast("string").alias("failure"))
        words = words.join(known.select("word"), "word", "left_anti")
    words = words.repartition(partitions, "word") if partitions else words.repartition("word")
    rows = words.mapInArrow(analysed, _ANALYSED)
    quarantined: dict[str, str] = {}

    def parts() -> Iterator[Any]:
        for part in ordered_parts(rows if known is None else rows.unionAll(known), ["word"]):
            quarantined.update(part.drop_nulls("failure").select("word", "failure").iter_rows())
            yield part.select("word", "row")

    with told_plainly():
        return write_lexicon(Path(out), parts(), signature, quarantined)


def analyse(
    batches: Iterable[pa.RecordBatch], name: str, dictionary: bytes | None, signature: str, patience: float
) -> Iterator[pa.RecordBatch]:
    """A task: words in, their rows out; where the analyser failed, why.

    Raises
    ------
    AnalyserError
        When this worker's analyser is not the driver's.
    """
    import pyarrow as pa

    segmenter = _kept(name, dictionary, signature, patience)
    for batch in batches:
        words = batch.column("word").to_pylist()
        rows = list(packed_rows(segmenter, words))
        failed: dict[str, str] = getattr(segmenter, "quarantined", {})
        columns = (words, rows, [failed.get(word) for word in words])
        yield pa.record_batch([pa.array(column, pa.string()) for column in columns], ["word", "row", "failure"])


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
