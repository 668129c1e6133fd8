"""Cleaning: every step takes what it says, counts it, shows it, and nothing depends on where a run was stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import MINI
from hypothesis import given
from hypothesis import strategies as st
from samples import lexicon, styled

from koktok.errors import InputError, MissingExtraError, UsageError
from koktok.instances import Cleaning, write_packed
from koktok.instances.cleaning import Cleaner, Step
from koktok.instances.reading import read, running
from koktok.text.sources import Source

LONG = "우리는 오늘 아침 일찍 일어나서 가까운 산에 올라갔다가 내려왔습니다"


def one(step: Step, lines: list[str], **bounds: float) -> tuple[list[str], Cleaner]:
    clean = Cleaner(Cleaning((step,), **bounds))  # type: ignore[arg-type]
    return clean(lines), clean


@pytest.mark.parametrize(
    ("step", "line", "left"),
    [
        ("html", "봄이 <b>왔다</b>.&nbsp;꽃 &amp; 나비", "봄이 왔다. 꽃 & 나비"),
        ("html", "a < b 이고 c > d 이다, R&D 예산", "a < b 이고 c > d 이다, R&D 예산"),
        ("control", "\ufeff가\x00나\u00ad다\t라\u200d", "가나다 라\u200d"),
        ("personal", "문의는 hong@example.com 으로", None),
        ("personal", "전화 ０１０-１２３４-５６７８ 번", None),
        ("personal", "주민번호 900101-1234567", None),
        ("personal", "2010년 12월 1234명이 왔다", "2010년 12월 1234명이 왔다"),
        ("boilerplate", "Copyright ⓒ 2024 한국일보. All rights reserved.", None),
        ("boilerplate", "무단 전재 및 재배포 금지", None),
        ("boilerplate", "로그인 | 회원가입 | 사이트맵", None),
        ("boilerplate", "홈 > 뉴스 > 사회", None),
        ("boilerplate", "----------", None),
        ("boilerplate", "https://example.com/a/b?c=d", None),
        (
            "boilerplate",
            "홈런을 쳤다. 다음 타자는 검색 엔진을 만든 사람이다.",
            "홈런을 쳤다. 다음 타자는 검색 엔진을 만든 사람이다.",
        ),
        ("boilerplate", "저작권은 창작자의 권리이다", "저작권은 창작자의 권리이다"),
        ("short", "네.", None),
        ("short", LONG, LONG),
    ],
)
def test_a_line_and_what_is_left_of_it(step: Step, line: str, left: str | None) -> None:
    found, clean = one(step, [line], document=0)
    assert found == ([] if left is None else [left])
    taken = clean.taken[step]
    assert (taken.lines > 0) == (left != line)
    assert taken.characters == len(line) - len(left or "")
    assert len(taken.examples) == (left != line)


def test_a_page_is_read_as_one() -> None:
    page = "<html><head><title>제목</title></head>\n<body><div><p>첫 문단이\n둘로 나뉘었다.</p>\n\n<p>둘째.</p></div></body></html>"
    found, clean = one("html", page.split("\n"))
    assert found == ["첫 문단이 둘로 나뉘었다.", "둘째."]
    assert clean.taken["html"].lines == 5


def test_examples_of_personal_data_name_nobody() -> None:
    _, clean = one("personal", ["연락처: kim.younghee@example.co.kr 또는 010-9876-5432"])
    (example,) = clean.taken["personal"].examples
    assert example.startswith("연락처: •")
    assert not any(char.isdigit() or char in "kimexample" for char in example)


def test_near_repetitions_go_and_others_stay() -> None:
    other = "어제 저녁에는 비가 많이 와서 집에서 책을 읽고 음악을 들었다"
    lines = [LONG, other, LONG, f"{LONG}.", LONG.replace(" ", "  "), other.replace("책", "시"), "짧은 줄", "짧은 줄"]
    found, clean = one("repeats", lines)
    assert found[:2] == [LONG, other]
    assert found[-2:] == ["짧은 줄", "짧은 줄"]  # too short to be compared
    assert LONG not in found[1:]
    assert f"{LONG}." not in found
    assert clean.taken["repeats"].lines == len(lines) - len(found)
    # Estimated similarity: at 1 only what is equal but for spaces, case and digits goes.
    strict, _ = one("repeats", lines, alike=1.0)
    assert f"{LONG}." in strict
    assert other.replace("책", "시") in strict
    assert one(
        "repeats",
        ["12월 31일에는 모두 모여서 함께 저녁을 먹기로 했다", "11월 30일에는 모두 모여서 함께 저녁을 먹기로 했다"],
    )[0] == ["12월 31일에는 모두 모여서 함께 저녁을 먹기로 했다"]


def test_the_lines_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from koktok.instances import cleaning

    monkeypatch.setattr(cleaning, "WINDOW", 2)
    lines = [f"{syllable * 30}" for syllable in "가나다라"]
    assert one("repeats", [*lines, lines[0], lines[3]])[0] == [*lines, lines[0]]


def test_whole_documents_go() -> None:
    clean = Cleaner(Cleaning(("short", "language"), line=0))
    assert clean(["English only, and for that reason it is not kept by this step."]) == []
    assert clean(["짧다"]) == []
    assert clean([LONG, "with some English"]) == [LONG, "with some English"]
    told = clean.told()
    assert (told["documents"], told["lines"]) == (3, 4)
    assert {step: told["steps"][step]["documents"] for step in ("short", "language")} == {"short": 1, "language": 1}


@given(lines=st.lists(st.text(max_size=40), max_size=6))
def test_any_text_is_cleaned_and_counted(lines: list[str]) -> None:
    steps = ("html", "control", "personal", "boilerplate", "short", "language")
    clean = Cleaner(Cleaning(steps, document=5))  # type: ignore[arg-type]
    found = clean(lines)
    assert clean.characters == sum(map(len, lines))
    assert all(taken.characters >= 0 and len(taken.examples) <= 5 for taken in clean.taken.values())
    again = Cleaner(Cleaning(steps, document=5))  # type: ignore[arg-type]
    assert again(lines) == found  # a function of the text
    json.dumps(clean.told())


def test_steps_have_names() -> None:
    parsed = Cleaning.parse("short,html")
    assert parsed is not None
    assert parsed.steps == ("html", "short")  # in the order of the table
    every = Cleaning.parse("all")
    assert every is not None
    assert len(every.steps) == 7
    assert Cleaning.parse("none") is None
    with pytest.raises(UsageError, match=r"(?s)the cleaning step `htlm` is not known.*--clean all, none"):
        Cleaning.parse("htlm")
    with pytest.raises(UsageError, match="hangul=2"):
        Cleaning(hangul=2)


def test_without_datasketch(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(MissingExtraError, match=r"(?s)datasketch.*koktok\[clean\]"):
        Cleaner(Cleaning(("repeats",)))


def test_what_was_dropped_stands_in_the_manifest(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text(
        f"{LONG}\nmail@example.com\n\n{LONG}\n\nEnglish again, and nothing else in this line\n", encoding="utf-8"
    )
    cleaning = Cleaning.parse("all")
    made = write_packed(styled("unigram"), Source.of(text), tmp_path / "p", lexicon=lexicon(), cleaning=cleaning)
    assert made.manifest["n_documents"] == 1
    steps = made.manifest["cleaned"]["steps"]
    assert {step: steps[step]["lines"] for step in ("personal", "repeats", "language")} == {
        "personal": 1,
        "repeats": 1,
        "language": 1,
    }
    text.write_text("mail@example.com\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no document"):
        write_packed(styled("unigram"), Source.of(text), tmp_path / "q", lexicon=lexicon(), cleaning=cleaning)
    with pytest.raises(UsageError, match="already exists and holds another"):  # other steps, another folder
        write_packed(styled("unigram"), Source.of(text), tmp_path / "p", lexicon=lexicon())


@pytest.mark.parametrize("by", ["blank", "file", "record"])
@given(lines=st.lists(st.sampled_from(["하나", " 둘 ", "", " ", "셋."]), max_size=12))
def test_the_fast_road_gives_the_same_documents(
    by: str, lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fast.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sources = [Source.of(path, name="a"), Source.of(path, name="b")]
    wanted = [(found.source, found.sentences) for found in read(sources, by=by)]  # type: ignore[arg-type]
    for clean in (None, list):
        found, open_ = [], []
        for number, texts in running(sources, by=by, clean=clean):  # type: ignore[arg-type]
            for text in texts:
                if text:
                    assert text.startswith(" ") == bool(open_)
                    open_.append(text.strip())
                else:
                    found.append((number, open_))
                    open_ = []
        assert not open_
        assert found == wanted


def test_mini_stays_as_it_is() -> None:
    """Steps for pages of the web take little from text that is clean already."""
    clean = Cleaner(Cleaning(("html", "control", "personal", "boilerplate", "repeats", "language")))
    kept = sum(len(clean(document.sentences)) for document in read([Source.of(MINI)]))
    assert kept > 0.97 * clean.lines
