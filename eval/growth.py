"""How training time and peak memory grow with the text: koktok and its peers from the same raw file.

    python -m eval.growth DATA|corpus:bench-ko [--size 32000] [--mb 5,10,20] [--rows koktok,spm,hf,kiwi] [--runs 1]

Sizes in MB are parts of DATA/text (blocks of 50 lines in an order chosen by hash, so each is a part of the next). Every training is a
process of its own, which reads a file and writes a vocabulary; time is that of the whole process, its imports among it; memory is the
most that it and its children had at one time, looked at every 50 ms. koktok begins with an empty cache of analyses; its compiled code
is on disk (the first training after an installation takes 20 s more). The row `warm` finds the analyses of the row above. Rows are told
as they come; one that takes longer than an hour is ended and told so. `--runs 3` takes all rows in turns, three times.

Beside the seconds stands what was made in them, the boundary F1 of every vocabulary on the gold files of DATA/gold, and processor
seconds, which a busy machine changes less. A trainer that reads every word is beside koktok's `--min-count 1`; by default the rare words
of much text are a sample that stands for all of them (`koktok.count.sample`).
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from eval.machine import Told, machine
from eval.peers import PEERS
from eval.texts import GOLDS, base_lines, data_of

PATIENCE = 3600.0
ROWS = {
    "koktok lm, cold": "koktok",
    "koktok lm, warm": "koktok",
    "SentencePiece Unigram, spaces only": "spm",
    "SentencePiece BPE, spaces only": "spm",
    "HF byte-level BPE": "hf",
    "Kiwi bpe_trainer j e vcp xsv": "kiwi",
}
"""koktok with `digits = free`, as the peers cut them; and peers of eval/peers.py."""


def child(row: str, file: Path, size: int, out: Path, cache: Path, min_count: int) -> str:
    """Train in this process; what is to be said of it, behind the reference of the vocabulary."""
    if not row.startswith("koktok"):
        lines = file.read_text(encoding="utf-8").splitlines()
        return next(peer for peer in PEERS if peer.name == row).make(lines, size, out)
    from koktok import Recipe
    from koktok.pipeline.train import train
    from koktok.text.sources import Source

    of_training = {"vocab_size": size} | ({"min_count": min_count} if min_count else {})
    recipe = Recipe().changed(train=of_training, pretokenize={"digits": "free"}, holdout=0.0)
    made = train([Source.of(file)], recipe, cache=cache)
    made.tokenizer.save(out / "tokenizer")
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in made.seconds.items())
    said = f"{len(made.segmented):,} words trained on, {made.asked:,} analysed; {stages}; {'; '.join(made.notes)}"
    return f"koktok:{out / 'tokenizer'}\t{said}"


class TreeMemory(threading.Thread):
    """The most memory that a process and its descendants had at one time, in MiB (Linux; 0 elsewhere)."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.over = process, 0.0, threading.Event()

    def run(self) -> None:
        """Look until told to stop."""
        while not self.over.wait(0.05):
            parents, sizes = {}, {}
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    status = (folder / "status").read_text()
                except OSError:
                    continue
                values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                parents[int(folder.name)] = int(values["PPid"])
                sizes[int(folder.name)] = int(values.get("VmRSS", "0").split()[0])
            self.peak = max(self.peak, sum(sizes[one] for one in parents if self._below(one, parents)) / 1024)

    def _below(self, process: int, parents: dict[int, int]) -> bool:
        while process > 1 and process != self.process:
            process = parents.get(process, 0)
        return process == self.process


def measured(*words: str, patience: float = PATIENCE) -> tuple[float, float, float, str]:
    """Seconds, processor seconds (its children's too, where they were waited for), MiB at the peak, and the child's last line."""
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
    if process.returncode > 0:
        said = f"\tfailed with exit code {process.returncode}"
    return seconds, busy, memory.peak, said.strip("\n ").split("\n")[-1]


def _spent() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def f1_of(spec: str, golds: Sequence[Path]) -> list[str]:
    """Boundary F1 on each gold; nothing of a training that was ended."""
    from koktok.adapters import load
    from koktok.metrics import GoldPage, score
    from koktok.metrics.gold import read_gold  # here, so that no child's time has it

    if not spec:
        return [""] * len(golds)
    pages = [GoldPage(read_gold(path)) for path in golds]
    values = score(load(spec), gold=pages, resamples=0).values
    return [f"{values[f'boundary_f1@{page.gold.name}'].value:.3f}" for page in pages]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--mb", default="5,10,20", help="sizes in MB")
    parser.add_argument("--rows", default="koktok,spm,hf,kiwi", help="koktok, spm, hf, kiwi")
    parser.add_argument("--min-count", type=int, default=0, help="koktok's --min-count; 0 for what it does by default")
    parser.add_argument("--runs", type=int, default=1, help="turns of all rows")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    parser.add_argument("--child", nargs=3, metavar=("ROW", "OUT", "CACHE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        row, out, cache = given.child
        Path(out).mkdir()
        print(child(row, given.data, given.size, Path(out), Path(cache), given.min_count))
        return
    lines = base_lines(given.data)
    ends = list(itertools.accumulate(len(line.encode()) + 1 for line in lines))
    golds = [path for name in GOLDS.split(",") if (path := given.data / "gold" / name).is_file()]
    tell = Told(given.report)
    heads = ["text", "trainer", "s", "processor s", "peak MiB", *(f"F1 {path.stem}" for path in golds), ""]
    tell(f"{machine()}\nvocabulary {given.size:,}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    wanted = [row for row, kind in ROWS.items() if kind in given.rows.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        for mb in filter(None, given.mb.split(",")):
            file = Path(folder) / f"{mb}.txt"
            file.write_text("".join(f"{line}\n" for line in lines[: bisect.bisect(ends, float(mb) * 1e6)]), encoding="utf-8")  # fmt: skip
            for turn, row in itertools.product(range(given.runs), wanted):
                out, cache = (
                    f"{folder}/{mb}-{turn}-{wanted.index(row)}",
                    f"{folder}/cache-{mb}-{turn}",
                )  # each turn begins cold
                words = [str(file), "--size", str(given.size), "--min-count", str(given.min_count)]
                seconds, busy, peak, last = measured(*words, "--child", row, out, cache)
                spec, _, said = last.partition("\t")
                figures = [f"{seconds:.1f}", f"{busy:.1f}", f"{peak:,.0f}", *f1_of(spec, golds), said]
                tell(f"| {' | '.join([f'{mb} MB', row, *figures])} |")
            file.unlink()


if __name__ == "__main__":
    main()
