"""More text than there is, with the new words that so much text would have: resampling that keeps Heaps' law.

    python -m eval.heaps DATA OUT [--mb 1000] [--seed 0]

Text that is merely repeated has no new words, and a count of it stops growing; real text has D(N) = K N^b distinct words
(Heaps 1978). How it is made here:

1. b is fitted to DATA/text, blocks of 50 lines in an order chosen by hash: log D against log N from a quarter of the text
   to all of it, where the exponent is that of large text (it falls with N).
2. The text is doubled until it is long enough: lines are drawn with replacement from all lines so far, so that words recur
   in proportion to how often they stand there already (Simon's process), in their sentences.
3. In the drawn lines as many tokens as the law wants, D(2N) - D(N), become forms that stood nowhere: a share `ONCE` of
   them where a word stood that came once so far, the others where one stood that came 2 to 9 times. With that the share of
   words that come once stays where it is in real text (.71 at 77 MB), which decides how much a minimum count leaves out.
4. A new form is a recombination: the stem of the word that it replaces and the ending of another rare one (an ending is
   its longest suffix of up to 3 syllables among the 500 most frequent by distinct words); where that form is known, the
   first two syllables of a third word go before it, until it is new. Words without Hangul change one character to another
   of their kind.

The table printed at the end compares what was wanted with what came out.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np

from koktok.count.rows import Rows
from koktok.count.shards import Shards

ONCE = 0.6
"""Share of the new forms that replace a word that came once; by trial, see the table."""

ENDINGS = 500
_HANGUL = re.compile("[가-힣]{2,}")


def base_lines(folder: Path) -> list[str]:
    """All lines of DATA/text, blocks of 50 in an order chosen by hash, so that every part is like the whole."""
    blocks: list[tuple[bytes, list[str]]] = []
    for path in sorted((folder / "text").glob("*.txt*")):
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in file if line.strip()]
        blocks += [
            (hashlib.sha256(f"{path.name}:{i}".encode()).digest(), lines[i : i + 50]) for i in range(0, len(lines), 50)
        ]
    return [line for _, block in sorted(blocks, key=lambda pair: pair[0]) for line in block]


def counted(lines: list[str]) -> Rows:
    """Rows of all words of some lines."""
    from koktok.count.engine import total

    with Shards() as shards:
        batches = (lines[i : i + 1000] for i in range(0, len(lines), 1000))
        return total(shards.count(batches, name="lines")[0])


def fitted(lines: list[str]) -> tuple[float, float]:
    """K and b of Heaps' law, from a quarter of the lines to all of them."""
    points = []
    for share in (0.25, 0.35, 0.5, 0.7, 1.0):
        rows = counted(lines[: int(len(lines) * share)])
        points.append((np.log(float(rows.n.sum())), np.log(len(rows))))
    b, k = np.polyfit(*np.array(points).T, 1)
    return float(np.exp(k)), float(b)


