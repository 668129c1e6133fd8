"""Gold: restored morphemes on the surface, by a table made by hand; the readers; what is masked and counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.errors import InputError, UsageError
from koktok.gold import GoldCorpus, kind_of, read_gold, surface_cuts
from koktok.gold.corpus import word_class

# Word, its morphemes, legal cuts, syllables that hold a border.
CONTRACTIONS = """
먹었다 먹+었+다 1,2 -
했다 하+았+다 1 0
했다 하+였+다 1 0
하여 하+여 1 -
갔다 가+았+다 1 0
갔습니다 가+았+습니다 1 0
봐 보+아 - 0
봤다 보+았+다 1 0
예뻤다 예쁘+었+다 2 1
도와 돕+아 - 1
도와주다 돕+아+주+다 2,3 1
고와서 곱+아서 - 1
간 가+ㄴ - 0
할 하+ㄹ - 0
합니다 하+ㅂ니다 - 0
서울입니다 서울+이+ㅂ니다 2 2
가까운 가깝+ㄴ - 2
가까운 가깝+은 - 2
가까워 가깝+어 - 2
가까우면 가깝+으면 - 2
주운 줍+ㄴ - 1
누웠다 눕+었+다 2 1
몰라 모르+아 - 1
흘러 흐르+어 - 1
불렀다 부르+었+다 2 1
푸르러 푸르+어 2 -
들어 듣+어 1 -
물었다 묻+었+다 1,2 -
지어 짓+어 1 -
사는 살+는 1 -
만든 만들+ㄴ - 1
만듭니다 만들+ㅂ니다 - 1
그런 그렇+ㄴ - 1
그래서 그렇+어서 - 1
그랬다 그렇+었+다 2 1
하얘 하얗+아 - 1
돼 되+어 - 0
됐다 되+었+다 1 0
줘 주+어 - 0
써 쓰+어 - 0
커서 크+어서 - 0
마셔 마시+어 - 1
배웠다 배우+었+다 2 1
여자다 여자+이+다 2 -
학교였다 학교+이+었+다 2,3 2
내가 나+가 1 -
난 나+는 - 0
게 것+이 - 0
건 것+은 - 0
걸 것+을 - 0
가서 가+아서 - 0
가서 가+아+서 1 0
서 서+어 - 0
뵌 뵈+ㄴ - 0
볼까 보+ㄹ까 - 0
간편치 간편+하+지 2 2
않고 않+고 1 -
집에서 집+에서 1 -
"""


@pytest.mark.parametrize("row", CONTRACTIONS.split("\n")[1:-1])
def test_contractions(row: str) -> None:
    form, morphemes, cuts, fused = row.split()
    found = surface_cuts(form, morphemes.split("+"))
    assert [p for p, _ in found.cuts] == [int(p) for p in cuts.split(",") if p != "-"]
    assert sorted({p for p, _ in found.fused}) == [int(p) for p in fused.split(",") if p != "-"]
    assert found.cost < 0.5


def test_the_table_is_long_enough() -> None:
    assert len(CONTRACTIONS.split("\n")) > 50


def test_a_conjoining_final_is_the_same_as_a_compatible_one() -> None:
    assert surface_cuts("간", ["가", "\u11ab"]) == surface_cuts("간", ["가", "ㄴ"])


@given(st.lists(st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=4), min_size=1))
def test_morphemes_that_join_are_cut_where_they_join(morphemes: list[str]) -> None:
    found = surface_cuts("".join(morphemes), morphemes)
    ends = [sum(map(len, morphemes[: k + 1])) for k in range(len(morphemes))]
    assert [p for p, _ in found.cuts] == ends[:-1]
    assert not found.fused
    assert found.cost == 0


@given(
    st.text(st.sampled_from("가갔간돕도와하해었다ㄴ"), min_size=1, max_size=6),
    st.lists(st.text(st.sampled_from("가갔간돕도와하해었다ㄴ"), min_size=1, max_size=3), min_size=1, max_size=5),
)
def test_every_border_is_one_or_the_other_or_at_an_edge(form: str, morphemes: list[str]) -> None:
    found = surface_cuts(form, morphemes)
    assert all(0 < p < len(form) for p, _ in found.cuts)
    assert all(0 <= a <= b <= len(form) for a, b in found.spans)
    assert len(found.cuts) + len(found.fused) <= len(morphemes) - 1
    for p, _ in found.cuts:  # a legal cut is inside no morpheme
        assert not any(a < p < b for a, b in found.spans)


def test_kinds_in_both_tag_sets() -> None:
    assert [kind_of(*pair) for pair in (("ncn", "jco"), ("NNG", "JKO"), ("pvg", "ecs"), ("VV", "EC"))] == [
        "N|J", "N|J", "V|E", "V|E",
    ]  # fmt: skip
    assert kind_of("ep", "ef") == kind_of("EP", "EF") == "E|E"
    assert kind_of("ncn", "jp") == kind_of("NNG", "VCP") == kind_of("NNG", "XSV") == "*|XS/VCP"
    assert kind_of("xsv", "etm") == kind_of("jp", "ef") == "V|E"
    assert kind_of("NNG", "NNG") == "N|N"
    assert kind_of("MAG", "NNG") == "other"
    assert word_class("f") == "F"


CONLLU = """# sent_id = 1
1\t나는\t나+는\tPRON\tnpp+jxt\t_\t3\tnsubj\t_\t_
2\t가지\t가+지\tVERB\tpvg+ecx\t_\t0\troot\t_\t_
3-4\t않았다.\t_\t_\t_\t_\t_\t_\t_\t_
3\t않았다\t않\tAUX\tpx+ep+ef\t_\t2\taux\t_\tOrigLemma=않+았+다|SpaceAfter=No
4\t.\t.\tPUNCT\tsf\t_\t2\tpunct\t_\t_

