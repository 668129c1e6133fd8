"""A segmentation learnt from words (dynamic programming encoding) as a teacher, beside none, soynlp and Kiwi, at SentencePiece's tokens.

    python -m eval.dpe DATA FOLDER [--size 32000] [--rows sp,none,soynlp,kiwi,dpe,dpe+kiwi] [--words 0] [--epochs 5] [--pieces 8000]
        [--power 0] [--cap 110000] [--report FILE]

DATA is a folder with `text/` and `gold/`, or corpus:bench-ko; at most `--cap` eojeols of each text are read.
Every vocabulary is trained on the same lines; koktok's have the tokens of the SentencePiece model on them as their target, so
that F1 is compared at equal tokens; they have SentencePiece's terms, digits free, a space before the first word, no required
syllables. FOLDER keeps the SentencePiece model and what was learnt, for the next run.

Columns: F1 of the teacher itself on the golds of Kaist and KSL, and its tokens per eojeol on the first; tokens per eojeol of the
vocabulary on held-out lines, and its F1. A second table says, for each learnt segmentation, seconds of learning, bits per
character of the words of held-out lines (each distinct word once; all segmentations summed), and what distillation keeps: a Unigram
vocabulary whose scores the semi-CRF trains on the learnt cuts and on nothing else, on the most frequent held-out words, as the
share of words (distinct, running) that it cuts exactly as the decoder does.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from eval.growth import sentencepiece
from eval.machine import Told, machine
from eval.texts import CAP, GOLDS, data_of, split
from koktok.count import count_words
from koktok.count.prepared import prepare
from koktok.dpe.learning import DEFAULT, learn_cuts
from koktok.dpe.learnt import Dpe
from koktok.dpe.tree import TaggedWord
from koktok.errors import KoktokError
from koktok.foreign import load
from koktok.gold import read_gold
from koktok.metrics import GoldPage, Text, score
from koktok.pipeline import train
from koktok.recipe import Recipe
from koktok.segment import segmenter_for, text_to_analyse
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.tokenizer.any_tokenizer import AnyTokenizer

ASKED = 20_000
"""Frequent held-out words on which the distilled vocabulary is compared with the decoder."""

FAITHFUL = {"lam": 0.02, "mu": 1.0, "nu": 1.0}
"""DpeOptions of a vocabulary that is to cut as its teacher does: a token costs next to nothing."""

TEACHERS = {"none": "whitespace", "soynlp": "soynlp", "kiwi": "kiwi", "dpe": "dpe", "dpe+kiwi": "dpe"}


@dataclass(frozen=True)
class Data:
    """Lines trained on, lines held out, golds, and the folder of what is kept."""

    lines: list[str]
    held: dict[str, list[str]]
    golds: list[GoldPage]
    folder: Path
    given: argparse.Namespace

    @cached_property
    def words(self) -> dict[str, int]:
        """Distinct words to learn from."""
        return _words(self.lines)

    @cached_property
    def sentencepiece(self) -> str:
        """The model of the row that is to be beaten."""
        out = self.folder / f"sentencepiece-{self.given.size}"
        if not out.with_suffix(".model").exists():
            text = self.folder / "lines.txt"
            text.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
            sentencepiece(text, self.given.size, out, "unigram", sampled=False)
        return str(out.with_suffix(".model"))


def _words(lines: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word, n in prepare(count_words(lines), Normalizer(), Pattern()).items():
        found[text_to_analyse(word)] = found.get(text_to_analyse(word), 0) + n
    found.pop("", None)
    return found


def f1(subject: AnyTokenizer, data: Data, metric: str = "boundary_f1") -> str:
    found = (score(subject, gold=[page], resamples=0).values[metric].value for page in data.golds)
    return " / ".join(f"{value:.3f}" for value in found)


def tokens(subject: AnyTokenizer, text: Text) -> str:
    return f"{score(subject, text, resamples=0).values['fertility'].value:.3f}"


def learnt(name: str, data: Data) -> Path:
    """The folder of a learnt segmentation, made where it is not there."""
    given, out = data.given, data.folder / name
    if not out.exists():
        counts = data.words
        if given.words:
            counts = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: given.words])
        beside = "kiwi" if name.endswith("kiwi") else ""
        dials = replace(DEFAULT, epochs=given.epochs, pieces=given.pieces, power=given.power)
        begun = time.perf_counter()
        made = learn_cuts(counts, segmenter_for(beside, threads=1) if beside else None, name=beside, options=dials)
        took = round(time.perf_counter() - begun, 1)
        replace(made, about={**made.about, "seconds": took}).save(out)
    return out


def row(name: str, data: Data) -> list[str]:
    held = Text.of(data.held)
    first = Text.of({"gold": data.golds[0].page.lines})
    if name == "sp":
        spec = load(f"sp:{data.sentencepiece}")
        return ["–", "–", tokens(spec, held), f1(spec, data)]
    segmenter = TEACHERS[name] if TEACHERS[name] != "dpe" else f"dpe:{learnt(name, data)}"
    own = own_tokens = "–"
    if name not in ("none", "soynlp"):
        subject = load(segmenter)
        own, own_tokens = f1(subject, data), tokens(subject, first)
    recipe = Recipe.build(
        {
            "train": {"vocab_size": data.given.size, "required": "none"},
            "pretokenize": {"digits": "free", "prefix_space": True},
            "segment": {"segmenter": segmenter},
            "holdout": 0.0,
        }
    )
    like = (
        {"preset": "short"} if name == "none" else {"like": data.sentencepiece}
    )  # without cuts there is one price only
    made = train(data.lines, recipe, threads=1, **like).tokenizer.save(data.folder / f"vocabulary-{name}")
    vocabulary = load(str(made))
    return [own, own_tokens, tokens(vocabulary, held), f1(vocabulary, data)]


def fidelity(name: str, data: Data) -> list[str]:
    """What was learnt, and what is left of it in a Unigram vocabulary."""
    folder = learnt(name, data)
    made = Dpe.load(folder)
    recipe = Recipe.build(
        {
            "train": {"vocab_size": data.given.size, "required": "none", **FAITHFUL},
            "segment": {"segmenter": f"dpe:{folder}"},
            "holdout": 0.0,
        }
    )
    tokenizer = train(data.lines, recipe, threads=1).tokenizer
    tokenizer.save(data.folder / f"distilled-{name}")
    held = _words([line for lines in data.held.values() for line in lines])
    asked = sorted(held, key=lambda word: (-held[word], word))[:ASKED]
    decoder = segmenter_for(f"dpe:{folder}", threads=1)
    same = same_running = 0
    for word, pieces in zip(asked, decoder.analyse(asked), strict=True):
        cut = {piece.end for piece in pieces if piece.end < len(word)}
        found = tokenizer.encode(f" {word}").pieces
        if {at - 1 for at in accumulate(map(len, found)) if 1 < at <= len(word)} == cut:
            same += 1
            same_running += held[word]
    running = sum(held[word] for word in asked)
    bits = "–"
    if not made.about["analyser"]:
        told = made.log_probability(TaggedWord(word) for word in held if all("가" <= c <= "힣" for c in word))
        bits = f"{-sum(told.values()) / math.log(2) / sum(len(word.text) + 1 for word in told):.3f}"
    seconds, words = made.about.get("seconds", "–"), made.about["words"]
    return [
        f"{words:,}",
        f"{len(made.pieces):,}",
        f"{seconds}",
        bits,
        f"{same / len(asked):.3f}",
        f"{same_running / running:.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--rows", default=",".join(["sp", *TEACHERS]))
    parser.add_argument("--words", type=int, default=0, help="most frequent words to learn from; 0 for all")
    parser.add_argument("--epochs", type=int, default=DEFAULT.epochs)
    parser.add_argument("--pieces", type=int, default=DEFAULT.pieces)
    parser.add_argument("--power", type=float, default=DEFAULT.power)
    parser.add_argument("--cap", type=int, default=CAP)
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    lines, held = split(given.data / "text", given.cap)
    golds = [GoldPage(read_gold(given.data / "gold" / name)) for name in GOLDS.split(",")]
    data, tell = Data(lines, held, golds, given.folder, given), Told(given.report)
    tell(
        f"{machine()}\n\n{len(lines):,} lines, {len(data.words):,} distinct words; vocabularies of {given.size:,} ids\n"
    )
    tell(
        "| teacher | its own F1, Kaist / KSL | its tokens per eojeol of Kaist | tokens per eojeol | F1 of the vocabulary |"
    )
    tell("|---|---:|---:|---:|---:|")
    rows = given.rows.split(",")
    for name in rows:
        tell(f"| {' | '.join([name, *_told(row, name, data, 4)])} |")
    tell("\n| learnt | runs of Hangul | pieces | seconds | bits per character | equal, distinct | equal, running |")
    tell("|---|---:|---:|---:|---:|---:|---:|")
    for name in rows:
        if TEACHERS.get(name) == "dpe":
            tell(f"| {' | '.join([name, *_told(fidelity, name, data, 6)])} |")


def _told(what: object, name: str, data: Data, cells: int) -> list[str]:
    """The cells of a row, or why there are none."""
    try:
        return what(name, data)  # type: ignore[operator, no-any-return]
    except KoktokError as error:
        return [f"not run: {error.message}", *[""] * (cells - 1)]


if __name__ == "__main__":
    main()
