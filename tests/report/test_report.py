"""Rows to JSON, Markdown and a page: laws of each rendering, hostile names, and the page in a real browser."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shlex
from collections.abc import Callable
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from conftest import MINI, koktok, works
from hypothesis import example as example_of
from hypothesis import given
from hypothesis import strategies as st

from koktok.errors import ArtifactError
from koktok.metrics import Difference, Measure, Scores, Settings, Text, Value
from koktok.metrics.gold import GoldCorpus
from koktok.report import Report, to_html, to_markdown
from koktok.report.charts import ticks
from koktok.report.measure import Entry, ReportMaterial, entries_of, measure, showcase
from koktok.report.page import spans_of
from koktok.report.rows import equal_tokens, pareto_front
from koktok.report.schema import GoldInfo, Sentence, TextInfo
from koktok.report.tables import sections_of
from koktok.tokenizer.open import load

Trained = Callable[..., Path]
VOID = {"meta", "br", "link", "img", "input", "hr"}


def example(name: str = "ours", text: str = "집에 갔다") -> Report:
    """Three rows: two that ran, one that could not."""
    known = {"better": "lower", "unit": "tokens/eojeol", "definition": "tokens by eojeols"}
    measures = [
        Measure(name="fertility", title="tokens per eojeol", title_ko="어절당 토큰 수", **known),
        Measure(name="boundary_f1", title="F1", title_ko="경계 F1", unit="", better="higher", definition="x"),
    ]
    rows = [
        Scores(
            number=1,
            name=name,
            spec="hf:a",
            family="hf",
            vocab_size=12_345,
            signature="tokenizer:abc|seed:0",
            notes=["input NFKD"],
            notes_ko=["입력을 NFKD로 바꿈"],
            scores={
                "fertility": Value(2.25, low=2.0, high=2.5),
                "boundary_f1": Value(0.5),
                "fertility@news": Value(2.25),
                "fertility@law": Value(2.5, low=2, high=3),
                "boundary_f1@kaist": Value(0.5),
                "recall:N|J@kaist": Value(0.25),
            },
            differences={"fertility": Difference(0.75, 0.5, 1.0, p=0.01, adjusted=0.04)},
        ),
        Scores(
            number=2,
            name="less",
            spec="sp:b",
            family="sp",
            vocab_size=900,
            signature="tokenizer:def|seed:0",
            scores={"fertility": Value(1.5), "boundary_f1": Value(0.4)},
        ),
        Scores(number=3, name="third", spec="package:c", family="package", why="`c` is not installed"),
    ]
    return Report(
        title="Korean tokenizers",
        seed=0,
        resamples=10,
        libraries={"koktok": "0"},
        measures=measures,
        texts=[TextInfo(name=n, lines=1, eojeols=2, characters=5, bytes=13, digest="d" * 16) for n in ("news", "law")],
        golds=[
            GoldInfo(
                name="kaist",
                standing="human",
                sentences=1,
                words=2,
                skipped=0,
                digest="e" * 16,
                resampled="9 documents",
                kinds={"N|J": 4, "V|E": 2},
            )
        ],
        rows=rows,
        reference="less",
        sentences=[Sentence(text=text, gold=[1], tokens={1: [(0, 2), (2, 5)], 2: [(0, 1), (1, 2), (3, 5)]})],
    )


class Page(HTMLParser):
    """What a page refers to, says and nests."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [
            value or "" for key, value in attrs if key in ("src", "href", "srcset", "xlink:href", "data")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        assert tag in ("rect", "line", "path", "circle"), tag

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_json_comes_back_and_has_a_version() -> None:
    report = example()
    text = report.to_json()
    assert Report.from_json(text) == report
    assert text.endswith("}\n")
    data = json.loads(text)
    assert (data["format"], data["version"]) == ("koktok-report", 5)
    with pytest.raises(ArtifactError, match="this report has version 4, this koktok reads version 5"):
        Report.from_json(json.dumps(data | {"version": 4}))
    with pytest.raises(ArtifactError, match="not a report of koktok"):
        Report.from_json("[]")
    with pytest.raises(ArtifactError, match="a report is JSON"):
        Report.from_json("<html>")
    with pytest.raises(ArtifactError, match="this report is broken"):
        Report.from_json(json.dumps(data | {"surprise": 1}))


