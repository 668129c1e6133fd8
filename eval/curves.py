"""Presets at several sizes beside SentencePiece: tokens, boundaries, dead pieces.

    python -m eval.curves corpus:bench-ko [--sizes 8000,16000,32000,64000,128000] [--wide 16000,32000,64000]
        [--peers 8000,12000,16000,24000,32000,48000,64000] [--report FILE]

One count and one analysis serve all sizes of a row: a smaller vocabulary is chosen out of a larger one, so a row may differ
in a few pieces from one that is trained alone. Text, held-out lines and gold are those of `python -m eval full`; the settings
are the product's, and `--wide` are the sizes with superwords and with `--split scripts`. Intervals are 95 %, by bootstrap over
texts and documents. *Dead* is the share of the pieces, single characters apart, that the training text never uses.

Finished rows are kept in the work folder, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from eval.bits import PEER
from eval.machine import Told, machine
from eval.peers import PEERS, SUPERWORDS, Peer, digest_of, library_version, source_of, train_peer
from eval.texts import GOLDS, data_of, parts
from koktok.files import cache_dir, write_file
from koktok.foreign import open_spec
from koktok.foreign.base import ForeignTokenizer
from koktok.foreign.koktok_adapter import Own
from koktok.gold import read_gold
from koktok.metrics import GoldPage, Text, score
from koktok.pipeline.road import Options, segment_text
from koktok.recipe import Recipe
from koktok.tokenizer import Tokenizer
from koktok.train.dispatch import Job
from koktok.train.unigram import PRESETS, train_unigrams

WIDE: dict[str, dict[str, Any]] = {
    ", superwords": {"train": {"superwords": SUPERWORDS}},
    ", split scripts": {"pretokenize": {"split": "scripts"}},
}
"""What is told of a row's name, and what it changes in the recipe."""

FIGURES = {
    "tokens": "fertility",
    "F1": "boundary_f1",
    "F1, all gaps": "boundary_f1_gaps",
    "josa": "recall_noun_particle",
    "eomi": "recall_verb_ending",
    "copula": "recall_copula",
}
"""Columns: name and metric; the boundary scores are those of the first gold."""

Row = dict[str, Any]


class Material:
    """Lines to train on and to measure on, and what is asked of every tokenizer there.

    Parameters
    ----------
    folder : Path
    golds : sequence of str
        Names of files in `gold/`.
    """

    def __init__(self, folder: Path, golds: Sequence[str]) -> None:
        self.train, self.held = parts(folder / "text")
        self.lines = [line for lines in self.train.values() for line in lines]
        self.text = Text.of(self.held)
        self.golds = [GoldPage(read_gold(folder / "gold" / name)) for name in golds]

    @cached_property
    def digest(self) -> str:
        """Of everything that a row depends on beside its own tokenizer."""
        held = digest_of([line for name in sorted(self.held) for line in self.held[name]])
        code = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
        return "-".join([digest_of(self.lines), held, *(page.gold.digest for page in self.golds), code])

    def row(self, name: str, size: int, subject: ForeignTokenizer) -> Row:
        """All figures of a tokenizer."""
        scores = score(subject, self.text, gold=self.golds)
        values = {shown: scores.values[metric] for shown, metric in FIGURES.items()}
        second = self.golds[1].gold.name
        values[f"F1 {second}"] = scores.values[f"boundary_f1@{second}"]
        row: Row = {"name": name, "ids": size, "dead": self.dead(subject)}
        row |= {shown: [value.value, value.low, value.high] for shown, value in values.items()}
        return row

    def dead(self, subject: ForeignTokenizer) -> float:
        """Share of the pieces of two characters and more that the training lines never use."""
        longer = {i for i in range(subject.size or 0) if len(subject.piece(i).strip("▁ ")) > 1}
        longer -= {*subject.byte_ids, *subject.special_ids, *subject.unknown_ids}
        used = np.unique(subject.encode(self.lines).ids)
        return len(longer.difference(used.tolist())) / max(1, len(longer))


# ── tokenizers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def peers(
    material: Material, sizes: Sequence[int], work: Path
) -> Iterator[tuple[str, int, Callable[[], ForeignTokenizer]]]:
    """SentencePiece at every size, trained when it is not in the work folder."""
    peer = next(peer for peer in PEERS if peer.name == PEER)
    for size in sizes:
        yield peer.name, size, partial(peer_of, peer, material, size, work)


def peer_of(peer: Peer, material: Material, size: int, work: Path) -> ForeignTokenizer:
    """One that is trained on these lines."""
    return open_spec(train_peer(peer, material.lines, size, work))


