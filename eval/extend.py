"""Extensions of published vocabularies beside what people use for it: tokens, boundaries, what stays as it was, libraries, time.

    python -m eval.extend DATA [--bases package:qwen3,package:llama3,package:o200k_base,package:mistral-v1]
        [--sizes 1024,2048,4096,8192,16384,32768] [--at 8192] [--nu 0,0.5,0.75,0.85,1] [--other-mb 100] [--lines 10000]
        [--work FOLDER] [--report FILE]

DATA is a folder with `text/`, or `corpus:bench-ko`; all rows learn from the same lines and are counted on the same held-out ones. Rows:

* `koktok`, one list for each penalty `--nu`, cut at every size.
* `continued`: continued BPE training as taidopurason/tokenizer-extension does it (arXiv:2512.03989), written anew from its description:
  pre-tokens of the base's pattern, encoded by the base, then BPE with a lazy heap; ids behind the base's, one merge a token.
* `SentencePiece merged`: a SentencePiece BPE model of the same text, its pieces put behind those of the base with falling scores, as
  Chinese-LLaMA does it (arXiv:2304.08177); only where the base is a SentencePiece model.
* `add_tokens`: the same pieces with Hangul as added tokens of the base.

Tokens are those of eojeols with Hangul, and of all; F1 is of token borders between two syllables against Kiwi's borders of morphemes.
At `--at` pieces: ids of lines without Hangul that changed (100 MB: Chinese and emoji made by chance, corpus:open-en and corpus:code,
Python's own library, installed packages), new pieces that their own text does not reach, lines of 10,000 that tiktoken, SentencePiece or
llama.cpp (where installed) cut otherwise than Hugging Face does, of those that they cut alike before. Seconds are of one processor,
memory the most that a process of its own took. Lists are kept in `--work`, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import json
import multiprocessing
import os
import pickle
import random
import re
import resource
import sys
import sysconfig
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eval.machine import Told, machine
from eval.texts import CAP, data_of, split
from koktok.corpora.fetch import fetch, texts
from koktok.count.counting import read
from koktok.errors import ArtifactError
from koktok.extension.base_text import prepare
from koktok.extension.base_tokenizer import HANGUL, SPACE, Base, holds_hangul, open_base, runner_of
from koktok.extension.extension_files import definition_of, extended, files_of
from koktok.extension.learn import LearnOptions, PieceList, learn
from koktok.files import cache_dir
from koktok.hangul import syllable_mask
from koktok.segment import Policy, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.kiwi import KiwiSegmenter
from koktok.segment.segmented import Kind
from koktok.sentencepiece_model import NORMAL, ModelProto
from koktok.training.lattice import TRUST

BASES = "package:qwen3,package:llama3,package:o200k_base,package:mistral-v1"


# ── the rows: each gives an ordered list, and a tokenizer of any size ─────────────────────────────────────────────────


class Trained(NamedTuple):
    """What a training in a process of its own gave."""

    made: Any
    seconds: dict[str, float]
    megabytes: float


def train_koktok(reference: str, train: list[str], size: int, nu: float) -> tuple[PieceList, dict[str, float]]:
    clock = Clock()
    base = open_base(reference)
    clock("open")
    reading = read(train, holdout=0.0)
    clock("count")
    text = prepare(base, reading, CachedSegmenter(KiwiSegmenter(threads=1)))
    clock("Kiwi (cached) and base")
    return learn(base, text, LearnOptions(size, nu)), clock("learn")


def train_continued(
    reference: str, train: list[str], size: int
) -> tuple[tuple[list[str], list[tuple[str, str]]], dict[str, float]]:
    """Continued BPE: new tokens, and all merges in their order, those that make an old token among them."""
    clock = Clock()
    base = open_base(reference)
    clock("open")
    n: Counter[str] = Counter()
    for line in train:
        n.update(_pretokens(base, line))
    clock("count")
    words: list[list[str]] = []
    times: list[int] = []
    model = base.runner.model
    for word, count in n.items():
        found = [token.value for token in model.tokenize(word)]
        if len(found) > 1:
            words.append(found)
            times.append(count)
    clock("encode")
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
        changes: Counter[tuple[str, str]] = Counter()
        for i in places.pop(pair):
            tokens, count = words[i], times[i]
            for other in pairwise(tokens):
                changes[other] -= count
            out, k = [], 0
            while k < len(tokens):
                hit = tokens[k : k + 2] == [*pair]
                out.append(joined if hit else tokens[k])
                k += 1 + hit
            words[i] = out
            for other in pairwise(out):
                changes[other] += count
                places[other].add(i)
        del pairs[pair]
        for other, change in changes.items():
            if other != pair and change:
                pairs[other] += change
                if change > 0:
                    heapq.heappush(heap, (-pairs[other], other))
    return (new, merges), clock("learn")


def _pretokens(base: Base, line: str) -> list[str]:
    """Pre-tokens as the base's library cuts them; of SentencePiece's BPE, which cuts nowhere, words with their space."""
    normal = base.runner.normalizer.normalize_str(line) if base.runner.normalizer else line
    if base.kind != "bytes" and base.runner.pre_tokenizer is None:
        return re.findall(f"{SPACE}*[^{SPACE}]*", normal)[:-1]
    return [word for word, _ in base.runner.pre_tokenizer.pre_tokenize_str(normal)]


def train_sentencepiece(reference: str, train: list[str], size: int) -> tuple[list[str], dict[str, float]]:
    """Pieces of a SentencePiece BPE model of the text, in their order, that the base has not; enough of them with Hangul."""
    import sentencepiece

    clock = Clock()
    base = open_base(reference)
    had = {string.decode(errors="replace").replace(base.space.decode(), SPACE) for string in base.strings}
    clock("open")
    with tempfile.TemporaryDirectory() as place:
        text = Path(place) / "text"
        text.write_text("\n".join(train), encoding="utf-8")
        more = size
        while True:  # until enough of them are new
            sentencepiece.SentencePieceTrainer.train(
                input=str(text),
                model_prefix=str(text),
                model_type="bpe",
                vocab_size=more + 6000,
                normalization_rule_name="identity",
                max_sentence_length=1 << 20,
                num_threads=1,
                minloglevel=2,
            )
            proto = sentencepiece.SentencePieceProcessor(model_file=f"{text}.model")
            pieces = [proto.id_to_piece(i) for i in range(3, proto.get_piece_size())]
            new = [piece for piece in pieces if piece not in had]
            if sum(HANGUL.search(piece) is not None for piece in new) >= size:
                return new, clock("learn")
            more *= 2


class Clock:
    """Seconds of the processor since it was asked last, by name."""

    def __init__(self) -> None:
        self.last = time.process_time()
        self.told: dict[str, float] = {}

    def __call__(self, name: str) -> dict[str, float]:
        """All that it has told, that name with it."""
        now = time.process_time()
        self.told[name], self.last = now - self.last, now
        return self.told


def _alone(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Trained:
    made, seconds = function(*arguments)
    return Trained(made, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def trained(work: Path, function: Callable[..., Any], *arguments: Any) -> Trained:
    """A training in a process of its own, or what it gave before."""
    text = hashlib.sha256("\n".join(arguments[1]).encode()).hexdigest()
    name = hashlib.sha256(repr((function.__name__, arguments[0], text, arguments[2:])).encode()).hexdigest()[:16]
    file = work / f"{function.__name__}-{name}.pickle"
    if file.is_file():
        found: Trained = pickle.loads(file.read_bytes())
        return found
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(_alone, function, arguments).result()
    work.mkdir(parents=True, exist_ok=True)
    file.write_bytes(pickle.dumps(found))
    return found


def continued(base: Base, made: tuple[list[str], list[tuple[str, str]]], size: int) -> dict[str, Any]:
    """tokenizer.json of the first tokens and the merges up to the last of them."""
    new, merges = made
    kept, seen, have = [], 0, set(base.ids)
    for left, right in merges:
        if left + right not in have:
            if seen == size:
                break
            have.add(left + right)
            seen += 1
        kept.append([left, right])
    pinned = {token: i for i, token in base.added.items()}
    table = base.ids | pinned | {token: base.size + k for k, token in enumerate(new[:size])}
    return base.definition | {"model": base.model | {"vocab": table, "merges": [*map(list, base.merges), *kept]}}


def merged(base: Base, pieces: Sequence[str]) -> tuple[dict[str, Any], bytes]:
    """The base's SentencePiece model with pieces behind, and what transformers' converter makes of it."""
    proto = ModelProto(base.files["tokenizer.model"])
    lowest = min(row.score for row in proto.pieces)
    for k, piece in enumerate(pieces):
        proto.add(piece, lowest - 1 - k, NORMAL)
    table = base.ids | {piece: base.size + k for k, piece in enumerate(pieces)}
    found = []
    for piece, i in sorted(table.items(), key=lambda row: row[1]):
        ways = [(piece[:k], piece[k:]) for k in range(1, len(piece))]
        here = [(table[a], table[b], [a, b]) for a, b in ways if a in table and b in table]
        found += [(i, pair) for _, _, pair in sorted(here)]
    new = [pair for i, pair in found if i >= base.size]
    return base.definition | {
        "model": base.model | {"vocab": table, "merges": [*map(list, base.merges), *new]}
    }, proto.SerializeToString()


def with_added(base: Base, pieces: Sequence[str]) -> dict[str, Any]:
    """tokenizer.json with pieces as added tokens, a space before them where they begin a word."""
    rows = [
        {"id": base.size + k, "content": piece.replace(SPACE, " "), "special": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for k, piece in enumerate(pieces)
    ]
    return base.definition | {"added_tokens": [*base.definition.get("added_tokens", []), *rows]}


# ── what is told of a row ─────────────────────────────────────────────────────────────────────────────────────────────


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
            trusted = {int(cut.offset[k]) for k in rows if TRUST.get(Kind(int(cut.kind[k])).label, TRUST["rest"]) > 0}
            self.cuts.append(trusted & self.between[-1])

    def figures(self, runner: Any, *, prefixes: bool) -> Figures:
        """What a tokenizer makes of the words."""
        shown = [word.lstrip(" ") for word in self.words] if prefixes else self.words
        tokens = np.zeros(len(shown), np.int64)
        kept = borders = cuts = 0
        for first in range(0, len(shown), 1 << 14):
            for i, found in enumerate(
                runner.encode_batch(shown[first : first + (1 << 14)], add_special_tokens=False), first
            ):
                tokens[i] = len(found.ids)
                shift = len(self.words[i]) - len(shown[i])
                spans = found.offsets
                ends = {a + shift for (_, b), (a, _) in pairwise(spans) if a == b} & self.between[i]
                times = int(self.n[i])
                borders += len(ends) * times
                kept += len(ends & self.cuts[i]) * times
                cuts += len(self.cuts[i]) * times
        n, h = self.n, self.hangul
        precision, recall = kept / max(1, borders), kept / max(1, cuts)
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        return Figures(
            float((tokens * n)[h].sum() / n[h].sum()), float((tokens * n).sum() / n.sum()), precision, recall, f1
        )


class Figures(NamedTuple):
    """Of one tokenizer on held-out words."""

    hangul: float
    every: float
    precision: float
    recall: float
    f1: float


def other_lines(megabytes: int) -> Iterator[str]:
    """Lines without Hangul, the same wherever the same packages are.

    A fifth is Chinese and emoji made by chance; then come corpus:open-en and corpus:code, Python's own library, and installed packages
    in the order of their names.
    """
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
    places = sysconfig.get_paths()
    for file in chain(
        texts("open-en"), _files(fetch("code")), _files(Path(places["stdlib"])), _files(Path(np.__file__).parent.parent)
    ):
        if made >= want:
            return
        if file.suffix not in (".py", ".pyi", ".md", ".rst", ".txt", ".json", ".html", ".h"):
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for line in text.splitlines():
            if line and len(line) < 5000 and not holds_hangul(line.encode()):
                made += len(line.encode()) + 1
                yield line


def _files(place: Path) -> Iterator[Path]:
    """Files below a folder in the order of their names, without a look at all of them first; packages that others installed apart."""
    for folder, inner, names in os.walk(place):
        inner[:] = sorted(name for name in inner if name != "site-packages")
        yield from (Path(folder, name) for name in sorted(names))


def changed(base: Base, rows: dict[str, Any], megabytes: int) -> tuple[dict[str, tuple[int, int]], int]:
    """By row the lines whose ids changed and the tokens of them, and the bytes that were looked at."""
    found = {name: [0, 0] for name in rows}
    looked = 0
    batch: list[str] = []

    def look() -> None:
        before = [row.ids for row in base.runner.encode_batch_fast(batch, add_special_tokens=False)]
        for name, runner in rows.items():
            after = runner.encode_batch_fast(batch, add_special_tokens=False)
            for a, b in zip(before, after, strict=True):
                if a != b.ids:
                    found[name][0] += 1
                    found[name][1] += len(a)

    for line in other_lines(megabytes):
        looked += len(line.encode()) + 1
        batch.append(line)
        if len(batch) == 20_000:
            look()
            batch = []
    if batch:
        look()
    return {name: (lines, tokens) for name, (lines, tokens) in found.items()}, looked


def unreachable(base: Base, definition: dict[str, Any]) -> int:
    """New pieces that neither their own text nor, for bytes of half a character, their own bytes become."""
    runner, table = runner_of(definition), definition["model"]["vocab"]
    table = {row[0]: i for i, row in enumerate(table)} if isinstance(table, list) else table
    lost = 0
    for token, i in table.items():
        if i < base.size or token in base.added.values():
            continue
        try:
            text = base.piece_bytes(token).decode().replace(SPACE, " ")
        except UnicodeDecodeError:
            lost += [found.id for found in runner.model.tokenize(token)] != [i]
            continue
        tried = (text, text.lstrip(" "), f"a{text}", f"가{text}")  # no piece joins a Latin letter and Hangul
        lost += not any(i in runner.encode(one, add_special_tokens=False).ids for one in tried)
    return lost


def libraries(
    base: Base, definition: dict[str, Any], new: dict[bytes, int], model: bytes | None, lines: list[str]
) -> str:
    """How many lines other libraries cut otherwise than Hugging Face does, of those that they cut alike before."""
    before, after = (
        base.encode(lines),
        [row.ids for row in runner_of(definition).encode_batch_fast(lines, add_special_tokens=False)],
    )
    told = []

    def tell(name: str, old: list[list[int]], now: list[list[int]]) -> None:
        alike = [k for k in range(len(lines)) if old[k] == before[k]]
        other = sum(now[k] != after[k] for k in alike)
        told.append(f"{name} {other:,} of {len(alike):,}")

    if base.ranks is not None:
        ranks = replace(base.ranks, specials={}, ranks={**base.ranks.ranks, **new})
        old = replace(base.ranks, specials={})
        tell("tiktoken", *(made.encoding().encode_ordinary_batch(lines) for made in (old, ranks)))
    if model is not None:
        import sentencepiece

        both = (base.files["tokenizer.model"], model)
        tell(
            "SentencePiece", *(sentencepiece.SentencePieceProcessor(model_proto=proto).encode(lines) for proto in both)
        )
    if (table := _gguf_ids(base.definition, base.files.get("tokenizer.model"), lines)) is not None:
        now = _gguf_ids(definition, model, lines)
        if now is not None:
            tell("llama.cpp", table, now)
    return "; ".join(told)


def _gguf_ids(definition: dict[str, Any], model: bytes | None, lines: list[str]) -> list[list[int]] | None:
    """Ids of llama.cpp, by the binding that the tests use; None where it is not installed or has no such tokenizer."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    try:
        from _pytest.outcomes import Skipped
        from llama_cpp import llama_cpp_ids  # type: ignore[import-not-found]

        from koktok.foreign import LibraryTokenizer, gguf_table, load
        from koktok.formats import gguf
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / ("tokenizer.model" if model else "tokenizer.json")
        file.write_bytes(model or json.dumps(definition).encode())
        try:
            opened = load(str(file))
            assert isinstance(opened, LibraryTokenizer)
            try:
                table = gguf_table(opened)
            except (
                ArtifactError
            ):  # a base of ranks takes whole pre-tokens as tiktoken does; Qwen's own file does not say so
                plain = definition | {"model": definition["model"] | {"ignore_merges": False}}
                file.write_text(json.dumps(plain), encoding="utf-8")
                opened = load(str(file))
                assert isinstance(opened, LibraryTokenizer)
                table = gguf_table(opened)
            gguf.write(table, Path(place) / "table.gguf", name="table")
            found: list[list[int]] = llama_cpp_ids(Path(place) / "table.gguf", lines)
        except (Skipped, Exception) as error:
            print(f"llama.cpp: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            return None
        return found


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval.extend", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--bases", default=BASES)
    parser.add_argument("--sizes", default="1024,2048,4096,8192,16384,32768")
    parser.add_argument("--at", type=int, default=8192)
    parser.add_argument("--nu", default="0,0.5,0.75,0.85,1")
    parser.add_argument("--other-mb", type=int, default=100)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--cap", type=int, default=CAP, help="eojeols that are read of a file")
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval" / "extend")
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    told = Told(given.report)
    train, by_file = split(data_of(given.data) / "text", given.cap)
    lines = [line for some in by_file.values() for line in some]
    held = Held(lines)
    sizes = sorted({*map(int, given.sizes.split(",")), given.at})
    told(f"{machine()}\n")
    told(
        f"{sum(len(line.encode()) + 1 for line in train) / 1e6:.1f} MB to learn from, "
        f"{int(held.n.sum()):,} held-out eojeols, {int(held.n[held.hangul].sum()):,} of them with Hangul"
    )
    for reference in given.bases.split(","):
        _base(reference, train, held, lines[: given.lines], sizes, given, told)


