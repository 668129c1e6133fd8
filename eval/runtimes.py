"""The table "runs in": kinds of vocabularies against runtimes, same ids, other ids or refused, with versions.

    python -m eval.runtimes --environments FOLDER [--text corpus:demo] [--count 10000] [--out docs/runtimes.md]

Small tokenizers of every kind are trained on corpora/mini, and every runtime on PyPI and npm that knows tokenizers is asked
for the ids of so many lines, and of hostile ones. Each group of packages that go together has an environment of its own in
--environments, which the script makes with venv and pip, or npm, where it is not there yet. What was answered is kept in
results.json there: a run that was stopped goes on behind the last kind, and --kinds asks for some of them anew.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from eval.runtime_sources import RuntimeResult, result_of, runtime_results
from koktok.agree import agreement
from koktok.corpora.paths import as_source
from koktok.errors import KoktokError
from koktok.formats.gguf import read, table_of, write, write_into
from koktok.formats.limits import unsupported_reason
from koktok.formats.tiktoken import ranks_of
from koktok.pipeline import train
from koktok.progress import counted
from koktok.recipe import Recipe
from koktok.text.sources import read_lines
from koktok.tokenizer import Tokenizer
from koktok.verification.probes import tricky_lines

TESTS = Path(__file__).parents[1] / "tests"

BYTES = {"train": {"model": "bpe-bytes"}}
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "unigram --superwords": {"train": {"superwords": 0.1}},
    "unigram --jamo": {"jamo": True},
    "bpe": {"train": {"model": "bpe"}},
    "bpe-bytes": BYTES,
    **{
        f"bpe-bytes --pattern {name}": BYTES | {"pretokenize": {"pattern": name}}
        for name in ("gpt2", "llama3", "qwen2", "o200k", "cl100k")
    },
    "wordpiece": {"train": {"model": "wordpiece", "vocab_size": 4000}},
}

PYTHON: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "newest": (
        ("tokenizers", "transformers", "tiktoken", "gigatoken", "snaptokens", "fastokens", "tokie", "kitoken",
         "llguidance", "outlines-core"),
        (),
    ),
    "transformers-4": (("transformers",), ("transformers==4.57.*",)),
    "openvino": (("openvino-tokenizers",), ("openvino-tokenizers[transformers]",)),
    "torch": (("xgrammar", "lm-format-enforcer"), ("xgrammar", "lm-format-enforcer", "transformers==4.57.*")),
}  # fmt: skip
"""By environment: the runtimes it is for, and what pip installs where that is more, or another version."""

LLAMA = ("cyllama", "gguf")
"""A wheel that carries llama.cpp."""

NODE = ("@huggingface/tokenizers", "@huggingface/transformers", "js-tiktoken")

SCRIPTS = {
    "@huggingface/tokenizers": """
        import { Tokenizer } from "@huggingface/tokenizers";
        const made = new Tokenizer(read(`${folder}/tokenizer.json`), read(`${folder}/tokenizer_config.json`));
        const encode = (line) => made.encode(line, { add_special_tokens: false }).ids;""",
    "@huggingface/transformers": """
        import { AutoTokenizer, env } from "@huggingface/transformers";
        import { basename, dirname } from "node:path";
        env.allowRemoteModels = false;
        env.localModelPath = dirname(folder);
        const made = await AutoTokenizer.from_pretrained(basename(folder));
        const encode = (line) => made.encode(line, { add_special_tokens: false });""",
    "js-tiktoken": """
        import { Tiktoken } from "js-tiktoken/lite";
        const made = new Tiktoken(read(`${folder}/ranks.json`));
        const encode = (line) => made.encode(line, [], []);""",
}

NODE_SCRIPT = """
import {{ readFileSync, writeFileSync }} from "node:fs";
{source}
function read(path) {{ return JSON.parse(readFileSync(path, "utf-8")); }}
writeFileSync(process.argv[4], JSON.stringify(read(process.argv[3]).map((line) => [...encode(line)].map(Number))));
"""

WHY = {
    "gigatoken": "BPE only, with the patterns and normalizers that it knows by name",
    "snaptokens": "BPE only, with the patterns that it knows by name",
    "fastokens": "BPE only",
    "tiktoken": "byte-level BPE only",
    "js-tiktoken": "byte-level BPE only",
    "tokie": "cuts by patterns of its own, whatever the file says",
    "kitoken": "no Unigram whose bytes are not the first ids, and a mark that a text spells (##) is one",
    "llama.cpp": "knows some patterns by name, no byte fallback for Unigram, and reads marks that a text spells (▁) as its own",
    "@huggingface/tokenizers": "no byte fallback for Unigram, and jamo are composed again",
    "@huggingface/transformers": "runs on the one before",
    "openvino-tokenizers": "no byte fallback for Unigram, jamo are no text to it, and a mark that a text spells (##) is one",
    "xgrammar": "takes its tokens to spell the text letter for letter, which those of WordPiece and jamo do not",
    "outlines-core": "knows the decoder of byte-level pieces only where it stands alone; jamo are no text to it",
    "lm-format-enforcer": "knows tokens as strings, so that a part of a character is U+FFFD, and a mark (##) is text",
    "llguidance": "no WordPiece",
}
"""What a runtime lacks where it refuses or differs."""

MOST = 120
"""Characters of an error that the page shows."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval.runtimes", description=__doc__.split("\n")[0])
    parser.add_argument("--environments", type=Path, required=True, help="folder for what pip and npm install")
    parser.add_argument("--text", default="corpus:demo", help="text to compare ids on")
    parser.add_argument("--count", type=int, default=10_000, help="lines of it")
    parser.add_argument("--kinds", help="ask these anew, with commas between; by default those that are not kept")
    parser.add_argument("--runtimes", help="only these, with commas between")
    parser.add_argument("--out", type=Path, help="where the table goes; standard output without it")
    given = parser.parse_args()
    lines = [*islice(read_lines(as_source(given.text)), given.count), *tricky_lines()]
    wanted = set((given.runtimes or "").split(",")) - {""}
    kept, asked = given.environments / "results.json", f"{given.count} lines of {given.text}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = read_kept(kept, asked) if not wanted else {}
    with tempfile.TemporaryDirectory() as place:
        for number, kind in enumerate(given.kinds.split(",") if given.kinds else [k for k in KINDS if k not in rows]):
            changes = KINDS[kind]
            changed = changes | {"train": {"vocab_size": 2300} | changes.get("train", {})}
            made = train([as_source("corpus:mini")], Recipe().changed(**changed)).tokenizer
            rows[kind] = results(made.save(Path(place) / str(number)), lines, given.environments, wanted)
            told = (f"{r.runtime} {r.version}: {r.outcome} {r.wrong}/{r.looked} {r.said}" for r in rows[kind])
            print(kind, *told, sep="\n    ", file=sys.stderr, flush=True)
            if not wanted:
                answers = {kind: [asdict(result) for result in found] for kind, found in rows.items()}
                kept.write_text(json.dumps({"asked": asked, "answers": answers}, ensure_ascii=False), encoding="utf-8")
    text = table({kind: rows[kind] for kind in KINDS if kind in rows})
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    else:
        print(text)