def ours(
    material: Material, sizes: Sequence[int], label: str, changed: Mapping[str, Any]
) -> Iterator[tuple[str, int, Own]]:
    """The presets at every size, as `koktok train` makes them."""
    recipe = Recipe().changed(holdout=0.0, train={"vocab_size": max(sizes)}).changed(**changed)
    recipe, prepared = segment_text(material.lines, recipe, Options())
    jobs = {}
    for size in sizes:
        own = recipe.changed(vocab_size=size)
        jobs[size] = Job(
            prepared.segmented, own, prepared.pattern, runs=prepared.runs, run_documents=prepared.run_documents
        )
    alphabets = {size: job.alphabet() for size, job in jobs.items()}
    for alphabet in dict.fromkeys(alphabets.values()):
        same = [size for size in sizes if alphabets[size] == alphabet]
        job = jobs[same[0]]
        trained = train_unigrams(
            prepared.segmented,
            vocab_sizes=same,
            eojeols=prepared.eojeols,
            required=alphabet,
            coverage=1e-9,  # the alphabet is decided
            specials=recipe.special_tokens,
            crosses=job.crosses,
            runs=job.runs,
            superwords=job.superwords,
            run_documents=job.run_documents,
        )
        for (name, size), made in trained.items():
            yield f"koktok {name}{label}", size, Own(name, name, Tokenizer(jobs[size].recipe, made.vocab, {}))


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Tokens and boundaries, by size."""
    shown = [key for key, value in rows[0].items() if isinstance(value, list)]
    yield f"| ids | tokenizer | {' | '.join(shown)} | dead |"
    yield "|---" * (len(shown) + 3) + "|"
    for row in sorted(rows, key=lambda row: row["ids"]):
        cells = [f"{row[key][0]:.3f} [{row[key][1]:.3f}, {row[key][2]:.3f}]" for key in shown]
        yield f"| {row['ids']:,} | {row['name']} | {' | '.join(cells)} | {row['dead']:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--sizes", default="8000,16000,32000,64000,128000", help="of the presets")
    parser.add_argument("--wide", default="16000,32000,64000", help="with superwords and with --split scripts; or none")
    parser.add_argument("--peers", default="8000,12000,16000,24000,32000,48000,64000", help="of SentencePiece; or none")
    parser.add_argument("--gold", default=GOLDS, help="two files of gold/; recall is of the first")
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval", help="where peers and rows are kept")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    material = Material(given.data, given.gold.split(","))
    rows = []
    for name, size, make in peers(material, numbers(given.peers), given.work):
        rows.append(kept(given.work, material, name, size, make))
    settings: list[tuple[str, dict[str, Any], str]] = [("", {}, given.sizes)]
    settings += [(label, changed, given.wide) for label, changed in WIDE.items()]
    for label, changed, sizes in settings:
        wanted = [(f"koktok {preset}{label}", size) for preset in PRESETS for size in numbers(sizes)]
        made: dict[tuple[str, int], ForeignTokenizer] = {}
        if not all(place_of(given.work, material, *row).exists() for row in wanted):
            made = {(name, size): subject for name, size, subject in ours(material, numbers(sizes), label, changed)}
        rows += [kept(given.work, material, *row, partial(made.get, row)) for row in wanted]
    tell = Told(given.report)
    units = ", ".join(f"{page.gold.name}: {page.units!r}" for page in material.golds)
    tell(f"{machine()}\n\n{len(material.lines):,} training lines; resampled: text {material.text.units!r}, {units}\n")
    tell("\n".join(table(rows)))


def numbers(given: str) -> list[int]:
    """Sizes, separated by commas; none of `none`."""
    return [] if given == "none" else [int(size) for size in given.split(",")]


def place_of(work: Path, material: Material, name: str, size: int) -> Path:
    """Where a finished row is kept: found again by everything that decides it."""
    peer = next(
        peer for peer in PEERS if peer.name == name or (name.startswith("koktok") and peer.name == "koktok short")
    )
    versions = {library: library_version(library) for library in peer.libraries}
    key = json.dumps([name, size, material.digest, versions, source_of(peer)], sort_keys=True)
    return work / "curves" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def kept(work: Path, material: Material, name: str, size: int, make: Callable[[], ForeignTokenizer | None]) -> Row:
    """The row that the work folder has, or else a new one of what `make` gives."""
    place = place_of(work, material, name, size)
    if not place.exists():
        subject = make()
        assert subject is not None, "what is not kept was made"
        write_file(place, json.dumps(material.row(name, size, subject)).encode())
        print(f"{name}, {size:,}", file=sys.stderr, flush=True)
    found: Row = json.loads(place.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()
