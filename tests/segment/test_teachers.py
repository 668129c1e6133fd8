"""Analysers beside Kiwi and MeCab: one tag set, forms laid on the surface, what is missing said with the line to type."""

from __future__ import annotations

import locale
import shutil
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.errors import AnalyserError, MissingExtraError, UsageError
from koktok.pipeline.train import train
from koktok.recipe import Recipe
from koktok.segment import Policy, Segmenter, segmenter_for
from koktok.segment.align import laid
from koktok.segment.konlpy import KONLPY, TAGS, KonlpySegmenter
from koktok.segment.policy import SEJONG_TAGS, cuts_of
from koktok.segment.workers import in_subprocess
from koktok.tokenizer.open import load

MORPHEMES = Policy.parse("morphemes")
needs_konlpy = pytest.mark.skipif(
    find_spec("konlpy") is None or shutil.which("java") is None,
    reason="pip install 'koktok[konlpy]', apt-get install openjdk-17-jre-headless",
)
needs_soynlp = pytest.mark.skipif(find_spec("soynlp") is None, reason="pip install 'koktok[soynlp]'")

GOLDEN = """
okt 학교에서는 학교|에서는
okt 사람들이 사람|들|이
okt 먹었습니다 먹었습니다
komoran 학교에서는 학교|에서|는
komoran 했다 했|다
komoran 아름다운 아름다운
komoran 공부하는 공부|하|는
kkma 먹었습니다 먹|었|습니다
kkma 학교에서는 학교|에서|는
kkma 갔겠지만 갔|겠|지만
hannanum 공부하는 공부|하|는
hannanum 대한민국의 대한민국|의
hannanum 도와주었다 도와주|었|다
"""


def cut(word: str, segmenter: Segmenter) -> str:
    (morphemes,) = segmenter.analyse([word])
    ends = [0, *(c.offset for c in cuts_of(word, morphemes, MORPHEMES)), len(word)]
    return "|".join(word[a:b] for a, b in pairwise(ends))


@needs_konlpy
@pytest.mark.slow
def test_golden_cuts_of_konlpy_in_processes_of_their_own() -> None:
    for name in KONLPY:
        workers = in_subprocess(name, processes=1)
        try:
            rows = [row.split() for row in GOLDEN.split("\n")[1:-1] if row.startswith(name + " ")]
            assert [cut(word, workers) for _, word, _ in rows] == [wanted for *_, wanted in rows]
            assert not workers.quarantined
        finally:
            workers.close()


@needs_konlpy
@pytest.mark.slow
def test_a_vocabulary_is_trained_from_komoran_and_the_analyser_is_a_row(tmp_path: Path, mini: list[str]) -> None:
    made = train(
        mini[:200], Recipe.build({"train": {"vocab_size": 1500}, "segment": {"segmenter": "komoran"}}), cache=tmp_path
    )
    assert len(made.segmented.offset) > 500
    row = load("komoran").encode_lines(["학교에서는 했다"])
    assert row.spans.tolist() == [[0, 2], [2, 4], [4, 5], [6, 7], [7, 8]]


def test_every_tag_is_read_as_one_of_sejong() -> None:
    assert {new for table in TAGS.values() for new in table.values()} <= set(SEJONG_TAGS)


def as_konlpy(monkeypatch: pytest.MonkeyPatch, told: dict[str, list[tuple[str, str]]]) -> None:
    """In place of konlpy, analysers that are a table, so that this runs without Java."""
    konlpy, jvm, tag = ModuleType("konlpy"), ModuleType("konlpy.jvm"), ModuleType("konlpy.tag")
    konlpy.__version__, konlpy.jvm, konlpy.tag = "0", jvm, tag
    jvm.init_jvm = lambda **_: None
    tag.Hannanum = tag.Komoran = tag.Kkma = lambda: SimpleNamespace(pos=lambda word, **_: told[word])
    for module in (konlpy, jvm, tag):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "jpype", SimpleNamespace(isJVMStarted=lambda: False))
    monkeypatch.setattr("koktok.segment.konlpy.version", lambda _: "0")
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/java")


def test_tags_and_forms_of_an_analyser_become_morphemes(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "공부하는": [("공부", "NC"), ("하", "XS"), ("는", "ET")],
        "학생들이": [("학생", "NC"), ("들", "XS"), ("이", "JC")],
    }
    as_konlpy(monkeypatch, told)
    study, students = KonlpySegmenter("hannanum").analyse([*told])
    assert [(m.start, m.end, m.tag) for m in study] == [(0, 2, "NNG"), (2, 3, "XSV"), (3, 4, "ETM")]
    assert [m.tag for m in students] == ["NNG", "XSN", "JKB"]
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(AnalyserError) as raised:
        KonlpySegmenter("okt")
    assert raised.value.hint == "apt-get install openjdk-17-jre-headless"


