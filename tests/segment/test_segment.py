"""Cuts: laws for every segmenter, a golden table for Kiwi, the cache, and the policies."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jamo import j2hcj
from strategies import eojeols, korean_text

from koktok import hangul
from koktok.count import Counts, count_words
from koktok.errors import AnalyserError, InputError, MissingExtraError, UsageError
from koktok.segment import (
    MAX_ANALYSED,
    Policy,
    Segmenter,
    segment_counts,
    segmenter_for,
    text_to_analyse,
    texts_to_analyse,
)
from koktok.segment.cache import BATCH, CachedSegmenter
from koktok.segment.kiwi import KiwiSegmenter
from koktok.segment.policy import CutColumns, Morpheme, Spans, cuts_of, cuts_of_words, kind_of
from koktok.segment.segmented import BoundaryKind, Cut, SegmentedCounts
from koktok.segment.serialized import serialize, spans_of

ALL = Policy.parse("morphemes")


def check_segmenter(segmenter: Segmenter, words: list[str]) -> None:
    """The laws of every segmenter: an answer per word, the same by itself, spans inside the word, pieces that join."""
    together = list(segmenter.analyse(words))
    assert len(together) == len(words)
    for word, morphemes in zip(words, together, strict=True):
        assert list(segmenter.analyse([word])) == [morphemes]
        assert all(0 <= m.start <= m.end <= len(word) and m.tag for m in morphemes)
        cuts = [cut.offset for cut in cuts_of(word, morphemes, ALL)]
        assert cuts == sorted(set(cuts))
        edges = [0, *cuts, len(word)]
        assert "".join(word[a:b] for a, b in pairwise(edges)) == word
        assert all(word[a:b] for a, b in pairwise(edges))


@given(st.lists(eojeols(), max_size=5))
def test_kiwi_keeps_the_laws(kiwi: KiwiSegmenter, words: list[str]) -> None:
    check_segmenter(kiwi, [text for word in words if (text := text_to_analyse(word))])


def test_kiwi_keeps_the_laws_on_mini(kiwi: KiwiSegmenter, mini: list[str]) -> None:
    words = sorted({text for word in count_words(mini).words if (text := text_to_analyse(word))})
    assert len(words) > 5000
    check_segmenter(kiwi, words[::7])


def test_mecab_proves_the_seam() -> None:
    pytest.importorskip("mecab", reason="the extra `mecab` is not installed")
    mecab = segmenter_for("mecab")
    check_segmenter(mecab, ["학교에서는", "예쁜데요", "갔다", "맨손으로", "ㅋㅋㅋ"])
    counts = segment_counts(Counts.from_mapping({" 학교에서는": 1, "갔다": 1}), mecab, ALL)
    assert [counts.pieces(i) for i in range(2)] == [[" 학교", "에서", "는"], ["갔", "다"]]
    with pytest.raises(UsageError, match="Kiwi only"):
        segmenter_for("mecab", user_dictionary="words.tsv")


GOLDEN = """
학교에서는      학교|에서|는        josa josa_chain
먹었습니다      먹|었|습니다        eomi eomi_chain
학생이다        학생|이|다          copula copula
갔다            갔|다               eomi_chain
했는데요        했|는데|요          eomi_chain josa
예뻤다          예뻤|다             eomi_chain
공부하는        공부|하|는          derivation eomi
맨손            맨|손               prefix
국어사전        국어|사전           compound
3개             3|개                numeral
먹어보다        먹|어|보|다         eomi auxiliary eomi
집에서.         집|에서|.           josa punctuation
한국어를😀      한국어|를|😀        josa punctuation
tokenizer를     tokenizer|를        josa
"""


@pytest.mark.parametrize("row", [re.split(r"\s{2,}", line.strip()) for line in GOLDEN.strip().splitlines()])
def test_golden_words(kiwi: KiwiSegmenter, row: list[str]) -> None:
    word, pieces, kinds = row
    found = segment_counts(Counts.from_mapping({word: 1}), kiwi, ALL)
    assert "|".join(found.pieces(0)) == pieces
    assert " ".join(cut.kind.label for cut in found.cuts(0)) == kinds


def test_what_an_analyser_is_not_asked() -> None:
    assert text_to_analyse("  hello") == "" == text_to_analyse(" 123")
    assert text_to_analyse(" 가" + "ㅋ" * MAX_ANALYSED) == ""
    assert text_to_analyse("  집에 ") == "집에 "


@given(korean_text(), st.data())
def test_no_cut_inside_a_span(word: str, data: st.DataObject) -> None:
    span = st.tuples(st.integers(0, len(word)), st.integers(0, len(word))).map(sorted)
    spans = data.draw(st.lists(span, max_size=6))
    morphemes = [Morpheme(a, b, "NNG") for a, b in sorted(spans)]
    cuts = {cut.offset for cut in cuts_of(word, morphemes, ALL)}
    expected = {p for a, b in spans if a < b for p in (a, b)} - {p for a, b in spans for p in range(a + 1, b)}
    assert cuts == expected - {0, len(word)}


@given(st.lists(st.one_of(korean_text(), st.text(" 가ㅋa", max_size=2 * MAX_ANALYSED))))
def test_columns_are_stripped_as_words_are(words: list[str]) -> None:
    assert texts_to_analyse(pl.Series(words, dtype=pl.String)).to_list() == [*map(text_to_analyse, words)]


TAGS = ["NNG", "XSN", "XR", "JX", "VCP", "EC", "SF", "MM+EP"]


@st.composite
def analyses(draw: st.DrawFn) -> tuple[str, list[Morpheme]]:
    """A word with spans that touch, overlap, are empty, or leave something out."""
    word = draw(st.one_of(korean_text(), st.sampled_from(["그러하다", "가능성적", "가"])))
    edges = st.integers(0, len(word))
    spans = draw(
        st.one_of(st.sets(edges, max_size=6).map(lambda at: [*pairwise(sorted(at))]), st.lists(st.tuples(edges, edges)))
    )
    return word, [Morpheme(*sorted(span), draw(st.sampled_from(TAGS))) for span in spans]


def cuts_by_definition(word: str, morphemes: list[Morpheme]) -> tuple[Cut, ...]:
    spans = [m for m in morphemes if m.start < m.end]
    cuts = []
    for at in range(1, len(word)):
        before, behind = [m for m in spans if m.end == at], [m for m in spans if m.start == at]
        if (before or behind) and not any(m.start < at < m.end for m in spans):
            first, second = (before or [None])[-1], (behind or [None])[0]
            tags = first.tag.split("+")[-1] if first else "UN", second.tag.split("+")[0] if second else "UN"
            cuts.append(Cut(at, kind_of(*tags, *(word[m.start : m.end] if m else "" for m in (first, second)))))
    return tuple(cuts)


@given(st.lists(analyses(), max_size=5))
def test_words_are_cut_together_as_each_by_itself(words: list[tuple[str, list[Morpheme]]]) -> None:
    texts, morphemes = [word for word, _ in words], [found for _, found in words]
    together = [*cuts_of_words(texts, Spans.of(morphemes), ALL)]
    assert together == [cuts_by_definition(*word) for word in words]
    assert [*cuts_of_words(texts, spans_of([*map(serialize, texts, morphemes)]), ALL)] == together
    assert [*CutColumns.of(together)] == together


@pytest.mark.parametrize(
    ("policy", "pieces"),
    [
        ("none", "학교에서는"),
        ("josa", "학교|에서는"),
        ("inflection", "학교|에서|는"),
        ("josa_chain", "학교에서|는"),
        ("JX", "학교에서|는"),
        ("j,e,vcp,xsv", "학교|에서|는"),
        ("none, jkb", "학교|에서는"),
    ],
)
def test_policies(kiwi: KiwiSegmenter, policy: str, pieces: str) -> None:
    found = segment_counts(Counts.from_mapping({"학교에서는": 1}), kiwi, Policy.parse(policy))
    assert "|".join(found.pieces(0)) == pieces


def test_kinds_of_tags() -> None:
    assert kind_of("NNG", "SF") is BoundaryKind.PUNCTUATION
    assert kind_of("NNG", "VX") is BoundaryKind.AUXILIARY
    assert kind_of("SL", "UN") is BoundaryKind.OTHER
    assert kind_of("NNG", "XSN", "구체", "화") is BoundaryKind.SUFFIX
    assert kind_of("NNG", "XSN", "사람", "들") is BoundaryKind.DERIVATION
    assert kind_of("XR", "XSA", "그러", "하") is BoundaryKind.ROOT
    assert kind_of("XR", "XSA", "복잡", "하") is BoundaryKind.DERIVATION
    assert kind_of("NNG", "NNG", "외교", "사") is kind_of("NNP", "NNG", "왕", "궁전") is BoundaryKind.BOUND
    assert kind_of("NNG", "NNG", "문학", "작품") is kind_of("NNG", "NNG") is BoundaryKind.COMPOUND
    assert kind_of("MAG", "VV") is kind_of("MM", "NNG") is kind_of("NNG", "VA") is BoundaryKind.MODIFIER


def test_a_user_dictionary_reaches_kiwi(tmp_path: Path) -> None:
    plain = segmenter_for("kiwi")
    (tmp_path / "words.tsv").write_text("쿠쿠토토\tNNP\t5.0\n", encoding="utf-8")
    taught = segmenter_for("kiwi", user_dictionary=str(tmp_path / "words.tsv"))
    counts = Counts.from_mapping({"쿠쿠토토가": 1})
    assert segment_counts(counts, taught, ALL).pieces(0) == ["쿠쿠토토", "가"]
    assert taught.signature() != plain.signature()


def test_user_dictionaries_of_other_encodings_are_refused(tmp_path: Path) -> None:
    text = "쿠쿠토토\tNNP\t5.0\n"
    for encoding, message in (("cp949", "is not UTF-8"), ("utf-8-sig", "begins with a byte order mark")):
        (tmp_path / "words.tsv").write_text(text, encoding=encoding)
        with pytest.raises(InputError, match=message) as caught:
            segmenter_for("kiwi", user_dictionary=str(tmp_path / "words.tsv"))
        subprocess.run(["bash", "-c", caught.value.hint], check=True)
        assert (tmp_path / "words.tsv.utf8.tsv").read_text(encoding="utf-8") == text


class Counting:
    """A segmenter that notes what it was asked, and can be made to stop in the middle."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.asked: list[str] = []
        self.stop_at = stop_at

    def signature(self) -> str:
        return "counting:1"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        for word in words:
            if self.stop_at is not None and len(self.asked) >= self.stop_at:
                raise KeyboardInterrupt
            self.asked.append(word)
            yield (Morpheme(0, 1, "NNG", "꼴"), Morpheme(1, len(word), "JX", word[1:]))


