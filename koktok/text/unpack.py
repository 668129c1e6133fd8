"""Packed bytes to plain ones: .gz, .zst, .xz and .bz2 as streams."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from typing import IO, Any, cast

PACKED = (".gz", ".zst", ".xz", ".bz2")
"""Extensions of packed files."""

CHUNK = 1 << 18

_WINDOW = 31
"""Binary logarithm of the widest window, which `zstd --ultra --long=31` makes; the library alone stops at 27."""


def unpack(raw: IO[bytes], packing: str) -> IO[bytes]:
    """Open the plain bytes of a packed file; a plain one is its own."""
    if packing == ".zst":
        library = zstd()
        return cast("IO[bytes]", library.open(raw, options={library.DecompressionParameter.window_log_max: _WINDOW}))
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    return cast("IO[bytes]", openers[packing](raw)) if packing in openers else raw


def damage() -> tuple[type[Exception], ...]:
    """What the libraries raise for a file that is damaged or cut off, OSError apart."""
    return EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, zstd().ZstdError


def zstd() -> Any:
    """Return the library for Zstandard: Python's own `compression.zstd` from 3.14 on, before that the same as a package."""
    if sys.version_info >= (3, 14):
        from compression import zstd as library
    else:
        from backports import zstd as library
    return library
