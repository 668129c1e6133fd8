"""How training time and peak memory grow with the text and the vocabulary: koktok and its peers from the same raw file.

    python -m eval.growth DATA|corpus:bench-ko [--sizes 32000] [--mb 5,10,20] [--rows '^koktok'] [--runs 1]

Sizes in MB are parts of DATA/text (blocks of 50 lines in an order chosen by hash, so each is a part of the next), or, beyond its end, more
text with as many new words as Heaps' law wants (`eval/heaps.py`). Every training is a process of its own, which reads a file and writes a
vocabulary; time is that of the whole process, its imports among it; memory is the most that it and its children had at one time, looked
at every 200 ms, and, with `--work`, stands there for each second. A row `cold` begins with an empty cache of analyses; compiled
code is on disk (the first training after an installation takes 20 s more). The rows `warm` find the analyses of the last row `cold` of this
text. Rows are told as they come; one that the system ends, for memory, is told as killed, and one that takes longer than `--patience`
seconds is ended. `--runs 3` takes all rows in turns, three times.

Beside the seconds stands what was made in them: tokens per eojeol of held-out lines of DATA/text that no row was trained on, the boundary F1
of every vocabulary on the gold files of DATA/gold, and processor seconds, which a busy machine changes less. A trainer that reads every word
is beside koktok's `--min-count 1`; by default the rare words of much text are a sample that stands for all of them
(`koktok.count.sample`), as SentencePiece has its `input_sentence_size`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eval.heaps import write_text
from eval.machine import Told, machine
from eval.peers import PEERS, sentencepiece
from eval.texts import GOLDS, base_lines, data_of

HELD = 0.01
"""Share of the lines that tokens are counted on."""

SENTENCES = 1_000_000
"""SentencePiece's input_sentence_size in the row that has one: what its users set for text that is too large."""

KOKTOK: dict[str, dict[str, object]] = {
    "koktok lm, cold": {},
    "koktok lm, warm": {},
    "koktok bpe-bytes, warm": {"model": "bpe-bytes"},
    "koktok lm, superwords .3, warm": {"superwords": 0.3},
}
"""Settings by row; with `digits = free`, as the peers cut them."""

ROWS = (
    *KOKTOK,
    f"SentencePiece Unigram, {SENTENCES:,} sentences",
    "SentencePiece Unigram, spaces only",
    "SentencePiece BPE, spaces only",
    "HF byte-level BPE",
    "Kiwi bpe_trainer j e vcp xsv",
)
"""Peers are those of eval/peers.py, but with the lines of a file read as they are wanted."""


class Lines(Sequence[str]):
    """The lines of a file, read again each time: a peer's memory is its own."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with file.open("rb") as lines:
            self.size = sum(1 for _ in lines)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: Any) -> Any:
        raise TypeError("lines are read in their order")

    def __iter__(self) -> Iterator[str]:
        with self.file.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield line.rstrip("\n")


def child(row: str, file: Path, size: int, out: Path, cache: Path, min_count: int, sample: int) -> str:
    """Train in this process; what is to be said of it, behind the reference of the vocabulary."""
    if row not in KOKTOK:
        if row.endswith("sentences"):
            options = {"split_by_unicode_script": False, "split_by_number": False, "shuffle_input_sentence": True}
            return sentencepiece(Lines(file), size, out, input_sentence_size=SENTENCES, **options)
        return next(peer for peer in PEERS if peer.name == row).make(Lines(file), size, out)
    from koktok import Recipe
    from koktok.count.sample import enough
    from koktok.pipeline import words
    from koktok.pipeline.train import train
    from koktok.text.sources import Source

    words.enough = lambda n, vocab_size=0: min(n, sample * enough(n, vocab_size))
    of_training = {"vocab_size": size, **KOKTOK[row]} | ({"min_count": min_count} if min_count else {})
    free = {} if of_training.get("model") == "bpe-bytes" else {"pretokenize": {"digits": "free"}}
    recipe = Recipe().changed(train=of_training, holdout=0.0, **free)
    made = train([Source.of(file)], recipe, cache=cache)
    made.tokenizer.save(out / "tokenizer")
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in made.seconds.items())
    said = f"{len(made.segmented):,} words trained on, {made.asked:,} analysed; {stages}; {'; '.join(made.notes)}"
    return f"koktok:{out / 'tokenizer'}\t{said}"


class TreeMemory(threading.Thread):
    """The most memory that a process and its descendants had at one time, in MiB (Linux; 0 elsewhere), and in each second."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.over = process, threading.Event()
        self.seconds: dict[int, float] = {}

    @property
    def peak(self) -> float:
        """The most of all seconds."""
        return max(self.seconds.values(), default=0.0)

    def run(self) -> None:
        """Look until told to stop."""
        begun = time.perf_counter()
        while not self.over.wait(0.2):
            parents, sizes = {}, {}
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    status = (folder / "status").read_text()
                except OSError:
                    continue
                values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                parents[int(folder.name)] = int(values["PPid"])
                sizes[int(folder.name)] = int(values.get("VmRSS", "0").split()[0])
            second = int(time.perf_counter() - begun)
            now = sum(sizes[one] for one in parents if self._below(one, parents)) / 1024
            self.seconds[second] = max(self.seconds.get(second, 0.0), now)

    def _below(self, process: int, parents: dict[int, int]) -> bool:
        while process > 1 and process != self.process:
            process = parents.get(process, 0)
        return process == self.process


