"""The matching function that training and doctor share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.text.blocklist import PERSONAL, PERSONAL_DEFAULT, Blocklist

GOLDEN = """
 010-0000-0000        | telephone
01000000000           | telephone
010-0000              | telephone
+82 10-0000-0000      | telephone
０１０-００００-００００ | telephone
02-000-0000           | telephone
031) 000-0000         | telephone
900101-1              | registration
900101-1234567        | registration
900101-1******        | registration
9001011234567         | registration
gildong.hong@example  | email
홍길동77              | name_number
김철수_2001           | name_number
 010                  |
010-                  |
 1588-0000            |
2031-04-17            |
1,234,567             |
1234567890            |
901301-1234567        |
 @학교                |
 이미지 12            |
제2031호              |
"""


@pytest.mark.parametrize(
    "row", [row.split("|") for row in GOLDEN.strip("\n").splitlines()], ids=lambda row: row[0].strip()
)
def test_personal_data_as_the_golden_table_says(row: list[str]) -> None:
    found = Blocklist(personal=PERSONAL).refuses(row[0].rstrip())
    assert found == (f"personal data: {row[1].strip()}" if row[1].strip() else None)


def test_each_kind_of_line() -> None:
    blocked = Blocklist(["멍청", "!멍청이꽃", "=바보", "/ㅅ+ㅂ/", "# 멍", "", "=", "Spam"])
    assert blocked.refuses("이멍청한") == "blocked word 멍청"
    assert blocked.refuses("멍청이꽃") is None
    assert blocked.refuses("멍청이꽃 멍청") == "blocked word 멍청"
    assert blocked.refuses(" 바보") == "blocked word 바보"
    assert blocked.refuses("바보짓") is None
    assert blocked.refuses("ㅅㅅㅂ") == "blocked pattern /ㅅ+ㅂ/"
    assert blocked.refuses(" SPAM!") == "blocked word spam"
    assert blocked.refuses(" ") is None
    assert blocked.refuses("") is None
    assert Blocklist(["/\\S{3}/"]).refuses("a b") is None  # folding the pattern would make it \s
    assert Blocklist(["바보"]).refuses("바보") == "blocked word 바보"  # NFD


def test_the_list_is_a_set(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("\ufeff나\n가\n# 다\n", encoding="utf-8")
    loaded = Blocklist.load(path, ["email"])
    assert loaded.lines == ("가", "나")
    assert loaded.digest() == Blocklist(["가", "나", "가"], ["email"]).digest()
    assert loaded.digest() != Blocklist(["가", "나"]).digest()
    assert not Blocklist()
    assert Blocklist(personal=PERSONAL_DEFAULT)


@given(st.text(), st.lists(st.text(alphabet="가나다 a", min_size=1, max_size=3), max_size=4))
def test_a_piece_is_refused_exactly_when_it_holds_a_word(piece: str, words: list[str]) -> None:
    blocked = Blocklist(words)
    kept = [word.strip() for word in words if word.strip()]
    import unicodedata

    folded = unicodedata.normalize("NFC", piece).casefold()
    assert (blocked.refuses(piece) is not None) == any(word in folded for word in kept)
