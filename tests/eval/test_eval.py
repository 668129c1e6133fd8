"""The standing comparison: suites, peers that are kept, reports with dates in their names only."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import MINI, ROOT, exit_code_here

from eval import __main__ as runner
from eval.bits import Compared
from eval.bits import Material as BitsMaterial
from eval.kneser_ney import kneser_ney
from eval.peers import PEERS, Peer, train_peer
from eval.picture import draw, draw_curves
from eval.speed import SpeedReport
from eval.suites import full, quick
from eval.texts import base_lines, split
from koktok.report import Report
from koktok.report.benchmark import SPANS
from koktok.tokenizer.open import load

LINES = [line for path in sorted(MINI.glob("*.txt")) for line in path.read_text(encoding="utf-8").splitlines()]


def evaluate(*words: object) -> tuple[int, str]:
    """Run `python -m eval` in this process: its exit code and what it wrote to stderr."""
    err = io.StringIO()
    code = exit_code_here(words, {"stderr": err}, {"NO_COLOR": "1"}, main=runner.main)
    return code, err.getvalue()


def test_growth_reads_what_a_corpus_does_not_hold_out(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    with pytest.raises(SystemExit, match="holds no text"):
        base_lines(tmp_path)
    (tmp_path / "text" / "a.txt").write_text("가\n나\n", encoding="utf-8")
    (tmp_path / "text" / "a.held-out.txt").write_text("다\n", encoding="utf-8")
    assert base_lines(tmp_path) == ["가", "나"]
    assert split(tmp_path / "text") == (["가", "나"], {"a": ["다"]})
    (tmp_path / "gold").mkdir()
    marked = "나\tB-LC\n"
    (tmp_path / "gold" / SPANS[0]).write_text(marked, encoding="utf-8")
    assert split(tmp_path / "text") == (["가"], {"a": ["다"]}), "a text with marked spans is trained on"


def test_bits_are_of_each_source_and_compared_at_equal_tokens(tmp_path: Path) -> None:
    """A row with the tokens of the peer's line has the line's bits beside it; one outside of the line has nothing."""
    (tmp_path / "text").mkdir()
    for name, held in {"a": "나다", "b": "가나\n뷁"}.items():
        (tmp_path / "text" / f"{name}.txt").write_text("가나다라\n다라\n" * 20, encoding="utf-8")
        (tmp_path / "text" / f"{name}.held-out.txt").write_text(held, encoding="utf-8")
    material = BitsMaterial(tmp_path, [2], [1])
    syllables = load("syllables")
    (row,) = material.rows(syllables, material.orders)
    assert row["tokens"] == [2, 3]
    ids, asked = (syllables.encode_lines(lines).ids for lines in (["가나다라", "다라"], ["나다"]))
    bits = kneser_ney([ids[:4], ids[4:]] * 40, [asked], order=2, size=row["ids"])
    assert row["bits"][0][0] == pytest.approx(float(bits[0].sum()))  # the end of the line counts


def test_an_interval_of_bits_covers_the_draws_and_the_sources() -> None:
    ones = np.ones(6)

    class Even:
        characters, eojeols = ones, ones

    def row(tokens: float, bits: float) -> dict[str, object]:
        return {"ids": 8, "tokens": (tokens * ones).tolist(), "bits": [(bits * ones).tolist()]}

    line = [row(1.5, 4.0), row(2.0, 3.0)]

    def compared(*rows: dict[str, object]) -> Compared:
        return Compared.of(rows, [line] * len(rows), 0, Even)  # type: ignore[arg-type]

    assert compared(row(1.75, 3.5)).figures() == (1.75, 3.5, pytest.approx(0))
    assert compared(row(2.0, 3.3)).figures(0)[2] == pytest.approx(0.1)
    assert math.isnan(compared(row(2.1, 3.0)).figures()[2])
    assert compared(row(2.1, 3.0)).interval() == (None, None)
    assert compared(row(2.0, 3.3)).interval() == pytest.approx((0.1, 0.1))  # sources that are equal say nothing else
    low, high = compared(row(2.0, 3.3), row(2.0, 3.0), row(2.0, 3.6)).interval()
    assert (low, high) == pytest.approx((0.1 - 4.303 * 0.1 / 3**0.5, 0.1 + 4.303 * 0.1 / 3**0.5), rel=1e-3)


def test_a_trained_peer_is_kept_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    calls = []

    def make(lines: object, size: int, folder: Path) -> str:
        calls.append(size)
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n가\n", encoding="utf-8")
        if size == 13:
            raise RuntimeError("no")
        return f"wordpiece:{folder / 'vocab.txt'}"

    peer = Peer("made", ("koktok",), make)
    first = train_peer(peer, LINES, 5, tmp_path)
    assert first == train_peer(peer, LINES, 5, tmp_path)
    assert load(first).size == 6
    assert train_peer(peer, LINES[:-1], 5, tmp_path) != first
    assert calls == [5, 5]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            train_peer(peer, LINES, 13, tmp_path)
    assert calls == [5, 5, 13, 13]


def test_nothing_that_is_measured_was_trained_on() -> None:
    suite = quick()
    held = {*suite.material.text.lines}
    assert len(held) > 200
    assert len(suite.train) > 600
    assert not held & set(suite.train)
    assert {sentence.text for sentence in suite.material.shown} <= held


def test_a_peer_that_fails_is_a_row_that_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise OSError("the disk is full")

    broken = Peer("broken", (), fail)
    monkeypatch.setattr(runner, "PEERS", (next(peer for peer in PEERS if "BPE, spaces" in peer.name), broken))
    suite = quick()
    report = runner.run(suite, runner.rows_of(suite, tmp_path, rows="BPE|broken", quiet=True), quiet=True)
    assert [row.name for row in report.rows[:2]] == ["SentencePiece BPE, spaces only", "broken"]
    assert report.rows[0].ran
    assert report.rows[1].why == "OSError: the disk is full"
    assert str(tmp_path) not in report.to_json()


def test_the_verb_writes_its_files_and_the_same_json_again(tmp_path: Path) -> None:
    words = ["quick", "--rows", "BPE, spaces|HF byte|syllables", "-q", "--speed"]
    places = [
        ["--work", tmp_path / f"w{day}", "--out", tmp_path / day, "--date", day] for day in ("2031-01-01", "2031-01-02")
    ]
    assert evaluate(*words, *places[0])[0] == 0
    command = [sys.executable, "-m", "eval", *map(str, [*words, *places[1]])]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "2"})
    assert {path.name for path in (tmp_path / "2031-01-01").iterdir()} == {
        f"2031-01-01-quick.{ending}" for ending in ("json", "md", "html", "speed.json")
    }
    one, two = ((tmp_path / day / f"{day}-quick.json").read_bytes() for day in ("2031-01-01", "2031-01-02"))
    assert one == two
    report = Report.from_json(one.decode())
    assert all(row.signature for row in report.rows if row.ran)
    timed = SpeedReport.model_validate_json(
        (tmp_path / "2031-01-01" / "2031-01-01-quick.speed.json").read_text("utf-8")
    )
    assert [row.name for row in timed.rows] == [row.name for row in report.rows if row.ran]
    assert {sentence.text for sentence in report.sentences} <= set(LINES)
    code, error = evaluate("full")
    assert (code, "wants the folder DATA" in error) == (2, True)


def test_the_picture_is_drawn_from_the_report(tmp_path: Path) -> None:
    drawn = tmp_path / "picture.svg"
    reports = [
        ROOT / "eval" / "reports" / f"2026-11-{part}.json.xz"
        for part in ("26-bench-ko", "28-bench-ko-koktok", "29-bench-ko-lm")
    ]
    assert len(draw(reports, drawn)) == 12
    assert drawn.read_bytes() == (ROOT / "docs" / "images" / "tokens-f1.svg").read_bytes()
    curves = [ROOT / "eval" / "reports" / name for name in ("2026-11-26-curve.json.xz", "2026-11-26-bench-ko.json.xz")]
    for file in draw_curves(curves, tmp_path / "equal-tokens.svg"):
        assert Path(file).read_bytes() == (ROOT / "docs" / "images" / Path(file).name).read_bytes()


def test_full_reads_a_folder_and_keeps_blocks_apart(tmp_path: Path) -> None:
    for name in ("text", "gold", "tokenizers/one"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "text" / "mini.txt").write_text("\n".join(LINES), encoding="utf-8")
    rows = ["# text = 집에", "1\t집에\t집+에\tNOUN\tncn+jca\t_\t0\troot\t_\t_", ""]
    (tmp_path / "gold" / "ko_kaist-ud-dev.conllu").write_text("\n".join(rows) + "\n", encoding="utf-8")
    train, held = split(tmp_path / "text", 10**6)
    assert len(train) + sum(map(len, held.values())) == len(LINES)
    assert not set(train) & {line for lines in held.values() for line in lines}
    found = full(tmp_path, size=2300, limit=2000, sample=10)
    assert sum(len(line.split()) for line in found.train) <= 2000
    assert next(entry.shown for entry in found.beside if entry.shown) == "tokenizers/one"
    assert len(found.beside) > 13
    assert not found.material.golds[0].human  # its name is Kaist's, its bytes are not
    assert {sentence.text for sentence in found.material.shown} <= set(LINES)
    with pytest.raises(SystemExit, match="holds no text"):
        full(tmp_path / "gold", size=1, limit=None, sample=1)


def test_the_league_counts_borders_as_it_says() -> None:
    """다퉜다 is 다투 + 었 + 다: a border inside a syllable, which no token meets, and one that a token can."""
    from kiwipiepy import Kiwi

    from eval.league import inside_words, morphemes, tally, tokens
    from koktok.tokenizer.open import load

    text = "나는 다퉜다.\n"
    gold = morphemes(text, Kiwi())
    assert gold == {0, 1, 3, 4.5, 5, 6}
    assert inside_words(gold, text) == {1, 4.5, 5, 6}
    found = tally(load("syllables"), [text], [inside_words(gold, text)])
    assert (found.eojeols, found.made, found.wanted, found.met) == (2, 4, 4, 3)
    assert tokens("가 나", load("bytes"))[0] == {0, 1 / 3, 2 / 3, 2, 2 + 1 / 3, 2 + 2 / 3}


def test_a_draw_trains_on_other_blocks_and_measures_the_same(tmp_path: Path) -> None:
    for name, first in (("news.txt", 0), ("news.held-out.txt", 9000)):
        (tmp_path / name).write_text("".join(f"문장 {first + k}\n" for k in range(4000)), "utf-8")
    train, held = split(tmp_path, cap=1000)
    drawn, same = split(tmp_path, cap=1000, draw=1)
    assert len(drawn) == len(train) == 500
    assert drawn == split(tmp_path, cap=1000, draw=1)[0] != split(tmp_path, cap=1000, draw=2)[0]
    assert len({*train} & {*drawn}) < 0.4 * len(drawn)
    assert same == held
