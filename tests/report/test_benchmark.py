"""The benchmark: what a submission is measured on, what it refuses, and the leaderboard of several."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import koktok

from eval.leaderboard import merged, page
from eval.speed import SpeedReport, SpeedRow
from koktok.errors import InputError
from koktok.metrics import Measure, Scores, Settings, Value
from koktok.report import Report, benchmark
from koktok.report.measure import Entry, measure
from koktok.report.schema import TextInfo

CONLLU = "1\t집에\t집+에\tNOUN\tNNG+JKB\t_\t0\troot\t_\t_\n2\t갔다\t가+았+다\tVERB\tVV+EP+EF\t_\t1\tdep\t_\t_\n\n"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The benchmark with two sources of two lines, one of them left out, and a treebank of one sentence."""
    for name in ("law", "news-north-korean"):
        (tmp_path / f"{name}.held-out.txt").write_text("\n집에 갔다\n학교에 갔다\n", encoding="utf-8")
    (tmp_path / "nothing.held-out.txt").write_text("\n", encoding="utf-8")
    for name in benchmark.GOLDS[:2]:
        (tmp_path / name).write_text(CONLLU, encoding="utf-8")
    (tmp_path / "a.py").write_text("def f():\n\n    return 1\n", encoding="utf-8")
    (tmp_path / benchmark.SPANS[0]).write_text("집\tB-LC\n에\tO\n", encoding="utf-8")
    monkeypatch.setattr(benchmark, "GOLDS", benchmark.GOLDS[:2])
    monkeypatch.setattr(benchmark, "SPANS", benchmark.SPANS[:1])
    monkeypatch.setattr(benchmark, "texts", lambda _: sorted(tmp_path.glob("*.held-out.txt")))
    monkeypatch.setattr(benchmark, "fetch", lambda _: tmp_path)
    return tmp_path


def report(name: str, tokens: float, f1: float, size: int, digest: str = "d" * 16) -> Report:
    row = Scores(
        number=1,
        name=name,
        spec="hf:a",
        family="hf",
        vocab_size=size,
        scores={
            "fertility": Value(tokens),
            "boundary_f1_macro": Value(f1),
            "boundary_f1@ko_ksl-ud-dev": Value(0.25),
            "fertility@law": Value(tokens),
        },
    )
    measures = [Measure(name="fertility", title="", title_ko="", unit="", better="lower", definition="")]
    text = TextInfo(name="law", lines=1, eojeols=2, characters=5, bytes=13, digest=digest)
    return Report(title="t", seed=0, resamples=0, libraries={}, measures=measures, texts=[text], golds=[], rows=[row])


def test_what_is_measured_is_capped_and_has_no_doubled_source(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*benchmark.material().text.names] == ["law"]
    assert benchmark.material().text.lines == ["집에 갔다", "학교에 갔다"]
    assert benchmark.material().code.lines == ["def f():", "    return 1"]
    assert [*benchmark.material().english.names] == ["law", "news-north-korean"]
    monkeypatch.setattr(benchmark, "CAP", 3)
    assert benchmark.material().text.lines == ["집에 갔다"]
    monkeypatch.setattr(benchmark, "ENGLISH", 1)
    assert benchmark.material().english is None


def test_a_submission_is_a_report_that_the_leaderboard_takes(small: Path, tmp_path: Path) -> None:
    files = []
    for spec in ("syllables", "bytes"):
        files.append(tmp_path / f"{spec}.json")
        files[-1].write_text(
            measure([Entry(spec)], benchmark.material(), Settings(resamples=0)).to_json(), encoding="utf-8"
        )
    told = page(merged(files))
    assert "| syllables | – | 2.250 |" in told
    assert "| bytes | – |" in told or "| bytes | 256 |" in told


def test_the_leaderboard_stands_by_size_and_marks_the_front(tmp_path: Path) -> None:
    rows = [
        ("short", 1.5, 0.4, 32_000),
        ("both worse", 1.6, 0.3, 32_000),
        ("cuts", 2.0, 0.9, 32_000),
        ("big", 1.2, 0.2, 64_000),
    ]
    files = []
    for name, *figures in rows:
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(report(name, *figures).to_json(), encoding="utf-8")
    timed = SpeedReport(machine="a machine", rows=[SpeedRow(number=1, name="cuts", scores={"encode_mb_s": 2.5})])
    told = page(merged(files), [timed])
    assert "| short ★ | 32,000 | 1.500 | 0.400 | – | 0.250 |" in told
    assert re.search(r"\| cuts ★ .*\| 2\.50 \|\n", told)
    assert "(a machine)" in told
    assert "| cuts ★ |" in told
    assert "| both worse | 32,000 |" in told
    front, by_size = told.split("## Up to 40,000 ids", 1)
    assert re.findall(r"^\| (\S+) \| \d\d,000", front, re.M) == ["short", "cuts", "big"]
    assert by_size.index("cuts ★") < by_size.index("Up to 80,000") < by_size.index("big ★")


def test_changes_of_the_lines_stand_in_tables_of_their_own(tmp_path: Path) -> None:
    made = report("a", 1, 1, 1)
    robust = {"stability_typo": Value(0.75), "fertility_change_typo": Value(0.5), "fertility_change_nfd": Value(2.0)}
    row = made.rows[0].model_copy(update={"scores": made.rows[0].values | robust})
    file = tmp_path / "a.json"
    file.write_text(made.model_copy(update={"rows": [row]}).to_json(), encoding="utf-8")
    told = page(merged([file]))
    assert "| tokenizer | a neighbouring key in a tenth of the syllables |\n|---|---:|\n| a | 0.750 |\n" in told
    assert (
        "| tokenizer | NFD | a neighbouring key in a tenth of the syllables |\n|---|---:|---:|\n| a | 2.000 | 0.500 |\n"
        in told
    )
    assert "Byte tokens more" not in told


def test_another_text_is_no_submission(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    files[0].write_text(report("a", 1, 1, 1).to_json(), encoding="utf-8")
    files[1].write_text(report("b", 1, 1, 1, "e" * 16).to_json(), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"`b\.json` is not a submission to ko-1: its text `law` differs or is missing"
    ):
        merged(files)


def test_english_and_code_stand_side_by_side_only_where_they_are_the_same(tmp_path: Path) -> None:
    files = []
    for name, digest in {"a": "d", "b": "d", "c": "e"}.items():
        made = report(name, 1, 1, 1)
        row = made.rows[0].model_copy(update={"scores": made.rows[0].values | {"english_fertility": Value(1.5)}})
        beside = [made.texts[0].model_copy(update={"name": "wiki-en", "digest": digest * 16})]
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(made.model_copy(update={"rows": [row], "beside": beside}).to_json(), encoding="utf-8")
    found = merged(files)
    assert ["english_fertility" in row.values for row in found.rows] == [True, True, False]
    assert "English and code: wiki-en." in page(found)


def test_submit_refuses_text_of_its_own(tmp_path: Path) -> None:
    found = koktok("report", "syllables", "--submit", tmp_path / "a.json", "--text", "corpus:mini")
    assert found.returncode == 2
    assert "the benchmark's own text" in found.stderr
    assert not (tmp_path / "a.json").exists()
    assert "-o FOLDER" in koktok("report", "syllables").stderr
