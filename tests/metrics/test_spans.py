"""Marked spans: what is read, and which of them tokens can express."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text
from typer.testing import CliRunner

from koktok.cli import app
from koktok.metrics import Material, Settings, score
from koktok.metrics.gold.spans import SpanCorpus, read_spans
from koktok.text.normalize import normalized
from koktok.tokenizer.open import load

NER = "## klue-ner-v1_dev_00000-wikitree\t<서울:LC>에서 <이:PS>씨\n" + "".join(
    f"{char}\t{tag}\n" for char, tag in zip("서울에서 이씨", ["B-LC", "I-LC", "O", "O", "O", "B-PS", "O"], strict=True)
)
SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "학교에서 집에 간다.",
                    "qas": [
                        {"answers": [{"answer_start": 0, "text": "학교"}, {"answer_start": 5, "text": "집"}]},
                        {"answers": []},
                    ],
                }
            ]
        }
    ]
}


def of_text(tmp_path: Path, text: str, name: str = "ner.tsv") -> SpanCorpus:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return read_spans(file)


def test_entities_and_answers_are_read(tmp_path: Path) -> None:
    entities = of_text(tmp_path, NER + "\n\n" + NER)
    assert (entities.texts, entities.spans) == (["서울에서 이씨"] * 2, [[(0, 2), (5, 6)]] * 2)
    answers = of_text(tmp_path, json.dumps(SQUAD), "dev.json")
    assert (answers.texts, answers.spans, answers.documents) == (["학교에서 집에 간다."], [[(0, 2)]], [0])


def test_text_that_is_not_nfc_is_left_out_and_counted(tmp_path: Path) -> None:
    decomposed = "".join(f"{char}\tB-LC\n" for char in unicodedata.normalize("NFD", "서울"))
    corpus = of_text(tmp_path, NER + "\n" + decomposed)
    assert (len(corpus.texts), corpus.skipped) == (1, 1)


@given(st.data())
def test_characters_express_every_span_and_whole_eojeols_only_theirs(data: st.DataObject) -> None:
    text = normalized("NFC", data.draw(korean_text())).strip()
    places = [i for i, char in enumerate(text) if not char.isspace()]
    if not places:
        return
    start = data.draw(st.sampled_from(places))
    end = data.draw(st.sampled_from([i for i in places if i >= start])) + 1
    corpus = SpanCorpus("drawn", [text], [[(start, end)]], [0])
    values = {
        name: score(load(name), Material(spans=[corpus]), Settings(resamples=0)).values["span_borders@drawn"].value
        for name in ("syllables", "eojeols")
    }
    assert values["syllables"] == 1
    whole = (not start or text[start - 1].isspace()) and (end == len(text) or text[end].isspace())
    assert values["eojeols"] == whole


def test_a_report_has_spans_as_a_column(tmp_path: Path) -> None:
    file = tmp_path / "ner.tsv"
    file.write_text(NER, encoding="utf-8")
    result = CliRunner().invoke(
        app, ["report", "syllables", "eojeols", "--spans", str(file), "-o", str(tmp_path / "out"), "-q"]
    )
    assert result.exit_code == 0, result.output
    page, table = ((tmp_path / "out" / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    assert "| 2 | eojeols | 0.000 |" in table
    assert '<section id="spans">' in page


def test_two_files_of_one_name_are_two_columns(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "dev.tsv").write_text(NER, encoding="utf-8")
    files = [word for folder in ("a", "b") for word in ("--spans", str(tmp_path / folder / "dev.tsv"))]
    result = CliRunner().invoke(app, ["report", "syllables", *files, "-o", str(tmp_path / "out"), "-q"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["rows"]
    assert {"span_borders@a/dev", "span_borders@b/dev"} <= row["scores"].keys()
