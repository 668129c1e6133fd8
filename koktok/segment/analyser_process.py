"""The other end of `koktok.segment.workers`: one analyser in a process of its own, which may die alone.

Frames go both ways over pipes: eight bytes of length, then a marshalled value (both ends are the same Python). The first
frame in names the analyser, each one after it is a list of words; the answers are ("rows", [row, ...]) or
("error", message).
"""

from __future__ import annotations

import marshal
import os
import signal
import struct
import sys
from importlib import import_module
from typing import IO, Any


def send(pipe: IO[bytes], value: Any) -> None:
    """Write one frame."""
    data = marshal.dumps(value)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Read one frame."""
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    data = pipe.read(struct.unpack("<Q", size)[0])
    return marshal.loads(data)


def main() -> None:
    """Answer until the parent hangs up."""
    from koktok.segment.serialized import serialized_rows

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    words_in, rows_out = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # an analyser that prints must not write into the frames
    sys.stdout = sys.stderr
    try:
        factory, options = receive(words_in)
        module, _, name = factory.partition(":")
        segmenter = getattr(import_module(module), name)(**options)
        list(serialized_rows(segmenter, ["가"]))  # loading is told apart from stalling
        send(rows_out, ("ready", []))
        while True:
            words = receive(words_in)
            try:
                send(rows_out, ("rows", list(serialized_rows(segmenter, words))))
            except Exception as error:
                send(rows_out, ("error", f"{type(error).__name__}: {error}"))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        send(rows_out, ("error", f"{type(error).__name__}: {error}"))