def test_the_cache_asks_once_and_gives_the_same(tmp_path: Path) -> None:
    words = [f"가{i}" for i in range(50)]
    first = CachedSegmenter(Counting(), tmp_path)
    fresh = list(first.analyse(words))
    again = CachedSegmenter(silent := Counting(), tmp_path)
    assert list(again.analyse(words[::-1])) == fresh[::-1]
    assert (silent.asked, first.asked, first.known, again.asked, again.known) == ([], 50, 0, 0, 50)


class Ahead(Counting):
    """One that reads some words ahead of its answers, as processes do."""

    def __init__(self, ahead: int) -> None:
        super().__init__()
        self.ahead = ahead

    def serialized(self, words: Iterable[str]) -> Iterator[str]:
        stream = iter(words)
        taken = list(islice(stream, self.ahead))
        while taken:
            self.asked.append(taken[0])
            yield f"0 1 NNG {taken.pop(0)}"
            taken += islice(stream, 1)


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from("가나다라마바사"), max_size=12), st.sets(st.sampled_from("가나다라")), st.integers(1, 9)
)
def test_the_cache_keeps_the_order_of_words_for_who_reads_ahead(words: list[str], known: set[str], ahead: int) -> None:
    with TemporaryDirectory() as folder, patch("koktok.segment.cache.BATCH", 3):
        list(CachedSegmenter(Ahead(1), Path(folder)).serialized(sorted(known)))
        cached = CachedSegmenter(inner := Ahead(ahead), Path(folder))
        assert list(cached.serialized(words)) == [f"0 1 NNG {word}" for word in words]
        assert set(inner.asked) == set(words) - known
        assert cached.asked + cached.known == len(words)
        again = CachedSegmenter(silent := Ahead(1), Path(folder))
        assert list(again.serialized(words)) == [f"0 1 NNG {word}" for word in words]
        assert not silent.asked


