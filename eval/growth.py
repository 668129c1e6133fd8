"""How training time and peak memory grow with the text: koktok, SentencePiece and Hugging Face from the same raw file.

    python -m eval.growth DATA [--size 32000] [--times 1,2,4,8] [--cap 110000]

DATA is a folder with `text/`. At most `--cap` eojeols of each file are 8x; 4x, 2x and 1x are the half, quarter and eighth
of its blocks of 50 lines, chosen by hash, so that each is a part of the next. Every training is a process of its own,
which reads a file and writes a vocabulary; time and memory are those of the whole process, its imports among them.
koktok begins with an empty cache of analyses; its compiled code is on disk (the first training after an installation
takes 20 s more). The row `warm` finds the analyses of the row above.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from eval import trainers
from eval.machine import machine

WHOLE = 8


def koktok(file: Path, size: int, out: Path, cache: Path) -> str:
    from koktok.build import train_tokenizer
    from koktok.corpus import Source
    from koktok.recipe import Recipe

    recipe = Recipe.build({"train": {"vocab_size": size}, "pretokenize": {"digits": "free"}, "holdout": 0.0})
    made = train_tokenizer([Source.of(file)], recipe, cache=cache)
    made.tokenizer.save(out)
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in made.seconds.items())
    return f"{len(made.segmented):,} distinct words; {stages}"


def sentencepiece(file: Path, size: int, out: Path, kind: str) -> str:
    import sentencepiece as spm

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
    )
    return ""


def hugging_face(file: Path, size: int, out: Path) -> str:
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train([str(file)], vocab_size=size, show_progress=False)
    tokenizer.save(str(out))
    return ""


def child(name: str, file: Path, size: int, out: Path, cache: Path) -> str:
    if name.startswith("koktok"):
        return koktok(file, size, out, cache)
    if name.startswith("SentencePiece"):
        return sentencepiece(file, size, out, name.split()[1])
    return hugging_face(file, size, out)


ROWS = (
    "koktok balanced, cold",
    "koktok balanced, warm",
    "SentencePiece unigram",
    "SentencePiece bpe",
    "HF byte-level BPE",
)


def measured(*words: str) -> tuple[float, float, str]:
    """Seconds, MiB at the peak, and what the child had to say."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "eval.growth", *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)  # the memory of this child alone
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = f"failed with exit code {process.returncode}"
    return seconds, usage.ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1), said.strip()


def part(lines: list[str], times: int) -> list[str]:
    """The blocks whose hash falls into `times` of eight parts."""
    return [
        line
        for i, line in enumerate(lines)
        if int(hashlib.sha256(str(i // trainers.BLOCK).encode()).hexdigest(), 16) % WHOLE < times
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", help="folder with text/")
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--times", default="1,2,4,8")
    parser.add_argument("--cap", type=int, default=110_000, help="eojeols of each file in 8x")
    parser.add_argument("--child", nargs=3, metavar=("ROW", "OUT", "CACHE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        row, out, cache = given.child
        print(child(row, Path(given.data), given.size, Path(out), Path(cache)))
        return
    trainers.CAP = given.cap
    lines = trainers.read(Path(given.data), "ko_kaist-ud-dev.conllu").train
    print(f"{machine()}\nvocabulary {given.size:,}\n\n| text | trainer | s | peak MiB | |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for times in map(int, given.times.split(",")):
            file = Path(folder) / f"{times}.txt"
            file.write_text("\n".join(part(lines, times)) + "\n", encoding="utf-8")
            for i, row in enumerate(ROWS):
                cache = f"{folder}/cache{times}"
                seconds, peak, said = measured(
                    str(file), "--size", str(given.size), "--child", row, f"{folder}/{times}-{i}", cache
                )
                print(
                    f"| {times}x, {file.stat().st_size / 1e6:.1f} MB | {row} | {seconds:.1f} | {peak:,.0f} | {said} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
