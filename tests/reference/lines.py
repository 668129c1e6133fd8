"""Lines held out of training, and the runs of words in a line, as plain functions."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

from koktok.count import words_of
from koktok.text.documents import is_held

_END = re.compile(r"""[.?!…。]+["'”’)\]」』]*$""")


def split_lines(lines: Iterable[str], *, share: float, block: int = 50, key: str = "") -> Iterator[tuple[bool, str]]:
    """Each line with True where it is held out."""
    for index, line in enumerate(lines):
        if index % block == 0:
            out = is_held(index // block, share, key)
        yield out, line


def runs_of(line: str, *, longest: int = 8) -> Iterator[str]:
    """The runs of a line: cut behind sentence ends, and after `longest` words; they join back to the line.

    >>> list(runs_of("갈 수 있다. 그 사람은"))
    ['갈 수 있다.', ' 그 사람은']
    """
    run: list[str] = []
    for word in words_of(line):
        run.append(word)
        if len(run) == longest or _END.search(word):
            yield "".join(run)
            run = []
    if run:
        yield "".join(run)


def known_parts(run: str, known: Container[str]) -> Iterator[str]:
    """The parts of a run between words that are not known.

    >>> list(known_parts("갈 수 쿠쿠토토 있다.", {"갈", " 수", " 있다."}))
    ['갈 수', ' 있다.']
    """
    part: list[str] = []
    for word in words_of(run):
        if word in known:
            part.append(word)
        elif part:
            yield "".join(part)
            part = []
    if part:
        yield "".join(part)
