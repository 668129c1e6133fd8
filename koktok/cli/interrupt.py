"""Ctrl-C, once: it reaches the verb also where Python alone would lose it.

A signal sets a flag, and Python raises KeyboardInterrupt when its main thread next runs
Python code. Two things come between. The system may hand the signal to any thread, and then the main thread's blocked read
is not woken; and where the exception is raised inside a callback from compiled code (Numba loads what it compiled through
such), nobody can pass it on, and it is dropped. So a thread waits for signals beside the main one, and signals it again
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

PATIENCE = 0.2
"""Seconds after which the main thread is taken for blocked: code of its own would have answered long ago."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Within this, one SIGINT is one KeyboardInterrupt; for the main thread of a process that is all ours.

    Where SIGINT is ignored, as behind `nohup`, or somebody else handles it, that stays as it is.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    watchdog = _Watchdog()
    signal.signal(signal.SIGINT, watchdog.interrupt)
    before, sys.unraisablehook = sys.unraisablehook, watchdog.dropped
    signal.set_wakeup_fd(watchdog.wakeup.fileno())
    threading.Thread(target=watchdog.watch, daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
        sys.unraisablehook = before
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watchdog.close()


class _Watchdog:
    """What hwatchdog a signal in the main thread's place."""

    def __init__(self) -> None:
        self._main = threading.get_ident()
        self._before = sys.unraisablehook
        self._raised = False  # no Event: its lock would be taken twice where a signal comes within a signal
        self._open = True
        self._seen, self.wakeup = socket.socketpair()
        self.wakeup.setblocking(False)

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """The handler: runs in the main thread."""
        self._raised = True
        raise KeyboardInterrupt

    def dropped(self, what: Any) -> None:
        """The hook for exceptions that nobody can catch."""
        if not issubclass(what.exc_type, KeyboardInterrupt):
            self._before(what)
            return
        again = threading.Timer(PATIENCE / 4, self._signal_again)
        again.daemon = True
        again.start()

    def watch(self) -> None:
        """Wait for signals, and send each again until it is raised."""
        with self._seen:
            while signals := self._seen.recv(64):
                while signal.SIGINT in signals and not self._answered():
                    self._signal_again()
                # Every one sent again is seen here, too; they are answered by the same exception.
                self._seen.setblocking(False)
                with suppress(BlockingIOError):
                    while self._seen.recv(64):
                        pass
                self._seen.setblocking(True)
                self._raised = False

    def close(self) -> None:
        """End the watch."""
        self._open = False
        self.wakeup.close()

    def _answered(self) -> bool:
        """True when the handler has run, soon or by now, or nobody waits for it any more."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._open and not self._raised:
            time.sleep(PATIENCE / 20)
        return self._raised or not self._open

    def _signal_again(self) -> None:
        if not self._open:
            return
        # At the thread, not the process: only that ends a system call in which the thread is blocked.
        if hasattr(signal, "pthread_kill"):
            # polars puts a handler of its own before Python's, after which the system takes up a blocked read again.
            signal.siginterrupt(signal.SIGINT, True)
            signal.pthread_kill(self._main, signal.SIGINT)
        else:  # Windows, where Ctrl-C ends a blocked read by itself
            _thread.interrupt_main()