def measured(*words: str, patience: float) -> tuple[float, float, TreeMemory, str]:
    """Seconds, processor seconds (its children's too, where they were waited for), memory, and the child's last line."""
    begun, spent = time.perf_counter(), _spent()
    process = subprocess.Popen([sys.executable, "-m", "eval.growth", *words], stdout=subprocess.PIPE, text=True)
    memory = TreeMemory(process.pid)
    memory.start()
    try:
        said, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        said = f"\tended after {patience:,.0f} s"
    seconds, busy = time.perf_counter() - begun, _spent() - spent
    memory.over.set()
    memory.join()
    if process.returncode < 0 and not said.startswith("\tended"):
        said = f"\tkilled by signal {-process.returncode}"
    elif process.returncode > 0:
        said = f"\tfailed with exit code {process.returncode}"
    return seconds, busy, memory, said.strip("\n ").split("\n")[-1]


def _spent() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def quality(spec: str, golds: Sequence[Path], held: Sequence[str]) -> list[str]:
    """Tokens per eojeol of held-out lines, and boundary F1 on each gold; nothing of a training that was ended."""
    from koktok.metrics import GoldPage, Material, Settings, score
    from koktok.metrics.gold import read_gold  # here, so that no child's time has it
    from koktok.tokenizer.open import load

    if not spec:
        return [""] * (1 + len(golds))
    tokenizer, pages = load(spec), [GoldPage(read_gold(path)) for path in golds]
    tokens = sum(len(tokenizer.encode(line, add_special_tokens=False).ids) for line in held)
    values = score(tokenizer, Material(golds=pages), Settings(resamples=0)).values
    f1 = [f"{values[f'boundary_f1@{page.gold.name}'].value:.3f}" for page in pages]
    return [f"{tokens / sum(len(line.split()) for line in held):.4f}", *f1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--sizes", default="32000", help="numbers of ids")
    parser.add_argument("--mb", default="5,10,20", help="sizes in MB")
    parser.add_argument(
        "--power", type=float, help="exponent of Heaps' law beyond the end of the text, see eval/heaps.py"
    )
    parser.add_argument("--rows", default="", help="a regular expression for the names of rows")
    parser.add_argument("--min-count", type=int, default=0, help="koktok's --min-count; 0 for what it does by default")
    parser.add_argument("--sample", type=int, default=1, help="times as many words for koktok as by default")
    parser.add_argument("--runs", type=int, default=1, help="turns of all rows")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds after which a training is ended")
    parser.add_argument("--work", type=Path, help="folder for texts and vocabularies; a temporary one by default")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    parser.add_argument("--child", nargs=4, metavar=("ROW", "SIZE", "OUT", "CACHE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        row, size, out, cache = given.child
        Path(out).mkdir()
        print(child(row, given.data, int(size), Path(out), Path(cache), given.min_count, given.sample))
        return
    lines = base_lines(given.data)
    held, lines = lines[: int(len(lines) * HELD)], lines[int(len(lines) * HELD) :]
    golds = [path for name in GOLDS.split(",") if (path := given.data / "gold" / name).is_file()]
    tell = Told(given.report)
    heads = [
        "ids",
        "text",
        "trainer",
        "s",
        "processor s",
        "peak GiB",
        "tokens per eojeol",
        *(f"F1 {path.stem}" for path in golds),
        "",
    ]
    tell(f"{machine()}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    wanted = [row for row in ROWS if re.search(given.rows, row)]
    with contextlib.ExitStack() as stack:
        folder = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for mb in filter(None, given.mb.split(",")):
            file = folder / f"{mb}.txt"
            if not file.exists():
                write_text(lines, int(float(mb) * 1e6), file, given.power)
            for size, turn, row in itertools.product(given.sizes.split(","), range(given.runs), wanted):
                name = f"{mb}-{size}-{turn}"
                out, cache = folder / f"{name}-{ROWS.index(row)}", folder / f"{mb}-cache"
                if "cold" in row:
                    shutil.rmtree(cache, ignore_errors=True)
                koktok = ["--min-count", str(given.min_count), "--sample", str(given.sample)]
                words = [str(file), *koktok, "--child", row, size, str(out), str(cache)]
                seconds, busy, memory, last = measured(*words, patience=given.patience)
                spec, _, said = last.partition("\t")
                if given.work:
                    table = "".join(f"{second}\t{mib:.0f}\n" for second, mib in memory.seconds.items())
                    (folder / f"{out.name}.memory.tsv").write_text(f"second\tMiB\n{table}")
                figures = [
                    f"{seconds:.1f}",
                    f"{busy:.1f}",
                    f"{memory.peak / 1024:.2f}",
                    *quality(spec, golds, held),
                    said,
                ]
                tell(f"| {' | '.join([f'{int(size):,}', f'{mb} MB', row, *figures])} |")
            if not given.work:
                file.unlink()


if __name__ == "__main__":
    main()
