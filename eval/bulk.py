"""Speed of encoding and decoding in bulk, of one sentence, and of loading, pair by pair against peers.

    python -m eval.bulk --from DATA/text --cache FOLDER [--size 32000] [--megabytes 20] [--runs 5] [--parts encode,...]

Of the blocks of DATA/text some are measured on, and tokenizers of three kinds (unigram; bpe-bytes; bpe-bytes with GPT-2's pattern, for
peers that know no other) are trained on the next ones and kept in `--cache`. In each pair koktok and the peer take turns, `--runs`
times, on the same list of strings or the same file, on one thread; a ratio is the median over the turns of their seconds. Seconds on
the wall and of the processor are both shown: they differ where another program runs. *Cold* is a new table for each turn: every
distinct word is solved in it. *Warm* has seen the text. Compiled code is loaded before the clock starts; what it takes to compile and
to load is a part of its own. Peers whose vocabulary is another say so. `--report FILE` writes the tables as Markdown, and beside them,
as JSON, the seconds of every turn.
"""

from __future__ import annotations

import argparse
import bisect
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from numba import njit
from numba.core.dispatcher import Dispatcher

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from eval.machine import Told, machine
from eval.peers import koktok_peer, train_peer
from eval.texts import base_lines
from koktok.bulk.encoder import BATCH, DOCUMENTS
from koktok.bulk.texts import Texts
from koktok.model.tokens import Tokens
from koktok.tokenizer import TrainedTokenizer

Work = Callable[[], Any]
Peer = Callable[[list[str]], list[Any]]
"""Texts to ids, or to something that has `ids`."""

LOOP = 150_000_000
"""Turns of the loop of arithmetic."""

TRAINED = 25.0
"""Megabytes to train on: so much reaches a vocabulary of 32,000, and more only takes longer."""

KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe-bytes": {"model": "bpe-bytes"},
    "bpe-bytes-gpt2": {"model": "bpe-bytes", "other": {"pretokenize": {"pattern": "gpt2"}}},
}
"""The last one runs in gigatoken, which knows no other pattern better."""

OTHER = " (o200k_base, another vocabulary of 200,000)"
KNOWN = " (bpe-bytes with the pattern of gpt2; it refuses this one)"


def made_from(folder: Path, cache: Path, size: int, megabytes: float) -> tuple[list[str], dict[str, str]]:
    """Lines to measure on, and the folder of a tokenizer of each of `KINDS`, trained on other blocks where there is enough text."""
    lines = base_lines(folder.parent)
    ends = list(itertools.accumulate(len(line.encode()) + 1 for line in lines))
    until = bisect.bisect(ends, min(megabytes * 1e6, ends[-1] / 2))
    train = lines[until : bisect.bisect(ends, ends[until - 1] + TRAINED * 1e6)]
    specs = {kind: train_peer(koktok_peer(f"koktok {kind}", **KINDS[kind]), train, size, cache) for kind in KINDS}
    return lines[:until], {spec.partition(":")[2]: kind for kind, spec in specs.items()}


