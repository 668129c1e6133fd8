"""The trainers beside their peers: tokens per eojeol and boundary scores of vocabularies trained on the same text.

    python -m eval.trainers DATA [--sizes 32000] [--presets short,balanced,aligned] [--superwords] [--bpe] [--peers sp,hf,kiwi]

DATA is a folder with `text/` (plain or gzipped lines) and `gold/`. At most 110,000 eojeols of each text are read; blocks of 50 lines,
chosen by hash, are held out. Every row trains on the rest, koktok's with digits free (`python -m eval full` has the product's
settings). Tokens are counted on held-out lines, scores on the gold files, both by `koktok.metrics`: intervals are 95 %, by bootstrap
over the texts and over the documents of a gold. Josa and eomi are recall on the first gold, and the last F1 is that before particles,
endings and the copula, mean of the golds. "Gaps" is the share of the gaps between eojeols of held-out lines that lie inside a token.
Several sizes are trained in one run from one table of candidates. SentencePiece puts a space before every line (its dummy prefix) and
koktok does not: `bare` are its rows without, `--space` gives koktok lines with one. `like` are rows of SentencePiece with what koktok
has by default, one at a time and all.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.machine import machine
from eval.texts import CAP, GOLDS, data_of, split
from koktok.foreign.base import ForeignTokenizer
from koktok.foreign.huggingface_adapter import HuggingFace
from koktok.foreign.sentencepiece_adapter import SentencePiece
from koktok.foreign.trivial import OpenVocabulary
from koktok.gold import read_gold
from koktok.hangul import KS_X_1001
from koktok.metrics import GoldPage, Scores, Text, Value, score

if TYPE_CHECKING:
    from koktok.train.unigram import Point

SPECIALS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")

LIKE: dict[str, dict[str, Any]] = {
    "digits alone": {"split_digits": True},
    "no dummy prefix": {"add_dummy_prefix": False},
    "bytes": {"byte_fallback": True},
    "2,350 syllables": {"required_chars": "".join(KS_X_1001)},
}
"""What koktok has by default and SentencePiece has not; each costs tokens."""

Cutter = Callable[[str], list[tuple[int, int]]]
"""A line to the spans of its tokens, in code points."""


@dataclass(frozen=True)
class Data:
    """Training lines, held-out text by file, and gold corpora."""

    train: list[str]
    held: Text
    golds: list[GoldPage]


def read(folder: Path, golds: Sequence[str], cap: int = CAP) -> Data:
    missing = [
        str(path) for path in (folder / "text", *(folder / "gold" / gold for gold in golds)) if not path.exists()
    ]
    if missing:
        sys.exit(f"eval: `{missing[0]}` is missing; give the folder that holds text/ and gold/")
    train, held = split(folder / "text", cap)
    return Data(train, Text.of(held), [GoldPage(read_gold(folder / "gold" / gold)) for gold in golds])


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def subject_of(name: str, cutter: Cutter) -> OpenVocabulary:
    """A tokenizer as the metrics want it."""
    return OpenVocabulary(name, name, lambda lines: [cutter(line) for line in lines], digest=name)


def measured(name: str, cutter: Cutter, data: Data, base: OpenVocabulary | None = None) -> Scores:
    """Every figure of a row; without a base it is its own."""
    subject = subject_of(name, cutter)
    return score(subject, data.held, gold=data.golds, reference=base or subject)


def head(data: Data) -> str:
    golds = [page.gold.name for page in data.golds]
    columns = ["ids", "tokenizer", "tokens/eojeol", "mean of files", "ratio to the first [95 %]", "P", "R"]
    columns += [*(f"F1 {gold} [95 %]" for gold in golds), "josa", "eomi", "F1 josa, eomi, copula [95 %]", "gaps", "s"]
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def show(size: int, name: str, scores: Scores, data: Data, seconds: float) -> None:
    v = scores.values
    first = data.golds[0].gold.name
    cells = [f"{size:,}", name, f"{v['fertility'].value:.3f}"]
    cells.append(f"{np.mean([row['fertility'].value for row in scores.domains.values()]):.3f}")
    cells.append(bounded(v["nsl"]))
    cells += [f"{v[f'boundary_{part}@{first}'].value:.3f}" for part in ("precision", "recall")]
    cells += [bounded(v[f"boundary_f1@{page.gold.name}"]) for page in data.golds]
    cells += [f"{v[f'recall_{kind}@{first}'].value:.3f}" for kind in ("noun_particle", "verb_ending")]
    cells += [bounded(v["boundary_f1_macro"]), f"{v['hidden_gaps'].value:.3f}", f"{seconds:.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def bounded(value: Value) -> str:
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


# ── tokenizers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def sentencepiece(data: Data, size: int, **options: object) -> Cutter:
    import sentencepiece as spm

    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(data.train),
        model_writer=model,
        vocab_size=size,
        normalization_rule_name="identity",  # its NFKC folds characters, which would look like fewer tokens
        max_sentence_length=1 << 20,
        num_threads=2,
        minloglevel=2,
        **options,
    )
    return of_adapter(SentencePiece(model.getvalue(), proven=True))


def of_adapter(tokenizer: ForeignTokenizer) -> Cutter:
    """The spans that `koktok report` measures."""

    def cutter(line: str) -> list[tuple[int, int]]:
        return [(a, b) for a, b in tokenizer.encode([line])[0].spans.tolist()]

    return cutter


def hugging_face(data: Data, size: int) -> Cutter:
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(iter(data.train), vocab_size=size, show_progress=False)
    return of_adapter(HuggingFace(tokenizer.to_str(), proven=True))


def kiwi(data: Data, size: int, *, morphemes: bool) -> Cutter:
    from kiwipiepy import Kiwi, bpe_trainer

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "tokenizer.json")
        on: dict[str, object] = {f"pretokenize_{name}": morphemes for name in ("j", "e", "vcp", "xsv")}
        on["kiwi"] = Kiwi() if morphemes else None
        on |= {"num_workers": 2, "show_progress": False}
        bpe_trainer.train_bpe_tokenizer(path, iter(data.train), size, **on)
        return of_adapter(HuggingFace(Path(path).read_text(encoding="utf-8"), proven=True))


Made = tuple[int, str, Cutter | Exception, float]
"""Size, name, tokenizer and seconds of training."""


def ours(data: Data, sizes: list[int], presets: list[str], *, superwords: bool, bpe: bool) -> Iterator[Made]:
    from koktok.count import count_words, words_of
    from koktok.count.counting import SENTENCE_ENDS, counted_lines
    from koktok.errors import VocabSizeError
    from koktok.segment import Policy, segment_counts
    from koktok.segment.kiwi import KiwiSegmenter
    from koktok.tokenizer.kinds import model_for
    from koktok.train.bpe import curriculum, train_bpe
    from koktok.train.superwords import segment_runs
    from koktok.train.unigram import PRESETS, train_unigrams

    clock = time.perf_counter()
    counts = segment_counts(count_words(data.train), KiwiSegmenter(), Policy.parse("morphemes"))
    print(f"\n{counts!r}, counted and analysed in {time.perf_counter() - clock:.0f} s\n", file=sys.stderr)
    points = [PRESETS.get(name) or point(name) for name in presets]
    characters = _characters(counts)
    for crossing in (False, True)[: 1 + superwords]:
        runs = documents = None
        if crossing:
            counted_runs = counted_lines(data.train, runs=True)
            runs, documents = segment_runs(counted_runs, counts), counted_runs.documents
        chunks = (lambda line: re.sub(SENTENCE_ENDS, r"\1\n ", line).split("\n")) if crossing else words_of
        label = " + superwords" if crossing else ""
        clock = time.perf_counter()
        trained = train_unigrams(
            counts, points=points, vocab_sizes=sizes, specials=SPECIALS, runs=runs, run_documents=documents
        )
        seconds = (time.perf_counter() - clock) / len(points) / len(sizes)
        for size in sizes:
            for name in presets:
                yield size, f"koktok {name}{label}", of_model(model_for(trained[name, size].vocab), chunks), seconds
            for share in (0.5, 1.0) if bpe else ():
                clock = time.perf_counter()
                name = f"koktok bpe, share {share}{label}"
                try:
                    result = train_bpe(
                        counts,
                        vocab_size=size,
                        specials=SPECIALS,
                        characters=characters,
                        stages=curriculum(share),
                        runs=runs,
                        documents=documents,
                    )
                except VocabSizeError as error:  # a row that cannot be trained says why, as those of peers do
                    yield size, name, error, 0.0
                    continue
                yield size, name, of_model(model_for(result.vocab), chunks), time.perf_counter() - clock


def _characters(counts: object) -> tuple[str, ...]:
    from koktok.train.alphabet import alphabet_of

    items = zip(counts.words, counts.n.tolist(), strict=True)  # type: ignore[attr-defined]
    return alphabet_of(items, vocab_size=8_000, taken=256 + len(SPECIALS), required="none")


def point(name: str) -> Point:
    """`short:mu=0:nu=0`: a preset with some dials turned."""
    from koktok.train.unigram import PRESETS

    preset, *dials = name.split(":")
    turned: dict[str, Any] = {dial: float(value) for dial, _, value in (part.partition("=") for part in dials)}
    return replace(PRESETS[preset], name=name, **turned)


def of_model(model: object, chunks: Callable[[str], object]) -> Cutter:
    known: dict[str, list[tuple[int, int]]] = {}

    def cutter(line: str) -> list[tuple[int, int]]:
        at = 0
        found: list[tuple[int, int]] = []
        for chunk in chunks(line):  # type: ignore[attr-defined]
            if chunk not in known:
                known[chunk] = model.encode(chunk)[1]  # type: ignore[attr-defined]
            found += [(at + a, at + b) for a, b in known[chunk]]
            at += len(chunk)
        return found

    return cutter


def behind_space(cutter: Cutter) -> Cutter:
    """The same tokenizer on lines with a space in front, as SentencePiece's dummy prefix puts one there."""

    def shifted(line: str) -> list[tuple[int, int]]:
        return [(max(a - 1, 0), max(b - 1, 0)) for a, b in cutter(f" {line}")]

    return shifted


