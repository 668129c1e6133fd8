"""Training instances by many machines: the documents of each part are packed and made into instances of their own.

Instances are a function of a packed text, so a part (a rank of datatrove, a partition of Spark) gives
what `koktok instances` gives of its documents, byte for byte; documents are shuffled and paired within a part. On Spark the
parts become one folder: tasks write into the workplace of the run under names of their own, and the driver names what
Spark reports, once for each partition.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.cluster.spark import told_plainly
from koktok.cluster.tables import rows_of
from koktok.cluster.task import TEXT
from koktok.errors import UsageError
from koktok.files import resumable, scratch
from koktok.foreign import load
from koktok.instances import Plan, write_instances, write_packed
from koktok.instances.reading import Sentences
from koktok.instances.word_cuts import WordCuts
from koktok.segment import Policy
from koktok.segment.cache import CachedSegmenter
from koktok.segment.workers import Workers, supervised
from koktok.text.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from koktok.foreign import LibraryTokenizer
    from koktok.tokenizer import Tokenizer


def write_part(
    documents: Iterable[str],
    tokenizer: Tokenizer | LibraryTokenizer,
    plan: Plan,
    out: Path,
    *,
    epochs: int = 1,
    masked: bool = True,
    sentences: Sentences = "newline",
    segmenter: str = "kiwi",
    policy: str = "morphemes",
) -> dict[str, Any] | None:
    """Write the instances of some documents into a folder, as `koktok instances --documents record` does; None for no text."""
    filled = (text for text in documents if text.strip())
    first = next(filled, None)
    if first is None:
        return None
    with scratch("koktok-instances") as work:
        file = work / "documents.jsonl"
        with file.open("w", encoding="utf-8") as spooled:
            spooled.writelines(json.dumps({"text": text}) + "\n" for text in chain([first], filled))
        segmenter = segmenter if plan.wants_morphemes else "whitespace"
        analyser = supervised(segmenter, processes=1)
        try:
            cuts = WordCuts(analyser if segmenter == "whitespace" else CachedSegmenter(analyser), Policy.parse(policy))
            packed = write_packed(
                tokenizer,
                Source.of(file, name="documents"),
                work / "packed",
                lexicon=cuts,
                documents="field",
                sentences=sentences,
                threads=1,
            )
            return write_instances(packed, plan, out, epochs=epochs, masked=masked, workers=1)
        finally:
            if isinstance(analyser, Workers):
                analyser.close()


def write_to_folder(
    df: DataFrame,
    tokenizer: str | Path,
    plan: Plan,
    out: str | Path,
    column: str = TEXT,
    *,
    epochs: int = 1,
    masked: bool = True,
    sentences: Sentences = "newline",
    segmenter: str = "kiwi",
    policy: str = "morphemes",
) -> dict[str, Any]:
    """Write the instances of a table's documents into one folder, which `datasets.load_dataset` opens."""
    if column not in df.columns:
        raise UsageError(f'the table has no column "{column}"; it has: {", ".join(df.columns)}')
    given: dict[str, Any] = {"epochs": epochs, "masked": masked, "sentences": sentences}
    given |= {"segmenter": segmenter, "policy": policy}
    sent = load(tokenizer)
    run = {"tokenizer": sent.digest(), "plan": json.loads(json.dumps(plan.values())), **given}

    def make(notes: Any) -> dict[str, Any]:
        folder = str(notes.folder)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa
            from pyspark import TaskContext

            number = TaskContext.get().partitionId()
            texts = (text for batch in batches for text in batch.column(0).to_pylist() if text is not None)
            with scratch("koktok-part") as place:
                manifest = write_part(texts, sent, plan, place / "made", **given)
                if manifest is None:
                    return
                for shard in manifest["shards"]:
                    mine = f"shard-{number:05d}.{uuid.uuid4().hex}.part"
                    # Another disk, perhaps: a copy, which nobody takes for whole before it is reported.
                    Path(folder, mine).write_bytes((place / "made" / f"{shard['name']}.arrow").read_bytes())
                    shard["made"] = mine
                others = {
                    name: (place / "made" / name).read_text(encoding="utf-8") for name in ("README.md", "tokens.json")
                }
            told = json.dumps({"manifest": manifest, "others": others})
            yield pa.record_batch([pa.array([number], pa.int32()), pa.array([told])], ["part", "told"])

        with told_plainly():
            rows = df.select(column).mapInArrow(work, "part int, told string").toArrow()
        parts = {part: json.loads(told) for part, told in rows_of(rows.to_batches())}
        if not parts:
            raise UsageError("the table holds no document", hint="df.count()")
        told = [parts[part] for part in sorted(parts)]
        for shard in (shard for one in told for shard in one["manifest"]["shards"]):
            name = f"shard-{len(notes.parts):05d}"
            (notes.folder / shard["made"]).rename(notes.folder / f"{name}.arrow")
            kept = {key: shard[key] for key in ("epoch", "first", "instances")}
            notes.add({"name": name, **kept}, [f"{name}.arrow"])
        for left in notes.folder.glob("*.part"):
            left.unlink()
        for name, content in told[0]["others"].items():
            (notes.folder / name).write_text(content, encoding="utf-8", newline="\n")
        manifests = [one["manifest"] for one in told]
        same = {key: value for key, value in manifests[0].items() if key not in ("packed", "shards", "n_instances")}
        counts = [sum(some) for some in zip(*(one["n_instances"] for one in manifests), strict=True)]
        return {**same, "packed": [one["packed"] for one in manifests], "n_instances": counts}

    return resumable(out, run, make, same=lambda _: False)
