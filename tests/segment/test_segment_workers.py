"""Analysers in processes of their own: the same rows, and words that kill, stall or upset one cost nothing but themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koktok.count import count_words
from koktok.errors import AnalyserError
from koktok.segment import Policy, segment_counts, text_to_analyse
from koktok.segment.cache import CachedSegmenter
from koktok.segment.kiwi import KiwiSegmenter
from koktok.segment.policy import Morpheme, Spans, cuts_of_words
from koktok.segment.serialized import serialize, serialized_rows
from koktok.segment.workers import BATCH, Workers, _Child, in_subprocess

ALL = Policy.parse("morphemes")
HERE = Path(__file__).parent


class Touchy:
    """A stand-in for an analyser: it dies, hangs or raises on certain words."""

    def __init__(self, loads: bool = True) -> None:
        if not loads:
            raise RuntimeError("no dictionary")

    def signature(self) -> str:
        return "touchy:1"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        for word in words:
            if word == "죽음":
                os._exit(9)
            if word == "잠":
                time.sleep(600)
            if word == "화":
                raise ValueError("no")
            if word == "말":
                print("this goes into no frame")
            yield (Morpheme(0, 1, "NNG", word[0]), Morpheme(1, len(word), "JX", word[1:]))


def workers(monkeypatch: pytest.MonkeyPatch, processes: int = 2, **how: Any) -> Workers:
    monkeypatch.syspath_prepend(str(HERE))
    options = how.pop("options", {})
    return Workers(Touchy(), "test_segment_workers:Touchy", options, processes=processes, **how)


def test_order_and_rows_are_those_of_the_analyser_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["말", *(f"가{i}" for i in range(20 * BATCH))]
    expected = list(serialized_rows(Touchy(), words))
    found = workers(monkeypatch, 3)
    assert list(found.serialized(words)) == expected
    assert list(found.serialized(words[::-1])) == expected[::-1]
    assert list(found.analyse(words[:9])) == list(Touchy().analyse(words[:9]))
    found.close()
    assert list(found.serialized(words[:2])) == expected[:2]
    assert found.peak >= 0
    found.close()


def test_words_that_kill_stall_or_upset_are_quarantined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = [f"가{i}" for i in range(700)]
    words[5], words[6], words[300], words[699] = "죽음", "화", "잠", "죽음"
    asked = _Child.ask  # only the word that never answers runs out of time, however busy the machine is
    monkeypatch.setattr(_Child, "ask", lambda child, words, _: asked(child, words, 1 if "잠" in words else 3600))
    inner = workers(monkeypatch)
    cached = CachedSegmenter(inner, tmp_path)
    rows = list(cached.serialized(words))
    inner.close()
    expected = [
        serialize(w, []) if w in ("죽음", "화", "잠") else serialize(w, next(Touchy().analyse([w]))) for w in words
    ]
    assert rows == expected
    assert inner.quarantined == {"죽음": "exit code 9", "잠": "no answer in 1 s", "화": "ValueError: no"}
    assert "failed on 3 words" in inner.notes()[0]
    # What failed is asked again by the next run; what was found is kept.
    again = CachedSegmenter(other := workers(monkeypatch), tmp_path)
    assert list(again.serialized(["가1", "화"])) == [expected[1], ""]
    assert (again.known, again.asked) == (1, 1)
    other.close()


def test_an_analyser_that_cannot_load_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = workers(monkeypatch, options={"loads": False})
    with pytest.raises(AnalyserError, match="could not be loaded in a process of its own: RuntimeError: no dictionary"):
        list(found.serialized(["가나"]))


def test_a_run_that_is_left_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    found = workers(monkeypatch)
    stream = found.serialized(f"가{i}" for i in range(100 * BATCH))
    next(stream)
    running = [child._process for child in found._children if child._process]
    assert running
    stream.close()  # type: ignore[attr-defined]
    assert all(process is not None and process.poll() is not None for process in running)


def test_kiwi_says_the_same_in_processes(kiwi: KiwiSegmenter, mini: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("koktok.segment.workers._Child", _Child)  # elsewhere Kiwi of this process answers for it
    words = sorted({text for word in count_words(mini).words if (text := text_to_analyse(word))})[::9]
    found = in_subprocess("kiwi", processes=1)
    assert isinstance(found, Workers)
    assert found.signature() == kiwi.signature()
    assert (
        list(found.serialized(words))
        == list(kiwi.serialized(words))
        == list(map(serialize, words, kiwi.analyse(words)))
    )
    found.close()


def test_cuts_move_behind_the_spaces_of_their_word(kiwi: KiwiSegmenter, mini: list[str]) -> None:
    counts = count_words(mini)
    found = segment_counts(counts, kiwi, ALL)
    words = [word for word in counts.words[::11] if text_to_analyse(word)]
    texts = [*map(text_to_analyse, words)]
    number = {word: i for i, word in enumerate(counts.words)}
    for word, text, cuts in zip(words, texts, cuts_of_words(texts, Spans.of(kiwi.analyse(texts)), ALL), strict=True):
        spaces = len(word) - len(text)
        assert found.cuts(number[word]) == [cut._replace(offset=cut.offset + spaces) for cut in cuts]
    assert not any(found.cuts(i) for i, word in enumerate(counts.words) if not text_to_analyse(word))
