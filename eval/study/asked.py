"""What decoders of the size `cpu` read and are asked, as arrays: done once for each row, so that a training needs no tokenizer.

`WORK/data/asked.json` says what the figures are of: characters by unit and class, kinds of pairs, and the rows. It holds no text.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from eval.peers import digest_of, train_peer
from eval.study.data import Ints, Lists, digest_of_arrays, write_arrays
from eval.study.pairs import CLASSES, Pair, Words, class_of, pairs_of, prompts_of, write_pairs
from eval.study.prepare import held_out, pieces, size_of
from eval.study.rows import ROWS, opened, peers
from eval.study.sizes import Size
from eval.texts import data_of, parts
from koktok.files import write_file
from koktok.metrics import Text
from koktok.protocol.tokenizer import Tokenizer

COLUMNS: Final = 2 * len(CLASSES) + 1
"""Of bits: words behind a space by class of frequency, first words of lines by class, ends of lines."""
CHOOSING: Final = 2
"""One of so many lines that choose a rate is asked."""
BEHIND: Final = ("1", "A", ")", "\u2026", "\u6c34")
"""Behind one of these a row cuts: so the second part of a prompt is encoded as what goes on, without a space of its own."""


@dataclass(frozen=True)
class Asked:
    """The text of all rows."""

    train: dict[str, list[str]]
    test: Text
    dev: list[str]
    pairs: list[Pair]
    prompts: list[tuple[str, int, str]]
    words: Words

    @classmethod
    def read(cls, size: Size, text: Path) -> Asked:
        """Of a folder of lines."""
        train, held = parts(text, size.cap)
        held = {name: [one for line in lines if (one := " ".join(line.split()))] for name, lines in held.items()}
        test, dev = held_out(held, size.held)
        choosing = {*dev}
        free = {name: [line for line in lines if line not in choosing] for name, lines in held.items()}
        words = Words(line for lines in train.values() for line in lines)
        return cls(train, test, dev[::CHOOSING], pairs_of(free, words), prompts_of(free), words)

    @cached_property
    def units(self) -> Ints:
        """The unit of each line that gives figures: 50 neighbours of a source."""
        return np.unique(self.test.blocks, return_inverse=True)[1]

    @cached_property
    def lines(self) -> list[str]:
        """All training lines."""
        return [line for lines in self.train.values() for line in lines]

    def columns(self, line: str) -> list[int]:
        """The column of each character; a space belongs to the word behind it.

        Examples
        --------
        >>> asked = Asked({}, Text.of({}), [], [], [], Words(["나는 간다"]))
        >>> asked.columns("나는 안 간다")
        [6, 6, 0, 0, 1, 1, 1]
        """
        found: list[int] = []
        for k, word in enumerate(line.split(" ")):
            column = class_of(self.words.counts[word]) + (0 if k else len(CLASSES))
            found += [column] * (len(word) + bool(k))
        return found

    def about(self) -> dict[str, Any]:
        """What the figures of all rows are of."""
        units = self.units
        characters = np.zeros((int(units.max()) + 1, COLUMNS), dtype=int)
        for unit, line in zip(units.tolist(), self.test.lines, strict=True):
            np.add.at(characters[unit], [*self.columns(line), COLUMNS - 1], 1)
        sources = np.zeros(len(characters), dtype=int)
        sources[units] = self.test.domains
        return {
            "text": digest_of(self.lines),
            "train_bytes": sum(map(size_of, self.lines)),
            "sources": list(self.test.names),
            "source": sources.tolist(),
            "characters": characters.tolist(),
            "bytes": np.bincount(units, list(map(size_of, self.test.lines))).astype(int).tolist(),
            "dev_characters": sum(len(line) + 1 for line in self.dev),
            "eojeols": sum(len(line.split()) for line in self.test.lines),
            "pairs": [[pair.kind, class_of(pair.frequency), pair.source] for pair in self.pairs],
            "prompts": [name for _, _, name in self.prompts],
        }

    def arrays(self, subject: Tokenizer) -> dict[str, Lists]:
        """The ids of every text for one row; a line has an end."""
        end = int(subject.size or 0)

        def ended(lines: Sequence[str]) -> list[list[int]]:
            return [[*row.tolist(), end] for row in subject.encode_ids(list(lines))]

        cut = list(pieces(self.train))
        rows = iter(ended([line for piece in cut for line in piece]))
        found = {"train": Lists.of([[i for _ in piece for i in next(rows)] for piece in cut])}
        found |= {"dev": Lists.of(ended(self.dev)), "test": Lists.of(ended(self.test.lines))}
        tokens = subject.encode_lines(self.test.lines)
        columns, unknown = [], []
        bad = np.isin(tokens.ids, list(subject.unknown_ids))
        for k, line in enumerate(self.test.lines):
            some = slice(int(tokens.indptr[k]), int(tokens.indptr[k + 1]))
            of_characters = [*self.columns(line), COLUMNS - 1]
            starts = np.minimum(tokens.starts[some] - tokens.line_starts[k], len(line) - 1).tolist()
            columns.append([*(of_characters[at] for at in starts), COLUMNS - 1])
            unknown.append([*((tokens.ends[some] - tokens.starts[some]) * bad[some]).tolist(), 0])
        found |= {"columns": Lists.of(columns), "unknown": Lists.of(unknown), "units": Lists.of([self.units.tolist()])}
        found |= {
            "good": Lists.of(ended([p.good for p in self.pairs])),
            "bad": Lists.of(ended([p.bad for p in self.pairs])),
        }
        left = subject.encode_ids([line[:at] for line, at, _ in self.prompts])
        right = going_on(subject, [line[at:] for line, at, _ in self.prompts])
        found["prompts"] = Lists.of(ended([line for line, _, _ in self.prompts]))
        found["cut"] = Lists.of([[*a.tolist(), *b, end] if b else [] for a, b in zip(left, right, strict=True)])
        return found


def going_on(subject: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids of each text as what follows another one: without a space before it. Empty where none of `BEHIND` is cut off.

    Examples
    --------
    >>> from koktok.tokenizer.open import load
    >>> going_on(load("bytes"), ["가"])
    [[234, 176, 128]]
    """
    found: list[list[int]] = [[] for _ in texts]
    for before in BEHIND:
        missing = [k for k, ids in enumerate(found) if not ids]
        tokens = subject.encode_lines([before + texts[k] for k in missing])
        for row, k in zip(tokens.lines(), missing, strict=True):
            starts, ends = row.spans[:, 0], row.spans[:, 1]
            first = int(np.searchsorted(starts, 1))
            if (ends[:first] <= 1).all():
                found[k] = row.ids[first:].tolist()
    return found


