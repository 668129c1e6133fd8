"""The longest piece from the left, in compiled code: WordPiece, lists of words, syllables, n-grams.

One walk down the trie for each piece, which remembers the last piece that it passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from koktok.bulk.trie import Trie, put_bytes, read_symbols, step
from koktok.model.vocab import Vocab


def wordpiece(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """The longest piece from the left, continued ones after the first."""
    return solve_wordpiece, trie.cells, trie.ids, trie.inside, vocab.unknown_id, vocab.longest_word


def word(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """Whole pretokens."""
    return solve_word, trie.cells, trie.ids, vocab.unknown_id


def longest(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """The longest piece from the left."""
    return solve_longest, trie.cells, trie.ids


@njit(nogil=True, cache=True)
def _match(text, start, size, node, end, cells, piece_ids):
    """The longest piece of a walk that is at `node` after symbol `end`: its id (-1: none) and its end."""
    piece, reach = np.int64(-1), start
    if end > start and piece_ids[node] >= 0:
        piece, reach = np.int64(piece_ids[node]), end
    while end < size and text[end] > 0:
        node = step(cells, node, text[end])
        if node == 0:
            break
        end += 1
        if piece_ids[node] >= 0:
            piece, reach = np.int64(piece_ids[node]), end
    return piece, reach


@njit(nogil=True, cache=True)
def solve_longest(
    data, begins, ends, symbols, bytewise, letters,
    cells, piece_ids, longest, ids, offsets,
):  # fmt: skip
    """Syllables, jamo, n-grams and morphemes; a character that is not listed becomes its bytes."""
    text = np.empty(longest, np.int32)
    used = 0
    for job in range(len(begins)):
        size = read_symbols(data, begins[job], ends[job], symbols, bytewise, letters, text)
        start = 0
        while start < size:
            if text[start] < 0:
                used = put_bytes(ids, used, text[start])
                start += 1
                continue
            piece, start = _match(text, start, size, np.int64(text[start]), start + 1, cells, piece_ids)
            ids[used] = piece
            used += 1
        offsets[job + 1] = used
    return used


@njit(nogil=True, cache=True)
def solve_word(
    data, begins, ends, symbols, bytewise, letters,
    cells, piece_ids, unknown, longest, ids, offsets,
):  # fmt: skip
    """The whole pretoken, or the unknown token."""
    text = np.empty(longest, np.int32)
    used = 0
    for job in range(len(begins)):
        size = read_symbols(data, begins[job], ends[job], symbols, bytewise, letters, text)
        if size:
            node, end = np.int64(max(text[0], 0)), 1
            while node and end < size and text[end] > 0:
                node = step(cells, node, text[end])
                end += 1
            whole = node > 0 and end == size and piece_ids[node] >= 0
            ids[used] = piece_ids[node] if whole else unknown
            used += 1
        offsets[job + 1] = used
    return used


@njit(nogil=True, cache=True)
def solve_wordpiece(
    data, begins, ends, symbols, bytewise, letters,
    cells, piece_ids, inside, unknown, limit, longest, ids, offsets,
):  # fmt: skip
    """The longest piece again and again, behind the first only continued ones; all unknown where a part is."""
    text = np.empty(longest, np.int32)
    used = 0
    for job in range(len(begins)):
        begin, end = begins[job], ends[job]
        while not bytewise and begin < end and data[begin] == 32:
            begin += 1
        size = read_symbols(data, begin, end, symbols, bytewise, letters, text)
        first, start = used, 0
        while start < size:
            if size > limit or text[start] <= 0:
                start = size
                piece = np.int64(-1)
            elif start == 0:
                piece, start = _match(text, 0, size, np.int64(text[0]), 1, cells, piece_ids)
            else:
                piece, start = _match(text, start, size, inside, start, cells, piece_ids)
            if piece < 0:
                used = first
                ids[used] = unknown
                used += 1
                break
            ids[used] = piece
            used += 1
        offsets[job + 1] = used
    return used
