"""eval/study: arms and their arithmetic, probes, intervals and verdicts; with PyTorch, tiny runs that are stopped and repeated."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval.study.data import Lists, Prepared, Stream, write_arrays
from eval.study.sizes import ALL, CELLS, REFERENCE, SIZES, Cell, Shape

SIZE = replace(
    SIZES["tiny"], layers=1, width=32, context=24, batch=2, bytes_read=3_000, rates=(0.01,), sweep=1 / 3, prompts=8
)
LINES = [f"{a}{b} {c}{d}다" for a in "나너그우" for b in "는은도만" for c in "먹보가오" for d in "았었는겠"]


def token(form: str, tag: str, start: int) -> Namespace:
    return Namespace(form=form, tag=tag, start=start)


# ── sizes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_equal_bytes_and_equal_flops() -> None:
    """A smaller vocabulary has a cheaper head, and more steps for the same compute; its sequences are longer."""
    size = SIZES["tiny"]
    word, letter = Shape.of(size, 8001, 4.5), Shape.of(size, 2167, 2.2)
    assert (word.context, letter.context) == (57, 116)
    for shape in (word, letter):
        assert shape.steps(size, "bytes", word) * shape.step_bytes == pytest.approx(size.bytes_read, rel=2e-3)
    assert letter.steps(size, "flops", word) * letter.flops == pytest.approx(
        word.steps(size, "bytes", word) * word.flops, rel=2e-3
    )
    assert size.flops(8001, 57) == 6 * (size.body + 96 * 8001) + 6 * 2 * 96 * 57
    assert word.steps(size, "flops", word) == word.steps(size, "bytes", word)


def test_the_plan_names_what_the_code_runs() -> None:
    plan = (Path(__file__).parents[2] / "eval" / "study" / "PLAN.md").read_text(encoding="utf-8")
    cells = next(line for line in plan.splitlines() if line.startswith("| cells "))
    for name in (*CELLS["night"], *CELLS["gpu"]):
        assert f"`{name}`" in cells
    bodies = [SIZES[name].body / 1e6 for name in ("tiny", "night", "gpu")]
    assert [f"{body:.2g}" if body < 10 else f"{body:.1f}" for body in bodies] == ["0.22", "1.8", "31.5"]
    assert ".22 M" in plan
    assert "31.5 M" in plan


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


# ── prepare ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def making() -> object:
    return pytest.importorskip("eval.study.prepare", reason="the extra `instances` is not installed")


def test_every_tokenizer_of_the_plan_can_be_made(making: object) -> None:
    assert tuple(making.tokenizers()) == ALL  # type: ignore[attr-defined]


def test_the_wrong_allomorph(making: object) -> None:
    find = lambda line, *tokens: list(making.allomorphs(line, tokens))  # type: ignore[attr-defined] # noqa: E731
    assert find("밥을 먹었다", token("을", "JKO", 1), token("었", "EP", 4)) == [
        ("josa", "밥를 먹었다"),
        ("eomi", "밥을 먹았다"),
    ]
    assert find("나는 가면", token("는", "JX", 1), token("면", "EC", 4)) == [
        ("josa", "나은 가면"),
        ("eomi", "나는 가으면"),
    ]
    assert not find("밥는", token("는", "JX", 1))  # a slip of the writer
    assert not find("있었니", token("니", "EC", 2))  # 있었으니 is Korean
    assert not find("했다", token("었", "EP", 0))  # fused


def test_pieces_and_held_out_text_share_no_line(making: object) -> None:
    lines = [f"{k} {'가' * 30}" for k in range(100)]
    cut = list(making.pieces({"a": lines, "b": lines[:3]}))  # type: ignore[attr-defined]
    assert [line for piece in cut for line in piece] == [*lines, *lines[:3]]
    assert all(sum(map(making.size_of, piece)) >= 2000 for piece in cut[:-2])  # type: ignore[attr-defined]
    held = making.held_out({"a": lines, "b": lines[:3]}, 4_000)  # type: ignore[attr-defined]
    assert 2_000 < sum(map(making.size_of, held.test.lines)) <= 4_000  # type: ignore[attr-defined]
    held = making.held_out({"a": lines}, 100_000)  # type: ignore[attr-defined]
    assert not {*held.test.lines} & {*held.dev}
    assert len(held.test.lines) == 50
    assert 20 < len(held.dev) < 30


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def written(work: Path, name: str, encode: object, spelled: list[bytes]) -> None:
    """What `prepare` leaves, of another tokenizer."""
    end = len(spelled)
    rows = [[*encode(line), end] for line in LINES]  # type: ignore[operator]
    train = Lists.of([[i for row in rows[k : k + 8] for i in row] for k in range(0, len(rows), 8)])
    lists = {"train": train, "test": Lists.of(rows[:40]), "dev": Lists.of(rows[40:60])}
    lists |= {f"{kind}-right": Lists.of(rows[:5]) for kind in ("josa", "eomi")}
    lists |= {f"{kind}-wrong": Lists.of([[*row[:-2], row[0], end] for row in rows[:5]]) for kind in ("josa", "eomi")}
    lists |= {"prompts": Lists.of([row[:2] for row in rows[:8]]), "sentiment-train": Lists.of(rows[:20])}
    lists |= {f"sentiment-{how}": Lists.of(rows[20:30]) for how in ("clean", "no_spaces", "all_spaces")}
    sizes = [len(line.encode()) + 1 for line in LINES]
    place = work / "data" / name
    place.mkdir(parents=True)
    write_arrays(place / "ids.npz", lists)
    about = {"vocabulary": end + 1, "bytes_per_token": sum(sizes) / len(train.flat), "unknown_bits": [0.0] * 40}
    about |= {"written": [text.decode("latin-1") for text in (*spelled, b"\n")], "digest": name, "lossless": 1.0}
    about |= {key: {"value": 1.5, "low": 1.4, "high": 1.6} for key in ("f1", "fertility")}
    (place / "about.json").write_text(json.dumps(about), encoding="utf-8")
    held = {"key": ["tiny", "open-ko"], "units": [k // 4 for k in range(40)], "test_bytes": sizes[:40]}
    held |= {"dev_bytes": sum(sizes[40:60]), "missing": {"topic": "no --topics FILE was given"}, "piece_bytes": sizes}
    held |= {
        "answers": {"prompts": [line[2] for line in LINES[:8]], "sentiment": [k % 2 for k in range(30)]},
        "probes": {},
    }
    (work / "data" / "shared.json").write_text(json.dumps(held), encoding="utf-8")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Two tokenizers: a piece a character, and a piece a byte."""
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    letters = sorted({char for line in LINES for char in line})
    written(tmp_path, REFERENCE, lambda line: [letters.index(char) for char in line], [c.encode() for c in letters])
    written(tmp_path, "characters", lambda line: list(line.encode()), [bytes([k]) for k in range(256)])
    return tmp_path


