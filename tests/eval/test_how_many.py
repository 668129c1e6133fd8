"""eval/how_many: what an estimate is fitted on, what its error is, and that the guide's functions count as it does."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given
from strategies import korean_text

from eval.how_many import Documents, fitted, kinds_of, tables
from koktok.report.measure import Entry

KOREAN = {"a": ["나는 학교에 간다.", "너도 GPT를 쓴다"] * 60, "b": ["가나다 1개"] * 60}
ENGLISH = {"e": ["A page of English text."] * 120}


def test_korean_documents_are_counted_and_english_ones_only_fitted() -> None:
    documents = Documents.read(KOREAN, ENGLISH)
    assert documents.korean.tolist() == [True] * 5 + [False]
    name, ids, per_eojeol, per_syllable, *_, both, guess = documents.row(Entry("syllables"))
    assert (name, ids) == ("syllables", "–")
    tokens = sum(len("".join(line.split())) for lines in KOREAN.values() for line in lines)
    assert per_eojeol == f"{tokens / sum(len(line.split()) for lines in KOREAN.values() for line in lines):.2f}"
    assert per_syllable == f"{tokens / kinds_of(line for lines in KOREAN.values() for line in lines)[:, 0].sum():.2f}"
    assert both == "0 %"  # a token a character is what both kinds say
    characters = sum(len(line) + 1 for lines in KOREAN.values() for line in lines)
    assert guess == f"{4 * tokens / characters:.1f}"
    assert "5 documents of 480 eojeols" in tables(documents, [documents.row(Entry("eojeols"))], "en")


def test_an_error_is_of_documents_that_were_not_fitted() -> None:
    counts = np.array([[1.0], [1.0], [1.0], [1.0]])
    rates, error = fitted(counts, np.array([2.0, 3.0, 2.0, 3.0]), np.full(4, True))
    assert rates.tolist() == pytest.approx([2.0])
    assert error == pytest.approx(1 / 3)
    _, error = fitted(counts, np.array([2.0, 3.0, 2.0, 2.0]), np.array([True, False, True, True]))
    assert error == pytest.approx(0)


GUIDE = (ROOT / "docs" / "guides" / "how-many-tokens.md").read_text(encoding="utf-8")
NAMES: dict[str, object] = {}
exec(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0], NAMES)


@given(korean_text())
def test_the_guide_counts_characters_alike(text: str) -> None:
    for rates, wanted in zip(((1.0, 0.0), (0.0, 1.0)), kinds_of([text])[0].tolist(), strict=True):
        assert NAMES["tokens_of"](text, *rates) == wanted  # type: ignore[operator]
