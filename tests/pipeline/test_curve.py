"""The frontier: every figure by a second, plainer way; the front by brute force; and what is shown of it."""

import json
import re
from dataclasses import replace
from itertools import combinations, pairwise, product
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.trainers import train_unigrams

import koktok
from koktok.count import count_words
from koktok.errors import UsageError, VocabSizeError
from koktok.model.models import model_for
from koktok.model.vocab import Vocab
from koktok.pipeline.baseline import compare
from koktok.pipeline.curve import (
    FrontierRow,
    frontier,
    measure,
    on_front,
    reference,
    silver_of,
    train_frontier,
)
from koktok.recipe import Recipe
from koktok.report.frontier import SIZES_NOTE, draw, flags, to_json, to_markdown
from koktok.segment.segmented import Cut, SegmentedCounts
from koktok.training.job import Job
from koktok.training.unigram_point import FRONTIER, PRESETS, chosen

TAILS = [
    "에서",
    "으로",
    "에게",
    "까지",
    "이다",
    "했다",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "에",
    "의",
    "도",
    "다",
    "고",
]


def by_hand(lines):
    """Pretokens of the lines, cut before a tail that looks like a particle or an ending: an analyser for tests."""
    items = []
    for word, n in count_words(lines).items():
        bare = word.rstrip(".,?!")
        tail = next((t for t in TAILS if bare.endswith(t) and len(bare.strip()) > len(t)), "")
        items.append((word, [Cut(len(bare) - len(tail))] if tail else [], n))
    return SegmentedCounts.from_items(items)


@pytest.fixture(scope="module")
def halves(mini):
    train, held = [line for i, line in enumerate(mini) if i % 5], mini[::5]
    return by_hand(train), by_hand(held), sum(len(line.split()) for line in held)


POINTS = tuple(
    replace(point, min_count=2) for point in FRONTIER if point.name not in ("keep 0.5", "keep 0.9", "encoder")
)


def jobs(text, *sizes, **more):
    return [Job(text, size, alphabet=(), coverage=0.9995, **more) for size in sizes]


@pytest.fixture(scope="module")
def rows(halves):
    train, held, eojeols = halves
    return frontier(jobs(train, 2400, 3000), held, held_eojeols=eojeols, points=POINTS)


def hangul(char):
    return 0xAC00 <= ord(char) < 0xAC00 + 11172


def second_way(spans_of, held, eojeols):
    """Every occurrence by itself, gap after gap."""
    tokens = right = wrong = missed = 0
    for word, cuts, n in held.items():
        there = {cut.offset for cut in cuts}
        for _ in range(n):
            spans = spans_of(word)
            tokens += len(spans)
            for gap, (a, b) in enumerate(pairwise(word), start=1):
                if hangul(a) and hangul(b):
                    made = not any(start < gap < end for start, end in spans)
                    right += made and gap in there
                    wrong += made and gap not in there
                    missed += not made and gap in there
    precision = right / (right + wrong) if right + wrong else 0
    recall = right / (right + missed)
    f1 = 2 * precision * recall / (precision + recall) if right else 0
    return pytest.approx((tokens / eojeols, precision, recall, f1))


def figures(row):
    return row.tokens_per_eojeol, row.precision, row.recall, row.f1


# ── points ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_points_go_from_short_to_aligned():
    assert [point for point in FRONTIER if point.name in PRESETS] == [
        PRESETS[name] for name in ("short", "lm", "encoder", "aligned")
    ]
    shares = [point.keep["eomi"] for point in FRONTIER if point.keep is not None]
    assert shares == sorted(shares)
    assert len(shares) == len(FRONTIER) - 1, "all but `aligned`"
    assert len({point.name for point in FRONTIER}) == len(FRONTIER) == 7


