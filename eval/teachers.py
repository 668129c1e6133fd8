"""Every analyser as a teacher: its boundaries against people's, its speed, and the vocabularies that its cuts give.

    python -m eval.teachers DATA|corpus:bench-ko [--cap 1500] [--size 6000] [--tokens 2.5] [--words 1000] [--every 5] [--patience 900]

DATA is a folder as for `python -m eval full`; at most `--cap` eojeols of each text are trained on, since the slowest analyser has
to see them, too, and a tenth of that is measured on. Speed: distinct words a processor second (which a busy machine changes little),
warm, on the first `--words` words by hash; what Java has left to do behind one row counts in the next, so speeds to compare
come of a run for each name, and the table of one more run. Its own F1: of its cuts of each eojeol alone, as training asks it,
on every fifth sentence (`--every`) of the human golds.
Vocabularies: preset balanced, which keeps a share of the boundaries that the teacher itself finds; and one that takes `--tokens`
per eojeol whoever teaches, so that F1 is compared at equal tokens. A teacher that is missing, or would take longer than
`--patience` seconds for all words, is a row that says so. Finished rows are kept in the work folder, so that a run that was
stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from eval.machine import Told, machine
from eval.peers import digest_of
from eval.texts import data_of, split
from koktok.count import count_words
from koktok.count.prepared import prepare
from koktok.errors import KoktokError
from koktok.files import cache_dir, write_file
from koktok.foreign import load
from koktok.foreign.analysers import of_segmenter
from koktok.gold import read_gold
from koktok.metrics import GoldPage, Text, score
from koktok.pipeline import train
from koktok.recipe import Recipe
from koktok.report.benchmark import GOLDS
from koktok.report.markdown import table
from koktok.segment import segmenter_for, text_to_analyse
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.tokenizer.any_tokenizer import AnyTokenizer
from koktok.training.unigram_point import PRESETS

HEADS: Final = (
    "teacher",
    "words a processor second",
    "its own F1",
    "balanced: tokens",
    "F1",
    "before particles",
    "before endings",
    "at equal tokens: tokens",
    "F1",
    "before particles",
    "before endings",
)
METRICS: Final = ("boundary_f1", "recall_noun_particle", "recall_verb_ending")


@dataclass(frozen=True)
class Data:
    """Lines trained on and held out; golds that people made, whole and some sentences of each; distinct words, all and some."""

    train: list[str]
    held: Text
    golds: list[GoldPage]
    few: list[GoldPage]
    words: dict[str, int]
    some: list[str]

    @classmethod
    def of(cls, folder: Path, cap: int, words: int, every: int) -> Data:
        """Of a folder DATA."""
        kept, held = split(folder / "text", cap)
        counts = prepare(count_words(kept), Normalizer(), Pattern())
        asked = {word: n for raw, n in counts.items() if (word := text_to_analyse(raw))}
        some = sorted(asked, key=lambda word: hashlib.sha256(word.encode()).digest())[:words]
        golds = [gold for name in GOLDS if (gold := read_gold(folder / "gold" / name)).human]
        few = [replace(gold, sentences=gold.sentences[::every]) for gold in golds]
        return cls(kept, Text.of(held), [*map(GoldPage, golds)], [*map(GoldPage, few)], asked, some)

    @property
    def digest(self) -> str:
        """Of everything that a row depends on beside its teacher."""
        golds = [page.gold.digest for page in self.golds]
        return "-".join([digest_of(self.train), self.held.digest, *golds])


def figures(subject: AnyTokenizer, pages: Sequence[GoldPage]) -> list[str]:
    """Each metric, on each gold."""
    found = [score(subject, gold=[page], resamples=0).values for page in pages]
    return [" / ".join(f"{values[metric].value:.3f}" for values in found) for metric in METRICS]


def row(name: str, data: Data, given: argparse.Namespace, folder: Path) -> Iterable[str]:
    """Cells behind the name."""
    if name == "whitespace":
        yield from ("–", "–")
    else:
        segmenter = segmenter_for(name, threads=1, counts=data.words)
        list(segmenter.analyse(data.some[:20]))
        start = time.process_time()
        list(segmenter.analyse(data.some))
        rate = len(data.some) / (time.process_time() - start)
        yield f"{rate:,.0f}"
        yield figures(of_segmenter(name, segmenter), data.few)[0]
        if len(data.words) / rate > given.patience:
            yield f"not run: {len(data.words) / rate / 60:.0f} minutes of analysis"
            return
    targets: tuple[dict[str, float], ...] = ({}, {"tokens_per_eojeol": given.tokens})
    for wanted in targets:
        options: dict[str, Any] = {"vocab_size": given.size, **wanted}
        recipe = Recipe.build({"train": options, "segment": {"segmenter": name}, "holdout": 0.0})
        vocabulary = load(str(train(data.train, recipe).tokenizer.save(folder / f"{name}-{len(wanted)}")))
        yield f"{score(vocabulary, data.held, resamples=0).values['fertility'].value:.3f}"
        yield from figures(vocabulary, data.golds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--cap", type=int, default=1500, help="eojeols of each text")
    parser.add_argument("--size", type=int, default=6_000)
    parser.add_argument("--tokens", type=float, default=2.5, help="per eojeol, in the last columns")
    parser.add_argument("--names", default="kiwi,mecab,komoran,okt,hannanum,khaiii,soynlp,whitespace,kkma")
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--patience", type=float, default=900)
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval", help="where finished rows are kept")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    tell, data = Told(given.report), Data.of(given.data, given.cap, given.words, given.every)
    eojeols = sum(len(line.split()) for line in data.train)
    tell(
        f"{machine()}\n\n{eojeols:,} eojeols, {len(data.words):,} distinct words asked; vocabularies of {given.size:,} ids; "
        f"F1 and recall on {' / '.join(page.gold.name for page in data.golds)}\n"
    )
    rows = []
    with tempfile.TemporaryDirectory() as home:
        for name in given.names.split(","):
            key = json.dumps(
                [
                    name,
                    data.digest,
                    given.size,
                    given.tokens,
                    given.words,
                    given.every,
                    repr(PRESETS["balanced"]),
                    Path(__file__).read_text("utf-8"),
                ]
            )
            place = given.work / "teachers" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
            if not place.exists():
                try:
                    cells = [name, *row(name, data, given, Path(home))]
                    write_file(place, json.dumps(cells, ensure_ascii=False).encode())
                except KoktokError as error:
                    cells = [name, f"not run: {error.message}"]
                print(*cells, sep=" | ", file=sys.stderr, flush=True)
            else:
                cells = json.loads(place.read_text(encoding="utf-8"))
            rows.append([*cells, *[""] * (len(HEADS) - len(cells))])
    tell(table(HEADS, "l" + "r" * (len(HEADS) - 1), rows))


if __name__ == "__main__":
    main()