def read_kept(file: Path, asked: str) -> dict[str, list[RuntimeResult]]:
    """What was answered before, by kind; nothing where other lines were asked for."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if kept.get("asked") != asked:
        return {}
    return {kind: [RuntimeResult(**result) for result in found] for kind, found in kept["answers"].items()}


def results(folder: Path, lines: Iterable[str], home: Path, wanted: Iterable[str] = ()) -> list[RuntimeResult]:
    """What every runtime does with a folder; of `wanted` ones alone where some are named."""
    chosen, lines = set(wanted), list(lines)
    found: list[RuntimeResult] = []
    for name, (runtimes, packages) in PYTHON.items():
        asked = [runtime for runtime in runtimes if not chosen or runtime in chosen]
        if asked:
            found += runtime_results(
                folder, lines, names=asked, python=str(python_of(home / name, packages or runtimes))
            )
    tokenizer = Tokenizer.load(folder)
    texts = [line for line in dict.fromkeys(map(tokenizer.normalize, lines)) if line]
    ids = [tokenizer.encode(text).ids for text in texts]
    if not chosen or "llama.cpp" in chosen:
        found.append(_compared("llama.cpp", texts, ids, lambda: in_llama_cpp(tokenizer, texts, home / "llama.cpp")))
    packages = [package for package in NODE if not chosen or package in chosen]
    if packages:
        _install(home / "node")
    for package in packages:
        found.append(
            _compared(package, texts, ids, lambda p=package: in_node(p, folder, tokenizer, texts, home / "node"))
        )
    return found


def python_of(environment: Path, packages: Iterable[str]) -> Path:
    """The interpreter of an environment, which is made where it is not there."""
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True)
        installed = subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=False)
        if installed.returncode:
            shutil.rmtree(environment)
            sys.exit(f"pip could not install {', '.join(packages)}")
    return python


def _compared(name: str, texts: list[str], ids: list[list[int]], ask: Any) -> RuntimeResult:
    try:
        version, rows = ask()
    except (KoktokError, ValueError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip()
        return RuntimeResult(name, "", "refused", said=" ".join(said.split())[-300:])
    return result_of(name, version, agreement(zip(texts, rows, ids, strict=True)))


def in_llama_cpp(tokenizer: Tokenizer, texts: list[str], environment: Path) -> tuple[str, list[list[int]]]:
    """Version and ids of llama.cpp, around the smallest of models: the binding wants one."""
    sys.path.insert(0, str(TESTS))
    from llama_cpp import RUN_LLAMA_CPP, tiny_model  # type: ignore[import-not-found]

    if reason := unsupported_reason("gguf", tokenizer.vocab, tokenizer.pattern, jamo=bool(tokenizer.recipe.jamo)):
        raise ValueError(reason)
    python = python_of(environment, LLAMA)
    with tempfile.TemporaryDirectory() as place:
        table = table_of(tokenizer.vocab, tokenizer.pattern, tokenizer.normalizer, prefix=tokenizer.prefix)
        table = read(write(table, Path(place) / "vocabulary.gguf"))
        whole = tiny_model(Path(place) / "model.gguf", len(table.tokens))
        model, text = write_into(table, whole, Path(place) / "whole.gguf"), Path(place) / "lines.json"
        text.write_text(json.dumps(texts), encoding="utf-8")
        command = [str(python), "-c", RUN_LLAMA_CPP, str(model), str(text)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500)
    asked = [str(python), "-c", "from importlib.metadata import version; print(version('cyllama'))"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return f"(cyllama {version})", [json.loads(line) for line in done.stdout.splitlines()]


def _install(home: Path) -> None:
    """The packages of npm, where they are not there yet."""
    if (home / "node_modules").exists():
        return
    home.mkdir(parents=True, exist_ok=True)
    (home / "package.json").write_text('{"type": "module", "private": true}', encoding="utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *NODE]
    if not shutil.which("npm") or subprocess.run(command, cwd=home, check=False).returncode:
        sys.exit(f"npm could not install {', '.join(NODE)}")


def in_node(
    package: str, folder: Path, tokenizer: Tokenizer, texts: list[str], home: Path
) -> tuple[str, list[list[int]]]:
    """Version and ids of a package of npm."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "tokenizer"
        shutil.copytree(folder, copy)
        if package == "js-tiktoken":
            ranks = ranks_of(tokenizer.vocab, tokenizer.pattern, jamo=bool(tokenizer.recipe.jamo))
            pieces = [line.split()[0] for line in ranks.text().splitlines()]
            spec = {
                "pat_str": tokenizer.pattern.javascript,
                "special_tokens": {},
                "bpe_ranks": " ".join(["!", "0", *pieces]),
            }
            (copy / "ranks.json").write_text(json.dumps(spec), encoding="utf-8")
        text, out, script = (
            Path(place) / "lines.json",
            Path(place) / "ids.json",
            home / f"{package.rpartition('/')[2]}.js",
        )
        text.write_text(json.dumps(texts), encoding="utf-8")
        source = SCRIPTS[package]
        imports = "\n".join(line for line in source.splitlines() if line.lstrip().startswith("import "))
        rest = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("import "))
        head = f"{imports}\nconst folder = process.argv[2];\n{rest}"
        script.write_text(NODE_SCRIPT.format(source=head), encoding="utf-8")
        command = ["node", str(script), str(copy), str(text), str(out)]
        subprocess.run(command, cwd=home, capture_output=True, text=True, check=True, timeout=500)
        rows = json.loads(out.read_text(encoding="utf-8"))
    version = json.loads((home / "node_modules" / package / "package.json").read_text(encoding="utf-8"))["version"]
    return version, rows


