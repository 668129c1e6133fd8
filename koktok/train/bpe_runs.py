"""The last stage of the curriculum: joins across eojeols (수 있, 는 것), learnt from counted runs.

This file adds: chains. Merges inside eojeols have lower ranks and are done first at run time, so what a later merge finds
in a sentence is the tokens of its words, one behind the other. Where the last token of a word and the first of the next
hold no cut inside and end where a word or a cut does, the gap between them may be joined; a chain is a stretch of tokens
with such gaps. BPE over chains swallows no cut inside an eojeol, and needs nothing that the other stages do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from koktok.count import words_of
from koktok.segment.segmented import SegmentedCounts
from koktok.train.pairs import Joiner
from koktok.train.superwords import SuperwordPolicy, crosses_space
from koktok.vocab import spell

if TYPE_CHECKING:
    from koktok.train.bpe import Learner

__all__ = ["Word", "chains_of", "learn_across", "tokens_of"]


class Word(NamedTuple):
    """The tokens of a word as the last stage sees them.

    Parameters
    ----------
    symbols : tuple of int
        Of the tokens; -1 for a character outside the alphabet.
    head, tail : bool
        Whether the first token may be joined to its left, and the last one to its right.
    """

    symbols: tuple[int, ...]
    head: bool
    tail: bool


def tokens_of(learner: Learner, runs: SegmentedCounts, *, inner: bool = False) -> dict[str, Word]:
    """Every distinct word of the runs, as run time cuts it with the pieces so far."""
    cuts: dict[str, list[int]] = {}
    for i, run in enumerate(runs.words):
        at = 0
        offsets = runs.offset[int(runs.start[i]) : int(runs.start[i + 1])].tolist()
        k = 0
        for word in words_of(run):
            end, begin = at + len(word), k
            while k < len(offsets) and offsets[k] < end:
                k += 1
            if word not in cuts:
                cuts[word] = [offset - at for offset in offsets[begin:k]]
            at = end
    rows = sorted(cuts)
    spelled = [spell(word) for word in rows] if learner.spelled else rows
    joiner = Joiner(spelled, [1] * len(rows), learner.letters)
    learner.replay(joiner)
    symbol = joiner.symbol.tolist()
    found, at = {}, 0
    for word, row in zip(rows, spelled, strict=True):
        ends = [k for k in range(1, len(row)) if symbol[at + k] != -2] + [len(row)]
        symbols = tuple(s for s in symbol[at : at + len(row)] if s != -2)
        at += len(row)
        edges = cuts[word]
        if learner.spelled:
            edges = [len(word[:cut].encode()) for cut in edges]
        whole = inner or not edges
        # The token that ends in ends[0] holds no cut and ends at one (or is the word); likewise the last one.
        head = whole or (ends[0] <= edges[0] and (ends[0] == len(row) or ends[0] in edges))
        start = ends[-2] if len(ends) > 1 else 0
        tail = whole or (start >= edges[-1] and (start == 0 or start in edges))
        if not inner and not edges and len(ends) > 1:
            head = tail = False  # a piece of a morpheme
        found[word] = Word(symbols, head and symbols[0] >= 0, tail and symbols[-1] >= 0)
    return found


def chains_of(runs: SegmentedCounts, words: dict[str, Word], *, inner: bool = False) -> Iterator[tuple[int, list[int]]]:
    """Number of the run, and the symbols of each chain in it that has two or more.

    Examples
    --------
    >>> words = {"그는": Word((5, 6), True, True), " 것": Word((7,), True, True), " 같다": Word((8, 9), True, True)}
    >>> runs = SegmentedCounts.from_marked({"그|는 것 같|다": 1})
    >>> list(chains_of(runs, words))
    [(0, [6, 7, 8])]
    """
    for i, run in enumerate(runs.words):
        chain: list[int] = []
        for text in words_of(run):
            word = words[text]
            if inner:
                for symbol in word.symbols:
                    if symbol >= 0:
                        chain.append(symbol)
                        continue
                    if len(chain) > 1:
                        yield i, chain
                    chain = []
                continue
            if word.head and chain:
                chain.append(word.symbols[0])
                if word.tail and len(word.symbols) == 1:
                    continue
            if len(chain) > 1:
                yield i, chain
            chain = [word.symbols[-1]] if word.tail else []
        if len(chain) > 1:
            yield i, chain


def learn_across(
    learner: Learner,
    runs: SegmentedCounts,
    policy: SuperwordPolicy,
    until: int,
    on_progress: Callable[[int], None],
    documents: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Join across the spaces of runs until there are `until` merges, or none is over the floors of the policy.

    Parameters
    ----------
    learner : Learner
        Its merges so far; more are added.
    runs : SegmentedCounts
    policy : SuperwordPolicy
    until : int
        Merges in all.
    on_progress : callable
        Called with merges done.
    documents : sequence of int, optional
        Documents that hold each run; without them there is no floor of documents.

    Returns
    -------
    dict
        A record of the log, as the other stages give one.
    """
    words = tokens_of(learner, runs, inner=policy.inner)
    n = runs.n.tolist()
    rows: list[str] = []
    weight: list[int] = []
    where: list[int] = []
    size: list[int] = []
    for i, chain in chains_of(runs, words, inner=policy.inner):
        rows.append("".join(map(chr, chain)))  # a private alphabet: the symbol is the code point
        weight.append(n[i])
        where.append(i)
        size.append(len(chain))
    joiner = Joiner(rows, weight, [chr(symbol) for symbol in range(len(learner.pieces))])
    run = np.repeat(np.asarray(where, dtype=np.int64), size)
    stands = runs.stands
    held = np.ones(len(runs)) if documents is None else np.asarray(documents, dtype=np.float64)

    def refuses(pair: int, text: str) -> bool:
        if not crosses_space(text):  # inside an eojeol: a step of an inner superword
            return False
        if not policy.looks_right(text):
            return True
        seen = np.unique(run[joiner.standing(pair)])
        enough = documents is None or held[seen].sum() >= policy.min_documents
        return stands[seen].sum() < policy.min_runs or not enough

    begun = len(learner.merges)
    made = learner.grow(joiner, until, policy.min_count, on_progress, refuses)
    return {
        "stage": "superword",
        "wanted": until - begun,
        "merges": len(learner.merges) - begun,
        **made,
        "parts": len(rows),
        "tokens": joiner.tokens,
    }
