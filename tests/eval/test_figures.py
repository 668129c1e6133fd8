"""eval/figures: the tables of docs/figures.md are those of the reports that are kept."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from eval.figures import COLUMNS, ROWS, main
from eval.figures import bits_of as bits_of_row
from eval.study.cells import KEPT, LAST
from eval.study.compared import REFERENCE, Figures
from eval.study.sizes import SIZES
from eval.study.tables import signed
from koktok import Recipe
from koktok.pipeline.card import bits_of

REPORTS = [
    ROOT / "eval" / "reports" / f"2026-11-{part}.json.xz"
    for part in ("26-bench-ko", "28-bench-ko-koktok", "29-bench-ko-lm")
]


def test_the_pages_have_the_figures_of_the_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "figures.md", ROOT / "docs" / "guides" / "choose.md"]
    copies = [Path(shutil.copy(page, tmp_path)) for page in pages]
    monkeypatch.setattr("sys.argv", ["eval.figures", *map(str, [*REPORTS, *copies])])
    main()
    texts = [page.read_text(encoding="utf-8") for page in pages]
    assert [copy.read_text(encoding="utf-8") for copy in copies] == texts, "run `python -m eval.figures`"
    assert {*ROWS} == {*COLUMNS}
    assert {*ROWS, "ids", "models"} == {*re.findall(r"<!-- eval\.figures\.(\w+) -->", "".join(texts))}


def test_cards_say_the_bits_of_readme() -> None:
    """The bits in a model card are those of the study's cells, and a recipe with another target has none."""
    study = Figures(SIZES["cpu"], KEPT, 3)
    names = {("unigram", name): name for name in ("lm", "encoder", "aligned", "short")}
    for (model, preset), name in (names | {("bpe-bytes", "lm"): "bpe"}).items():
        same_text, same_compute = bits_of_row(study, name)
        compute = signed(study.rows[name].flops(LAST) / study.rows[REFERENCE].flops(LAST) - 1, 0)
        shown = f": {same_text} % after the same text ({compute} % compute), {same_compute} % after the same compute."
        assert shown in bits_of(Recipe().changed(model=model, preset=preset, vocab_size=32_000)), "card.template.md"
        assert bits_of(Recipe().changed(model=model, preset=preset, vocab_size=16_000)) == ""
    others = (
        {"keep": 0.9},
        {"tokens_per_eojeol": 1.9},
        {"superwords": 0.3},
        {"pretokenize": {"digits": "free"}},
        {"model": "bpe-bytes", "preset": "encoder"},
    )
    for other in others:
        assert bits_of(Recipe().changed(vocab_size=32_000, **other)) == ""