def all_losses(work: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in sorted((work / "cells").glob("*/losses.jsonl"))}


@pytest.mark.filterwarnings("ignore")
def test_stopped_and_repeated_runs_lose_the_same(
    work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: object
) -> None:
    """Stopped after every third step, or never, or begun behind another arm's trunk or not: the losses are the same."""
    import shutil

    import torch

    from eval.study import train as runs_of
    from eval.study.train import Runs, train

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    other = work.parent / f"{work.name}-other"
    shutil.copytree(work, other)
    names, seeds = [REFERENCE, "characters"], [0]
    assert train(Runs(SIZE, work), names, seeds)
    whole = all_losses(work)
    assert len(whole) == 2 + 2 + 2  # sweeps; the reference, and again; both arms
    cell = Cell("characters", "flops", 0, 0.01)
    clock = iter(range(10_000_000))
    monkeypatch.setattr(runs_of.time, "monotonic", lambda: next(clock))
    for _ in range(1000):
        if train(Runs(SIZE, other, seconds=6), names, seeds):
            break
    assert all_losses(other) == whole
    found = [json.loads((place / "cells" / cell.key / "done.json").read_text()) for place in (work, other)]
    assert found[0]["bits"] == found[1]["bits"]
    assert not list(work.glob("trunks/*"))
    again = [whole[f"{REFERENCE}-0-0.01{which}-bytes"] for which in ("", "-again1")]
    assert again[0] == again[1]
    alone = work.parent / f"{work.name}-alone"
    shutil.copytree(work, alone)
    for arm in ("bytes", "flops"):
        shutil.rmtree(alone / "cells" / f"characters-0-0.01-{arm}")
    monkeypatch.undo()
    Runs(SIZE, alone).run(cell)
    assert all_losses(alone)[cell.key] == whole[cell.key]
    torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore")
