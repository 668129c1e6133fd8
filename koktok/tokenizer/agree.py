"""Whether two tokenizers give the same ids to the same lines: the one loop behind verify, prune, export and the benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

Row = Sequence[int] | None
"""The ids of a line; None where a tokenizer refuses it."""

Ids = Callable[[Sequence[str]], Sequence[Row]]
"""Lines to their ids."""

EXAMPLES: Final = 3
_BATCH: Final = 1000


class Differing(NamedTuple):
    """A line with other ids."""

    line: str
    a: Row
    b: Row


@dataclass
class Agreement:
    """How many lines were compared, how many have other ids, and some of those."""

    checked: int = 0
    differing: int = 0
    examples: list[Differing] = field(default_factory=list)


def parting(a: Row, b: Row) -> int:
    """The first token that is another.

    Examples
    --------
    >>> parting([1, 2, 3], [1, 2, 4]), parting([1], [1, 2]), parting(None, [1])
    (2, 1, 0)
    """
    a, b = a or (), b or ()
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def agreement(rows: Iterable[tuple[str, Row, Row]], *, examples: int = EXAMPLES) -> Agreement:
    """Compare two rows of ids of each line."""
    found = Agreement()
    for line, a, b in rows:
        found.checked += 1
        if a is None or b is None or [*a] != [*b]:
            found.differing += 1
            if len(found.examples) < examples:
                found.examples.append(Differing(line, a, b))
    return found


def agree(a: Ids, b: Ids, lines: Iterable[str], *, examples: int = EXAMPLES) -> Agreement:
    """Compare the ids that `a` and `b` give to each line.

    Examples
    --------
    >>> found = agree(lambda lines: [[len(line)] for line in lines], lambda lines: [[2] for _ in lines], ["가나", "다"])
    >>> found.checked, found.differing, found.examples
    (2, 1, [Differing(line='다', a=[1], b=[2])])
    """
    waiting = iter(lines)
    batches = iter(lambda: list(islice(waiting, _BATCH)), [])
    return agreement(
        (row for batch in batches for row in zip(batch, a(batch), b(batch), strict=True)), examples=examples
    )
