"""The table "runs in": kinds of vocabularies against runtimes: same ids, other ids or refused, with versions.

    python -m eval.runtimes --environments FOLDER [--text corpus:demo] [--count 10000] [--out docs/runtimes.md]

Small tokenizers of every kind are trained on corpora/mini, and every runtime of PyPI and npm that reads tokenizers gives the ids
of the lines and of hostile ones, in a process of its own, for some end in a crash. Packages are installed into environments in
--environments once. Answers are kept in results.json there, so that a stopped run resumes; --kinds asks for some kinds again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable
from copy import copy
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from koktok.corpora.paths import as_source
from koktok.errors import ArtifactError, KoktokError
from koktok.pipeline.train import train
from koktok.progress import counted
from koktok.protocol.agree import agreement
from koktok.recipe import Recipe
from koktok.runtimes.gguf import read, refuses, table_of, write, write_into
from koktok.runtimes.huggingface.tokenizer_json import in_version_2
from koktok.runtimes.tiktoken import ranks as tiktoken
from koktok.text import sources
from koktok.text.prefix import with_prefix
from koktok.tokenizer import TrainedTokenizer
from koktok.verification.probes import tricky_lines

TESTS = Path(__file__).parents[1] / "tests"
"""The tests run llama.cpp and node, too."""

BYTES = {"train": {"model": "bpe-bytes"}}
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "unigram --preset aligned": {"train": {"preset": "aligned"}},
    "unigram --jamo": {"jamo": True},
    "bpe": {"train": {"model": "bpe"}},
    **{
        f"bpe-bytes --pattern {name}": BYTES | {"pretokenize": {"pattern": name}}
        for name in ("llama3", "gpt2", "qwen2", "o200k", "cl100k", "superbpe", "exaone-moe", "koktok")
    },
    "bpe-bytes --prefix-space": BYTES | {"pretokenize": {"prefix_space": True}},
    "wordpiece": {"train": {"model": "wordpiece", "vocab_size": 4000}},
}

ENVIRONMENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "newest": (
        ("tokenizers", "transformers", "tiktoken", "gigatoken", "snaptokens", "fastokens", "tokie", "kitoken",
         "llguidance", "outlines-core"),
        (),
    ),
    "lowest": (("tokenizers",), ("tokenizers==0.21.0",)),
    "pre-release": (("tokenizers", "tokenizers --to hf2"), ("--pre", "tokenizers>=1.0.0rc3")),
    "transformers-4": (("transformers",), ("transformers==4.57.*",)),
    "openvino": (("openvino-tokenizers",), ("openvino-tokenizers[transformers]",)),
    "torch": (("xgrammar", "lm-format-enforcer"), ("xgrammar", "lm-format-enforcer", "transformers==4.57.*")),
}  # fmt: skip
"""By environment: its runtimes, and what pip installs if that is more, or another version."""

LLAMA = ("cyllama", "gguf")
"""A wheel that carries llama.cpp."""

NODE = {
    "@huggingface/tokenizers": "tokenizers",
    "@huggingface/transformers": "transformers",
    "js-tiktoken": "js-tiktoken",
}
"""Packages of npm, and the script of tests/javascript.py that runs each."""

RUNTIMES: dict[str, str] = {
    "tokenizers": """
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(file)
        try:
            tokenizer.encode_special_tokens = True
            rows = [row.ids for row in tokenizer.encode_batch(lines, add_special_tokens=False)]
        except AttributeError:  # tokenizers 1.x
            rows = [row.ids for row in tokenizer.encode_batch(lines, add_special_tokens=False, encode_special_tokens=True)]""",
    "tokenizers --to hf2": """
        import pathlib, tempfile
        from tokenizers import Tokenizer
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "tokenizer.json"
            path.write_text(case["version_2"], encoding="utf-8")
            tokenizer = Tokenizer.from_file(str(path))
        rows = [row.ids for row in tokenizer.encode_batch(lines, add_special_tokens=False, encode_special_tokens=True)]""",
    "transformers": """
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained(folder)
        rows = tokenizer(lines, add_special_tokens=False, split_special_tokens=True)["input_ids"]""",
    "tiktoken": """
        import base64, tiktoken
        spec = ranks()
        table = {base64.b64decode(piece): int(i) for piece, i in map(str.split, spec["lines"])}
        tokenizer = tiktoken.Encoding("koktok", pat_str=spec["pat_str"], mergeable_ranks=table, special_tokens={})
        rows = tokenizer.encode_ordinary_batch(lines)""",
    "gigatoken": """
        from gigatoken import Tokenizer
        rows = Tokenizer(file).encode_batch(lines)""",
    "snaptokens": """
        from snaptokens import Tokenizer
        rows = [getattr(row, "ids", row) for row in Tokenizer.from_file(file).encode_batch(lines, add_special_tokens=False)]""",
    "fastokens": """
        from fastokens import Tokenizer
        rows = [getattr(row, "ids", row) for row in Tokenizer.from_file(file).encode_batch(lines, add_special_tokens=False)]""",
    "tokie": """
        from tokie import Tokenizer
        rows = [row.ids for row in Tokenizer.from_json(file).encode_batch(lines, add_special_tokens=False)]""",
    "kitoken": """
        from kitoken import Kitoken
        tokenizer = Kitoken.from_file(file)
        rows = [tokenizer.encode(line, False) for line in lines]""",
    "llguidance": """
        from llguidance import LLTokenizer
        tokenizer = LLTokenizer(file)
        rows = [tokenizer.tokenize_str(line) for line in lines]""",
    "xgrammar": """
        from transformers import AutoTokenizer
        from xgrammar import TokenizerInfo
        tokenizer = AutoTokenizer.from_pretrained(folder)
        spelled = TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer)).decoded_vocab
        spelled = [piece.encode() if isinstance(piece, str) else piece for piece in spelled]
        rows = [row if b"".join(spelled[i] for i in row) == line.encode() else [] for line, row in zip(spaced, wanted)]""",
    "outlines-core": """
        import json, os, pathlib, shutil, tempfile
        home = pathlib.Path(tempfile.mkdtemp())
        place = home / ".cache" / "huggingface" / "hub" / "models--koktok--koktok"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text("0")
        shutil.copytree(folder, place / "snapshots" / "0")
        last = max(token["id"] for token in json.load(open(file))["added_tokens"])
        (place / "snapshots" / "0" / "generation_config.json").write_text(json.dumps({"eos_token_id": last}))
        os.environ |= {"HOME": str(home), "HF_HOME": str(home / ".cache" / "huggingface")}
        from outlines_core import Vocabulary
        tokenizer = Vocabulary.from_pretrained("koktok/koktok")
        known = lambda row: all(i in (tokenizer.get(spelled(i)) or ()) for i in row)
        text = lambda row: b"".join(map(spelled, row))
        rows = [row if known(row) and text(row) == line.encode() else [] for line, row in zip(spaced, wanted)]""",
    "lm-format-enforcer": """
        from transformers import AutoTokenizer
        from lmformatenforcer.integrations.transformers import build_token_enforcer_tokenizer_data
        tokenizer = AutoTokenizer.from_pretrained(folder)
        known = {i: text for i, text, _ in build_token_enforcer_tokenizer_data(tokenizer, len(tokenizer)).regular_tokens}
        rows = [row if "".join(known.get(i, "") for i in row) == line else [] for line, row in zip(spaced, wanted)]""",
    "openvino-tokenizers": """
        import openvino
        from openvino_tokenizers import convert_tokenizer
        from transformers import AutoTokenizer
        tokenizer = openvino.compile_model(convert_tokenizer(AutoTokenizer.from_pretrained(folder), add_special_tokens=False), "CPU")
        rows = []
        for line in lines:
            out = tokenizer([line])
            rows.append(out["input_ids"][0][: int(out["attention_mask"][0].sum())].tolist())""",
}
"""Code by library on PyPI, from `folder` or the tokenizer.json in it (`file`) and `lines` to `rows` of ids.

