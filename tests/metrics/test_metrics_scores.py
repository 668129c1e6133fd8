"""Scores as a whole: shards add up, intervals and paired tests, signatures, the same bytes, and the registry."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.statistics import joined, joined_tables
from strategies import korean_text

from koktok.errors import UsageError
from koktok.metrics import (
    GoldPage,
    Material,
    Page,
    PageTokens,
    Parallel,
    Settings,
    Table,
    Text,
    compare,
    describe,
    metrics,
    score,
)
from koktok.metrics.fidelity import PROBES
from koktok.metrics.gold import GoldCorpus
from koktok.metrics.registry import _KNOWN
from koktok.metrics.robustness import PERTURBATIONS
from koktok.metrics.statistics import Units, around, holm, jackknife, paired, standard_error, student_p
from koktok.metrics.vocabulary import WORD_LISTS, reachable
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.references.trivial import OpenVocabulary
from koktok.tokenizer.open import load

GOLD = GoldCorpus.of(
    "own",
    [[("집에서", ["집", "에서"], ["NNG", "JKB"], False), ("왔다", ["오", "았", "다"], ["VV", "EP", "EF"], True)]] * 30
    + [[("바다가", ["바다", "가"], ["NNG", "JKS"], False), ("바다는", ["바다", "는"], ["NNG", "JX"], True)]] * 30,
    human=True,
)


@pytest.fixture(scope="module")
def subject(trained: Callable[..., Path]) -> Tokenizer:
    return load(str(trained()))


@pytest.fixture(scope="module")
def text() -> Text:
    return Text.read([str(path) for path in sorted((ROOT / "corpora" / "mini").glob("*.txt"))[:6]])


# ── law 9 ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=20)
@given(st.lists(korean_text(), min_size=2, max_size=12), st.data())
def test_a_metric_over_shards_is_the_metric_over_the_whole(lines: list[str], data: st.DataObject) -> None:
    """Law 9."""
    lines = [line for line in lines if line.strip()] or ["가"]
    subject = load(data.draw(st.sampled_from(["syllables", "bytes", "eojeols"])))
    at = data.draw(st.integers(0, len(lines)))
    whole = score(subject, Material(Text.of({"x": lines})), Settings(resamples=0))
    parts = [
        score(subject, Material(Text.of({"x": part})), Settings(resamples=0))
        for part in (lines[:at], lines[at:])
        if part
    ]
    whole_again = joined([part.statistics for part in parts])
    a, b = whole_again.histogram.sum(axis=0), whole.statistics.histogram.sum(axis=0)
    assert a[: len(b)].tolist() == b[: len(a)].tolist()
    for name, metric in metrics().items():
        if metric.table in ("text", "borders") and name in whole.values:
            again = float(metric.value(whole_again.tables[metric.table].sums()))
            assert again == pytest.approx(whole.values[name].value, nan_ok=True)


def test_gold_shards_add_up(subject: Tokenizer) -> None:
    whole = score(subject, Material(golds=[GOLD]), Settings(resamples=0))
    halves = [
        score(subject, Material(golds=[GoldCorpus("own", True, part, 2 * len(part))]), Settings(resamples=0))
        for part in (GOLD.sentences[:23], GOLD.sentences[23:])
    ]
    whole_again = joined([half.statistics for half in halves])
    for name, metric in metrics().items():
        if metric.table == "gold":
            value = float(metric.value(whole_again.tables["gold@own"].sums()))
            assert value == pytest.approx(whole.values[name].value, nan_ok=True)


def test_a_misspelt_column_is_an_error(subject: Tokenizer, text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a column that is called optional may be missing."""
    known = metrics()
    wrong = replace(known["fertility"], name="wrong", value=lambda sums: sums["tokens"] / sums["eojols"])
    monkeypatch.setitem(_KNOWN, "wrong", wrong)
    with pytest.raises(KeyError, match="eojols"):
        score(subject, Material(text), Settings(resamples=0))
    monkeypatch.delitem(_KNOWN, "wrong")
    found = score(subject, Material(text), Settings(resamples=0))
    assert {name for name, m in known.items() if m.table == "text" and name not in found.values} == {"nsl"}
    assert known["nsl"].optional == "reference_tokens"
    with pytest.raises(UsageError, match="`nsl` was not measured for both"):
        compare(found, found, "nsl")


