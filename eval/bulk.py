"""Speed of encoding and decoding in bulk, of one sentence, and of loading, pair by pair against peers.

    python -m eval.bulk TOKENIZER TEXT [--level BYTE-LEVEL-TOKENIZER] [--megabytes 20] [--runs 5] [--parts encode,...]

TOKENIZER is a folder of a unigram tokenizer, TEXT a file of lines. In each pair koktok and the peer take turns, `--runs`
times, on the same list of strings on one thread; a ratio is the median over the turns of their seconds. Seconds on the
wall and of the processor are both shown: they differ where another program runs. *Cold* is a new table for each turn:
every distinct word is solved in it. *Warm* has seen the text. Compiled code is loaded before the clock starts; what it
takes to compile and to load is a part of its own. Peers whose vocabulary is another say so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from eval.machine import machine
from koktok.bulk import TokenArray
from koktok.tokenizer import Tokenizer

Work = Callable[[], Any]


@dataclass(frozen=True)
class Bench:
    """What every part measures with."""

    lines: list[str]
    megabytes: float
    runs: int

    def show(self, name: str, ours: Work, peer: Work) -> None:
        """A row of a pair that takes turns."""
        found = []
        for _ in range(self.runs):
            row: list[float] = []
            for work in (ours, peer):
                begun, used = time.perf_counter(), time.process_time()
                work()
                row += [time.perf_counter() - begun, time.process_time() - used]
            found.append(row)
        speeds = [statistics.median(self.megabytes / row[i] for row in found) for i in (0, 2)]
        wall, cpu = (statistics.median(row[i + 2] / row[i] for row in found) for i in (0, 1))
        print(f"| {name} | {speeds[0]:.1f} | {speeds[1]:.1f} | {wall:.2f} | {cpu:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text")
    parser.add_argument(
        "--level", help="folder of a bpe-bytes tokenizer of the same size, for tiktoken and BPE in tokenizers"
    )
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    given = parser.parse_args()
    lines = lines_of(given.text, given.megabytes)
    size = sum(len(line.encode()) for line in lines) / 1e6
    print(f"{machine()}\n{size:.1f} MB, {len(lines):,} lines; {given.runs} turns\n")
    folders = [given.tokenizer, *([given.level] if given.level else [])]
    bench = Bench(lines, size, given.runs)
    for part in given.parts.split(","):
        for folder in folders:
            PARTS[part](folder, bench)


def lines_of(path: str, megabytes: float) -> list[str]:
    data = Path(path).read_bytes()[: int(megabytes * 1e6)]
    return data[: data.rfind(b"\n")].decode("utf-8").split("\n")


def head(title: str) -> None:
    print(f"\n{title}\n\n| pair | koktok MB/s | peer MB/s | ratio, wall | ratio, processor |\n|---|---|---|---|---|")


def encoders(folder: str, kind: str, lines: list[str]) -> dict[str, Work]:
    """The peers that can run this folder, on all lines."""
    from tokenizers import Tokenizer as Foreign

    peers: dict[str, Work] = {}
    file = Path(folder) / "tokenizer.json"
    if (Path(folder) / "tokenizer.model").is_file():
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(file.with_name("tokenizer.model")))
        peers["SentencePiece"] = lambda: model.encode(lines, num_threads=1)
    hugging = Foreign.from_file(str(file))
    peers["tokenizers, encode_batch_fast"] = lambda: hugging.encode_batch_fast(lines, add_special_tokens=False)
    if kit := kitoken_of(folder):
        peers["kitoken"] = lambda: [kit.encode(line, False) for line in lines]
    if kind == "bpe-bytes":
        own = Tokenizer.load(folder)
        from koktok.export.tiktoken import ranks_of

        encoding = ranks_of(own.vocab, own.pattern).encoding()
        peers["tiktoken"] = lambda: encoding.encode_ordinary_batch(lines, num_threads=1)
        try:
            import bpe_openai

            openai = bpe_openai.get_encoding("o200k_base")
            peers["bpe-openai (o200k_base, 200,000)"] = lambda: [openai.encode_ordinary(line) for line in lines]
        except Exception as error:
            print(f"bpe-openai does not run: {error}")
    return peers


def kitoken_of(folder: str) -> Any:
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
            print(f"kitoken cannot run {file}: {error}")
    return None


def encode(folder: str, bench: Bench) -> None:
    tokenizer = Tokenizer.load(folder)
    encoder, lines = tokenizer.bulk_encoder, bench.lines
    peers = encoders(folder, tokenizer.vocab.kind, lines)
    expected = tokenizer.encode_ids(lines, threads=1)
    check(folder, lines, expected)

    def cold() -> None:
        encoder.forget()  # the trie of the vocabulary stays, as the peers keep theirs
        encoder(lines, threads=1)

    def warm() -> None:
        encoder(lines, threads=1)

    head(f"Encode, {tokenizer.vocab.kind}, {tokenizer.vocab.size:,} ids, {len(expected.ids):,} tokens, one thread")
    for name, peer in peers.items():
        bench.show(f"cold, {name}", cold, peer)
        warm()
        bench.show(f"warm, {name}", warm, peer)


def check(folder: str, lines: list[str], found: TokenArray) -> None:
    """A fast answer that is wrong is no answer."""
    from tokenizers import Tokenizer as Foreign

    hugging = Foreign.from_file(str(Path(folder) / "tokenizer.json"))
    hugging.encode_special_tokens = True
    some = range(0, len(lines), 10)
    wrong = sum(hugging.encode(lines[i], add_special_tokens=False).ids != found[i].tolist() for i in some)
    print(f"{folder}: {wrong} of {len(some):,} lines differ from tokenizers")


def threads(folder: str, bench: Bench) -> None:
    encoder = Tokenizer.load(folder).bulk_encoder
    encoder(bench.lines[:1000])
    n, counts = os.cpu_count() or 1, [1]
    while counts[-1] * 2 <= n:
        counts.append(counts[-1] * 2)
    print("\nEncode, seconds on the wall\n\n| | threads | MB/s |\n|---|---|---|")
    for state in ("cold", "warm"):
        for count in counts:
            encoder(bench.lines, threads=count)
            found = []
            for _ in range(bench.runs):
                if state == "cold":
                    encoder.forget()
                begun = time.perf_counter()
                encoder(bench.lines, threads=count)
                found.append(bench.megabytes / (time.perf_counter() - begun))
            print(f"| {state} | {count} | {statistics.median(found):.1f} |", flush=True)


def decode(folder: str, bench: Bench) -> None:
    tokenizer = Tokenizer.load(folder)
    tokens = tokenizer.encode_ids(bench.lines)
    rows = [ids.tolist() for ids in tokens]
    assert tokenizer.decode_ids(tokens) == [tokenizer.normalize(line) for line in bench.lines]
    peers = decoders(folder, tokenizer, rows)
    head(f"Decode, {tokenizer.vocab.kind}, one thread; koktok from its flat array, the others from lists")
    for name, peer in peers.items():
        bench.show(name, lambda: tokenizer.decode_ids(tokens, threads=1), peer)
    head("Decode, koktok from the same lists (`decode_batch`)")
    for name, peer in peers.items():
        bench.show(name, lambda: tokenizer.decode_batch(rows), peer)


def decoders(folder: str, tokenizer: Tokenizer, rows: list[list[int]]) -> dict[str, Work]:
    from tokenizers import Tokenizer as Foreign

    hugging = Foreign.from_file(str(Path(folder) / "tokenizer.json"))
    peers: dict[str, Work] = {"tokenizers": lambda: hugging.decode_batch(rows)}
    if (Path(folder) / "tokenizer.model").is_file():
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(Path(folder) / "tokenizer.model"))
        peers["SentencePiece"] = lambda: model.decode(rows, num_threads=1)
    if tokenizer.vocab.kind == "bpe-bytes":
        from koktok.export.tiktoken import ranks_of

        encoding = ranks_of(tokenizer.vocab, tokenizer.pattern).encoding()
        peers["tiktoken"] = lambda: encoding.decode_batch(rows, num_threads=1)
    if kit := kitoken_of(folder):
        peers["kitoken"] = lambda: [kit.decode(row) for row in rows]
    return peers


def latency(folder: str, bench: Bench) -> None:
    """One sentence after the other, `encode` of each; fresh ones first, then the same again."""
    from tokenizers import Tokenizer as Foreign

    some = [line for line in bench.lines if 20 <= len(line) <= 80][:10_000]
    tokenizer = Tokenizer.load(folder)
    hugging = Foreign.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.encode("가")  # what is made on first use
    calls: dict[str, Callable[[str], Any]] = {
        "koktok: ids, pieces, offsets": tokenizer.encode,
        "tokenizers: ids": lambda text: hugging.encode(text, add_special_tokens=False).ids,
    }
    print("\nOne sentence, µs\n\n| | | p50 | p99 |\n|---|---|---|---|")
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
            print(f"| {tokenizer.vocab.kind}, {state} | {name} | {p50:.1f} | {p99:.1f} |", flush=True)


LOAD = """
import sys, time
from koktok.tokenizer import Tokenizer
import koktok.export.hf, koktok.export.plain, koktok.export.folder, tomllib
begun = time.perf_counter(); tokenizer = Tokenizer.load(sys.argv[1])
loaded = time.perf_counter(); tokenizer.encode("학교에 간다")
first = time.perf_counter(); import numba, koktok.bulk
imported = time.perf_counter(); tokenizer.bulk_encoder
made = time.perf_counter(); tokenizer.encode_ids(["학교에 간다\\u200b"]); tokenizer.decode_ids(tokenizer.encode_ids(["가"]))
print(loaded - begun, first - loaded, imported - first, made - imported, time.perf_counter() - made)
"""


def load(folder: str, bench: Bench) -> None:
    print(
        "\nLoading, seconds, new processes\n\n| | load | first encode | import of numba | trie for bulk | first bulk |"
        "\n|---|---|---|---|---|---|"
    )
    rows = [spoken([sys.executable, "-c", LOAD, folder]) for _ in range(bench.runs)]
    shown = " | ".join(f"{statistics.median(row[i] for row in rows):.3f}" for i in range(5))
    print(f"| {Path(folder).name} | {shown} |")
    with tempfile.TemporaryDirectory() as empty:
        row = spoken([sys.executable, "-c", LOAD, folder], NUMBA_CACHE_DIR=empty)
        print(f"| {Path(folder).name}, nothing compiled yet | {' | '.join(f'{value:.3f}' for value in row)} |")
    for words in (["-c", "pass"], ["-m", "koktok", "--help"]):
        found = []
        for _ in range(bench.runs):
            begun = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            found.append(time.perf_counter() - begun)
        print(f"\n`python {' '.join(words)}`: {statistics.median(found):.3f} s")


def spoken(command: list[str], **environment: str) -> list[float]:
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return [float(word) for word in done.stdout.split()]


PARTS: dict[str, Callable[[str, Bench], None]] = {
    "encode": encode,
    "threads": threads,
    "decode": decode,
    "latency": latency,
    "load": load,
}

if __name__ == "__main__":
    main()
