"""How training time and peak memory grow with the text: koktok and its peers from the same raw file.

    python -m eval.growth DATA [--size 32000] [--mb 5,10,20] [--rows koktok,spm,hf,kiwi] [--mass 1]
        [--min-count 1] [--runs 1]

DATA is a folder with `text/`. Sizes in MB are parts of DATA/text (blocks of 50 lines in an order chosen by hash, so each is a
part of the next). Every training is a process of its own, which reads a file and writes a
vocabulary; time is that of the whole process, its imports among it; memory is the most that it and its children had at one
time, looked at every 50 ms. koktok begins with an empty cache of analyses; its compiled code is on disk (the first
training after an installation takes 20 s more). The row `warm` finds the analyses of the row above. Rows are told as they
come; one that takes longer than `--patience` seconds is ended and told so. `--runs 3` takes all rows in turns, three times.

Seconds say nothing without what was made in them: beside them stands the boundary F1 of every vocabulary on the gold files of
DATA/gold, and processor seconds, which a busy machine changes less. A trainer that reads every word is beside koktok's
`--min-count 1`; by default the rare words of much text are a sample that stands for all of them (`koktok.count.sample`).
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from eval.machine import Told, machine
from eval.texts import GOLDS, base_lines, data_of

if TYPE_CHECKING:
    from koktok.metrics import GoldPage

SENTENCES = 2_000_000
"""SentencePiece's own advice for much text: `input_sentence_size` with `shuffle_input_sentence` (its documentation's example
loads a sample of a few million); the row with it is named so."""


def koktok(file: Path, size: int, out: Path, cache: Path, mass: float, min_count: int) -> str:
    from koktok.pipeline import train
    from koktok.recipe import Recipe
    from koktok.text.sources import Source

    values = {
        "train": {"vocab_size": size} | ({"min_count": min_count} if min_count else {}),
        "pretokenize": {"digits": "free"},
        "segment": {"mass": mass},
        "holdout": 0.0,
    }
    made = train([Source.of(file)], Recipe.build(values), cache=cache)
    made.tokenizer.save(out)
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in made.seconds.items())
    return f"{len(made.segmented):,} words trained on, {made.asked:,} analysed; {stages}; {'; '.join(made.notes)}"


def sentencepiece(file: Path, size: int, out: Path, kind: str, *, sampled: bool) -> str:
    import sentencepiece as spm

    sample = {"input_sentence_size": SENTENCES, "shuffle_input_sentence": True} if sampled else {}
    spm.SentencePieceTrainer.train(
        input=str(file),
        model_prefix=str(out),
        model_type=kind,
        vocab_size=size,
        normalization_rule_name="identity",
        split_by_unicode_script=False,
        split_by_number=False,
        max_sentence_length=1 << 20,
        num_threads=os.cpu_count(),
        minloglevel=2,
        **sample,
    )
    return ""


def hugging_face(file: Path, size: int, out: Path) -> str:
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train([str(file)], vocab_size=size, show_progress=False)
    tokenizer.save(str(out))
    return ""


def kiwi_bpe(file: Path, size: int, out: Path) -> str:
    from kiwipiepy import Kiwi, bpe_trainer

    on: dict[str, object] = {f"pretokenize_{name}": True for name in ("j", "e", "vcp", "xsv")}
    on |= {"kiwi": Kiwi(), "num_workers": os.cpu_count(), "show_progress": False}
    with file.open(encoding="utf-8") as lines:
        bpe_trainer.train_bpe_tokenizer(str(out), (line.rstrip("\n") for line in lines), size, **on)
    return ""


ROWS = {
    "koktok balanced, cold": "koktok",
    "koktok balanced, warm": "koktok",
    "SentencePiece unigram": "spm",
    "SentencePiece unigram, 2,000,000 sentences": "spm-sampled",
    "SentencePiece bpe": "spm",
    "HF byte-level BPE": "hf",
    "Kiwi bpe_trainer j e vcp xsv": "kiwi",
}


def child(row: str, file: Path, size: int, out: Path, cache: Path, mass: float, min_count: int) -> str:
    if row.startswith("koktok"):
        return koktok(file, size, out, cache, mass, min_count)
    if row.startswith("SentencePiece"):
        return sentencepiece(file, size, out, row.split()[1].strip(","), sampled="sentences" in row)
    return hugging_face(file, size, out) if row.startswith("HF") else kiwi_bpe(file, size, out)


def spec_of(row: str, out: str) -> str:
    """What the row has written, for `koktok.foreign`."""
    return (
        f"koktok:{out}"
        if row.startswith("koktok")
        else f"sp:{out}.model"
        if row.startswith("SentencePiece")
        else f"hf:{out}"
    )


def golds_of(data: Path, names: str) -> list[GoldPage]:
    from koktok.metrics import GoldPage
    from koktok.metrics.gold import read_gold  # here, so that no child's time has it

    return [GoldPage(read_gold(data / "gold" / name)) for name in names.split(",") if (data / "gold" / name).is_file()]


def f1_of(spec: str, golds: list[GoldPage]) -> list[str]:
    """Boundary F1 on each gold, or why there is none."""
    from koktok.foreign import load
    from koktok.metrics import score

    try:
        values = score(load(spec), gold=golds, resamples=0).values
    except Exception as error:  # a training that was ended has written nothing
        return [type(error).__name__] * len(golds)
    return [f"{values[f'boundary_f1@{page.gold.name}'].value:.3f}" for page in golds]


class TreeMemory(threading.Thread):
    """The most memory that a process and its descendants had at one time (Linux; 0 elsewhere)."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.own, self.over = process, 0, 0, threading.Event()

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
            tree = [process for process in parents if self._below(process, parents)]
            self.peak = max(self.peak, sum(sizes[process] for process in tree))
            self.own = max(self.own, sizes.get(self.process, 0))

    def _below(self, process: int, parents: dict[int, int]) -> bool:
        while process > 1 and process != self.process:
            process = parents.get(process, 0)
        return process == self.process


