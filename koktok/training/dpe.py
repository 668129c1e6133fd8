"""Words with counts to a `Dpe`, by gradient descent on the exact log probability of the words.

Distinct words, not running ones: an ending in ten thousand words is then worth more than a
word that occurs ten thousand times, and what is frequent in many words is what people call a morpheme (SelfSeg: Song and others
2023; long before, Creutz and Lagus 2007). Candidates are the pieces of a classic Unigram vocabulary of the same words, which
holds whole stems: 대한민국 is one candidate, and not only 대한 and 민국, which are in more words.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from koktok.count import Counts
from koktok.errors import InputError, VocabSizeError
from koktok.model.vocab import BYTE_PIECES
from koktok.progress import Done
from koktok.segment.dpe.learnt import Dpe, DpeOptions, one_thread
from koktok.segment.dpe.segmenter import runs_of
from koktok.segment.dpe.tree import END, TaggedWord, arcs_of, fresh_weights, joined, marginal, prefixes_of
from koktok.segment.policy import Segmenter
from koktok.segment.segmented import SegmentedCounts
from koktok.training.job import Job
from koktok.training.unigram_em import train_unigram_em

if TYPE_CHECKING:
    from torch import Tensor


BLOCK, TOGETHER = 64, 4
"""Words that begin alike make a block, whose tree is built once; a step takes so many blocks, drawn anew in every pass."""

LONGEST_WORD = 20
"""Longer words teach nothing: text without spaces."""

DEFAULT = DpeOptions()

ENDS = 1 / 2
"""Ends of words for each piece at first: a word has two pieces."""


def learn_cuts(
    words: Mapping[str, int],
    analyser: Segmenter | None = None,
    *,
    name: str = "",
    options: DpeOptions = DEFAULT,
    on_progress: Done | None = None,
) -> Dpe:
    """Learn a segmentation of the Hangul in words, by themselves or with an analyser's tags beside them."""
    listed = sorted(words)
    tagged = [()] * len(listed) if analyser is None else analyser.analyse(listed)
    runs: Counter[TaggedWord] = Counter()
    for word, morphemes in zip(listed, tagged, strict=True):
        for _, run in runs_of(word, morphemes):
            runs[run] += words[word]
    texts: Counter[str] = Counter()
    for run, n in runs.items():
        texts[run.text] += n
    signed = "" if analyser is None else f"{name} {analyser.signature()}"
    pieces = unigram_candidates(texts, options) or None
    return learn(runs, options, pieces=pieces, analyser=signed, on_progress=on_progress)


def unigram_candidates(runs: Mapping[str, int], options: DpeOptions) -> dict[str, float]:
    """Pieces of a Unigram vocabulary and how probable each is; of fewer where the text is small, and none where it is tiny.

    Examples
    --------
    >>> runs = {stem + ending: 9 for stem in ("학교", "도서관", "시장") for ending in ("에서", "에는", "까지", "")}
    >>> found = unigram_candidates(runs, DpeOptions(pieces=18))
    >>> sorted(piece for piece in found if len(piece) > 1)
    ['까지', '도서관', '시장', '에는', '에서', '학교']
    """
    counts = SegmentedCounts.uncut(Counts.from_mapping(runs))
    size = options.pieces
    while size > 8:
        try:
            job = Job(
                counts, len(BYTE_PIECES) + size, alphabet=(), coverage=0.9995, max_length=options.longest, threads=1
            )
            vocab = train_unigram_em(job).vocab
        except VocabSizeError:
            size //= 2
            continue
        found = {piece: math.exp(score) for piece, score in zip(vocab.pieces, vocab.scores, strict=True)}
        return {**found, END: ENDS * sum(found.values())}
    return {}


def candidates(words: Mapping[TaggedWord, float], pieces: int, longest: int) -> dict[str, float]:
    r"""The strings of two characters and more that are in the most words, and their weights; of equal ones the first by code point.

    Examples
    --------
    >>> candidates({TaggedWord("집에"): 1, TaggedWord("집에서"): 1, TaggedWord("집은"): 1}, 2, 3)
    {'집에': 2, '서\n': 1}
    """
    found: Counter[str] = Counter()
    for (text, _), weight in words.items():
        whole = text + END
        strings = {whole[i:j] for i in range(len(whole)) for j in range(i + 2, min(len(whole), i + longest) + 1)}
        for string in sorted(strings):
            found[string] += weight  # type: ignore[assignment]
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:pieces])


