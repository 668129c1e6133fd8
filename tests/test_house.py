"""The house: who may import whom, what the package shows, what the README says of the tree, what the wheel holds."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from conftest import ROOT

import koktok

ROOMS = [
    "errors", "hangul", "progress", "files", "text", "corpora", "count", "segment", "model", "recipe", "training", "bulk",
    "protocol", "runtimes", "tokenizer", "metrics", "pipeline", "report", "token_files", "extension", "instances", "cluster",
    "verification", "cli",
]  # fmt: skip
"""The rooms, as docs/architecture.md shows them: each imports only rooms that stand before it."""

RING = {"token_files", "extension", "instances", "cluster"}
"""What is built around a tokenizer."""

HEAVY = [
    "kiwipiepy",
    "sentencepiece",
    "tokenizers",
    "transformers",
    "numba",
    "polars",
    "pyarrow",
    "datasets",
    "mecab",
    "pydantic",
]

MODULE = r"(koktok(?:\.\w+)+)(?::\w*|\.)?"
"""A string that names a module, or something in it: "koktok.a.b", "koktok.a.b:c", or the beginning of f"koktok.a.{name}"."""

FILES = {
    ("koktok." + ".".join(path.relative_to(ROOT / "koktok").with_suffix("").parts)).removesuffix(".__init__"): path
    for path in (ROOT / "koktok").rglob("*.py")
    if path.name != "__main__.py"
}
MODULES = sorted(path for path in FILES.values() if path.name != "__init__.py")
PYTHON = {path: path.read_text(encoding="utf-8") for path in FILES.values()}
TREES = {path: ast.parse(text) for path, text in PYTHON.items()}
NODES = {path: list(ast.walk(tree)) for path, tree in TREES.items()}


def imports(path: Path) -> set[str]:
    """Every module of koktok that a file imports, wherever in it, by a statement or a string that names it."""
    found = set()
    for node in NODES[path]:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "koktok":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in FILES}
        elif isinstance(node, ast.Constant) and (named := re.fullmatch(MODULE, str(node.value))):
            found |= {named[1]} & FILES.keys()
    return found


def room_of(module: str) -> str:
    return module.split(".")[1]


GRAPH = {name: imports(path) - {name, "koktok"} for name, path in FILES.items() if name != "koktok"}


def circles() -> list[set[str]]:
    """Groups of modules that import each other."""
    reach: dict[str, set[str]] = {}
    for name in GRAPH:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            new = GRAPH[waiting.pop()] - seen
            seen |= new
            waiting += new
        reach[name] = seen
    return [set(group) for group in {frozenset(o for o in reach[n] if n in reach[o]) for n in GRAPH} if len(group) > 1]


def test_no_circle_of_imports() -> None:
    """Imports for types, inside functions and by a string count."""
    assert not circles()


def test_rooms_import_only_lower_rooms() -> None:
    """So no circle of rooms either."""
    ranks = {room: rank for rank, room in enumerate(ROOMS)}
    assert not [
        f"{name} imports {other}"
        for name, others in GRAPH.items()
        for other in sorted(others)
        if ranks[room_of(other)] > ranks[room_of(name)]
    ]


def test_nothing_is_built_on_the_ring() -> None:
    """It is imported by the command line and the public names; `verify` opens what extension writes."""
    importers = {(room_of(name), room_of(other)) for name, others in GRAPH.items() for other in others}
    assert {(room, other) for room, other in importers if other in RING and room not in {*RING, "cli"}} == {
        ("verification", "extension")
    }


def test_no_drawer_for_odds_and_ends() -> None:
    assert not {path.stem for path in MODULES} & {"utils", "util", "common", "helpers", "misc"}


def test_only_rooms_list_their_names() -> None:
    """The other modules are private to koktok, whose rooms import from them; what a user finds in a room stands in its `__init__`, or in
    the file that it is."""
    inside = [path for path in MODULES if path.parent.name != "koktok"]
    assert not [path for path in inside if "__all__" in {n.id for n in NODES[path] if isinstance(n, ast.Name)}]


def test_only_compiled_functions_have_no_types() -> None:
    """Numba finds theirs, so mypy does not ask for them in the rooms that compile."""
    untyped = [
        f"{path.name}: {node.name}"
        for path, nodes in NODES.items()
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.returns is None
        if not any(ast.unparse(decorator).startswith("njit") for decorator in node.decorator_list)
    ]
    assert not untyped


def test_a_kind_says_of_what() -> None:
    """`BoundaryKind`, `InstanceKind` ...: there is no bare `Kind`, and `KINDS` are those of vocabularies."""
    named = {path.name for path in MODULES if re.search(r"^(class )?(Kind|_?KINDS)\b *[=:(]", PYTHON[path], re.M)}
    assert named == {"vocab.py"}


def test_a_class_is_one_thing() -> None:
    """Two classes have two names, so that a reader who finds one has found it."""
    found: dict[str, list[str]] = {}
    for path in FILES.values():
        for node in TREES[path].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert not {name: files for name, files in found.items() if len(files) > 1}


def test_no_constant_stands_twice() -> None:
    """What files are spelled with: a text, or some of them, under one name in one place."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in MODULES:
        for node in TREES[path].body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts):
                found.setdefault((node.targets[0].id.lstrip("_"), ast.unparse(node.value)), []).append(path.name)
    assert not {name: files for name, files in found.items() if len(files) > 1}