def table(rows: dict[str, list[RuntimeResult]]) -> str:
    """Markdown: a row a runtime, a column a kind, and below what is behind each difference."""
    kinds = [*rows]
    looked = max(result.looked for results in rows.values() for result in results)
    lines = ["| | " + " | ".join(f"`{kind}`" for kind in kinds) + " |", "| --- |" + " --- |" * len(kinds)]
    notes: list[str] = []
    for i, one in enumerate(rows[kinds[0]]):
        across = [rows[kind][i] for kind in kinds]
        version = next((result.version for result in across if result.version), "")
        lines.append(f"| {one.runtime} {version} | " + " | ".join(map(shown, across)) + " |")
        faults: dict[str, list[str]] = {}  # what was said, and of which kinds
        for kind, result in zip(kinds, across, strict=True):
            if result.outcome != "same ids":
                said = result.said[:MOST].replace("`", "'").replace("|", "/")
                faults.setdefault(f"first at {said!r}" if result.outcome == "differs" else repr(said), []).append(kind)
        if faults:
            examples = (f"{', '.join(f'`{kind}`' for kind in of)}: {said}" for said, of in faults.items())
            notes.append(
                f"* **{one.runtime}**: {WHY.get(one.runtime, '')}.\n" + "".join(f"    * {e}\n" for e in examples)
            )
    return (
        "# Runs in\n\nWhich runtimes load a vocabulary of each kind, and whether they give koktok's ids on "
        f"{looked:,} normalized lines, hostile ones among them: those of code points, combining marks, controls, special "
        "tokens typed as text. `python -m eval.runtimes --environments FOLDER` prints this page. "
        "xgrammar, outlines-core and lm-format-enforcer do not "
        "encode: *yes* is for tokens that spell to them what they spell.\n\n"
        + "\n".join(lines)
        + "\n\nWhere ids are others, or a folder is refused, it is the runtime that lacks something; below each stand the "
        "first error or line of the kinds that it concerns.\n\n" + "".join(notes)
    )


def shown(result: RuntimeResult) -> str:
    """A cell."""
    if result.outcome == "differs":
        return f"{counted(result.wrong, 'line')} other"
    return "yes" if result.outcome == "same ids" else result.outcome


if __name__ == "__main__":
    main()
