"""Values recomputed by a second, obvious implementation: sets and loops over strings in place of arrays."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.metrics import GoldPage, Material, Page, PageTokens, Settings, Text, score
from koktok.metrics.borders import border_share
from koktok.metrics.consistency import consistency
from koktok.metrics.counts import Histogram
from koktok.metrics.entropy import lattice_entropy
from koktok.metrics.gold import GoldCorpus
from koktok.metrics.registry import metrics, percentile_frequency
from koktok.model.tokens import Tokens
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.references.trivial import OpenVocabulary
from koktok.tokenizer.open import load

Span = tuple[int, int]


def hangul(char: str) -> bool:
    return "가" <= char <= "힣"


class Fixed(OpenVocabulary):
    """Cuts given by hand, in the form 'na|neun gan|da': | is a cut, a space with | on no side is inside a token."""

    def __init__(self, pieces: dict[str, list[str]], unknown: str = "") -> None:
        def cut(lines: list[str]) -> list[list[Span]]:
            rows = []
            for line in lines:
                at, row = 0, []
                for piece in pieces.get(line, list(line)):
                    row.append((at, at + len(piece)))
                    at += len(piece)
                rows.append(row)
            return rows

        super().__init__("fixed", "fixed", cut, digest="fixed")
        if unknown:
            self._ids[unknown] = 0
            self._forms.append(unknown)
            self.__dict__["unknown_ids"] = frozenset({0})


PIECES = {
    "나는 집에 갔다.": ["나는", " 집", "에 갔", "다", "."],
    "좋은 날!": ["좋", "은", " ", "날", "!"],
    "ㅋㅋ abc 뷁이다": ["ㅋㅋ", " abc", " ", "뷁", "이다"],
}
LINES = list(PIECES)


@pytest.fixture(scope="module")
def values() -> dict[str, float]:
    scores = score(Fixed(PIECES, unknown="뷁"), Material(Text.of({"all": LINES})), Settings(resamples=0))
    return {name: value.value for name, value in scores.values.items()}


def test_counts_by_hand(values: dict[str, float]) -> None:
    # 15 tokens; 8 eojeols; 9 + 5 + 10 characters
    assert values["fertility"] == pytest.approx(15 / 8)
    assert values["chars_per_token"] == pytest.approx(24 / 15)
    assert values["tokens_per_char"] == pytest.approx(15 / 24)
    assert values["bytes_per_token"] == pytest.approx(sum(len(line.encode()) for line in LINES) / 15)
    assert values["tokens_per_byte"] == pytest.approx(15 / sum(len(line.encode()) for line in LINES))
    # 나는, 집, 에 갔, 다 | 좋, 은, 날 | 뷁, 이다 over 나는 집에 갔다. 좋은 날! 뷁이다
    assert values["hangul_fertility"] == pytest.approx(9 / 6)
    # 집에, 갔다., 좋은, 날!, 뷁이다 of 8
    assert values["pcw"] == pytest.approx(5 / 8)
    # one syllable with at most one character beside it: " 집", 다, 좋, 은, 날, 뷁; "에 갔" has two
    assert values["one_syllable_share"] == pytest.approx(6 / 9)
    assert values["inner_space_share"] == pytest.approx(1 / 15)
    # behind 나는, 집에 | 좋은 | ㅋㅋ, abc: only 집에 is inside a token
    assert values["hidden_gaps"] == pytest.approx(1 / 5)
    assert values["unknown_tokens"] == pytest.approx(1 / 15)
    assert values["unknown_chars"] == pytest.approx(1 / 19)
    assert values["unknown_eojeols"] == pytest.approx(1 / 8)
    assert values["split_characters"] == 0


def words_of(line: str) -> list[Span]:
    found, start = [], None
    for k, char in enumerate(line + " "):
        if char.isspace():
            if start is not None:
                found.append((start, k))
            start = None
        elif start is None:
            start = k
    return found


def cut_set(spans: list[Span]) -> set[int]:
    edges = {p for a, b in spans if b > a for p in (a, b)}
    return {p for p in edges if not any(a < p < b for a, b in spans)}


@pytest.mark.parametrize("name", ["unigram", "bytes", "kiwi", "syllables"])
def test_counts_of_real_tokenizers_by_loops(name: str, trained: Callable[..., Path], mini: list[str]) -> None:
    subject = load(str(trained()) if name == "unigram" else name)
    lines = mini[::12]
    rows = subject.encode_lines(lines)
    sums: Counter[str] = Counter()
    for row, line in zip(rows.lines(), lines, strict=True):
        spans = [(a, b) for a, b in row.spans.tolist()]
        words = words_of(line)
        sums["tokens"] += len(spans)
        sums["words"] += len(words)
        sums["continued"] += sum(sum(a < end and b > start for a, b in spans) > 1 for start, end in words)
        sums["hangul_tokens"] += sum(any(map(hangul, line[a:b])) for a, b in spans)
        sums["hangul_words"] += sum(any(map(hangul, line[a:b])) for a, b in words)
        gaps = [end for _, end in words[:-1]]
        sums["gaps"] += len(gaps)
        sums["hidden"] += sum(any(a < p < b for a, b in spans) for p in gaps)
        sums["split"] += sum(b[0] < a[1] for a, b in pairwise(spans))
        sums["chars"] += len(line)
    values = score(subject, Material(Text.of({"x": lines})), Settings(resamples=0), reference=load("syllables")).values
    assert values["fertility"].value == pytest.approx(sums["tokens"] / sums["words"])
    assert values["pcw"].value == pytest.approx(sums["continued"] / sums["words"])
    assert values["hangul_fertility"].value == pytest.approx(sums["hangul_tokens"] / sums["hangul_words"])
    assert values["hidden_gaps"].value == pytest.approx(sums["hidden"] / sums["gaps"])
    assert values["split_characters"].value == pytest.approx(sums["split"] / sums["chars"])
    solid = sum(not char.isspace() for line in lines for char in line)
    assert values["nsl"].value == pytest.approx(sums["tokens"] / solid)


@pytest.mark.parametrize("name", ["unigram", "bpe", "bpe-bytes", "wordpiece", "syllables", "superwords"])
def test_borders_are_counted_by_their_definition(name: str, trained: Callable[..., Path], mini: list[str]) -> None:
    """Law 18: without pieces across spaces no continuation that begins with a space changes the ids before it."""
    wide = name == "superwords"
    model = {"model": "unigram" if wide else name, "superwords": 0.3 if wide else 0.0}
    subject = load(name if name == "syllables" else str(trained(train=model)))
    lines = [line for line in mini if "  " not in line][::3]
    moved = spaces = 0
    for line in lines:
        places = [k for k in range(1, len(line)) if line[k] == " "]
        spaces += bool(places)
        if places:
            drawn = hashlib.sha256(f"0:{line}".encode()).digest()
            at = places[int.from_bytes(drawn[:8], "little") % len(places)]
            whole, before = (subject.encode_lines([text])[0].tolist() for text in (line, line[:at]))
            moved += whole[: len(before)] != before
    found = score(subject, Material(Text.of({"x": lines})), Settings(resamples=0)).values["borders"].value
    assert found == pytest.approx(moved / spaces)
    assert (found > 0) == wide
    assert border_share(subject, lines) == found
    assert math.isnan(border_share(subject, ["하늘"]))


# ── boundaries ────────────────────────────────────────────────────────────────────────────────────────────────────────


GOLD = GoldCorpus.of(
    "tiny",
    [
        [
            ("나는", ["나", "는"], ["NP", "JX"], False),
            ("집에", ["집", "에"], ["NNG", "JKB"], True),
            ("갔다.", ["가", "았", "다", "."], ["VV", "EP", "EF", "SF"], True),
        ],
        [("학생입니다", ["학생", "이", "ㅂ니다"], ["NNG", "VCP", "EF"], False), ("틀림", ["틀림"], ["A", "B"], True)],
        [
            ("먹었다", ["먹", "었", "다"], ["VV", "EP", "EF"], False),
            ("먹었다", ["먹", "었", "다"], ["VV", "EP", "EF"], True),
        ],
    ],
    human=True,
)


def test_boundary_scores_by_hand() -> None:
    subject = Fixed(
        {
            "나는 집에 갔다.": ["나는", " 집", "에 갔", "다", "."],
            "학생입니다 틀림": ["학생", "입니", "다", " 틀", "림"],
            "먹었다 먹었다": ["먹었", "다 ", "먹", "었", "다"],
        }
    )
    scores = score(subject, Material(golds=[GOLD]), Settings(resamples=0))
    v = {name: value.value for name, value in scores.values.items()}
    # borders: 나|는 집|에 갔|다 · 학생|입니다 · 먹|었|다 먹|었|다 = 8; fused: 갔, 입 = 2
    # cuts: 집|에 갔|다 · 학생|입니 입니|다 · 먹었|다 먹|었 었|다 = 7; hits: 6
    assert v["boundary_precision"] == pytest.approx(6 / 7)
    assert v["boundary_recall"] == pytest.approx(6 / 8)
    assert v["boundary_f1"] == pytest.approx(12 / 15)
    assert v["boundary_f1_full"] == pytest.approx(12 / 17)
    # and 다|. is a boundary beside punctuation, which is cut
    assert v["boundary_f1_gaps"] == pytest.approx(14 / 17)
    assert v["boundary_f1_other"] == 1
    assert v["boundary_recall_full"] == pytest.approx(6 / 10)
    assert v["boundary_ceiling"] == pytest.approx(14 / 15)
    # eojeols scored: 3 + 1 + 2, 틀림 is masked
    assert v["over_split"] == pytest.approx(1 / 6)
    assert v["under_split"] == pytest.approx(2 / 6)
    assert v["recall_noun_particle"] == pytest.approx(1 / 2)
    assert v["recall_verb_ending"] == pytest.approx(1 / 2)
    assert v["recall_ending_ending"] == pytest.approx(3 / 3)
    assert v["recall_suffix_copula"] == 1
    # of 2+2+4 + 3 + 3+3 = 17 morphemes: 집 에 다 . · 학생 · 다 먹 었 다 are whole
    assert v["morpheme_intact"] == pytest.approx(9 / 17)
    # segments: 나는 | 집 에 | 갔 다 . | 학생 입니 다 | 먹었 다 | 먹 었 다 = 14
    assert v["token_f1"] == pytest.approx(18 / 31)
    # without " 틀" and "림": 5 + 3 + 5 tokens
    assert v["morpheme_fertility"] == pytest.approx(13 / 17)
    # 집에 and the second 먹었다
    assert v["eojeols_exact"] == pytest.approx(3 / 6)
    # first borders before J or E: 나|는 no, 집|에 yes, 먹|었 no, yes; 나는 is one token
    assert v["morphscore_2"] == pytest.approx(2 / 4)
    assert v["morphscore_1"] == pytest.approx(2 / 3)
    # 나는: 0; 집에 1; 갔다. 1; 학생입니다 2/3; 먹었다 over both 6/7
    assert v["boundary_f1_types"] == pytest.approx((0 + 1 + 1 + 2 / 3 + 6 / 7) / 5)
    row = scores.trivial["tiny"]
    # places between syllables: 1 + 1 + 1 · 4 · 2 + 2; 입|니 is the edge of a syllable that holds a border, and counts nowhere
    assert row["syllables_f1"] == pytest.approx(16 / (10 + 8))
    beside = Fixed(
        {
            "나는 집에 갔다.": ["나는 집에 갔다."],
            "학생입니다 틀림": ["학생", "입", "니다 틀림"],
            "먹었다 먹었다": ["먹었다 먹었다"],
        }
    )
    found = score(beside, Material(golds=[GOLD]), Settings(resamples=0)).values
    assert (found["boundary_precision"].value, found["over_split"].value) == (1, 0)
    assert row["reachable_recall"] == pytest.approx(8 / 10)
    assert row["coverage"] == pytest.approx(6 / 7)


KINDS_GOLD = GoldCorpus.of(
    "kinds",
    [
        [
            ("학생들은", ["학생", "들", "은"], ["NNG", "XSN", "JX"], False),
            ("공부하고", ["공부", "하", "고"], ["NNG", "XSV", "EC"], True),
            ("물병이다", ["물", "병", "이", "다"], ["NNG", "NNG", "VCP", "EF"], True),
        ]
    ],
    human=False,
)


def test_recall_by_kind_and_the_functional_f1_by_hand() -> None:
    subject = Fixed({"학생들은 공부하고 물병이다": ["학", "생", "들", "은 ", "공부", "하고 ", "물", "병이", "다"]})
    scores = score(subject, Material(golds=[KINDS_GOLD]), Settings(resamples=0))
    v = {name: value.value for name, value in scores.values.items()}
    kinds = {name[7:-6]: n for name, n in v.items() if name.startswith("recall:") and n == n}
    assert kinds == {"*|XSN": 1, "N|J": 1, "*|XSV": 1, "XS|E": 0, "N|N": 1, "*|VCP": 0, "VCP|E": 1}
    assert v["recall_by_kind"] == pytest.approx(5 / 7)
    assert (v["recall_copula"], v["recall_noun_particle"], v["recall_verb_ending"]) == (0, 1, 1 / 2)
    # functional borders: 들|은 하|고 병|이 이|다, two of them cut; 학|생 is wrong, 생|들 공부|하 물|병 count nowhere
    assert v["recall_functional"] == 2 / 4
    assert v["boundary_f1_functional"] == pytest.approx(2 * 2 / (3 + 4))
    assert v["boundary_f1"] == pytest.approx(2 * 5 / (6 + 7))


def test_the_headline_is_the_mean_of_the_gold_corpora_that_people_made() -> None:
    subject = load("syllables")

    def headline(*golds: GoldCorpus) -> float:
        return score(subject, Material(golds=golds), Settings(resamples=0)).values["boundary_f1_macro"].value

    first, second = (replace(gold, human=True) for gold in (GOLD, KINDS_GOLD))
    assert (
        headline(first)
        == score(subject, Material(golds=[GOLD]), Settings(resamples=0)).values["boundary_f1_functional"].value
    )
    assert headline(first, second) == pytest.approx((headline(first) + headline(second)) / 2)
    silver = replace(second, human=False)
    assert headline(first, silver) == headline(first) != headline(second)
    assert headline(replace(first, human=False), silver) == headline(first, second)


@pytest.mark.parametrize("name", ["unigram", "kiwi", "bytes", "eojeols"])
def test_boundary_f1_of_real_tokenizers_by_sets(
    name: str, trained: Callable[..., Path], mini: list[str], kiwi: object
) -> None:
    """Silver made of Kiwi's own words: any gold will do to compare two implementations."""
    words = [[word for word in line.split() if all(map(hangul, word))] for line in mini[::9]]
    flat = [word for line in words for word in line]
    analysed = {
        word: [(m.form, m.tag) for m in row]
        for word, row in zip(flat, kiwi.analyse(flat), strict=True)  # type: ignore[attr-defined]
    }
    gold = GoldCorpus.of(
        "silver",
        [
            [(w, [f for f, _ in analysed[w]], [t for _, t in analysed[w]], k > 0) for k, w in enumerate(line)]
            for line in words
            if line
        ],
        human=False,
    )
    subject = load(str(trained()) if name == "unigram" else name)
    hits = made = wanted = exact = segments = morphemes = 0
    for sentence, row in zip(
        gold.sentences, subject.encode_lines([s.text for s in gold.sentences]).lines(), strict=True
    ):
        text = sentence.text
        spans = [(a, b) for a, b in row.spans.tolist()]
        hidden = {p for a, b in sentence.masked for p in range(a, b + 1)}
        edges = cut_set(spans)
        legal = {p for p in range(1, len(text)) if hangul(text[p - 1]) and hangul(text[p]) and p not in hidden}
        legal -= set(sentence.neutral)
        borders = {cut.at for cut in sentence.cuts}
        hits += len(edges & legal & borders)
        made += len(edges & legal)
        wanted += len(borders)
        pieces = set()
        for start, end in words_of(text):
            if start not in hidden:
                inside = [start, *sorted(p for p in edges if start < p < end), end]
                pieces |= set(pairwise(inside))
        owners = Counter(p for m in sentence.morphemes for p in range(m.start, m.end))
        exact += sum(
            (m.start, m.end) in pieces and all(owners[p] == 1 for p in range(m.start, m.end))
            for m in sentence.morphemes
        )
        segments += len(pieces)
        morphemes += len(sentence.morphemes)
    values = score(subject, Material(golds=[gold]), Settings(resamples=0)).values
    assert values["boundary_f1"].value == pytest.approx(2 * hits / (made + wanted) if made + wanted else math.nan)
    assert values["token_f1"].value == pytest.approx(2 * exact / (segments + morphemes))
    assert values["boundary_f1@silver"] == values["boundary_f1"]


