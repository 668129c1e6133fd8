"""More text than there is, with as many new words as so much text would have.

    python -m eval.heaps DATA|corpus:bench-ko OUT [--mb 1000] [--power 0.65]

Text that is merely repeated has no new words; real text has D(N) = K N^b distinct words (Heaps 1978). b is fitted to DATA/text, from a
quarter of it to all. Beyond its end, blocks of 50 of its lines are drawn again and again, and at so many places as the law wants
another word stands: with a chance of `NEW` one that stood nowhere, and else the word of an earlier such place, so that words recur
in proportion to how often they stand there already (Simon 1955), and .71 of the distinct ones come once, as in real text. A new word
is the stem of a rare one with another ending. Memory does not grow with the text but for four bytes for each of these places (160 MB at
10 GB), and the same lines give the same bytes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from numba import njit

from eval.texts import BLOCK, base_lines, data_of
from koktok.count import words_of
from koktok.files import write_file
from koktok.hangul import SYLLABLES

NEW = 0.6
"""Chance that a changed place has a word that stood nowhere; then 1 / (2 - NEW) of the new words come once."""

ENDINGS = 400
"""The endings of new words: the commonest last syllables, one or two, by distinct words."""

DRAWN = 2000
"""Blocks that are drawn at once: some 10 MB."""


class Heaps:
    """A text as numbers of words, and the law of its distinct words.

    Examples
    --------
    >>> text = Heaps(["나는 학교에 간다", "학교에서 집에 온다"] * 60)
    >>> text.running, text.distinct, b"".join(text.grown(9000))[:45].decode().split(" ")[0]
    (360, 6, '나는')
    """

    def __init__(self, lines: list[str], power: float | None = None) -> None:
        numbers: dict[str, int] = {}
        rows = [[numbers.setdefault(word, len(numbers)) for word in words_of(line)] for line in lines]
        self.ids = np.fromiter((i for row in rows for i in (*row, -1)), np.int32)  # -1 ends a line
        ends = np.flatnonzero(self.ids < 0) + 1
        self.blocks = np.array([0, *ends[BLOCK - 1 :: BLOCK]])
        if self.blocks[-1] < len(self.ids):
            self.blocks = np.append(self.blocks, len(self.ids))
        self.running, self.distinct = len(self.ids) - len(ends), len(numbers)
        places = [int(len(self.ids) * share) for share in (0.25, 0.35, 0.5, 0.7, 1.0)]
        points = [(place, int(self.ids[:place].max()) + 1) for place in places]
        self.power = float(np.polyfit(*np.log(np.array(points)).T, 1)[0]) if power is None else power
        n = np.bincount(self.ids[self.ids >= 0])
        rare = [word for word, i in numbers.items() if n[i] < 4 and len(word) > 3 and {*word[1:]} <= _SYLLABLES]
        last = Counter(word[-size:] for word in rare for size in (1, 2))
        endings = [ending for ending, _ in last.most_common(ENDINGS)]
        stems = {word[: -2 if word[-2:] in last else -1]: None for word in rare} or dict.fromkeys(numbers)
        self.words, self.stems, self.endings = (_Strings([*some]) for some in (numbers, stems, endings or ["는"]))

    def grown(self, size: int, seed: int = 0):
        """Yield so many bytes of UTF-8, in whole lines and parts of some 10 MB: the text, and what it would go on with."""
        chance = np.random.default_rng(seed)
        whole, forms = size, self.stems.size * self.endings.size
        places, changed, fresh, running = np.zeros(1 << 16, np.int32), 0, 0, 0
        for first in range(0, len(self.blocks) - 1, DRAWN):
            ids = self.ids[self.blocks[first] : self.blocks[min(first + DRAWN, len(self.blocks) - 1)]]
            part = self._spelled(ids)[:size]
            yield part[: part.rfind(b"\n") + 1]
            size -= len(part)
            running += int((ids >= 0).sum())
            if size <= 0:
                return
        n_blocks, length = len(self.blocks) - 1, whole - size
        while size > 0:
            drawn = chance.integers(0, n_blocks, min(DRAWN, 1 + size * n_blocks // length))
            ids = np.concatenate([self.ids[self.blocks[i] : self.blocks[i + 1]] for i in drawn])
            wanted = (
                self.distinct * ((running + int((ids >= 0).sum())) / self.running) ** self.power - self.distinct - fresh
            )
            at = np.flatnonzero((chance.random(len(ids)) < wanted / NEW / len(ids)) & (ids >= 0))
            if changed + len(at) > len(places):
                places = np.append(places, np.zeros(max(len(places), len(at)), np.int32))
            fresh = _change(places, changed, fresh, chance.random((2, len(at))), NEW)
            ids[at] = places[changed : changed + len(at)] + self.distinct
            changed += len(at)
            if fresh > forms:
                raise ValueError(f"only {forms:,} new words can be made of the text")
            part = self._spelled(ids)[:size]
            yield part[: part.rfind(b"\n") + 1]
            size -= len(part)
            running += int((ids >= 0).sum())

    def _spelled(self, ids):
        longest = self.words.longest + self.stems.longest + self.endings.longest + 1
        for room in (40 * len(ids), longest * len(ids)):
            out = np.empty(room, np.uint8)
            words, stems, endings = ((some.data, some.begins) for some in (self.words, self.stems, self.endings))
            if (end := _spell(ids, self.distinct, *words, *stems, *endings, out)) >= 0:
                break
        return out[:end].tobytes()


_STRIDE = 2_147_483_647
"""A prime: multiples of it run through all pairs of a stem and an ending."""

_SYLLABLES = {chr(code) for code in SYLLABLES}


class _Strings:
    def __init__(self, strings: list[str]) -> None:
        spelled = [string.encode() for string in strings]
        self.data = np.frombuffer(b"".join(spelled) or b"\0", np.uint8)
        self.begins = np.cumsum([0, *map(len, spelled)])
        self.size, self.longest = len(spelled), max(map(len, spelled), default=0)


@njit(cache=True)
def _change(places, changed, fresh, chances, new):
    """Number the words of further places, and return how many new ones there are then."""
    for i in range(chances.shape[1]):
        if changed == 0 or chances[0, i] < new:
            places[changed] = fresh
            fresh += 1
        else:
            places[changed] = places[np.int64(chances[1, i] * changed)]
        changed += 1
    return fresh


@njit(cache=True)
def _spell(ids, known, words, word_at, stems, stem_at, endings, ending_at, out):
    """Write words as UTF-8; -1 where there is no room for them."""
    to = 0
    for word in ids:
        if to + 1 > len(out):
            return -1
        if word < 0:
            out[to] = 10
            to += 1
        elif word < known:
            size = word_at[word + 1] - word_at[word]
            if to + size > len(out):
                return -1
            out[to : to + size] = words[word_at[word] : word_at[word + 1]]
            to += size
        else:
            form = (word - known) * _STRIDE % ((len(stem_at) - 1) * (len(ending_at) - 1))
            stem, ending = form // (len(ending_at) - 1), form % (len(ending_at) - 1)
            for data, begin, end in (
                (stems, stem_at[stem], stem_at[stem + 1]),
                (endings, ending_at[ending], ending_at[ending + 1]),
            ):
                if to + end - begin > len(out):
                    return -1
                out[to : to + end - begin] = data[begin:end]
                to += end - begin
    return to


def write_text(lines: list[str], size: int, file: Path, power: float | None = None) -> None:
    """Write so many bytes of some lines: a part of them, or more than there are."""

    def write(fresh: Path) -> None:
        with fresh.open("wb") as out:
            for part in Heaps(lines, power).grown(size):
                out.write(part)

    write_file(file, write)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/, or corpus:bench-ko")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--mb", type=float, default=1000)
    parser.add_argument(
        "--power", type=float, help="b; that of DATA/text by default, which is too high for much more text"
    )
    given = parser.parse_args()
    write_text(base_lines(given.data), int(given.mb * 1e6), given.out, given.power)


if __name__ == "__main__":
    main()
