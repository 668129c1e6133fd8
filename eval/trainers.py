"""The trainers beside their peers: tokens per eojeol and boundary F1 of vocabularies trained on the same text.

    python -m eval.trainers DATA [--sizes 32000] [--presets short,balanced,aligned] [--superwords] [--bpe] [--peers sp,hf,kiwi]

DATA is a folder with `text/` (plain or gzipped lines) and `gold/ko_kaist-ud-dev.conllu`. At most 110,000 eojeols of each
text are read; blocks of 50 lines, chosen by hash, are held out. Every row trains on the rest. Tokens are counted on
whole held-out lines, F1 on cuts between two syllables inside a human-annotated eojeol (micro; a fused syllable has none).
Intervals are 95 %, by bootstrap over blocks (tokens) and sentences (F1). "Gaps" is the share of the gaps between eojeols of
held-out lines that lie inside a token. Several sizes are trained in one run from one table of candidates. SentencePiece puts a
space before every line (its dummy prefix) and koktok does not: `bare` are its rows without, `--space` gives koktok lines with one.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.kaist import is_syllable, sentences
from eval.machine import machine

if TYPE_CHECKING:
    from koktok.train.unigram import Point

CAP, BLOCK, HELD = 110_000, 50, 10
LEFT_OUT = ("bible_krv_1961", "news_north_korean")  # the same sentences stand in bible_modern and news_parallel
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")

Cutter = Callable[[str], tuple[int, set[int]]]
"""A line to its number of tokens and the offsets between them (code points; whole characters only)."""


@dataclass(frozen=True)
class Data:
    """Training lines, held-out blocks by file, and gold sentences: text, eojeol spans, cut offsets."""

    train: list[str]
    held: dict[str, list[list[str]]]
    gold: list[tuple[str, set[int]]]


# ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(folder: Path, gold: str) -> Data:
    texts = sorted(p for p in (folder / "text").glob("*.txt*") if p.name.split(".")[0] not in LEFT_OUT)
    tree = folder / "gold" / gold
    missing = [str(path) for path in (folder / "text", tree) if not path.exists()]
    if missing or not texts:
        sys.exit(
            f"eval.trainers: `{(missing or [folder / 'text'])[0]}` is missing; give the folder that holds text/ and gold/"
        )
    train: list[str] = []
    held: dict[str, list[list[str]]] = {}
    for path in texts:
        name, seen = path.name.split(".")[0], 0
        blocks: dict[int, list[str]] = {}
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            for i, raw in enumerate(file):
                line = unicodedata.normalize("NFC", raw.rstrip("\n"))
                seen += len(line.split())
                if seen > CAP:
                    break
                if line.strip():
                    digest = hashlib.sha256(f"{name}:{i // BLOCK}".encode()).hexdigest()
                    if int(digest, 16) % HELD == 0:
                        blocks.setdefault(i // BLOCK, []).append(line)
                    else:
                        train.append(line)
        if blocks:
            held[name] = list(blocks.values())
    return Data(train, held, list(sentences(tree)))


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    """Statistics of one tokenizer: by block tokens, eojeols, gaps, gaps swallowed; by sentence hits, cuts, gold."""

    name: str
    blocks: np.ndarray
    files: np.ndarray
    sents: np.ndarray
    seconds: float


def score(name: str, cutter: Cutter, data: Data, seconds: float) -> Row:
    blocks, files, sents = [], [], []
    for held in data.held.values():
        here = np.array([np.sum([counted(line, cutter) for line in block], axis=0) for block in held])
        blocks += list(here)
        files.append(here[:, 0].sum() / here[:, 1].sum())
    for text, gold in data.gold:
        cuts = {p for p in cutter(text)[1] if 0 < p < len(text) and is_syllable(text[p - 1]) and is_syllable(text[p])}
        sents.append((len(cuts & gold), len(cuts), len(gold)))
    return Row(name, np.array(blocks), np.array(files), np.array(sents), seconds)


def counted(line: str, cutter: Cutter) -> tuple[int, int, int, int]:
    """Tokens, eojeols, gaps between eojeols, and gaps that no token border touches."""
    tokens, cuts = cutter(line)
    gaps = [range(match.start(), match.end() + 1) for match in _GAP.finditer(line)]
    return tokens, len(line.split()), len(gaps), sum(cuts.isdisjoint(gap) for gap in gaps)


_GAP = re.compile(r"(?<=\S) +(?=\S)")


def f1(sents: np.ndarray) -> tuple[float, float, float]:
    hits, cuts, gold = sents.sum(axis=0)
    return hits / cuts, hits / gold, 2 * hits / (cuts + gold)


def show(row: Row, base: Row, size: int, resamples: int = 1000) -> None:
    rng = np.random.default_rng(0)
    micro = row.blocks[:, 0].sum() / row.blocks[:, 1].sum()
    ratio, marks = [], []
    for _ in range(resamples):  # the same blocks for both: the ratio is a paired one
        pick = rng.integers(0, len(row.blocks), len(row.blocks))
        ratio.append(row.blocks[pick, 0].sum() / base.blocks[pick, 0].sum())
        marks.append(f1(row.sents[rng.integers(0, len(row.sents), len(row.sents))])[2])
    precision, recall, f = f1(row.sents)
    low, high = np.percentile(ratio, [2.5, 97.5])
    low_f, high_f = np.percentile(marks, [2.5, 97.5])
    print(
        f"| {size:,} | {row.name} | {micro:.3f} | {row.files.mean():.3f} | {micro / (base.blocks[:, 0].sum() / base.blocks[:, 1].sum()):.3f} "
        f"[{low:.3f}, {high:.3f}] | {precision:.3f} | {recall:.3f} | {f:.3f} [{low_f:.3f}, {high_f:.3f}] "
        f"| {row.blocks[:, 3].sum() / row.blocks[:, 2].sum():.3f} | {row.seconds:.0f} |",
        flush=True,
    )


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
    processor = spm.SentencePieceProcessor(model_proto=model.getvalue())

    def cutter(line: str) -> tuple[int, set[int]]:
        pieces = processor.encode(line, out_type=str)
        prefix = int(options.get("add_dummy_prefix", True))  # type: ignore[call-overload]
        return len(pieces), set((np.cumsum([len(piece) for piece in pieces]) - prefix).tolist())

    return cutter


def of_offsets(tokenizer: object) -> Cutter:
    def cutter(line: str) -> tuple[int, set[int]]:
        spans = tokenizer.encode(line, add_special_tokens=False).offsets  # type: ignore[attr-defined]
        crossed = {p for a, b in spans for p in range(a + 1, b)}
        return len(spans), {a for a, _ in spans} - crossed

    return cutter


def hugging_face(data: Data, size: int) -> Cutter:
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(iter(data.train), vocab_size=size, show_progress=False)
    return of_offsets(tokenizer)


def kiwi(data: Data, size: int, *, morphemes: bool) -> Cutter:
    from kiwipiepy import Kiwi, bpe_trainer
    from tokenizers import Tokenizer

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "tokenizer.json")
        on: dict[str, object] = {f"pretokenize_{name}": morphemes for name in ("j", "e", "vcp", "xsv")}
        on["kiwi"] = Kiwi() if morphemes else None
        on |= {"num_workers": 2, "show_progress": False}
        bpe_trainer.train_bpe_tokenizer(path, iter(data.train), size, **on)
        return of_offsets(Tokenizer.from_file(path))


Made = tuple[int, str, Cutter | Exception, float]
"""Size, name, tokenizer and seconds of training."""


def ours(data: Data, sizes: list[int], presets: list[str], *, superwords: bool, bpe: bool) -> Iterator[Made]:
    from koktok.count import Counts, count_words, words_of
    from koktok.errors import VocabSizeError
    from koktok.segment import Policy, segment_counts
    from koktok.segment.kiwi import KiwiSegmenter
    from koktok.tokenizer.model import model_for
    from koktok.train.bpe import curriculum, train_bpe
    from koktok.train.superwords import runs_of, segment_runs
    from koktok.train.unigram import PRESETS, train_unigrams

    clock = time.perf_counter()
    counts = segment_counts(count_words(data.train), KiwiSegmenter(), Policy.parse("morphemes"))
    print(f"\n{counts!r}, counted and analysed in {time.perf_counter() - clock:.0f} s\n", file=sys.stderr)
    points = [PRESETS.get(name) or point(name) for name in presets]
    characters = _characters(counts)
    for crossing in (False, True)[: 1 + superwords]:
        runs = documents = None
        if crossing:
            seen = Counter(run for line in data.train for run in runs_of(line))
            lines = Counter(run for line in data.train for run in set(runs_of(line)))
            runs = segment_runs(Counts.from_mapping(seen), counts)
            documents = np.array([lines[run] for run in runs.words], dtype=np.uint64)
        chunks = (lambda line: runs_of(line, longest=1 << 30)) if crossing else words_of
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
    known: dict[str, tuple[int, set[int]]] = {}

    def cutter(line: str) -> tuple[int, set[int]]:
        total, at, cuts = 0, 0, set()
        for chunk in chunks(line):  # type: ignore[attr-defined]
            if chunk not in known:
                ids, spans = model.encode(chunk)  # type: ignore[attr-defined]
                known[chunk] = len(ids), {a for a, _ in spans}
            n, starts = known[chunk]
            total += n
            cuts |= {at + a for a in starts}
            at += len(chunk)
        return total, cuts

    return cutter


def behind_space(cutter: Cutter) -> Cutter:
    """The same tokenizer on lines with a space in front, as SentencePiece's dummy prefix puts one there."""

    def shifted(line: str) -> tuple[int, set[int]]:
        tokens, cuts = cutter(f" {line}")
        return tokens, {cut - 1 for cut in cuts}

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
    parser.add_argument("data", type=Path, help="folder with text/ and gold/")
    parser.add_argument("--sizes", "--size", default="32000", help="separated by commas")
    parser.add_argument("--gold", default="ko_kaist-ud-dev.conllu")
    parser.add_argument("--presets", default="short,balanced,aligned", help="or dials: short:mu=0:nu=0.22")
    parser.add_argument("--superwords", action="store_true", help="also with pieces that cross spaces")
    parser.add_argument("--bpe", action="store_true", help="also koktok's curriculum BPE")
    parser.add_argument("--space", action="store_true", help="koktok reads every line with a space in front")
    parser.add_argument("--peers", default="sp,hf,kiwi", help="sp (or spbpe: its BPE only), bare, hf, kiwi, or none")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    data = read(given.data, given.gold)
    print(f"{machine()}\n{len(data.train):,} lines of training text, {len(data.gold):,} gold sentences\n")
    print(
        "| ids | tokenizer | tokens/eojeol | mean of files | ratio to the first [95 %] | P | R | F1 [95 %] | gaps | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    words = {"split_by_unicode_script": False, "split_by_number": False}
    bases: dict[int, Row] = {}
    for size in sizes:
        clock = time.perf_counter()
        cutter = sentencepiece(data, size, model_type="unigram", **words)
        bases[size] = score("SentencePiece unigram, spaces only", cutter, data, time.perf_counter() - clock)
        show(bases[size], bases[size], size)
        show(score("one token per syllable", _syllables, data, 0), bases[size], size)
        for name, make in peers(data, size, given.peers.split(",")):
            clock = time.perf_counter()
            try:
                cutter = make()
            except Exception as error:  # a peer that cannot run is a row that says why
                _not_run(size, name, error)
                continue
            show(score(name, cutter, data, time.perf_counter() - clock), bases[size], size)
    presets = [name for name in given.presets.split(",") if name]
    text = replace(data, train=[f" {line}" for line in data.train]) if given.space else data
    for size, name, cutter, seconds in ours(text, sizes, presets, superwords=given.superwords, bpe=given.bpe):
        if isinstance(cutter, Exception):
            _not_run(size, name, cutter)
        else:
            label, read_by = (f"{name}, behind a space", behind_space(cutter)) if given.space else (name, cutter)
            show(score(label, read_by, data, seconds), bases[size], size)


def _not_run(size: int, name: str, error: Exception) -> None:
    why = " ".join(str(error).split())[:120]
    print(f"| {size:,} | {name} | not run: {type(error).__name__}: {why} | | | | | | | |", flush=True)


def _syllables(line: str) -> tuple[int, set[int]]:
    return len(line.replace(" ", "")), set(range(len(line)))


if __name__ == "__main__":
    main()