def test_every_point_can_be_had_by_options():
    for point in FRONTIER:
        words = flags(vars(point)).split()
        options = dict(zip(words[::2], words[1::2], strict=True))
        preset = PRESETS[options.pop("--preset")]
        if "--keep" in options:
            preset = preset.with_target(keep=float(options.pop("--keep")))
        assert not options
        assert replace(preset, name=point.name) == point
    assert flags(vars(PRESETS["aligned"])) == "--preset aligned"
    exact = chosen("lm", keep=PRESETS["lm"].keep)
    assert flags(vars(exact)) == "--preset lm --keep josa=0.865,eomi=0.84,all=0.8", "its own shares, but not as bounds"
    assert flags(vars(replace(PRESETS["short"], rarity=0.7))) == ""
    assert flags(vars(replace(PRESETS["short"], nu={"josa": 1.0, "rest": 0.0}))) == ""


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_are_what_a_training_gives(halves, rows):
    train, held, eojeols = halves
    assert {(row.name, row.vocab_size) for row in rows} == {(p.name, n) for p in POINTS for n in (2400, 3000)}
    assert rows == sorted(rows, key=lambda row: (row.vocab_size, row.tokens_per_eojeol))
    again = {size: train_unigrams(train, points=POINTS, vocab_size=size) for size in (2400, 3000)}
    for row in rows:
        model = model_for(again[row.vocab_size][row.name].vocab)
        assert figures(row) == second_way(lambda word, model=model: model.encode(word)[1], held, eojeols)
        point = next(point for point in POINTS if point.name == row.name)
        assert row.settings == {key: value for key, value in vars(point).items() if key != "name"}


def test_a_small_text_lowers_the_floor_of_a_point_that_asks_for_candidates(halves):
    train, held, eojeols = halves
    job, short = jobs(train, 3000), FRONTIER[0]
    with pytest.raises(VocabSizeError):
        frontier(job, held, held_eojeols=eojeols, points=[replace(short, min_count=5, per_id=0.0)])
    (row,) = frontier(job, held, held_eojeols=eojeols, points=[short])
    assert row.settings["min_count"] == short.min_count, "the setting is told as it was asked for"


def test_the_result_depends_on_nothing_else(halves, rows):
    train, held, eojeols = halves
    told = []
    again = frontier(
        jobs(train, 3000, 2400, threads=1, on_progress=lambda *step: told.append(("train", *step))),
        held,
        held_eojeols=eojeols,
        points=POINTS[::-1],
        on_progress=lambda *step: told.append(step),
    )
    assert again == rows
    assert {stage for stage, _, _ in told} == {"train", "measure"}
    assert told[-1] == ("measure", 8, 8)
    assert ("train", 4, 4) in told


words = st.builds(str.__add__, st.sampled_from(["", " "]), st.text("가나다a뷁.", min_size=1, max_size=4))


@st.composite
def held_out(draw):
    items = []
    for word in draw(st.lists(words, min_size=1, max_size=3, unique=True)):
        offsets = draw(st.sets(st.integers(1, len(word) - 1))) if len(word) > 1 else set()
        items.append((word, [Cut(offset) for offset in offsets], draw(st.integers(1, 3))))
    return SegmentedCounts.from_items([*items, ("다다", [Cut(1)], 1)] if "다다" not in {i[0] for i in items} else items)


def has_gold(held):
    return any(hangul(word[c.offset - 1]) and hangul(word[c.offset]) for word, cuts, _ in held.items() for c in cuts)


@given(
    held_out(),
    st.lists(st.sampled_from(["가나", "나다", " 가", "가나다", "a.", "다."]), unique=True),
    st.integers(1, 9),
)
def test_measure_by_the_second_way(held, longer, eojeols):
    vocab = Vocab.unigram({piece: -float(i + 1) for i, piece in enumerate([*longer, *"가나다a. "])})
    if not has_gold(held):
        with pytest.raises(UsageError, match="no cut between two Hangul"):
            silver_of(held, eojeols)
        return
    row = measure("mine", vocab, silver_of(held, eojeols), nu=1)
    assert figures(row) == second_way(lambda word: model_for(vocab).encode(word)[1], held, eojeols)
    assert (row.name, row.vocab_size, row.settings) == ("mine", vocab.size, {"nu": 1})
    assert row.f1 <= row.ceiling + 1e-12


def test_bytes_of_one_syllable_are_one_place():
    held = SegmentedCounts.from_marked({"가|뷁": 1})
    row = measure("bytes", Vocab.unigram({"가": -1.0}), silver_of(held, 1))
    assert figures(row) == (4.0, 1.0, 1.0, 1.0)


def test_a_cut_beside_anything_but_syllables_is_no_boundary():
    held = SegmentedCounts.from_marked({" |학교|에|.": 1, "a|학교": 1, "3|개": 2, "ㄱ|가": 1})
    assert reference(held, eojeols=5).gold == 1


