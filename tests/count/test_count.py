"""Counting: words join back to the line, and a count over shards equals the whole (laws 8 and 11)."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text

from koktok.count import Counts, count_words, words_of
from koktok.count.counting import read
from koktok.text.sources import Source

lines_of_text = st.lists(korean_text().map(lambda text: text.replace("\n", " ")), max_size=8)


@given(korean_text())
def test_words_join_back_to_the_line(line: str) -> None:
    assert "".join(words_of(line)) == line


@given(lines_of_text, st.integers(min_value=0, max_value=8))
def test_shards_merge_to_the_whole_in_any_order(lines: list[str], at: int) -> None:
    left, right = count_words(lines[:at]), count_words(lines[at:])
    whole = count_words(lines)
    assert left + right == whole == right + left
    assert (left + right).digest() == whole.digest()


def test_words_are_in_code_point_order_and_at_least_filters() -> None:
    counts = Counts.from_mapping({"힣": 1, "가": 3, " 가": 2})
    assert counts.words == (" 가", "가", "힣")
    assert counts.at_least(2).as_dict() == {" 가": 2, "가": 3}
    assert counts.total == 6


def test_weights_multiply_and_round(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("가 가 가\n가 나\n", encoding="utf-8")

    def weighed(weight: float) -> dict[str, int]:
        return read([Source.of(tmp_path / "a.txt", weight=weight)], holdout=0.0).train.as_dict()

    assert weighed(2.0) == {"가": 4, " 가": 4, " 나": 2}
    assert weighed(0.5) == {"가": 1, " 가": 1}  # halves to even
