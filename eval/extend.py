"""Extensions of published vocabularies beside their base and their peers.

    python -m eval.extend DATA [--bases package:qwen3,package:llama3,package:o200k_base,package:mistral-v1]
        [--sizes 8192] [--nu 0,0.5,0.75,0.85,1] [--other-mb 100] [--report FILE]
    python -m eval.extend DATA --model MODEL --work FOLDER ...    bits per byte of a model, see eval/extended_model.py

DATA is a folder with `text/`, or `corpus:bench-ko`; all rows learn from the same lines and are counted on the same held-out ones. Rows:

* `koktok`, a list for each penalty `--nu`.
* `continued`: continued BPE training as taidopurason/tokenizer-extension does it (arXiv:2512.03989), written anew from its description:
  pre-tokens of the base's pattern, encoded by the base, then BPE with a lazy heap; ids behind the base's, one merge a token.

Tokens are those of eojeols with Hangul, and of all; F1 is of token borders between two syllables against Kiwi's borders of morphemes.
At the largest size: lines without Hangul whose ids changed (random Chinese and emoji, corpus:open-en and corpus:code, Python's own
library, installed packages). That new pieces are reached and that libraries agree are laws of the tests (tests/extension).
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import re
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eval.extended_model import bits_of_model
from eval.machine import Told, machine
from eval.texts import CAP, data_of, split
from koktok.corpora.fetch import fetch, texts
from koktok.count.counting import read
from koktok.extension.base_text import prepare
from koktok.extension.base_tokenizer import HANGUL, Base, holds_hangul, open_base, opened
from koktok.extension.extension_files import definition_of, extended
from koktok.extension.learn import ExtendOptions, PieceList, learn
from koktok.hangul import syllable_mask
from koktok.model.vocab import SPACE_MARK
from koktok.protocol.agree import agreement
from koktok.segment import Policy, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.kiwi import KiwiSegmenter
from koktok.segment.segmented import BoundaryKind
from koktok.training.lattice import TRUST

BASES = "package:qwen3,package:llama3,package:o200k_base,package:mistral-v1"
Built = dict[str, Any]
"""The tokenizer.json of an extension."""

Row = tuple[Callable[[str, list[str], int], Any], Callable[[Base, Any, int], Built]]
"""A way to extend: a training, and what builds any size from it."""


def train_koktok(reference: str, train: list[str], size: int, nu: float) -> PieceList:
    """Learn pieces as `koktok extend` does."""
    base = open_base(reference)
    text = prepare(base, read(train, holdout=0.0), CachedSegmenter(KiwiSegmenter(threads=1)))
    return learn(base, text, ExtendOptions(add=size, nu=nu))


def build_koktok(base: Base, pieces: PieceList, size: int) -> Built:
    """Extend the base by the first pieces."""
    return definition_of(extended(base, pieces, size))


def train_continued(reference: str, train: list[str], size: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Learn new tokens, and all merges in their order, those of old tokens among them."""
    base = open_base(reference)
    n: Counter[str] = Counter()
    for line in train:
        n.update(_pretokens(base, line))
    words: list[list[str]] = []
    times: list[int] = []
    model = base.runner.model
    for word, count in n.items():
        tokens = [token.value for token in model.tokenize(word)]
        if len(tokens) > 1:
            words.append(tokens)
            times.append(count)
    pairs: Counter[tuple[str, str]] = Counter()
    places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for i, tokens in enumerate(words):
        for pair in pairwise(tokens):
            pairs[pair] += times[i]
            places[pair].add(i)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    old = set(base.ids)
    new: list[str] = []
    merges: list[tuple[str, str]] = []
    while len(new) < size and heap:
        negative, pair = heapq.heappop(heap)
        if pairs[pair] != -negative:
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
            continue
        joined = "".join(pair)
        merges.append(pair)
        if joined not in old:
            old.add(joined)
            new.append(joined)
        shift: Counter[tuple[str, str]] = Counter()
        for i in places.pop(pair):
            tokens, count = words[i], times[i]
            for other in pairwise(tokens):
                shift[other] -= count
            out, k = [], 0
            while k < len(tokens):
                hit = tokens[k : k + 2] == [*pair]
                out.append(joined if hit else tokens[k])
                k += 1 + hit
            words[i] = out
            for other in pairwise(out):
                shift[other] += count
                places[other].add(i)
        del pairs[pair]
        for other, change in shift.items():
            if other != pair and change:
                pairs[other] += change
                if change > 0:
                    heapq.heappush(heap, (-pairs[other], other))
    return new, merges


