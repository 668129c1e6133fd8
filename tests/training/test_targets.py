"""What a user asks for: targets that are met, pieces that live, and what never becomes a piece."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.trainers import train_unigram, train_unigrams

from koktok import Recipe
from koktok.count import count_words
from koktok.model.models import model_for
from koktok.model.vocab import Vocab
from koktok.segment import Policy, segment_counts
from koktok.segment.segmented import SegmentedCounts
from koktok.text.pretokenize import Pattern
from koktok.training.candidates import CandidatePolicy, mine
from koktok.training.job import Job
from koktok.training.lattice import TRUST, decode
from koktok.training.targets import Targets, TargetSearch
from koktok.training.unigram import spelling_themselves
from koktok.training.unigram_point import PRESETS

SIZES = (2400, 3200)


@pytest.fixture(scope="module")
def text(mini, kiwi) -> SegmentedCounts:
    """The mini corpus, cut by Kiwi: 6,500 words, so that a target lies between two pieces nowhere."""
    return segment_counts(count_words(mini), kiwi, Policy.parse("morphemes"))


def account(vocab: Vocab, counts: SegmentedCounts, kinds: Collection[str] = TRUST) -> tuple[float, float, set[str]]:
    """Share of the boundaries that are token borders, weighed by trust; tokens a word; pieces used: by the model itself."""
    model = model_for(vocab)
    kept = there = tokens = 0.0
    used = set()
    for word, cuts, n in counts.items():
        ids, spans = model.encode(word)
        used |= {word[a:b] for a, b in spans}
        tokens += n * len(ids)
        for cut in cuts:
            weight = n * TRUST.get(cut.kind.label, TRUST["rest"]) * (cut.kind.label in kinds)
            there += weight
            kept += weight * (cut.offset in {a for a, _ in spans})
    return kept / there, tokens / counts.total, used


# ── targets ───────────────────────────────────────────────────────────────────────────────────────────────────────────


KINDS = {"josa": ("josa", "copula", "josa_chain"), "eomi": ("eomi", "eomi_chain"), "all": {*TRUST} - {"punctuation"}}


@pytest.mark.parametrize("keep", [0.92, {"josa": 0.93, "eomi": 0.86}, {"eomi": 0.86}])
@pytest.mark.parametrize("size", SIZES)
def test_what_is_asked_for_is_kept(text, size, keep):
    """Before particles and before endings each; punctuation has no part in it."""
    trained = train_unigram(text, vocab_size=size, keep=keep)
    outcome = trained.log["outcome"]
    wanted = keep if isinstance(keep, dict) else dict.fromkeys(KINDS, keep)
    for group, share in wanted.items():
        kept = account(trained.vocab, text, KINDS[group])[0]
        assert outcome[group] == pytest.approx(kept)
        assert kept == pytest.approx(share, abs=0.02), "an ending is one share in a hundred of so little text"
    everything, tokens, _ = account(trained.vocab, text, {*TRUST} - {"punctuation"})
    assert outcome["all"] == pytest.approx(everything)
    assert outcome["tokens_per_eojeol"] == pytest.approx(tokens)


@pytest.mark.parametrize("price", ["tokens", "bits"])
def test_the_kinds_have_targets_of_their_own(text, price):
    """Endings are not sold for particles."""
    point = PRESETS["lm"].with_target(keep={"josa": 0.95, "eomi": 0.8})
    more = PRESETS["lm"].with_target(keep={"josa": 0.95, "eomi": 0.9})
    found = [
        train_unigrams(text, points=[each], vocab_size=SIZES[1], price=price)["lm"].log["outcome"]
        for each in (point, more)
    ]
    assert [outcome["eomi"] for outcome in found] == [pytest.approx(0.8, abs=0.02), pytest.approx(0.9, abs=0.02)]
    assert found[0]["josa"] == pytest.approx(found[1]["josa"], abs=0.02)


def test_where_there_is_no_grammar_all_boundaries_are_the_target():
    """Cuts of analysers that name no kinds."""
    words = {
        f" {a}{b}|{c}": 20 for a in "가나다라마바사" for b in "아자차카타파하" for c in ("누리", "구름", "바다", "하늘")
    }
    outcome = train_unigram(SegmentedCounts.from_marked(words), vocab_size=320, keep=0.6).log["outcome"]
    assert outcome["josa"] == outcome["eomi"] == outcome["all"]


def test_tokens_can_be_asked_for(text):
    usual = train_unigram(text, vocab_size=SIZES[0]).log["outcome"]["tokens_per_eojeol"]
    more = train_unigram(text, vocab_size=SIZES[0], tokens=usual + 0.1).log["outcome"]
    assert more["tokens_per_eojeol"] == pytest.approx(usual + 0.1, abs=0.03)
    twice = train_unigram(text, vocab_size=SIZES[0], tokens=2 * usual + 0.2, eojeols=text.total / 2).log["outcome"]
    assert twice["tokens_per_eojeol"] == pytest.approx(2 * usual + 0.2, abs=0.06)


def test_what_cannot_be_had_is_said(text):
    outcome = train_unigram(text, vocab_size=SIZES[0], keep={"josa": 0.01}).log["outcome"]
    assert (outcome["met"], outcome["target"], outcome["asked"]) == (False, "josa", 0.01)
    least = train_unigram(text, vocab_size=SIZES[0], nu=0.0).log["outcome"]["josa"]
    assert outcome["josa"] == pytest.approx(least, abs=0.1), "the best possible"


def test_costs_take_the_target_away(text):
    log = train_unigram(text, vocab_size=SIZES[0], nu=0.4).log
    assert "asked" not in log["outcome"]
    assert log["outcome"]["nu"]["josa"] == 0.4


@pytest.mark.parametrize("size", [2000, *SIZES])
def test_presets_mean_the_same_at_every_size(text, size):
    """Law of the presets: the target is met wherever it can be, and more is kept from one to the next."""
    outcome = {name: train_unigram(text, vocab_size=size, preset=name).log["outcome"] for name in PRESETS}
    for name in ("short", "lm", "encoder"):
        assert outcome[name]["nu"]["josa"] >= PRESETS[name].nu["josa"] - 1e-6
        for group, share in PRESETS[name].keep.items():
            assert outcome[name][group] >= share - 0.02
    for share in ("all", "josa", "eomi"):
        shares = [outcome[name][share] for name in ("short", "lm", "encoder", "aligned")]
        assert all(b - a > -0.005 for a, b in pairwise(shares))
    assert outcome["aligned"]["all"] > 0.97, "every boundary that a piece can respect, punctuation too"


@given(st.floats(0.05, 0.95), st.floats(0.3, 3.0), st.floats(0.2, 5.0))
def test_an_aim_ends_near_what_is_wanted(want, steep, start):
    search, factor, value = TargetSearch(want, near=0.003), start, 0.0
    for _ in range(40):
        value = factor**steep / (1 + factor**steep)
        after = search.after(factor, value)
        if after is None:
            break
        factor = after
    at_an_end = factor in (pytest.approx(TargetSearch.LEAST), pytest.approx(TargetSearch.MOST))
    assert abs(value - want) <= 0.003 or at_an_end


# ── no dead piece ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [{}, {"preset": "short"}, {"preset": "aligned"}, {"keep": 0.8}, {"nu": 0.6}])
@pytest.mark.parametrize("size", SIZES)
def test_every_piece_is_used_by_some_word(text, size, options):
    """Law 15."""
    trained = train_unigram(text, vocab_size=size, **options)
    assert trained.vocab.size == size
    _, _, used = account(trained.vocab, text)
    dead = [piece for piece in trained.vocab.pieces if len(piece) > 1 and piece not in used]
    assert not dead
    assert trained.log["dead_pieces_replaced"] >= 0


def test_where_no_piece_saves_anything_what_costs_least_lives():
    """Law 15: every boundary is kept with fewer pieces, and still each piece is one that some word needs."""
    counts = SegmentedCounts.from_marked(
        {" 학교|에": 30, " 학교|에서": 20, " 집|에서": 10, " 집|에|는": 5, " 학교|는": 7}
    )
    for size in range(263, 269):
        vocab = train_unigram(counts, vocab_size=size, preset="aligned", min_count=2, aligned=False).vocab
        _, _, used = account(vocab, counts)
        assert used >= {piece for piece in vocab.pieces if len(piece) > 1}, size


def test_where_the_text_has_no_more_pieces_they_spell_themselves():
    counts = SegmentedCounts.from_marked({" 학교|에": 30, " 학교|에서": 20, " 집|에서": 10})
    for size in range(263, 274):
        vocab = train_unigram(counts, vocab_size=size, preset="aligned", min_count=2).vocab
        assert vocab.size == size
        model = model_for(vocab)
        _, _, used = account(vocab, counts)
        for piece in vocab.pieces:
            assert piece in used or len(piece) == 1 or model.encode(piece)[1] == [(0, len(piece))], piece


@given(st.dictionaries(st.text("가나다", min_size=1, max_size=4), st.integers(-4000, -1), min_size=1, max_size=12))
def test_pieces_can_be_made_to_spell_themselves(scores):
    scores = {**dict.fromkeys("가나다", -900), **scores}
    vocab = Vocab.unigram({piece: score / 256 for piece, score in scores.items()})
    raised = Vocab.unigram(spelling_themselves(vocab, vocab.pieces))
    model = model_for(raised)
    for piece in raised.pieces:
        assert model.encode(piece)[1] == [(0, len(piece))]
    before = dict(zip(vocab.pieces, vocab.scores, strict=True))
    assert all(score >= before[piece] for piece, score in zip(raised.pieces, raised.scores, strict=True))


@given(
    st.lists(st.text("가나다", min_size=1, max_size=6), min_size=1, max_size=6, unique=True),
    st.dictionaries(st.text("가나다", min_size=2, max_size=4), st.integers(-6, 0), max_size=8),
)
def test_ties_are_decoded_as_the_model_decodes_them(words, scores):
    """Few different scores, so that sums are often equal."""
    counts = SegmentedCounts.from_items((word, [], 1) for word in words)
    found = mine(counts, CandidatePolicy(min_count=1, aligned=False, coverage=1.0, closed=False))
    table = {piece: -2.0 for piece in found.pieces if len(piece) == 1} | {
        piece: float(score) for piece, score in scores.items() if piece in found.pieces
    }
    alive = np.array([piece in table for piece in found.pieces])
    with ThreadPoolExecutor(2) as pool:
        lattice = found.lattice.only(alive, pool)
        cut, _ = decode(lattice, np.array([table.get(piece, 0.0) for piece in found.pieces]), pool)
    model = model_for(Vocab.unigram(table))
    for i, word in enumerate(counts.words):
        ends = {
            int(node - lattice.node[i]) for node in np.flatnonzero(cut) if lattice.node[i] < node < lattice.node[i + 1]
        }
        assert ends == {b for _, b in model.encode(word)[1]}


# ── what is no candidate ──────────────────────────────────────────────────────────────────────────────────────────────


def test_no_candidate_is_a_word_cut_off_at_the_limit():
    words = {" shouldComponentUpdate": 50, " Component": 20, " Update": 20, " Updater": 5, " should": 10}
    counts = SegmentedCounts.from_items((word, [], n) for word, n in words.items())
    pieces = {piece for piece in mine(counts, CandidatePolicy(min_count=2, coverage=1.0)).pieces if len(piece) > 1}
    assert (
        pieces
        == {" should", "should", " Component", "Component", " Update", "Update", " Updater", "Updater", " U"} & pieces
    )
    assert {" should", "Component", "Update"} <= pieces
    assert "houldComponentUpdate" in mine(counts, CandidatePolicy(min_count=2, coverage=1.0, closed=False)).pieces


def blocked(**train: object) -> Job:
    return Job.of(SegmentedCounts.from_marked({"가": 1}), Recipe().changed(train=train), Pattern())


def test_junk_is_no_piece_unless_it_is_wanted():
    junk = (
        "ㅋㅋㅋㅋㅋ",
        "======",
        "-=-=-=-=",
        " https:",
        "www.",
        ".com",
        "com/",
        ".html?",
        "습니다...",
        " ***의",
        "ㅠㅠㅠ.",
        "&nbsp;",
        "amp;",
    )
    for piece in junk:
        assert blocked().crosses(piece)
        assert not blocked(junk="keep").crosses(piece)
    short = (
        " ...",
        "ㅋㅋ",
        " ㅋㅋㅋㅋ",
        "다ㅋㅋ",
        "--",
        " ---",
        "==",
        "!==",
        '"""',
        "하하하",
        " 1000",
        " VIII",
        "        ",
        "\t\t\t",
    )
    for piece in (*short, " https", "://", ".", "command", "</div>", " &&", "com", "a/"):
        assert not blocked().crosses(piece)