def prepare(size: Size, work: Path, given: str, rows: str) -> None:
    """Write `data/`: what is asked, and a folder for each row."""
    asked = Asked.read(size, data_of(given) / "text")
    write_pairs(work / "pairs.jsonl", asked.pairs)
    about, place = asked.about(), work / "data" / "asked.json"
    known: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    if {key: known.get(key) for key in about} != about:
        known = about | {"rows": {}}
    made = peers()
    for row in ROWS.values():
        if not re.search(rows, row.name):
            continue
        subject = opened(row, partial(train_peer, lines=asked.lines, work=work), asked.test.lines, made)
        known["rows"][row.name] = packed(work / "data" / row.name, asked, subject)
        write_file(place, json.dumps(known, ensure_ascii=False).encode())
        print(f"{row.name}: {subject.size:,} ids", file=sys.stderr, flush=True)


def packed(place: Path, asked: Asked, subject: Tokenizer) -> dict[str, Any]:
    """Write the arrays of a row, and say what it is."""
    arrays = asked.arrays(subject)
    texts = asked.test.lines
    about = {
        "digest": subject.digest(),
        "arrays": digest_of_arrays(arrays),
        "vocabulary": int(subject.size or 0) + 1,
        "bytes_per_token": sum(map(size_of, asked.lines)) / len(arrays["train"].flat),
        "tokens": (len(arrays["test"].flat) - len(texts)) / sum(len(line.split()) for line in texts),
        "changed": sum(
            subject.decode(row.tolist()) != line for row, line in zip(subject.encode_ids(texts), texts, strict=True)
        ),
    }
    write_arrays(place / "ids.npz", arrays)
    write_file(place / "about.json", json.dumps(about).encode())
    return about