def test_a_figure_that_is_none_never_gets_into_json() -> None:
    row = example().rows[0].model_copy(update={"scores": {"fertility": Value(float("nan"))}})
    with pytest.raises(ArtifactError, match="finite"):
        example().model_copy(update={"rows": [row]}).to_json()


# ── Markdown and page ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_markdown_shows_names_as_they_are() -> None:
    """Names of rows, texts and gold are the user's, or those of somebody's file."""
    wild = "[x](javascript:alert(1)) <img src=x> *b* `c` _d_ a_b | e\n# f"
    found = example(name=wild)
    rows = [found.rows[0].model_copy(update={"spec": "hf:a`b", "notes": [wild]}), found.rows[1]]
    rows.append(found.rows[2].model_copy(update={"why": f"`{wild}` is not a file <b>"}))
    texts = [found.texts[0].model_copy(update={"name": wild}), found.texts[1]]
    golds = [found.golds[0].model_copy(update={"name": wild})]
    changes = {"rows": rows, "texts": texts, "golds": golds, "title": wild, "reference": wild}
    text = to_markdown(found.model_copy(update=changes))
    shown = r"\[x\](javascript:alert(1)) \<img src=x\> \*b\* \`c\` \_d\_ a_b | e # f"
    assert text.startswith(f"# {shown}\n")
    assert f"| 1 | {shown.replace('|', chr(92) + '|')} ★ | 12,345 |" in text
    assert f"1. {shown} (`` hf:a`b ``; {shown}): `tokenizer:abc|seed:0`" in text
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text.replace("\\`", ""))  # what is no code
    assert not re.search(r"(?<!\\)<(img|b)", outside)
    assert not re.search(r"(?<!\\)\[x", outside)
    table = text.split("\n\n")[1].splitlines()
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


def test_markdown_says_figures_intervals_and_why() -> None:
    text = to_markdown(example())
    assert "| 1 | ours ★ | 12,345 | 2.250 [2.000, 2.500] | 0.500 |" in text
    assert "| 3 | third | – | not run: `c` is not installed |  |" in text
    assert "| 1 | ours | **+0.7500** [+0.5000, +1.0000] p = .040 |" in text
    assert "Student's t over 9 documents (kaist), with" in text
    assert "adjusted for the 1 tests of this table (Holm)" in text
    assert "| # | tokenizer | N\\|J (4) | V\\|E (2) |" in text
    assert "| 1 | ours | 0.250 | – |" in text
    assert "`tokenizer:abc|seed:0`" in text


def test_the_page_stands_alone_and_speaks_both_languages() -> None:
    html = to_html(example())
    page = Page(html)
    assert page.references == []
    assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest|\bimport\b", html)
    for words in (
        "어절당 토큰 수",
        "tokens per eojeol",
        "not run",
        "실행하지 못함",
        "문장별 비교",
        "tokenizer:abc|seed:0",
    ):
        assert words in html
    assert html.count("<svg") == 4  # two texts; points for a screen and for a telephone
    assert to_html(example()) == html


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
@example_of("</script><script>alert(1)</script>")
def test_hostile_names_and_texts_stay_text(words: str) -> None:
    page = Page(to_html(example(name=words, text="집에 " + words)))
    assert "script" in page.words or any("speak" in text for text in page.words)
    table = [line for line in to_markdown(example(name=words)).splitlines() if line.startswith("| 1 |")]
    assert len(re.findall(r"(?<!\\)\|", table[0].replace(words.replace("|", "\\|"), ""))) == 6