def test_bits_are_counted_over_bytes_of_text(work: Path) -> None:
    """A model that knows nothing pays log2 of its vocabulary for every token, byte pieces too; the text has its bytes."""
    import torch

    from eval.study.report import Found
    from eval.study.train import Runs

    class Even(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, ids: object) -> object:
            return torch.zeros(*ids.shape, 257)  # type: ignore[attr-defined]

    runs = Runs(SIZE, work)
    data = Prepared(work, "characters")
    bits, ends = runs.bits(Even(), data, "test", data.shape(SIZE))  # type: ignore[arg-type]
    size = sum(len(line.encode()) + 1 for line in LINES[:40])
    assert len(bits) == size == ends[-1]
    assert math.isclose(bits.sum() / size, math.log2(257), rel_tol=1e-6)
    assert Found(runs, [REFERENCE], [0]).sizes.sum() == size


@pytest.mark.filterwarnings("ignore")
def test_probes_and_report(work: Path, tmp_path: Path) -> None:
    from eval.study.probe import probe
    from eval.study.report import report
    from eval.study.train import Runs, train

    names = [REFERENCE, "characters", "hf-bpe"]
    (work / "data" / "hf-bpe").mkdir()
    (work / "data" / "hf-bpe" / "failed.json").write_text('"ImportError: no tokenizers"', encoding="utf-8")
    runs = Runs(SIZE, work)
    assert train(runs, names, [0, 1])
    probe(runs, names, [0])
    report(runs, "tiny", names, [0, 1], tmp_path / "r.md")
    told, found = (tmp_path / "r.md").read_text(encoding="utf-8"), json.loads((tmp_path / "r.json").read_text())
    assert "* hf-bpe: ImportError: no tokenizers" in told
    assert "* probe topic: no --topics FILE was given" in told
    assert "The same run twice differs by 0.0000%" in told
    assert set(found["probes"]["characters"][0]) == {
        "josa", "eomi", "sentiment, clean", "sentiment, no_spaces", "sentiment, all_spaces", "inside an eojeol", "UTF-8",
    }  # fmt: skip
    assert all(0 <= share <= 1 for share in found["probes"]["characters"][0].values())
    assert found["contrasts"]["bytes"]["characters"]["n"] == 2
    assert all(0 < cell["per_byte"] < 8 for cell in found["cells"])


@pytest.mark.filterwarnings("ignore")
def test_a_row_is_asked_alike_in_any_batch(work: Path) -> None:
    """Padding changes neither bits nor continuations."""
    import torch

    from eval.study.model import Llama
    from eval.study.probe import Asked, classifier

    torch.manual_seed(0)
    asked = Asked(Llama(SIZE, 257), Prepared(work, "characters"))
    rows = [*asked.rows("test")[:6], [256, 1]]
    with torch.no_grad():
        assert np.allclose(asked.nats(rows), [asked.nats([row])[0] for row in rows], rtol=1e-5)
        assert asked.continued(rows, 3) == [asked.continued([row], 3)[0] for row in rows]
        assert np.allclose(asked.means(rows)[6], asked.means(rows[6:])[0], rtol=1e-5)
    features = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 0, 1])
    assert classifier(features, labels)(features).tolist() == labels.tolist()


