"""Every block of every page runs as it is written, in the order of its page, or says what it needs; `…` stands for any lines."""

from __future__ import annotations

import doctest
import gzip
import importlib.util
import json
import os
import random
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import polars as pl
import pytest
import typer
from conftest import ROOT, koktok

from koktok import load
from koktok.cli import app
from koktok.files import cache_dir
from koktok.text.unpack import zstd

DOCS = ROOT / "docs"
PAGES = [DOCS / name for name in ("problems.md", "problems.ko.md")]
COMMANDS = [DOCS / "reference" / name for name in ("commands.md", "commands.ko.md")]
EVERY = sorted(page for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")] if page.name != "CHANGELOG.md")
"""All pages; a Korean one has the blocks of the English one, which are run."""

ELSEWHERE = {
    "network": "a network",
    "account": "an account",
    "cluster": "a cluster",
    "gpu": "a GPU",
    "corpus": "the text of a public corpus",
}
"""Needs that no test has; any other need is a program or a package."""

PROGRAMS = ("apt-get", "cd", "echo", "hf", "koktok", "mkdir", "pip", "printf", "python", "spark-submit", "test")
"""What a block without a language begins with if it is typed; it is output or a drawing otherwise."""


class Block(NamedTuple):
    """A block of a page: its kind, its text, and what it needs."""

    kind: str
    text: str
    needs: tuple[str, ...]

    def lacks(self) -> list[str]:
        """The needs that are not met here."""
        return [
            ELSEWHERE.get(need, need)
            for need in self.needs
            if need in ELSEWHERE or not (shutil.which(need) or importlib.util.find_spec(need) or _fetched(need))
        ]


def _fetched(corpus: str) -> bool:
    """Whether a corpus is in koktok's cache, as `demo` is after README's first command."""
    return any((cache_dir() / "corpora").glob(f"{corpus}-*"))


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order."""
    found = []
    pattern = r"^(?:<!-- ([^\n]*) -->\n+)?( *)```(\w*)\n(.*?)^ *```$"
    for note, _, language, text in re.findall(pattern, page.read_text(encoding="utf-8"), re.M | re.S):
        typed = text.startswith(tuple(f"{program} " for program in PROGRAMS))
        kind = (
            "doctest"
            if text.startswith(">>> ")
            else language or ("session" if text.startswith("$ ") else "sh" if typed else "text")
        )
        needs = note.partition("needs: ")[2].split()
        if note in ("run", "test"):  # .ci/run does
            needs = ["network"]
        found.append(Block(kind, textwrap.dedent(text), tuple(needs)))
    return found


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def english(page: Path) -> Path:
    return page.with_name(page.name.replace(".ko.md", ".md"))


TYPED = {"sh", "python", "javascript", "doctest", "session"}
RUN = [page for page in EVERY if english(page) == page and {block.kind for block in blocks(page)} & TYPED]
NEEDY = [
    (page, n, block)
    for page in EVERY
    for n, block in enumerate(blocks(page), 1)
    if english(page) == page and block.needs
]


@pytest.mark.parametrize("page", EVERY, ids=name_of)
def test_every_block_is_of_a_kind_that_a_test_reads(page: Path) -> None:
    for kind, text, _ in blocks(page):
        assert kind in ("sh", "python", "doctest", "javascript", "session", "text", "toml"), text
        if kind == "toml":
            tomllib.loads(text)


@pytest.mark.parametrize("page", [page for page in EVERY if english(page) != page], ids=name_of)
def test_the_korean_page_has_the_blocks_of_the_english_one(page: Path) -> None:
    assert [(kind, text) for kind, text, _ in blocks(page)] == [(kind, text) for kind, text, _ in blocks(english(page))]
    korean, own = (one.read_text(encoding="utf-8").count("\n## ") for one in (page, english(page)))
    assert korean == own or page not in (PAGES[1], COMMANDS[1])


@pytest.mark.parametrize("page", [page for page in EVERY if english(page) != page], ids=name_of)
def test_a_korean_page_leads_to_korean_pages(page: Path) -> None:
    """Where there are any; to its own English page it may lead."""
    for link in re.findall(r"\]\((?!https?:)([^)#\s]+\.md)", page.read_text(encoding="utf-8")):
        other = (page.parent / link).resolve()
        assert other == english(page) or other != english(other) or not other.with_suffix(".ko.md").exists(), link


TABLES = SimpleNamespace(**runpy.run_path(str(DOCS / "tables.py")))


@pytest.mark.parametrize("page", [korean for _, korean in TABLES.pages()], ids=name_of)
def test_the_korean_page_has_the_tables_of_the_english_one(page: Path) -> None:
    """Figures to the letter, by `python docs/tables.py`; of sentences the rows, by the code that they begin with."""
    assert page.read_text(encoding="utf-8") == TABLES.current(english(page), page), "run `python docs/tables.py`"
    both = [[text[begin:end].splitlines() for begin, end in TABLES.tables(text)]
            for text in (one.read_text(encoding="utf-8") for one in (english(page), page))]  # fmt: skip
    for own, korean in zip(*both, strict=True):
        codes = [[re.findall(r"`[^`]*`", TABLES.cells(row)[0]) for row in rows[2:]] for rows in (own, korean)]
        assert codes[0] == codes[1]


def test_every_row_of_figures_has_its_words_in_korean() -> None:
    """A cell that stays as it is has no word that is translated in another."""
    words = {word for cell, korean in TABLES.WORDS.items() for word in _words(cell) - _words(korean)}
    for page, korean in TABLES.pages():
        text = korean.read_text(encoding="utf-8")
        for begin, end in TABLES.tables(text):
            if TABLES.is_of_figures(text[begin:end]):
                for cell in (cell for row in text[begin:end].splitlines() for cell in TABLES.cells(row)):
                    assert not _words(cell) & words, f"docs/tables.toml has no Korean for {cell!r} of {page.name}"


def _words(cell: str) -> set[str]:
    return set(re.findall(r"(?<![A-Za-z0-9_-])[a-z]{2,}(?![A-Za-z0-9_-])", re.sub("`[^`]*`", "", cell)))


@pytest.mark.parametrize(("page", "n", "block"), NEEDY, ids=[f"{name_of(page)}-{n}" for page, n, _ in NEEDY])
def test_a_block_that_needs_more(page: Path, n: int, block: Block) -> None:
    """Reports the blocks that no test runs here, as skips; the others run with their page."""
    if lacks := block.lacks():
        pytest.skip(f"not run: block {n} of {name_of(page)} needs {', '.join(lacks)}")


SAID_BY_THE_HELP = {
    "--backend", "--cache", "--compare", "--dry-run", "--force", "--holdout", "--log", "--model-max-length", "--padding-side", "--quiet",
    "--reserve-script", "--split", "--template", "--threads", "--truncation-side", "--user-dictionary",
}  # fmt: skip
"""Options of `train` of which no guide needs to say more than `--help`, which the reference repeats."""


def test_every_option_of_train_stands_in_a_guide() -> None:
    guides = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "guides").glob("*.md"))
    command = dict(verbs())["koktok train"].make_context("train", [], resilient_parsing=True).command
    options = {p.opts[0]: p.opts + p.secondary_opts for p in command.params if p.opts[0].startswith("--")}
    told = {name for name, forms in options.items() if any(re.search(rf"{form}(?![\w-])", guides) for form in forms)}
    assert {*options} - told <= SAID_BY_THE_HELP <= {*options}
    rows = re.findall(r"^\| `(--[\w-]+)", (DOCS / "guides" / "train-options.md").read_text(encoding="utf-8"), re.M)
    assert not {*rows} & SAID_BY_THE_HELP, "the guide says no more than the help"


def test_options_within_sentences_exist() -> None:
    """Commands between backticks are those of the command line, and so are their options."""
    known = {name: {option for p in verb.make_context(name, [], resilient_parsing=True).command.params for option in p.opts}
             | {"--help"} | {option for p in verb.make_context(name, [], resilient_parsing=True).command.params for option in p.secondary_opts}
             for name, verb in verbs() if not hasattr(verb, "commands")}  # fmt: skip
    for page in EVERY:
        for command in re.findall(r"`(koktok [a-z][^`\n]*)`", page.read_text(encoding="utf-8")):
            words = command.split()
            name = next((" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in known), None)
            if name is None:
                assert any(row.startswith(" ".join(words[:2]) + " ") for row in known), (page.name, command)
                continue
            options = set(re.findall(r"(?<!\S)--[a-z][\w-]*", command))
            assert options <= known[name], (page.name, command)


def small_files(mini: list[str]) -> dict[str, str]:
    """The texts of the pages whose output is shown."""
    files = {"text": "".join(f"{line}\n" for line in mini), "odd": "똠방각하 👍\n", "wide": "ＡＢＣ 한국\n"}
    files |= {"one": "학교에서는 책을 읽습니다.\n", "ids": "800 921 266 289 617 256 558 463\n"}
    for form, name in (("NFC", "composed"), ("NFD", "decomposed")):
        files[name] = unicodedata.normalize(form, "한국어 파일 이름\n")
    return {f"{name}.txt": text for name, text in files.items()} | {"records.jsonl": '{"title": "학교에서는"}\n'}


@pytest.fixture(scope="session")
def materials(tmp_path_factory: pytest.TempPathFactory, mini: list[str]) -> Path:
    """The files that the pages speak of: text of many words, models, a vocabulary of another."""
    place = tmp_path_factory.mktemp("materials")
    lines = "".join(f"{line}\n" for line in mini)
    records = "".join(json.dumps({"text": line}, ensure_ascii=False) + "\n" for line in mini)
    chance = random.Random(0)  # for a vocabulary of 64,000
    syllables = [chr(code) for code in range(ord("가"), ord("힣"), 4)]
    roots = ["".join(chance.choices(syllables, k=chance.choice((2, 3)))) for _ in range(30_000)]
    words = [
        root + end for root in roots for end in chance.sample(["은", "이", "에서", "으로", "했다", "습니다"], 2)
    ] * 2
    chance.shuffle(words)
    many = "".join(" ".join(words[i : i + 10]) + "\n" for i in range(0, len(words), 10))
    for name, text in small_files(mini).items():
        (place / name).write_text(text, encoding="utf-8")
    for name in ("news.txt", "crawl/0.txt"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(lines, encoding="utf-8")
    (place / "news.txt.gz").write_bytes(gzip.compress((lines + many).encode()))
    (place / "everything.txt.gz").write_bytes(gzip.compress(lines[:7_000].encode()))  # most pieces are unused
    (place / "crawl" / "0.jsonl").write_text(records, encoding="utf-8")
    (place / "crawl" / "0.jsonl.gz").write_bytes(gzip.compress(records.encode()))
    (place / "crawl" / "0.jsonl.zst").write_bytes(zstd().compress(records.encode()))
    pl.DataFrame({"text": mini}).write_parquet(place / "wiki.parquet")
    (place / "words.txt").write_text("바보\n", encoding="utf-8")
    gold = "1\t학교에서는\t학교+에서+는\tNOUN\tncn+jca+jxt\t_\t0\troot\t_\t_\n2\t읽습니다\t읽+습니다\tVERB\tpvg+ef\t_\t1\tdep\t_\t_\n"
    (place / "gold.conllu").write_text(f"# text = 학교에서는 읽습니다\n{gold}\n" * 60, encoding="utf-8")
    for name in ("path/to/Qwen3-8B", "path/to/model"):
        assert not koktok("vocabulary", "get", "ko-32k-bytes", "-o", place / name).returncode
        rows = load(place / name).vocab.size
        (place / name / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": rows}))
        names = {name: {"dtype": "F32", "shape": [rows, 2], "data_offsets": [8 * rows * n, 8 * rows * (n + 1)]}
                 for n, name in enumerate(("model.embed_tokens.weight", "lm_head.weight"))}  # fmt: skip
        header = json.dumps(names).encode()
        data = b"\0\0\x80\x3f" * (4 * rows)
        (place / name / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    assert not koktok("export", "koktok:ko-16k", "--to", "hf", "-o", place / "other").returncode
    return place


READING = [
    ROOT / "README.md",
    *(DOCS / name for name in re.findall(r"\w: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)),
]
"""The pages in the order of the documentation; those that stand nowhere in it come last."""


@pytest.mark.slow
def test_the_pages_run_one_after_another(
    materials: Path, trained: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one folder, as somebody reads them, with the tokenizer of README's first command, which needs a network."""
    place = shutil.copytree(materials, tmp_path / "place")
    shutil.copytree(trained(), place / "my-tokenizer")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    how = {
        "sh": ["bash", "-euo", "pipefail", "-c"],
        "python": [sys.executable, "-c"],
        "javascript": ["node", "--input-type=module", "-e"],
    }
    printed: dict[str, str] = {}
    for page in sorted(RUN, key=lambda page: READING.index(page) if page in READING else len(READING)):
        there = [block for block in blocks(page) if block.kind in how and not block.lacks()]
        if page == READING[0]:  # whose commands for four purposes stand in its sentences
            purposes = re.findall(r"`(koktok .*? (?:-o|--out) [\w-]+)`", page.read_text(encoding="utf-8"))
            assert len(purposes) == 6
            there += [Block("sh", command.replace("TEXT", "news.txt.gz"), ()) for command in purposes]
        for kind, text, _ in there:
            done = subprocess.run([*how[kind], text], cwd=place, env=environment, capture_output=True, text=True)
            said = f"{name_of(page)}\n{text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            assert done.returncode == 0, said
        monkeypatch.chdir(place)
        test_python_prints_what_the_page_shows(page)
        commands_print_what_the_page_shows(page, place, printed)


@pytest.mark.parametrize(
    "page", [page for page in EVERY if any(b.kind == "doctest" for b in blocks(page))], ids=name_of
)
def test_python_prints_what_the_page_shows(page: Path) -> None:
    shown = "\n".join(block.text for block in blocks(page) if block.kind == "doctest")
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(shown, {}, page.name, str(page), 0))
    assert runner.summarize(verbose=False).failed == 0


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


