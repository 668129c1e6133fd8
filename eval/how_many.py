"""How many tokens Korean text is, for every published tokenizer: the tables of docs/guides/how-many-tokens.

    python -m eval.how_many corpus:bench-ko docs/guides/how-many-tokens.md docs/guides/how-many-tokens.ko.md

Counted on what the corpus holds out, in documents of 50 neighbouring lines of a source or fewer. An estimate is fitted on every other
document, by relative error, and judged on the rest: from eojeols, from Hangul syllables, and from both kinds of characters, which is
fitted on English documents, too.
The tables go between the lines `<!-- eval.how_many -->` and `<!-- end of eval.how_many -->` of each page; `python docs/tables.py`
translates that of a Korean one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from eval.machine import write_between
from eval.rows import open_row
from eval.suites import published
from eval.texts import data_of, split
from koktok.errors import KoktokError
from koktok.hangul import syllable_mask
from koktok.metrics import Text
from koktok.metrics.statistics import BLOCK, Units
from koktok.model.tokens import code_points
from koktok.report.markdown import plain, table
from koktok.report.measure import Entry
from koktok.tokenizer.ready import ready_vocabularies

Floats = npt.NDArray[np.float64]

HEADS: Final = "tokenizer|ids|per eojeol|per syllable|± by eojeols|± by syllables|per Hangul|per other|± by both|÷ (characters / 4)"
TOLD: Final = {
    "en": "{documents:,} documents of {eojeols:,} eojeols that none of koktok's vocabularies was trained on, fewest tokens first. Tokens of "
    "punctuation, digits and Latin letters are counted, special tokens are not. ±: the error that nine documents in ten do not exceed, if "
    "tokens are estimated from eojeols, from syllables, or from both kinds of characters: Hangul syllables × *per Hangul* + other characters "
    "except spaces × *per other* (also fitted on English documents). Last column: the number of tokens divided by the estimate of four "
    "characters per token.",
    "ko": "koktok의 어휘를 학습하는 데 쓰지 않은 문서 {documents:,}개(어절 {eojeols:,}개)에서 측정했으며, 토큰이 적은 순서입니다. "
    "문장 부호, 숫자, 로마자의 토큰은 세고 특수 토큰은 세지 않습니다. ±는 문서 열 건 가운데 아홉 건이 넘지 않는 오차로, 어절 수, 음절 수, "
    "두 가지 글자 수(한글 음절 × *한글 한 자* + 공백이 아닌 다른 글자 × *그 밖의 한 자*. 영어 문서도 함께 써서 계수를 구했습니다)로 어림할 때의 "
    "값입니다. 마지막 열은 토큰 수를 글자 수 / 4로 나눈 값입니다.",
}


def kinds_of(texts: Iterable[str]) -> Floats:
    """Hangul syllables and other characters of each text, spaces left out.

    Examples
    --------
    >>> kinds_of(["GPT가 3개, 끝."]).tolist()
    [[3.0, 6.0]]
    """
    found = []
    for text in texts:
        hangul = int(syllable_mask(code_points(text)).sum())
        found.append([hangul, sum(not char.isspace() for char in text) - hangul])
    return np.array(found, dtype=np.float64)


def fitted(counts: Floats, tokens: Floats, judged: npt.NDArray[np.bool_]) -> tuple[Floats, float]:
    """Tokens per unit of each column, by least relative error, and the relative error that nine of ten documents stay below.

    Fitted on documents 0, 2, 4 … and judged on the marked ones of the others.

    Examples
    --------
    >>> counts, tokens = np.array([[1.0], [2.0], [4.0], [10.0]]), np.array([2.0, 4.0, 8.0, 25.0])
    >>> rates, error = fitted(counts, tokens, np.full(4, True))
    >>> rates.round(3).tolist(), round(error, 2)
    ([2.0], 0.18)
    """
    rates = np.linalg.lstsq(counts[::2] / tokens[::2, None], np.ones(len(tokens[::2])), rcond=None)[0]
    asked = np.flatnonzero(judged[1::2]) * 2 + 1
    return rates, float(np.quantile(np.abs(counts[asked] @ rates / tokens[asked] - 1), 0.9))


@dataclass(frozen=True)
class Documents:
    """Held-out text in documents, and what an estimate may count of each; English ones keep the price of other characters right."""

    lines: list[str]
    of: npt.NDArray[np.int64]
    korean: npt.NDArray[np.bool_]
    eojeols: Floats
    characters: Floats
    kinds: Floats

    @classmethod
    def read(cls, korean: Mapping[str, list[str]], english: Mapping[str, list[str]]) -> Documents:
        """Documents of 50 neighbouring lines of a source; of English ones a fourth as many at most."""
        n = int(Units.blocks(Text.of(korean).domains).max()) + 1
        share = max(1, n // 4 // max(1, len(english))) * BLOCK
        text = Text.of({**korean, **{f"english {name}": lines[:share] for name, lines in english.items()}})
        of = Units.blocks(text.domains)
        texts = [""] * (int(of.max()) + 1)
        for line, document in zip(text.lines, of.tolist(), strict=True):
            texts[document] += f"{line}\n"
        eojeols, characters = ([float(size(text)) for text in texts] for size in (lambda text: len(text.split()), len))
        return cls(text.lines, of, np.arange(len(texts)) < n, np.array(eojeols), np.array(characters), kinds_of(texts))

    def row(self, entry: Entry) -> list[str]:
        """The figures of a tokenizer."""
        tokenizer = open_row(entry.spec)
        tokens = np.bincount(self.of, np.diff(tokenizer.encode_lines(self.lines).indptr))
        here = self.korean
        singles = [
            fitted(counts[here], tokens[here], here[here]) for counts in (self.eojeols[:, None], self.kinds[:, :1])
        ]
        both, error = fitted(self.kinds, tokens, here)
        each = [tokens[here].sum() / counts[here].sum() for counts in (self.eojeols, self.kinds[:, 0])]
        return [
            plain(entry.shown.removeprefix("tokenizers/") or tokenizer.name),
            f"{tokenizer.size:,}" if tokenizer.size else "–",
            *(f"{figure:.2f}" for figure in each),
            *(f"{100 * missed:.0f} %" for _, missed in singles),
            *(f"{rate:.2f}" for rate in both),
            f"{100 * error:.0f} %",
            f"{4 * tokens[here].sum() / self.characters[here].sum():.1f}",
        ]


def tables(documents: Documents, rows: Sequence[list[str]], language: str) -> str:
    """The table of a page, fewest tokens first."""
    here = documents.korean
    told = TOLD[language].format(documents=int(here.sum()), eojeols=int(documents.eojeols[here].sum()))
    heads = HEADS.split("|")
    return f"{told}\n\n{table(heads, 'l' + 'r' * (len(heads) - 1), sorted(rows, key=lambda row: float(row[2])))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=data_of, help="folder with text/, gold/ and tokenizers/, or corpus:bench-ko")
    parser.add_argument("pages", type=Path, nargs="*", help="pages to write the table into")
    given = parser.parse_args()
    english = {
        file.name: file.read_text(encoding="utf-8").splitlines() for file in sorted((given.data / "english").glob("*"))
    }
    documents = Documents.read(split(given.data / "text")[1], english)
    ours = [Entry(f"koktok:{ready.name}", shown=f"koktok:{ready.name}") for ready in ready_vocabularies()]
    rows = []
    for entry in (*published(given.data / "tokenizers"), *ours):
        try:
            rows.append(documents.row(entry))
        except (KoktokError, ImportError) as error:
            print(f"not run: {entry.spec}: {error}", file=sys.stderr)
    for page in given.pages:
        write_between(page, "eval.how_many", tables(documents, rows, "ko" if ".ko" in page.name else "en"))
    if not given.pages:
        print(tables(documents, rows, "en"))


if __name__ == "__main__":
    main()
