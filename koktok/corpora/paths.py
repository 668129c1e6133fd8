"""Paths of a user to sources of text: files, folders, globs, and corpora as `corpus:NAME`."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

from koktok.corpora.fetch import texts
from koktok.errors import InputError
from koktok.text.kinds import EXTENSIONS
from koktok.text.sources import Items, Source, check_field, name_of

_CORPUS = "corpus:"


def as_source(
    *paths: str | os.PathLike[str], name: str | None = None, weight: float = 1.0, field: str | None = None
) -> Source:
    """Return the source of these paths; `corpus:NAME` is fetched unless the cache has it.

    Examples
    --------
    >>> as_source("corpus:mini").name
    'mini'
    """
    expanded: list[str | os.PathLike[str]] = []
    for path in paths:
        is_corpus = isinstance(path, str | os.PathLike) and str(path).startswith(_CORPUS)
        expanded += texts(str(path).removeprefix(_CORPUS)) if is_corpus else [path]
    named = name or name_of([str(path).removeprefix(_CORPUS) for path in paths])
    return Source.of(*expanded, name=named, weight=weight, field=field)


def as_text(given: Any, field: str | None = None) -> Any:
    """Return sources in place of paths, and any other text unchanged.

    A path is a `Path`, or a `str` alone that names a file, a folder, files by a pattern, or a corpus, or ends as a file of text
    does; a `str` in an iterable is a line of text. `field` is that of their records.

    Examples
    --------
    >>> as_text(Path("-"))[0].name, as_text("corpus:mini")[0].name, as_text(["나는 집에 간다."])
    ('stdin', 'mini', ['나는 집에 간다.'])
    """
    if isinstance(given, str) and _is_path(given):
        given = Path(given)
    if isinstance(given, Source | Path):
        given = [given]
    if not isinstance(given, list | tuple) or not any(isinstance(item, Source | Path) for item in given):
        return given if field is None else Items(given, field)
    for item in given:
        if not isinstance(item, Source | Path):
            raise InputError(f"expected a path, got {str(item)[:40]!r}", hint=f"Path({str(item)[:40]!r})")
    sources = [item if isinstance(item, Source) else as_source(item, field=field) for item in given]
    check_field(sources)
    return sources


def _is_path(text: str) -> bool:
    """Whether a string alone names files, or would if they were there, and is no line of text."""
    if text.startswith(_CORPUS) or (text.endswith(EXTENSIONS) and not any(map(str.isspace, text))):
        return True
    try:
        return os.path.exists(text) or ("\n" not in text and glob.has_magic(text) and any(glob.iglob(text)))  # noqa: PTH110, PTH207
    except ValueError:  # a null character
        return False