# ── the recipe ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_target_at_a_time():
    recipe = Recipe().changed(train={"keep": 0.8})
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    other = recipe.changed(train={"tokens_per_eojeol": 1.8}).train
    assert (other.keep, other.tokens_per_eojeol) == (None, 1.8), "another target takes the old one's place"
    assert recipe.changed(train={"preset": "aligned"}).train.keep is None
    assert recipe.changed(train={"nu": 0.4}).train.keep is None
    assert recipe.changed(train={"vocab_size": 8000}).train.keep == 0.8


def test_required_characters_are_a_list_or_strings():
    recipe = Recipe().changed(train={"required": ["뷁쀍", "똠"]})
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    job = Job.of(SegmentedCounts.from_marked({"가나": 5}), recipe, Pattern())
    assert {"뷁", "쀍", "똠", "가"} <= set(job.alphabet)


SHARES = st.fixed_dictionaries({name: st.floats(0, 1) for name in ("josa", "eomi", "all")})


@given(SHARES, SHARES, SHARES)
def test_a_lower_bound_is_missed_by_too_little_alone(
    wants: dict[str, float], values: dict[str, float], more: dict[str, float]
) -> None:
    bounds, exact = (Targets(wants, near=0.003, at_least=at_least) for at_least in (True, False))
    higher = {name: max(value, more[name]) for name, value in values.items()}
    assert bounds.missed(higher) <= bounds.missed(values) <= exact.missed(values)
    assert exact.missed(values) == max(abs(values[name] - want) for name, want in wants.items())


@given(SHARES, SHARES, SHARES)
def test_of_trials_that_meet_their_bounds_the_fewest_tokens_are_best(
    wants: dict[str, float], one: dict[str, float], other: dict[str, float]
) -> None:
    targets = Targets(wants, near=0.003, at_least=True)
    enough = {name: max(value, wants[name]) for name, value in one.items()}
    assert targets.rank(enough, 5.0) < targets.rank(dict.fromkeys(wants, 1.0), 6.0)
    if targets.missed(other) > 0.004:
        assert targets.rank(enough, 6.0) < targets.rank(other, 5.0)
