"""The table "runs in": kinds of vocabularies against runtimes, same ids, other ids or refused, with versions.

    python -m eval.runtimes [--python ENVIRONMENT/bin/python] [--lines FILE] [--out docs/runtimes.md]

Small tokenizers of every kind are trained on corpora/mini; the runtimes are those of `koktok verify --runtimes`, as far as
they are installed in the environment of --python: pip install gigatoken snaptokens fastokens tokie kitoken llguidance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from koktok import Recipe, Source, train_tokenizer
from koktok.progress import counted
from koktok.text.sources import read_lines
from koktok.verify.probes import tricky_lines
from koktok.verify.runtimes import RuntimeResult, runtime_results

BYTES = {"train": {"model": "bpe-bytes", "vocab_size": 2300}}
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"train": {"model": "bpe"}},
    "bpe-bytes": BYTES,
    **{f"bpe-bytes --pattern {name}": BYTES | {"pretokenize": {"pattern": name}} for name in ("gpt2", "llama3", "qwen2", "o200k")},
    "wordpiece": {"train": {"model": "wordpiece", "vocab_size": 4000}},
    "unigram --jamo": {"jamo": True},
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval.runtimes", description=__doc__.split("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--lines", type=Path, help="text to compare ids on, besides corpora/mini")
    parser.add_argument("--out", type=Path, help="where the table goes; standard output without it")
    given = parser.parse_args()
    mini = Source.of("corpus:mini")
    lines = [*read_lines(mini), *tricky_lines()]
    if given.lines:
        lines += read_lines(Source.of(str(given.lines)))
    rows: dict[str, list[RuntimeResult]] = {}
    with tempfile.TemporaryDirectory() as place:
        for number, (kind, changes) in enumerate(KINDS.items()):
            changed = changes | {"train": {"vocab_size": 2300} | changes.get("train", {})}
            made = train_tokenizer([mini], Recipe().changed(**changed)).tokenizer
            folder = made.save(Path(place) / str(number))
            rows[kind] = runtime_results(folder, lines, python=given.python)
            print(
                kind,
                *(f"{r.runtime}: {r.outcome} {r.wrong}/{r.looked} {r.said}" for r in rows[kind]),
                sep="\n    ",
                file=sys.stderr,
            )
    text = table(rows)
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    else:
        print(text)


def table(rows: dict[str, list[RuntimeResult]]) -> str:
    """Markdown: a row a kind, a column a runtime."""
    runtimes = [result for result in next(iter(rows.values())) if result.outcome != "not installed"]
    names = [result.runtime for result in runtimes]
    head = ["kind", *(f"{result.runtime} {result.version}" for result in runtimes)]
    body = [
        [f"`{kind}`", *(shown(result) for result in results if result.runtime in names)]
        for kind, results in rows.items()
    ]
    looked = max(result.looked for results in rows.values() for result in results)
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body)]
    return (
        "# Runs in\n\nWhich runtimes load the `tokenizer.json` of each kind, and whether they give the ids of koktok on "
        f"{looked:,} normalized lines, hard ones among them (`python -m eval.runtimes`; `koktok verify my-tokenizer "
        "--runtimes` does it for yours).\n\n"
        + "\n".join(lines)
        + "\n\nWhere ids are others, or a file is refused, it is the "
        "runtime that lacks something: gigatoken, snaptokens and fastokens run BPE only; tokie cuts by patterns of its own.\n"
    )


def shown(result: RuntimeResult) -> str:
    if result.outcome == "differs":
        return f"{counted(result.wrong, 'line')} other"
    return "yes" if result.outcome == "same ids" else result.outcome


if __name__ == "__main__":
    main()
