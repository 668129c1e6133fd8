"""The commands of docs/problems.md and docs/reference/commands.md run, and print what the pages say; `…` stands for any lines."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import ROOT, koktok

from koktok.cli import app

DOCS = ROOT / "docs"
PAGES = [DOCS / name for name in ("problems.md", "problems.ko.md")]
COMMANDS = [DOCS / "reference" / name for name in ("commands.md", "commands.ko.md")]


def commands(page: Path) -> list[tuple[str, str]]:
    """The commands of a page in order, and what each prints."""
    blocks = re.findall(r"^```\n(\$ .*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M) if part]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def verbs(group: Any = None, before: str = "koktok") -> Iterator[tuple[str, Any]]:
    """Every verb by the words that call it, groups too."""
    for name, verb in (group or typer.main.get_command(app)).commands.items():
        yield f"{before} {name}", verb
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{before} {name}")


def test_the_commands_print_what_the_pages_show(mini: list[str], tmp_path: Path) -> None:
    """The pages share a folder, and a command on both runs once."""
    files = {"text": "".join(f"{line}\n" for line in mini), "odd": "똠방각하 👍\n", "wide": "ＡＢＣ 한국\n"}
    files |= {"one": "학교에서는 책을 읽습니다.\n", "ids": "800 921 266 289 617 256 558 463\n"}
    for form, name in (("NFC", "composed"), ("NFD", "decomposed")):
        files[name] = unicodedata.normalize(form, "한국어 파일 이름\n")
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    env = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    printed: dict[str, str] = {}
    for command, shown in [row for page in (COMMANDS[0], PAGES[0]) for row in commands(page)]:
        if command not in printed:
            program, *words = shlex.split(command)
            if program == "koktok":  # in this process, which has everything loaded
                done = koktok(*words, cwd=tmp_path)
            else:
                done = subprocess.run([program, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stderr)
            printed[command] = done.stdout
        pattern = "".join(".*" if line == "…" else re.escape(line) + "\n" for line in shown.splitlines())
        assert re.fullmatch(pattern, printed[command], re.S), (command, printed[command])


@pytest.mark.parametrize("pages", [PAGES, COMMANDS], ids=["problems", "commands"])
def test_the_korean_page_has_the_same_sections_and_commands(pages: list[Path]) -> None:
    assert commands(pages[0]) == commands(pages[1])
    assert len({page.read_text(encoding="utf-8").count("\n## ") for page in pages}) == 1


@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: page.name)
def test_every_verb_has_a_section_with_an_example_and_its_help(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sections = {section.partition("\n")[0]: section for section in text.split("\n## ")[1:]}
    assert {*sections} == {f"koktok {name}" for name in typer.main.get_command(app).commands}
    for name, section in sections.items():
        assert f"$ {name} " in section
        assert f"<!-- help {name.removeprefix('koktok ')} -->" in section


def test_every_help_has_an_example_that_is_parsed() -> None:
    for name, verb in verbs():
        if hasattr(verb, "commands"):
            continue
        found = re.search(rf"^  Example: {name}( .*)?$", koktok(*name.split()[1:], "--help").stdout, re.M)
        assert found, name
        verb.make_context(name, (found[1] or "").split(), resilient_parsing=False)
