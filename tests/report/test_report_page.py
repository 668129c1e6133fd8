"""The page of a report as people see it: at the widths of a telephone and a screen, in both languages, in a real browser."""

from __future__ import annotations

import ast
import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, ROOT
from test_report import example

from koktok.metrics import Scores, Value, metrics
from koktok.metrics.registry import columns
from koktok.metrics.statistics import BLOCK
from koktok.report import Report, to_html
from koktok.report.korean import KOREAN, korean_units
from koktok.tokenizer.open import load

SIZES = {390: 844, 1400: 900}


def crowded() -> Report:
    """Fourteen tokenizers with every measure of the first table; four stand close to each other."""
    base, rows = example(), []
    for k in range(14):
        x, y = (1.6 + k / 7, 0.4 + k / 30) if k > 3 else (1.5 + k / 500, 0.35 + k / 900)
        scores = {name: Value(0.5, 0.4567, 0.5678) for name in (metric.name for metric in columns())}
        scores |= {"fertility": Value(x, x - 0.02, x + 0.02), "boundary_f1": Value(y, y - 0.02, y + 0.02)}
        row = base.rows[0].model_copy(update={"number": k + 1, "name": f"row-{k + 1}_32k", "scores": scores})
        rows.append(row)
    rows.append(Scores(number=15, name="package:o200k_base", spec="package:x", family="package", why="not installed"))
    measures = [metric for name, metric in metrics().items() if name in rows[0].values]
    return base.model_copy(update={"rows": rows, "measures": measures})


@pytest.fixture(scope="module")
def pages(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], Any]:
    """The crowded report open at each width in each language."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(to_html(crowded()), encoding="utf-8")
    found = {}
    for (width, height), tongue in itertools.product(SIZES.items(), ("en", "ko")):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE)
        page.goto(f"{path.as_uri()}#{tongue}")
        found[width, tongue] = page
    return found


def test_rows_are_sorted_and_the_language_changes(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(to_html(example()), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{(tmp_path / 'page.html').as_uri()}#ko")
    orders = []
    for _ in range(3):
        page.click("#summary thead th:nth-child(4) button")
        names = page.locator("#summary tbody th").all_inner_texts()
        orders.append("".join(name.strip()[0] for name in names))
    assert orders == ["lot", "olt", "lot"]  # up, down, up; the row that did not run is last each time
    assert page.locator("#summary th[aria-sort=ascending]").count() == 1
    for tongue, other in (("ko", "en"), ("en", "ko")):
        page.click(f"[data-tongue={tongue}]")
        assert page.locator(f"h2 .{tongue}").first.is_visible()
        assert not page.locator(f"h2 .{other}").first.is_visible()


@pytest.mark.parametrize("tongue", ["en", "ko"])
@pytest.mark.parametrize("width", SIZES)
def test_nothing_is_wider_than_the_screen(pages: dict[tuple[int, str], Any], width: int, tongue: str) -> None:
    page = pages[width, tongue]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    heads = page.locator("#summary thead th")
    ends = heads.evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().right)")
    # On a screen the whole first table, on a telephone at least tokens per eojeol and both F1 (# tokenizer ids ...).
    assert (max(ends) if width > 1000 else ends[5]) <= width
    clipped = heads.evaluate_all("cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).length")
    assert clipped == 0


@pytest.mark.parametrize("width", SIZES)
def test_letters_of_drawings_are_as_large_as_those_of_the_text(pages: dict[tuple[int, str], Any], width: int) -> None:
    sizes = pages[width, "ko"].evaluate(
        """[...document.querySelectorAll('svg')].filter(svg => svg.getBoundingClientRect().width).map(svg =>
            parseFloat(getComputedStyle(svg).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
    )
    assert len(sizes) == 1
    assert min(sizes) >= 9.5


@pytest.mark.parametrize("width", SIZES)
def test_every_point_has_its_name_and_a_look_of_its_own(pages: dict[tuple[int, str], Any], width: int) -> None:
    page = pages[width, "en"]
    names = {f"row-{k}_32k" for k in range(1, 15)}
    marks = page.locator("svg.points text.mark:visible")
    texts = marks.evaluate_all("all => all.map(mark => mark.firstChild.data)")
    assert {*texts} == names
    boxes = marks.evaluate_all("all => all.map(m => m.getBoundingClientRect()).map(b => [b.x, b.y, b.right, b.bottom])")
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(boxes, 2):
        across, down = min(c, g) - max(a, e), min(d, h) - max(b, f)
        assert across < 2 or down < 4  # letters are less high than their boxes
    looks = page.locator("svg.points:visible .dot").evaluate_all(
        "dots => dots.map(dot => getComputedStyle(dot).fill + (dot.getAttribute('d') || 'disc'))"
    )
    assert len({*looks}) == len(names)


def test_the_korean_page_is_wholly_korean(pages: dict[tuple[int, str], Any]) -> None:
    page = pages[1400, "ko"]
    assert page.evaluate("getComputedStyle(document.querySelector('p')).wordBreak") == "keep-all"
    assert page.title() == "한국어 토크나이저 비교"
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate(
        "document.querySelectorAll('code, pre, [lang=en], tbody th, b, nav, svg .mark, svg .name').forEach(one => one.remove())"
    )
    words = {*re.findall(r"[A-Za-z]{3,}", page.inner_text("body"))}
    names = {"kaist", "news", "law", "less", "koktok", "SHA", "Llama", "SmolLM"}
    terms = {
        *[
            "UTF",
            "xFF",
            "NFC",
            "NFD",
            "NFKD",
            "Unigram",
            "gram",
            "zlib",
            "zstd",
            "gzip",
            "log",
            "min",
            "decode",
            "encode",
            "round",
        ]
    }
    tags = {"XSV", "XSN", "VCP", "English", "macro", "MorphScore"}
    assert words <= names | terms | tags, words - names - terms - tags


def test_every_measure_and_unit_has_korean_words() -> None:
    assert all(re.search("[가-힣]", metric.definition_ko) for metric in metrics().values())
    assert {metric.unit for metric in metrics().values()} <= KOREAN.keys()


def test_all_units_of_the_metrics_have_korean_words() -> None:
    calls = [
        node
        for file in (ROOT / "koktok" / "metrics").glob("**/*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Units.by"
    ]
    assert len(calls) >= 3
    for call in calls:
        plural, lines = (str(ast.literal_eval(word)) for word in call.args[1:])
        for units in (f"7 {plural}", f"7 blocks of {BLOCK} {lines}", f"1 block of {BLOCK} {lines}"):
            assert "개" in korean_units(units)


def test_every_note_has_korean_words() -> None:
    """A type checker refuses a note without Korean; here its words."""
    calls = [
        node
        for file in [*(ROOT / "koktok").glob("**/*.py"), ROOT / "eval" / "rows.py"]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Note"
    ]
    assert len(calls) >= 14
    assert [
        ast.unparse(call)
        for call in calls
        if len(call.args) != 2 or not re.search("[가-힣]", ast.unparse(call.args[1]))
    ] == []
    note = pickle.loads(pickle.dumps(load("syllables").notes))[0]
    assert note.korean == "글자마다 토큰 하나; 공백은 토큰이 되지 않음"