class Forms:
    """New words out of old ones."""

    def __init__(self, words: list[str], chance: random.Random) -> None:
        self.chance = chance
        self.known = {hash_of(word) for word in words}
        suffixes: Counter[str] = Counter()
        for word in words[:: max(1, len(words) // 400_000)]:
            body = word.strip(" ")
            if _HANGUL.fullmatch(body):
                suffixes.update(body[-n:] for n in (1, 2, 3) if n < len(body))
        self.endings = {suffix for suffix, _ in suffixes.most_common(ENDINGS)}

    def parts(self, body: str) -> tuple[str, str]:
        """Stem and ending."""
        for n in (3, 2, 1):
            if n < len(body) and body[-n:] in self.endings:
                return body[:-n], body[-n:]
        return body, ""

    def new(self, word: str, others: list[str]) -> str:
        """A form that stood nowhere, in the place of `word`."""
        body = word.lstrip(" ")
        spaces = word[: len(word) - len(body)]
        if not _HANGUL.fullmatch(body):
            made = body
            for _ in range(20):
                i = self.chance.randrange(len(body)) if body else 0
                made = made[:i] + self._kin(made[i : i + 1]) + made[i + 1 :]
                if self._take(spaces + made):
                    return spaces + made
            return word
        stem, _ = self.parts(body)
        for attempt in range(12):
            _, ending = self.parts(self.chance.choice(others).strip(" "))
            if attempt > 3:
                stem = self.chance.choice(others).strip(" ")[:2] + stem[-3:]
            made = spaces + stem + ending
            if self._take(made):
                return made
        return word

    def _take(self, form: str) -> bool:
        key = hash_of(form)
        if key in self.known:
            return False
        self.known.add(key)
        return True

    def _kin(self, char: str) -> str:
        for first, last in ("az", "AZ", "09", "가힣", "ㄱㅣ"):
            if first <= char <= last:
                if first == "가":
                    # Another syllable that text has: one in eight of all code points, by the first consonant and vowel.
                    code = ord(char) - 0xAC00
                    return chr(0xAC00 + code // 28 * 28 + self.chance.choice((0, 1, 4, 8, 16, 17, 21)))
                return chr(self.chance.randint(ord(first), ord(last)))
        return char


def hash_of(word: str) -> int:
    """64 bits that are the same in every process."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")


def grow(lines: list[str], size: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Lines of about `size` bytes, and the rows of the table that compares wanted and made."""
    from koktok.count import words_of

    k, b = fitted(lines)
    chance = random.Random(seed)
    rows = counted(lines)
    forms = Forms(list(rows), chance)
    have = sum(len(line.encode()) + 1 for line in lines)
    table = [
        f"Heaps: D = {k:.1f} N^{b:.3f}, fitted on {int(rows.n.sum()):,} words",
        "",
        "| MB | running | wanted | made | once |",
    ]
    table.append("|---|---|---|---|---|")
    table.append(f"| {have / 1e6:.0f} | {int(rows.n.sum()):,} | | {len(rows):,} | {np.mean(rows.n == 1):.3f} |")
    lines = list(lines)
    first = len(rows) / float(rows.n.sum()) ** b
    while have < size:
        share = min(1.0, (size - have) / have)
        n = int(rows.n.sum())
        wanted = first * (n * (1 + share)) ** b
        once = [word for word, one in zip(rows, (rows.n == 1).tolist(), strict=True) if one]
        some = [word for word, few in zip(rows, ((rows.n > 1) & (rows.n < 10)).tolist(), strict=True) if few]
        mass = int(rows.n[(rows.n > 1) & (rows.n < 10)].sum())
        need = wanted - len(rows)
        chances = dict.fromkeys(once, min(1.0, ONCE * need / (len(once) * share)))
        chances.update(dict.fromkeys(some, min(1.0, (1 - ONCE) * need / (mass * share))))
        drawn: list[str] = []
        get, rand = chances.get, chance.random
        for _ in range(int(len(lines) * share)):
            line = lines[int(rand() * len(lines))]
            words = words_of(line)
            changed = False
            for i, word in enumerate(words):
                p = get(word)
                if p is not None and rand() < p:
                    words[i] = forms.new(word, once)
                    changed = True
            drawn.append("".join(words) if changed else line)
        lines += drawn
        del once, some, chances
        have += sum(len(line.encode()) + 1 for line in drawn)
        rows = counted(lines)
        table.append(
            f"| {have / 1e6:.0f} | {int(rows.n.sum()):,} | {int(wanted):,} | {len(rows):,} | {np.mean(rows.n == 1):.3f} |"
        )
        print(table[-1], flush=True)
    return lines, table


def part(lines: list[str], size: int) -> list[str]:
    """The first lines of about `size` bytes."""
    ends = np.cumsum([len(line.encode()) + 1 for line in lines])
    return lines[: int(np.searchsorted(ends, size)) + 1]


def sized(lines: list[str], size: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Lines of about `size` bytes: a part where there are so many, grown where not."""
    whole = sum(len(line.encode()) + 1 for line in lines)
    return (part(lines, size), []) if size <= whole else grow(lines, size, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", help="folder with text/")
    parser.add_argument("out", help="file to write")
    parser.add_argument("--mb", type=float, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lines, table = sized(base_lines(Path(given.data)), int(given.mb * 1e6), given.seed)
    with Path(given.out).open("w", encoding="utf-8") as file:
        for i in range(0, len(lines), 10_000):
            file.write("\n".join(lines[i : i + 10_000]) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    main()
