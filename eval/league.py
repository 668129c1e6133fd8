"""The league of github.com/bab2min/korean-tokenizer-analysis, by its published definitions, for any tokenizer on any text.

    python -m eval.league SPEC... [--text FILE|corpus:NAME/held-out] [--eojeols 20000]

SPEC is what `koktok report` takes (a folder, package:o200k_base, hf:FILE, ...); TEXT is read as documents, a file each, of which at most
`--eojeols` are taken. As published there (README of November 2026):

* tokens per eojeol: each text is encoded as a whole, line feeds included, without special tokens; an eojeol is a whitespace word;
* borders: where tokens and Kiwi's morphemes start, spaces in front skipped; the starts of words are left out ("in words");
* a morpheme that starts inside a syllable (다퉜 = 다투 + 었) has the place of that syllable + .5, which no token can meet, and counts in
  recall; a token that starts inside a character counts in precision;
* a rare syllable (16 are listed) is whole where it alone is one token, and not the unknown one;
* spam: pieces that the published expression of advertising words finds, and those that this file's narrower one finds. Which of the
  first were called spam there was decided by hand; the narrower one is ours.

Rows marked "published" are his, on his sample of 1,031 eojeols; only rows measured on one text can be compared.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from kiwipiepy import Kiwi

from eval.machine import machine
from koktok.corpora.paths import as_source
from koktok.errors import KoktokError
from koktok.protocol.tokenizer import Tokenizer
from koktok.tokenizer.open import load

RARE: Final = "걁겼긂깄뇄렜뢔뢨붴뻤쌘얬칢텼퉜홥"

KEYWORDS: Final = re.compile(
    "출장|사이트|마사지|추천|소개팅|만남|콜걸|안마|채팅|업소|성인|카지노|놀이터|오피|대출|다운로드"
)
SPAM: Final = re.compile(
    "출장(마사지|안마|샵|만남|타이|아가씨|맛사지|업소|콜걸)|콜걸|조건만남|페이만남|토토사이트|먹튀(검증|사이트)|(온라인|사설) ?(카지노|놀이터)"
)

PUBLISHED: Final = (
    ("A.X-K2", 163_840, 1.87, 0.5300, 0.3591, 0.4281, 2, 0),
    ("Motif-3", 220_160, 1.88, 0.5587, 0.3755, 0.4491, 2, 0),
    ("K-EXAONE", 153_600, 1.94, 0.6617, 0.5496, 0.6004, 2, 41),
    ("Kanana-2", 128_256, 1.97, 0.5316, 0.4005, 0.4568, 2, 0),
    ("Solar Open2", 196_608, 1.98, 0.5174, 0.3942, 0.4475, 1, 0),
    ("KF-DeBERTa", 130_000, 2.14, 0.8465, 0.7791, 0.8114, 6, 2),
    ("Kiwi CoCo LM", 64_000, 2.30, 0.7198, 0.7221, 0.7210, 2, 0),
    ("KLUE-RoBERTa (14 of the 16 syllables unknown)", 32_000, 2.35, 0.7819, 0.8478, 0.8135, 2, 0),
    ("KoELECTRA", 35_000, 2.39, 0.7633, 0.8532, 0.8058, 6, 0),
    ("HyperCLOVA X SEED", 110_524, 2.41, 0.4780, 0.5168, 0.4966, 1, 39),
    ("Muse Glimmer", 202_048, 2.48, 0.4889, 0.5683, 0.5256, 1, 17),
    ("Qwen3.8", 248_077, 2.49, 0.4912, 0.5660, 0.5259, 1, 0),
    ("A.X-Encoder", 50_000, 2.49, 0.7287, 0.8767, 0.7959, 16, 0),
    ("Gemma 4", 262_144, 2.73, 0.4778, 0.6308, 0.5437, 4, 0),
    ("GPT-5 (o200k_base)", 200_000, 2.89, 0.4765, 0.7112, 0.5706, 1, 3),
    ("DeepSeek-V4", 129_280, 3.14, 0.4315, 0.7330, 0.5432, 0, 0),
    ("Gemma 2 (mmBERT-base)", 256_000, 3.19, 0.4653, 0.7642, 0.5784, 0, 0),
    ("GPT-4 (cl100k_base)", 100_261, 4.58, 0.3017, 0.8603, 0.4467, 0, 0),
)
"""Name, ids, tokens per eojeol, precision, recall and F1 in words, rare syllables whole, spam; c0f94412 of the repository."""


@dataclass
class Tally:
    """Sums over texts."""

    tokens: int = 0
    eojeols: int = 0
    made: int = 0
    wanted: int = 0
    met: int = 0
    unknown: int = 0


def morphemes(text: str, kiwi: Kiwi) -> set[float]:
    """Where morphemes start; inside a syllable, .5 behind it.

    Examples
    --------
    >>> sorted(morphemes("다퉜다", Kiwi()))
    [0, 1.5, 2]
    """
    found: set[float] = set()
    end = 0
    for token in kiwi.tokenize(text):
        found.add(token.start + 0.5 if token.start < end else token.start)
        end = max(end, token.end)
    return found


def tokens(text: str, subject: Tokenizer) -> tuple[set[float], np.ndarray]:
    """Where tokens start, spaces in front skipped (inside a character, by thirds behind it), and their ids."""
    row = subject.encode_lines([text])
    found: set[float] = set()
    end, parts = 0, 0
    for start, stop in row.spans.tolist():
        inside = start < end
        parts = parts + 1 if inside else 0
        at = start
        while not inside and at < stop and text[at].isspace():
            at += 1
        if inside or at < stop:
            found.add(start + parts / 3 if inside else at)
        end = max(end, stop)
    return found, row.ids


def inside_words(places: set[float], text: str) -> set[float]:
    """Without the first characters of words."""
    return {at for at in places if at % 1 or (at and not text[int(at) - 1].isspace())}


def tally(subject: Tokenizer, texts: list[str], gold: list[set[float]]) -> Tally:
    found = Tally()
    unknown = list(subject.unknown_ids)
    for text, wanted in zip(texts, gold, strict=True):
        starts, ids = tokens(text, subject)
        made = inside_words(starts, text)
        found.tokens += len(ids)
        found.eojeols += len(text.split())
        found.made += len(made)
        found.wanted += len(wanted)
        found.met += len(made & wanted)
        found.unknown += int(np.isin(ids, unknown).sum())
    return found


def row(subject: Tokenizer, texts: list[str], gold: list[set[float]]) -> str:
    found = tally(subject, texts, gold)
    precision, recall = found.met / max(found.made, 1), found.met / max(found.wanted, 1)
    f1 = 2 * found.met / max(found.made + found.wanted, 1)
    alone = [subject.encode_lines([char]).ids.tolist() for char in RARE]
    whole = sum(len(ids) == 1 and ids[0] not in subject.unknown_ids for ids in alone)
    pieces = [(subject.token_bytes(i) or b"").decode(errors="replace") for i in range(subject.size or 0)]
    spam = f"{sum(bool(KEYWORDS.search(p)) for p in pieces)} / {sum(bool(SPAM.search(p)) for p in pieces)}"
    figures = f"{found.tokens / found.eojeols:.3f} | {precision:.4f} | {recall:.4f} | {f1:.4f} | {found.unknown:,} | {whole} | {spam}"
    return f"| {subject.name} | {subject.size or 0:,} | {figures} |"


def read(name: str, eojeols: int) -> list[str]:
    """A text a file, its lines up to so many eojeols."""
    texts = []
    for path in as_source(name).paths:
        taken: list[str] = []
        n = 0
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if n >= eojeols:
                break
            taken.append(line)
            n += len(line.split())
        texts.append("".join(taken))
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("specs", nargs="+", metavar="SPEC")
    parser.add_argument("--text", default="corpus:bench-ko/held-out", help="file, folder, glob or corpus")
    parser.add_argument("--eojeols", type=int, default=20_000, help="of each file, at most")
    given = parser.parse_args()
    texts = read(given.text, given.eojeols)
    kiwi = Kiwi()
    gold = [inside_words(morphemes(text, kiwi), text) for text in texts]
    fused = sum(at % 1 > 0 for wanted in gold for at in wanted)
    print(
        f"{machine()}\n{given.text}: {sum(len(text.split()) for text in texts):,} eojeols, {sum(map(len, gold)):,} borders in words,"
    )
    print(
        f"{fused:,} of them inside a syllable, so that recall is at most {1 - fused / max(1, sum(map(len, gold))):.3f}\n"
    )
    print(
        "| tokenizer | ids | tokens per eojeol | precision | recall | F1 | unknown tokens | of 16 syllables whole | keywords / spam |"
    )
    print(f"|{'---|' * 9}")
    for spec in given.specs:
        try:
            print(row(load(spec), texts, gold), flush=True)
        except KoktokError as error:  # a row that cannot run says why
            print(f"| {spec} | not run: {error.message} |{' |' * 7}", flush=True)
    for name, ids, fertility, precision, recall, f1, whole, spam in PUBLISHED:
        print(
            f"| *published*: {name} | {ids:,} | {fertility:.2f} | {precision:.4f} | {recall:.4f} | {f1:.4f} | | {whole} | / {spam} |"
        )


if __name__ == "__main__":
    main()