# ── references ────────────────────────────────────────────────────────────────────────────────────────────────────────


def cuttings(word):
    for k in range(len(word)):
        for inner in combinations(range(1, len(word)), k):
            yield list(pairwise((0, *inner, len(word))))


@given(held_out().filter(has_gold), st.integers(1, 9))
def test_the_ceiling_is_the_best_of_all_cuttings(held, eojeols):
    """Every occurrence may be cut its own way, or ceilings between would not be reached."""
    found = reference(held, eojeols=eojeols)
    reached = {(0, 0, 0)}  # tokens, hits and cuts of all occurrences
    for word, cuts, n in held.items():
        gaps = {i for i in range(1, len(word)) if hangul(word[i - 1]) and hangul(word[i])}
        gold = {cut.offset for cut in cuts} & gaps
        one = set()
        for way in cuttings(word):
            made = {start for start, _ in way} & gaps
            one.add((len(way), len(made & gold), len(made)))
        for _ in range(n):
            reached = {tuple(map(sum, zip(a, b, strict=True))) for a, b in product(reached, one)}
    best = {}
    for tokens, hits, cuts in reached:
        best[tokens] = max(best.get(tokens, 0.0), 2 * hits / (cuts + found.gold))
    for tokens, f1 in best.items():
        assert found.ceiling(tokens / eojeols) == pytest.approx(f1)


@given(held_out().filter(has_gold), st.integers(1, 9))
def test_the_trivial_row(held, eojeols):
    row = reference(held, eojeols=eojeols).trivial

    def characters(word):
        glued = word.replace(" ", "", 1) if len(word) > 1 else word
        ends = [len(word) - len(glued) + i for i in range(1, len(glued) + 1)]
        return list(pairwise([0, *ends]))

    assert figures(row) == second_way(characters, held, eojeols)
    assert row.recall == 1
    assert row.vocab_size == len({char for word in held.words for char in word})


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("size", "message"), [(200, "expected at least"), (10**6, "too few candidates for 1,000,000 ids")]
)
def test_impossible_sizes(halves, size, message):
    train, held, eojeols = halves
    with pytest.raises(VocabSizeError, match=message):
        frontier(jobs(train, size, 2400), held, held_eojeols=eojeols, points=FRONTIER[:1])


# ── the front ─────────────────────────────────────────────────────────────────────────────────────────────────────────

some_rows = st.lists(
    st.builds(
        lambda size, tokens, f1: FrontierRow(f"{size}", size, tokens, f1, f1, f1, f1, {}),
        st.sampled_from([8000, 16000, 32000]),
        st.integers(5, 9).map(lambda n: n / 4),
        st.integers(0, 5).map(lambda n: n / 5),
    ),
    min_size=1,
    max_size=12,
)


def beats(a, b):
    as_good = a.vocab_size <= b.vocab_size and a.tokens_per_eojeol <= b.tokens_per_eojeol and a.f1 >= b.f1
    better = a.vocab_size < b.vocab_size or a.tokens_per_eojeol < b.tokens_per_eojeol or a.f1 > b.f1
    return as_good and better


@given(some_rows)
def test_the_front_by_brute_force(some):
    assert on_front(some) == [not any(beats(other, row) for other in some) for row in some]


# ── what is shown ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_table_has_every_row_and_the_trivial_one(halves, rows):
    _, held, eojeols = halves
    found = reference(held, eojeols=eojeols)
    title, _, _, rule, *lines = to_markdown(rows[::-1], found).partition("\n\nEmbeddings' share")[0].splitlines()
    assert "silver" in title
    assert [line.split(" | ")[1] for line in lines] == [row.name for row in rows] + ["one token per character"]
    assert {line.count("|") for line in lines} == {rule.count("|")}
    stars = [" ★ |" in line for line in lines]
    assert stars == [*on_front(rows), False]
    assert any(f"| {row.f1:.3f} |" in line for row, line in zip(rows, lines[:1], strict=False))
    piped = to_markdown([replace(rows[0], name="a|b")]).splitlines()[-1]
    assert piped.replace("\\|", "").count("|") == rule.count("|")


