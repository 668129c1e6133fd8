"""Whether two tokenizers give the same ids for the same lines: the one loop of verify, prune, export and the benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

Row = Sequence[int] | None
"""The ids of a line; None if a tokenizer refuses it."""

Ids = Callable[[Sequence[str]], Sequence[Row]]
"""Lines to their ids."""

EXAMPLES: Final = 3
_BATCH: Final = 1000


class Differing(NamedTuple):
    """A line with different ids."""

    line: str
    a: Row
    b: Row


@dataclass
class Agreement:
    """The number of compared lines, the number with different ids, and some of those."""

    checked: int = 0
    differing: int = 0
    examples: list[Differing] = field(default_factory=list)


def agreement(rows: Iterable[tuple[str, Row, Row]], *, examples: int = EXAMPLES) -> Agreement:
    """Compare two rows of ids of each line."""
    result = Agreement()
    for line, a, b in rows:
        result.checked += 1
        if a is None or b is None or [*a] != [*b]:
            result.differing += 1
            if len(result.examples) < examples:
                result.examples.append(Differing(line, a, b))
    return result


def agree(a: Ids, b: Ids, lines: Iterable[str], *, examples: int = EXAMPLES) -> Agreement:
    """Compare the ids that `a` and `b` give to each line.

    Examples
    --------
    >>> result = agree(lambda lines: [[len(line)] for line in lines], lambda lines: [[2] for _ in lines], ["가나", "다"])
    >>> result.checked, result.differing, result.examples
    (2, 1, [Differing(line='다', a=[1], b=[2])])
    """
    waiting = iter(lines)
    batches = iter(lambda: list(islice(waiting, _BATCH)), [])
    rows = (row for batch in batches for row in zip(batch, a(batch), b(batch), strict=True))
    return agreement(rows, examples=examples)