def test_batches_change_nothing(subject: Tokenizer, text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score(subject, Material(text), Settings(resamples=50)).model_dump_json()
    monkeypatch.setattr("koktok.metrics.page.BATCH", 300)
    assert score(subject, Material(text), Settings(resamples=50)).model_dump_json() == whole


@given(st.lists(korean_text(), max_size=5))
def test_tokens_of_a_page_never_reach_over_a_line(lines: list[str]) -> None:
    lines = [unicodedata.normalize("NFC", line) for line in lines]
    page = Page(lines)
    tokens = PageTokens(page, load("bytes").encode_lines(lines))
    assert not tokens.crossed[page.line_starts].any()
    assert tokens.per_line.tolist() == [len(line.encode()) for line in lines]
    assert page.eojeol_starts.size == sum(len(line.split()) for line in lines)
    assert page.per_line(page.bytes_per_char).tolist() == [len(line.encode()) for line in lines]


# ── statistics ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_intervals_hold_the_value_and_shrink_with_the_text(subject: Tokenizer, text: Text) -> None:
    value = score(subject, Material(text), Settings(resamples=300)).values["fertility"]
    assert value.low < value.value < value.high
    twice = Text.of({f"{k}{name}": [text.lines[i] for i in np.flatnonzero(text.domains == k)]
                     for name in "abcd" for k in range(len(text.names))})  # fmt: skip
    wide = score(subject, Material(twice), Settings(resamples=300)).values["fertility"]
    assert wide.value == pytest.approx(value.value)
    assert wide.high - wide.low < value.high - value.low


def test_the_bootstrap_has_the_known_standard_error() -> None:
    rng = np.random.default_rng(1)
    table = Table({"x": rng.normal(size=400), "n": np.ones(400)}, np.arange(400))
    (drawn,) = table.draws(2000, 0)
    error, freedom = standard_error([drawn], lambda s: s["x"] / s["n"])
    assert error == pytest.approx(table.columns["x"].std(ddof=1) / 20, rel=0.1)
    assert freedom == pytest.approx(399)
    assert np.array_equal(drawn.sums["n"], np.full(2000, 400.0))


def test_the_interval_of_nine_documents_covers_what_it_says() -> None:
    """Percentiles of the same resamples cover 89 %."""
    rng = np.random.default_rng(7)
    inside = between = 0
    for k in range(600):
        found = Table({"x": rng.normal(size=9), "n": np.ones(9)}, np.arange(9))
        (drawn,) = found.draws(400, k)
        low, high = np.percentile(drawn.sums["x"], [2.5, 97.5])
        between += low <= 0 <= high
        value = found.measure({"mean": lambda s: s["x"] / s["n"]}, 400, k)["mean"]
        inside += value.low <= 0 <= value.high
    assert 0.93 <= inside / 600 <= 0.97
    assert 0.87 <= between / 600 <= 0.91


def test_the_corpus_with_few_units_decides_the_degrees_of_freedom() -> None:
    """Nine documents that differ beside 980 blocks that do not: eight degrees of freedom, and not 988."""
    rng = np.random.default_rng(8)
    few, many = rng.normal(0.6, 0.05, size=9), rng.normal(0.6, 0.01, size=980)
    columns = {"a": np.append(few, np.zeros(980)), "b": np.append(np.zeros(9), many)}
    columns |= {"n_a": np.repeat([1.0, 0.0], [9, 980]), "n_b": np.repeat([0.0, 1.0], [9, 980])}
    table = Table(columns, np.arange(989), np.repeat([0, 1], [9, 980]))

    def mean(s: dict[str, np.ndarray]) -> np.ndarray:
        return np.mean([s["a"] / s["n_a"], s["b"] / s["n_b"]], axis=0)

    error, freedom = standard_error(table.draws(2000, 0), mean)
    assert error == pytest.approx(few.std(ddof=1) / 3 / 2, rel=0.1)
    assert 8 <= freedom < 8.5
    shifted = Table({**columns, "a": columns["a"] + 0.05 * columns["n_a"]}, table.units, table.strata)
    found = paired(shifted, table, mean)  # type: ignore[arg-type]
    assert found.value == pytest.approx(0.025)


def test_interval_and_p_value_agree() -> None:
    rng = np.random.default_rng(9)
    for shift in np.linspace(0, 1.6, 40):
        first, second = (Table({"x": rng.normal(size=9) + at, "n": np.ones(9)}, np.arange(9)) for at in (shift, 0.0))
        found = paired(first, second, lambda s: s["x"] / s["n"], resamples=200)
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    groups = [np.array([float(k % 5), 10.0 - k % 5]) for k in range(20)]
    error, n = jackknife(groups, lambda total: float(10 * total[0] / total.sum()), np.sum(groups, axis=0))
    assert n == 20
    assert error == pytest.approx(np.std([g[0] for g in groups], ddof=1) / math.sqrt(20))
    low, high = around(2.0, error, n - 1)
    assert (high - low) / 2 == pytest.approx(2.09302 * error, rel=1e-5)
    assert jackknife(groups[:1], lambda _: 1.0, groups[0]) == (None, 1)
    assert around(2.0, None, 1) == (None, None)


def test_the_jackknife_takes_groups_of_any_size() -> None:
    """A share of 100,000 throws in groups of 500 to 9,500: the error of the throws, which equal weights would miss by far."""
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(40):
        thrown = [(rng.binomial(n, 0.3), n) for n in range(500, 10_000, 1000) for _ in range(2)]
        groups = [np.array([heads, n - heads]) for heads, n in thrown]
        errors.append(jackknife(groups, lambda total: float(total[0] / total.sum()), np.sum(groups, axis=0))[0])
    assert np.mean(errors) == pytest.approx(math.sqrt(0.3 * 0.7 / 100_000), rel=0.1)


# ── units ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 9), max_size=400))
def test_units_are_sources_or_blocks_that_cross_none(sources: list[int]) -> None:
    units = Units.by(np.array(sources, dtype=np.int64), "domains", "lines")
    of = units.of.tolist()
    assert len(of) == len(sources)
    assert sorted(set(of)) == list(range(len(units)))  # none is missing
    for unit in set(of):
        held = [source for source, u in zip(sources, of, strict=True) if u == unit]
        assert len(set(held)) == 1
        if units.name == "domains":
            assert len(held) == sources.count(held[0])
        else:
            assert len(held) <= 50
    assert (units.name == "domains") == (len(set(sources)) >= 5)
    groups = units.groups.tolist()
    assert len(set(groups)) == min(len(units), 20)
    for group in set(groups):  # whole units, and neighbours
        mine = {u for u, g in zip(of, groups, strict=True) if g == group}
        assert mine == set(range(min(mine), max(mine) + 1))
        assert all(g == group for u, g in zip(of, groups, strict=True) if u in mine)


def test_documents_and_domains_are_what_is_resampled() -> None:
    """Eight documents of 90 alike sentences: the interval is that of eight observations and not of 720."""
    page = GoldPage(replace(GOLD, sentences=[replace(s, document=f"d{k // 6}") for k, s in enumerate(GOLD.sentences)]))
    assert repr(page.units) == f"{-(-len(GOLD.sentences) // 6)} documents"
    assert repr(GoldPage(GOLD).units) == "2 blocks of 50 sentences"
    few, many = (Text.of({f"d{k}": ["하늘이 맑다"] * (k + 1) for k in range(n)}) for n in (4, 5))
    assert repr(few.units) == "4 blocks of 50 lines"
    assert repr(many.units) == "5 domains"
    found = score(load("syllables"), Material(many, golds=[page]), Settings(resamples=50))
    assert found.values["fertility"].units == 5
    assert found.values["fertility@d4"].units == 0  # five lines are one block, and one block says nothing
    assert found.values["boundary_f1@own"].units == len(page.units) == 10
    assert found.parts["units"] == {"text": "5 domains", "own": repr(page.units)}


def test_strata_are_resampled_by_themselves() -> None:
    table = Table({"a": np.repeat([1, 0], [30, 10])}, np.arange(40), np.repeat([0, 1], [30, 10]))
    drawn = table.draws(50, 0)
    assert [one.units for one in drawn] == [30, 10]
    assert all(set(one.sums["a"]) == {30.0} for one in drawn)
    (mixed,) = Table(table.columns, table.units).draws(50, 0)
    assert len(set(mixed.sums["a"])) > 5
    assert joined_tables([table, table]).strata is not None


def test_holm_is_monotone_and_never_below_the_single_test() -> None:
    assert holm([]) == []
    assert holm([0.02, None, 0.01]) == [0.02, None, 0.02]
    found = holm([0.2, 0.001, 0.04, 0.03])
    assert found == pytest.approx([0.2, 0.004, 0.09, 0.09])


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (2, 4.303), (3, 3.182), (7, 2.365), (12, 2.179), (19, 2.093)])
def test_student_at_its_printed_quantiles(freedom: int, t: float) -> None:
    assert student_p(t, freedom) == pytest.approx(0.05, abs=2e-4)
    assert student_p(-t, freedom) == student_p(t, freedom)
    assert student_p(50.0, 5000) == 0


