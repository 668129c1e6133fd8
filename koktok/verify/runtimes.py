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
from typing import Final, Literal

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
}
"""Libraries on PyPI that load a tokenizer.json: from `file` and `lines` to `rows` of ids."""

_SCRIPT = """
import json, sys
from importlib.metadata import version
name, file, lines = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3], encoding="utf-8"))
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
        file.write_text(json.dumps(texts), encoding="utf-8")
        for name in names:
            command = [python, "-c", _SCRIPT, name, str(Path(folder) / "tokenizer.json"), str(file)]
            found.append(_result(name, command, texts, wanted, own=python == sys.executable))
    return found


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
