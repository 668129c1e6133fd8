"""Lists of ids as flat arrays, the folder that carries them, and the order in which a training reads them."""

from __future__ import annotations

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

from eval.study.sizes import Shape, Size
from koktok.files import write_file

Ids = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class Lists:
    """Lists of ids below 65,536, one behind the other."""

    flat: Ids
    ends: npt.NDArray[np.int64]  # where each begins, and where the last ends

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Lists:
        """From lists.

        Examples
        --------
        >>> [row.tolist() for row in Lists.of([[7], [], [8, 9]])]
        [[7], [], [8, 9]]
        """
        ends = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        return cls(np.array([i for row in rows for i in row], dtype=np.uint16), ends.astype(np.int64))

    def __iter__(self) -> Any:
        return (self.flat[a:b] for a, b in pairwise(self.ends.tolist()))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def in_order(self, order: npt.NDArray[np.int64]) -> Ids:
        """The lists in another order, joined."""
        starts = self.ends[:-1][order]
        lengths = np.diff(self.ends)[order]
        shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        return self.flat[np.arange(int(lengths.sum())) + shift]


def write_arrays(path: Path, lists: Mapping[str, Lists]) -> None:
    """One compressed file."""
    packed = io.BytesIO()
    np.savez_compressed(
        packed, **{f"{k}.{part}": getattr(v, part) for k, v in lists.items() for part in ("flat", "ends")}
    )
    write_file(path, packed.getvalue())


class Prepared:
    """What `prepare` wrote of one tokenizer."""

    def __init__(self, work: Path, name: str) -> None:
        place = work / "data" / name
        if (failed := place / "failed.json").exists():
            raise FileNotFoundError(json.loads(failed.read_text(encoding="utf-8")))
        if not (place / "about.json").exists():
            raise FileNotFoundError("not prepared")
        self.about: dict[str, Any] = json.loads((place / "about.json").read_text(encoding="utf-8"))
        self.shared = shared(work)
        self._place = place

    @cached_property
    def ids(self) -> dict[str, Lists]:
        """Lists by name."""
        with np.load(self._place / "ids.npz") as found:
            names = {key.rpartition(".")[0] for key in found}
            return {name: Lists(found[f"{name}.flat"], found[f"{name}.ends"]) for name in names}

    def shape(self, size: Size) -> Shape:
        """Of a step."""
        return Shape.of(size, self.about["vocabulary"], self.about["bytes_per_token"])

    @property
    def end(self) -> int:
        """The id of the end of a line."""
        return int(self.about["vocabulary"]) - 1


def shared(work: Path) -> dict[str, Any]:
    """What all tokenizers have in common."""
    found: dict[str, Any] = json.loads((work / "data" / "shared.json").read_text(encoding="utf-8"))
    return found


class Stream:
    """Training text without an end: the pieces in an order that the seed and the pass decide."""

    def __init__(self, pieces: Lists, seed: int) -> None:
        self._pieces, self._seed = pieces, seed
        self._passes: dict[int, Ids] = {}

    def take(self, at: int, count: int) -> Ids:
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
            part = self._pass(number)[place : place + count]
            found.append(part)
            at, count = at + len(part), count - len(part)
        return np.concatenate(found)

    def _pass(self, number: int) -> Ids:
        if number not in self._passes:
            order = np.random.default_rng([self._seed, number]).permutation(len(self._pieces))
            self._passes = {k: v for k, v in self._passes.items() if k == number - 1}
            self._passes[number] = self._pieces.in_order(order)
        return self._passes[number]