def test_paired_tests_see_what_separate_intervals_hide() -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(5, 200, size=300)
    one = Table({"t": base, "e": np.full(300, 50)}, np.arange(300))
    two = Table({"t": base + (np.arange(300) % 3 == 0), "e": np.full(300, 50)}, np.arange(300))
    found = paired(one, two, lambda s: s["t"] / s["e"], resamples=500)
    assert found.value == pytest.approx(-100 / 15000)
    assert found.high < 0
    assert found.p < 0.01
    same = paired(one, one, lambda s: s["t"] / s["e"], resamples=100)
    assert (same.value, same.p) == (0, 1)
    with pytest.raises(UsageError, match="not of the same text"):
        paired(one, Table({"t": base[:9], "e": base[:9]}, np.arange(9)), lambda s: s["t"])


def test_compare_takes_names_of_text_gold_and_distribution(subject: Tokenizer, text: Text) -> None:
    one = score(subject, Material(text, golds=[GOLD]), Settings(resamples=20))
    two = score(load("bytes"), Material(text, golds=[GOLD]), Settings(resamples=20))
    assert compare(one, two, "fertility", resamples=100).p < 0.05  # of six domains
    assert compare(one, two, "boundary_f1", resamples=50) == compare(one, two, "boundary_f1@own", resamples=50)
    assert compare(one, two, "renyi_efficiency").low is not None
    with pytest.raises(UsageError, match="not a metric"):
        compare(one, two, "beauty")
    with pytest.raises(UsageError, match="not measured for both"):
        compare(one, two, "round_trip_nfc")
    with pytest.raises(UsageError, match="not measured on the same text"):
        compare(one, score(subject, Material(Text.of({"x": text.lines[:50]})), Settings(resamples=0)), "fertility")


