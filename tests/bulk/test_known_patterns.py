"""Published patterns in compiled code: the pretokens of the engine of regular expressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koktok.bulk.known_patterns import RULES, classes_of, cut_published
from koktok.bulk.texts import Texts
from koktok.bulk.units import NOT_PLAIN, marks_of
from koktok.text.normalize import Folds, Normalizer
from koktok.text.patterns import PublishedPattern

CLASSES, MARKS = classes_of(marks_of(Normalizer(Folds(zero_width=False))))
_FEW = list("''sStTrRvVeEmMlLdDſ가나ABCab  \n\r\t/.,()12½Ⅳ漢ǅʰªº　\xa0\x85–😀")
_ALL = [chr(c) for c in np.flatnonzero(MARKS != NOT_PLAIN)]


@pytest.mark.parametrize("name", [*RULES, "superbpe"])
@given(texts=st.lists(st.text(st.sampled_from(_FEW) | st.sampled_from(_ALL), max_size=12), max_size=20))
@example(
    texts=[
        "한글ABC",
        "ABC한글def",
        "AB가Cd",
        "  \n \t가",
        " \n",
        "12345 ½",
        ".\r\n/가",
        "\t가 \x85A",
        "가's'LLama 'T12'd''ſ",
        "I'll I'LL we've DON'T it'ſ",
        "할 수 있다. 그  말이 A는 (나 다).\n/\r\n",
        "½1234567Ⅳ123 1２34５ 12 3456789",
    ]
)
def test_plain_text_is_cut_as_by_the_engine(name: str, texts: list[str]) -> None:
    spelled = Texts.of(texts)
    begins, ends, upto = cut_published(spelled.data, spelled.begins, spelled.ends, CLASSES, name)
    for i, text in enumerate(texts):
        parts = [spelled.data[begins[k] : ends[k]].tobytes().decode("utf-16") for k in range(upto[i], upto[i + 1])]
        assert parts == PublishedPattern(name=name).pretokenize(text)