def test_the_page_runs_its_own_script_and_style_alone() -> None:
    page = to_html(example())
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    said = html.unescape(policy[1])
    assert said.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        (source,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in said
    assert not re.search(r"<[^>]+ (style|on[a-z]+)=", page)


@given(st.text(max_size=20), st.data())
def test_runs_of_a_sentence_join_to_it(text: str, data: st.DataObject) -> None:
    places = st.integers(0, len(text))
    spans = sorted({(min(a, b), max(a, b)) for a, b in data.draw(st.lists(st.tuples(places, places)))})
    gold = data.draw(st.none() | st.lists(places))
    runs = spans_of(text, [(a, b) for a, b in spans if a < b], gold)
    assert "".join(run.text for run in runs) == text
    assert all(run.text for run in runs)
    assert {run.edge for run in runs} <= {"", "start", "hit", "miss", "over", "cut"}


def test_punctuation_is_painted_as_it_is_counted() -> None:
    words = [
        ("입니다.", ["이", "ㅂ니다", "."], ["VCP", "EF", "SF"], False),
        ("서울과", ["서울", "과"], ["NNP", "JC"], True),
    ]
    sentence_of = GoldCorpus.of(
        "tiny", [[*words, ("해요", ["하", "아요"], ["VV", "EF"], True), ("물", ["물"], ["NNG"], True)]], human=True
    )
    (sentence,) = showcase([], 1, 0, [sentence_of])
    assert sentence.text == "입니다. 서울과 해요 물"
    runs = spans_of(sentence.text, [(k, k + 1) for k in range(len(sentence.text))], sentence.gold, sentence.unjudged)
    # 입 holds a border, so 입|니 is not judged, nor is 다|. ; 니|다 and 서|울 are inside morphemes; 해|요 is beside a border
    assert [(run.text, run.edge) for run in runs if run.edge not in ("start", "")] == [
        ("니", "cut"), ("다", "over"), (".", "cut"), ("울", "over"), ("과", "hit"), ("요", "cut"),
    ]  # fmt: skip


def test_marks_of_a_sentence() -> None:
    runs = spans_of("학교에서 갔다", [(0, 2), (2, 3), (3, 4), (4, 7)], [2, 6])
    marks = [(run.text, run.edge) for run in runs if run.text != " "]
    assert marks == [("학교", "start"), ("에", "hit"), ("서", "over"), ("갔", "start"), ("다", "miss")]
    assert [run.edge for run in spans_of("가나", [(0, 1), (1, 2)], None)] == ["start", "cut"]
    assert [run.colour for run in spans_of("가 나", [(0, 1), (2, 3)], None)] == [0, -1, 1]


@given(st.lists(st.tuples(st.floats(1, 5), st.floats(0, 1)), min_size=1, max_size=12))
def test_the_front_is_what_nobody_beats(figures: list[tuple[float, float]]) -> None:
    rows = [
        Scores(number=i, name=str(i), spec="", family="hf", scores={"fertility": Value(x), "boundary_f1": Value(y)})
        for i, (x, y) in enumerate(figures, start=1)
    ]
    best = {row.number for row in pareto_front(rows)}
    for i, (x, y) in enumerate(figures, start=1):
        beaten = any((a <= x and b >= y) and (a < x or b > y) for a, b in figures)
        assert (i in best) == (not beaten)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 10))
def test_ticks_are_inside_even_and_few(low: float, span: float, wanted: int) -> None:
    found = ticks(low, low + span, wanted)
    slack = span * 1e-6 + 1e-9  # ticks are rounded to ten places
    assert all(low - slack <= t <= low + span + slack for t in found)
    assert len(found) <= wanted * 2 + 1


def test_analysers_are_never_on_the_front() -> None:
    rows = [row.model_copy(update={"family": "analyser"}) for row in example().rows]
    assert pareto_front(rows) == []


def test_what_is_not_spelled_costs_nothing_and_wins_nothing() -> None:
    rows = list(example().rows)
    unread = {"unknown_eojeols": Value(0.18)}
    rows[0] = rows[0].model_copy(update={"scores": rows[0].values | unread})
    assert [row.number for row in pareto_front(rows)] == [2]


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LINES = (MINI / "essay.txt").read_text(encoding="utf-8").splitlines()
GOLD_LINES = [
    [("학교에서는", ["학교", "에서", "는"], ["NNG", "JKB", "JX"], False), ("잔다", ["자", "ㄴ다"], ["VV", "EF"], True)],
    [("집에", ["집", "에"], ["NNG", "JKB"], False), ("갔다", ["가", "았", "다"], ["VV", "EP", "EF"], True)],
] * 8


def material() -> ReportMaterial:
    gold = GoldCorpus.of("tiny", GOLD_LINES, human=True)
    return ReportMaterial(
        text=Text.of({"essay": LINES, "more": LINES[:9]}), golds=[gold], shown=[Sentence(text="집에 갔다", gold=[1, 4])]
    )


