"""Analyses kept on disk by word, so that a second training analyses nothing and an interrupted one resumes.

One SQLite file per analyser signature (name, version, options, user dictionary), because
SQLite survives a killed process without losing what was committed, and several trainings may share it: 360,000 rows are
read in a second. The analyser's raw tags are kept, not cuts. A row has a checksum: a word whose row is damaged is analysed again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shlex
import sqlite3
from collections import deque
from collections.abc import Container, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from zlib import crc32

from koktok.errors import AnalyserError
from koktok.files import cache_dir
from koktok.segment.lexicon_file import Lexicon
from koktok.segment.policy import Morpheme, Segmenter
from koktok.segment.serialized import deserialize, serialized_rows

log = logging.getLogger(__name__)

BATCH = 20_000
"""Words between two commits: about half a second of Kiwi on two cores, so a kill loses no more than that."""


class CachedSegmenter:
    """A segmenter that remembers what it was asked, in a file unless `kept` is False, and looks into a lexicon first."""

    def __init__(
        self, inner: Segmenter, folder: Path | None = None, *, kept: bool = True, lexicon: Lexicon | None = None
    ) -> None:
        self.inner = inner
        self.lexicon = lexicon
        if lexicon is not None:
            lexicon.check(inner.signature())
        name = hashlib.sha256(inner.signature().encode()).hexdigest()[:16]
        self.path = (folder or cache_dir() / "analyses") / f"{name}.sqlite" if kept else Path(":memory:")
        self.asked = 0
        self.known = 0
        self.damaged: set[bytes] = set()

    def signature(self) -> str:
        """The analyser's own: a cache changes nothing."""
        return self.inner.signature()

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word; errors as `serialized`."""
        stream = iter(words)
        while batch := list(islice(stream, BATCH)):
            yield from map(deserialize, batch, self.serialized(batch))

    def serialized(self, words: Iterable[str]) -> Iterator[str]:
        """The rows of each word (see `koktok.segment.serialized`); new ones are committed every `BATCH` words."""
        try:
            if self.path.name != ":memory:":
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60)) as store:
                store.execute("PRAGMA journal_mode=WAL")
                store.execute("PRAGMA synchronous=NORMAL")
                store.text_factory = bytes  # what is damaged may be no UTF-8
                store.execute("DROP TABLE IF EXISTS analysis")  # of earlier versions, without checksums
                store.execute(f"CREATE TABLE IF NOT EXISTS checked {_COLUMNS}")
                store.execute("CREATE TABLE IF NOT EXISTS signature (text TEXT PRIMARY KEY) WITHOUT ROWID")
                store.execute("INSERT OR IGNORE INTO signature VALUES (?)", (self.signature(),))
                store.execute(f"CREATE TEMP TABLE lexicon {_COLUMNS}")
                if self.lexicon is not None:
                    store.executemany("INSERT INTO lexicon VALUES (?, ?, ?)", _with_sums(self.lexicon.rows()))
                store.commit()
                yield from self._answered(store, iter(words))
        except (sqlite3.Error, OSError) as error:
            raise AnalyserError(
                f"the analysis cache `{self.path}` cannot be used: {error}",
                hint=f"rm {shlex.quote(str(self.path))}, or --no-cache",
            ) from error

    def _answered(self, store: sqlite3.Connection, stream: Iterator[str]) -> Iterator[str]:
        """Rows in the order of the words. The analyser is never idle: it gets new words while others are looked up or stored."""
        while batch := list(islice(stream, BATCH)):  # as long as all is known, no analyser is loaded
            rows = self._known(store, batch)
            if any(word not in rows for word in batch):
                stream = chain(batch, stream)
                break
            self.known += len(batch)
            yield from map(rows.__getitem__, batch)
        else:
            return
        batches: deque[tuple[list[str], dict[str, str]]] = deque()
        wanted: deque[tuple[str, dict[str, str]]] = deque()  # what the analyser was asked, and where the answer goes

        def new() -> Iterator[str]:
            while batch := list(islice(stream, BATCH)):
                rows = self._known(store, batch)
                batches.append((batch, rows))
                missing = [word for word in dict.fromkeys(batch) if word not in rows]
                self.asked += len(missing)
                self.known += len(batch) - len(missing)
                wanted.extend((word, rows) for word in missing)
                yield from missing

        fresh: dict[str, str] = {}
        with closing(serialized_rows(self.inner, new())) as answers:
            for answer in answers:
                word, rows = wanted.popleft()
                rows[word] = fresh[word] = answer
                if len(fresh) >= BATCH or not wanted:  # who has the last row may not ask again
                    self._keep(store, fresh)
                while batches and not (wanted and wanted[0][1] is batches[0][1]):
                    batch, rows = batches.popleft()
                    yield from map(rows.__getitem__, batch)
        for batch, rows in batches:
            yield from map(rows.__getitem__, batch)

    def _known(self, store: sqlite3.Connection, batch: list[str]) -> dict[str, str]:
        """The rows that are kept of these words and are as they were written."""
        rows: dict[str, str] = {}
        damaged: set[bytes] = set()
        for table in ["checked"] if self.lexicon is None else ["checked", "temp.lexicon"]:
            found = store.execute(
                f"SELECT word, row, sum FROM json_each(?) CROSS JOIN {table} ON word = value", (json.dumps(batch),)
            ).fetchall()
            whole = {
                w.decode(): row.decode() for w, row, noted in found if type(row) is bytes and _sum(w, row) == noted
            }
            damaged |= {word for word, _, _ in found if word.decode(errors="replace") not in whole} - self.damaged
            rows |= whole
        if damaged:
            self.damaged |= damaged
            log.warning(
                "%d damaged analyses in the cache `%s`; these words are analysed again", len(damaged), self.path
            )
        return rows

    def _keep(self, store: sqlite3.Connection, fresh: dict[str, str]) -> None:
        """Commit new rows, and forget them here."""
        lost: Container[str] = getattr(self.inner, "quarantined", ())  # another run may have better luck with them
        with store:
            store.executemany(
                "INSERT OR REPLACE INTO checked VALUES (?, ?, ?)",
                _with_sums(item for item in fresh.items() if item[0] not in lost),
            )
        fresh.clear()


_COLUMNS = "(word TEXT PRIMARY KEY, row TEXT, sum INTEGER) WITHOUT ROWID"


def _sum(word: bytes, row: bytes) -> int:
    return crc32(row, crc32(word))


def _with_sums(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, int]]:
    for word, row in rows:
        yield word, row, _sum(word.encode(), row.encode())
