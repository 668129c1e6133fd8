"""Packed bytes to plain ones: .gz, .zst, .xz and .bz2 as streams."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any

PACKED = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".xz": b"\xfd7zXZ\x00", ".bz2": b"BZh"}
"""Extensions, and the bytes with which such a file begins."""

DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
"""What the libraries raise for a file that is damaged or cut off, OSError apart."""

CHUNK = 1 << 18

_WINDOW = 31
"""Binary logarithm of the widest window, which `zstd --ultra --long=31` makes; the library alone stops at 27."""


def unpacked(raw: IO[bytes], packing: str) -> Iterator[bytes]:
    """Yield the plain bytes of a packed file, or of a plain one, in chunks of at most 256 KiB."""
    if packing not in PACKED:
        yield from iter(lambda: raw.read(CHUNK), b"")
        return
    if packing == ".zst":
        library = zstd()
        damage: Any = library.ZstdError
        stream = library.open(raw, options={library.DecompressionParameter.window_log_max: _WINDOW})
    else:
        damage = ()
        openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
        stream = openers[packing](raw)
    try:
        yield from iter(lambda: stream.read(CHUNK), b"")
    except damage as error:
        raise EOFError(error) from error


def zstd() -> Any:
    """Return the library for Zstandard: Python's own `compression.zstd` from 3.14 on, before that the same as a package."""
    if sys.version_info >= (3, 14):
        from compression import zstd as library
    else:
        from backports import zstd as library
    return library
