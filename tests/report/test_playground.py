"""The page that runs a tokenizer: its engine gives the ids of Python for every kind, and the page does what it shows.

The engine runs in node, the page in the system's Chromium; without them these tests are skipped with a reason.
"""

from __future__ import annotations

import itertools
import lzma
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, ROOT, works
from playground_engine import PlaygroundEngine

from koktok import Tokenizer, load
from koktok.errors import UsageError
from koktok.model.definition import Definition
from koktok.report.playground import to_page
from koktok.report.playground.lexicon import lexicon, runs_of
from koktok.report.playground.payload import payload
from koktok.runtimes.tiktoken.adapter import Tiktoken
from koktok.runtimes.tiktoken.ranks import ranks_of
from koktok.segment import Whitespace
from koktok.text.patterns import PublishedPattern
from koktok.verification.probes import around_specials, tricky_lines

FOLDERS = sorted(file.parent for file in (ROOT / "tests" / "folders").glob("*/golden.json"))


@pytest.fixture(scope="module")
def node() -> Iterator[PlaygroundEngine]:
    with PlaygroundEngine.opened() as engine:
        if engine is None:
            pytest.skip("node is not installed; on Debian: apt-get install nodejs")
        yield engine


def unpacked(folder: Path, place: Path) -> Path:
    """A folder of tests/folders as a user has it."""
    shutil.copytree(folder, place / folder.name)
    for packed in (place / folder.name).glob("*.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
    return place / folder.name


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load(unpacked(request.param, tmp_path_factory.mktemp("folder")))


def test_the_engine_is_that_of_python(node: PlaygroundEngine, tokenizer: Tokenizer, mini: list[str]) -> None:
    """Offsets, texts and streams; ids of every kind and pattern are in tests/test_same_ids.py."""
    node.load(tokenizer)
    specials = tokenizer.vocab.specials[:8]
    spelled = around_specials(specials)
    lines = [*tricky_lines(), *spelled[: 4 * len(specials)], *spelled[-2:], *mini[::5]]
    node.same(tokenizer, lines)
    for line in lines[:40]:
        ids = tokenizer.encode(line).ids
        stream = tokenizer.stream()
        assert node.ask("stream", ids) == [*map(stream.push, ids), stream.finish()]


def test_ranks_run_as_tiktoken_runs_them(node: PlaygroundEngine, mini: list[str], tmp_path: Path) -> None:
    """No normalizer, a gap before the special token, and a piece that no join makes."""
    vocab = load(unpacked(ROOT / "tests" / "folders" / "bpe-bytes", tmp_path)).vocab
    ranks = ranks_of(Definition(vocab, pattern=PublishedPattern(name="o200k")))
    n = len(ranks.ranks)
    table = {**ranks.ranks, " 훈민정음".encode(): n}
    made = Tiktoken(replace(ranks, ranks=table, specials={"<|end|>": n + 3}))
    node.load(made)
    assert made.vocab.size == n + 4
    lines = [*tricky_lines(), "e\u0301 a\u0300", "나는 훈민정음 가<|end|>나", *mini[::5]]
    node.same(made, lines)
    assert n in node.ask("encode", ["나는 훈민정음"])[0][0]
    with pytest.raises(UsageError, match="has a pattern of its own, or ids without a rank"):
        payload(Tiktoken(replace(ranks, pattern=r"\S+|\s+")))


def test_n_best_and_replay(node: PlaygroundEngine, tmp_path: Path) -> None:
    made = load(unpacked(ROOT / "tests" / "folders" / "unigram", tmp_path))
    node.load(made)
    for pretoken in (" 학교에서는", "é가", " ", "가나다라마바사"):
        wanted = [
            [list(ids), [list(s) for s in spans], score] for (ids, spans), score in made.model.n_best(pretoken, 7)
        ]
        assert node.ask("nBest", [pretoken, 7]) == wanted
    made = load(unpacked(ROOT / "tests" / "folders" / "bpe", tmp_path))
    node.load(made)
    steps = node.ask("replay", [" 했습니다."])
    pieces = made.encode("했습니다.").pieces
    assert steps[-1][2] == pieces
    assert [len(parts) for _, _, parts in steps] == [*range(5, len(pieces) - 1, -1)]
    for rank, at, parts in steps:
        assert made.vocab.pieces[rank] == parts[at]


# ---- the page


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    place = tmp_path_factory.mktemp("two")
    names = {"first <one>": "unigram", "second": "bpe-bytes"}
    return {name: load(unpacked(ROOT / "tests" / "folders" / folder, place)) for name, folder in names.items()}


class ByHand(Whitespace):
    """An analyser of one word, 학교에서는."""

    def serialized(self, words: Sequence[str]) -> Iterator[str]:
        for word in words:
            yield "0 2 NNG \n2 4 JKB \n4 5 JX " if word == "학교에서는" else ""


@pytest.fixture(scope="module")
def page_file(two: dict[str, Tokenizer], tmp_path_factory: pytest.TempPathFactory) -> Path:
    known = lexicon(runs_of(["학교에서는 학교 집에"]), ByHand())
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(to_page(two, known, title="<Tried & tested>", against="second"), encoding="utf-8")
    return file


def test_the_page_asks_for_nothing(page_file: Path, two: dict[str, Tokenizer]) -> None:
    page = page_file.read_text(encoding="utf-8")
    addresses = set(re.findall(r"""https?://[^\s"'<>]+""", page))
    assert addresses == {"https://github.com/bab2min/Kiwi"}  # a link, followed by hand
    assert not re.search(r"""\b(src|srcset|action)=|@import|url\(|fetch\(|XMLHttpRequest|\beval\(|innerHTML""", page)
    assert "default-src 'none'" in page
    assert "unsafe" not in page
    assert "<title>&lt;Tried &amp; tested&gt;</title>" in page
    known = lexicon(runs_of(["학교에서는 학교 집에"]), ByHand())
    assert page == to_page(two, known, title="<Tried & tested>", against="second")


def test_the_gallery_has_the_samples_of_the_page() -> None:
    """`python -m eval.gallery` makes it again."""
    source = (ROOT / "koktok" / "report" / "playground" / "page.js").read_text(encoding="utf-8")
    samples = re.findall(r"^const SAMPLES = .*?^};\n", source, re.MULTILINE | re.DOTALL)
    assert len(samples) == 1
    assert samples[0] in (ROOT / "docs" / "gallery" / "playground.html").read_text(encoding="utf-8")


def test_an_imported_tokenizer_is_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Theirs
    from tokenizers import models

    Theirs(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UsageError, match="run by the library tokenizers") as refused:
        to_page({"theirs": load(tmp_path / "tokenizer.json")})
    words = refused.value.hint.partition(",")[0].split()[1:]
    works(*words[:-1], tmp_path / words[-1], "--resamples", 0, "-q")


@pytest.fixture
def visit(browser: Any, page_file: Path) -> Iterator[Any]:
    """Opens the page; at the end it must have asked for nothing but itself, and complained of nothing."""
    contexts, requests, complaints = [], [], []

    def opened(fragment: str = "", *, width: int = 1400, locale: str = "en") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, locale=locale)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url.split("#")[0]))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(page_file.as_uri() + fragment)
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    assert set(requests) == {page_file.as_uri()}
    assert not complaints
    for context in contexts:
        context.close()