# sent_id = 2
1\t싶습니다\t싶\tAUX\tpx+ef\t_\t0\troot\t_\t_
2\t1+1\t1+1\tNUM\tnnc\t_\t1\tx\t_\t_
3\t+\t+\tSYM\tsy\t_\t1\tx\t_\t_
"""


def test_conllu_reads_orig_lemma_before_lemma(tmp_path: Path) -> None:
    path = tmp_path / "ko_kaist-x.conllu"
    path.write_text(CONLLU, "utf-8")
    gold = read_gold(path)
    first, second = gold.sentences
    assert first.text == "나는 가지 않았다."
    assert [(c.at, c.kind) for c in first.cuts] == [(1, "N|J"), (4, "V|E"), (7, "V|E"), (8, "E|E")]
    assert gold.human
    assert gold.label == "human"
    assert second.text == "싶습니다 1+1 +"
    assert second.masked == ((0, 4), (5, 8))  # 싶: one morpheme, two tags; 1+1: two parts, one tag
    assert gold.skipped == {"morphemes and tags differ in number": 2}
    assert (gold.words, gold.coverage) == (7, 5 / 7)


@pytest.mark.parametrize(
    ("name", "human"),
    [
        ("ko_kaist-ud-dev.conllu", True),
        ("ko_ksl-ud-dev.conllu", True),
        ("ko_gsd-ud-dev.conllu", False),
        ("own.conllu", False),
    ],
)
def test_only_kaist_and_ksl_are_human(tmp_path: Path, name: str, human: bool) -> None:
    (tmp_path / name).write_text(CONLLU, "utf-8")
    assert read_gold(tmp_path / name).human is human


def test_klue(tmp_path: Path) -> None:
    path = tmp_path / "klue-dp.tsv"
    path.write_text(
        "## 주석\n## id\t'가게’ 갔다\n1\t'가게’\t' 가게 ’\tSS+NNG+SS\t2\tNP\n2\t갔다.\t가 았 다 .\tVV+EP+EF+SF\t0\tVP\n\n",
        "utf-8",
    )
    (sentence,) = read_gold(path).sentences
    assert sentence.text == "'가게’ 갔다."
    assert [c.at for c in sentence.cuts] == [6]
    assert [c.at for c in sentence.fused] == [5]
    assert not read_gold(path).human


def test_sejong(tmp_path: Path) -> None:
    path = tmp_path / "a.pos"
    path.write_text(
        "집에\tBOS\t집/NNG+에/JKB\n왔다.\tEOS\t오/VV+았/EP+다/EF+./SF\n또\tBOS\t또/MAG\n1/2\t\t1//SN+2/SN\n\n물\t물__1/NNG\n",
        "utf-8",
    )
    gold = read_gold(path, name="own")
    assert gold.name == "own"
    assert [s.text for s in gold.sentences] == ["집에 왔다.", "또 1/2", "물"]
    assert [c.at for c in gold.sentences[0].cuts] == [1, 4]
    assert gold.sentences[2].morphemes[0].form == "물"
    path.write_text("집에\t집/NNG+에/JKB\n집에 왔다\t집/NNG 에/JKB 오/VV 았/EP 다/EF\n", "utf-8")
    with pytest.raises(InputError, match="line 2 holds a text of several words"):
        read_gold(path)


def test_plus_and_slash_as_morphemes(tmp_path: Path) -> None:
    path = tmp_path / "a.pos"
    path.write_text("가+나\t가/NNG++/SW+나/NNG\n", "utf-8")
    (sentence,) = read_gold(path).sentences
    assert [m.form for m in sentence.morphemes] == ["가", "+", "나"]


def test_words_that_fit_nothing_are_masked() -> None:
    gold = GoldCorpus.of(
        "x", [[("하늘", ["기차", "역"], ["NNG", "NNG"], False), ("물", ["물"], ["NNG"], True)]], human=True
    )
    assert gold.skipped == {"morphemes do not fit the form": 1}
    assert gold.sentences[0].masked == ((0, 2),)
    assert gold.sentences[0].morphemes[0].form == "물"


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_gold(tmp_path / "none")
    (tmp_path / "a").write_text("just text\n", "utf-8")
    with pytest.raises(InputError, match="no sentence"):
        read_gold(tmp_path / "a")
    with pytest.raises(UsageError, match="no kind of gold"):
        read_gold(tmp_path / "a", kind="xml")


def test_kaist_has_the_known_share_of_fused_borders(shared_text: Path) -> None:
    path = shared_text.parent / "gold" / "ko_kaist-ud-dev.conllu"
    if not path.is_file():
        pytest.skip(f"no gold at {path}")
    gold = read_gold(path)
    assert gold.coverage > 0.999
    assert 0.85 < gold.reachable < 0.87