def test_rows_that_cannot_run_say_why_and_the_others_are_measured() -> None:
    entries = [
        Entry("syllables"),
        Entry("package:nothing"),
        Entry("eojeols", "words"),
        Entry("kiwi", why="asked not to"),
    ]
    found = measure(entries, material(), Settings(resamples=20))
    assert [row.name for row in found.rows] == ["syllables", "package:nothing", "words", "kiwi"]
    assert [row.ran for row in found.rows] == [True, False, True, False]
    assert "no package is known for `nothing`" in found.rows[1].why
    assert found.rows[3].why == "asked not to"
    assert found.rows[2].values["fertility"].value == 1.0
    assert found.rows[0].values["boundary_recall@tiny"].value == 1.0
    assert found.golds[0].syllables_f1 == pytest.approx(found.rows[0].values["boundary_f1"].value)
    assert {"fertility@essay", "fertility@more"} <= found.rows[0].values.keys()
    assert {row.number: set(row.differences) for row in found.rows if row.differences} == {
        3: {"fertility", "boundary_f1", "boundary_f1_macro"}
    }
    adjusted = [one for one in found.rows[2].differences.values() if one.adjusted is not None]
    assert found.resampled == f"{len(LINES) // 50 + 2} blocks of 50 lines"
    assert len(adjusted) == 1  # sixteen sentences are one block, which proves nothing
    assert all(one.adjusted >= one.p for one in found.rows[2].differences.values() if one.p is not None)
    assert found.rows[0].values["recall:N|J@tiny"].value == 1
    assert found.golds[0].kinds == {"N|J": 16, "J|J": 8, "E|E": 8}
    assert found.reference == "syllables"
    assert found.sentences[0].tokens == {1: [(0, 1), (1, 2), (3, 4), (4, 5)], 3: [(0, 2), (3, 5)]}


def test_no_resamples_no_intervals_and_every_row_runs() -> None:
    found = measure([Entry("syllables"), Entry("eojeols")], material(), Settings(resamples=0))
    assert [row.ran for row in found.rows] == [True, True]
    assert len(found.rows[1].differences) == 3
    assert {(one.low, one.p, one.adjusted) for one in found.rows[1].differences.values()} == {(None, None, None)}
    assert all(cell.low is None for row in found.rows for cell in row.values.values())


def test_f1_at_equal_tokens_is_read_off_the_line_between_two_rows() -> None:
    def row(number: int, family: str, tokens: float, f1: float) -> Scores:
        cells = {"fertility": Value(tokens), "boundary_f1_macro": Value(f1)}
        return Scores(number=number, name=str(number), spec="", family=family, scores=cells)

    rows = [
        row(1, "sp", 1.75, 0.5),
        row(2, "koktok", 1.7, 0.6),
        row(3, "koktok", 1.8, 0.7),
        row(4, "koktok", 1.9, 0.65),
    ]
    rows += [row(5, "hf", 1.95, 0.4), row(6, "sp", 1.8, 0.6), row(7, "trivial", 1.75, 1), row(8, "koktok", 2.1, 0.9)]
    found = equal_tokens(example().model_copy(update={"rows": rows}))
    assert [(r.number, f1.value) for r, f1, _ in found] == [(1, 0.5), (5, 0.4), (6, 0.6)]
    # the fourth row is beaten by the third and is not on the front
    assert [ours for *_, ours in found] == pytest.approx([0.65, 0.7 + 0.2 * 0.5, 0.7])
    assert equal_tokens(example()) == []
    # pieces across spaces are compared with pieces across spaces
    for wide in (rows[2], rows[5]):
        wide.values["inner_space_share"] = Value(0.1)
    found = equal_tokens(example().model_copy(update={"rows": rows}))
    assert [r.number for r, *_ in found] == [1, 5]
    assert [ours for *_, ours in found] == pytest.approx([0.6 + 0.05 * 0.05 / 0.2, 0.7125])


def test_sentences_to_show_are_drawn_by_seed_and_fit_a_line() -> None:
    shown = showcase(LINES, 5, 0)
    assert shown == showcase(LINES, 5, 0) != showcase(LINES, 5, 1)
    assert {sentence.text for sentence in shown} <= set(LINES)
    assert all(len(sentence.text) <= 70 and sentence.gold is None for sentence in shown)


