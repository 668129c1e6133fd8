"""The bilingual guard: Korean with 30 % English and code, and what the Korean gain costs either.

    python -m eval.bilingual DATA [--size 32000] [--cap 20000] [--share .3] [--presets short,balanced] [--reserve latin=.3]

DATA is a folder with `text/` (plain or gzipped lines), of which at most `--cap` eojeols a file are read. English is the
documentation (.md, .rst, .txt, METADATA) and the docstrings of the Python packages installed beside this interpreter, code
the sources of other files of theirs; equal bytes of both, files in the order of the hash of their path, no file twice,
a tenth of the files held out by hash. The figures therefore belong to one environment: its packages are counted in the
head of the table.

Every row trains on the same lines. `spaces only` is SentencePiece with split_by_unicode_script=false and
split_by_number=false, which is what koktok's pattern `eojeol` (digits free) does; its defaults are koktok's pattern
`scripts`, and with split_digits=true koktok's `digits = "single"`, which is the recipe's default. SentencePiece drops
and collapses white space unless told otherwise, so in code it spells less than was written: the rows `keeps white
space` (remove_extra_whitespaces=false) spell all of it, and the columns `squeezed` encode, for every row, what the
others would have been left with. The rows `runs of spaces` may also have pieces of nothing but spaces
(allow_whitespace_only_pieces=true); they are the ones that compare like with like. SentencePiece counts an unknown
character as one token and has no bytes (koktok: 256 slots). Intervals are 95 %, by bootstrap over files, of the ratio to
the first row.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval.machine import machine
from eval.texts import data_of, split
from eval.trainers import SPECIALS, Cutter, Data, of_model, sentencepiece
from koktok.metrics import Table, Text
from koktok.metrics.statistics import interval

HELD = 10
LARGEST, LONGEST = 60_000, 400  # bytes of a file, characters of a line: beyond them stand tables of data, not code
HELD_BYTES = 200_000  # of English and of code each
DOCUMENTS = (".md", ".rst", ".txt")

Files = list[list[str]]
"""The lines of each file."""


@dataclass(frozen=True)
class Mixture:
    """Training lines, held-out text by kind, and what was read."""

    train: list[str]
    held: dict[str, Files]
    account: str


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def n_bytes(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and len(line) <= LONGEST]


def docstrings(source: str) -> str:
    """All docstrings of a module, as they are indented there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escapes in other people's strings
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return "\n".join(ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))


