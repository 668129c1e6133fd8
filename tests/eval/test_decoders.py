"""eval/study, size `cpu`: pairs, what is asked, and runs that are stopped, repeated, refused and judged."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval.study.asked import COLUMNS, Asked, going_on, packed
from eval.study.data import Lists, Prepared
from eval.study.pairs import Words, class_of, pairs_of, prompts_of, read_pairs, write_pairs
from eval.study.rows import FIRST, KOKTOK, PAIRS, PRIMARY, ROWS, peers
from eval.study.sizes import SIZES
from koktok.metrics import Text
from koktok.tokenizer.open import load

PLAN = (Path(__file__).parents[2] / "eval" / "PLAN.md").read_text(encoding="utf-8")
SIZE = replace(SIZES["cpu"], layers=1, width=32, context=48, batch=2, bytes_read=6_000, rates=(0.01, 0.02), sweep=0.25)
LINES = [f"{a}{b} {c}{d}다" for a in "나너그우" for b in "는은도만" for c in "먹보가오" for d in "았었는겠"]
TRUE = [
    "우리는 어제 남규리를 만났다고 한다.",
    "그 사람은 집에서는 밥을 먹지 않았다고 말한다.",
    "친구가 큰 산을 보았다.",
]


@pytest.fixture
def torch() -> object:
    found = pytest.importorskip("torch", reason="the extra `train` is not installed")
    threads = found.get_num_threads()
    found.set_num_threads(1)
    yield found
    found.set_num_threads(threads)


def asked_of(lines: list[str]) -> Asked:
    words = Words(lines)
    test = {"a": lines[:60], "b": lines[60:80]}
    pairs = pairs_of({"a": TRUE}, words)
    return Asked({"a": lines}, Text.of(test), lines[80:100], pairs, prompts_of({"a": [TRUE[1] * 2]}), words)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """What `prepare` writes of two rows whose tokens are bytes."""
    asked = asked_of(LINES)
    known = {name: packed(tmp_path / "data" / name, asked, load("bytes")) for name in ("sp", "aligned")}
    (tmp_path / "data" / "asked.json").write_text(json.dumps(asked.about() | {"rows": known}), encoding="utf-8")
    return tmp_path


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_plan_names_every_row() -> None:
    assert all(f"`{name}`" in PLAN for name in ROWS)
    assert {name for pair in PAIRS for name in pair} == {name for name, row in ROWS.items() if not row.tried}
    assert {name for pair in PRIMARY for name in pair} <= {*FIRST}
    assert len({*PAIRS}) == len(PAIRS)
    assert {row.peer for row in ROWS.values() if not row.equal} <= {*peers()}
    assert {row.equal for row in ROWS.values() if row.equal} == {*KOKTOK, "lm-before", "lm-more"}
    swept = {name for name, row in ROWS.items() if not row.like}
    assert {row.like for row in ROWS.values() if row.like} <= swept
    assert ", ".join(f"`{name}`" for name in ("sp", "sp-12k", "lm", "lm-64k", "aligned")) in PLAN
    assert "`lm-64k` takes the rate of `lm`" in PLAN
    assert swept == {"sp", "sp-12k", "lm-before", "aligned", "bpe-before", "hf"}
    assert {row.tried for row in ROWS.values()} <= {"", *ROWS}


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pairs_break_one_rule_each() -> None:
    found = {(pair.kind, pair.stem): pair for pair in pairs_of({"a": TRUE}, Words(["남규리는 남규리 밥을"]))}
    wrong = {key: pair.bad for key, pair in found.items()}
    assert wrong["을/를", "남규리"] == "우리는 어제 남규리을 만났다고 한다."
    assert found["을/를", "남규리"].frequency == 2
    assert "사람는" in wrong.get(("은/는", "사람"), "사람는")
    assert {kind for kind, _ in wrong} >= {"을/를"}
    for pair in found.values():
        assert pair.good != pair.bad
        assert pair.good[: pair.at] == pair.bad[: pair.at]


def test_a_file_of_pairs_comes_back(tmp_path: Path) -> None:
    pairs = pairs_of({"a": TRUE}, Words(TRUE))
    write_pairs(tmp_path / "pairs.jsonl", pairs)
    assert pairs == read_pairs(tmp_path / "pairs.jsonl")
    assert pairs


def test_every_character_and_token_has_a_column(work: Path) -> None:
    asked, data = asked_of(LINES), Prepared(work, "sp")
    about = asked.about()
    assert np.sum(about["characters"]) == sum(len(line) + 1 for line in asked.test.lines)
    assert len(about["characters"]) == len(about["source"]) == 3  # 50 and 10 lines of one source, 20 of another
    for name in ("columns", "unknown"):
        assert data.lists[name].ends.tolist() == data.lists["test"].ends.tolist()
    line, columns = asked.test.lines[0], next(iter(data.lists["columns"])).tolist()
    assert line == "나는 먹았다"
    first, second = class_of(asked.words.counts["나는"]), class_of(asked.words.counts["먹았다"])
    assert columns == [5 + first] * 6 + [second] * 10 + [COLUMNS - 1]


def test_a_second_part_goes_on_without_a_space() -> None:
    assert going_on(load("bytes"), ["리는 간다"]) == [[*"리는 간다".encode()]]


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_head_has_the_gradient_of_pytorch(torch: object) -> None:
    from eval.study.model import CHUNK, MeanNats, nats

    torch.manual_seed(0)
    n = CHUNK + 7
    hidden, weight = torch.randn(n, 16, requires_grad=True), torch.randn(64, 16, requires_grad=True)
    shares, targets = torch.randn(64), torch.randint(0, 60, (n,))
    shares[60:] = -math.inf
    torch.nn.functional.cross_entropy(hidden @ weight.T + shares, targets).backward()
    expected = hidden.grad.clone(), weight.grad.clone()
    hidden.grad = weight.grad = None
    loss = MeanNats.apply(hidden, weight, shares, targets)
    (2 * loss).backward()
    assert torch.allclose(hidden.grad, 2 * expected[0], atol=1e-6)
    assert torch.allclose(weight.grad, 2 * expected[1], atol=1e-5)
    with torch.no_grad():
        assert torch.allclose(nats(hidden, weight, shares, targets).mean(), loss)


@pytest.mark.filterwarnings("ignore")
def test_bits_of_lines_are_those_of_their_tokens(torch: object) -> None:
    from eval.study.decoders import bits_of
    from eval.study.model import Transformer

    torch.manual_seed(0)
    model = Transformer(SIZE, 64, causal=True, shares=torch.randn(64)).eval()
    random = np.random.default_rng(0)
    rows = Lists.of([random.integers(0, 60, n).tolist() for n in (1, 8, 9, 30, 3)])
    with torch.no_grad():
        found = bits_of(model, rows, 63, 8)
        for k, row in enumerate(rows):
            ids = torch.tensor([63, *row.tolist()])[None, :9]
            scores = model.scores(model(ids[:, :-1]))[0].log_softmax(-1)
            for i in range(ids.shape[1] - 1):
                assert found[rows.ends[k] + i] == pytest.approx(
                    -float(scores[i, ids[0, i + 1]]) / math.log(2), rel=1e-4
                )
    assert (found > 0).all()


def test_a_branch_ends_at_every_mark(torch: object) -> None:
    from eval.study.cells import FALL, WARM, turns

    found = turns(300, (2 / 3, 1.0))
    ends = [k for k, turn in enumerate(found) if turn.mark]
    begins = [k for k, turn in enumerate(found) if turn.begins]
    assert [found[k].text for k in ends] == [199, 299]
    assert [end - begin + 1 for begin, end in zip(begins, ends, strict=True)] == [round(200 * FALL), round(300 * FALL)]
    trunk = [turn.text for turn in found[: begins[0]] + found[ends[0] + 1 :]]
    assert trunk == [*range(300)], "a step of the text is read once but for what a branch reads before the trunk"
    assert found[WARM - 1].factor == found[begins[0]].factor == found[ends[0] + 1].factor == 1
    assert found[ends[0]].factor == pytest.approx(1 / round(200 * FALL))


def kept_cells(folder: Path) -> dict[str, dict[str, object]]:
    import lzma

    found = {file.name: json.loads(lzma.decompress(file.read_bytes())) for file in (folder / "cells").glob("*.xz")}
    return {name: cell | {"seconds": 0} for name, cell in found.items()}


@pytest.mark.filterwarnings("ignore")
def test_runs_that_are_stopped_anywhere_find_the_same(
    work: Path, torch: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    from eval.study import decoders

    other = work.parent / f"{work.name}-other"
    shutil.copytree(work, other)
    assert decoders.train(SIZE, work, "sp|aligned", 2, math.inf, "whole", 1)
    stops = 0
    monkeypatch.setattr(decoders, "KEEP", 0.0)
    clock = iter(range(10_000_000))
    monkeypatch.setattr(decoders.time, "monotonic", lambda: next(clock))
    while not decoders.train(SIZE, other, "sp|aligned", 2, 40, "whole", 1):
        stops += 1
    monkeypatch.undo()
    assert stops > 5
    whole = kept_cells(work)
    assert kept_cells(other) == whole
    assert len(whole) == 2 + 2, "rates and seeds: rows of the same tokens have the same cells"
    assert not [*other.glob("cells/*.part")]
    cells = decoders.Cells(SIZE, work, kept=work / "none")
    marks = cells.done(decoders.Cell("aligned", "whole", 0, cells.rate("aligned")))["marks"]
    assert [*marks] == ["0.667", "1"]
    assert marks["1"]["flops"] > marks["0.667"]["flops"]
    assert np.sum(marks["1"]["bits"]) < np.sum(marks["0.667"]["bits"])


@pytest.mark.filterwarnings("ignore")
def test_a_short_run_is_the_beginning_of_the_whole_one(work: Path, torch: object) -> None:
    from eval.study import decoders

    assert decoders.train(SIZE, work, "sp", 1, math.inf, "short", 1)
    assert decoders.train(SIZE, work, "sp", 1, math.inf, "whole", 1)
    cells = decoders.Cells(SIZE, work, kept=work / "none")
    short, whole = (cells.done(decoders.Cell("sp", part, 0, cells.rate("sp"))) for part in ("short", "whole"))
    assert short["part"] == "short"
    assert short["marks"]["0.667"] == whole["marks"]["0.667"]


@pytest.mark.filterwarnings("ignore")
def test_cells_travel_and_stale_ones_do_not(work: Path, torch: object, capsys: pytest.CaptureFixture[str]) -> None:
    from eval.study import decoders

    assert decoders.train(SIZE, work, "^sp$", 1, math.inf, "whole", 1)
    kept = work / "kept"
    decoders.Cells(SIZE, work, kept).keep()
    assert {file.name for file in kept.iterdir()} == {"asked.json", *(file.name for file in work.glob("cells/*.xz"))}
    decoders.Cells(SIZE, work, kept).keep()
    assert not capsys.readouterr().err.count("no longer count")
    elsewhere = decoders.Cells(SIZE, work / "elsewhere", kept)
    assert elsewhere.done(decoders.Cell("aligned", "whole", 0, elsewhere.rate("aligned"))) is not None, (
        "aligned has the same tokens"
    )
    assert not [*elsewhere.cells("", 3, "whole")], "what is not prepared is not run"
    (work / "cells").rename(work / "old")
    cell = decoders.Cell("sp", "sweep", 100, 0.01)
    assert decoders.Cells(SIZE, work, kept).done(cell) is not None
    assert decoders.Cells(replace(SIZE, width=16), work, kept).done(cell) is None
    file = work / "data" / "asked.json"
    about = json.loads(file.read_text(encoding="utf-8"))
    about["rows"]["sp"]["arrays"] = "other"
    file.write_text(json.dumps(about), encoding="utf-8")
    assert decoders.Cells(SIZE, work, kept).done(cell) is None
    decoders.Cells(SIZE, work, kept).keep()
    assert "no longer count: sp" in capsys.readouterr().err


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def made_up(work: Path, rows: dict[str, tuple[float, float, float]], seeds: int = 3) -> None:
    """Cells of rows by (factor of bits, FLOPs of the whole, share of pairs that are wrong): the short run has 10 % more bits."""
    import lzma

    from eval.study.cells import Cell, Cells

    about = {"vocabulary": 32_001, "tokens": 2.0, "bytes_per_token": 5.0, "changed": 0, "digest": "x"}
    characters = np.full((6, COLUMNS), 10).tolist()
    asked = {
        "text": "t", "train_bytes": 1_000, "eojeols": 9, "sources": ["a", "b", "c"], "source": [0, 0, 1, 1, 2, 2],
        "characters": characters, "pairs": [["은/는", k % 5, "a"] for k in range(20)], "prompts": ["a"] * 4,
        "rows": {name: about | {"arrays": name} for name in rows},
    }  # fmt: skip
    (work / "data").mkdir()
    (work / "data" / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    (work / "cells").mkdir()
    cells = Cells(SIZE, work, work / "none")
    common = {"seconds": 60, "processor": "some"}
    text = np.random.default_rng(1).uniform(20, 40, (6, COLUMNS))
    for name, (factor, flops, wrong) in rows.items():
        runs = {Cell(name, "sweep", 100, rate): {"rate": rate, "marks": {"1": {"dev": rate}}} for rate in SIZE.rates}
        for seed in range(seeds):
            pairs = [-1.0 if k < 20 * wrong else 1.0 for k in range(20)]
            marks = {}
            for mark, more, share in (("0.667", 1.1, 2 / 3), ("1", 1.0, 1.0)):
                marks[mark] = {
                    "flops": flops * share,
                    "bits": (text * factor * more * (1 + 0.001 * seed)).tolist(),
                    "pairs": pairs,
                    "prompts": [[50.0, 50.0 + factor], [0.0, 0.0], [30.0, 30.0 + factor], [20.0, 20.0 + factor]],
                }
            runs[Cell(name, "whole", seed, SIZE.rates[0])] = {"rate": SIZE.rates[0], "marks": marks, **common}
        for cell, found in runs.items():
            (work / "cells" / f"{cells.name(cell)}.json.xz").write_bytes(lzma.compress(json.dumps(found).encode()))


def test_figures_are_ratios_of_bits(tmp_path: Path) -> None:
    from eval.study.compared import figures
    from eval.study.tables import page

    same = (1.0, 100.0, 0.1)
    rows = {"sp": same, "lm": (0.99, 110.0, 0.1), "hf": (1.04, 95.0, 0.3), "bpe": same}
    made_up(tmp_path, rows | {"lm-before": same, "bpe-before": same})
    found = figures(SIZE, tmp_path, 3)
    lm, hf = found["contrasts"]["lm − sp"], found["contrasts"]["hf − sp"]
    assert lm["bits"]["value"] == pytest.approx(-0.01)
    assert hf["bits"]["value"] == pytest.approx(0.04)
    assert lm["bits"]["high"] - lm["bits"]["low"] < 1e-6, "the same ratio in every unit and seed"
    curve = 100 / 110
    at_equal = 0.99 * curve ** (math.log(1 / 1.1) / math.log(1.5))
    assert lm["equal_flops"]["value"] == pytest.approx(at_equal - 1, rel=1e-3)
    assert not lm["equal_flops"]["below"]
    assert hf["equal_flops"]["value"] == pytest.approx(
        1.04 / (0.95 ** (math.log(1 / 1.1) / math.log(1.5))) - 1, rel=1e-3
    )
    assert lm["flops"] == pytest.approx(0.1)
    assert found["rows"]["hf"]["pairs"]["all"]["right"] == pytest.approx(0.7)
    assert found["rows"]["hf"]["pairs"]["all"]["more"]["value"] == pytest.approx(-0.2)
    assert found["rows"]["lm"]["prompts"]["n"] == 3
    assert found["rows"]["lm"]["prompts"]["more"]["value"] == pytest.approx(-0.01)
    assert {*found["not run"]} == {*ROWS} - {*rows, "lm-before", "bpe-before"}
    assert found["not run"]["aligned"] == "its vocabulary is not prepared"
    tested = [pair for pair in PRIMARY if {*pair} <= {*found["rows"]}]
    assert [" − ".join(pair) for pair in tested] == [key for key, one in found["contrasts"].items() if "holm" in one]
    told = page(found)
    assert told.index("`hf`: ") < told.index("`sp`: ") < told.index("`lm`: "), "losses first"
    assert "−1.00 [−1.00, −1.00]" in told
    assert "`aligned` (its vocabulary is not prepared)" in told


@pytest.mark.parametrize(("there", "counted"), [(1, 1), (2, 1), (3, 3)])
def test_two_of_three_seeds_count_as_one(there: int, counted: int, tmp_path: Path) -> None:
    from eval.study.compared import Figures

    made_up(tmp_path, {"sp": (1.0, 100.0, 0.1)}, there)
    assert [*Figures(SIZE, tmp_path, 3).rows["sp"].cells] == [*range(counted)]
    assert [*Figures(SIZE, tmp_path, there).rows["sp"].cells] == [*range(there)]


def test_a_change_is_judged_by_its_short_run(tmp_path: Path) -> None:
    from eval.study.compared import figures
    from eval.study.tables import page

    made_up(tmp_path, {"sp": (1.0, 100.0, 0.1), "lm-before": (0.99, 110.0, 0.1), "lm-rare": (0.97, 121.0, 0.0)})
    found = figures(SIZE, tmp_path, 3)
    assert "lm-rare" not in {*found["rows"], *found["not run"]}
    one = found["tried"]["lm-rare"]
    assert one["bits"]["value"] == pytest.approx(0.97 / 0.99 - 1, rel=1e-4)
    assert one["equal_flops"] == pytest.approx(0.97 / 0.99 / 1.1 ** (math.log(1 / 1.1) / math.log(1.5)) - 1)
    assert one["pairs"] == pytest.approx(0.1)
    assert "| `lm-rare`: `lm-before`, rare pieces dearer | `lm-before` | +0.0 | +10.0 | −2.02 " in page(found)


def test_intervals_are_over_sources_and_seeds() -> None:
    from eval.study.compared import Sample, wider

    source = np.repeat([0, 1, 2], [5, 1, 10])
    sample = Sample(source)
    drawn = sample.draws(3, sources=True)
    assert drawn.seeds.sum(axis=1).tolist() == [3] * len(drawn.seeds)
    for one in range(3):
        of_source = drawn.texts[:, source == one].sum(axis=1) / (source == one).sum()
        assert of_source.tolist() == of_source.round().tolist(), "a source is drawn whole"
        assert of_source.mean() == pytest.approx(1, abs=0.05)
    within = sample.draws(3, sources=False).texts
    assert [{*within[:, source == one].sum(axis=1)} for one in range(3)] == [{5}, {1}, {10}], "sources stay as they are"
    assert (sample.freedom(sources=True), sample.freedom(sources=False)) == (2, 13)
    seeds = np.array([-0.01, 0.0, 0.01])
    narrow = wider(seeds, np.full(100, 0.0) + np.linspace(-1e-6, 1e-6, 100), 2)
    assert narrow.high == pytest.approx(4.30265 * 0.01 / math.sqrt(3), rel=1e-3), "Student's t of the seeds"
    assert narrow.p == 1, "the larger of two"
    assert wider(seeds, np.linspace(-1, 1, 100), 2).high > 1
    draws = np.random.default_rng(0).normal(0, 1, 100_000)
    wide = wider(seeds + 0.02, draws, 2)
    assert wide.high == pytest.approx(0.02 + 4.30265 * math.sqrt(3 / 2), rel=1e-2), (
        "a bootstrap of three has two thirds of the variance"
    )
    assert wider(seeds + 2, draws / 1e3, 2).p == pytest.approx(wider(seeds + 2, draws / 1e9, 2).p)
    assert wider(seeds[:1], draws, 2).high > 4
    assert wider(seeds[:1], np.linspace(-1, 1, 100), 2).n == 1