def test_a_sign_has_one_name() -> None:
    """A character that no keyboard has is one constant, under one name; `▁` is two things: what SentencePiece writes, and what we show."""
    named: dict[str, set[str]] = {}
    written = set()
    for path in FILES.values():
        for node in TREES[path].body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(getattr(node, "value", None), "value", None)
            if isinstance(target, ast.Name) and isinstance(value, str) and len(value) == 1 and not value.isascii():
                named.setdefault(value, set()).add(target.id)
        written |= {path.name for node in NODES[path] if isinstance(node, ast.Constant) and node.value == "▁"}
    assert {sign: names for sign, names in named.items() if len(names) > 1} == {"▁": {"SPACE", "SPACE_MARK"}}
    assert written == {"progress.py", "vocab.py"}


def test_every_dependency_has_a_use() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = "\n".join(PYTHON.values())
    for requirement in project["dependencies"]:
        name = re.match(r"[\w-]+", requirement)[0].replace("-", "_")
        assert re.search(rf"^\s*(import|from) {re.escape(name)}\b", code, re.M), name


def test_the_tests_lie_as_the_rooms_do() -> None:
    """A room with files of its own has a folder of tests; what is for one module or for the whole lies above."""
    rooms = {path.name for path in (ROOT / "koktok").iterdir() if (path / "__init__.py").exists()}
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path.parent.name == "tests":
            room = path.stem.split("_")[1]
            assert room not in rooms, f"git mv tests/{path.name} tests/{room}/"
        else:
            assert path.parent.name in rooms | {"eval"}, path


def test_kiwi_lives_in_one_file() -> None:
    users = {path.name for path in MODULES if re.search(r"^\s*(import|from) kiwipiepy", PYTHON[path], re.M)}
    assert users == {"kiwi.py", "analysers.py"}


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


