"""Placebos: koktok's trainer under cuts that are no borders of morphemes, as many of them.

They part what true borders do from what more and shorter tokens do. The wrong analyses reach the trainer as a lexicon
(`koktok.segment.lexicon_file`), so that everything behind the analyser is the ordinary road.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from eval.peers import Peer
from koktok import Recipe
from koktok.count import words_of
from koktok.pipeline.train import RunOptions, segment_text
from koktok.pipeline.train import train as train_tokenizer
from koktok.segment import Morpheme, Policy, Segmenter, text_to_analyse
from koktok.segment.lexicon_file import analyses, write_lexicon
from koktok.segment.policy import cuts_of

Displace = Callable[[str, Sequence[int]], list[int | None]]
"""A word and its cuts to a new place for each of them, or None for one that is left out."""

ALL = Policy.parse("morphemes")


def moved(word: str, cuts: Sequence[int]) -> list[int | None]:
    """Each cut one character on, or one back where that is no place, and never on a true border.

    Examples
    --------
    >>> moved("학교에서는", [2, 4]), moved("나는", [1])
    ([3, None], [None])
    """
    taken, found = {0, len(word), *cuts}, list[int | None]()
    for cut in cuts:
        place = next((near for near in (cut + 1, cut - 1) if near not in taken), None)
        taken.add(cut if place is None else place)
        found.append(place)
    return found


def at_random(word: str, cuts: Sequence[int], *, seed: int = 0) -> list[int | None]:
    """As many places of the word, by its hash and a seed.

    Examples
    --------
    >>> at_random("학교에서는", [2, 4]), at_random("학교에서는", [2, 4], seed=1), at_random("나는", [1])
    ([2, 4], [1, 3], [1])
    """
    named = f"{seed}:{word}" if seed else word
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(named.encode()).digest()[:8]))
    return sorted((1 + rng.choice(len(word) - 1, len(cuts), replace=False)).tolist())


@dataclass(frozen=True)
class Displaced:
    """A segmenter whose morphemes end at other places; tags stay, so that nearly every cut keeps its kind.

    Kinds that depend on the string beside a cut (a suffix of a list, a noun of one syllable, a pointing root) are those of the
    new strings.
    """

    inner: Segmenter
    displace: Displace

    def signature(self) -> str:
        """The analyser's own, which the road asks a lexicon for."""
        return self.inner.signature()

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The displaced morphemes of each word."""
        known = list(words)
        for word, morphemes in zip(known, self.inner.analyse(known), strict=True):
            yield displaced(word, morphemes, self.displace)


def displaced(word: str, morphemes: Sequence[Morpheme], displace: Displace) -> tuple[Morpheme, ...]:
    """Morphemes that end where `displace` says.

    Examples
    --------
    >>> found = displaced("학교는", [Morpheme(0, 2, "NNG"), Morpheme(2, 3, "JX")], moved)
    >>> [(word.start, word.end, word.tag) for word in found]
    [(0, 1, 'NNG'), (1, 3, 'JX')]
    """
    offsets = [cut.offset for cut in cuts_of(word, morphemes, ALL)]
    ends = {m.end: m.tag.split("+")[-1] for m in morphemes if m.end > m.start}
    begins = {m.start: m.tag.split("+")[0] for m in reversed(morphemes) if m.end > m.start}
    places = sorted(
        (place, ends.get(cut, "UN"), begins.get(cut, "UN"))
        for place, cut in zip(displace(word, offsets), offsets, strict=True)
        if place is not None
    )
    if not places:
        return ()
    edges = [(0, "", ""), *places, (len(word), "", "")]
    found = []
    for (start, _, right), (end, left, _) in pairwise(edges):
        first, last = right or left, left or right
        found.append(Morpheme(start, end, first if first == last else f"{first}+{last}", word[start:end]))
    return tuple(found)


def _train(lines: Sequence[str], size: int, folder: Path, *, displace: Displace, **train: object) -> str:
    recipe = Recipe().changed(holdout=0.0, train={"vocab_size": size, **train})
    _, prepared = segment_text(lines, recipe, RunOptions())
    strings = [*prepared.segmented.words, *(prepared.runs.words if prepared.runs else ())]
    words = sorted({text_to_analyse(word) for text in strings for word in words_of(text)} - {""})
    wrong = Displaced(prepared.segmenter, displace)
    lexicon = folder / "lexicon.parquet"
    write_lexicon(lexicon, analyses(words, wrong), wrong.signature(), {})
    made = train_tokenizer(lines, recipe, lexicon=lexicon, cache=False)
    if made.asked:
        raise AssertionError(f"{made.asked} words were cut by the analyser itself")
    made.tokenizer.save(folder / "tokenizer")
    return f"koktok:{folder / 'tokenizer'}"


def placebos(seed: int = 0) -> tuple[Peer, Peer]:
    """Cuts moved, and cuts at random by a seed."""
    ours, make = ("koktok", "kiwipiepy", "kiwipiepy_model"), partial(_train, preset="aligned")
    places = partial(at_random, seed=seed) if seed else at_random
    return (
        Peer("koktok aligned, cuts moved", ours, partial(make, displace=moved)),
        Peer("koktok aligned, cuts at random" + f", seed {seed}" * bool(seed), ours, partial(make, displace=places)),
    )


PLACEBOS = placebos()
"""Rows of `eval.tagger`, `eval.bits` and `eval.study`."""
