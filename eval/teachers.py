"""Every analyser as a teacher: its boundaries against people's, its speed, and the vocabulary that its cuts give.

    python -m eval.teachers [TEXT] [--size 16000] [--names kiwi,mecab,okt,komoran,kkma,hannanum,soynlp] [--words 2000] [--patience 900]

TEXT is a file or corpus:NAME; a twentieth of its lines is held out. Speed: distinct words a second in one process,
warm, on the first `--words` words of the text by hash. Boundaries: F1 on the human golds of gold-ko, as in `koktok report`. Vocabulary: preset
balanced, tokens on the held-out part and F1 of the vocabulary. A teacher that is missing, or would take longer than
`--patience` seconds for all words, is a row that says so.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from eval.machine import Told, machine
from koktok.count import count_words
from koktok.count.prepared import prepare
from koktok.errors import KoktokError
from koktok.foreign import ForeignTokenizer, open_spec
from koktok.gold import read_gold
from koktok.metrics import GoldPage, Text, score
from koktok.pipeline import train
from koktok.recipe import Recipe
from koktok.segment import bare, segmenter_for
from koktok.text.corpora import fetch
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.text.sources import Source, read_lines

GOLDS = ("ko_kaist-ud-dev.conllu", "ko_ksl-ud-dev.conllu")
SPECS = {"mecab": "mecab-ko"}
"""Rows of analysers whose name as a tokenizer is another one."""
HELD = 20
"""One line of so many is held out, by hash."""


@dataclass(frozen=True)
class Data:
    """Lines trained on, lines held out, golds, and distinct words for the speed."""

    train: list[str]
    held: Text
    golds: list[GoldPage]
    words: dict[str, int]
    some: list[str]


def data_of(text: str, words: int) -> Data:
    lines = dict.fromkeys(line for line in read_lines(Source.of(text)) if line.strip())
    held = [line for line in lines if int(hashlib.sha256(line.encode()).hexdigest(), 16) % HELD == 0]
    kept = [line for line in lines if int(hashlib.sha256(line.encode()).hexdigest(), 16) % HELD]
    counts = prepare(count_words(kept), Normalizer(), Pattern())
    asked = {word: n for raw, n in counts.items() if (word := bare(raw))}
    some = sorted(asked, key=lambda word: hashlib.sha256(word.encode()).digest())[:words]
    golds = [GoldPage(read_gold(fetch("gold-ko") / name)) for name in GOLDS]
    return Data(kept, Text.of({"held out": held}), golds, asked, some)


def row(name: str, data: Data, size: int, patience: float, folder: Path) -> list[str]:
    speed = own = "–"
    if name != "whitespace":
        segmenter = segmenter_for(name, threads=1, counts=data.words)
        list(segmenter.analyse(data.some[:20]))
        start = time.perf_counter()
        list(segmenter.analyse(data.some))
        rate = len(data.some) / (time.perf_counter() - start)
        speed, minutes = f"{rate:,.0f}", len(data.words) / rate / 60
        if name != "soynlp":  # which is no analyser without a text of its own
            own = _figures(open_spec(SPECS.get(name, name)), data, "boundary_f1")
        if minutes * 60 > patience:
            return [speed, own, f"not run: {minutes:.0f} minutes of analysis", "", "", ""]
    recipe = Recipe.build({"train": {"vocab_size": size}, "segment": {"segmenter": name}, "holdout": 0.0})
    made = train(data.train, recipe).tokenizer.save(folder / name)
    vocabulary = open_spec(str(made))
    tokens = score(vocabulary, data.held, resamples=0).values["fertility"].value
    kinds = (_figures(vocabulary, data, f"recall_{kind}") for kind in ("noun_particle", "verb_ending"))
    return [speed, own, f"{tokens:.3f}", _figures(vocabulary, data, "boundary_f1"), *kinds]


def _figures(subject: ForeignTokenizer, data: Data, metric: str) -> str:
    """A metric on each gold."""
    found = (score(subject, gold=[page], resamples=0).values[metric].value for page in data.golds)
    return " / ".join(f"{value:.3f}" for value in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", default="corpus:demo")
    parser.add_argument("--size", type=int, default=16_000)
    parser.add_argument("--names", default="kiwi,mecab,okt,komoran,kkma,hannanum,khaiii,soynlp,whitespace")
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--patience", type=float, default=900)
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    tell, data = Told(given.report), data_of(given.text, given.words)
    tell(
        f"{machine()}\n\n{given.text}: {len(data.words):,} distinct words; vocabularies of {given.size:,} ids, preset balanced\n"
    )
    heads = "teacher|words a second|its own F1, Kaist / KSL|tokens per eojeol|F1 of the vocabulary|before particles|before endings"
    tell(f"| {' | '.join(heads.split('|'))} |\n|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as home:
        for name in given.names.split(","):
            try:
                cells = row(name, data, given.size, given.patience, Path(home))
            except KoktokError as error:
                cells = [f"not run: {error.message}", *[""] * 5]
            tell(f"| {' | '.join([name, *cells])} |")


if __name__ == "__main__":
    main()