def _pretokens(base: Base, line: str) -> list[str]:
    """Pre-tokens as the base's library cuts them; of SentencePiece's BPE, which cuts nowhere, words with their space."""
    normal = base.runner.normalizer.normalize_str(line) if base.runner.normalizer else line
    if base.kind != "bytes" and base.runner.pre_tokenizer is None:
        return re.findall(f"{SPACE_MARK}*[^{SPACE_MARK}]*", normal)[:-1]
    return [word for word, _ in base.runner.pre_tokenizer.pre_tokenize_str(normal)]


def build_continued(base: Base, learnt: tuple[list[str], list[tuple[str, str]]], size: int) -> Built:
    """Add the first tokens, and the merges up to the last of them."""
    new, merges = learnt
    kept, have = [], {*base.ids, *new[:size]}
    for left, right in merges:
        if left + right not in have:
            break
        kept.append([left, right])
    pinned = {token: i for i, token in base.added.items()}
    table = base.ids | pinned | {token: base.size + k for k, token in enumerate(new[:size])}
    return base.definition | {"model": base.model | {"vocab": table, "merges": [*map(list, base.merges), *kept]}}


def rows_of(penalties: Sequence[float]) -> dict[str, Row]:
    """The ways to extend."""
    ours = {f"koktok, nu {nu:g}": (partial(train_koktok, nu=nu), build_koktok) for nu in penalties}
    return {**ours, "continued": (train_continued, build_continued)}


class Held:
    """Held-out words with Kiwi's borders."""

    def __init__(self, lines: list[str]) -> None:
        counts = read(lines, holdout=0.0).train
        cut = segment_counts(counts, CachedSegmenter(KiwiSegmenter(threads=1)), Policy.parse("morphemes"))
        self.words, self.n = list(cut.words), np.array(cut.n, np.int64)
        self.hangul = np.array([HANGUL.search(word) is not None for word in self.words])
        self.between: list[set[int]] = []
        self.cuts: list[set[int]] = []
        for i, word in enumerate(self.words):
            mask = syllable_mask(np.frombuffer(word.encode("utf-32-le"), np.uint32))
            self.between.append({k for k in range(1, len(word)) if mask[k] and mask[k - 1]})
            rows = range(int(cut.start[i]), int(cut.start[i + 1]))
            trusted = {
                int(cut.offset[k]) for k in rows if TRUST.get(BoundaryKind(int(cut.kind[k])).label, TRUST["rest"]) > 0
            }
            self.cuts.append(trusted & self.between[-1])

    def figures(self, tokenizer: Base) -> tuple[float, ...]:
        """Return tokens an eojeol with Hangul and of all, precision, recall and F1 of the borders."""
        shown = [word.lstrip(" ") for word in self.words] if tokenizer.prefixes else self.words
        tokens = np.zeros(len(shown), np.int64)
        kept = borders = cuts = 0
        for first in range(0, len(shown), 1 << 14):
            batch = tokenizer.runner.encode_batch(shown[first : first + (1 << 14)], add_special_tokens=False)
            for i, found in enumerate(batch, first):
                tokens[i] = len(found.ids)
                shift, times = len(self.words[i]) - len(shown[i]), int(self.n[i])
                ends = {a + shift for (_, b), (a, _) in pairwise(found.offsets) if a == b} & self.between[i]
                borders += len(ends) * times
                kept += len(ends & self.cuts[i]) * times
                cuts += len(self.cuts[i]) * times
        n, h = self.n, self.hangul
        precision, recall = kept / max(1, borders), kept / max(1, cuts)
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        return float((tokens * n)[h].sum() / n[h].sum()), float((tokens * n).sum() / n.sum()), precision, recall, f1


