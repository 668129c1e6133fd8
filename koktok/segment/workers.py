"""An analyser in processes of its own: all cores, and a word that kills or stalls it costs that word and no more.

Processes, because half of the time goes into turning what Kiwi found into Python objects,
which threads do one at a time; each sends finished rows instead. At most `QUEUE_SIZE` batches a process wait. A batch whose
process died, stalled or raised is repeated word by word in a fresh one: the word that fails again is quarantined (it has no
cuts) and reported, and the run continues. Order and rows do not depend on the number of processes.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from koktok.errors import AnalyserError
from koktok.files.process import environment
from koktok.segment import Segmenter, analyser_of, segmenter_for
from koktok.segment.policy import Morpheme
from koktok.segment.serialized import deserialize, serialized_rows

log = logging.getLogger(__name__)

BATCH = 1024
"""Words in a message: 70 ms of Kiwi, so that the ends of a run are even and a dead process takes little with it. With 256 the
processes waited 16 % of their time for the next message, with these 10 %."""

LOAD_TIMEOUT = 300.0
"""Seconds that an analyser may take to load."""

QUEUE_SIZE = 8
"""Batches that wait for each process: half a second of Kiwi, in which the caller may do something else."""

BATCHES_PER_PROCESS = 6
"""Batches asked for each process that starts: loading Kiwi takes a second and 375 MB, and pays from there."""

TIMEOUT = 60.0
"""Seconds for a batch: eight hundred times what Kiwi takes, and eight times what Kkma does."""

MAX_FAILURES = 1000
"""Quarantined words at which the analyser is called broken."""


class _DiedError(Exception):
    """The process ended, was ended for stalling, or reported an error."""


class _Child:
    """One process; started at the first question, and again after each death."""

    def __init__(self, factory: str, options: Mapping[str, Any]) -> None:
        self._analyser = (factory, dict(options))
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self.peak = 0

    def ask(self, words: list[str], timeout: float) -> list[str]:
        """The rows of these words."""
        if self._process is None:
            self._start()
        kind, rows = self._answer(words, timeout)
        if kind != "rows":
            raise _DiedError(str(rows))
        return list(rows)

    def _start(self) -> None:
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from koktok.segment.workers import serve; serve({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what an analyser prints is no output of the caller
                pass_fds=[theirs.fileno()],
                env=environment(),
            )
        try:
            kind, message = self._answer(self._analyser, LOAD_TIMEOUT)
        except _DiedError as error:
            kind, message = "error", str(error)
        if kind != "ready":
            self.end()
            raise AnalyserError(f"the analyser could not be loaded in a process of its own: {message}")

    def _answer(self, question: Any, timeout: float) -> Any:
        process, pipe = self._process, self._pipe
        assert process is not None
        assert pipe is not None
        try:
            pipe.send(question)
            if pipe.poll(timeout):
                return pipe.recv()
        except (EOFError, OSError, TypeError, ValueError) as error:  # the last two where `close` was quicker
            self.end()
            raise _DiedError(f"exit code {process.returncode}") from error
        self.end()
        raise _DiedError(f"no answer in {timeout:g} s")

    def end(self) -> None:
        """End the process, if there is one."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is None or pipe is None:
            return
        self.peak = max(self.peak, _peak_of(process.pid))
        process.kill()
        process.wait()
        pipe.close()