Three libraries constrain what a model writes and never encode: there a row is the `wanted` one if its tokens spell the line to them,
behind koktok's space before the first word (`spaced`; `spelled(id)` is the right spelling).
tiktoken has no file of a pattern: `ranks()` is what `koktok export` writes.
"""

CHILD = """
import json, sys
from importlib.metadata import version
name, folder = sys.argv[1:3]
file = f"{folder}/tokenizer.json"
case = json.load(open(sys.argv[3], encoding="utf-8"))
lines, spaced, wanted = case["lines"], case["spaced"], case["wanted"]
spelled = lambda i: bytes.fromhex(case["spelled"][i])
def ranks():
    if isinstance(case["ranks"], str):
        raise ValueError(case["ranks"])
    return case["ranks"]
answer = {"version": version(name.split()[0])}
try:
    exec(sys.stdin.read())
    answer["rows"] = [list(map(int, row)) for row in rows]
except BaseException as error:
    answer["error"] = f"{type(error).__name__}: {error}"
print(json.dumps(answer))
"""

TIMEOUT = 500
"""Seconds that a runtime may take to load a folder and encode some thousand lines."""

WHY = {
    "tokenizers": "1.0.0rc3 supports `Metaspace` only outside of a sequence: use version 2.0 of the file, which `koktok export --to hf2` writes",
    "tokenizers --to hf2": "a text that begins with a space loses it",
    "gigatoken": "BPE only, with the patterns and normalizers that it knows",
    "snaptokens": "BPE only, with the patterns that it knows by name",
    "fastokens": "byte-level BPE only",
    "tiktoken": "byte-level BPE only",
    "js-tiktoken": "byte-level BPE only",
    "tokie": "uses patterns of its own in place of those in the file, and adds no space before the first word",
    "kitoken": "no Unigram whose bytes are not the first ids, and no `CharDelimiterSplit`",
    "llama.cpp": "supports some patterns only, has no byte fallback for Unigram, and reads a ▁ in the text as a space",
    "@huggingface/tokenizers": "no byte fallback for Unigram, jamo are composed again, and no `CharDelimiterSplit`",
    "@huggingface/transformers": "uses @huggingface/tokenizers",
    "openvino-tokenizers": "no space before the first word, no byte fallback for Unigram, it does not compose jamo",
    "xgrammar": "expects tokens that spell the text letter by letter, which those of WordPiece and jamo do not",
    "outlines-core": "supports the decoder of byte-level pieces only by itself, outside of a sequence; it does not compose jamo",
    "lm-format-enforcer": "reads tokens as strings, so a part of a character is U+FFFD, and a mark (##) is text",
    "llguidance": "no WordPiece, and it treats a text as a continuation, without the space before the first word",
}
"""What a runtime lacks where it refuses or differs."""

MOST = 120
"""Characters of an error that the page shows."""


class RefusedError(Exception):
    """The error of a runtime that does not load or run a folder, and its version."""

    def __init__(self, text: str, version: str = "") -> None:
        super().__init__(text)
        self.version = version


@dataclass(frozen=True)
class Result:
    """A cell of the table."""

    runtime: str
    version: str
    outcome: Literal["same ids", "behind a space", "differs", "refused"]
    """Behind a space: the same ids if the text is given with the space before its first word, and others without."""
    checked: int = 0
    differing: int = 0
    example: str = ""
    """The error, or the first line with other ids."""


class Case:
    """A folder and the ids of some normalized lines."""

    def __init__(self, folder: Path, lines: Iterable[str]) -> None:
        self.folder, self.tokenizer = folder, TrainedTokenizer.load(folder)
        self.texts = [line for line in dict.fromkeys(map(self.tokenizer.normalize, lines)) if line]
        self.ids = [self.tokenizer.encode(text).ids for text in self.texts]

    def behind_a_space(self) -> Case:
        """The same with the texts as the tokenizer reads them."""
        case = copy(self)
        case.texts = [with_prefix(text, self.tokenizer.prefix) for text in self.texts]
        return case

    def ranks(self) -> tiktoken.Ranks:
        """Return the ranks for tiktoken."""
        own = self.tokenizer
        return tiktoken.ranks_of(own.definition)

    def compare(self, name: str, run: Callable[[Case], tuple[str, list[list[int]]]]) -> Result:
        """Compare the ids of a runtime; `run` gives its version and rows of ids."""
        try:
            version, rows = run(self)
        except subprocess.TimeoutExpired:
            return Result(name, "", "refused", example=f"no answer in {TIMEOUT} seconds")
        except (KoktokError, RefusedError, ValueError, AssertionError, subprocess.CalledProcessError) as error:
            text = re.sub(
                r"(file://)?(/[^\s/]+)+/", "", str(getattr(error, "stderr", "") or error)
            )  # no folder of this machine
            return Result(name, getattr(error, "version", ""), "refused", example=" ".join(text.split())[-300:])
        found = agreement(zip(self.texts, rows, self.ids, strict=True))
        if found.differing and self.tokenizer.prefix and run(self.behind_a_space())[1] == self.ids:
            return Result(name, version, "behind a space", found.checked)
        first = "".join(example.line[:80] for example in found.examples[:1])
        return Result(name, version, "differs" if first else "same ids", found.checked, found.differing, first)


def in_python(name: str, python: Path, case: Case) -> tuple[str, list[list[int]]]:
    """Run a library of PyPI by an interpreter that has it."""
    ranks: dict[str, Any] | str
    try:
        made = case.ranks()
        ranks = {"pat_str": made.pattern, "lines": made.text().splitlines()}
    except ArtifactError as error:
        ranks = str(error).split("\n")[0]
    spelled = [piece.hex() for piece in case.tokenizer.vocab.token_bytes]
    source = "\n".join(line[8:] for line in RUNTIMES[name].splitlines())
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "case.json"
        spaced = case.behind_a_space().texts
        written = (case.folder / "tokenizer.json").read_text(encoding="utf-8")
        data = {"lines": case.texts, "spaced": spaced, "wanted": case.ids, "spelled": spelled, "ranks": ranks}
        try:
            data["version_2"] = in_version_2(written, case.tokenizer.style.roles)
        except ArtifactError as error:
            data["version_2"] = str(error).split("\n")[0]
        file.write_text(json.dumps(data), encoding="utf-8")
        command = [str(python), "-c", CHILD, name, str(case.folder), str(file)]
        env = os.environ | {"PYTHONSAFEPATH": "1"}
        done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=TIMEOUT, env=env)
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise RefusedError(f"it ended with {done.returncode}: {done.stderr[-200:]}") from None
    if "rows" not in answer:
        raise RefusedError(answer["error"][:300], answer["version"])
    return answer["version"], answer["rows"]


def in_llama_cpp(environment: Path, case: Case) -> tuple[str, list[list[int]]]:
    """Run llama.cpp, which takes a vocabulary only in a model: the smallest one."""
    llama_cpp, own = import_module("llama_cpp"), case.tokenizer
    if reason := refuses(own.definition):
        raise RefusedError(reason)
    python = python_of(environment, LLAMA)
    with tempfile.TemporaryDirectory() as place:
        table = table_of(own.definition)
        table = read(write(table, Path(place) / "vocabulary.gguf"))
        whole = llama_cpp.tiny_model(Path(place) / "model.gguf", len(table.tokens))
        model, text = write_into(table, whole, Path(place) / "whole.gguf"), Path(place) / "lines.json"
        text.write_text(json.dumps(case.texts), encoding="utf-8")
        command = [str(python), "-c", llama_cpp.RUN_LLAMA_CPP, str(model), str(text)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)
    command = [str(python), "-c", "from importlib.metadata import version; print(version('cyllama'))"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return f"(cyllama {version})", [json.loads(line) for line in done.stdout.splitlines()]


def in_node(package: str, home: Path, case: Case) -> tuple[str, list[list[int]]]:
    """Run a package of npm."""
    javascript = import_module("javascript")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "tokenizer"
        shutil.copytree(case.folder, folder)
        if package == "js-tiktoken":
            for name, text in tiktoken.files(case.ranks(), javascript=case.tokenizer.pattern.javascript).items():
                (folder / name).write_text(text, encoding="utf-8")
        rows = javascript.rows_of(home, NODE[package], folder, case.texts, Path(place))
    manifest = home / "node_modules" / package / "package.json"
    return json.loads(manifest.read_text(encoding="utf-8"))["version"], [ids for ids, _ in rows]


def python_of(environment: Path, packages: Iterable[str]) -> Path:
    """Return the interpreter of an environment, which is installed if it does not exist."""
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True)
        if subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=False).returncode:
            shutil.rmtree(environment)
            sys.exit(f"pip could not install {', '.join(packages)}")
    return python


def node_of(home: Path) -> Path:
    """Return the folder of npm's packages, which are installed if they are not there."""
    if not (home / "node_modules").exists():
        home.mkdir(parents=True, exist_ok=True)
        import_module("javascript").install(home)
    return home