# ── signatures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_inputs_give_the_same_bytes(trained: Callable[..., Path], tmp_path: Path) -> None:
    mini = ROOT / "corpora" / "mini"
    script = (
        "import json, sys\n"
        "from koktok.metrics import Material, Settings, Text, score\n"
        "from koktok.tokenizer.open import load\n"
        f"text = Text.read([{str(mini / 'news.txt')!r}, {str(mini / 'comments.txt')!r}])\n"
        f"scores = score(load({str(trained())!r}), Material(text), Settings(True, 40, 50))\n"
        "print(json.dumps([json.loads(scores.model_dump_json()), scores.parts], sort_keys=True))\n"
    )
    made = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": s}
        )
        for s in ("1", "2")
    ]
    assert made[0].stdout == made[1].stdout
    found, signature = json.loads(made[0].stdout)
    assert signature["text"]
    assert f"tokenizer:{signature['tokenizer']}" in found["signature"]
    assert set(signature["libraries"]) >= {"koktok", "numpy"}
    assert {"fertility@comments", "fertility@news"} <= found["scores"].keys()
    assert {"fertility", "round_trip_nfc", "reachability", "stability_typo"} <= set(found["scores"])
    assert found["scores"]["round_trip_nfc"]["value"] == 1
    assert found["scores"]["control_injection"]["value"] == 0


def test_the_digest_of_a_text_knows_lines_and_domains() -> None:
    digests = {
        Text.of(domains).digest for domains in ({"a": ["가", "나"]}, {"a": ["가"], "b": ["나"]}, {"a": ["나", "가"]})
    }
    assert len(digests) == 3
    assert Text.of({"a": ["가"]}).digest == Text.of({"a": [unicodedata.normalize("NFD", "가"), " "]}).digest


# ── the other texts ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_parallel_english_and_code(subject: Tokenizer) -> None:
    values = score(
        load("bytes"),
        Material(
            Text.of({"ko": ["하늘"]}),
            parallel=Parallel(["하늘", "물"], ["sky", "water"]),
            english=Text.of({"en": ["the sky is blue"]}),
            code=Text.of({"py": ["    return  1"]}),
        ),
        Settings(resamples=0),
    ).values
    assert values["parity"].value == pytest.approx(9 / 8)
    assert values["premium"].value == pytest.approx((6 / 3 + 3 / 5) / 2)
    assert values["english_fertility"].value == pytest.approx(15 / 4)
    assert values["code_tokens_per_byte"].value == 1
    both = Material(Text.of({"ko": ["하늘"]}), code=Text.of({"py": ["    return  1"]}))
    syllables = score(load("syllables"), both, Settings(resamples=0))
    assert syllables.values["code_tokens_per_byte"].value == pytest.approx(
        7 / 13
    )  # indentation is no token there, but counts
    assert syllables.values["code_tokens_per_byte_words"].value == pytest.approx(7 / 8)