def other_lines(megabytes: int) -> Iterator[str]:
    """Yield lines without Hangul, the same with the same packages; a fifth is random Chinese and emoji."""
    want = megabytes * 1_000_000
    chance = random.Random(16)
    han = [chr(code) for code in range(0x4E00, 0xA000)]
    emoji = [chr(code) for code in (*range(0x1F300, 0x1F650), *range(0x1F680, 0x1F6FC), *range(0x1F900, 0x1FA00))]
    made = 0
    while made < want // 5:
        marks, n = chance.choice(((han, 40), (han, 40), (emoji, 12))), chance.randint(1, 40)
        line = "".join(chance.choice(marks[0]) + chance.choice(("", "", "", " ", "，", "\u200d")) for _ in range(n))
        made += len(line.encode())
        yield line
    places = (Path(sysconfig.get_paths()["stdlib"]), Path(np.__file__).parent.parent)
    folders = (files for place in (fetch("code"), *places) for files in _files(place))
    for file in chain(texts("open-en"), folders):
        if made >= want:
            return
        if file.suffix in (".py", ".pyi", ".md", ".rst", ".txt", ".json", ".html", ".h"):
            for line in file.read_text(encoding="utf-8", errors="ignore").splitlines():
                if line and len(line) < 5000 and not holds_hangul(line.encode()):
                    made += len(line.encode()) + 1
                    yield line


def _files(place: Path) -> Iterator[Path]:
    """Yield the files below a folder in the order of their names, lazily, without its packages."""
    for folder, inner, names in os.walk(place):
        inner[:] = sorted(name for name in inner if name != "site-packages")
        yield from (Path(folder, name) for name in sorted(names))


def changed(base: Base, rows: dict[str, Base], megabytes: int) -> tuple[Counter[str], int]:
    """Count the lines without Hangul with other ids, by row, and the bytes that were compared."""
    differing: Counter[str] = Counter()
    compared, lines = 0, other_lines(megabytes)
    while batch := list(islice(lines, 20_000)):
        compared += sum(len(line.encode()) + 1 for line in batch)
        before = base.encode(batch)
        for name, new in rows.items():
            differing[name] += agreement(zip(batch, before, new.encode(batch), strict=True)).differing
    return differing, compared


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m eval.extend", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--bases", default=BASES)
    parser.add_argument("--sizes", default="8192")
    parser.add_argument("--nu", default="0,0.5,0.75,0.85,1")
    parser.add_argument("--other-mb", type=int, default=100)
    parser.add_argument("--report", type=Path)
    of_model = parser.add_argument_group("bits per byte of a model")
    of_model.add_argument("--model", help="a folder, a GGUF file, or package:NAME")
    of_model.add_argument("--work", type=Path, help="folder for the model and its extensions")
    of_model.add_argument("--cap", type=int, default=CAP, help="eojeols that are read of each file")
    of_model.add_argument("--held-kb", type=int, default=40, help="held-out text of each language")
    of_model.add_argument("--steps", type=int, default=200, help="windows that new rows are trained on")
    of_model.add_argument("--rate", type=float, default=0.003)
    of_model.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.model:
        if given.work is None:
            parser.error("expected --work FOLDER with --model; add --work FOLDER")
        bits_of_model(given)
        return
    say = Told(given.report)
    train, by_file = split(data_of(given.data) / "text")
    lines = [line for some in by_file.values() for line in some]
    held = Held(lines)
    sizes, penalties = sorted(map(int, given.sizes.split(","))), [*map(float, given.nu.split(","))]
    say(f"{machine()}\n")
    say(
        f"{sum(len(line.encode()) + 1 for line in train) / 1e6:.1f} MB to learn from, "
        f"{int(held.n.sum()):,} held-out eojeols, {int(held.n[held.hangul].sum()):,} of them with Hangul"
    )
    for base in map(open_base, given.bases.split(",")):
        say(f"\n## {base.name}, {base.size:,} ids\n")
        head = ("row", "pieces", "tokens/eojeol", "of all eojeols", "precision", "kept", "F1")
        say(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
        say(f"| the base | 0 | {' | '.join(f'{value:.3f}' for value in held.figures(base))} |")
        largest: dict[str, Base] = {}
        for name, (learnt_by, build) in rows_of(penalties).items():
            learnt = learnt_by(base.name, train, sizes[-1])
            for size in sizes:
                largest[name] = replace(base, tokenizer=opened(build(base, learnt, size)))
                say(f"| {name} | {size:,} | {' | '.join(f'{value:.3f}' for value in held.figures(largest[name]))} |")
        differing, compared = changed(base, largest, given.other_mb)
        say(f"\nAt {sizes[-1]:,} pieces, lines with other ids of {compared / 1e6:.1f} MB without Hangul:\n")
        say("\n".join(f"* {name}: {differing[name]:,}" for name in largest))


if __name__ == "__main__":
    main()
