"""docs/problems.md: its commands run, and print what the page says; `…` stands for any lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = [ROOT / "docs" / name for name in ("problems.md", "problems.ko.md")]


def commands(page: Path) -> list[tuple[str, str]]:
    """The commands of a page in order, and what each prints."""
    blocks = re.findall(r"^```\n(\$ .*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M) if part]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def test_the_commands_print_what_the_page_says(trained: Callable[..., Path], mini: list[str], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in mini), encoding="utf-8")
    (tmp_path / "odd.txt").write_text("똠방각하 👍\n", encoding="utf-8")
    for form, name in (("NFC", "composed"), ("NFD", "decomposed")):
        text = unicodedata.normalize(form, "한국어 파일 이름\n")
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    train = "koktok train text.txt --vocab-size 2300 -o my-tokenizer -q"
    for command, shown in [(train, ""), *commands(PAGES[0])]:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stderr)
        wanted = "".join(".*" if line == "…" else re.escape(line) + "\n" for line in shown.splitlines())
        assert re.fullmatch(wanted, done.stdout, re.S), (command, done.stdout)


def test_the_korean_page_has_the_same_problems_and_commands() -> None:
    english, korean = PAGES
    assert commands(korean) == commands(english)
    assert korean.read_text(encoding="utf-8").count("\n## ") == english.read_text(encoding="utf-8").count("\n## ") == 9


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_problem_has_a_way_out(page: Path) -> None:
    for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
        assert "koktok" in section, section