def installed(folder: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """Path, package, kind ("English" or "code") and lines of every file that counts, in the order of a hash of its path."""
    found = [
        (hashlib.sha256(name.encode()).digest(), name, path)
        for path in folder.rglob("*")
        if path.suffix in (".py", *DOCUMENTS) or path.name == "METADATA"
        for name in [path.relative_to(folder).as_posix()]
    ]
    seen: set[bytes] = set()
    for digest, name, path in sorted(found):
        raw = path.read_bytes()
        content = hashlib.sha256(raw).digest()
        if not 200 <= len(raw) <= LARGEST or content in seen:
            continue
        seen.add(content)
        text = raw.decode("utf-8", errors="replace")
        if len(raw) - len(text) > len(raw) // 50:  # another language
            continue
        # No module gives both, or its docstrings would be read twice.
        english = path.suffix != ".py" or digest[-1] % 2 == 0
        lines = lines_of(docstrings(text) if english and path.suffix == ".py" else text)
        if lines:
            yield name, name.split("/")[0], "English" if english else "code", lines


def mixture(korean: list[str], apart: dict[str, list[str]], share: float) -> Mixture:
    """Korean lines and so many of English and code that these make up `share` of the bytes."""
    wanted = {kind: n_bytes(korean) * share / (1 - share) / 2 for kind in ("English", "code")}
    got = dict.fromkeys(wanted, 0)
    held_bytes = dict.fromkeys(wanted, 0)
    train: list[str] = list(korean)
    held: dict[str, Files] = {
        "Korean": [*apart.values()],
        **{k: [] for k in wanted},
    }
    packages, files = set(), 0
    for name, package, kind, lines in installed(Path(sysconfig.get_paths()["purelib"])):
        if int.from_bytes(hashlib.sha256(f"held:{name}".encode()).digest()[:4]) % HELD == 0:
            if held_bytes[kind] < HELD_BYTES:
                held[kind].append(lines)
                held_bytes[kind] += n_bytes(lines)
        elif got[kind] < wanted[kind]:
            train += lines
            got[kind] += n_bytes(lines)
            packages.add(package)
            files += 1
        if all(got[k] >= wanted[k] and held_bytes[k] >= HELD_BYTES for k in wanted):
            break
    sizes = ", ".join(f"{kind} {n / 1e6:.2f} MB" for kind, n in {"Korean": n_bytes(korean), **got}.items())
    out = ", ".join(f"{kind} {sum(map(n_bytes, texts)) / 1e6:.2f} MB" for kind, texts in held.items())
    return Mixture(train, held, f"trained on {sizes} ({files} files of {len(packages)} packages); held out {out}")


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def squeezed(line: str) -> str:
    return " ".join(line.split())


COLUMNS: dict[str, tuple[str, Callable[[str], str], Callable[[str], int]]] = {
    "Korean / word": ("Korean", str, lambda line: len(line.split())),
    "English / word": ("English", str, lambda line: len(line.split())),
    "English, squeezed / word": ("English", squeezed, lambda line: len(line.split())),
    "code / line": ("code", str, lambda _: 1),
    "code / byte": ("code", str, lambda line: len(line.encode()) + 1),
    "code, squeezed / line": ("code", squeezed, lambda _: 1),
}
"""Name: which text, what is encoded of each line, and what the tokens are divided by."""

Scores = dict[str, np.ndarray]


def score(cutter: Cutter, held: dict[str, Files]) -> Scores:
    """Tokens and units of each file, by column."""
    return {
        name: np.array([[sum(len(cutter(seen(x))) for x in lines), sum(map(unit, lines))] for lines in held[kind]])
        for name, (kind, seen, unit) in COLUMNS.items()
    }


def show(name: str, scores: Scores, base: Scores, seconds: float) -> None:
    cells = []
    for column, table in scores.items():
        tokens, units = table.sum(axis=0)
        both = Table({"here": table[:, 0], "first": base[column][:, 0]}, np.arange(len(table)))
        drawn = both.draws(1000, 0)
        low, high = (None, None) if drawn is None else interval(drawn["here"] / drawn["first"])
        cells.append(f"{tokens / units:.3f} ({tokens / base[column][:, 0].sum():.3f} [{low:.3f}, {high:.3f}])")
    print(f"| {name} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)


# ── tokenizers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def peers(mixed: Mixture, size: int) -> Iterator[tuple[str, Callable[[], Cutter]]]:
    data = Data(mixed.train, Text.of({}), [])
    spaces = {"split_by_unicode_script": False, "split_by_number": False}
    keeps = {"remove_extra_whitespaces": False}
    alone = {"allow_whitespace_only_pieces": True}
    for name, options in (
        ("spaces only", spaces),
        ("its defaults", {}),
        ("spaces only, keeps white space", spaces | keeps),
        ("its defaults, keeps white space", keeps),
        ("spaces only, keeps white space, runs of spaces", spaces | keeps | alone),
        ("its defaults, keeps white space, runs of spaces", keeps | alone),
        (
            "spaces only, single digits, keeps white space, runs of spaces",
            spaces | keeps | alone | {"split_digits": True},
        ),
    ):
        yield f"SentencePiece unigram, {name}", lambda o=options: sentencepiece(data, size, model_type="unigram", **o)


def ours(
    mixed: Mixture, size: int, presets: list[str], reserve: dict[str, float] | None, patterns: list[str]
) -> Iterator[tuple[str, Cutter, float]]:
    from koktok.count import count_words
    from koktok.count.prepared import prepare
    from koktok.segment import Policy, segment_counts
    from koktok.segment.kiwi import KiwiSegmenter
    from koktok.text.normalize import Normalizer
    from koktok.text.pretokenize import Pattern
    from koktok.tokenizer.unigram_model import UnigramModel
    from koktok.train.unigram import PRESETS, train_unigrams

    words = count_words(mixed.train)
    for written in patterns:
        clock = time.perf_counter()
        split, _, digits = written.partition(":")
        pattern = Pattern(split=split, digits=digits or "free")
        counts = segment_counts(prepare(words, Normalizer(), pattern), KiwiSegmenter(), Policy.parse("morphemes"))
        print(f"\n{counts!r}, analysed in {time.perf_counter() - clock:.0f} s\n", file=sys.stderr)
        clock = time.perf_counter()
        trained = train_unigrams(
            counts,
            points=[PRESETS[name] for name in presets],
            vocab_sizes=[size],
            specials=SPECIALS,
            crosses=pattern.crosses,
            **({"reserve": reserve} if reserve else {}),
        )
        seconds = (time.perf_counter() - clock) / len(presets)
        for name in presets:
            yield (
                f"koktok {name}, {written}",
                of_model(UnigramModel(trained[name, size].vocab), pattern.pretokenize),
                seconds,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--cap", type=int, default=20_000, help="eojeols of each Korean file")
    parser.add_argument("--share", type=float, default=0.3, help="of the bytes that are English and code")
    parser.add_argument("--presets", default="short,balanced")
    parser.add_argument("--patterns", default="eojeol,scripts,eojeol:single", help="splits, with :digits")
    parser.add_argument("--reserve", default="", help="script=share of the pieces, as in latin=.3,hangul=.6")
    parser.add_argument("--peers", default="all", help="all, or only the first")
    given = parser.parse_args()
    mixed = mixture(*split(given.data / "text", given.cap), given.share)
    print(f"{machine()}\n{mixed.account}; vocabulary {given.size:,}\n")
    print(f"| tokenizer | {' | '.join(COLUMNS)} | s |\n|{'---|' * (len(COLUMNS) + 2)}")
    base = None
    for i, (name, make) in enumerate(peers(mixed, given.size)):
        if i and given.peers != "all":
            break
        clock = time.perf_counter()
        cutter = make()
        seconds = time.perf_counter() - clock
        scores = score(cutter, mixed.held)
        base = base or scores
        show(name, scores, base, seconds)
    assert base is not None
    reserve = {script: float(share) for script, share in (pair.split("=") for pair in given.reserve.split(",") if pair)}
    for name, cutter, seconds in ours(mixed, given.size, given.presets.split(","), reserve, given.patterns.split(",")):
        show(name, score(cutter, mixed.held), base, seconds)


if __name__ == "__main__":
    main()
