"""Pairs for BERT: two texts, consecutive or from different documents, as places of a packed shard.

As in Devlin et al. 2019 a document is cut into chunks of whole sentences up to the length (one chunk in ten is shorter), a
chunk is divided between two sentences, and in half of the cases the second text comes from another document; the unused
sentences begin the next chunk. A pair that is too long loses tokens at the front and the back. Random numbers are a
function of (seed, epoch, the ids of the document); the other document is from the same shard and never has the same ids.

With sentence order (Lan et al. 2020, ALBERT) the second text always follows, and in half of the cases the two are exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit

from koktok.errors import InputError
from koktok.instances.draws import digests, uniforms
from koktok.instances.layout import Layout
from koktok.instances.packing import PackedShard

_USE = 3
_TRIES = 10  # to draw another document, as in BERT's own code
_LEAST = 2  # tokens of a pair: one of each text
_DRAWS = _TRIES + 8  # random numbers of a pair, at most


def check_pairs(shards: Iterable[PackedShard], *, order: bool, full: int) -> None:
    """Raise an error if no pairs can be made of a text."""
    documents, several, longest = 0, False, 0
    for shard in shards:
        documents += len(shard.documents) - 1
        longest = max(longest, int(np.diff(shard.documents).max()))
        several = several or bool((np.diff(shard.sentences) > 1).any())
    if not several:
        raise InputError(
            "a pair requires a document of two sentences, and the text has none",
            hint="--sentences kiwi, or --documents blank | file; --kind mlm makes no pairs",
        )
    if not order and documents == 1:
        raise InputError(
            "--pairs next requires two documents, and the text has one", hint="--pairs order, or more text"
        )
    if not order and longest >= full:
        raise InputError(
            f"a document of {longest:,} tokens fills a shard, so --pairs next finds no other document in it",
            hint=f"--documents lines | blank, --shard-tokens {8 * longest}, or --pairs order",
        )


def pairs_layout(shard: PackedShard, room: int, *, seed: int, epoch: int, order: bool, short_seq_prob: float) -> Layout:
    """Lay out the pairs of a shard."""
    most = 2 * len(shard.ends) + len(shard.ids) // room + 2
    begins, ends = np.empty(2 * most, np.int32), np.empty(2 * most, np.int32)
    labels = np.empty(most, np.int8)
    keys = digests(shard.ids, shard.documents)
    drawn = uniforms(seed, epoch, keys, _USE, _DRAWS * (np.diff(shard.sentences) + 1))
    n = _pairs(
        shard.documents, shard.ends, shard.sentences, keys, room, *drawn, order, short_seq_prob,
        begins, ends, labels,
    )  # fmt: skip
    return Layout(2 * np.arange(n + 1), begins[: 2 * n].copy(), ends[: 2 * n].copy(), labels[:n].copy())


@njit(nogil=True, cache=True)
def _aim(short, length, room, short_seq_prob):
    return _LEAST + np.int64(length * (room - _LEAST)) if short < short_seq_prob else room


@njit(nogil=True, cache=True)
def _pairs(documents, sentence_ends, sentences, keys, room, drawn, places, order, short_seq_prob, begins, ends, labels):
    n, total = 0, len(documents) - 1
    for document in range(total):
        first, last = sentences[document], sentences[document + 1]
        if first == last:
            continue
        take = places[document]  # the random number to take next
        aim = _aim(drawn[take], drawn[take + 1], room, short_seq_prob)
        take += 2
        at = first  # the first sentence of the chunk
        while at < last:
            begin = documents[document] if at == first else sentence_ends[at - 1]
            end = at + 1
            while end < last and sentence_ends[end - 1] - begin < aim:
                end += 1
            # The chunk is the sentences from `at` up to `end`; the first text takes some of them, or all.
            cut = at + 1 + np.int64(drawn[take] * (end - at - 1))
            a0, a1 = begin, sentence_ends[cut - 1]
            random = not order and (end - at == 1 or drawn[take + 1] < 0.5)
            take += 2
            if order and end - at == 1:
                at = end  # one sentence cannot be exchanged
                continue
            label, after = 0, end
            if random:
                other = -1
                for _ in range(_TRIES):
                    there = int(drawn[take] * total)
                    take += 1
                    if documents[there] < documents[there + 1] and keys[there] != keys[document]:
                        other = there
                        break
                random = other >= 0  # otherwise only this document and its copies were drawn
                if not random and end - at == 1:
                    at = end
                    continue
            if random:
                start = sentences[other] + np.int64(drawn[take] * (sentences[other + 1] - sentences[other]))
                take += 1
                b0 = documents[other] if start == sentences[other] else sentence_ends[start - 1]
                stop = start
                while stop < sentences[other + 1] and (stop == start or sentence_ends[stop - 1] - b0 < aim - (a1 - a0)):
                    stop += 1
                b1 = sentence_ends[stop - 1]
                label, after = 1, cut  # the unused sentences begin the next chunk
            else:
                b0, b1 = a1, sentence_ends[end - 1]
                if order and drawn[take] < 0.5:
                    a0, a1, b0, b1 = b0, b1, a0, a1
                    label = 1
                take += 1
            if a1 - a0 + b1 - b0 > room:  # the longer one loses tokens, and then both
                a = max(min(a1 - a0, room - (b1 - b0)), min(a1 - a0, (room + 1) // 2))
                lost_a, lost_b = a1 - a0 - a, b1 - b0 - (room - a)
                front_a, front_b = np.int64(drawn[take] * (lost_a + 1)), np.int64(drawn[take + 1] * (lost_b + 1))
                a0, a1, b0, b1 = a0 + front_a, a1 - lost_a + front_a, b0 + front_b, b1 - lost_b + front_b
                take += 2
            begins[2 * n], ends[2 * n], begins[2 * n + 1], ends[2 * n + 1], labels[n] = a0, a1, b0, b1, label
            n += 1
            at = after
            aim = _aim(drawn[take], drawn[take + 1], room, short_seq_prob)
            take += 2
    return n
