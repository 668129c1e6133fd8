"""Gold: restored morphemes on the surface, by a table made by hand; the readers; what is masked and counted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.errors import InputError
from koktok.metrics.gold import FUNCTIONAL, GOLD_BOUNDARIES, GoldCorpus, gold_boundary, read_gold, readers, surface_cuts
from koktok.metrics.gold.align_words import align_words
from koktok.metrics.gold.sentences import word_class

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
취미라서 취미+이+라서 2 -
문제다 문제+이+다 2 -
상대다 상대+이+다 2 -
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
달리 다르+이 - 1
지을 짓+ㄹ 1 -
지은 짓+ㄴ 1 -
결정지을 결정+짓+ㄹ 2,3 -
이은 잇+ㄴ 1 -
같은 같+ㄴ 1 -
모아 모으+아 1 -
모았던 모으+았+던 1,2 -
모아지고 모으+아+지+고 1,2,3 -
드러난다 들+어+나+ㄴ다 2 1,2
드러나지 들+어+나+지 2,3 1
마라 말+아라 - 0
내이름 나+의+이름 1 0
네 너+의 - 0
제 저+의 - 0
놔 놓+아 - 0
놨다 놓+았+다 1 0
놔둘 놓+아+두+ㄹ 1 0,1
ᄒᆞ다 ᄒᆞ+다 2 -
ᄒᆞᆫ다 ᄒᆞ+ᆫ다 - 0
헤라 ᄒᆞ+어라 - 0
헤도 ᄒᆞ+어도 - 0
헷수다 ᄒᆞ+엇+수다 1 0
헹 ᄒᆞ+엉 - 0
헴쩌 ᄒᆞ+어ᇝ+저 1 0
"""


@pytest.mark.parametrize("row", CONTRACTIONS.split("\n")[1:-1])
def test_contractions(row: str) -> None:
    form, morphemes, cuts, fused = row.split()
    found = surface_cuts(form, morphemes.split("+"))
    assert [p for p, _ in found.cuts] == [int(p) for p in cuts.split(",") if p != "-"]
    assert sorted({p for p, _ in found.fused}) == [int(p) for p in fused.split(",") if p != "-"]
    assert found.cost < 0.5


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
    assert [gold_boundary(*pair) for pair in (("ncn", "jco"), ("NNG", "JKO"), ("pvg", "ecs"), ("VV", "EC"))] == [
        "N|J", "N|J", "V|E", "V|E",
    ]  # fmt: skip
    assert gold_boundary("ep", "ef") == gold_boundary("EP", "EF") == "E|E"
    assert gold_boundary("ncn", "jp") == gold_boundary("NNG", "VCP") == "*|VCP"
    assert gold_boundary("NNG", "XSV") == gold_boundary("NNG", "XSA") == gold_boundary("ncps", "xsm") == "*|XSV"
    assert gold_boundary("NNG", "XSN") == gold_boundary("paa", "xsa") == "*|XSN"
    assert [gold_boundary("xsv", "etm"), gold_boundary("jp", "ef")] == ["XS|E", "VCP|E"]
    assert [gold_boundary("jca", "jxt"), gold_boundary("EC", "JX"), gold_boundary("ecx", "px")] == ["J|J", "E|J", "E|V"]
    assert gold_boundary("NNG", "NNG") == "N|N"
    assert gold_boundary("MAG", "NNG") == gold_boundary("NNG", "EF") == "other"
    assert set(FUNCTIONAL) < set(GOLD_BOUNDARIES)
    assert all(
        gold_boundary(a, b) in GOLD_BOUNDARIES
        for a in ("NNG", "VV", "JX", "EC", "XSV", "VCP", "SF")
        for b in ("NNG", "VX", "JX", "EC", "XSN", "VCP")
    )
    assert word_class("f") == "F"


CONLLU = """# sent_id = 1
1\t나는\t나+는\tPRON\tnpp+jxt\t_\t3\tnsubj\t_\t_
2\t가지\t가+지\tVERB\tpvg+ecx\t_\t0\troot\t_\t_
3-4\t않았다.\t_\t_\t_\t_\t_\t_\t_\t_
3\t않았다\t않\tAUX\tpx+ep+ef\t_\t2\taux\t_\tOrigLemma=않+았+다|SpaceAfter=No
4\t.\t.\tPUNCT\tsf\t_\t2\tpunct\t_\t_

# sent_id = 2-s1
1\t싶습니다\t싶\tAUX\tpx+ef\t_\t0\troot\t_\t_
2\t1+1\t1+1\tNUM\tnnc\t_\t1\tx\t_\t_
3\t+\t+\tSYM\tsy\t_\t1\tx\t_\t_

# newdoc id = essay
# sent_id = 3
1\t물\t물\tNOUN\tncn\t_\t0\troot\t_\t_
2\t불\t불\tNOUN\tncn\t_\t1\tx\t_\t_
3\t풀\t풀\tNOUN\tncn\t_\t1\tx\t_\t_
"""