@given(st.data())
def test_f1_never_exceeds_the_arithmetic_bound(data: st.DataObject) -> None:
    pieces = {}
    for sentence in GOLD.sentences:
        cuts = sorted(data.draw(st.sets(st.integers(1, len(sentence.text) - 1))))
        edges = [0, *cuts, len(sentence.text)]
        pieces[sentence.text] = [sentence.text[a:b] for a, b in pairwise(edges)]
    values = score(Fixed(pieces), Material(golds=[GOLD]), Settings(resamples=0)).values
    f1, bound = values["boundary_f1"].value, values["boundary_ceiling"].value
    assert math.isnan(f1) or f1 <= bound + 1e-12


# ── distribution ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_renyi_by_its_published_formula() -> None:
    histogram = Histogram(np.array([5, 3, 0, 1, 1]), 8)
    p = [0.5, 0.3, 0.1, 0.1]
    assert histogram.efficiency(2.5) == pytest.approx(math.log2(sum(x**2.5 for x in p)) / (1 - 2.5) / 3)
    assert histogram.efficiency(3.0) == pytest.approx(0.4498330)  # log2(.154) / -2 / 3
    assert histogram.entropy(1.0) == pytest.approx(1.6854753)
    # Of 199 types those between the 3rd and the 83rd hundredth, the most frequent first.
    assert percentile_frequency(Histogram(np.arange(1, 200), None)) == pytest.approx(sum(range(35, 195)) / 19_900)


