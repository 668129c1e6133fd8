"""Ids by Spark: a column of them, or `df.write.format("koktok")`, which writes the token files of `koktok encode`.

Shards that many tasks write and one driver commits. A task cuts its documents into shards by the size of their
text, so that a shard is known by the SHA-256 of its text before anything is encoded: one that stands in the manifest, or that a
killed run has finished, is not made again. Tasks write into the workplace beside the target under names of their own; what
Spark reports of them, once each, is named and listed by the driver, in one step, and everything else in the workplace goes.
So a task that failed, ran twice or lost its machine leaves nothing, and each document stands there exactly once.

The path is one that driver and workers see: a network file system, a mounted bucket, or the disk of a single machine.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from koktok.errors import ArtifactError, InputError, MissingExtraError, UsageError

try:
    from pyspark import TaskContext
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
except ImportError:
    raise MissingExtraError("pyspark", "spark") from None

from koktok.bulk.arrays import TokenArray
from koktok.bulk.shards import Batch, Format, TokenFiles, described, write_shard
from koktok.bulk.texts import Blocks
from koktok.cluster.spark import fingerprint, read_text, told_plainly
from koktok.cluster.task import TEXT, documents_of
from koktok.files import (
    LOCK,
    READY,
    noted_files,
    place_of,
    publish,
    settle,
    sha256_of,
    sync,
    whole,
    workplace,
    workplace_of,
)
from koktok.text.records import ReadReport
from koktok.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


SHARD_BYTES = 128 << 20
"""Text of a shard: some 30 million tokens of Korean, and what a task holds in memory besides their ids."""

_JOB, _SHARDS, _MANIFEST = "job", "shards", "manifest.json"


# ── a column of ids ───────────────────────────────────────────────────────────────────────────────────────────────────


def encode(
    df: DataFrame,
    tokenizer: Tokenizer | str | Path,
    column: str = TEXT,
    *,
    ids: str = "ids",
    special_tokens: bool = False,
) -> DataFrame:
    """A table with one column more: the ids of each text, null where it is null; for what Spark itself writes, anywhere."""
    from pyspark.sql import functions as f

    if column not in df.columns or ids in df.columns:
        what = f'has no column "{column}"' if column not in df.columns else f'has a column "{ids}" already'
        raise UsageError(f"the table {what}; it has: {', '.join(df.columns)}")
    sent = Sent.of(tokenizer)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow as pa

        for batch in batches:
            texts = batch.column(column)
            found = sent.tokenizer.encode_ids(
                texts.fill_null("").to_pylist(), threads=1, dtype=np.int32, add_special_tokens=special_tokens
            )
            lists = pa.ListArray.from_arrays(found.offsets.astype(np.int32), found.ids, mask=texts.is_null())
            yield pa.record_batch([*batch.columns, lists], [*batch.schema.names, ids])

    schema = df.withColumn(ids, f.lit(None).cast("array<int>")).schema
    return df.mapInArrow(work, schema)


@dataclass(frozen=True)
class Sent:
    """A tokenizer on its way to the workers, with its digest."""

    digest: str
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, tokenizer: Tokenizer | str | Path) -> Sent:
        """A tokenizer, or the one of a folder."""
        made = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer.load(tokenizer)
        return cls(made.digest(), pickle.dumps(made))

    @property
    def tokenizer(self) -> Tokenizer:
        """The same in this process: made once, and kept with all that it has solved."""
        return _made(self)


@lru_cache(maxsize=2)
def _made(sent: Sent) -> Tokenizer:
    made: Tokenizer = pickle.loads(sent.content)
    if made.digest() != sent.digest:
        raise ArtifactError(
            f"the driver sent the tokenizer {sent.digest}, and a worker has made {made.digest()} of it",
            hint="the same koktok on driver and workers",
        )
    return made


# ── token files ───────────────────────────────────────────────────────────────────────────────────────────────────────


def register(spark: SparkSession) -> None:
    """Make `df.write.format("koktok")` known to a session.

    Options of the writer:

    * `tokenizer`: its folder, on the driver
    * `to`: npy (the default), arrow, bin or megatron (which is bin), as `koktok encode --format`
    * `column`: of the documents, "text" by default; what `koktok.cluster.spark.read_text` gives has one
    * `id`: column whose first and last value stand in the manifest for each shard; without it the SHA-256 of the documents do
    * `before`, `after`: special tokens around every document, separated by commas
    * `shardBytes`: text of a shard
    * `field`: of JSON lines, with `read_text`

    `.mode("overwrite")` makes the folder hold these documents and no others, and keeps what is there of them already;
    `.mode("append")` adds those shards whose text is not there yet. So a second run costs the reading.
    """
    spark.dataSource.register(KoktokSource)


def encode_files(
    spark: SparkSession,
    paths: Sequence[str],
    out: str | Path,
    tokenizer: str | Path,
    *,
    to: str = "npy",
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    field: str | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> TokenFiles:
    """Encode files into a folder that holds these documents and no others.

    Where no file has come, gone or changed (by its path, size and time), nor the tokenizer, nothing is read: what the folder's
    manifest says is compared with the disk, and no task begins. Where some have, shards of the same text stay.
    """
    options = {"tokenizer": str(tokenizer), "to": to, "before": ",".join(before), "after": ",".join(after)}
    options |= {"shardBytes": str(shard_bytes), "inputs": fingerprint(spark, paths, field)}
    options |= {} if field is None else {"field": field}
    if (Path(out) / _MANIFEST).exists():
        begun = Writer.begun({**options, "path": str(out)}, [TEXT], overwrite=True)
        there = TokenFiles.open(begun.target)
        same = begun.run.items() <= there.manifest.items() and there.manifest.get("inputs") == begun.inputs
        if same and all(whole(begun.target, shard) for shard in there.manifest["shards"]):
            begun.abort([])
            return there
    register(spark)
    with told_plainly():
        text = read_text(spark, paths, field=field)
        text.write.format("koktok").options(**options).mode("overwrite").save(str(out))
    return TokenFiles.open(out)


class KoktokSource(DataSource):  # type: ignore[misc]
    """Token files as Spark writes them; see `register`."""

    @classmethod
    def name(cls) -> str:
        """What `format` wants."""
        return "koktok"

    def schema(self) -> str:
        """Of reading, which there is none of: `koktok.bulk.shards.TokenFiles` maps the files into memory."""
        raise UsageError("token files are written by Spark, and read by mapping them", hint="TokenFiles.open(path)")

    def writer(self, schema: StructType, overwrite: bool) -> Writer:  # noqa: FBT001 - Spark's own signature
        """The writer of one job; runs on the driver."""
        return Writer.begun(dict(self.options), list(schema.fieldNames()), overwrite=overwrite)


@dataclass
class _ShardText:
    """The text of a shard, as it gathers."""

    batches: list[Batch] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def take(self, documents: Batch, names: Sequence[str], limit: int) -> tuple[Batch, Sequence[str]]:
        r"""Add documents up to the one that brings the text to its limit; gives what is left of both.

        Examples
        --------
        >>> text = _ShardText()
        >>> text.take("가\n나\n다\n".encode(), [], limit=5), text.take(["라", "마"], ["4", "5"], limit=12)
        ((b'\xeb\x8b\xa4\n', []), (['마'], ['5']))
        """
        wanted = limit - self.size
        left: Batch
        taken: Batch
        if isinstance(documents, bytes):
            end = len(documents) if len(documents) < wanted else documents.index(b"\n", max(0, wanted - 1)) + 1
            taken, left = documents[:end], documents[end:]
            signed = documents[:end].replace(b"\n", b"\0")  # no newline stands in a document of one line
            self.names += [_name_of(signed[: signed.index(b"\0")]), _name_of(signed[:-1].rpartition(b"\0")[2])]
        else:
            sizes = accumulate(len(text.encode()) + 1 for text in documents)
            n = next((i for i, size in enumerate(sizes, 1) if size >= wanted), len(documents))
            taken, left = documents[:n], documents[n:]
            signed = "".join(f"{text}\0" for text in taken).encode()
            self.names += [names[0], names[n - 1]] if names else [_name_of(documents[i].encode()) for i in (0, n - 1)]
            names = names[n:]
        self.batches.append(taken)
        self.digest.update(signed)
        self.size += len(signed)
        return left, names


def _name_of(document: bytes) -> str:
    """What a document is called that has no id."""
    return hashlib.sha256(document).hexdigest()[:16]


@dataclass(frozen=True)
class Message(WriterCommitMessage):  # type: ignore[misc]
    """What a task has done."""

    partition: int
    shards: list[dict[str, Any]]
    bad_lines: int


@dataclass(frozen=True)
class Writer(DataSourceArrowWriter):  # type: ignore[misc]
    """One job: made on the driver, sent to the tasks, and asked on the driver to commit."""

    target: Path
    work: Path
    job: str
    sent: Sent
    run: dict[str, Any]
    columns: tuple[str, str]
    field: str | None
    shard_bytes: int
    overwrite: bool
    inputs: str = ""

    @classmethod
    def begun(cls, options: Mapping[str, str], columns: list[str], *, overwrite: bool) -> Writer:
        """Look at everything before any task does, and take the workplace."""
        given = {name.lower(): value for name, value in options.items()}
        known = {"path", "tokenizer", "to", "column", "id", "before", "after", "shardbytes", "field", "inputs"}
        if strange := sorted(given.keys() - known):
            raise UsageError(f"the option `{strange[0]}` is not known", hint=f"one of {', '.join(sorted(known))}")
        for name, example in (("path", '.save("tokens")'), ("tokenizer", '.option("tokenizer", "my-tokenizer")')):
            if name not in given:
                raise UsageError(f"no {name} was given", hint=example)
        to = given.get("to", "npy")
        chosen: Format = {"megatron": "bin"}.get(to, to)  # type: ignore[assignment]
        if chosen not in get_args(Format):
            raise UsageError(
                f"`{to}` is no format of token files", hint=f"to: {', '.join(get_args(Format))} or megatron"
            )
        if not (size := given.get("shardbytes", str(SHARD_BYTES))).isdecimal() or int(size) < 1:
            raise UsageError(f"shardBytes = {size}; wanted a whole number of at least 1", hint=f"{SHARD_BYTES}")
        column, key = given.get("column", TEXT), given.get("id", "")
        if missing := [name for name in (column, key) if name and name not in columns]:
            raise UsageError(f'the table has no column "{missing[0]}"; it has: {", ".join(columns)}')
        sent = Sent.of(given["tokenizer"])
        around = {side: [token for token in given.get(side, "").split(",") if token] for side in ("before", "after")}
        run = {**described(sent.tokenizer, chosen, **around), "shard_bytes": int(size)}
        target = place_of(re.sub(r"^file:(//)?(?=/)", "", given["path"]))
        target.parent.mkdir(parents=True, exist_ok=True)
        work = workplace_of(target, ".partial")
        with workplace(work):
            settle(work, target)  # a driver was killed when all was there but the name
            if target.exists() and any(target.iterdir()):
                there = TokenFiles.open(target).manifest
                if not overwrite and not run.items() <= there.items():
                    other = ", ".join(sorted(key for key in run if there.get(key) != run[key]))
                    raise UsageError(
                        f"`{target}` was written otherwise; what differs: {other}",
                        hint='.mode("overwrite"), or another path',
                    )
            _tidy(work, _finished_in(work))
            job = uuid.uuid4().hex
            (work / _JOB).write_text(job, encoding="ascii")  # stays, and so does the workplace
        return cls(
            target,
            work,
            job,
            sent,
            run,
            (column, key),
            given.get("field"),
            int(size),
            overwrite,
            given.get("inputs", ""),
        )

    # ── a task ──

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """The shards of one partition, made or found."""
        context = TaskContext.get()
        partition, attempt = context.partitionId(), context.taskAttemptId()
        known = self._listed()
        report = ReadReport()
        shards = []
        for text in self._cut(iterator, report):
            sha = text.digest.hexdigest()
            found = known.get(sha)
            if found is None or not whole(self.target, found):
                found = self._finished(sha) or self._made(text, sha, attempt)
            shards.append(found)
        return Message(partition, shards, report.bad_lines)

    def _listed(self) -> dict[str, dict[str, Any]]:
        """The shards of the manifest, by their text, where the same tokenizer made them the same way."""
        with suppress(OSError, ValueError, KeyError):
            manifest = json.loads((self.target / _MANIFEST).read_text(encoding="utf-8"))
            if self.run.items() <= manifest.items():
                return {shard["text_sha256"]: shard for shard in manifest["shards"]}
        return {}

    def _cut(self, batches: Iterable[pa.RecordBatch], report: ReadReport) -> Iterator[_ShardText]:
        """Documents, a shard at a time: each ends with the document that brings it to its size."""
        text = _ShardText()
        for documents, names in self._documents(batches, report):
            while len(documents):
                documents, names = text.take(documents, names, self.shard_bytes)
                if text.size >= self.shard_bytes:
                    yield text
                    text = _ShardText()
        if text.size:
            yield text

    def _documents(
        self, batches: Iterable[pa.RecordBatch], report: ReadReport
    ) -> Iterator[tuple[Batch, Sequence[str]]]:
        """Documents and their ids, where they have some."""
        column, key = self.columns
        for batch in batches:
            if {"source", "kind", TEXT} <= set(batch.schema.names):
                reports: dict[str, ReadReport] = {}
                for _, found in documents_of([batch], self.field, reports):
                    yield found, []
                report.bad_lines += sum(one.bad_lines for one in reports.values())
                continue
            texts, names = batch.column(column).to_pylist(), batch.column(key).to_pylist() if key else None
            kept = [i for i, text in enumerate(texts) if text is not None]
            report.bad_lines += len(texts) - len(kept)
            trimmed = [texts[i].replace("\r\n", "\n").removesuffix("\n") for i in kept]
            yield trimmed, [] if names is None else [str(names[i]) for i in kept]

    def _finished(self, sha: str) -> dict[str, Any] | None:
        """A shard of this text that another run has finished, if it is as that noted it."""
        with suppress(OSError, ValueError, KeyError):
            noted: dict[str, Any] = json.loads((self.work / f"{sha}.json").read_text(encoding="utf-8"))
            if self.run == noted.pop("run") and whole(self.work, noted):
                return noted
        return None

    def _made(self, text: _ShardText, sha: str, attempt: int) -> dict[str, Any]:
        """A shard encoded, written and noted."""
        tokenizer, run = self.sent.tokenizer, self.run
        ids = tokenizer.vocab.special_ids
        tokens = tokenizer.bulk_encoder(
            Blocks(iter(text.batches)),
            threads=1,
            dtype=run["dtype"],
            before=[ids[token] for token in run["before"]],
            after=[ids[token] for token in run["after"]],
        )
        name = f"{sha}-{self.job[:8]}-{attempt}"
        try:
            files = write_shard(self.work / name, tokens, run["format"])
            noted = {
                "name": name,
                "tokens": len(tokens.ids),
                "documents": len(tokens),
                "text_sha256": sha,
                "first": text.names[0],
                "last": text.names[-1],
                "files": noted_files(files),
            }
            draft = self.work / f"{name}.note"
            draft.write_text(json.dumps({**noted, "run": run}), encoding="utf-8")
            self._ours()
            draft.replace(self.work / f"{sha}.json")
        except OSError as error:
            raise InputError(
                f"`{self.work}` cannot be written: {error}", hint="a path that all workers can write to"
            ) from error
        return noted

    def _ours(self) -> None:
        """Raise where another job has taken the workplace over."""
        with suppress(OSError):
            if (self.work / _JOB).read_text(encoding="ascii") == self.job:
                return
        raise InputError(f"another job writes to `{self.target}`, or has written there", hint="one job at a time")

    # ── the driver, behind the tasks ──

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Name what the tasks have made, list it, and let it take its place."""
        done = sorted((m for m in messages if isinstance(m, Message)), key=lambda message: message.partition)
        with workplace(self.work):
            self._ours()
            there = TokenFiles.open(self.target).manifest if (self.target / _MANIFEST).exists() else {"shards": []}
            by_name = {shard["name"]: shard for shard in there["shards"]}
            listed: list[dict[str, Any]] = [] if self.overwrite else list(by_name.values())
            stood = {shard["text_sha256"] for shard in listed}
            bad = there.get("bad_lines", 0) if listed else 0
            free = (name for i in count() if (name := f"shard-{i:05d}") not in by_name)
            staged = self.work / _SHARDS
            staged.mkdir()
            places: dict[str, Path] = {}
            for message in done:
                fresh = [shard for shard in message.shards if shard["text_sha256"] not in stood]
                bad += message.bad_lines if fresh or self.overwrite else 0
                for shard in fresh:
                    kept = by_name.get(shard["name"])
                    listed.append(
                        kept if kept and kept not in listed else self._named(shard, next(free), staged, places)
                    )
            if not listed:
                name, dtype = next(free), self.run["dtype"]
                files = write_shard(staged / name, TokenArray.joined([], dtype), self.run["format"])
                told = {"name": name, "tokens": 0, "documents": 0, "text_sha256": hashlib.sha256().hexdigest()}
                listed.append({**told, "files": noted_files(files)})
            tokens = sum(shard["tokens"] for shard in listed)
            manifest = {**self.run, "tokens": tokens, "text_sha256": {}, "bad_lines": bad}
            if self.overwrite and self.inputs:
                manifest["inputs"] = self.inputs
            manifest["shards"] = listed
            file = staged / _MANIFEST
            file.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
            sync(file)
            before, after = _files_of(by_name.values()), _files_of(listed)
            new = {name: sha for name, sha in after.items() if name not in before} | {_MANIFEST: sha256_of(file)}
            old = {name: sha for name, sha in before.items() if name not in after}
            if by_name:
                old[_MANIFEST] = sha256_of(self.target / _MANIFEST)
            publish(staged, self.target, new, old, last=_MANIFEST)
            _tidy(self.work, set())

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - the notes say what is finished
        """Leave finished shards in the workplace, for the same job once more, and nothing else."""
        with suppress(InputError), workplace(self.work):
            self._ours()
            _tidy(self.work, _finished_in(self.work))

    def _named(self, shard: dict[str, Any], name: str, staged: Path, places: dict[str, Path]) -> dict[str, Any]:
        """A shard under its name in the target; where the same text comes again, a copy."""
        files = {}
        for was, noted in shard["files"].items():
            now = staged / f"{name}{was.removeprefix(shard['name'])}"
            if was not in places and (self.work / was).exists():
                (self.work / was).rename(now)
                places[was] = now
            else:
                shutil.copyfile(places.get(was, self.target / was), now)
                sync(now)
            files[now.name] = noted
        return {**shard, "name": name, "files": files}


def _files_of(shards: Iterable[dict[str, Any]]) -> dict[str, str]:
    return {name: noted["sha256"] for shard in shards for name, noted in shard["files"].items()}


def _finished_in(work: Path) -> set[str]:
    """Notes of finished shards, and their files."""
    whole: set[str] = set()
    for note in work.glob("*.json"):
        with suppress(OSError, ValueError, KeyError):
            whole |= {note.name, *json.loads(note.read_text(encoding="utf-8"))["files"]}
    return whole


def _tidy(work: Path, keep: Collection[str]) -> None:
    """Take everything out of a workplace but its lock, what is decided on and what is to be kept; without that also the job's turn."""
    for entry in work.iterdir():
        if entry.name in keep or entry.name in (LOCK, READY) or (keep and entry.name == _JOB):
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
