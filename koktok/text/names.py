"""Names of rows and columns, made distinct: two files called `dev.conllu` must not become one column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def distinct(names: Sequence[str], places: Sequence[str] = ()) -> list[str]:
    """Make names distinct: equal ones get the folders in front that differ, or a number behind.

    Examples
    --------
    >>> distinct(["dev", "test", "dev"], ["kaist/dev.conllu", "kaist/test.conllu", "gsd/dev.conllu"])
    ['kaist/dev', 'test', 'gsd/dev']
    >>> distinct(["syllables", "syllables"])
    ['syllables', 'syllables#2']
    """
    twice = {name for name, n in Counter(names).items() if n > 1}
    unique = [*names]
    folders = [_folders(name, place) for name, place in zip(names, places, strict=False)] if places else []
    for name in sorted(twice):
        same = [i for i, other in enumerate(names) if other == name]
        deepest = max((len(folders[i]) for i in same), default=0) if folders else 0
        for depth in range(1, deepest + 1):
            longer = ["/".join((*folders[i][-depth:], name)) for i in same]
            if len({*longer}) == len(longer) and not {*longer} & {*names}:
                for i, new in zip(same, longer, strict=True):
                    unique[i] = new
                break
    seen: Counter[str] = Counter()
    for i, name in enumerate(unique):
        seen[name] += 1
        if seen[name] > 1:
            unique[i] = f"{name}#{seen[name]}"
    return unique


def _folders(name: str, place: str) -> tuple[str, ...]:
    """The folders above the part of a path that gave the name."""
    path = Path(place.rpartition(":")[2].partition("#")[0])
    parts = path.parts
    for i in reversed(range(len(parts))):
        if parts[i] == name or parts[i].split(".")[0] == name or Path(parts[i]).stem == name:
            return tuple(part for part in parts[:i] if part != path.anchor)
    return ()