# ── encoding again ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sorted(PERTURBATIONS))
@given(line=korean_text())
@settings(max_examples=25)
def test_perturbations_are_deterministic_and_say_which_characters_stayed(name: str, line: str) -> None:
    line = unicodedata.normalize("NFC", line)
    new, where = PERTURBATIONS[name](line, np.random.default_rng(0))
    assert len(where) == len(new)
    kept = [k for k in where if k >= 0]
    assert kept == sorted(set(kept))
    if name != "nfd":
        assert all(new[i] == line[k] for i, k in enumerate(where) if k >= 0)
    else:
        assert new == "".join(unicodedata.normalize("NFD", char) for char in line)
    assert PERTURBATIONS[name](line, np.random.default_rng(0)) == (new, where), "another result the second time"


def test_syllables_are_stable_and_words_are_not(text: Text) -> None:
    stable = score(load("syllables"), Material(text), Settings(extended=True, sample=60, resamples=0)).values
    assert all(stable[f"stability_{name}"].value == 1 for name in PERTURBATIONS if name != "all_spaces")
    assert stable["fertility_change_no_spaces"].value == 0
    assert stable["context_change"].value == 0
    assert math.isnan(
        score(load("eojeols"), Material(text), Settings(extended=True, sample=60, resamples=0))
        .values["stability_typo"]
        .value
    )


def test_a_pieces_reach_is_found(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    # BPE that can make 가나 but never 나다: its merge is missing.
    bpe = Tokenizer(models.BPE({"가": 0, "나": 1, "다": 2, "가나": 3, "나다": 4}, [("가", "나")]))
    bpe.save(str(tmp_path / "tokenizer.json"))
    subject = load(str(tmp_path))
    assert reachable(subject).tolist() == [1, 1, 1, 1, 0]
    values = score(subject, Material(golds=[GOLD]), Settings(extended=True, resamples=0)).values
    assert values["reachability"].value == 4 / 5
    with pytest.raises(ValueError, match="open vocabulary"):
        reachable(load("syllables"))


def test_our_vocabulary_reaches_its_pieces(subject: Tokenizer) -> None:
    states = reachable(subject)
    assert (states == 0).sum() == 0
    assert (states == -1).sum() == 256 + len(subject.special_ids)


def test_special_tokens_by_name_are_found_out(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    bpe = Tokenizer(models.BPE({"가": 0}, [], unk_token=None))
    bpe.add_special_tokens(["</s>"])
    bpe.save(str(tmp_path / "tokenizer.json"))
    values = score(load(str(tmp_path)), Material(golds=[GOLD]), Settings(extended=True, resamples=0)).values
    assert values["control_injection"].value > 0
    assert values["control_injection_wide"].value == 0


def test_probes_name_what_is_lost() -> None:
    class Lossy(OpenVocabulary):
        decodes = True

        def decode(self, ids: object) -> str:
            return "".join(self._forms[i] for i in ids)  # type: ignore[attr-defined]

    whole = Lossy(
        "x", "x", lambda lines: [[(k, k + 1) for k, c in enumerate(line) if c != "\t"] for line in lines], digest=""
    )
    scores = score(whole, Material(Text.of({"x": ["가\t나", "다 라"]})), Settings(extended=True, resamples=0))
    assert scores.values["round_trip_strict"].value == 0.5
    assert [name for name, ok in scores.details["probes"].items() if not ok] == ["tab"]
    assert scores.values["round_trip_probes"].value == pytest.approx(1 - 1 / len(PROBES))


def test_word_lists_are_distinct() -> None:
    for words in WORD_LISTS.values():
        assert len(words.split()) == len(set(words.split())) >= 40
    assert all(word.endswith("다") for word in WORD_LISTS["verbs"].split())


# ── the registry ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_number_of_the_suite_is_there() -> None:
    numbers = {
        m.id.split(".")[0].rstrip("abcdefgh0123456789") + "".join(filter(str.isdigit, m.id[:3]))
        for m in metrics().values()
    }
    assert {f"M{k}" for k in range(1, 31) if k != 28} <= numbers


@pytest.mark.parametrize("name", sorted(metrics()))
def test_every_metric_explains_itself(name: str) -> None:
    m = metrics()[name]
    assert m.title
    assert any("가" <= c <= "힣" for c in m.title_ko) or m.title_ko.startswith("MorphScore")
    assert m.definition.endswith(".")
    assert m.source.endswith(".")
    assert m.pitfalls.endswith(".")
    assert m.unit
    assert describe(m.id)
    assert m.value.__doc__


def test_ids_are_distinct_and_numbers_gather() -> None:
    assert len({m.id for m in metrics().values()}) == len(metrics())
    assert {m.id for m in describe("m10")} >= {"M10a.f1", "M10b.r", "M10d"}
    assert all(not m.id.startswith("M10") for m in describe("M1"))