@dataclass(frozen=True)
class Bench:
    """What every part measures with."""

    text: Path
    lines: list[str]
    megabytes: float
    runs: int
    say: Told
    folders: dict[str, str]  # to the kind
    rounds: dict[str, list[list[float]]]

    def head(self, title: str) -> None:
        """Begin a table of pairs."""
        columns = "| pair | koktok MB/s | peer MB/s | ratio, wall | ratio, processor |"
        self.say(f"\n{title}\n\n{columns}\n|---|---|---|---|---|")
        self.rounds[f"# {title}"] = []

    def show(self, name: str, ours: Work, peer: Work, *, fresh: Callable[[], Any] = lambda: None) -> None:
        """A row of a pair that takes turns; `fresh` is called before each, outside the clock."""
        found = []
        for _ in range(self.runs):
            row: list[float] = []
            for work in (ours, peer):
                fresh()
                gc.collect()
                begun, used = time.perf_counter(), time.process_time()
                kept = work()
                row += [time.perf_counter() - begun, time.process_time() - used]
                del kept  # to free a million strings is no work of the next one
            found.append(row)
        self.rounds[f"{name}: koktok wall, processor; peer wall, processor ({len(self.rounds)})"] = found
        speeds = [statistics.median(self.megabytes / row[i] for row in found) for i in (0, 2)]
        wall, cpu = (statistics.median(row[i + 2] / row[i] for row in found) for i in (0, 1))
        self.say(f"| {name} | {speeds[0]:.1f} | {speeds[1]:.1f} | {wall:.2f} | {cpu:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--from", dest="source", type=Path, required=True, help="text/ of a folder DATA")
    parser.add_argument("--cache", type=Path, required=True, help="folder for what is trained")
    parser.add_argument("--size", type=int, default=32_000, help="ids of what is trained")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--report", type=Path, help="Markdown file for the tables")
    given = parser.parse_args()
    lines, folders = made_from(given.source, given.cache, given.size, given.megabytes)
    with tempfile.TemporaryDirectory() as place:
        text = Path(place) / "text.txt"
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        size = sum(len(line.encode()) for line in lines) / 1e6
        bench = Bench(text, lines, size, given.runs, Told(given.report), folders, {})
        bench.say(f"{machine()}\n\n{bench.megabytes:.1f} MB, {len(lines):,} lines; {given.runs} turns\n")
        for part, folder in itertools.product(given.parts.split(","), folders):
            PARTS[part](folder, bench)
    if given.report:
        given.report.with_suffix(".json").write_text(json.dumps(bench.rounds, indent=1), encoding="utf-8")


def libraries(folder: str, tokenizer: TrainedTokenizer, bench: Bench) -> Iterator[tuple[str, Peer, Callable[..., Any]]]:
    """The peers that run this folder: a name, how it encodes lines, and how it decodes rows of ids."""
    from tokenizers import Tokenizer as Foreign

    file = Path(folder) / "tokenizer.json"
    if file.with_name("tokenizer.model").is_file():
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(file.with_name("tokenizer.model")))
        yield "SentencePiece", partial(model.encode, num_threads=1), partial(model.decode, num_threads=1)
    hugging = Foreign.from_file(str(file))
    hugging.encode_special_tokens = True
    fast = partial(hugging.encode_batch_fast, add_special_tokens=False)
    yield "tokenizers, encode_batch_fast", fast, hugging.decode_batch
    if kit := kitoken_of(folder, bench):
        encode_one, decode_one = kit.encode, kit.decode
        yield (
            "kitoken",
            lambda lines: [encode_one(line, False) for line in lines],
            lambda rows: [*map(decode_one, rows)],
        )
    if tokenizer.vocab.kind == "bpe-bytes":
        from koktok.runtimes.tiktoken.ranks import ranks_of

        encoding = ranks_of(tokenizer.definition).encoding()
        yield (
            "tiktoken",
            partial(encoding.encode_ordinary_batch, num_threads=1),
            partial(encoding.decode_batch, num_threads=1),
        )


@dataclass
class Giga:
    """gigatoken on a folder, or on one that it knows, with a table that can be emptied by making it anew."""

    file: str
    label: str
    made: Any = None

    @classmethod
    def of(cls, folder: str, bench: Bench) -> Giga | None:
        """The first folder that it runs, this one before the others."""
        for some, label in ((folder, ""), *((other, KNOWN) for other in bench.folders if other != folder)):
            found = cls(str(Path(some) / "tokenizer.json"), label)
            try:
                found.fresh()
            except Exception as error:
                bench.say(f"gigatoken does not run {bench.folders[some]}: {' '.join(str(error).split())[:120]}")
            else:
                return found
        return None

    def fresh(self) -> None:
        """Forget what was encoded."""
        import gigatoken

        self.made = gigatoken.Tokenizer(self.file)

    def lists(self, lines: list[str]) -> Any:
        """Ids of strings."""
        return self.made.encode_batch(lines, parallel=False)

    def files(self, path: Path) -> Any:
        """Ids of a file."""
        return self.made.encode_files(str(path), parallel=False)


def kitoken_of(folder: str, bench: Bench) -> Any:
    try:
        import kitoken
    except ImportError:
        return None
    for name, read in (
        ("tokenizer.json", kitoken.Kitoken.from_tokenizers_file),
        ("tokenizer.model", kitoken.Kitoken.from_sentencepiece_file),
    ):
        file = Path(folder) / name
        try:
            return read(str(file)) if file.is_file() else None
        except Exception as error:
            bench.say(f"kitoken cannot run {file.name}: {error}")
    return None


