"""More text by resampling: the law of new words holds in what is written, and the same seed gives the same bytes."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from eval.forms import Text
from eval.heaps import fitted, grow, write_sized
from koktok.count import count_words, words_of


def drawn_lines(n: int) -> list[str]:
    """Lines of words that are as often as Zipf's law says, and as many as Heaps' law says."""
    chance = np.random.default_rng(7)
    ranks = chance.zipf(1.35, size=12 * n) % 2_000_000
    endings = ["은", "에서", "하다", "를", "에게는", ""]

    def word(rank: int) -> str:
        if rank % 17 == 3:
            return f"x{rank}"
        stem = "".join(chr(0xAC00 + 28 * (rank // 399**i % 399)) for i in range(2 + (rank > 399)))
        return stem + endings[rank % len(endings)]

    words = [word(int(rank)) for rank in ranks]
    return [" ".join(words[i : i + 12]) for i in range(0, len(words), 12)]


LINES = drawn_lines(4000)


def test_a_text_is_its_words() -> None:
    lines = ["나는  집에 ", "", " 집에", "a가 나는"]
    text = Text(("\n".join(lines) + "\n").encode(), 0)
    text.write(file := io.BytesIO())
    assert file.getvalue().decode() == "\n".join(lines) + "\n"
    assert text.nbytes == len(file.getvalue())
    wanted = Counter(word for line in lines for word in words_of(line))
    assert (text.running, text.distinct) == (wanted.total(), len(wanted))
    assert sorted(text.times().tolist()) == sorted(wanted.values())


def test_heaps_law_holds_in_what_is_written(tmp_path: Path) -> None:
    size = len("\n".join(LINES).encode())
    file = tmp_path / "more.txt"
    table = write_sized(LINES, 6 * size, file)
    k, b = fitted(Text(file.read_bytes(), 0))
    _, wanted_b = fitted(Text(("\n".join(LINES) + "\n").encode(), 0))
    found = count_words(file.read_text(encoding="utf-8").splitlines())
    base = count_words(LINES)
    law = len(base) * (found.total / base.total) ** wanted_b
    assert len(found) == pytest.approx(law, rel=0.03)
    # The exponent from the base to the whole, counted anew; and the one inside the whole, whose parts overlap in words.
    assert np.log(len(found) / len(base)) / np.log(found.total / base.total) == pytest.approx(wanted_b, abs=0.02)
    assert b == pytest.approx(wanted_b, abs=0.12)
    assert k > 0
    running, _, distinct, once = (cell.strip().replace(",", "") for cell in table[-1].split("|")[2:6])
    assert (int(running), int(distinct)) == (found.total, len(found))
    assert float(once) == pytest.approx((found.n == 1).mean(), abs=0.001)
    assert abs(file.stat().st_size / (6 * size) - 1) < 0.02


def test_the_share_of_words_that_come_once_stays_near_what_it_was() -> None:
    text, _ = grow(LINES, 8 * len("\n".join(LINES).encode()))
    base = count_words(LINES)
    assert (text.times() == 1).mean() == pytest.approx((base.n == 1).mean(), abs=0.08)


def test_text_that_is_only_repeated_has_no_new_words() -> None:
    """What the law is there for: the same drawing without new forms falls behind it."""
    text = Text(("\n".join(LINES) + "\n").encode(), 0)
    before = text.distinct
    text.draw(3 * text.lines, np.zeros(text.distinct, np.float32), np.zeros(1, np.int32))
    assert text.distinct == before
    text.write(file := io.BytesIO())
    assert len(count_words(file.getvalue().decode().splitlines())) == before


def test_the_seed_decides_every_byte(tmp_path: Path) -> None:
    written = []
    for seed in (0, 0, 1):
        write_sized(LINES[:500], 100_000, tmp_path / "a.txt", seed)
        written.append((tmp_path / "a.txt").read_bytes())
    assert written[0] == written[1] != written[2]


def test_new_forms_stood_nowhere_and_words_without_hangul_keep_their_kind() -> None:
    lines = [f"w{i} 토끼{chr(0xAC00 + 28 * i)}에서 {i} 가 ?" for i in range(300)]
    text = Text(("\n".join(lines) + "\n").encode(), 3)
    known = set(count_words(lines).words)
    once = np.flatnonzero(text.times() == 1).astype(np.int32)
    chances = np.zeros(text.distinct, np.float32)
    chances[once] = 1
    text.draw(300, chances, once)
    text.write(file := io.BytesIO())
    more = file.getvalue().decode().split("\n")[300:-1]
    assert len(more) == 300
    fresh = [word for line in more for word in words_of(line) if word not in known]
    assert len(fresh) == len(set(fresh)) > 500
    assert {word.strip()[0] for word in fresh if word.strip().isascii()} <= set("abcdefghijklmnopqrstuvwxyz0123456789")


def test_less_than_there_is_is_a_part(tmp_path: Path) -> None:
    assert write_sized(LINES, 1000, tmp_path / "a.txt") == []
    text = (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert "\n".join(LINES).startswith(text.rstrip("\n"))
    assert 1000 <= len(text.encode()) < 1300
