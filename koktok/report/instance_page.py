"""The page of statistics of training instances, and the same tables for the terminal.

This file adds: tables of `koktok.instances.instance_statistics`, with headings in English and Korean.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from koktok.report.page import HERE, environment

if TYPE_CHECKING:
    from koktok.instances.instance_statistics import InstanceStatistics


Words = tuple[str, str]
"""English and Korean."""


@dataclass(frozen=True)
class Sheet:
    """A table.

    Parameters
    ----------
    title : (str, str)
    columns : list of (str, str)
    rows : list of list of str
        The first cell of a row is its name, English and Korean with a `|` between where they differ.
    examples : dict of str to list of str
        By row, text that is shown below the table.
    """

    title: Words
    columns: list[Words]
    rows: list[list[str]]
    examples: dict[str, list[str]]


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "–"


def sheets_of(found: InstanceStatistics) -> list[Sheet]:
    """All tables of the page."""
    plan, text = found.manifest["plan"], found.manifest.get("text", {})
    total = sum(epoch.instances for epoch in found.epochs)
    tokens = sum(epoch.tokens for epoch in found.epochs)
    figure = ("figure", "값")
    rows = [
        ["kind|종류", plan["kind"]],
        ["instances|인스턴스", f"{total:,}"],
        ["epochs|에폭", f"{len(found.epochs):,}"],
        ["documents of the text|원문 문서", f"{text.get('n_documents', 0):,}"],
        ["tokens of the text|원문 토큰", f"{text.get('n_tokens', 0):,}"],
        ["tokens of an instance, mean|인스턴스당 평균 토큰", f"{tokens / max(1, total):.1f}"],
        ["longest allowed|최대 길이", f"{plan['length']:,}"],
        ["padding, to that length|그 길이까지 채울 때 패딩", f"{100 * found.padding:.1f} %"],
    ]
    sheets = [Sheet(("Instances", "인스턴스"), [("", ""), figure], rows, {})]
    if any(epoch.masked for epoch in found.epochs):
        sheets += _masking(found)
    if plan["kind"] == "bert":
        rows = [[str(i), _share(epoch.unlike, epoch.instances)] for i, epoch in enumerate(found.epochs)]
        name = (
            ("exchanged", "뒤바뀐 쌍")
            if plan["pairs"] == "order"
            else ("second text of another document", "다른 문서의 둘째 글")
        )
        sheets.append(Sheet(("Pairs", "문장 쌍"), [("epoch", "에폭"), name], rows, {}))
    if plan["kind"] == "t5":
        rows = [[str(i), f"{e.targets / max(1, e.instances):.1f}"] for i, e in enumerate(found.epochs)]
        sheets.append(Sheet(("Targets", "목표"), [("epoch", "에폭"), ("tokens, mean", "평균 토큰")], rows, {}))
    step = plan["length"] / len(found.lengths)
    rows = [
        [f"{round(i * step) + 1}–{round((i + 1) * step)}", f"{n:,}", _share(n, total)]
        for i, n in enumerate(found.lengths.tolist())
    ]
    sheets.append(
        Sheet(("Lengths", "길이"), [("tokens", "토큰"), ("instances", "인스턴스"), ("share", "비율")], rows, {})
    )
    rows = [
        ["ordinary pieces that the text uses|쓰인 일반 조각", f"{100 * found.used:.1f} %"],
        ["ordinary pieces|일반 조각", f"{found.ordinary:,}"],
        *(
            [
                f"tokens of the {n:,} most frequent|가장 잦은 {n:,}개의 토큰 비율",
                f"{100 * found.share_of_most(n):.1f} %",
            ]
            for n in (10, 100, 1000)
        ),
    ]
    sheets.append(Sheet(("Vocabulary", "어휘"), [("", ""), figure], rows, {}))
    if cleaned := text.get("cleaned"):
        steps = cleaned["steps"]
        rows = [
            [
                step,
                f"{n['lines']:,}",
                f"{n['documents']:,}",
                f"{n['characters']:,}",
                _share(n["characters"], cleaned["characters"]),
            ]
            for step, n in steps.items()
        ]
        rows.append(["all text|전체 원문", *(f"{cleaned[key]:,}" for key in ("lines", "documents", "characters")), ""])
        columns = [("step", "단계"), ("lines", "줄"), ("documents", "문서"), ("characters", "글자"), ("share", "비율")]
        examples = {step: n["examples"] for step, n in steps.items() if n["examples"]}
        sheets.append(Sheet(("What cleaning took away", "정제에서 빠진 것"), columns, rows, examples))
    return sheets


def _masking(found: InstanceStatistics) -> list[Sheet]:
    columns = [
        ("epoch", "에폭"), ("masked", "가림"), ("as mask", "마스크"), ("random", "무작위"), ("kept", "그대로"),
        ("whole words", "어절 전체"), ("in part", "일부"), ("words each", "인스턴스당 어절"),
    ]  # fmt: skip
    rows = [
        [
            str(i),
            _share(e.masked, e.tokens - e.specials),
            _share(e.as_mask, e.masked),
            _share(e.as_random, e.masked),
            _share(e.masked - e.as_mask - e.as_random, e.masked),
            _share(e.whole, e.words),
            _share(e.partly, e.words),
            f"{(e.whole + e.partly) / max(1, e.instances):.1f}",
        ]
        for i, e in enumerate(found.epochs)
    ]
    words = [
        [f"{n + 1}{'+' if n + 1 == len(found.by_tokens) else ''}", f"{all_:,}", _share(whole, all_)]
        for n, (all_, whole) in enumerate(found.by_tokens.tolist())
    ]
    return [
        Sheet(("Masking", "가리기"), columns, rows, {}),
        Sheet(
            ("Whitespace words by their tokens", "토큰 수별 어절"),
            [("tokens", "토큰"), ("words", "어절"), ("masked whole", "전체가 가려짐")],
            words,
            {},
        ),
    ]


def is_statistics_page(path: Path) -> bool:
    """Whether a file is one that `statistics_page` made."""
    with path.open("rb") as file:
        return b'<meta name="generator" content="koktok instances">' in file.read(512)


def statistics_page(found: InstanceStatistics, name: str) -> str:
    """The page, in one file.

    Raises
    ------
    MissingExtraError
        When jinja2 is not installed.
    """
    top = max(1, int(found.lengths.max(initial=1)))
    page: str = (
        environment()
        .get_template("instance_page.html.j2")
        .render(
            name=name,
            sheets=sheets_of(found),
            bars=[round(100 * n / top, 1) for n in found.lengths.tolist()],
            style=(HERE / "page.css").read_text(encoding="utf-8"),
            script=(Path(HERE) / "page.js").read_text(encoding="utf-8"),
        )
    )
    return page if page.endswith("\n") else page + "\n"