def _base(
    reference: str,
    train: list[str],
    held: Held,
    lines: list[str],
    sizes: list[int],
    given: argparse.Namespace,
    told: Told,
) -> None:
    base, largest = open_base(reference), max(sizes)
    told(f"\n## {reference}, {base.size:,} ids\n")
    head = ("row", "pieces", "tokens/eojeol", "of all eojeols", "precision", "kept", "F1")
    told(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")

    def tell(name: str, size: int, runner: Any) -> None:
        found = held.figures(runner, prefixes=base.prefixes)
        told(f"| {name} | {size:,} | {' | '.join(f'{value:.3f}' for value in found)} |")

    tell("the base", 0, base.runner)
    at: dict[str, tuple[dict[str, Any], dict[bytes, int], bytes | None]] = {}
    rows: dict[str, Trained] = {}
    for nu in map(float, given.nu.split(",")):
        name = f"koktok, nu {nu:g}"
        rows[name] = made = trained(given.work, train_koktok, reference, train, given.at, nu)
        more = trained(given.work, train_koktok, reference, train, largest, nu) if largest > given.at else made
        for size in sizes:
            source = made.made if size <= given.at else more.made
            extension = extended(base, source, size)
            definition = definition_of(extension)
            tell(name, size, runner_of(definition))
            if size == given.at:
                new = {piece.string: i for piece, i in zip(extension.pieces, extension.ids, strict=True)}
                at[name] = (definition, new, files_of(extension).get("tokenizer.model"))
    rows["continued"] = made = trained(given.work, train_continued, reference, train, largest)
    for size in sizes:
        definition = continued(base, made.made, size)
        tell("continued", size, runner_of(definition))
        if size == given.at:
            strings = {base.piece_bytes(token): base.size + k for k, token in enumerate(made.made[0][:size])}
            at["continued"] = (definition, strings, None)
    pieces = trained(given.work, train_sentencepiece, reference, train, largest)
    with_hangul = [piece for piece in pieces.made if HANGUL.search(piece)]
    if "tokenizer.model" in base.files and base.kind == "chars":
        rows["SentencePiece merged"] = pieces
        for size in sizes:
            definition, model = merged(base, pieces.made[:size])
            tell("SentencePiece merged", size, runner_of(definition))
            if size == given.at:
                at["SentencePiece merged"] = (definition, {}, model)
    for size in (size for size in sizes if size <= len(with_hangul)):
        definition = with_added(base, with_hangul[:size])
        tell("add_tokens", size, runner_of(definition))
        if size == given.at:
            at["add_tokens"] = (definition, {}, None)
    told("\n| row | seconds of the processor | MB at most |\n|---|---|---|")
    for name, row in rows.items():
        parts = ", ".join(f"{part} {seconds:.1f}" for part, seconds in row.seconds.items())
        told(
            f"| {name}, {given.at if name.startswith('koktok') else largest:,} pieces | {parts} | {row.megabytes:,.0f} |"
        )
    runners = {name: runner_of(row[0]) for name, row in at.items()}
    other, looked = changed(base, runners, given.other_mb)
    told(f"\nAt {given.at:,} pieces; text without Hangul: {looked / 1e6:.1f} MB.\n")
    told("| row | lines without Hangul with other ids | unreachable | lines cut otherwise |\n|---|---|---|---|")
    for name, (definition, new, proto) in at.items():
        lost = "0 (by definition)" if name == "add_tokens" else f"{unreachable(base, definition):,}"
        told(f"| {name} | {other[name][0]:,} | {lost} | {libraries(base, definition, new, proto, lines)} |")


if __name__ == "__main__":
    main()
