"""Pairs for BERT: two texts, consecutive or from different documents, as places of a packed shard.

As in Devlin et al. 2019 a document is cut into chunks of whole sentences up to the length (one chunk in ten is shorter), a
chunk is divided between two sentences, and in half of the cases the second text comes from another document; the unused
sentences begin the next chunk. A pair that is too long loses random tokens at the front or the back. Random numbers are a
function of (seed, epoch, the ids of the document); the other document is from the same shard and never has the same ids.

With sentence order (Lan et al. 2020, ALBERT) the second text always follows, and in half of the cases the two are exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.errors import InputError
from koktok.instances.layout import Layout
from koktok.instances.philox import STATE, chance, digest_of, randint, set_stream

if TYPE_CHECKING:
    from koktok.instances.packing import PackedShard


_USE = np.uint64(3)
_TRIES = 10  # to draw another document, as in BERT's own code
_LEAST = 2  # tokens of a pair: one of each text


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
    n = _pairs(
        shard.ids, shard.documents, shard.ends, shard.sentences, room, np.uint64(seed), np.uint64(epoch), order, short_seq_prob,
        begins, ends, labels,
    )  # fmt: skip
    return Layout(2 * np.arange(n + 1), begins[: 2 * n].copy(), ends[: 2 * n].copy(), labels[:n].copy())


@njit(nogil=True, cache=True)
def _aim(state, room, short_seq_prob):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return _LEAST + randint(state, room - _LEAST) if chance(state) < short_seq_prob else room


@njit(nogil=True, cache=True)
def _pairs(  # type: ignore[no-untyped-def]
    ids, documents, sentence_ends, sentences, room, seed, epoch, order, short_seq_prob, begins, ends, labels
):  # pragma: no cover - compiled
    state = np.zeros(STATE, np.uint64)
    n, total = 0, len(documents) - 1
    for document in range(total):
        first, last = sentences[document], sentences[document + 1]
        if first == last:
            continue
        own = digest_of(ids[documents[document] : documents[document + 1]])
        set_stream(state, seed, epoch, own, _USE)
        aim = _aim(state, room, short_seq_prob)
        at = first  # the first sentence of the chunk
        while at < last:
            begin = documents[document] if at == first else sentence_ends[at - 1]
            end = at + 1
            while end < last and sentence_ends[end - 1] - begin < aim:
                end += 1
            # The chunk is the sentences from `at` up to `end`; the first text takes some of them, or all.
            cut = at + 1 + (randint(state, end - at - 1) if end - at > 1 else 0)
            a0, a1 = begin, sentence_ends[cut - 1]
            random = not order and (end - at == 1 or chance(state) < 0.5)
            if order and end - at == 1:
                at = end  # one sentence cannot be exchanged
                continue
            label, after = 0, end
            if random:
                other = -1
                for _ in range(_TRIES):
                    drawn = randint(state, total)
                    there = ids[documents[drawn] : documents[drawn + 1]]
                    if drawn != document and len(there) and digest_of(there) != own:
                        other = drawn
                        break
                random = other >= 0  # otherwise only this document and its copies were drawn
                if not random and end - at == 1:
                    at = end
                    continue
            if random:
                start = sentences[other] + randint(state, sentences[other + 1] - sentences[other])
                b0 = documents[other] if start == sentences[other] else sentence_ends[start - 1]
                stop = start
                while stop < sentences[other + 1] and (stop == start or sentence_ends[stop - 1] - b0 < aim - (a1 - a0)):
                    stop += 1
                b1 = sentence_ends[stop - 1]
                label, after = 1, cut  # the unused sentences begin the next chunk
            else:
                b0, b1 = a1, sentence_ends[end - 1]
                if order and chance(state) < 0.5:
                    a0, a1, b0, b1 = b0, b1, a0, a1
                    label = 1
            while a1 - a0 + b1 - b0 > room:
                front = chance(state) < 0.5
                if a1 - a0 > b1 - b0:
                    a0, a1 = (a0 + 1, a1) if front else (a0, a1 - 1)
                else:
                    b0, b1 = (b0 + 1, b1) if front else (b0, b1 - 1)
            begins[2 * n], ends[2 * n], begins[2 * n + 1], ends[2 * n + 1], labels[n] = a0, a1, b0, b1, label
            n += 1
            at = after
            aim = _aim(state, room, short_seq_prob)
    return n