# ── entropy ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_entropy_of_segmentations_by_listing_them() -> None:
    scores = {"가": -1.0, "나": -2.0, "다": -1.5, "가나": -2.2, "나다": -3.0, "가나다": -3.3}
    ways = [["가", "나", "다"], ["가나", "다"], ["가", "나다"], ["가나다"]]
    weights = [math.exp(sum(scores[p] for p in way)) for way in ways]
    shares = [w / sum(weights) for w in weights]
    assert lattice_entropy("가나다", scores, 3, -99.0) == pytest.approx(-sum(p * math.log2(p) for p in shares))


# ── consistency ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_consistency_by_listing_pairs() -> None:
    words = [("집에", "집+에"), ("집이", "집+이"), ("물에", "물+에"), ("물은", "물+은"), ("밥는", "밥+는")]
    tags = {"집": "NNG", "물": "NNG", "밥": "NNG", "에": "JKB", "이": "JKS", "은": "JX", "는": "JX"}
    gold = GoldCorpus.of(
        "x", [[(w, m.split("+"), [tags[t] for t in m.split("+")], False)] for w, m in words], human=True
    )
    pieces = {"집에": ["집", "에"], "집이": ["집이"], "물에": ["물", "에"], "물은": ["물", "은"], "밥는": ["밥", "는"]}
    subject = Fixed(pieces)
    page = GoldPage(gold)
    tokens = PageTokens(page.page, subject.encode_lines(page.page.lines))
    found = consistency(subject, page, tokens)
    pairs = list(combinations(words, 2))
    token = [bool(set(pieces[a]) & set(pieces[b])) for (a, _), (b, _) in pairs]
    surface = [bool(set(a.split("+")) & set(b.split("+"))) for (_, a), (_, b) in pairs]
    assert found["pairs_token"] == sum(token) == 2
    assert found["pairs_surface"] == sum(surface) == 3
    assert found["pairs_surface_both"] == sum(map(min, token, surface)) == 2
    assert found["pairs_merged"] == 4  # 은 and 는 are one
    # 집: cut once of two; 물: always the same
    assert (found["stem_words"], found["stem_same"], found["stem_kept"]) == (4, 3, 3)
    known = metrics()
    assert known["consistency_f1"].value(found) == pytest.approx(2 * 2 / (2 + 3))


def test_compressed_sizes_are_those_of_the_library(trained: Callable[..., Path], mini: list[str]) -> None:
    from koktok.metrics.counts import packed

    subject: Tokenizer = load(str(trained()))
    table = packed(subject, Text.of({"x": mini[:50]}))
    assert table.columns["gzip"].tolist() == [len(zlib.compress("\n".join(mini[:50]).encode(), 9))]
    assert table.columns["id_bits"][0] == pytest.approx(
        len(subject.encode_lines(mini[:50]).ids) * math.log2(subject.size)
    )


def test_page_of_odd_lines() -> None:
    page = Page(["", "가", " \u3000 ", "나 다"])
    assert page.eojeol_lines.tolist() == [1, 3, 3]
    assert page.inner.sum() == 0
    empty = Page([])
    rows = Tokens.of([], [], [])
    assert PageTokens(empty, rows).cuts.tolist() == [False]