def results(folder: Path, lines: Iterable[str], home: Path, wanted: Collection[str] = ()) -> list[Result]:
    """Compare every runtime on a folder, or only the `wanted` ones."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    case = Case(folder, lines)
    runs: list[tuple[str, Callable[[Case], tuple[str, list[list[int]]]]]] = []
    for environment, (runtimes, packages) in ENVIRONMENTS.items():
        if asked := [name for name in runtimes if not wanted or name in wanted]:
            python = python_of(home / environment, packages or runtimes)
            runs += [(name, partial(in_python, name, python)) for name in asked]
    if not wanted or "llama.cpp" in wanted:
        runs.append(("llama.cpp", partial(in_llama_cpp, home / "llama.cpp")))
    if asked := [name for name in NODE if not wanted or name in wanted]:
        node = node_of(home / "node")
        runs += [(name, partial(in_node, name, node)) for name in asked]
    return [case.compare(name, run) for name, run in runs]


def table(rows: dict[str, list[Result]]) -> str:
    """Print Markdown: a row a runtime, a column a kind, and below it the reason of each difference."""
    kinds = [*rows]
    checked = max(result.checked for results in rows.values() for result in results)
    lines = ["| | " + " | ".join(f"`{kind}`" for kind in kinds) + " |", "| --- |" + " --- |" * len(kinds)]
    notes: list[str] = []
    for i, one in enumerate(rows[kinds[0]]):
        across = [rows[kind][i] for kind in kinds]
        version = next((result.version for result in across if result.version), "")
        lines.append(f"| {one.runtime} {version} | " + " | ".join(map(shown, across)) + " |")
        faults: dict[str, list[str]] = {}  # kinds by error or line
        for kind, result in zip(kinds, across, strict=True):
            if result.outcome not in ("same ids", "behind a space"):
                text = result.example[:MOST].replace("`", "'").replace("|", "/")
                faults.setdefault(f"first at {text!r}" if result.outcome == "differs" else repr(text), []).append(kind)
        if faults:
            examples = (f"    * {', '.join(f'`{kind}`' for kind in of)}: {text}\n" for text, of in faults.items())
            notes.append(f"* **{one.runtime}**: {WHY.get(one.runtime, '')}.\n" + "".join(examples))
    return (
        "# Runtimes\n\nWhich runtimes load a vocabulary of each kind, and whether they give koktok's ids on "
        f"{checked:,} normalized lines, among them difficult ones: rare code points, combining marks, control "
        "characters, special tokens typed as text. `python -m eval.runtimes --environments FOLDER` prints this page. "
        "xgrammar, outlines-core and lm-format-enforcer do not "
        "encode; for them *yes* means that every token is read as the text that it stands for.\n\n"
        + "\n".join(lines)
        + "\n\nOther ids and refused folders are limits of the runtime. Each is explained below, with the error message or the "
        "first line that differs.\n\n" + "".join(notes)
    )


def shown(result: Result) -> str:
    """Return the text of a cell."""
    if result.outcome == "differs":
        return f"{counted(result.differing, 'line')} differ{'s' * (result.differing == 1)}"
    return {"same ids": "yes", "behind a space": 'yes, of `" " + text`'}.get(result.outcome, result.outcome)


def kept_results(file: Path, text: str) -> dict[str, list[Result]]:
    """Read the answers of an earlier run by kind, if it was of the same lines."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if kept.get("text") != text:
        return {}
    return {kind: [Result(**result) for result in results] for kind, results in kept["answers"].items()}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m eval.runtimes", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--environments", type=Path, required=True, help="folder for what pip and npm install")
    parser.add_argument("--text", default="corpus:demo", help="text to compare ids on")
    parser.add_argument("--count", type=int, default=10_000, help="lines of it")
    parser.add_argument("--kinds", help="ask these again, with commas between; by default those that are not kept")
    parser.add_argument("--runtimes", help="only these, with commas between")
    parser.add_argument("--out", type=Path, help="where the table goes; standard output without it")
    given = parser.parse_args()
    text = sources.read(as_source(given.text))
    lines = [*islice((line for block in text for line in block.lines()), given.count), *tricky_lines()]
    wanted = set((given.runtimes or "").split(",")) - {""}
    kept, text = given.environments / "results.json", f"{given.count} lines of {given.text}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = kept_results(kept, text) if not wanted else {}
    with tempfile.TemporaryDirectory() as place:
        for number, kind in enumerate(given.kinds.split(",") if given.kinds else [k for k in KINDS if k not in rows]):
            changes = KINDS[kind]
            recipe = Recipe().changed(**changes | {"train": {"vocab_size": 2300} | changes.get("train", {})})
            folder = train([as_source("corpus:mini")], recipe).tokenizer.save(Path(place) / str(number))
            rows[kind] = results(folder, lines, given.environments, wanted)
            cells = (f"{r.runtime} {r.version}: {r.outcome} {r.differing}/{r.checked} {r.example}" for r in rows[kind])
            print(kind, *cells, sep="\n    ", file=sys.stderr, flush=True)
            if not wanted:
                answers = {kind: [asdict(result) for result in results] for kind, results in rows.items()}
                kept.write_text(json.dumps({"text": text, "answers": answers}, ensure_ascii=False), encoding="utf-8")
    page = table({kind: rows[kind] for kind in KINDS if kind in rows})
    if given.out:
        given.out.write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