def test_names_are_distinct() -> None:
    found = measure(entries_of(["syllables", "syllables", "a=eojeols"]), material(), Settings(resamples=0))
    assert [row.name for row in found.rows] == ["syllables", "syllables#2", "a"]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for folder, tag in (("kaist", "JX"), ("gsd", "JKS")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "dev.tsv").write_text(f"나는\t나/NP+는/{tag}\n간다\t가/VV+ㄴ다/EF\n\n", "utf-8")
        (tmp_path / folder / "text.txt").write_text("나는 간다.\n" * 20, "utf-8")
        vocab = tmp_path / folder / "tok" / "vocab.txt"
        vocab.parent.mkdir()
        vocab.write_text("\n".join(["[UNK]", "나", "##는", "간다", "."]), "utf-8")
    golds = [word for folder in ("kaist", "gsd") for word in ("--gold", tmp_path / folder / "dev.tsv")]
    texts = [word for folder in ("kaist", "gsd") for word in ("--text", tmp_path / folder / "text.txt")]
    specs = [tmp_path / folder / "tok" / "vocab.txt" for folder in ("kaist", "gsd")]
    works("report", *specs, *golds, *texts, "--out", tmp_path / "out", "--resamples", 0, "-q")
    found = Report.model_validate_json((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert [gold.name for gold in found.golds] == ["kaist/dev", "gsd/dev"]
    assert [text.name for text in found.texts] == ["kaist/text", "gsd/text"]
    for page in ("report.md", "report.html"):  # which show the files as they were typed
        whole = (tmp_path / "out" / page).read_text("utf-8")
        shown = re.findall(r"^(?:\| |<tr><th scope=.row.>)(\S+text\.txt)\b", whole, re.MULTILINE)
        assert shown == [str(tmp_path / folder / "text.txt") for folder in ("kaist", "gsd")]
    assert [row.name.split("/")[0] for row in found.rows] == ["kaist", "gsd"]
    assert {"boundary_f1@kaist/dev", "boundary_f1@gsd/dev"} <= found.rows[0].values.keys()


def test_the_summary_is_printed_and_the_file_is_the_last_line(tmp_path: Path) -> None:
    (tmp_path / "gold.tsv").write_text("나는\t나/NP+는/JX\n간다\t가/VV+ㄴ다/EF\n\n" * 9, "utf-8")
    words = (
        "syllables",
        "eojeols",
        "--text",
        MINI / "news.txt",
        "--gold",
        tmp_path / "gold.tsv",
        "--resamples",
        0,
        "-q",
    )
    done = koktok("report", *words, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["Korean", "tokenizers"]
    heads = ["tokenizer", "ids", "tokens/eojeol", "F1 josa eomi to gold", "F1 to gold"]
    assert re.split(r"\s{2,}", lines[1].strip())[:5] == heads
    assert lines[3].split()[:3] == ["eojeols", "–", "1.000"]
    assert lines[-1] == str(tmp_path / "out" / "report.html")


# ── the verb ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_report_cannot_do_is_said_at_once_or_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    taken = koktok("report", "syllables", "--text", MINI / "news.txt", "--out", tmp_path / "file")
    assert (taken.returncode, "expected a folder, got the file" in taken.stderr) == (2, True)
    none = koktok("report", "nothing", "--text", MINI / "news.txt", "--out", tmp_path / "none", "-q")
    assert (none.returncode, "not run: nothing: " in none.stderr) == (1, True)
    quick = ("--text", MINI / "news.txt", "--resamples", 0, "-q")
    zero = koktok("report", "syllables", "eojeols", *quick, "--out", tmp_path / "zero")
    assert (zero.returncode, zero.stderr) == (0, "")
    assert all(row.ran for row in Report.from_json((tmp_path / "zero" / "report.json").read_text("utf-8")).rows)
    some = koktok("report", "nothing", "syllables", "--text", MINI / "news.txt", "--out", tmp_path / "some", "-q")
    assert (some.returncode, "not run: nothing: " in some.stderr) == (1, True)
    assert (tmp_path / "some" / "report.html").exists()


def test_a_row_that_breaks_while_it_is_measured_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from koktok.cli.examine import report
    from koktok.metrics import score as whole

    monkeypatch.setattr(
        "koktok.report.measure.score", lambda s, *a, **k: whole(s, *a, **k) if s.name == "syllables" else {}[s.name]
    )
    with pytest.raises(typer.Exit) as ended:
        report(["syllables", "eojeols"], tmp_path, text=[str(MINI / "news.txt")], resamples=0, quiet=True)
    assert ended.value.exit_code == 1
    assert "failed: eojeols: KeyError: 'eojeols'" in capsys.readouterr().err
    assert (tmp_path / "report.md").exists()


def test_without_gold_the_boundaries_are_the_analysers(tmp_path: Path) -> None:
    words = ["report", "syllables", "--text", MINI / "news.txt", "-o", tmp_path, "--resamples", 0]
    done = works(*words)
    assert "boundaries are Kiwi's (automatic): --gold FILE" in done.stderr
    (gold,) = Report.from_json((tmp_path / "report.json").read_text("utf-8")).golds
    assert (gold.name, gold.standing) == ("kiwi", "silver")
    assert "F1 josa eomi to kiwi" in done.stdout
    written = (tmp_path / "report.md").read_text("utf-8")
    assert "F1 before particles and endings (kiwi's boundaries, silver)" in written
    assert "gold corpora |" not in written
    assert koktok(*words, "-q", "--force").stderr == ""


def test_gold_is_human_where_the_user_says_so(tmp_path: Path) -> None:
    for name in ("kaist.pos", "own.pos"):
        (tmp_path / name).write_text("집에\t집/NNG+에/JKB\n갔다\t가/VV+았/EP+다/EF\n", encoding="utf-8")
    golds = ("--gold", tmp_path / "kaist.pos", "--human-gold", tmp_path / "own.pos")
    works("report", "syllables", *golds, "-o", tmp_path / "r", "-q")
    found = Report.from_json((tmp_path / "r" / "report.json").read_text("utf-8"))
    assert [(gold.name, gold.standing) for gold in found.golds] == [("kaist", "silver"), ("own", "human")]
    assert [remark.split(",")[0] for remark in found.remarks] == [
        f"{name} is one sentence of 2 words" for name in ("kaist", "own")
    ]
    assert found.command == shlex.join(map(str, ("koktok", "report", "syllables", *golds, "-o", tmp_path / "r", "-q")))
    assert date.fromisoformat(found.made)


def test_costs_of_korean_beside_english_and_of_the_embeddings(tmp_path: Path, trained: Trained) -> None:
    """Parallel files without --text are the text, too; the figures are those of counting by hand."""
    for name, lines in (("ko", "하늘\n물이 맑다\n"), ("en", "sky\nclear water\n")):
        (tmp_path / f"{name}.txt").write_text(lines, encoding="utf-8")
    sides = ["--parallel", str(tmp_path / "ko.txt"), str(tmp_path / "en.txt")]
    folder = trained(train={"model": "bpe-bytes"})
    done = koktok(
        "report", f"ours={folder}", *sides, "--text", str(tmp_path), "--resamples", "0", "-o", tmp_path / "r", "-q"
    )
    assert done.returncode == 0, done.stderr
    made = Report.from_json((tmp_path / "r/report.json").read_text(encoding="utf-8"))
    tokenizer, row = load(folder), made.rows[0]
    korean, english = (
        sum(map(len, tokenizer.encode_ids(lines))) for lines in (["하늘", "물이 맑다"], ["sky", "clear water"])
    )
    assert row.values["parity"].value == pytest.approx(korean / english)
    assert row.values["bytes_per_token@ko"].value == pytest.approx(19 / korean)
    assert row.values["tokens_per_char@en"].value == pytest.approx(english / 14)
    parameters = [cell.value for cell in sections_of(made)["embeddings"].tables[0].rows[0][1]]
    assert parameters == [row.vocab_size * wide for wide in (576, 2048, 8192, 16384)]
    page = (tmp_path / "r/report.html").read_text(encoding="utf-8")
    assert all(title in page for title in ("Parameters of the embeddings", "UTF-8 bytes per token"))
    short = tmp_path / "short"
    short.write_text("sky\n", encoding="utf-8")
    wrong = koktok("report", str(folder), *sides[:2], str(short), "-o", tmp_path / "w", "-q")
    assert wrong.returncode == 2
    assert "expected as many lines on both sides" in wrong.stderr
    alone = koktok("report", str(folder), *sides, "--resamples", "0", "-o", tmp_path / "a", "-q")
    assert [text.name for text in Report.from_json((tmp_path / "a/report.json").read_text()).texts] == ["ko"], (
        alone.stderr
    )