def measured(*words: str, patience: float = 1e6, module: str = "eval.growth") -> tuple[float, float, float, str]:
    """Seconds, processor seconds (its children's too, where they were waited for), MiB at the peak, and what the child had to say."""
    begun, spent = time.perf_counter(), _spent()
    process = subprocess.Popen([sys.executable, "-m", module, *words], stdout=subprocess.PIPE, text=True)
    memory = TreeMemory(process.pid)
    memory.start()
    try:
        said, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        said = f"ended after {patience:,.0f} s"
    seconds, busy = time.perf_counter() - begun, _spent() - spent
    memory.over.set()
    memory.join()
    if process.returncode > 0:
        said = f"failed with exit code {process.returncode}"
    return seconds, busy, memory.peak / 1024, said.strip().split("\n")[-1]


def _spent() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def head(golds: list[GoldPage]) -> str:
    columns = ["text", "trainer", "s", "processor s", "peak MiB", *(f"F1 {page.gold.name}" for page in golds), ""]
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def table_of(
    file: Path, label: str, rows: list[str], given: argparse.Namespace, folder: str, golds: list[GoldPage], tell: Told
) -> None:
    """A row a training, told as it comes."""
    for turn in range(given.runs):
        cache = f"{folder}/cache-{file.stem}-{turn}"  # every turn begins cold
        for i, row in enumerate(rows):
            out = f"{folder}/{file.stem}-{turn}-{i}"
            words = [
                str(file),
                "--size",
                str(given.size),
                "--mass",
                str(given.mass),
                "--min-count",
                str(given.min_count),
            ]
            seconds, busy, peak, said = measured(*words, "--child", row, out, cache, patience=given.patience)
            cells = [
                label,
                row,
                f"{seconds:.1f}",
                f"{busy:.1f}",
                f"{peak:,.0f}",
                *f1_of(spec_of(row, out), golds),
                said,
            ]
            tell(f"| {' | '.join(cells)} |")


def common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--mass", type=float, default=1.0, help="koktok's --segment-mass")
    parser.add_argument("--min-count", type=int, default=0, help="koktok's --min-count; 0 for what it does by default")
    parser.add_argument("--runs", type=int, default=1, help="turns of all rows")
    parser.add_argument("--gold", default=GOLDS, help="files of DATA/gold that F1 is measured on")
    parser.add_argument("--patience", type=float, default=3600.0)
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--mb", default="5,10,20", help="sizes in MB")
    parser.add_argument("--rows", default="koktok,spm,hf,kiwi", help="koktok, spm, spm-sampled, hf, kiwi")
    common_options(parser)
    parser.add_argument("--child", nargs=3, metavar=("ROW", "OUT", "CACHE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        row, out, cache = given.child
        print(child(row, given.data, given.size, Path(out), Path(cache), given.mass, given.min_count))
        return
    wanted = [row for row, kind in ROWS.items() if kind in given.rows.split(",")]
    lines = base_lines(given.data)
    ends = list(itertools.accumulate(len(line.encode()) + 1 for line in lines))
    tell, golds = Told(given.report), golds_of(given.data, given.gold)
    tell(f"{machine()}\nvocabulary {given.size:,}\n\n{head(golds)}")
    with tempfile.TemporaryDirectory() as folder:
        for mb in filter(None, given.mb.split(",")):
            file = Path(folder) / f"{mb}.txt"
            until = bisect.bisect(ends, float(mb) * 1e6)
            file.write_text("".join(f"{line}\n" for line in lines[:until]), encoding="utf-8")
            table_of(file, f"{mb} MB", wanted, given, folder, golds, tell)
            file.unlink()


if __name__ == "__main__":
    main()
