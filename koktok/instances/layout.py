"""Layouts: the places of the tokens of each instance in a packed shard.

One pass over the ends of sentences makes a layout of a few numbers for each instance, so any worker can put any instance together from
the mapped shard. No instance crosses a shard, and the layout of a shard is a function of its documents, the plan and the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.instances.packing import PackedShard
from koktok.model.tokens import running


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The instances of a shard: segments with their begins and ends, and the first segment of each instance."""

    starts: NDArray[np.int64]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    labels: NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True)
class Frame:
    """The special tokens of an instance, with the type ids of its two texts."""

    head: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    tail: tuple[int, ...] = ()
    kinds: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, template: list[list[Any]]) -> Frame:
        """Return the frame of a template in the manifest of a packed folder.

        Examples
        --------
        >>> Frame.of([[2, 0], ["A", 0], [3, 0], ["B", 1], [3, 1]])
        Frame(head=(2,), between=(3,), tail=(3,), kinds=(0, 1))
        """
        names = [item[0] for item in template]
        a = names.index("A")
        b = names.index("B") if "B" in names else a
        return cls(tuple(names[:a]), tuple(names[a + 1 : b]), tuple(names[b + 1 :]), (template[a][1], template[b][1]))

    def size(self, segments: int) -> int:
        """Return the number of special tokens of an instance with so many segments."""
        return len(self.head) + len(self.between) * (segments - 1) + len(self.tail)


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """The tokens of several instances, with their offsets."""

    ids: NDArray[np.int32]
    marks: NDArray[np.uint8]
    kinds: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def sentences_layout(shard: PackedShard, room: int, *, across: bool, between: int = 0) -> Layout:
    """Lay out as many whole sentences as there is room for; a longer sentence is cut.

    Examples
    --------
    >>> from koktok.instances.packing import PackedShard
    >>> ends = np.array([4, 6, 9, 12])  # three sentences and one
    >>> shard = PackedShard(np.arange(12), np.zeros(12, np.uint8), np.array([0, 9, 12]), ends, np.array([0, 3, 4]), np.zeros(2))
    >>> for across in (False, True):
    ...     layout = sentences_layout(shard, 6, across=across)
    ...     print(layout.starts.tolist(), layout.begins.tolist(), layout.ends.tolist())
    [0, 1, 2, 3] [0, 6, 9] [6, 9, 12]
    [0, 1, 3] [0, 6, 9] [6, 9, 12]
    """
    most = len(shard.ends) + len(shard.ids) // room + len(shard.documents)
    starts = np.zeros(most + 1, np.int64)
    begins, ends = np.empty(most, np.int32), np.empty(most, np.int32)
    n, segments = _sentences(
        shard.documents, shard.ends, shard.sentences, room, across, between, starts, begins, ends
    )  # fmt: skip
    return Layout(starts[: n + 1].copy(), begins[:segments].copy(), ends[:segments].copy())


@njit(nogil=True, cache=True)
def _sentences(documents, sentence_ends, sentences, room, across, between, starts, begins, ends):
    n, used, size = 0, 0, 0  # instances; segments; tokens of the open instance
    for document in range(len(documents) - 1):
        at = documents[document]
        fresh = True  # the open instance has no segment of this document
        if size and not across:
            n += 1
            starts[n] = used
            size = 0
        for sentence in range(sentences[document], sentences[document + 1]):
            end = sentence_ends[sentence]
            while at < end:
                cost = between if size and fresh else 0
                if size and size + cost + end - at > room:  # close
                    n += 1
                    starts[n] = used
                    size, fresh = 0, True
                    continue
                last = min(end, at + room)
                if fresh:
                    begins[used], used = at, used + 1
                    size += cost
                    fresh = False
                ends[used - 1] = last
                size += last - at
                at = last
    if size:
        n += 1
        starts[n] = used
    return n, used


def gather(shard: PackedShard, layout: Layout, which: NDArray[np.int64], frame: Frame) -> Gathered:
    """Copy the tokens of instances out of their shard, with special tokens."""
    segments = layout.starts[which + 1] - layout.starts[which]
    sizes = np.zeros(len(which), np.int64)
    _sizes(layout.starts, layout.begins, layout.ends, which, sizes)
    sizes += len(frame.head) + len(frame.tail) + len(frame.between) * (segments - 1)
    offsets = running(sizes)
    total = int(offsets[-1])
    gathered = Gathered(
        np.empty(total, np.int32),
        np.empty(total, np.uint8),
        np.empty(total, np.uint8),
        offsets,
    )
    edges = [np.array(edge, np.int32) for edge in (frame.head, frame.between, frame.tail)]
    _gather(
        shard.ids, shard.marks, layout.starts, layout.begins, layout.ends, which, *edges, frame.kinds[0], frame.kinds[1],
        gathered.ids, gathered.marks, gathered.kinds, offsets,
    )  # fmt: skip
    return gathered


@njit(nogil=True, cache=True)
def _sizes(starts, begins, ends, which, sizes):
    for k in range(len(which)):
        for segment in range(starts[which[k]], starts[which[k] + 1]):
            sizes[k] += ends[segment] - begins[segment]


@njit(nogil=True, cache=True)
def _gather(
    ids, marks, starts, begins, ends, which, head, between, tail, first_kind, other_kind,
    out_ids, out_marks, kinds, offsets,
):  # fmt: skip
    for k in range(len(which)):
        at = offsets[k]
        first, last = starts[which[k]], starts[which[k] + 1]
        for segment in range(first, last):
            edge = head if segment == first else between
            for i in edge:
                out_ids[at], out_marks[at] = i, 128
                # The special token after the first text has its type.
                kinds[at] = first_kind if segment <= first + 1 else other_kind
                at += 1
            for i in range(begins[segment], ends[segment]):
                out_ids[at], out_marks[at] = ids[i], marks[i]
                kinds[at] = first_kind if segment == first else other_kind
                at += 1
        for i in tail:
            out_ids[at], out_marks[at] = i, 128
            kinds[at] = first_kind if last <= first + 1 else other_kind
            at += 1
