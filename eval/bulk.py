"""Speed of encoding and decoding in bulk, of one sentence, and of loading, pair by pair against peers.

    python -m eval.bulk --from DATA/text --cache FOLDER [--size 32000] [--megabytes 20] [--runs 5] [--parts encode,...]
    python -m eval.bulk TOKENIZER... --text TEXT [the same]

With `--from`, the text is split, and `balanced` tokenizers (unigram; bpe-bytes; bpe-bytes with GPT-2's pattern, for those who know
no other) are trained on one side and measured on the other (`eval/bulk_text.py`); `--cache` keeps all that for the next run.
Else TOKENIZER is a folder and TEXT a file of lines. `--report FILE` writes the tables as Markdown, too, and beside them, as JSON,
the seconds of every turn. In each pair koktok and the peer take turns, `--runs` times, on the same list of strings, or the same
file, on one thread; a ratio is the median over the turns of their seconds. Seconds on the wall and of the processor are both
shown: they differ where another program runs. *Cold* is a new table for each turn: every distinct word is solved in it. *Warm*
has seen the text. Compiled code is loaded before the clock starts; what it takes to compile and to load is a part of its own.
Peers whose vocabulary is another say so.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from eval.bulk_text import made_from
from eval.machine import Told, machine
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.tokens import Tokens

Work = Callable[[], Any]
Peer = Callable[[list[str]], list[Any]]
"""Texts to ids, or to something that has `ids`."""


OTHER = " (o200k_base, another vocabulary of 200,000)"
KNOWN = " (bpe-bytes with the pattern of gpt2; it refuses this one)"


@dataclass(frozen=True)
class Bench:
    """What every part measures with."""

    text: Path
    lines: list[str]
    megabytes: float
    runs: int
    say: Told
    folders: list[str]
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
    parser.add_argument("tokenizers", nargs="*", help="folders of tokenizers")
    parser.add_argument("--text", help="file of lines")
    parser.add_argument("--from", dest="source", type=Path, help="folder of text, to train on and to measure on")
    parser.add_argument("--cache", type=Path, help="folder for what --from makes")
    parser.add_argument("--size", type=int, default=32_000, help="ids of what --from trains")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--report", type=Path, help="Markdown file for the tables")
    given = parser.parse_args()
    if (given.source is None) != (given.cache is None) or (given.source is None) != bool(
        given.tokenizers and given.text
    ):
        parser.error("TOKENIZER... --text TEXT, or --from FOLDER --cache FOLDER")
    about = ""
    if given.source:
        given.tokenizers, given.text, about = made_from(given.source, given.cache, given.size, given.megabytes)
    lines = lines_of(given.text, given.megabytes)
    with tempfile.TemporaryDirectory() as place:
        text = Path(place) / "text.txt"
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        size = sum(len(line.encode()) for line in lines) / 1e6
        bench = Bench(text, lines, size, given.runs, Told(given.report), given.tokenizers, {})
        bench.say(f"{machine()}\n")
        bench.say(f"{bench.megabytes:.1f} MB, {len(lines):,} lines; {given.runs} turns{about and f'; {about}'}\n")
        for part in given.parts.split(","):
            for folder in given.tokenizers:
                PARTS[part](folder, bench)
    if given.report:
        given.report.with_suffix(".json").write_text(json.dumps(bench.rounds, indent=1), encoding="utf-8")


def lines_of(path: str, megabytes: float) -> list[str]:
    data = Path(path).read_bytes()[: int(megabytes * 1e6)]
    return data[: data.rfind(b"\n")].decode("utf-8").split("\n")


def encoders(folder: str, kind: str, bench: Bench) -> dict[str, Peer]:
    """The peers that can run this folder."""
    from tokenizers import Tokenizer as Foreign

    peers: dict[str, Peer] = {}
    file = Path(folder) / "tokenizer.json"
    if (Path(folder) / "tokenizer.model").is_file():
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(file.with_name("tokenizer.model")))
        peers["SentencePiece"] = lambda lines: model.encode(lines, num_threads=1)
    hugging = Foreign.from_file(str(file))
    hugging.encode_special_tokens = True
    peers["tokenizers, encode_batch_fast"] = lambda lines: hugging.encode_batch_fast(lines, add_special_tokens=False)
    if kit := kitoken_of(folder, bench):
        peers["kitoken"] = lambda lines: [kit.encode(line, False) for line in lines]
    if giga := Giga.of(folder, bench):
        peers[f"gigatoken{giga.label}"] = giga.lists
    if kind == "bpe-bytes":
        own = TrainedTokenizer.load(folder)
        from koktok.formats.tiktoken import ranks_of

        encoding = ranks_of(own.vocab, own.pattern).encoding()
        peers["tiktoken"] = lambda lines: encoding.encode_ordinary_batch(lines, num_threads=1)
        try:
            import bpe_openai

            openai = bpe_openai.get_encoding("o200k_base")
            peers[f"bpe-openai{OTHER}"] = lambda lines: [openai.encode_ordinary(line) for line in lines]
        except Exception as error:
            bench.say(f"bpe-openai does not run: {error}")
    return peers


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
                bench.say(f"gigatoken does not run {Path(some).name}: {' '.join(str(error).split())[:120]}")
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
    peers = encoders(folder, tokenizer.vocab.kind, bench)
    expected = tokenizer.encode_ids(lines, threads=1)
    for name, peer in list(peers.items()):
        if OTHER not in name and KNOWN not in name and not check(name, peer, bench, expected):
            peers[f"{name} (other ids)"] = peers.pop(name)

    def ours() -> Tokens:
        return encoder(lines, threads=1)

    giga = Giga.of(folder, bench)

    def fresh() -> None:
        encoder.forget()  # the trie of the vocabulary stays, as the peers keep theirs
        if giga:
            giga.fresh()

    bench.head(
        f"Encode, {tokenizer.vocab.kind}, {tokenizer.vocab.size:,} ids, {len(expected.ids):,} tokens, one thread"
    )
    for name, peer in peers.items():
        work = partial(giga.lists if giga and name.startswith("gigatoken") else peer, lines)
        bench.show(f"cold, {name}", ours, work, fresh=fresh)
        ours(), work()
        bench.show(f"warm, {name}", ours, work)


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


def check(name: str, peer: Peer, bench: Bench, expected: Tokens) -> bool:
    """A fast answer that is wrong is no answer; but a peer that does not normalize may differ here and there."""
    some = range(0, len(bench.lines), 10)
    found = peer([bench.lines[i] for i in some])
    wrong = sum(list(getattr(row, "ids", row)) != expected[i].tolist() for i, row in zip(some, found, strict=True))
    bench.say(f"{wrong:,} of {len(some):,} lines differ from {name}")
    return bool(wrong <= len(some) // 100)


def threads(folder: str, bench: Bench) -> None:
    """One thread and more, in turns, by the clock on the wall: from a file, and from a list."""
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
    for way, work in ways.items():
        for state in ("cold", "warm"):
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
            speeds = [bench.megabytes / statistics.median(row[i] for row in found) for i in range(len(counts))]
            ratio = statistics.median(row[0] / row[-1] for row in found)
            bench.say(f"| {way}, {state} | {' | '.join(f'{speed:.1f}' for speed in speeds)} | {ratio:.2f} |")


def decode(folder: str, bench: Bench) -> None:
    tokenizer = TrainedTokenizer.load(folder)
    tokens = tokenizer.encode_ids(bench.lines)
    rows = [ids.tolist() for ids in tokens]
    assert tokenizer.decode_ids(tokens) == [tokenizer.normalize(line) for line in bench.lines]
    peers = decoders(folder, tokenizer, rows, bench)
    bench.head(f"Decode, {tokenizer.vocab.kind}, one thread; koktok from its flat array, the others from lists")
    for name, peer in peers.items():
        bench.show(name, lambda: tokenizer.decode_ids(tokens, threads=1), peer)
    bench.head("Decode, koktok from the same lists (`decode_batch`)")
    for name, peer in peers.items():
        bench.show(name, lambda: tokenizer.decode_batch(rows), peer)


def decoders(folder: str, tokenizer: TrainedTokenizer, rows: list[list[int]], bench: Bench) -> dict[str, Work]:
    from tokenizers import Tokenizer as Foreign

    hugging = Foreign.from_file(str(Path(folder) / "tokenizer.json"))
    peers: dict[str, Work] = {"tokenizers": lambda: hugging.decode_batch(rows)}
    if (Path(folder) / "tokenizer.model").is_file():
        import sentencepiece

        model = sentencepiece.SentencePieceProcessor(model_file=str(Path(folder) / "tokenizer.model"))
        peers["SentencePiece"] = lambda: model.decode(rows, num_threads=1)
    if tokenizer.vocab.kind == "bpe-bytes":
        from koktok.formats.tiktoken import ranks_of

        encoding = ranks_of(tokenizer.vocab, tokenizer.pattern).encoding()
        peers["tiktoken"] = lambda: encoding.decode_batch(rows, num_threads=1)
    if kit := kitoken_of(folder, bench):
        peers["kitoken"] = lambda: [kit.decode(row) for row in rows]
    giga = Giga.of(folder, bench)
    if giga and not giga.label:
        peers["gigatoken"] = lambda: [giga.made.decode(row) for row in rows]
    return peers


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
import koktok.formats.hf, koktok.formats.folder, tomllib
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
    bench.say(f"| {Path(folder).name} | {shown} |")
    with tempfile.TemporaryDirectory() as empty:
        row = spoken([sys.executable, "-c", LOAD, folder], NUMBA_CACHE_DIR=empty)
        bench.say(f"| {Path(folder).name}, nothing compiled yet | {' | '.join(f'{value:.3f}' for value in row)} |")
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
    "decode": decode,
    "latency": latency,
    "load": load,
}

if __name__ == "__main__":
    main()
