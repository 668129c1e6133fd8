r"""Files to blocks for bulk encoding: plain text is mapped and not read, and its bytes are checked while they are encoded.

Only what `koktok.text.sources.read` would give byte for byte goes this way: plain text, Unix line ends, no mark at its beginning.
If some bytes are not UTF-8, everything is read again by that reader, which leaves bad lines out or refuses the file.
"""

from __future__ import annotations

import codecs
import mmap
from collections.abc import Iterator
from pathlib import Path

from koktok.errors import InputError
from koktok.text.blocks import Block
from koktok.text.kinds import kind_at, plain_name
from koktok.text.sources import Source, read

_BLOCK = 1 << 20  # bytes handed to a thread at once
_LONGEST = 1 << 26  # a longer line is the reader's to refuse


def mapped_blocks(source: Source) -> Iterator[Block]:
    """Yield the documents of a source in blocks, which may hold bytes that are not UTF-8."""
    for path in source.paths:
        view = _mapped(path) if _is_plain(path, source.field) else None
        if view is None:
            yield from read(Source(source.name, (path,), field=source.field), may_be_empty=True)
            continue
        at, end = 0, len(view)
        while at < end:
            stop = view.rfind(b"\n", at, at + _BLOCK) + 1 or view.find(b"\n", at + _BLOCK, at + _LONGEST) + 1
            if not stop:
                break  # the last line, without an end, or one that is too long
            yield Block(view[at:stop])
            at = stop
        if end - at > _LONGEST:
            raise InputError(f"`{path}` has a line of more than {_LONGEST:,} bytes")
        if at < end:
            yield Block(view[at:] + b"\n")


def _is_plain(path: Path, field: str | None) -> bool:
    """Whether every line of a file is a text, and not packed."""
    return path.is_file() and plain_name(path) == path.name and kind_at(path, field) == "text"


def _mapped(path: Path) -> mmap.mmap | None:
    """Map a file into memory, if its bytes are those of its lines."""
    if not path.is_file() or not path.stat().st_size:
        return None
    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    plain = not view[:4].startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return view if plain and view.find(b"\r") < 0 and view.find(b"\0", 0, 1 << 13) < 0 else None
