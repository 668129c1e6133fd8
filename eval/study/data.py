"""Lists of ids as flat arrays, the folder that carries them, and the order in which a training reads them: numpy alone."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from koktok.files import write_file

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lists:
    """Lists of numbers, one behind the other: of 16 bits, or of 32 where one does not fit."""

    flat: npt.NDArray[np.uint16 | np.uint32]
    ends: Ints  # where each begins, and where the last ends

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Lists:
        """From lists.

        Examples
        --------
        >>> [row.tolist() for row in Lists.of([[7], [], [8, 9]])]
        [[7], [], [8, 9]]
        >>> Lists.of([[127_999]]).flat.dtype
        dtype('uint32')
        """
        ends = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        flat = np.array([i for row in rows for i in row], dtype=np.uint32)
        fits = flat.max(initial=0) <= np.iinfo(np.uint16).max
        return cls(flat.astype(np.uint16) if fits else flat, ends.astype(np.int64))

    def __iter__(self) -> Any:
        return (self.flat[a:b] for a, b in pairwise(self.ends.tolist()))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def in_order(self, order: Ints) -> Ints:
        """The lists in another order, joined."""
        starts = self.ends[:-1][order]
        lengths = np.diff(self.ends)[order]
        shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        return self.flat[np.arange(int(lengths.sum())) + shift].astype(np.int64)


def write_arrays(path: Path, lists: Mapping[str, Lists]) -> None:
    """One compressed file."""
    packed = io.BytesIO()
    np.savez_compressed(
        packed, **{f"{k}.{part}": getattr(v, part) for k, v in lists.items() for part in ("flat", "ends")}
    )
    write_file(path, packed.getvalue())


def digest_of_arrays(lists: Mapping[str, Lists]) -> str:
    """First 16 hex digits of the SHA-256 of lists by name."""
    made = hashlib.sha256()
    for name, one in sorted(lists.items()):
        made.update(name.encode())
        made.update(one.flat.tobytes())
        made.update(one.ends.tobytes())
    return made.hexdigest()[:16]


class Prepared:
    """What `prepare` wrote of one tokenizer."""

    def __init__(self, work: Path, name: str) -> None:
        self.place, self._data = work / "data" / name, work / "data"
        self.about: dict[str, Any] = json.loads((self.place / "about.json").read_text(encoding="utf-8"))

    @cached_property
    def shared(self) -> dict[str, Any]:
        """What all rows share."""
        found: dict[str, Any] = json.loads((self._data / "shared.json").read_text(encoding="utf-8"))
        return found

    @cached_property
    def lists(self) -> dict[str, Lists]:
        """Lists by name."""
        with np.load(self.place / "ids.npz") as found:
            names = {key.rpartition(".")[0] for key in found}
            return {name: Lists(found[f"{name}.flat"], found[f"{name}.ends"]) for name in names}

    @property
    def end(self) -> int:
        """The id of the end of a line."""
        return int(self.about["vocabulary"]) - 1


class Stream:
    """Training text without an end: the pieces in an order that the seed and the pass decide."""

    def __init__(self, pieces: Lists, seed: int) -> None:
        self._pieces, self._seed = pieces, seed
        self._passes: dict[int, Ints] = {}

    def take(self, at: int, count: int) -> Ints:
        """So many ids from a place on.

        Examples
        --------
        >>> stream = Stream(Lists.of([[0, 1], [2], [3, 4, 5]]), seed=0)
        >>> sorted(stream.take(0, 6).tolist()), len(stream.take(4, 13))
        ([0, 1, 2, 3, 4, 5], 13)
        """
        size, found = len(self._pieces.flat), []
        while count:
            number, place = divmod(at, size)
            if number not in self._passes:
                order = np.random.default_rng([self._seed, number]).permutation(len(self._pieces))
                self._passes = {number: self._pieces.in_order(order)}
            part = self._passes[number][place : place + count]
            found.append(part)
            at, count = at + len(part), count - len(part)
        return np.concatenate(found)


def folds(groups: Sequence[int], seed: int, count: int) -> list[tuple[Ints, Ints]]:
    """What is learnt from and what is asked of each fold; a group of texts is in one fold.

    Examples
    --------
    >>> [(train.tolist(), test.tolist()) for train, test in folds([0, 0, 1], 0, 2)]
    [([2], [0, 1]), ([0, 1], [2])]
    """
    of = np.asarray(groups)
    parts = np.array_split(np.random.default_rng(seed).permutation(np.unique(of)), count)
    asked = [np.isin(of, part) for part in parts]
    return [(np.flatnonzero(~here), np.flatnonzero(here)) for here in asked]