def peers(data: Data, size: int, which: list[str]) -> Iterator[tuple[str, Callable[[], Cutter]]]:
    words = {"split_by_unicode_script": False, "split_by_number": False}
    if "sp" in which or "spbpe" in which:
        for kind in ("unigram", "bpe") if "sp" in which else ("bpe",):
            label = f"SentencePiece {kind}"
            yield f"{label}, its defaults", lambda k=kind: sentencepiece(data, size, model_type=k)
            if kind == "bpe":
                yield f"{label}, spaces only", lambda k=kind: sentencepiece(data, size, model_type=k, **words)
            yield (
                f"{label}, split_by_whitespace=false",
                lambda k=kind: sentencepiece(data, size, model_type=k, split_by_whitespace=False),
            )
    for name, more in {**LIKE, "all of these": {k: v for one in LIKE.values() for k, v in one.items()}}.items():
        if "like" in which:
            made = partial(sentencepiece, data, size, model_type="unigram", **words, **more)
            yield f"SentencePiece unigram, spaces only, {name}", made
    for kind in ("unigram", "bpe") if "bare" in which else ():
        made = partial(sentencepiece, data, size, model_type=kind, add_dummy_prefix=False, **words)
        yield f"SentencePiece {kind}, spaces only, no dummy prefix", made
    if "hf" in which:
        yield "HF byte-level BPE", lambda: hugging_face(data, size)
    if "kiwi" in which:
        yield "Kiwi bpe_trainer", lambda: kiwi(data, size, morphemes=False)
        yield "Kiwi bpe_trainer j e vcp xsv", lambda: kiwi(data, size, morphemes=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--sizes", "--size", default="32000", help="separated by commas")
    parser.add_argument(
        "--gold", default=GOLDS, help="files of gold/, separated by commas; P, R and recall are of the first"
    )
    parser.add_argument("--presets", default="short,balanced,aligned", help="or dials: short:mu=0:nu=0.22")
    parser.add_argument("--superwords", action="store_true", help="also with pieces that cross spaces")
    parser.add_argument("--bpe", action="store_true", help="also koktok's curriculum BPE")
    parser.add_argument("--space", action="store_true", help="koktok reads every line with a space in front")
    parser.add_argument(
        "--peers", default="sp,hf,kiwi", help="sp (or spbpe: its BPE only), like, bare, hf, kiwi, or none"
    )
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    data = read(given.data, given.gold.split(","))
    units = ", ".join(f"{page.gold.name} ({page.gold.label}): {page.units!r}" for page in data.golds)
    print(
        f"{machine()}\n{len(data.train):,} lines of training text; resampled: text {data.held.units!r}, {units}\n\n{head(data)}"
    )
    words = {"split_by_unicode_script": False, "split_by_number": False}
    bases: dict[int, OpenVocabulary] = {}
    for size in sizes:
        clock = time.perf_counter()
        cutter = sentencepiece(data, size, model_type="unigram", **words)
        seconds, name = time.perf_counter() - clock, "SentencePiece unigram, spaces only"
        bases[size] = subject_of(name, cutter)
        show(size, name, measured(name, cutter, data), data, seconds)
        name = "one token per syllable"
        show(size, name, measured(name, _syllables, data, bases[size]), data, 0)
        for name, make in peers(data, size, given.peers.split(",")):
            clock = time.perf_counter()
            try:
                cutter = make()
            except Exception as error:  # a peer that cannot run is a row that says why
                _not_run(size, name, error, data)
                continue
            seconds = time.perf_counter() - clock
            show(size, name, measured(name, cutter, data, bases[size]), data, seconds)
    presets = [name for name in given.presets.split(",") if name]
    text = replace(data, train=[f" {line}" for line in data.train]) if given.space else data
    for size, name, made, seconds in ours(text, sizes, presets, superwords=given.superwords, bpe=given.bpe):
        if isinstance(made, Exception):
            _not_run(size, name, made, data)
        else:
            label, read_by = (f"{name}, behind a space", behind_space(made)) if given.space else (name, made)
            show(size, label, measured(label, read_by, data, bases[size]), data, seconds)


def _not_run(size: int, name: str, error: Exception, data: Data) -> None:
    why = " ".join(str(error).split())[:120]
    print(f"| {size:,} | {name} | not run: {type(error).__name__}: {why} |{' |' * (9 + len(data.golds))}", flush=True)


def _syllables(line: str) -> list[tuple[int, int]]:
    return [(i, i + 1) for i, char in enumerate(line) if not char.isspace()]


if __name__ == "__main__":
    main()