def test_conllu_reads_orig_lemma_before_lemma(tmp_path: Path) -> None:
    path = tmp_path / "ko_kaist-x.conllu"
    path.write_text(CONLLU, "utf-8")
    gold = read_gold(path)
    first, second, third = gold.sentences
    assert first.text == "나는 가지 않았다."
    assert [(c.at, c.kind) for c in first.cuts] == [(1, "N|J"), (4, "V|E"), (7, "V|E"), (8, "E|E")]
    assert [sentence.document for sentence in gold.sentences] == ["", "2", "essay"]
    assert third.text == "물 불 풀"
    assert second.text == "싶습니다 1+1 +"
    assert second.masked == ((0, 4), (5, 8))  # 싶: one morpheme, two tags; 1+1: two parts, one tag
    assert gold.skipped == {"morphemes and tags differ in number": 2}
    assert (gold.words, gold.coverage) == (10, 0.8)


def test_human_is_what_is_known_of_the_bytes_or_what_the_caller_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ko_kaist-ud-dev.conllu"
    path.write_text(CONLLU, "utf-8")
    assert not read_gold(path).human  # a name proves nothing
    assert read_gold(path).label == "silver"
    assert read_gold(path, human=True).label == "human"
    blob = subprocess.run(["git", "hash-object", path], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setattr(readers, "HUMAN", {blob})
    assert read_gold(path.rename(tmp_path / "test.conllu")).human
    assert not read_gold(tmp_path / "test.conllu", human=False).human


def test_a_gold_of_stems_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pud.conllu"
    rows = [
        f"{k}\t{word}\t_\tNOUN\tNN+JJ\t_\t0\troot\t_\t_" for k, word in enumerate(["집에", "갔다", "물을"], start=1)
    ]
    path.write_text("\n".join([*rows, "4\t물\t물\tNOUN\tNN\t_\t0\tx\t_\t_", ""]), "utf-8")
    with pytest.raises(
        InputError, match=r"morphemes for 25% of its 4 words, and at least 80% are required; not scored: .*\(3\)"
    ) as told:
        read_gold(path)
    assert "LEMMA" in str(told.value.hint)


KIWI = """집에서 갔습니다.\t집/NNG 에서/JKB 가/VV 었/EP 습니다/EF ./SF\t집에서 갔습니다.
로마 제국은 것이__2 마라\t로마_제국/NNP 은/JX 것이__2/NNG 말/VX 어라/EF
"""


def test_kiwi_deals_morphemes_to_words(tmp_path: Path) -> None:
    path = tmp_path / "web.tsv"
    path.write_text(KIWI.replace("것이__2 마라\t", "것이 마라\t"), "utf-8")
    gold = read_gold(path)
    first, second = gold.sentences
    assert not gold.skipped
    assert [(cut.at, cut.kind) for cut in first.cuts] == [(1, "N|J"), (5, "E|E")]
    assert [(cut.at, cut.kind) for cut in first.fused] == [(4, "V|E")]
    assert [m.form for m in second.morphemes] == ["로마", "제국", "은", "것이", "말", "어라"]
    assert [cut.at for cut in second.cuts] == [5]


@given(
    st.lists(st.lists(st.text(st.sampled_from("가나다라"), min_size=1, max_size=3), min_size=1, max_size=4), min_size=1)
)
def test_what_joins_to_its_words_is_dealt(words: list[list[str]]) -> None:
    taken = align_words(["".join(parts) for parts in words], [part for parts in words for part in parts])
    assert taken == [len(parts) for parts in words]


@given(
    st.lists(st.text(st.sampled_from("가갔간하해다"), min_size=1, max_size=4), max_size=4),
    st.lists(st.text(st.sampled_from("가하았ㄴ다"), min_size=1, max_size=2), max_size=8),
)
def test_dealing_gives_every_morpheme_to_one_word(words: list[str], morphemes: list[str]) -> None:
    taken = align_words(words, morphemes)
    assert taken is None or (
        len(taken) == len(words) and sum(taken) == len(morphemes) and (not words or min(taken) > 0)
    )


def test_the_edge_of_a_fused_syllable_is_neutral_where_it_is_no_border() -> None:
    words = [
        ("해요", ["하", "아요"], ["VV", "EF"], False),
        ("봤다", ["보", "았", "다"], ["VV", "EP", "EF"], True),
        ("도와", ["돕", "아"], ["VV", "EC"], True),
    ]
    (sentence,) = GoldCorpus.of("x", [words], human=True).sentences
    assert sentence.text == "해요 봤다 도와"
    assert sentence.neutral == (1, 7)  # 해|요, 도|와; 봤|다 is a border
    assert [cut.at for cut in sentence.cuts] == [4]


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


def test_a_sentence_of_too_many_words_is_not_dealt(tmp_path: Path) -> None:
    """The work grows with the square of the words."""
    morphemes = "집/NNG 에/JKB 가/VV 았/EP 다/EF"
    file = tmp_path / "gold.tsv"
    file.write_text(
        f"{'집에 갔다 ' * 50_000}\t{' '.join([morphemes] * 50_000)}\n집에 갔다\t{morphemes}\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"has morphemes for 0% .* no morphemes \(100,000\)"):
        read_gold(file)
