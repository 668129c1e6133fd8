"""Ctrl-C, once: it reaches the verb also where Python alone would lose it.

This file adds: a second knock. A signal sets a flag, and Python raises KeyboardInterrupt when its main thread next runs
Python code. Two things come between. The system may hand the signal to any thread, and then the main thread's blocked read
is not woken; and where the exception is raised inside a callback from compiled code (Numba loads what it compiled through
such), nobody can pass it on, and it is dropped. So a thread waits for signals beside the main one, and knocks there again
when nothing was raised; and a dropped KeyboardInterrupt is raised again a moment later. What is being tidied up after an
interrupt that did arrive is never disturbed.
"""

from __future__ import annotations

import _thread
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

__all__ = ["heard"]

PATIENCE = 0.2
"""Seconds after which the main thread is taken for blocked: code of its own would have answered long ago."""


@contextmanager
def heard() -> Iterator[None]:
    """Within this, one SIGINT is one KeyboardInterrupt; for the main thread of a process that is all ours.

    Where SIGINT is ignored, as behind `nohup`, or somebody else handles it, that stays as it is.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    ears = _Ears()
    signal.signal(signal.SIGINT, ears.interrupt)
    before, sys.unraisablehook = sys.unraisablehook, ears.dropped
    signal.set_wakeup_fd(ears.bell.fileno())
    threading.Thread(target=ears.watch, daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
        sys.unraisablehook = before
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ears.close()


class _Ears:
    """What hears a signal in the main thread's place."""

    def __init__(self) -> None:
        self._main = threading.get_ident()
        self._before = sys.unraisablehook
        self._raised = False  # no Event: its lock would be taken twice where a signal comes within a signal
        self._open = True
        self._rung, self.bell = socket.socketpair()
        self.bell.setblocking(False)

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """The handler: runs in the main thread."""
        self._raised = True
        raise KeyboardInterrupt

    def dropped(self, what: Any) -> None:
        """The hook for exceptions that nobody can catch."""
        if not issubclass(what.exc_type, KeyboardInterrupt):
            self._before(what)
            return
        again = threading.Timer(PATIENCE / 4, self._knock)
        again.daemon = True
        again.start()

    def watch(self) -> None:
        """Wait for signals, and knock until one is raised."""
        with self._rung:
            while signals := self._rung.recv(64):
                while signal.SIGINT in signals and not self._answered():
                    self._knock()
                # Every knock has rung, too; those rings are answered by the same exception.
                self._rung.setblocking(False)
                with suppress(BlockingIOError):
                    while self._rung.recv(64):
                        pass
                self._rung.setblocking(True)
                self._raised = False

    def close(self) -> None:
        """End the watch."""
        self._open = False
        self.bell.close()

    def _answered(self) -> bool:
        """True when the handler has run, soon or by now, or nobody waits for it any more."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._open and not self._raised:
            time.sleep(PATIENCE / 20)
        return self._raised or not self._open

    def _knock(self) -> None:
        if not self._open:
            return
        # At the thread, not the process: only that ends a system call in which the thread is blocked.
        if hasattr(signal, "pthread_kill"):
            # polars puts a handler of its own before Python's, after which the system takes up a blocked read again.
            signal.siginterrupt(signal.SIGINT, True)
            signal.pthread_kill(self._main, signal.SIGINT)
        else:  # Windows, where Ctrl-C ends a blocked read by itself
            _thread.interrupt_main()