def test_what_an_analyser_stumbles_on_is_not_shown_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"※으로": [("※", "SW"), ("으로", "JKB")], "와※※※※": [("와", "IC"), ("※" * 4, "SW")]}
    told["와하하하하"] = [("와", "IC"), ("하하하하", "IC")]
    as_konlpy(monkeypatch, told)
    for name in ("komoran", "kkma"):
        assert cut("👇으로", KonlpySegmenter(name)) == "👇|으로"
        assert cut("와하하하하", KonlpySegmenter(name)) == "와|하하하하"


@needs_konlpy
@pytest.mark.slow
@pytest.mark.parametrize("name", ["komoran", "kkma"])
def test_emoji_and_repeated_syllables_cost_no_word(name: str) -> None:
    workers = in_subprocess(name, processes=1, timeout=30)
    try:
        assert cut("라이브러리(🤗", workers) == "라이브러리|(|🤗"
        list(workers.analyse([unit * 25 for unit in ("는", "나가", "아이", "는이나")]))
        assert not workers.quarantined
    finally:
        workers.close()


def test_khaiii_is_asked_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    morphs = [
        SimpleNamespace(lex="가", tag="VV"),
        SimpleNamespace(lex="았", tag="EP"),
        SimpleNamespace(lex="다", tag="EF"),
    ]
    told = {"갔다": morphs, "ㅋㅋ": [SimpleNamespace(lex="ㅋㅋ", tag="SWK")]}
    api = SimpleNamespace(version=lambda: "0.4", analyze=lambda word: [SimpleNamespace(morphs=told[word])])
    monkeypatch.setitem(sys.modules, "khaiii", SimpleNamespace(KhaiiiApi=lambda: api))
    monkeypatch.setattr("locale.setlocale", lambda *_: "C")
    khaiii = segmenter_for("khaiii")
    assert khaiii.signature() == "khaiii:0.4"
    assert cut("갔다", khaiii) == "갔|다"
    assert [m.tag for m in next(iter(khaiii.analyse(["ㅋㅋ"])))] == ["SW"]


def test_what_khaiii_lacks_is_said_before_it_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> str:
        raise RuntimeError("fail to find library: libkhaiii.so")

    def setlocale(_: int, wanted: str | None = None) -> str:
        if wanted not in (None, "C", *there):
            raise locale.Error("unsupported locale setting")
        return "C"

    there: list[str] = []
    monkeypatch.setattr("locale.setlocale", setlocale)
    monkeypatch.setitem(sys.modules, "khaiii", SimpleNamespace(KhaiiiApi=fail))
    with pytest.raises(AnalyserError, match=r"requires the locale en_US\.UTF-8") as raised:
        segmenter_for("khaiii")
    assert "localedef" in raised.value.hint
    there.append("en_US.UTF-8")
    with pytest.raises(AnalyserError, match=r"could not be loaded: fail to find library") as raised:
        segmenter_for("khaiii")
    assert "share/khaiii" in raised.value.hint
    monkeypatch.setitem(sys.modules, "khaiii", None)
    with pytest.raises(AnalyserError, match="khaiii is not installed"):
        segmenter_for("khaiii")


@pytest.mark.parametrize("name", ["okt", "soynlp"])
def test_what_is_not_installed_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = "konlpy" if name == "okt" else "soynlp"
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.tokenizer", None)
    with pytest.raises(MissingExtraError) as raised:
        segmenter_for(name, counts={"집에": 1})
    assert f"koktok[{library}]" in raised.value.hint
    for other in (name, "khaiii"):
        with pytest.raises(UsageError, match="Kiwi only"):
            segmenter_for(other, user_dictionary="words.tsv", counts={})


@needs_soynlp
def test_soynlp_learns_from_the_words_of_the_training() -> None:
    stems, endings = ("도서관", "박물관", "미술관"), ("에서", "에는", "으로", "까지")
    counts = {" " + stem + ending: 5 for stem in stems for ending in endings}
    soynlp = segmenter_for("soynlp", counts=counts)
    assert cut("도서관에서", soynlp) == "도서관|에서"
    assert cut("미술관으로", soynlp) == "미술관|으로"
    assert soynlp.signature() == segmenter_for("soynlp", counts=dict(reversed(counts.items()))).signature()
    assert soynlp.signature() != segmenter_for("soynlp", counts={" 도서관에서": 9}).signature()
    with pytest.raises(UsageError, match="learns from the words of a training"):
        segmenter_for("soynlp")


@needs_soynlp
def test_a_vocabulary_is_trained_from_soynlp(mini: list[str]) -> None:
    recipe = Recipe.build({"train": {"vocab_size": 3000}, "segment": {"segmenter": "soynlp"}})
    first, second = (train(mini[:300], recipe, cache=False).tokenizer for _ in range(2))
    assert first == second


@given(
    st.text(st.sampled_from("가갔학교다하했"), min_size=1, max_size=5),
    st.lists(st.sampled_from(["가", "았", "다", "하", "학교", "ㄴ"]), max_size=5),
)
def test_what_is_laid_on_a_word_stays_in_it(word: str, forms: list[str]) -> None:
    found = laid(word, [(form, "NNG") for form in forms])
    assert [m.form for m in found] in ([], forms)
    assert all(0 <= m.start <= m.end <= len(word) for m in found)