def encode(folder: str, bench: Bench) -> None:
    tokenizer = TrainedTokenizer.load(folder)
    encoder, lines = tokenizer.bulk_encoder, bench.lines
    expected = tokenizer.encode_ids(lines, threads=1)
    peers: dict[str, Peer] = {}
    for name, peer, _ in libraries(folder, tokenizer, bench):
        peers[name if same_ids(name, peer, bench, expected) else f"{name} (other ids)"] = peer
    giga = Giga.of(folder, bench)
    if giga:
        peers[f"gigatoken{giga.label}"] = giga.lists
    if tokenizer.vocab.kind == "bpe-bytes":
        try:
            import bpe_openai

            openai = bpe_openai.get_encoding("o200k_base")
            peers[f"bpe-openai{OTHER}"] = lambda lines: [openai.encode_ordinary(line) for line in lines]
        except Exception as error:
            bench.say(f"bpe-openai does not run: {error}")

    def fresh() -> None:
        encoder.forget()  # the trie of the vocabulary stays, as the peers keep theirs
        if giga:
            giga.fresh()

    ours = partial(encoder, lines, threads=1)
    bench.head(
        f"Encode, {tokenizer.vocab.kind}, {tokenizer.vocab.size:,} ids, {len(expected.ids):,} tokens, one thread"
    )
    for name, peer in peers.items():
        bench.show(f"cold, {name}", ours, partial(peer, lines), fresh=fresh)
        ours(), peer(lines)
        bench.show(f"warm, {name}", ours, partial(peer, lines))


def files(folder: str, bench: Bench) -> None:
    """From a file to ids, beside the one peer that has a way for it, and beside the same text as a list."""
    tokenizer = TrainedTokenizer.load(folder)
    encoder = tokenizer.bulk_encoder
    assert tokenizer.encode_files(bench.text, threads=1) == tokenizer.encode_ids(bench.lines, threads=1)
    giga = Giga.of(folder, bench)

    def ours() -> Tokens:
        return tokenizer.encode_files(bench.text, threads=1)

    def fresh() -> None:
        encoder.forget()
        if giga:
            giga.fresh()

    bench.head(f"Encode from a file, {tokenizer.vocab.kind}, {tokenizer.pattern.signature()}, one thread")
    peers: dict[str, Work] = {"koktok from a list": lambda: encoder(bench.lines, threads=1)}
    if giga:
        peers[f"gigatoken{giga.label}"] = lambda: giga.files(bench.text)
    for name, peer in peers.items():
        bench.show(f"cold, {name}", ours, peer, fresh=fresh)
        ours(), peer()
        bench.show(f"warm, {name}", ours, peer)


