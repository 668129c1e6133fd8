"""The house: who may import whom, what the package shows, what the README says of the tree, what the wheel holds."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

import koktok

# Stage order, which is also the order of the README's tree. A stage imports only from stages before it.
STAGES = [
    "errors",
    "process",
    "cache",
    "unpack",
    "records",
    "extract",
    "corpus_recipe",
    "download",
    "fetch",
    "corpus",
    "normalize",
    "pretokenize",
    "jamo",
    "count",
    "segmented",
    "segment",
    "vocab",
    "blocklist",
    "style",
    "recipe",
    "models",
    "train",
    "export",
    "encoding",
    "many",
    "tokenizer",
    "bulk",
    "stream",
    "importing",
    "integrations",
    "verify",
    "specs",
    "gold",
    "metrics",
    "doctor",
    "diff",
    "report",
    "frontier",
    "reading",
    "waist",
    "estimate",
    "closing",
    "build",
    "console",
    "cli",
]
LATE = {
    ("many", "bulk"),
    ("tokenizer", "importing"),
    ("tokenizer", "stream"),
    ("closing", "build"),
    ("closing", "console"),
}
"""Imports inside functions that go the other way on purpose: one object that does all a user expects of a tokenizer, and
running the whole road from the surface."""

HEAVY = (
    "kiwipiepy",
    "sentencepiece",
    "tokenizers",
    "transformers",
    "numba",
    "pyarrow",
    "datasets",
    "mecab",
    "pydantic",
)


def stage_of(path: Path) -> str:
    return path.relative_to(ROOT / "koktok").parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("koktok"):
            rest = node.module.split(".")[1:]
            found |= {rest[0]} if rest else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("koktok.")}
    return found


MODULES = sorted(path for path in (ROOT / "koktok").rglob("*.py") if path.name not in ("__init__.py", "__main__.py"))
MODULES += [ROOT / "koktok" / "segment" / "__init__.py", ROOT / "koktok" / "models" / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_stage_imports_a_later_one(path: Path) -> None:
    own = stage_of(path)
    assert own in STAGES, f"{own} has no place in the stage order"
    for other in imports(path) - {own}:
        runtime = not _only_for_types(path, other)
        assert STAGES.index(other) < STAGES.index(own) or (own, other) in LATE or not runtime, f"{own} imports {other}"


def _only_for_types(path: Path, stage: str) -> bool:
    text = path.read_text(encoding="utf-8")
    block = re.search(r"^if TYPE_CHECKING:\n((?:    .*\n|\n)+)", text, re.M)
    return block is not None and f"koktok.{stage}" not in text.replace(block[0], "")


def test_no_drawer_for_odds_and_ends() -> None:
    assert not {path.stem for path in MODULES} & {"utils", "util", "common", "helpers", "misc"}
    long = {str(path): n for path in MODULES if (n := len(path.read_text(encoding="utf-8").splitlines())) > 450}
    assert not long


def test_kiwi_lives_in_one_file() -> None:
    users = {
        path.name
        for path in MODULES
        if re.search(r"^\s*(import|from) kiwipiepy", path.read_text(encoding="utf-8"), re.M)
    }
    assert users == {"kiwi.py"}


def test_the_public_names_are_the_visible_ones() -> None:
    assert koktok.__all__ == sorted(koktok.__all__) == dir(koktok)
    assert len(koktok.__all__) <= 10
    for name in koktok.__all__:
        assert getattr(koktok, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        koktok.nothing  # noqa: B018


@pytest.mark.parametrize("code", ["import koktok", "from koktok import cli"])
def test_importing_loads_nothing_heavy(code: str) -> None:
    script = f"{code}\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_readme_shows_the_tree_as_it_is() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (?:├── |└── )?(\S+?)(?:\.py|/)?\s", _tree(readme), re.M)
    assert shown == STAGES
    on_disk = {path.stem for path in (ROOT / "koktok").iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert on_disk == set(STAGES)
    for name in ("corpora", "tests", "eval", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        assert (ROOT / name).exists()
        assert name in readme


def _tree(readme: str) -> str:
    return re.search(r"<!-- tree -->\n```\n(.*?)```", readme, re.S)[1]


def test_the_readme_has_two_commands_for_all_the_set_up() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"<!-- (run|test) -->\n```\n(.*)\n```", readme)
    assert [name for name, _ in commands] == ["run", "test"]
    assert all("\n" not in command and command.startswith("pip install ") for _, command in commands)
    assert "koktok train corpus:demo --vocab-size 16000 --out my-tokenizer" in commands[0][1]


def test_nothing_names_the_workshop() -> None:
    """No user has our folders; no sentence of the shared material is ours to give."""
    for path in [
        *MODULES,
        *(ROOT / "eval").rglob("*.py"),
        *(ROOT / "eval").glob("*.md"),
        ROOT / "README.md",
        *(ROOT / "corpora").glob("*.toml"),
    ]:
        text = path.read_text(encoding="utf-8")
        assert "/work/" not in text, path
        assert "../shared" not in text or path.is_relative_to(ROOT / "eval"), path


def test_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert project["license"] == "Apache-2.0"
    everything = {line.split("[")[1].rstrip("]") for line in project["optional-dependencies"]["all"]}
    names = {name for item in everything for name in item.split(",")}
    assert names == set(project["optional-dependencies"]) - {
        "all",
        "test",
        "train",
    }  # PyTorch is gigabytes; only a script in eval/ wants it