def test_an_interrupted_run_resumes(tmp_path: Path) -> None:
    words = [f"가{i:06d}" for i in range(BATCH * 2)]
    with pytest.raises(KeyboardInterrupt):
        list(CachedSegmenter(Counting(stop_at=BATCH + 5), tmp_path).analyse(words))
    rest = CachedSegmenter(asked := Counting(), tmp_path)
    assert len(list(rest.analyse(words))) == len(words)
    assert asked.asked == words[BATCH:]


def test_a_broken_cache_is_named(tmp_path: Path) -> None:
    cached = CachedSegmenter(Counting(), tmp_path)
    cached.path.write_bytes(b"this is not a database, though it is long enough to look at" * 40)
    with pytest.raises(AnalyserError, match=r"cannot be used.*\nhint: rm "):
        list(cached.analyse(["가나"]))


@pytest.mark.parametrize(
    "change",
    ["row = '0 2 NNG '", "row = '0 9 JX '", "row = CAST(x'31ff20' AS TEXT)", "row = 7", "row = NULL", "sum = sum + 1"],
)
def test_a_damaged_analysis_is_made_again(change: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    words = [f"가{i}" for i in range(50)]
    first = CachedSegmenter(Counting(), tmp_path)
    fresh = list(first.analyse(words))
    with closing(sqlite3.connect(first.path)) as store, store:
        store.execute(f"UPDATE checked SET {change} WHERE word IN ('가7', '가8')")
    again = CachedSegmenter(asked := Counting(), tmp_path)
    assert list(again.analyse(words)) == fresh
    assert asked.asked == ["가7", "가8"]
    assert "2 damaged analyses" in caplog.text
    assert len(again.damaged) == 2
    caplog.clear()
    assert list(CachedSegmenter(silent := Counting(), tmp_path).analyse(words)) == fresh
    assert (silent.asked, caplog.text) == ([], "")


@given(st.dictionaries(eojeols().filter(len), st.integers(1, 9), max_size=6))
def test_segmented_counts_do_not_depend_on_order(words: dict[str, int]) -> None:
    items = [(word, [Cut(i) for i in range(1, len(word))], n) for word, n in words.items()]
    forward, backward = SegmentedCounts.from_items(items), SegmentedCounts.from_items(items[::-1])
    assert forward.digest() == backward.digest()
    assert list(forward.items()) == sorted(items)
    assert all("".join(forward.pieces(i)) == forward.words[i] for i in range(len(forward)))


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        (" 갔다", " 가|ㅆ|다"),
        ("간다", "가|ㄴ다"),
        ("할", "하|ㄹ"),
        ("했는데", "해|ㅆ|는데"),
        ("예뻤다", "예뻐|ㅆ|다"),
        ("합니다", "하|ㅂ니다"),
        ("고마워", "고마워"),
        ("학교에서", "학교|에서"),
        ("난", "나|ㄴ"),
    ],
)
def test_jamo_are_cut_inside_fused_syllables(kiwi: KiwiSegmenter, word: str, pieces: str) -> None:
    found = segment_counts(Counts.from_mapping({word: 1}), kiwi, ALL, as_jamo=True)
    assert found.words == (hangul.split(word),)
    assert [j2hcj(p) for p in found.pieces(0)] == [j2hcj(hangul.split(p)) for p in pieces.split("|")]


def test_a_missing_extra_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mecab", None)
    with pytest.raises(MissingExtraError, match=r"hint: pip install 'koktok\[mecab\]'"):
        segmenter_for("mecab")