def test_what_the_number_of_ids_costs():
    """Few ids make a text long, many make each token dear; a large model is worth more of them."""
    tokens = {8_000: 2.2, 16_000: 2.0, 32_000: 1.87, 64_000: 1.78, 128_000: 1.72}
    rows = [FrontierRow("lm", size, n, 0.7, 0.7, 0.7, 0.7, {}) for size, n in tokens.items()]
    _, _, shown = to_markdown([*rows, replace(rows[0], name="short")]).partition("Embeddings' share")
    _, _, head, _, *lines, empty, note = shown.splitlines()
    assert (empty, note) == ("", SIZES_NOTE)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *lines)]
    assert [row[0] for row in cells[1:]] == [f"{size:,}" for size in tokens]
    least = {
        name: next(row[0] for row in cells[1:] if row[k].endswith(" 1.000")) for k, name in enumerate(cells[0]) if k > 1
    }
    assert list(least) == ["135M", "1B", "8B", "70B"]
    best = [int(size.replace(",", "")) for size in least.values()]
    assert best == sorted(best)
    assert best[0] < best[-1]
    assert cells[3][3] == "6%, 1.000"  # 32,000 x 2,048 of 1,039 M; 1.87 x 1,039 is the least
    assert "Embeddings" not in to_markdown(rows[:1])


def test_json(halves, rows):
    _, held, eojeols = halves
    read = json.loads(to_json(rows[::-1], reference(held, eojeols=eojeols)))
    assert [row["name"] for row in read["rows"]] == [row.name for row in rows]
    assert [row["on_front"] for row in read["rows"]] == on_front(rows)
    assert read["reference"]["trivial"]["recall"] == 1
    assert "silver" in read["gold"]
    assert json.loads(to_json(rows))["reference"] is None


def test_a_drawing(halves, rows):
    _, held, eojeols = halves
    found = reference(held, eojeols=eojeols)
    named = [replace(rows[0], name="가 <b>"), *rows[1:]]
    drawn = draw(named, found)
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert draw(named[::-1], found) == drawn
    assert "가 &lt;b&gt;" in drawn
    assert drawn.count('class="dot') == len(rows)
    assert len(re.findall('class="dot[^"]* best"', drawn)) == sum(on_front(rows))
    assert "one token per character" in drawn
    assert "boundary F1 (silver)" in drawn
    assert "형태소 경계 F1 (분석기 기준)" in drawn
    assert "one token" not in draw(rows)
    beside = draw(
        rows, replace(found, peers=(FrontierRow("SentencePiece Unigram", 2400, 3.2, 0.4, 0.4, 0.4, 0.4, {}),))
    )
    assert beside.count('class="dot') == len(rows) + 1
    assert "SentencePiece 2,400" in beside


def test_sentencepiece_has_the_tokens_of_the_closing_table(mini):
    """Measured on whole words: on pretokens, into which digits are cut, each would begin with a space."""
    lines = [f"{line} 2026년 11월" for line in mini]
    recipe = Recipe().changed(vocab_size=2300, holdout=0.5)
    _, against = train_frontier(lines, recipe, vocab_sizes=[2300])
    table = compare(koktok.train(lines, recipe, measured=True))
    assert [row.tokens_per_eojeol for row in against.peers] == [table.rows[1].figures.tokens_per_eojeol]


def test_a_row_is_the_training_that_its_options_give(mini):
    """Of several sizes, too: each has its own alphabet and candidates; digits and scripts are split as the curve says."""
    lines, recipe = [f"{line} 2026년 API는" for line in mini], Recipe().changed(holdout=0.5)
    rows, _ = train_frontier(lines, recipe, vocab_sizes=[2300, 2600, 2300], peer=False)
    assert len(rows) == 2 * len(FRONTIER), "a size that is named twice is trained once"
    asked = [row for row in rows if (row.name, row.vocab_size) in (("lm", 2600), ("encoder", 2300), ("aligned", 2300))]
    assert len(asked) == 3
    for row in asked:
        words = flags(row.settings).replace("--", "").split()
        options = dict(zip(words[::2], words[1::2], strict=True))
        table = compare(
            koktok.train(lines, recipe.changed(vocab_size=row.vocab_size, **options), measured=True), peer=False
        )
        found = table.rows[0].figures
        figures = (found.tokens_per_eojeol, found.f1, found.f1_all)
        assert (row.tokens_per_eojeol, row.f1, row.f1_all) == figures, (row.name, options)
    assert {flags(row.settings) for row in asked} == {
        "--preset lm",
        "--preset encoder --digits single",
        "--preset aligned --split eojeol",
    }
