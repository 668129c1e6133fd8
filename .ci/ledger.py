"""Lines, docstrings and files by room, beside those of the last release (`.ci/ledger.json`); `--write` keeps today's there."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).with_suffix(".json")


def docstring_lines(text: str) -> int:
    """Lines of all docstrings of a file."""
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    heads = [node.body[0] for node in ast.walk(ast.parse(text)) if isinstance(node, nodes) and node.body]
    texts = [head for head in heads if isinstance(head, ast.Expr) and isinstance(head.value, ast.Constant)]
    return sum(head.end_lineno - head.lineno + 1 for head in texts if isinstance(head.value.value, str))


def main() -> None:
    """Print the table."""
    rows: dict[str, list[int]] = {}
    for file in sorted(ROOT.glob("*/**/*.py")):
        top, *inner = file.relative_to(ROOT).parts
        if top not in ("koktok", "eval", "tests"):
            continue
        room = f"koktok/{inner[0]}" if top == "koktok" and len(inner) > 1 else "koktok/*.py" if top == "koktok" else top
        text = file.read_text(encoding="utf-8")
        for name in (room, *(["koktok"] if top == "koktok" else [])):
            row = rows.setdefault(name, [0, 0, 0])
            for k, n in enumerate((text.count("\n"), docstring_lines(text), 1)):
                row[k] += n
    if "--write" in sys.argv:
        KEPT.write_text(json.dumps({name: row[0] for name, row in rows.items()}, indent=1) + "\n", encoding="utf-8")
    before = json.loads(KEPT.read_text(encoding="utf-8"))
    print(f"{'room':24} {'lines':>7} {'docstrings':>11} {'files':>6} {'since the last release':>23}")
    for name in sorted({*rows, *before}):
        lines, docstrings, files = rows.get(name, [0, 0, 0])
        share = f"{docstrings / max(lines, 1):.0%}"
        print(f"{name:24} {lines:7,} {docstrings:6,} {share:>4} {files:6} {lines - before.get(name, 0):+23,}")


if __name__ == "__main__":
    main()
