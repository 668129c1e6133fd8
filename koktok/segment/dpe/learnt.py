"""`Dpe`: a learnt segmentation. It cuts words, and is a folder of two files.

All sums are in double precision, so that a path does not depend on which words are asked together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from koktok.errors import ArtifactError, MissingExtraError
from koktok.files import MOST_TEXT, Product, read_bounded, write_folder
from koktok.segment.dpe.tree import Prefixes, TaggedWord, arcs_of, best, prefixes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


FOLDER: Final = Product("dpe.sha256", "segmentation", frozenset({"dpe.json", "dpe.safetensors"}))
"""Product of `koktok segment --learn`."""

FORMAT = 1
"""Version of the folder; a newer one is refused, an older one is read for ever."""

ASKED = 512
"""Words of a tree; their states and softmaxes take some 100 MB."""


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread: sums in the order of one, whatever the machine (law 5)."""
    try:
        import safetensors
        import torch
    except ImportError as error:
        raise MissingExtraError(str(error.name), "dpe") from error
    del safetensors
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class DpeOptions:
    """Options of learning."""

    pieces: int = 12_000
    longest: int = 8
    width: int = 64
    epochs: int = 3
    power: float = 0.0
    rate: float = 5e-3
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Dpe:
    """A segmentation learnt from words; see `koktok.training.dpe`."""

    symbols: tuple[str, ...]
    pieces: tuple[str, ...]
    weights: Mapping[str, Tensor]
    longest: int
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of weights and tables, its first 16 digits."""
        return hashlib.sha256(_packed(self.weights) + _listed(self)).hexdigest()[:16]

    def cuts(self, words: Iterable[TaggedWord]) -> dict[TaggedWord, tuple[int, ...]]:
        """The best segmentation of each distinct word, as offsets inside it."""
        asked = sorted(dict.fromkeys(words), key=lambda word: (word.tags, word.text))
        found: dict[TaggedWord, tuple[int, ...]] = {}
        with one_thread():
            import torch

            weights = {name: weight.double() for name, weight in self.weights.items()}
            symbols = {symbol: i for i, symbol in enumerate(self.symbols)}
            pieces = {piece: i for i, piece in enumerate(self.pieces)}
            for first in range(0, len(asked), ASKED):
                some = asked[first : first + ASKED]
                tree = prefixes_of(some, symbols, pieces, self.longest)
                with torch.no_grad():
                    arcs = arcs_of(weights, tree)
                    found |= zip(some, _walked_back(some, tree, arcs.numpy(), best(arcs, tree).numpy()), strict=True)
        return found

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the folder: `dpe.safetensors`, `dpe.json`, and a list with their digests; `force` replaces another one."""
        content = {"format": FORMAT, **self.about, **json.loads(_listed(self))}
        shown = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        return write_folder(folder, {"dpe.json": shown, "dpe.safetensors": _packed(self.weights)}, FOLDER, force=force)

    @classmethod
    def load(cls, folder: str | Path) -> Dpe:
        """The folder at a path."""
        hint = "koktok segment TEXT --learn FOLDER"
        table, packed = (
            read_bounded(Path(folder) / name, MOST_TEXT, "a learnt segmentation", hint)
            for name in ("dpe.json", "dpe.safetensors")
        )
        with one_thread():
            from safetensors import SafetensorError
            from safetensors.torch import load

        try:
            about = json.loads(table)
            if about.pop("format") > FORMAT:
                raise ArtifactError(f"`{folder}` is of a newer koktok", hint="pip install -U koktok")
            symbols, pieces, longest = (about.pop(key) for key in ("symbols", "pieces", "longest"))
            weights = load(packed)
            made = cls(tuple(symbols), tuple(pieces), weights, int(longest), about)
            sizes = (len(weights["symbol"]), len(weights["piece"]), len(weights["piece_bias"]))
        except (ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            raise ArtifactError(f"`{folder}` holds no learned segmentation: {error}", hint=hint) from error
        if sizes != (len(made.symbols), len(made.pieces), len(made.pieces)):
            raise ArtifactError(f"tables and weights of `{folder}` do not fit", hint=hint)
        return made


def _walked_back(
    words: Sequence[TaggedWord], tree: Prefixes, arcs: NDArray[np.float64], total: NDArray[np.float64]
) -> Iterator[tuple[int, ...]]:
    """The offsets of each word on its best path, from the end of all words at once back to their beginnings."""
    ways = total[tree.above] + arcs
    at = tree.word
    left = np.array([len(word.text) + 1 for word in words])
    cuts: list[list[int]] = [[] for _ in words]
    while left.max() > 0:
        step = ways[at].argmax(1)
        left = left - step - 1
        at = np.where(left >= 0, tree.above[at, step], 0)  # a word that is done waits at the root
        for i in np.flatnonzero(left > 0).tolist():
            cuts[i].append(int(left[i]))
    for word, offsets in zip(words, cuts, strict=True):
        yield tuple(sorted(set(offsets) - {len(word.text)}))


def _listed(made: Dpe) -> bytes:
    """The tables as JSON."""
    listed = {"longest": made.longest, "symbols": made.symbols, "pieces": made.pieces}
    return json.dumps(listed, ensure_ascii=False).encode()


def _packed(weights: Mapping[str, Tensor]) -> bytes:
    with one_thread():
        from safetensors.torch import save

        return bytes(save(dict(sorted(weights.items()))))
