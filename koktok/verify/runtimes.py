"""Runtimes of other people: whether a library loads the folder, and whether it gives our ids.

This file adds: runtimes that know tokenizers by name, and stop, or differ, at what they do not know. Each runs in a process
of its own, for some end in a crash; a refusal is a finding about the runtime, and no failure of the folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from koktok.errors import ArtifactError
from koktok.formats.tiktoken import ranks_of
from koktok.process import environment
from koktok.tokenizer import Tokenizer

__all__ = ["RUNTIMES", "RuntimeResult", "runtime_results"]

TIMEOUT: Final = 300
"""Seconds that a runtime may take to load a folder and encode some thousand lines."""

RUNTIMES: Final[dict[str, str]] = {
    "tokenizers": """
        from tokenizers import Tokenizer
        made = Tokenizer.from_file(file)
        made.encode_special_tokens = True
        rows = [row.ids for row in made.encode_batch(lines, add_special_tokens=False)]""",
    "transformers": """
        from transformers import AutoTokenizer
        made = AutoTokenizer.from_pretrained(folder)
        rows = made(lines, add_special_tokens=False, split_special_tokens=True)["input_ids"]""",
    "tiktoken": """
        import base64, tiktoken
        spec = ranks()
        table = {base64.b64decode(piece): int(i) for piece, i in map(str.split, spec["lines"])}
        made = tiktoken.Encoding("koktok", pat_str=spec["pat_str"], mergeable_ranks=table, special_tokens={})
        rows = made.encode_ordinary_batch(lines)""",
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
        made = Kitoken.from_file(file)
        rows = [made.encode(line, False) for line in lines]""",
    "llguidance": """
        from llguidance import LLTokenizer
        made = LLTokenizer(file)
        rows = [made.tokenize_str(line) for line in lines]""",
    "xgrammar": """
        from transformers import AutoTokenizer
        from xgrammar import TokenizerInfo
        made = AutoTokenizer.from_pretrained(folder)
        spelled = TokenizerInfo.from_huggingface(made, vocab_size=len(made)).decoded_vocab
        spelled = [piece.encode() if isinstance(piece, str) else piece for piece in spelled]
        rows = [row if b"".join(spelled[i] for i in row) == line.encode() else [] for line, row in zip(lines, wanted)]""",
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
        made = Vocabulary.from_pretrained("koktok/koktok")
        known = lambda row: all(i in (made.get(spelled(i)) or ()) for i in row)
        text = lambda row: b"".join(map(spelled, row))
        rows = [row if known(row) and text(row) == line.encode() else [] for line, row in zip(lines, wanted)]""",
    "lm-format-enforcer": """
        from transformers import AutoTokenizer
        from lmformatenforcer.integrations.transformers import build_token_enforcer_tokenizer_data
        made = AutoTokenizer.from_pretrained(folder)
        known = {i: text for i, text, _ in build_token_enforcer_tokenizer_data(made, len(made)).regular_tokens}
        rows = [row if "".join(known.get(i, "") for i in row) == line else [] for line, row in zip(lines, wanted)]""",
    "openvino-tokenizers": """
        import openvino
        from openvino_tokenizers import convert_tokenizer
        from transformers import AutoTokenizer
        made = openvino.compile_model(convert_tokenizer(AutoTokenizer.from_pretrained(folder), add_special_tokens=False), "CPU")
        rows = []
        for line in lines:
            out = made([line])
            rows.append(out["input_ids"][0][: int(out["attention_mask"][0].sum())].tolist())""",
}
"""Libraries on PyPI that load a saved folder: from `folder`, or the tokenizer.json in it (`file`), and `lines` to `rows` of ids.

