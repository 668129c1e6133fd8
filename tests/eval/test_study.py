"""eval/study: its arithmetic and its plan, what is prepared, and with PyTorch tiny runs that are stopped, repeated and judged."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from eval.study.data import Lists, Prepared, Stream, folds, write_arrays
from eval.study.prepare import Questions, held_out, pack, peers, pieces, size_of, tasks_of
from eval.study.sizes import EQUAL, FOLDS, PAIRS, PRIMARY, ROWS, SIZES, budget
from eval.tagger import Sentences
from koktok.report.benchmark import SPANS
from koktok.tokenizer.open import load

SIZE = replace(SIZES["tiny"], layers=1, width=32, context=24, batch=2, bytes_read=2_000, rates=(0.01, 0.02), tuned=12)
LINES = [f"{a}{b} {c}{d}다" for a in "나너그우" for b in "는은도만" for c in "먹보가오" for d in "았었는겠"]
PLAN = (Path(__file__).parents[2] / "eval" / "PLAN.md").read_text(encoding="utf-8")


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_read_equal_bytes() -> None:
    size = SIZES["gpu"]
    for per_token in (2.2, 4.3, 5.2):
        read = size.steps(per_token) * size.batch * size.tokens(per_token) * per_token
        assert read == pytest.approx(size.bytes_read, rel=2e-3)
    assert [round(rate / size.rates[0]) for rate in size.rates] == [1, 2, 4, 8, 16]


def test_the_plan_names_what_the_code_runs_and_its_budget_holds() -> None:
    for kind in SIZE.kinds:
        assert all(f"`{name}`" in PLAN for name in ROWS[kind])
        assert {name for pair in PAIRS[kind] for name in pair} <= {*ROWS[kind]}
        assert {(first, second) for first, second, _ in PRIMARY[kind]} <= {*PAIRS[kind]}
    assert {*peers(), *EQUAL} == {name for kind in ROWS.values() for name in kind}
    tuned = {"entities": 700_000, "answers": 3_200_000}
    minutes = {n: sum(count * each for _, count, each in budget(SIZES["gpu"], 32_001, n, tuned)) / 60 for n in (4.3, 5)}
    assert 20 < minutes[5] < minutes[4.3] < 30


def test_folds_keep_groups_together() -> None:
    groups = [k // 3 for k in range(40)]
    asked = []
    for train, test in folds(groups, 1, FOLDS):
        assert not {groups[k] for k in train} & {groups[k] for k in test}
        assert len(train) + len(test) == 40
        asked += test.tolist()
    assert sorted(asked) == list(range(40))


# ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_order_is_of_seed_and_pass(tmp_path: Path) -> None:
    lists = Lists.of([[i, i + 100] for i in range(50)])
    first, again, other = Stream(lists, 0), Stream(lists, 0), Stream(lists, 1)
    whole = first.take(0, 200)
    assert sorted(whole[:100].tolist()) == sorted(lists.flat.tolist())
    assert whole[:100].tolist() != whole[100:].tolist()
    assert again.take(137, 40).tolist() == whole[137:177].tolist()
    assert other.take(0, 100).tolist() != whole[:100].tolist()
    write_arrays(tmp_path / "ids.npz", {"a.b": lists})
    with np.load(tmp_path / "ids.npz") as found:
        assert found["a.b.flat"].dtype == np.uint16


def test_pieces_and_held_out_text_share_no_line() -> None:
    lines = [f"{k} {'가' * 30}" for k in range(100)]
    cut = list(pieces({"a": lines, "b": lines[:3]}))
    assert [line for piece in cut for line in piece] == [*lines, *lines[:3]]
    assert all(sum(map(size_of, piece)) >= 2000 for piece in cut[:-2])
    test, dev = held_out({"a": lines, "b": lines[:3]}, 4_000)
    assert 2_000 < sum(map(size_of, test.lines)) <= 4_000
    test, dev = held_out({"a": lines}, 100_000)
    assert not {*test.lines} & {*dev}
    assert (len(test.lines), 20 < len(dev) < 30) == (50, True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """What `prepare` writes of two rows: a token a character, and a token a byte."""
    data = tmp_path / "data-of"
    (data / "gold").mkdir(parents=True)
    tags = ["B-LC", "I-LC", "O", "O", "O", "B-PS", "O"]
    entity = "".join(f"{char}\t{tag}\n" for char, tag in zip("서울에서 이씨", tags, strict=True))
    (data / "gold" / SPANS[0]).write_text("\n".join([entity] * 15), encoding="utf-8")
    answers = [
        {
            "context": f"{name}는 집에 간다.",
            "qas": [{"question": "누가 가?", "answers": [{"answer_start": 0, "text": name}]}],
        }
        for name in ("나", "너", "누나") * 5
    ]
    content = {"data": [{"paragraphs": [paragraph]} for paragraph in answers]}
    (data / "gold" / SPANS[1]).write_text(json.dumps(content), encoding="utf-8")
    entities, questions = tasks_of(SIZE, data)
    cut = [LINES[k : k + 8] for k in range(0, len(LINES), 8)]
    for name, spec in (("sp-unigram", "bytes"), ("koktok-aligned", "bytes"), ("koktok-moved", "bytes")):
        subject = load(spec)
        place = tmp_path / "data" / name
        pack(place, subject, cut, LINES[:40], LINES[40:60], Sentences.of(entities, subject), questions)
    sizes = list(map(size_of, LINES))
    shared = {"data": str(data), "text": "of a test", "units": [k // 4 for k in range(40)], "test_bytes": sizes[:40]}
    shared |= {"articles": questions.corpus.documents, "tuned_bytes": {"entities": 400, "answers": 600}}
    (tmp_path / "data" / "shared.json").write_text(json.dumps(shared), encoding="utf-8")
    return tmp_path


def test_what_is_prepared_has_every_byte_and_every_span(work: Path) -> None:
    data = Prepared(work, "sp-unigram")
    assert data.about["bytes_per_token"] == 1  # a byte a token, the end of a line too
    assert data.end == 256
    assert len(data.lists["train"].flat) == sum(map(size_of, LINES))
    assert len(data.lists["answers-ids"]) == len(data.lists["questions"]) == len(data.lists["entities-ids"]) == 12
    assert all(any(row) for row in data.lists["answers-labels"])


def test_questions_whose_answer_is_cut_off_are_left_out(tmp_path: Path) -> None:
    paragraph = {"context": "가" * 400 + "나", "qas": []}
    for at in (3, 400):
        text = paragraph["context"][at]
        paragraph["qas"].append({"question": "?", "answers": [{"answer_start": at, "text": text}]})
    file = tmp_path / "q.json"
    file.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}), encoding="utf-8")
    found = Questions.read(file, None)
    assert found.corpus.spans == [[(3, 4)]]
    assert len(found.corpus.texts[0]) == 300


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def one_thread() -> object:
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


ASKED = "sp-unigram|koktok-(aligned|moved)"


@pytest.mark.filterwarnings("ignore")
def test_stopped_and_repeated_runs_find_the_same(
    work: Path, one_thread: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    from eval.study import report, train

    other = work.parent / f"{work.name}-other"
    shutil.copytree(work, other)
    assert train.train(SIZE, work, ASKED, 2, math.inf)
    clock = iter(range(1_000_000))
    monkeypatch.setattr(train.time, "monotonic", lambda: next(clock))
    stops = 0
    while not train.train(SIZE, other, ASKED, 2, 6):
        stops += 1
    assert stops > 3
    monkeypatch.undo()

    def cells(folder: Path) -> dict[str, dict[str, object]]:
        found = {file.name: json.loads(file.read_text()) for file in (folder / "cells").glob("*.json")}
        return {name: cell | {"seconds": 0} for name, cell in found.items()}

    whole = cells(work)
    assert cells(other) == whole
    assert len(whole) == 3 * 2 * 2 + 3 + 2 * 3 * 2  # sweeps, tuning, two seeds of both kinds
    found = report.figures(SIZE, work, 2)
    for kind in SIZE.kinds:
        assert found[kind]["seeds"] == 2
        assert {*found[kind]["not run"]} == {*ROWS[kind]} - {"sp-unigram", "koktok-aligned", "koktok-moved"}
    assert 0 < found["decoder"]["rows"]["sp-unigram"]["bits per byte"]["value"] < 9
    same = found["encoder"]["contrasts"]["koktok-aligned − koktok-moved"]
    assert same["entities"]["value"] == same["answers"]["value"] == 0, "rows of the same tokens and seeds differ"
    assert "| koktok-aligned − sp-unigram |" in report.page(found)
    assert "| together |" in report.plan(SIZE, work)


def test_a_kept_run_counts_for_the_same_text_alone(work: Path, one_thread: object) -> None:
    from eval.study import train

    runs = train.Runs(SIZE, work, work / "kept")
    cell = train.Cell("encoder", "sp-unigram", "whole", 0, 0.01)
    swept = replace(cell, part="sweep")
    (work / "cells").mkdir()
    for one in (cell, swept):
        (work / "cells" / f"{one.key}.json").write_text(json.dumps(asdict(one)), encoding="utf-8")
    runs.keep()
    (work / "cells").rename(work / "elsewhere")
    assert (runs.done(cell), runs.done(swept)) == (asdict(cell), None)
    assert runs.done(replace(cell, row="sp-equal")) is None, "is not prepared"
    text = work / "data" / "shared.json"
    text.write_text(text.read_text(encoding="utf-8").replace("of a test", "another text"), encoding="utf-8")
    assert runs.done(cell) is None


@pytest.mark.filterwarnings("ignore")
def test_bits_are_counted_over_bytes_of_text(work: Path, one_thread: object) -> None:
    """A model that knows nothing pays log2 of its vocabulary for every token."""
    torch = one_thread
    from eval.study.train import Cell, held_loss

    class Even(torch.nn.Module):  # type: ignore[attr-defined, misc, name-defined]
        def forward(self, ids: object) -> object:
            return ids

        def scores(self, ids: object) -> object:
            return torch.zeros(*ids.shape, 257)  # type: ignore[attr-defined]

    bits = held_loss(Even(), SIZE, Prepared(work, "sp-unigram"), "test", Cell("decoder", "sp-unigram", "whole", 0, 0.1))
    assert len(bits) == sum(map(size_of, LINES[:40]))
    assert math.isclose(bits.mean(), math.log2(257), rel_tol=1e-6)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 12, 13, 40, 100])
def test_every_token_is_predicted_once_behind_what_came_before(length: int, one_thread: object) -> None:
    torch = one_thread
    from eval.study.model import Transformer
    from eval.study.train import token_bits

    torch.manual_seed(0)  # type: ignore[attr-defined]
    model = Transformer(SIZE, 50, causal=True).eval()
    stream = np.random.default_rng(0).integers(0, 50, length + 1)
    with torch.no_grad():  # type: ignore[attr-defined]
        bits = token_bits(model, stream, 8)
        ids = torch.tensor(stream)[None, :9]  # type: ignore[attr-defined]
        scores = model.scores(model(ids[:, :-1]))[0].log_softmax(-1)
    assert len(bits) == length
    for k in range(min(length, 8)):
        assert bits[k] == pytest.approx(-float(scores[k, stream[k + 1]]) / math.log(2), rel=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_a_decoder_sees_no_future_and_an_encoder_no_padding(one_thread: object) -> None:
    torch = one_thread
    from eval.study.model import Transformer

    ids = torch.arange(10)[None]  # type: ignore[attr-defined]
    other = ids.clone()
    other[0, 7:] = 40
    for causal in (True, False):
        torch.manual_seed(0)  # type: ignore[attr-defined]
        model = Transformer(SIZE, 50, causal=causal).eval()
        assert model.body() == SIZE.body
        with torch.no_grad():  # type: ignore[attr-defined]
            assert torch.allclose(model(ids)[0, :7], model(other)[0, :7], atol=1e-6) == causal  # type: ignore[attr-defined]
            if not causal:
                seven = torch.tensor([7])  # type: ignore[attr-defined]
                assert torch.allclose(model(ids, seven)[0, :7], model(other, seven)[0, :7], atol=1e-6)  # type: ignore[attr-defined]


def test_masks_are_berts(one_thread: object) -> None:
    from eval.study.train import blanked

    ids = np.arange(20_000) % 50
    blank, chosen = blanked(ids, 50, np.random.default_rng(0))
    assert 0.14 < chosen.mean() < 0.16
    assert (blank == ids)[~chosen].all()
    assert 0.78 < (blank == 50)[chosen].mean() < 0.82


@pytest.mark.filterwarnings("ignore")
def test_tuning_learns_entities(work: Path, one_thread: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve like sentences: what a head learns from ten it says of the others."""
    from eval.study import train
    from eval.study.report import answers_right, cuts_of

    monkeypatch.setitem(train.EPOCHS, "entities", 80)
    runs, data = train.Runs(SIZE, work), Prepared(work, "sp-unigram")
    model = runs.pretrained(train.Cell("encoder", "sp-unigram", "sweep", 0, 0.01), data)
    entities, questions = tasks_of(SIZE, work / "data-of")
    found, right = runs.tuned(model, data, "entities", 0, 0.01, FOLDS)
    cuts = cuts_of(data, "entities", entities)
    judged = np.sum([cuts.judged(k, np.array(row)) for k, row in enumerate(found)], axis=0)
    assert right == 1
    assert judged.tolist() == [24, 24, 24]
    examples = train.Examples(data, "answers")
    exact = [examples.answer_of(k) for k in range(12)]
    assert answers_right(cuts_of(data, "answers", questions.corpus), exact) == ([True] * 12, [True] * 12)