def same_ids(name: str, peer: Peer, bench: Bench, expected: Tokens) -> bool:
    """A fast answer that is wrong is no answer; but a peer that does not normalize may differ here and there."""
    some = range(0, len(bench.lines), 10)
    found = peer([bench.lines[i] for i in some])
    wrong = sum(list(getattr(row, "ids", row)) != expected[i].tolist() for i, row in zip(some, found, strict=True))
    bench.say(f"{wrong:,} of {len(some):,} lines differ from {name}")
    return bool(wrong <= len(some) // 100)


@njit(nogil=True)
def counted(n: int, seed: int) -> int:
    """A loop that is all arithmetic, in registers: what more threads can gain on this machine at most."""
    found = seed
    for k in range(n):
        found = (found ^ k) * 1_000_003 & 0xFFFF_FFFF
    return found


def loop(count: int) -> None:
    """As much of it as encoding takes, some .2 s, in equal parts."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(partial(counted, LOOP // count), range(count)))


def threads(folder: str, bench: Bench) -> None:
    """One thread and more, in turns, by the clock on the wall: from a file, from a list, and a loop that is all arithmetic."""
    tokenizer = TrainedTokenizer.load(folder)
    encoder = tokenizer.bulk_encoder
    n, counts = os.cpu_count() or 1, [1]
    while counts[-1] * 2 <= n:
        counts.append(counts[-1] * 2)
    title = f"Threads, {tokenizer.vocab.kind}, {tokenizer.pattern.signature()}, by the clock on the wall"
    bench.say(f"\n{title}\n\n| | {' | '.join(f'{count}, MB/s' for count in counts)} | ratio |")
    bench.say("|---|" + "---|" * (len(counts) + 1))
    ways: dict[str, Callable[[int], Any]] = {
        "file": lambda count: tokenizer.encode_files(bench.text, threads=count),
        "list": lambda count: encoder(bench.lines, threads=count),
    }
    ways["arithmetic alone, runs a second"] = loop
    for way, work in ways.items():
        for state in ("cold", "warm") if work is not loop else ("warm",):
            found: list[list[float]] = []
            for _ in range(bench.runs):
                row = []
                for count in counts:
                    if state == "cold":
                        encoder.forget()
                    else:  # every thread's table has seen the text
                        work(count), work(count)
                    begun = time.perf_counter()
                    work(count)
                    row.append(time.perf_counter() - begun)
                found.append(row)
            bench.rounds[f"{title}, {way}, {state}: {counts}"] = found
            amount = 1 if work is loop else bench.megabytes
            speeds = [amount / statistics.median(row[i] for row in found) for i in range(len(counts))]
            ratio = statistics.median(row[0] / row[-1] for row in found)
            bench.say(f"| {way}, {state} | {' | '.join(f'{speed:.1f}' for speed in speeds)} | {ratio:.2f} |")


def held(folder: str, bench: Bench) -> None:
    """What of one thread's time holds the interpreter's lock, so that others wait for it, and what every thread does again."""
    tokenizer = TrainedTokenizer.load(folder)
    encoder = tokenizer.bulk_encoder
    ways: dict[str, Work] = {
        "file": lambda: tokenizer.encode_files(bench.text, threads=1),
        "list": lambda: encoder(bench.lines, threads=1),
    }
    title = f"Under the lock, {tokenizer.vocab.kind}, {tokenizer.pattern.signature()}, one thread"
    bench.say(f"\n{title}\n\n| | ms a MB | of it under the lock, ms | share |\n|---|---|---|---|")
    spent: list[float] = []

    def clocked(compiled: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            begun = time.perf_counter()
            found = compiled(*given)
            spent.append(time.perf_counter() - begun)
            return found

        return call

    for way, work in ways.items():
        work()  # compiled code is there, and what it calls is not replaced
        for state in ("cold", "warm"):
            found = []
            for _ in range(bench.runs):
                if state == "cold":
                    encoder.forget()
                with ExitStack() as stack:
                    for name, module in [*sys.modules.items()]:
                        for own, value in [*vars(module).items()] if name.startswith("koktok.bulk.") else ():
                            if isinstance(value, Dispatcher):
                                stack.enter_context(patch.object(module, own, clocked(value)))
                    solver = replace(encoder._solver, kernel=clocked(encoder._solver.kernel))
                    stack.enter_context(patch.object(encoder, "_solver", solver))
                    spent.clear()
                    begun = time.perf_counter()
                    work()
                    whole = time.perf_counter() - begun
                found.append([whole, whole - sum(spent)])
            bench.rounds[f"{title}, {way}, {state}: seconds, under the lock"] = found
            whole, locked = (statistics.median(row[i] for row in found) / bench.megabytes * 1000 for i in (0, 1))
            bench.say(f"| {way}, {state} | {whole:.2f} | {locked:.2f} | {locked / whole:.1%} |")
    batches = [*Texts.batches(bench.lines, BATCH, DOCUMENTS)]
    solved = {}
    for threads in (1, 2, 4, 8, len(batches)):
        solved[threads] = 0
        for one in range(threads):
            encoder.forget()
            encoder([batch().text(i) for batch in batches[one::threads] for i in range(len(batch()))], threads=1)
            solved[threads] += len(encoder._idle[0])
    cells = ", ".join(f"{threads} threads {count / solved[1]:.2f}" for threads, count in solved.items())
    bench.say(f"\nUnits that are solved, all threads together, as a multiple of those of one ({solved[1]:,}): {cells}")


def decode(folder: str, bench: Bench) -> None:
    tokenizer = TrainedTokenizer.load(folder)
    tokens = tokenizer.encode_ids(bench.lines)
    rows = [ids.tolist() for ids in tokens]
    assert tokenizer.decode_ids(tokens) == [tokenizer.normalize(line) for line in bench.lines]
    peers = {name: partial(write, rows) for name, _, write in libraries(folder, tokenizer, bench)}
    giga = Giga.of(folder, bench)
    if giga and not giga.label:
        peers["gigatoken"] = lambda: [giga.made.decode(row) for row in rows]
    bench.head(f"Decode, {tokenizer.vocab.kind}, one thread; koktok from its flat array, the others from lists")
    for name, peer in peers.items():
        bench.show(name, lambda: tokenizer.decode_ids(tokens, threads=1), peer)
    bench.head("Decode, koktok from the same lists (`decode_batch`)")
    for name, peer in peers.items():
        bench.show(name, lambda: tokenizer.decode_batch(rows), peer)


def latency(folder: str, bench: Bench) -> None:
    """One sentence after the other, `encode` of each; fresh ones first, then the same again."""
    from tokenizers import Tokenizer as Foreign

    some = [line for line in bench.lines if 20 <= len(line) <= 80][:10_000]
    tokenizer = TrainedTokenizer.load(folder)
    hugging = Foreign.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.encode("가")  # what is made on first use
    calls: dict[str, Callable[[str], Any]] = {
        "koktok: ids, pieces, offsets": tokenizer.encode,
        "tokenizers: ids": lambda text: hugging.encode(text, add_special_tokens=False).ids,
    }
    bench.say("\nOne sentence, µs\n\n| | | p50 | p99 |\n|---|---|---|---|")
    for state in ("fresh", "repeated"):
        took: dict[str, list[int]] = {name: [] for name in calls}
        for text in some:
            for name, call in calls.items():
                begun = time.perf_counter_ns()
                call(text)
                took[name].append(time.perf_counter_ns() - begun)
        for name, found in took.items():
            found.sort()
            p50, p99 = (found[len(found) * share // 100] / 1000 for share in (50, 99))
            bench.say(f"| {tokenizer.vocab.kind}, {state} | {name} | {p50:.1f} | {p99:.1f} |")


LOAD = """
import sys, time
from koktok.tokenizer import TrainedTokenizer
import koktok.runtimes.huggingface.tokenizer_json, koktok.runtimes.folder, tomllib
begun = time.perf_counter(); tokenizer = TrainedTokenizer.load(sys.argv[1])
loaded = time.perf_counter(); tokenizer.encode("학교에 간다")
first = time.perf_counter(); import numba, koktok.bulk
imported = time.perf_counter(); tokenizer.bulk_encoder
made = time.perf_counter(); tokenizer.encode_ids(["학교에 간다\\u200b"]); tokenizer.decode_ids(tokenizer.encode_ids(["가"]))
print(loaded - begun, first - loaded, imported - first, made - imported, time.perf_counter() - made)
"""


def load(folder: str, bench: Bench) -> None:
    bench.say(
        "\nLoading, seconds, new processes\n\n| | load | first encode | import of numba | trie for bulk | first bulk |"
        "\n|---|---|---|---|---|---|"
    )
    rows = [spoken([sys.executable, "-c", LOAD, folder]) for _ in range(bench.runs)]
    shown = " | ".join(f"{statistics.median(row[i] for row in rows):.3f}" for i in range(5))
    bench.say(f"| {bench.folders[folder]} | {shown} |")
    with tempfile.TemporaryDirectory() as empty:
        row = spoken([sys.executable, "-c", LOAD, folder], NUMBA_CACHE_DIR=empty)
        bench.say(f"| {bench.folders[folder]}, nothing compiled yet | {' | '.join(f'{value:.3f}' for value in row)} |")
    for words in (["-c", "pass"], ["-m", "koktok", "--help"]):
        found = []
        for _ in range(bench.runs):
            begun = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            found.append(time.perf_counter() - begun)
        bench.say(f"\n`python {' '.join(words)}`: {statistics.median(found):.3f} s")


def spoken(command: list[str], **environment: str) -> list[float]:
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return [float(word) for word in done.stdout.split()]


PARTS: dict[str, Callable[[str, Bench], None]] = {
    "encode": encode,
    "files": files,
    "threads": threads,
    "held": held,
    "decode": decode,
    "latency": latency,
    "load": load,
}

if __name__ == "__main__":
    main()