@pytest.mark.filterwarnings("ignore")
def test_encoders_are_kept_and_repeat(work: Path) -> None:
    pytest.importorskip("transformers", reason="the extra `train` is not installed")
    from eval.study.encoder import blanked, encoders, of_encoders
    from eval.study.train import Runs

    ids = np.arange(20_000).reshape(100, 200) % 50
    blank, chosen = blanked(ids, 50, np.random.default_rng(0))
    assert 0.14 < chosen.mean() < 0.16
    assert (blank == ids)[~chosen].all()
    assert 0.78 < (blank == 50)[chosen].mean() < 0.82
    runs = Runs(replace(SIZE, bytes_read=600), work)
    assert encoders(runs, ["characters", "hf-bpe"], [0, 1])
    found = of_encoders(runs, "characters", [0, 1])
    assert len(found) == 2
    assert set(found[0]) == {"sentiment, clean", "sentiment, no_spaces", "sentiment, all_spaces"}
    for path in (work / "encoders").glob("*.json"):
        path.unlink()
    assert encoders(runs, ["characters"], [0, 1])
    assert of_encoders(runs, "characters", [0, 1]) == found


def test_labelled_texts_and_pairs(making: object, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("b\t하늘 맑다\t비가 온다\na\t가 나\n\n", encoding="utf-8")
    assert sorted(making.labelled(tmp_path / "t.tsv")) == [("가 나", 0), ("하늘 맑다\n비가 온다", 1)]  # type: ignore[attr-defined]
    assert making.noisy(["하늘 맑다\n비가 온다"], "no_spaces") == ["하늘맑다\n비가온다"]  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore")
def test_the_model_sees_no_future() -> None:
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    from eval.study.model import Llama

    model = Llama(SIZE, 50).eval()
    assert model.body() == SIZE.body
    ids = torch.arange(10)[None]
    other = ids.clone()
    other[0, 7:] = 40
    with torch.no_grad():
        assert torch.allclose(model(ids)[0, :7], model(other)[0, :7])
        assert not torch.allclose(model(ids)[0, 7], model(other)[0, 7])


# ── report ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_contrasts_and_verdicts() -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    from eval.study.report import Contrast, verdict

    rng = np.random.default_rng(0)
    size, units = np.full(200, 50.0), np.arange(200) // 5
    base = rng.gamma(5, 20, (3, 200))
    noisy = base * 1.01 * rng.normal(1, 0.02, (3, 200))
    found = Contrast.of(noisy, base, size, units)
    assert 0.005 < found.documents[0] < found.value < found.documents[1] < 0.015
    assert math.isclose(found.value, noisy.sum() / base.sum() - 1)
    wide, narrow = (-0.02, 0.02), (-0.01, 0.01)
    assert Contrast(0.0, wide, narrow, 3).ends == Contrast(0.0, narrow, wide, 3).ends == wide
    alone = Contrast.of(noisy[:1], base[:1], size, units)
    assert alone.seeds == (None, None)
    fine = Contrast(0.0, (-0.01, 0.004), (-0.003, 0.004), 3)
    assert verdict([fine, fine], 0.15, 1.0) == "no worse with more"
    assert verdict([fine, fine], 0.14, 1.01) == "not shown: F1, more tokens"
    assert verdict([fine, replace(fine, seeds=(-0.02, 0.006))], 0.2, 0.9) == "not shown: bits"
    assert verdict([fine, Contrast(0.02, (0.01, 0.03), (0.006, 0.03), 3)], 0.2, 0.9) == "worse"
    assert verdict([replace(fine, documents=(-0.02, -0.01), seeds=(-0.03, -0.001))] * 2, 0.0, 1.2) == "better"
    assert verdict([fine, replace(fine, n=2)], 0.2, 0.9) == "not shown: fewer than 3 seeds"


@pytest.mark.parametrize("length", [1, 7, 8, 9, 12, 13, 40, 100])
def test_every_token_is_predicted_once(length: int) -> None:
    """A uniform model gives log2 of the vocabulary's size for each token."""
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    from eval.study.model import token_bits

    def uniform(ids: object) -> object:
        assert ids.shape[1] <= 8  # type: ignore[attr-defined]
        return torch.zeros(*ids.shape, 32)  # type: ignore[attr-defined]

    bits = token_bits(uniform, torch.full((length + 1,), 5), 8)
    assert np.allclose(bits, 5.0)
    assert len(bits) == length