def learn(
    counts: Mapping[TaggedWord, int],
    options: DpeOptions = DEFAULT,
    *,
    pieces: Mapping[str, float] | None = None,
    analyser: str = "",
    on_progress: Done | None = None,
) -> Dpe:
    """Learn a segmentation.

    A pure function of its arguments but for `on_progress`, on one thread.
    """
    words = sorted((w for w in counts if 0 < len(w.text) <= LONGEST_WORD), key=lambda w: (w.tags, w.text))
    if not words:
        raise InputError("there are no words with Hangul to learn from", hint="koktok segment TEXT --learn FOLDER")
    weighed = {word: float(counts[word]) ** options.power for word in words}
    single: Counter[str] = Counter()
    for word in words:
        for character in word.text + END:
            single[character] += weighed[word]
    tags = sorted({tag for word in words for tag in word.tags})
    if pieces is None:
        pieces = {**single, **candidates(weighed, options.pieces, options.longest)}
    least = min(pieces.values())
    known = {piece: weight for piece, weight in pieces.items() if 1 < len(piece) <= options.longest}
    chosen = {**{c: pieces.get(c, least) for c in sorted(single)}, **{piece: known[piece] for piece in sorted(known)}}
    listed, symbols = ("", *chosen), ("", *sorted(single), *tags)
    with one_thread():
        import torch

        weights = fresh_weights(len(symbols), len(listed), options.width, options.seed)
        # A piece is as probable at first as it is frequent.
        weights["piece_bias"] = torch.log(torch.tensor([least, *chosen.values()]))
        spent = _descend(weights, words, [weighed[word] for word in words], symbols, listed, options, on_progress)
    digest = hashlib.sha256(repr([(*word, counts[word]) for word in words]).encode()).hexdigest()[:16]
    about = {
        "analyser": analyser,
        "words": len(words),
        "words_digest": digest,
        "options": asdict(options),
        "torch": torch.__version__,
        "nats": spent,
    }
    return Dpe(symbols, listed, weights, options.longest, about)


def _descend(
    weights: dict[str, Tensor],
    words: Sequence[TaggedWord],
    weighed: Sequence[float],
    symbols: Sequence[str],
    pieces: Sequence[str],
    options: DpeOptions,
    on_progress: Done | None,
) -> list[float]:
    """Change the weights; returns the loss of each pass, in natural units a word."""
    import torch

    ids = ({symbol: i for i, symbol in enumerate(symbols)}, {piece: i for i, piece in enumerate(pieces)})
    starts = range(0, len(words), BLOCK)
    trees = [prefixes_of(words[i : i + BLOCK], *ids, options.longest) for i in starts]
    shares = [torch.tensor(weighed[i : i + BLOCK]) for i in starts]
    dice = np.random.default_rng(options.seed)
    for weight in weights.values():
        weight.requires_grad_()
    descent = torch.optim.Adam(weights.values(), options.rate)
    steps = -(-len(trees) // TOGETHER)
    spent = []
    for epoch in range(options.epochs):
        order = dice.permutation(len(trees)).tolist()
        loss = 0.0
        for step in range(steps):
            done = epoch * steps + step
            descent.param_groups[0]["lr"] = options.rate * (1 - 0.9 * done / (options.epochs * steps))
            drawn = order[step * TOGETHER : (step + 1) * TOGETHER]
            tree, share = joined([trees[i] for i in drawn]), torch.cat([shares[i] for i in drawn])
            log_likelihood = marginal(arcs_of(weights, tree), tree)[torch.from_numpy(tree.word)]
            lost = -(log_likelihood * share).sum()
            descent.zero_grad()
            (lost / share.sum()).backward()
            descent.step()
            loss += lost.item()
            if on_progress:
                on_progress(done + 1, options.epochs * steps)
        spent.append(round(loss / sum(weighed), 6))
    for name, weight in weights.items():
        weights[name] = weight.detach()
    return spent