def chips(page: Any, pane: int) -> list[str]:
    return [chip.replace("▁", " ") for chip in page.locator(".pane").nth(pane).locator(".chip").all_inner_texts()]


def test_typing_comparing_and_clicking(visit: Any, two: dict[str, Tokenizer]) -> None:
    page = visit()
    page.fill("#text", "학교에서는 API를")
    first, second = two.values()
    assert chips(page, 0) == [re.sub("^<0x(..)>$", r"\1", piece) for piece in first.encode("학교에서는 API를").pieces]
    spans = [set(made.encode("학교에서는 API를").offsets) for made in (first, second)]
    for pane, made in enumerate((first, second)):
        ringed = [span not in spans[1 - pane] for span in made.encode("학교에서는 API를").offsets]
        marks = (
            page.locator(".pane")
            .nth(pane)
            .locator(".chip")
            .evaluate_all("chips => chips.map((chip) => chip.classList.contains('ring'))")
        )
        assert marks == ringed
    assert page.locator(".pane").nth(0).locator("dd").first.inner_text() == str(len(first.encode("학교에서는 API를")))
    n, other = (len(made.encode("학교에서는 API를")) for made in (first, second))
    told = page.locator(".figures").nth(0).inner_text()
    assert f"relative to second\n{'−' if n < other else '+'}{abs(n / other - 1):.1%}".replace("%", " %") in told
    assert "relative to second" not in page.locator(".figures").nth(1).inner_text()
    # 학교|에서|는: what the first one cuts of it is judged by the list of words
    begun = {start for start, _ in first.encode("학교에서는 API를").offsets}
    assert page.locator(".pane").nth(0).locator(".starts-hit").count() == len(begun & {2, 4})
    page.locator(".pane").nth(0).locator(".chip").first.click()
    detail = page.locator("#detail")
    assert "Best segmentations" in detail.inner_text()
    assert "NNG" in detail.inner_text()
    page.keyboard.press("End")
    assert page.locator("#chosen").inner_text() == chips(page, 0)[-1]
    page.locator(".pane").nth(1).locator(".chip").first.click()
    assert "Merges, one by one" in detail.inner_text()
    page.keyboard.type("x")  # a key that means nothing here
    page.fill("#text", "")
    assert page.locator(".empty").first.is_visible()
    assert detail.inner_text() == ""


