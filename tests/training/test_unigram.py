"""The unigram trainer: kernels against enumeration, selection against a slow reference, laws of the result."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.trainers import train_unigram, train_unigrams

from koktok.errors import UsageError
from koktok.recipe import SCRIPTS
from koktok.segment.segmented import BoundaryKind, Cut, SegmentedCounts
from koktok.training import scores as crf
from koktok.training.candidates import CandidatePolicy, mine
from koktok.training.lattice import CostWeights, NodePrices, addition_gain, decode, removal_loss
from koktok.training.prune import Choice
from koktok.training.scripts import by_script, script_of
from koktok.training.superwords import SuperwordPolicy, crosses_space
from koktok.training.unigram_point import PRESETS, Point

STEMS = ("학교", "사람", "친구", "하늘", "바다", "나무", "이야기", "노래", "먹", "마시", "달리")
TAILS = ("이", "가", "은", "는", "을", "에서", "에서|는", "었|다", "고", "지만", "었|습니다")


def text() -> SegmentedCounts:
    return SegmentedCounts.from_marked(
        {
            f" {stem}|{tail}": 5 + 37 * i % 50 + 91 * j % 30
            for i, stem in enumerate(STEMS)
            for j, tail in enumerate(TAILS)
        }
    )


@st.composite
def segmented(draw):
    word = st.builds(str.__add__, st.sampled_from(["", " "]), st.text("가나다a", min_size=1, max_size=5))
    words = draw(st.lists(word, min_size=1, max_size=5, unique=True))
    rows = []
    for word in words:
        offsets = draw(st.sets(st.integers(1, max(1, len(word) - 1)))) if len(word) > 1 else set()
        cuts = [
            Cut(o, draw(st.sampled_from([BoundaryKind.JOSA, BoundaryKind.COMPOUND, BoundaryKind.PREFIX])), 0.5)
            for o in sorted(offsets)
        ]
        rows.append((word, cuts, draw(st.integers(1, 9))))
    return SegmentedCounts.from_items(rows)


def ways(word):
    """All segmentations, as lists of (start, end)."""
    for k in range(len(word)):
        for inner in combinations(range(1, len(word)), k):
            edges = (0, *inner, len(word))
            yield list(pairwise(edges))


def is_hangul(char):
    return "가" <= char <= "힣"


def cost(word, cuts, weights, way, scale=1.0):
    """The definition of `docs/architecture.md`, word for word."""
    total = weights.lam * len(way)
    inner = {a for a, _ in way[1:]}
    trusted = {cut.offset: cut for cut in cuts if weights.nu[cut.kind] > 0}
    for cut in cuts:
        if cut.offset not in inner:
            total += weights.nu[cut.kind] * cut.confidence * scale
    for offset in inner:
        if is_hangul(word[offset - 1]) and is_hangul(word[offset]):
            total += weights.mu * (1 - (trusted[offset].confidence if offset in trusted else 0.0))
    return total


WEIGHTS = CostWeights.of(1.0, 0.7, {"josa": 1.3, "compound": 0.4, "rest": 0.0})


def prepared(counts, weights=WEIGHTS):
    found = mine(counts, CandidatePolicy(min_count=1, aligned=False, coverage=1.0, closed=False))
    return found, NodePrices(counts, found.lattice.node).costs(weights), weights.lam * found.tokens


@settings(max_examples=60, deadline=None)
@given(segmented(), st.randoms(use_true_random=False))
def test_charge_and_offer_equal_enumeration(counts, random):
    found, costs, price = prepared(counts)
    alive = np.array([len(p) == 1 or random.random() < 0.5 for p in found.pieces])

    def best(word, cuts, known):
        return min(cost(word, cuts, WEIGHTS, way) for way in ways(word) if all(word[a:b] in known for a, b in way))

    def total(known):
        return sum(n * best(word, cuts, known) for word, cuts, n in counts.items())

    known = {p for p, lives in zip(found.pieces, alive, strict=True) if lives}
    with ThreadPoolExecutor(2) as pool:
        objective, _, loss = removal_loss(found.lattice.only(alive, pool), costs, price, pool)
        objective2, _, gain = addition_gain(found.lattice, costs, price, alive, pool)
    assert objective == pytest.approx(total(known))
    assert objective2 == pytest.approx(objective)
    for i, piece in enumerate(found.pieces):
        # Exact where no word holds the piece twice (then the first order is a bound).
        if len(piece) == 1 or any(
            word.count(piece) > 1 or piece in word[word.find(piece) + 1 :] for word in counts.words
        ):
            continue
        if alive[i]:
            assert loss[i] == pytest.approx(total(known - {piece}) - objective)
        else:
            assert gain[i] == pytest.approx(objective - total(known | {piece}))


@settings(max_examples=40, deadline=None)
@given(segmented(), st.randoms(use_true_random=False))
def test_a_lattice_loses_the_arcs_of_dropped_pieces_alone(counts, random):
    """In one step or in two, each node with its arcs in their order."""
    found, _, _ = prepared(counts)
    more = np.array([len(p) == 1 or random.random() < 0.7 for p in found.pieces])
    fewer = more & np.array([len(p) == 1 or random.random() < 0.7 for p in found.pieces])
    with ThreadPoolExecutor(2) as pool:
        for lattice in (found.lattice.only(fewer, pool), found.lattice.only(more, pool).only(fewer, pool)):
            assert lattice.arc[0] == 0
            for v in range(len(lattice.arc) - 1):
                here, whole = (slice(*one.arc[v : v + 2]) for one in (lattice, found.lattice))
                kept = fewer[found.lattice.piece[whole]]
                assert lattice.piece[here].tolist() == found.lattice.piece[whole][kept].tolist()
                assert lattice.length[here].tolist() == found.lattice.length[whole][kept].tolist()


@settings(max_examples=40, deadline=None)
@given(segmented(), st.integers(0, 99))
def test_score_gradient_equals_enumeration(counts, seed):
    found, _, price = prepared(counts)
    start = np.random.default_rng(seed).normal(-2, 1, len(price))
    index = {p: i for i, p in enumerate(found.pieces)}
    lone = SegmentedCounts.from_items([next(iter(counts.items()))])
    word, cuts, _ = next(iter(lone.items()))
    lone_found, lone_costs, lone_price = prepared(lone)
    lone_start = np.array([start[index[p]] for p in lone_found.pieces])
    once = {"damping": np.ones(1), "epochs": 1, "rate": 1e-6, "prior": 0.0}
    with ThreadPoolExecutor(2) as pool:
        after = crf.fit(lone_found.lattice, lone_costs, lone_price, lone_start, **once, pool=pool)
    free, good = {}, {}
    for way in ways(word):
        score = sum(lone_start[lone_found.pieces.index(word[a:b])] for a, b in way)
        for table, value in ((free, score), (good, score - cost(word, cuts, WEIGHTS, way))):
            table[tuple(way)] = np.exp(value)
    expected = np.zeros(len(lone_start))
    for table, sign in ((good, 1), (free, -1)):
        for way, value in table.items():
            for a, b in way:
                expected[lone_found.pieces.index(word[a:b])] += sign * value / sum(table.values())
    if len(word) < 2:
        assert np.array_equal(after, lone_start)
    elif max(word.count(p) for p in lone_found.pieces) == 1:
        step = (after - lone_start) / 1e-6  # Adagrad's first step from a square of 1
        assert step == pytest.approx(expected / np.sqrt(1 + expected**2), abs=2e-5)


@settings(max_examples=40, deadline=None)
@given(segmented(), st.integers(0, 99))
def test_decode_equals_enumeration(counts, seed):
    found, _, price = prepared(counts)
    score = np.random.default_rng(seed).normal(-2, 1, len(price))
    with ThreadPoolExecutor(2) as pool:
        cut, uses = decode(found.lattice, score, pool)
    value = dict(zip(found.pieces, score.tolist(), strict=True))
    for i, (word, _, _) in enumerate(counts.items()):
        way = max(ways(word), key=lambda w: sum(value[word[a:b]] for a, b in w))
        base = int(found.lattice.node[i])
        assert [o for o in range(1, len(word) + 1) if cut[base + o]] == [b for _, b in way]
    assert sum(len(p) * n for p, n in zip(found.pieces, uses.tolist(), strict=True)) == sum(
        len(word) * n for word, _, n in counts.items()
    )


def test_selection_beats_the_slow_reference():
    """The reference drops one piece at a time, trying each; ours may not cost more than 1 % over it."""
    counts = SegmentedCounts.from_marked(
        {f" {stem}|{tail}": 3 + i * j for i, stem in enumerate(STEMS[:5]) for j, tail in enumerate(TAILS[:6])}
    )
    found = mine(counts, CandidatePolicy(min_count=10, coverage=1.0))
    costs, price = NodePrices(counts, found.lattice.node).costs(PRESETS["lm"].weights()), found.tokens
    fixed = np.zeros(len(price), dtype=bool)
    fixed[: found.n_chars] = True
    size = found.n_chars + 12
    with ThreadPoolExecutor(1) as pool:
        choice = Choice(size, found.lattice, costs, price, fixed, None, pool, [])
        ours = choice.refine(choice.prune(np.ones(len(price), dtype=bool)))
        objective = removal_loss(found.lattice.only(ours, pool), costs, price, pool)[0]
        alive = np.ones(len(price), dtype=bool)
        while alive.sum() > size:
            trials = {}
            for i in np.flatnonzero(alive & ~fixed).tolist():
                alive[i] = False
                trials[i] = removal_loss(found.lattice.only(alive, pool), costs, price, pool)[0]
                alive[i] = True
            alive[min(trials, key=trials.get)] = False
        reference = removal_loss(found.lattice.only(alive, pool), costs, price, pool)[0]
    assert ours.sum() == size
    assert objective <= reference * 1.01
    swaps = [entry.objective for entry in choice.rounds if entry.step == "swap"]
    assert objective == pytest.approx(min(swaps))


def test_candidates_respect_the_policy():
    counts = SegmentedCounts.from_marked({" 학교|에|서": 10, ' "그|는': 10, "▁가": 10, "희귀": 1})
    policy = CandidatePolicy(min_count=5, coverage=0.95, crosses=lambda piece: '"' in piece and len(piece) > 1)
    found = mine(counts, policy, required="뷁")
    longer = found.pieces[found.n_chars :]
    assert "교에" not in longer, "starts inside a morpheme and ends behind a cut"
    assert "학교에" in longer
    assert not any('"' in piece or "▁" in piece or "희" in piece for piece in longer)
    required = {found.pieces[i] for i in np.flatnonzero(found.required)}
    assert "뷁" in required
    assert not required & {"▁", "희"}
    assert set(mine(counts, CandidatePolicy(min_count=5, aligned=False)).pieces) > {"교에"}


def test_a_string_is_counted_once_however_many_others_there_are():
    pairs = [chr(0xAC00 + i) + chr(0xB000 + j) for i in range(200) for j in range(200)]
    text = SegmentedCounts.from_items([*((p, (), 3) for p in pairs), *((p + "힣", (), 2) for p in pairs)])
    assert {*pairs} <= {*mine(text, CandidatePolicy(min_count=5, coverage=1.0)).pieces}


def test_sizes_count_everything():
    for size in (330, 310):
        (result,) = train_unigrams(
            text(), vocab_size=size, specials=["<s>", "</s>"], points=[Point("p", min_count=2)]
        ).values()
        assert result.vocab.size == size
        assert result.vocab.specials == ("<s>", "</s>")
        json.dumps(result.log)
    alone = train_unigram(text(), vocab_size=330, specials=["<s>", "</s>"], min_count=2)
    rounds = [entry["objective"] for entry in alone.log["rounds"] if entry["step"] == "prune"]
    assert rounds == sorted(rounds), "fewer pieces cost more"


def bilingual() -> SegmentedCounts:
    """The Korean words, and English ones that are rarer: the cost alone would give them few places."""
    stems = ("token", "train", "learn", "return", "import", "charact", "segment", "encod")
    words = [stem + tail for stem in stems for tail in ("", "er", "ers", "ed", "ing")]
    korean = {word: n * 20 for word, _, n in text().items()}
    return SegmentedCounts.from_marked({**korean, **{f" {word}": 3 + i for i, word in enumerate(words)}})


def test_reserve_shares_the_vocabulary_by_script():
    def latin(**options):
        trained = train_unigram(bilingual(), vocab_size=380, preset="short", coverage=1, **{"min_count": 2, **options})
        assert trained.vocab.size == 380
        assert trained.log["pieces_by_script"] == by_script(trained.vocab.pieces)
        return trained.log["pieces_by_script"]["latin"]

    n = 380 - 256
    free = latin()
    assert free < int(0.5 * n) == latin(reserve={"latin": 0.5})
    assert free == latin(reserve={"latin": free / n / 2}), "a floor under what the cost gives changes nothing"
    few = latin(min_count=60, reserve={"latin": 0.6})
    assert free < latin(reserve={"latin": 0.6}) == int(0.6 * n)
    assert few < int(0.6 * n), "fewer candidates than places: all of them, and the others get the rest"
    both = train_unigram(
        bilingual(), vocab_size=380, min_count=2, coverage=1, reserve={"latin": 0.4, "hangul": 0.58}
    ).log["pieces_by_script"]
    assert both["latin"] >= int(0.4 * n)
    assert both["hangul"] >= int(0.58 * n)


@pytest.mark.parametrize("size", [300, 306])
def test_reserve_goes_with_superwords(size):
    run = {" 할 수|가 있|다": 40, " 갈 수|가 있|다": 30, " the token of": 9, " the tokenizer": 8, " the character": 8}
    runs = SegmentedCounts.from_marked(
        run | {" tokens": 7, " token": 7, " a tokenize": 6, " char acter": 5, " actor": 4}
    )
    trained = train_unigrams(
        runs,
        points=[Point("p", min_count=2)],
        vocab_size=size,
        runs=runs,
        superwords=SuperwordPolicy(share=0.1, min_count=2, min_runs=1),
        reserve={"latin": 0.6},
    )
    vocab = trained["p"].vocab
    assert vocab.size == size
    assert by_script(vocab.pieces)["latin"] >= int(0.6 * (size - 256))
    assert sum(crosses_space(piece) for piece in vocab.pieces) <= int(0.1 * (size - 256))


def test_reserve_refuses_more_places_than_there_are():
    for reserve in ({"latin": 0.6, "hangul": 0.6}, {"latin": 1.0}):
        with pytest.raises(UsageError, match="and the required characters"):
            train_unigram(bilingual(), vocab_size=340, min_count=2, reserve=reserve)


def test_pieces_without_a_syllable_may_be_longer():
    words = {" internationalization": 10, " 가나다라마바사아자차카타파하거너더러머버": 10, " " * 18 + "x": 10}
    found = mine(SegmentedCounts.from_marked(words), CandidatePolicy(min_count=5, coverage=1.0))
    longest = {script: max(len(p) for p in found.pieces if script_of(p) == script) for script in SCRIPTS}
    assert longest == {"hangul": 12, "latin": 20, "other": 18}


def test_the_floor_rises_with_large_text():
    times = [30] * 10 + [12] * 10
    text = SegmentedCounts.from_items((chr(0xAC00 + 2 * i) + chr(0xAC01 + 2 * i), (), n) for i, n in enumerate(times))
    required = [chr(0xAC00 + i) for i in range(40)]

    def floor(eojeols):
        point = Point("mine", per_id=5 / 301)
        (made,) = train_unigrams(
            text, points=[point], vocab_size=301, required=required, coverage=0.0, eojeols=eojeols
        ).values()
        return made.log["point"]["min_count"], made.log["candidates"] - 40

    assert floor(20_000_000) == (10, 20)
    assert floor(60_000_000) == (30, 10)
    assert floor(80_000_000) == (10, 20), "40 leaves none, so it falls again"


def test_the_floor_falls_until_there_are_candidates_enough():
    # Ten words stand 10 times, ten 4 times, ten 3 times, ten once.
    times = [10] * 10 + [4] * 10 + [3] * 10 + [1] * 10
    text = SegmentedCounts.from_items((chr(0xAC00 + 2 * i) + chr(0xAC01 + 2 * i), (), n) for i, n in enumerate(times))
    at = {"vocab_size": 256 + 85, "required": [chr(0xAC00 + i) for i in range(80)], "coverage": 0.0}

    def floor(**more):
        point = Point("mine", **{"min_count": 10, **more})
        (made,) = train_unigrams(
            text, points=[point], vocab_size=at["vocab_size"], **{k: at[k] for k in ("required", "coverage")}
        ).values()
        return made.log["point"]["min_count"], made.log["candidates"] - 80

    assert floor() == (10, 10)
    assert floor(per_id=10 / 341) == (10, 10)
    assert floor(per_id=11 / 341) == (3, 30), "7 and 5 leave ten as well"
    assert floor(per_id=31 / 341) == (2, 30), "a string that stands once is no candidate, whatever is wanted"
    assert floor(min_count=4, per_id=1.0) == (2, 30)
    for size, lowest in ((336, 10), (341, 3)):
        point = Point("mine", per_id=10 / 338)
        (made,) = train_unigrams(text, points=[point], vocab_size=size, required=at["required"], coverage=0.0).values()
        assert made.log["point"]["min_count"] == lowest
    made = train_unigram(text, min_count=10, **at).log
    assert made["point"]["min_count"] == 10, "who names a floor gets that floor"
