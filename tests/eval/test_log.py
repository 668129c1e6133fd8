"""eval/log: a question a page, an index of them, and citations that lead to one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

LOG = ROOT / "eval" / "log"
PAGES = sorted(LOG.glob("[0-9]*.md"))
CITING = [
    *(
        path
        for folder in ("koktok", "docs", "eval")
        for end in ("md", "py")
        for path in (ROOT / folder).rglob(f"*.{end}")
    ),
    *ROOT.glob("*.md"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_asks_and_answers(page: Path) -> None:
    """The question, the day and the answer in its first lines, and a row of the index with both."""
    text = page.read_text(encoding="utf-8")
    question, date, answer = re.match(r"# (.+\?)\n\n(\d{4}-\d\d-\d\d)\. (.+)\n\n", text).groups()
    row = f"| [{page.stem[:3]}]({page.name}) | {question} | {answer} |\n"
    assert row in (LOG / "README.md").read_text(encoding="utf-8"), date
    assert "\n# " not in text, "one question a page"


def test_numbers_are_counted_once() -> None:
    assert [page.stem[:3] for page in PAGES] == [f"{n:03}" for n in range(1, len(PAGES) + 1)]
    assert (LOG / "README.md").read_text(encoding="utf-8").count("\n| [") == len(PAGES)


def test_citations_lead_to_a_question() -> None:
    numbers = {page.stem[:3] for page in PAGES}
    cited = {path: re.findall(r"eval/log/(\w+)", path.read_text(encoding="utf-8")) for path in CITING}
    assert not {path: wrong for path, found in cited.items() if (wrong := {*found} - numbers - {"README"})}
    assert sum(map(len, cited.values())) > 10
    assert not [
        path
        for path in CITING
        if "LOG.md" in path.read_text(encoding="utf-8").replace("CHANGELOG.md", "") and path != LOG / "README.md"
    ]
    for page in [*PAGES, LOG / "README.md"]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (LOG / link).exists(), (page.name, link)