def serve(pipe: int) -> None:
    """The other end: load the analyser that the first message names, and answer lists of words until the parent hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    with Connection(pipe) as parent:
        try:
            factory, options = parent.recv()
            module, _, name = factory.partition(":")
            segmenter = getattr(import_module(module), name)(**options)
            list(serialized_rows(segmenter, ["가"]))  # so that loading is not mistaken for stalling
            parent.send(("ready", []))
            while True:
                words = parent.recv()
                try:
                    parent.send(("rows", list(serialized_rows(segmenter, words))))
                except Exception as error:
                    parent.send(("error", f"{type(error).__name__}: {error}"))
        except (EOFError, ConnectionError):
            return
        except Exception as error:
            parent.send(("error", f"{type(error).__name__}: {error}"))


class Workers:
    """A segmenter that runs another one in processes of its own."""

    def __init__(
        self,
        inner: Segmenter,
        factory: str,
        options: Mapping[str, Any],
        *,
        processes: int | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.inner = inner
        self.quarantined: dict[str, str] = {}
        self._timeout = timeout
        self._children = [_Child(factory, options) for _ in range(processes or os.cpu_count() or 1)]
        self._idle: queue.LifoQueue[_Child] = queue.LifoQueue()
        self._working = self._asked = 0
        self._stopping = threading.Event()
        self._closing = weakref.finalize(self, _end_all, self._children)

    def signature(self) -> str:
        """The analyser's own: where it runs changes nothing."""
        return self.inner.signature()

    @property
    def peak(self) -> int:
        """Bytes of memory that the processes had at most, each at its own time; 0 where the system does not report it."""
        return sum(child.peak for child in self._children)

    def close(self) -> None:
        """End all processes; a later question starts them again."""
        _end_all(self._children)

    def notes(self) -> list[str]:
        """A note on the words that failed."""
        some = [f"{word[:30]!r} ({how})" for word, how in sorted(self.quarantined.items())]
        if not some:
            return []
        more = f" and {len(some) - 5} more" if len(some) > 5 else ""
        return [f"the analyser failed on {len(some)} words, which have no cuts: {', '.join(some[:5])}{more}"]

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word; errors as `serialized`."""
        stream = iter(words)
        while some := list(islice(stream, 64 * BATCH)):
            yield from map(deserialize, some, self.serialized(some))

    def serialized(self, words: Iterable[str]) -> Iterator[str]:
        """The rows of each word, in order."""
        stream = iter(words)
        waiting: deque[Future[list[str]]] = deque()
        pool = ThreadPoolExecutor(len(self._children))
        finished = False
        try:
            while batch := list(islice(stream, BATCH)):
                if self._working < min(len(self._children), 1 + self._asked // BATCHES_PER_PROCESS):
                    self._idle.put(self._children[self._working])
                    self._working += 1
                self._asked += 1
                waiting.append(pool.submit(self._rows, batch))
                if len(waiting) >= QUEUE_SIZE * len(self._children):
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
            finished = True
        finally:
            if not finished:  # interrupted, or failed: nothing that still runs is wanted
                self._stopping.set()
                for future in waiting:
                    future.cancel()
                self.close()
            pool.shutdown(wait=True, cancel_futures=True)
            self._stopping.clear()

    def _rows(self, batch: list[str]) -> list[str]:
        child = self._idle.get()
        try:
            try:
                return child.ask(batch, self._timeout)
            except _DiedError:
                if self._stopping.is_set():
                    raise
                return [self._row(child, word) for word in batch]
        finally:
            self._idle.put(child)

    def _row(self, child: _Child, word: str) -> str:
        """The row of one word of a batch that failed."""
        try:
            return child.ask([word], self._timeout)[0]
        except _DiedError as error:
            self.quarantined[word] = str(error)
            log.warning("the analyser failed on %r, which has no cuts: %s", word[:30], error)
            if len(self.quarantined) >= MAX_FAILURES:
                raise AnalyserError(
                    f"the analyser failed on {MAX_FAILURES:,} words, the last one {word[:40]!r}: {error}",
                    hint="--segmenter whitespace, or another version of the analyser",
                ) from error
            return ""


def _peak_of(process: int) -> int:
    # Not the usage that wait4 gives: that remembers the size of the parent that forked.
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def _end_all(children: Iterable[_Child]) -> None:
    for child in children:
        child.end()


def in_subprocess(
    name: str,
    *,
    user_dictionary: str | None = None,
    processes: int | None = None,
    timeout: float = TIMEOUT,
    counts: Mapping[str, int] | None = None,
) -> Segmenter:
    """A segmenter by name, in processes of its own; those that run in Python need none. Parameters as `segmenter_for` and `Workers`."""
    inner = segmenter_for(name, user_dictionary=user_dictionary, counts=counts)
    if analyser_of(name).in_process:
        return inner
    options: dict[str, Any] = {"name": name, "user_dictionary": user_dictionary, "threads": 1}
    return Workers(inner, "koktok.segment:segmenter_for", options, processes=processes, timeout=timeout)