def commands_print_what_the_page_shows(page: Path, place: Path, printed: dict[str, str]) -> None:
    """A command that an earlier page has is not run again."""
    env = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    for command, shown in commands(page):
        if command not in printed:
            program, *words = shlex.split(command)
            if program == "koktok":  # in this process, which has everything loaded
                done = koktok(*words, cwd=place)
            else:
                done = subprocess.run([program, *words], cwd=place, env=env, capture_output=True, text=True)
            error = shown.startswith("error: ")
            expected = (1, 2) if error else (words[0] == "diff",)  # 1 where two differ, as diff(1)
            assert done.returncode in expected, (command, done.stderr)
            printed[command] = done.stderr.replace(str(place.resolve()), "/home/me") if error else done.stdout
        pattern = "".join(".*" if line == "…" else re.escape(line) + "\n" for line in shown.splitlines())
        assert re.fullmatch(pattern, printed[command], re.S), (command, printed[command])


def test_the_commands_print_what_the_pages_show(mini: list[str], tmp_path: Path) -> None:
    """The two pages by themselves, in a folder that they share."""
    for name, text in small_files(mini).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    printed: dict[str, str] = {}
    for page in (COMMANDS[0], PAGES[0]):
        commands_print_what_the_page_shows(page, tmp_path, printed)


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
