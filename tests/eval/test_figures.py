"""eval/figures: the tables of docs/figures.md are those of the reports that are kept."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from eval.figures import COLUMNS, ROWS, bits_of_decoders, main
from eval.study.cells import KEPT
from eval.study.compared import Figures
from eval.study.sizes import SIZES
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
    assert {*ROWS, "ids"} == {*re.findall(r"<!-- eval\.figures\.(\w+) -->", "".join(texts))}


def test_cards_say_the_bits_of_readme() -> None:
    """The bits in a model card are those of the study's cells, and a recipe with another target has none."""
    told = bits_of_decoders(Figures(SIZES["cpu"], KEPT, 3))
    names = {("unigram", name): f"koktok {name}" for name in ("lm", "encoder", "aligned")}
    for (model, preset), name in (names | {("bpe-bytes", "lm"): "koktok bpe-bytes lm"}).items():
        same_text, same_compute = told[name]
        shown = f": {same_text} % after the same text, {same_compute} % after the same compute."
        assert shown in bits_of(Recipe().changed(model=model, preset=preset, vocab_size=32_000)), "card.template.md"
        assert bits_of(Recipe().changed(model=model, preset=preset, vocab_size=16_000)) == ""
    others = ({"keep": 0.9}, {"tokens_per_eojeol": 1.9}, {"superwords": 0.3}, {"pretokenize": {"digits": "free"}})
    for other in (*others, {"preset": "short"}):
        assert bits_of(Recipe().changed(vocab_size=32_000, **other)) == ""
