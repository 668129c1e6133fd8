"""`cuts:FILE` and `koktok segment --labels`: cuts of anything are measured as those of a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text
from typer.testing import CliRunner

from koktok import load
from koktok.cli import app
from koktok.segment.labels import labelled, line_cuts
from koktok.segment.segmented import BoundaryKind, Cut

LABELS = {"eojeol", "particle", "morpheme", "inside", "none"}


@given(st.lists(korean_text(), min_size=1, max_size=4), st.data())
def test_there_is_a_label_before_every_unit_and_the_cuts_come_back(texts: list[str], data: st.DataObject) -> None:
    words = [text for text in texts if text]
    cuts = [
        [
            Cut(at, data.draw(st.sampled_from(BoundaryKind)))
            for at in sorted(data.draw(st.sets(st.integers(1, len(word) - 1))))
        ]
        if len(word) > 1
        else []
        for word in words
    ]
    text, places = "".join(words), line_cuts(zip(words, cuts, strict=True))
    for of_bytes, size in ((False, len(text)), (True, len(text.encode()))):
        row = json.loads(labelled(text, places, of_bytes=of_bytes))
        assert row["text"] == text
        assert row["cuts"] == sorted(places)
        assert len(row["labels"]) == size
        assert set(row["labels"]) <= LABELS


def test_labels_of_an_analyser_are_rows_of_a_report(tmp_path: Path) -> None:
    text, cuts = tmp_path / "text.txt", tmp_path / "cuts.jsonl"
    text.write_text("나는 학교에서는 갔다가 왔습니다.\n집에 간다.\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["segment", str(text), "--labels", "characters"])
    assert result.exit_code == 0, result.output
    cuts.write_text(result.stdout, encoding="utf-8")
    first = json.loads(result.stdout.splitlines()[0])
    assert first["labels"][:7] == ["eojeol", "particle", "none", "eojeol", "inside", "particle", "inside"]
    result = CliRunner().invoke(
        app,
        ["report", f"chunker=cuts:{cuts}", "--text", str(text), "-o", str(tmp_path / "out"), "-q", "--extended"],
    )
    assert result.exit_code == 0, result.output
    (row,) = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["rows"]
    assert row["name"] == "chunker"
    assert row["scores"]["boundary_f1"]["value"] == 1
    assert "borders" not in row["scores"]  # of beginnings of lines, which have no cuts


def test_spans_are_cuts(tmp_path: Path) -> None:
    file = tmp_path / "cuts.jsonl"
    file.write_text('{"text": "가나", "spans": [[0, 1], [1, 2]]}\n', encoding="utf-8")
    tokenizer = load(f"cuts:{file}")
    assert tokenizer.encode_lines(["가나"]).spans.tolist() == [[0, 1], [1, 2]]