def test_the_map_shows_the_tree_as_it_is() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (?:├── |└── )?(\S+?)(?:\.py|/)?\s", _tree(page), re.M)
    assert shown == ROOMS
    on_disk = {path.stem for path in (ROOT / "koktok").iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert on_disk == set(ROOMS)
    for name in ("corpora", "tests", "eval", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        assert (ROOT / name).exists()
        assert name in page


def test_the_map_names_what_there_is() -> None:
    """Files of docs/architecture.md and of the rooms' README exist, and hold the names that the tables say."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:koktok|tests)/[\w./]*)`", page):
        assert (ROOT / path).exists(), path
    for row in re.findall(r"^\|.*`koktok/.*", page, re.M):
        paths, names = (
            re.findall(r"`(koktok/[\w./]+)`", row),
            re.findall(r"`(\w+)`", row.rpartition("|")[0].rpartition("|")[0]),
        )
        text = "".join(
            file.read_text(encoding="utf-8")
            for path in paths
            for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).glob("*.py"))
        )
        assert not [name for name in names if not re.search(rf"\b(class|def) {name}\b|^{name}\b", text, re.M)], row
    for guide in (ROOT / "koktok").glob("*/README.md"):
        text = guide.read_text(encoding="utf-8")
        for name in re.findall(r"^\| (`.*?) \|", text, re.M):
            assert all((guide.parent / file).exists() for file in re.findall(r"`(\w+\.py)`", name)), name


def test_the_reading_list_is_short() -> None:
    """Of "`A`, `b`; of `C` the fields and `d`" the whole of A and b, and of C its head and d."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    lines = 0
    for paths, read in re.findall(r"^\| \d \| (.*?) \| (.*?) \|", page, re.M):
        nodes = [node for path in re.findall(r"`(.*?)`", paths) for node in NODES[ROOT / path] if hasattr(node, "body")]
        for part in read.split(";"):
            names = re.findall(r"`(\w+)`", part)
            inside = [
                node for node in nodes if part.strip().startswith("of ") and getattr(node, "name", "") == names[0]
            ]
            if inside:
                methods = [node for node in inside[0].body if isinstance(node, ast.FunctionDef)]
                lines += methods[0].lineno - inside[0].lineno if "fields" in part else 0
            for node in methods if inside else nodes:
                if getattr(node, "name", "") in names:
                    lines += node.end_lineno - node.lineno + 1
    assert 500 < lines <= 1000


@pytest.mark.parametrize(
    "page",
    ["CONTRIBUTING.md", "docs/architecture.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("add-*.md"))],
)
def test_pages_for_contributors_name_what_there_is(page: str) -> None:
    """Every path exists, and the names of a step occur in the files that the step names, or else anywhere."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
    everywhere = "\n".join(PYTHON.values())
    for step in re.split(r"\n(?= *(?:\d\.|[-*]) |\n)", text):
        files = []
        for path in re.findall(r"`(?:python )?([\w./-]*(?:/[\w.-]*|\.(?:py|toml|md)))(?: \d+)?`", step):
            found = [ROOT / path] if "/" in path else [*(ROOT / "koktok").rglob(path)]
            assert found, path
            assert all(one.exists() for one in found), path
            files += [part for one in found for part in (one.glob("*.py") if one.is_dir() else [one])]
        code = "\n".join(one.read_text(encoding="utf-8") for one in files) or everywhere
        for name in re.findall(r"`(?:\w+\.)?([A-Za-z_]\w+)`", re.sub(r"`[\w./]+\.(py|toml|md)`", "", step)):
            assert re.search(rf"\b{name}\b", code), f"{name} in {step}"


def _tree(page: str) -> str:
    return re.search(r"<!-- tree -->\n```\n(.*?)```", page, re.S)[1]


def test_the_readme_has_two_commands_for_all_the_set_up() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"<!-- (run|test) -->\n```\n(.*)\n```", readme)
    assert [name for name, _ in commands] == ["run", "test"]
    assert all("\n" not in command and command.startswith("pip install ") for _, command in commands)
    assert "koktok train corpus:demo --vocab-size 16000 --out my-tokenizer" in commands[0][1]


def test_the_korean_readme_says_the_same_commands_and_figures() -> None:
    english, korean = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md"))
    for pattern in (
        r"```\w*\n(.*?)```",
        r"`((?:koktok|pip|echo|python) [^`]+)`",
        r"\d{1,2},\d{3}",
        r"(?<=\| )\d?\.\d{3}",
    ):
        strange = {*re.findall(pattern, korean, re.DOTALL)} - {*re.findall(pattern, english, re.DOTALL)}
        assert not strange, strange


def test_blocks_of_commands_are_blocks() -> None:
    """Two backticks are a word of code to Markdown, and the lines of a block would run into one."""
    for path in [
        *ROOT.glob("*.md"),
        *(md for name in ("docs", "eval", "koktok") for md in (ROOT / name).rglob("*.md")),
    ]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^`{1,2}[a-z]*$", text, re.MULTILINE), path
        assert len(re.findall(r"^```", text, re.MULTILINE)) % 2 == 0, path


def test_nothing_names_the_workshop() -> None:
    """No user has our folders; no sentence of the shared material is ours to give."""
    for path in [
        *MODULES,
        *(ROOT / "eval").rglob("*.py"),
        *(ROOT / "eval").rglob("*.md"),
        ROOT / "README.md",
        *(ROOT / "corpora").glob("*.toml"),
    ]:
        text = path.read_text(encoding="utf-8")
        assert "/work/" not in text, path
        assert not re.search(r"\b(DESIGN|SCIENCE|AUDIT|HOUSE|MEND|waist)\b", text), path
        assert "../shared" not in text or path.is_relative_to(ROOT / "eval"), path


def test_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert project["license"] == "Apache-2.0"
    everything = {line.split("[")[1].rstrip("]") for line in project["optional-dependencies"]["all"]}
    names = {name for item in everything for name in item.split(",")}
    assert names == set(project["optional-dependencies"]) - {
        "all",
        "datatrove",
        "docs",
        "dpe",
        "konlpy",
        "soynlp",
        "spark",
        "test",
        "train",
    }  # PyTorch is gigabytes, for a learner and scripts in eval/; Spark and konlpy want Java; soynlp is for studies


def test_tables_are_the_literals() -> None:
    """A name that a user may type is a member of its table, and the other way round."""
    from koktok.cli.export import OPTIONS, TO, Target
    from koktok.recipe import SegmentRecipe, TrainRecipe
    from koktok.runtimes import RUNTIMES
    from koktok.runtimes.huggingface.runtime import LOOKS
    from koktok.segment import ANALYSERS, DEFAULT
    from koktok.training.unigram_point import DEFAULT as PRESET
    from koktok.training.unigram_point import PRESETS

    assert [*get_args(Target)] == [*RUNTIMES]
    assert {*re.findall(r"\w+", TO)} >= {*RUNTIMES}
    assert set(" ".join(OPTIONS.values()).split()) == set(LOOKS)
    analyser, _ = get_args(SegmentRecipe.model_fields["segmenter"].annotation)
    assert [*get_args(analyser)] == [*ANALYSERS]
    named = " \\| ".join(ANALYSERS)
    for page in ("train-options.md", "train-options.ko.md"):
        assert f"`--segmenter {named} " in (ROOT / "docs" / "guides" / page).read_text(encoding="utf-8"), page
    assert SegmentRecipe().segmenter == DEFAULT
    assert [*get_args(TrainRecipe.model_fields["preset"].annotation)] == [*PRESETS]
    assert TrainRecipe().preset == PRESET


ELSEWHERE = {
    "cli/export.py": "the Literal of `--to`, which start-up cannot ask of the table",
    "recipe.py": "the Literals of the recipe, which a test compares with the tables; `spm`, the trainer",
    "training/dispatch.py": "`spm`, the trainer",
    "training/job.py": "`spm`, the trainer",
    "pipeline/train.py": "`spm`, the trainer",
    "tokenizer/open.py": "`hf` and `tiktoken`, kinds of reference with options of their own",
    "verification/extension.py": "`tiktoken`, a kind of extension, which its folder says",
    "metrics/gold/readers.py": "`kiwi`, the format of its evaluation sets",
    "metrics/gold/silver.py": "`kiwi`, the name of its boundaries in tables",
    "instances/reading.py": "`kiwi`, the splitter of sentences",
}
"""Files that name a member of a family though they are not its home, each with the reason."""

ASKED_BY_TYPE = {
    "extension/base_tokenizer.py": 2,
    "metrics/entropy.py": 1,
    "report/playground/payload.py": 1,
}
"""Files outside the runtimes that ask for a library's class, and how often; the numbers may only fall."""


def test_members_are_named_at_home() -> None:
    """A runtime, an analyser or a preset is named in its home and its table; whoever wants to know asks the table."""
    from koktok.runtimes import RUNTIMES
    from koktok.segment import ANALYSERS
    from koktok.training.unigram_point import PRESETS

    homes = {
        ("runtimes/",): set(RUNTIMES),
        ("segment/", "runtimes/references/"): set(ANALYSERS),
        ("training/unigram_point.py",): set(PRESETS),
    }
    named, asked = set(), {}
    for path in FILES.values():
        file = path.relative_to(ROOT / "koktok").as_posix()
        documented = {
            id(node.body[0].value)
            for node in NODES[path]
            if isinstance(getattr(node, "body", None), list) and node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in NODES[path]:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
                named |= {file for home, names in homes.items() if node.value in names and not file.startswith(home)}
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "isinstance"
                and not file.startswith("runtimes/")
            ):
                classes = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
                if classes & {"HuggingFace", "SentencePiece", "Tiktoken", "Transformers"}:
                    asked[file] = asked.get(file, 0) + 1
    assert named == set(ELSEWHERE)
    assert asked == ASKED_BY_TYPE


NAMES_THAT_CROSS = 21.8
"""Distinct names that a file takes from another, for 1,000 lines; the number may only fall. Models of the field have 4 to 10."""

LOOSE = 18
"""Signatures with two or more of what a `Definition` holds, most of them of kernels and of counting, where there is none; may only fall."""


def test_names_that_cross_from_file_to_file_do_not_grow() -> None:
    """A name counts once, where it is defined, whoever imports it and through whatever room."""
    given = {
        (name, alias.name): (node.module, alias.name)
        for name, path in FILES.items()
        for node in TREES[path].body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    def home(module: str, name: str) -> tuple[str, str]:
        return home(*given[module, name]) if (module, name) in given else (module, name)

    crossing = {
        home(node.module, alias.name)
        for path in FILES.values()
        for node in NODES[path]
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "koktok"
        for alias in node.names
        if f"{node.module}.{alias.name}" not in FILES
    }
    lines = sum(text.count("\n") for text in PYTHON.values())
    assert NAMES_THAT_CROSS - 0.5 < 1000 * len(crossing) / lines <= NAMES_THAT_CROSS, (
        "lower the number when it has fallen"
    )


def test_what_makes_a_tokenizer_travels_as_one_value() -> None:
    loose = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in FILES.values()
        for node in NODES[path]
        if isinstance(node, ast.FunctionDef)
        if len({arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
               & {"vocab", "normalizer", "pattern", "prefix", "style", "jamo", "letters"}) > 1
    ]  # fmt: skip
    assert len(loose) == LOOSE, loose