def test_special_tokens_are_text_unless_allowed(visit: Any, two: dict[str, Tokenizer]) -> None:
    page = visit()
    special = two["second"].vocab.specials[0]
    page.fill("#text", f"가{special}나")
    assert page.locator(".chip.special").count() == 0
    page.check("#special")
    assert page.locator(".pane").nth(1).locator(".chip.special").all_inner_texts() == [special]


def test_a_stream_gives_the_text(visit: Any) -> None:
    page = visit()
    page.fill("#text", "집에 é 👍")
    flow = page.locator(".pane").nth(1).locator(".flow")
    one = flow.get_by_role("button", name="Next id")
    for _ in range(page.locator(".pane").nth(1).locator(".chip").count()):
        one.click()
    assert flow.locator(".out").inner_text() == "집에 é 👍"
    assert "nothing held back" in flow.inner_text()


def test_two_languages_a_phone_and_an_address(visit: Any) -> None:
    page = visit(width=390, locale="ko-KR")
    assert page.locator("html").get_attribute("lang") == "ko"
    assert page.get_by_role("button", name="파일 열기").count() + page.get_by_text("파일 열기").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="English").click()
    assert page.locator("html").get_attribute("lang") == "en"
    page.fill("#text", "주소에 담은 글 👍")
    page.select_option(".pane:nth-of-type(2) select", "-1")
    page.click("#ids")
    page.click("#link")
    page.wait_for_url("**#*")
    again = visit("#" + page.url.split("#")[1])
    assert again.input_value("#text") == "주소에 담은 글 👍"
    assert again.locator(".pane:visible").count() == 1
    assert again.locator(".chip small").count() > 0
    broken = visit("#t=%%%&a=7&b=x")
    assert broken.locator(".pane:visible").count() == 2


@pytest.mark.parametrize("width", [390, 768, 1600])
@pytest.mark.parametrize("locale", ["en", "ko"])
def test_nothing_is_wider_than_the_window(width: int, locale: str, visit: Any) -> None:
    page = visit(width=width, locale=locale)
    page.fill("#text", f"학교에서는 {'가' * 200} API를")
    page.locator(".chip").first.click()
    assert page.locator("html").get_attribute("lang") == locale
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.network
def test_nobody_is_shut_out(browser: Any, page_file: Path, tmp_path: Path) -> None:
    """axe-core finds nothing serious, in either language and shade."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed; on Debian: apt-get install npm")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"]
    if subprocess.run(command, cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("npm could not install axe-core")
    axe = (tmp_path / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    for locale, shade in itertools.product(("en", "ko"), ("light", "dark")):
        context = browser.new_context(locale=locale, color_scheme=shade, bypass_csp=True)
        page = context.new_page()
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.locator(".chip").nth(3).click()
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert not [fault["id"] for fault in found if fault["impact"] in ("serious", "critical")]
        context.close()


def test_a_dropped_file_is_read(visit: Any, tmp_path: Path) -> None:
    page = visit()
    (tmp_path / "mine.txt").write_text("떨어진 글", encoding="utf-8")
    page.set_input_files("#file", tmp_path / "mine.txt")
    page.get_by_text("mine.txt: 5 characters").wait_for()
    assert page.input_value("#text") == "떨어진 글"
    (tmp_path / "not.txt").write_bytes(b"\xff\xfe\x00")
    page.set_input_files("#file", tmp_path / "not.txt")
    page.get_by_text("not.txt is not UTF-8 text.").wait_for()
    assert page.input_value("#text") == "떨어진 글"