Three constrain what a model writes, and never encode: there a row is the `wanted` one where what they take its tokens to spell
(`spelled(id)` gives the truth) is the line. tiktoken has no file of a pattern: `ranks()` is what `koktok export` writes.
"""

_SCRIPT = """
import json, sys
from importlib.metadata import version
name, folder = sys.argv[1:3]
file = f"{folder}/tokenizer.json"
given = json.load(open(sys.argv[3], encoding="utf-8"))
lines, wanted = given["lines"], given["wanted"]
spelled = lambda i: bytes.fromhex(given["spelled"][i])
def ranks():
    if isinstance(given["ranks"], str):
        raise ValueError(given["ranks"])
    return given["ranks"]
found = {"version": version(name)}
try:
    exec(sys.stdin.read())
    found["rows"] = [list(map(int, row)) for row in rows]
except BaseException as error:
    found["said"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""

Outcome = Literal["same ids", "differs", "refused", "not installed"]


@dataclass(frozen=True)
class RuntimeResult:
    """What a runtime did with a folder.

    Parameters
    ----------
    runtime, version : str
    outcome : "same ids", "differs", "refused" or "not installed"
    looked, wrong : int
        Lines, and those with other ids.
    said : str
        Its error, or a line that differs.
    """

    runtime: str
    version: str
    outcome: Outcome
    looked: int = 0
    wrong: int = 0
    said: str = ""


def runtime_results(
    folder: str | Path, lines: Iterable[str], *, names: Iterable[str] = RUNTIMES, python: str = sys.executable
) -> list[RuntimeResult]:
    """Ask each runtime that is installed for the ids of some lines.

    Parameters
    ----------
    folder : str or Path
        A saved tokenizer with a tokenizer.json.
    lines : iterable of str
        They are normalized first: most of these libraries have another NFC, and that is not what is asked.
    names : iterable of str
        Of `RUNTIMES`.
    python : str
        The interpreter of the environment where they are installed.
    """
    tokenizer = Tokenizer.load(folder)
    texts = [line for line in dict.fromkeys(map(tokenizer.normalize, lines)) if line]
    wanted = [tokenizer.encode(text).ids for text in texts]
    found = []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "lines.json"
        spelled = [piece.hex() for piece in tokenizer.vocab.token_bytes]
        given = {"lines": texts, "wanted": wanted, "spelled": spelled, "ranks": _ranks(tokenizer)}
        file.write_text(json.dumps(given), encoding="utf-8")
        for name in names:
            command = [python, "-c", _SCRIPT, name, str(folder), str(file)]
            found.append(_result(name, command, texts, wanted, own=python == sys.executable))
    return found


def _ranks(tokenizer: Tokenizer) -> dict[str, Any] | str:
    """What tiktoken wants, or why it cannot run the tokenizer."""
    try:
        ranks = ranks_of(tokenizer.vocab, tokenizer.pattern, jamo=bool(tokenizer.recipe.jamo))
    except ArtifactError as error:
        return str(error).split("\n")[0]
    return {"pat_str": ranks.pattern, "lines": ranks.text().splitlines()}


def _result(name: str, command: list[str], texts: list[str], wanted: list[list[int]], *, own: bool) -> RuntimeResult:
    source = "\n".join(line[8:] for line in RUNTIMES[name].splitlines())
    try:
        done = subprocess.run(
            command,
            input=source,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env=environment() if own else os.environ | {"PYTHONSAFEPATH": "1"},
        )
    except subprocess.TimeoutExpired:
        return RuntimeResult(name, "", "refused", said=f"no answer in {TIMEOUT} seconds")
    if "PackageNotFoundError" in done.stderr:
        return RuntimeResult(name, "", "not installed")
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return RuntimeResult(name, "", "refused", said=f"it ended with {done.returncode}: {done.stderr[-200:]}")
    version = answer["version"]
    if "rows" not in answer:
        return RuntimeResult(name, version, "refused", said=" ".join(answer["said"].split())[:300])
    other = [text for text, row, ids in zip(texts, answer["rows"], wanted, strict=True) if row != ids]
    outcome: Outcome = "differs" if other else "same ids"
    return RuntimeResult(name, version, outcome, len(texts), len(other), other[0][:80] if other else "")
