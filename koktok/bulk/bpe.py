r"""BPE in compiled code: the same ids with as few merges as possible.

Three ways to one result, each the fastest for what it can do. BPE joins, of all neighbours, those with the
lowest rank first, from the left; a rank belongs to the joined piece.

* *By characters.* The bytes of a character are nearly always joined first. Where that is certain beside its neighbours,
  a pretoken begins as the pieces of its characters, and a handful of joins are left. `_characters_of` finds the
  characters of which it is, and the few neighbours beside which it is not.
* *By chain.* What BPE leaves is the one way to write a text as pieces of which every two neighbours are left alone when they
  are a text of their own: before a first join across a border all joins were inside pieces, and two neighbours as a text of
  their own would come to the same join. So the longest piece that its left neighbour leaves alone is taken, again and
  again; where none fits, one goes back a piece, and a place that was left so is never entered again, because only one chain
  leads to any place. Time is linear. (Antonov and van Antwerpen 2024, "So many tokens, so little time"; the crate `bpe`.)
  Whether a piece leaves another alone is found by undoing their joins, the latest first, and checking each time whether
  the two parts at the border would have been joined before the join that was just undone.
* *By joins*, over a heap, where a piece is made of one with a higher rank (in a foreign vocabulary, or an extended one), which
  the two others cannot do: there a join may make room for one of a lower rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.bulk.trie import PARENT, Trie, put_bytes, read_symbols, step
from koktok.errors import InputError
from koktok.model.vocab import Vocab

_SHORT = 40  # parts: so many are looked over before every join, which beats a heap
_NONE = 1 << 62
_ID_BITS = 21
_ID = (1 << _ID_BITS) - 1
_SEEN_PAIRS = 1 << 14
_LONGEST = 1 << 10  # symbols: to split a longer piece would take longer than a chain saves
_APART = -2  # of a character after a space: both begin as pieces of their own
_DOUBT = 1 << 30  # a bit of a piece of a character: some neighbours take bytes of it
_PAIRS = 1 << 16
_FACTOR, _SHIFT = np.uint64(0x2545F4914F6CDD1D), np.uint64(32)


def bpe(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:
    """Return the kernel of a vocabulary, by chains if its pieces allow it, and the arrays that it reads."""
    joins = joins_of(trie, vocab.n_bytes)
    chain = chain_of(trie, vocab.n_bytes, joins, bytewise=vocab.bytewise, letters=letters)
    return (solve_bpe, *chain) if chain else (solve_bpe_by_joins, trie.ids, joins)


def joins_of(trie: Trie, first_id: int) -> NDArray[np.int64]:
    """All splits of the pieces of a trie into two pieces, as a hash table: left, right and joined id in one word (0 is free)."""
    if first_id + len(trie.offsets) > _ID:
        raise InputError(f"a vocabulary of {len(trie.offsets):,} pieces; in bulk, BPE takes at most {_ID:,}")
    room = 1 << 10
    while True:
        joins = np.zeros(room, np.int64)
        if _enter(trie.texts, trie.offsets, trie.cells, trie.ids, first_id, joins):
            return joins
        room *= 2


@njit(nogil=True, cache=True)
def _enter(texts, offsets, cells, piece_ids, first_id, joins):
    """Enter all splits; False where the table would be more than half full."""
    entered = 0
    for p in range(len(offsets) - 1):
        begin, end = offsets[p], offsets[p + 1]
        left = np.int64(texts[begin])
        for cut in range(begin + 1, end):
            if cut > begin + 1:
                left = step(cells, left, texts[cut - 1])
            if piece_ids[left] < 0:
                continue
            right = np.int64(texts[cut])
            for at in range(cut + 1, end):
                right = step(cells, right, texts[at])
                if right == 0:
                    break
            if right == 0 or piece_ids[right] < 0:
                continue
            entered += 1
            if 2 * entered > len(joins):
                return False
            _put(piece_ids[left], piece_ids[right], first_id + p, joins)
    return True


@njit(nogil=True, cache=True)
def _put(left, right, piece, joins):
    key, mask = (np.int64(left) << _ID_BITS) | right, len(joins) - 1
    at = _place(key, mask)
    while joins[at] != 0:
        at = (at + 1) & mask
    joins[at] = (key << _ID_BITS) | piece


@njit(nogil=True, cache=True)
def _put_all(lefts, rights, joins):
    for i in range(len(lefts)):
        if lefts[i] >= 0:
            _put(lefts[i], rights[i], i, joins)


@njit(nogil=True, cache=True)
def _place(key, mask):
    """Where the search for a key begins; unsigned, because overflow of a signed product is undefined."""
    return np.int64((np.uint64(key) * _FACTOR) >> _SHIFT) & mask


@njit(nogil=True, cache=True)
def _join(left, right, joins):
    """The id of the joined piece, or a number larger than every id."""
    if left < 0 or right < 0:
        return np.int64(_NONE)
    key, mask = (np.int64(left) << _ID_BITS) | np.int64(right), len(joins) - 1
    at = _place(key, mask)
    while joins[np.uint64(at)] != 0:
        if joins[np.uint64(at)] >> _ID_BITS == key:
            return joins[np.uint64(at)] & _ID
        at = (at + 1) & mask
    return np.int64(_NONE)


@njit(nogil=True, cache=True)
def _by_scan(parts, size, least, ranks, joins):
    """Join in place, down to `least` parts; returns how many parts are left."""
    low, at = np.int64(_NONE), -1
    for i in range(size - 1):
        ranks[i] = _join(parts[i], parts[i + 1], joins)
        if ranks[i] < low:
            low, at = ranks[i], i
    while size > least and at >= 0:
        parts[at] = low
        size -= 1
        for i in range(at + 1, size):
            parts[i] = parts[i + 1]
            ranks[i] = ranks[i + 1]
        if at > 0:
            ranks[at - 1] = _join(parts[at - 1], parts[at], joins)
        if at + 1 < size:
            ranks[at] = _join(parts[at], parts[at + 1], joins)
        low, at = np.int64(_NONE), -1
        for i in range(size - 1):
            if ranks[i] < low:
                low, at = ranks[i], i
    return size


@njit(nogil=True, cache=True)
def _push(heap, n, entry):
    at = n
    while at > 0:
        up = (at - 1) >> 1
        if heap[up] <= entry:
            break
        heap[at] = heap[up]
        at = up
    heap[at] = entry
    return n + 1


@njit(nogil=True, cache=True)
def _pop(heap, n):
    top, n = heap[0], n - 1
    entry, at = heap[n], 0
    while 2 * at + 1 < n:
        down = 2 * at + 1
        if down + 1 < n and heap[down + 1] < heap[down]:
            down += 1
        if heap[down] >= entry:
            break
        heap[at] = heap[down]
        at = down
    heap[at] = entry
    return top, n


@njit(nogil=True, cache=True)
def _by_heap(parts, size, heap, joins):
    """As `_by_scan`. An entry is rank · size + place: it sorts by rank, then from the left."""
    left, right = np.empty(size, np.int32), np.empty(size, np.int32)
    gone = np.zeros(size, np.bool_)
    n = 0
    for i in range(size):
        left[i], right[i] = i - 1, i + 1
    for i in range(size - 1):
        rank = _join(parts[i], parts[i + 1], joins)
        if rank != _NONE:
            n = _push(heap, n, rank * size + i)
    while n > 0:
        top, n = _pop(heap, n)
        rank, i = top // size, top % size
        j = right[i]
        if gone[i] or j >= size or _join(parts[i], parts[j], joins) != rank:
            continue
        parts[i] = rank
        gone[j] = True
        k = right[j]
        right[i] = k
        if k < size:
            left[k] = i
            after = _join(parts[i], parts[k], joins)
            if after != _NONE:
                n = _push(heap, n, after * size + i)
        h = left[i]
        if h >= 0:
            before = _join(parts[h], parts[i], joins)
            if before != _NONE:
                n = _push(heap, n, before * size + h)
    kept = 0
    for i in range(size):
        if not gone[i]:
            parts[kept] = parts[i]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def solve_bpe_by_joins(data, begins, ends, symbols, bytewise, letters, piece_ids, joins, longest, ids, offsets):
    """Fill `ids` and `offsets` for all pretokens; returns the number of ids."""
    text = np.empty(longest, np.int32)
    ranks = np.empty(_SHORT + 1, np.int64)
    # There is less than an entry a part at first, and a join takes one away and adds at most two.
    heap = np.empty(2 * longest if longest > _SHORT else 0, np.int64)
    used = 0
    for job in range(len(begins)):
        size = read_symbols(data, begins[job], ends[job], symbols, bytewise, letters, text)
        for i in range(size):
            if text[i] > 0:
                text[i] = piece_ids[text[i]]
        size = _by_scan(text, size, 1, ranks, joins) if size <= _SHORT else _by_heap(text, size, heap, joins)
        for i in range(size):
            if text[i] < 0:
                used = put_bytes(ids, used, text[i])
            else:
                ids[used] = text[i]
                used += 1
        offsets[job + 1] = used
    return used


def chain_of(
    trie: Trie, first_id: int, all_joins: NDArray[np.int64], *, bytewise: bool, letters: bool
) -> tuple[Any, ...] | None:
    """Return what a chain needs of a vocabulary; None if a piece is made of one with a higher rank."""
    n_symbols = np.diff(trie.offsets)
    single = trie.ids[1 : int(trie.symbols.max(initial=0)) + 1]
    if n_symbols.max(initial=0) > _LONGEST or (single < 0).any():  # or a symbol is no piece
        return None
    n = first_id + len(n_symbols)
    lefts, rights = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    joinable = np.zeros(n, np.bool_)
    if not _split(trie.texts, trie.offsets, trie.ids, first_id, all_joins, lefts, rights, joinable):
        return None
    ids = np.where((trie.ids >= 0) & joinable[trie.ids], trie.ids, -1)
    sizes = np.concatenate([np.ones(first_id, np.int64), n_symbols]).astype(np.int32)
    shorter = np.full(n, -1, np.int32)
    _shorten(trie.texts, trie.offsets, trie.cells, ids, first_id, shorter)
    joins = np.zeros(1 << (2 * n).bit_length(), np.int64)
    _put_all(lefts, rights, joins)
    whole, spaced = np.full(1 << 16, -1, np.int32), np.full(1 << 16, -1, np.int32)
    doubtful = np.zeros(_PAIRS, np.bool_)
    if bytewise and not letters:
        _characters_of(trie.texts, trie.offsets, trie.ids, lefts, rights, joins, whole, spaced, doubtful)
    elif not letters:
        known = np.flatnonzero(trie.symbols[: 1 << 16])
        whole[known] = trie.ids[trie.symbols[known]]
        spaced[:] = _APART
    walk = np.column_stack((trie.cells, ids)).reshape(-1)
    return walk, shorter, sizes, lefts, rights, joins, whole, spaced, doubtful


@njit(nogil=True, cache=True)
def _split(texts, offsets, piece_ids, first_id, joins, lefts, rights, joinable):
    """Find the last join of every piece; False where it joins a piece with a higher rank."""
    parts, ranks = np.empty(_LONGEST, np.int32), np.empty(_LONGEST, np.int64)
    for p in range(len(offsets) - 1):
        begin, size = offsets[p], offsets[p + 1] - offsets[p]
        if size == 1:
            joinable[first_id + p] = True
            continue
        for i in range(size):
            parts[i] = piece_ids[texts[begin + i]]
        if _by_scan(parts, size, 2, ranks, joins) > 2 or _join(parts[0], parts[1], joins) != first_id + p:
            continue
        lefts[first_id + p], rights[first_id + p] = parts[0], parts[1]
        joinable[first_id + p] = True
    for i in range(first_id, len(lefts)):  # a single symbol is there from the beginning, whatever its rank
        if lefts[i] >= 0 and ((lefts[i] > i and lefts[lefts[i]] >= 0) or (rights[i] > i and lefts[rights[i]] >= 0)):
            return False
    return True


@njit(nogil=True, cache=True)
def _shorten(texts, offsets, cells, ids, first_id, shorter):
    for p in range(len(offsets) - 1):
        node = np.int64(texts[offsets[p]])
        for at in range(offsets[p] + 1, offsets[p + 1]):
            if ids[node] >= 0:
                shorter[first_id + p] = ids[node]
            node = step(cells, node, texts[at])


@njit(nogil=True, cache=True)
def _characters_of(texts, offsets, piece_ids, lefts, rights, joins, whole, spaced, doubtful):
    """Find the piece that the bytes of each character of the first plane are joined to, beside any neighbour.

    A neighbour may take some of the bytes first, by a join of a lower rank: such pairs of characters are entered in
    `doubtful`, and the piece has the bit `_DOUBT`. A space often takes the first bytes, so `spaced` has the piece of a space
    and the character after it, or `_APART`; its neighbour is then the character before the space. -1: unknown.
    """
    # The joins that take a piece at the end of a character to the right, and one at its beginning to the left, as linked lists.
    takers, more = np.full((2, len(lefts)), -1, np.int32), np.full((2, len(lefts)), -1, np.int32)
    space = np.int64(piece_ids[33])
    for i in range(len(lefts)):
        if lefts[i] >= 0 and (texts[offsets[rights[i]]] - 1) & 0xC0 != 0x80:  # not inside a character
            more[0, i], takers[0, lefts[i]] = takers[0, lefts[i]], i
            more[1, i], takers[1, rights[i]] = takers[1, rights[i]], i
    tables = (texts, offsets, lefts, rights, joins, takers, more, doubtful)
    parts, ranks, data = np.empty(4, np.int32), np.empty(4, np.int64), np.empty(3, np.int64)
    for char in range(1 << 16):
        if 0xD800 <= char < 0xE000:
            continue
        if char < 0x80:
            data[0], size = char, 1
        elif char < 0x800:
            data[0], data[1], size = 0xC0 | (char >> 6), 0x80 | (char & 0x3F), 2
        else:
            data[0], data[1], data[2], size = 0xE0 | (char >> 12), 0x80 | ((char >> 6) & 0x3F), 0x80 | (char & 0x3F), 3
        piece = np.int64(-1)
        _put_bytes_of(data, 0, size, space, piece_ids, parts)
        if _by_scan(parts, size, 1, ranks, joins) == 1:
            _put_bytes_of(data, 0, size, space, piece_ids, parts)
            left, doubt = _joined_first(parts, 0, size, char, space, *tables)
            if left == 1:
                piece, whole[char] = np.int64(parts[0]), parts[0] | doubt
        if char == 32:
            spaced[char] = _APART
            continue
        _put_bytes_of(data, 1, size, space, piece_ids, parts)
        left = _by_scan(parts, size + 1, 1, ranks, joins)
        if left == 1 and not (lefts[parts[0]] == space and rights[parts[0]] == piece):
            # The space took some bytes, so that the character never was a piece.
            _put_bytes_of(data, 1, size, space, piece_ids, parts)
            left, doubt = _joined_first(parts, 1, size, char, space, *tables)
            spaced[char] = parts[0] | doubt if size > 1 and left == 1 else -1
        elif piece >= 0 and (left == 1 or (left == 2 and parts[1] == piece)):
            spaced[char] = _APART


@njit(nogil=True, cache=True)
def _put_bytes_of(data, before, size, space, piece_ids, parts):
    parts[0] = space
    for i in range(size):
        parts[before + i] = piece_ids[data[i] + 1]


@njit(nogil=True, cache=True)
def _joined_first(parts, before, size, char, space, texts, offsets, lefts, rights, joins, takers, more, doubtful):
    """Join the bytes of a character, and the space `before` it, in place; returns how many parts are left, and `_DOUBT` or 0.

    Where a neighbour may take a part at an end away before it is joined here, by a join of a lower rank, the two characters
    are entered in `doubtful`; -1 where the neighbour that does it is less than a character.
    """
    n, doubt = before + size, np.int64(0)
    while True:
        low, at = np.int64(_NONE), -1
        for i in range(n - 1):
            rank = _join(parts[i], parts[i + 1], joins)
            if rank < low:
                low, at = rank, i
        if at < 0:
            return n, doubt
        for side in range(2):
            taker = takers[side, parts[0 if side else n - 1]]
            while taker >= 0:
                # The bytes that a space takes of the character after it are in `spaced`.
                if taker < low and not (side and not before and lefts[taker] == space):
                    neighbour = _end_character(texts, offsets, lefts[taker] if side else rights[taker], side)
                    if neighbour < 0:
                        return np.int64(-1), doubt
                    doubtful[_pair(neighbour, char) if side else _pair(char, neighbour)] = True
                    doubt = np.int64(_DOUBT)
                taker = more[side, taker]
        parts[at] = low
        n -= 1
        for i in range(at + 1, n):
            parts[i] = parts[i + 1]


@njit(nogil=True, cache=True)
def _end_character(texts, offsets, piece, last):
    """The first, or last, character of a piece; -1 where it has only some bytes of it, or is beyond the first plane."""
    begin, end = offsets[piece], offsets[piece + 1]
    at = end - 1 if last else begin
    while last and at > begin and (texts[at] - 1) & 0xC0 == 0x80:
        at -= 1
    first = np.int64(texts[at]) - 1
    size = 1 if first < 0x80 else 2 if first < 0xE0 else 3
    if 0x80 <= first < 0xC0 or first >= 0xF0 or at + size > end:
        return np.int64(-1)
    char = first if size == 1 else first & (0x3F >> (size - 1))
    for i in range(1, size):
        char = (char << 6) | ((np.int64(texts[at + i]) - 1) & 0x3F)
    return char


@njit(nogil=True, cache=True)
def _pair(left, right):
    """A place for two characters among `_PAIRS`; where others share it, they are looked at for nothing."""
    key = (np.uint64(left) << np.uint64(16)) | np.uint64(right)
    return ((key * _FACTOR) >> _SHIFT) & np.uint64(_PAIRS - 1)


@njit(nogil=True, cache=True)
def _left_alone(left, right, joins, lefts, rights):
    """Whether two pieces, as a text of their own, stay these two."""
    limit = np.int64(_NONE)
    while True:
        if _join(left, right, joins) < limit:
            return False
        a = np.int64(left) if lefts[left] >= 0 else np.int64(-1)
        b = np.int64(right) if lefts[right] >= 0 else np.int64(-1)
        if a > b:
            limit, left = a, rights[left]
        elif b >= 0:
            limit, right = (
                b + 1,
                lefts[right],
            )  # of equal ranks the one at the border, which is further left, came first
        else:
            return True


@njit(nogil=True, cache=True)
def _longest(text, at, stop, walk):
    """The longest piece that begins at a place."""
    node = np.int64(text[at])
    found = walk[np.uint64(2 * node + 1)]
    cell = walk[np.uint64(2 * node)]
    at += 1
    while at < stop:
        child = (cell >> 32) + text[np.uint64(at)]
        cell = walk[np.uint64(2 * child)]
        if cell & PARENT != node:
            break
        node = child
        piece = walk[np.uint64(2 * node + 1)]
        if piece >= 0:
            found = piece
        at += 1
    return found


@njit(nogil=True, cache=True)
def _by_chain(text, at, stop, job, walk, shorter, sizes, lefts, rights, joins, left_at, pairs, ids, used):
    """Write the pieces of symbols that are all known; returns where the next id goes.

    `left_at` holds the pretoken in which a place was left for good; `pairs` keeps neighbours seen lately, and in the lowest bit
    whether they are left alone.
    """
    first = used
    piece = _longest(text, at, stop, walk)
    while True:
        end = at
        while piece >= 0:
            end = at + sizes[piece]
            if left_at[end] != job:
                if used == first:
                    break
                key = (np.int64(ids[used - 1]) << _ID_BITS) | piece
                place = np.uint64(_place(key, _SEEN_PAIRS - 1))
                if pairs[place] >> 1 != key:
                    pairs[place] = (key << 1) | _left_alone(ids[used - 1], piece, joins, lefts, rights)
                if pairs[place] & 1:
                    break
            piece = np.int64(shorter[piece])
        if piece < 0:
            left_at[at] = job
            used -= 1
            at -= sizes[ids[used]]
            piece = np.int64(shorter[ids[used]])
            continue
        ids[used] = piece
        used += 1
        at = end
        if at == stop:
            return used
        piece = _longest(text, at, stop, walk)


@njit(nogil=True, cache=True)
def _by_characters(data, begin, end, whole, spaced, doubtful, parts):
    """Fill `parts` with the first pieces of the characters; returns how many, or -1 if one of them is not certain."""
    size, at = 0, begin
    while at < end:
        char, before = np.int64(data[np.uint64(at)]), at - 1
        at += 1
        piece = whole[char]
        if char == 32 and at < end:
            after = data[np.uint64(at)]
            if spaced[after] != _APART:
                piece, char = spaced[after], np.int64(after)
                at += 1
        if piece >= _DOUBT:
            if at < end and doubtful[_pair(char, data[np.uint64(at)])]:
                return -1
            if before >= begin and doubtful[_pair(data[np.uint64(before)], char)]:
                return -1
            piece ^= _DOUBT
        if piece < 0:
            return -1
        parts[size] = piece
        size += 1
    return size


@njit(nogil=True, cache=True)
def solve_bpe(
    data, begins, ends, symbols, bytewise, letters,
    walk, shorter, sizes, lefts, rights, joins, whole, spaced, doubtful, longest, ids, offsets,
):  # fmt: skip
    """Fill `ids` and `offsets` for all pretokens; returns the number of ids."""
    text, parts, ranks = np.empty(longest, np.int32), np.empty(_SHORT, np.int32), np.empty(_SHORT, np.int64)
    left_at, pairs = np.full(longest + 1, -1, np.int64), np.full(_SEEN_PAIRS, -1, np.int64)
    used = 0
    for job in range(len(begins)):
        begin, end = begins[job], ends[job]
        size = _by_characters(data, begin, end, whole, spaced, doubtful, parts) if end - begin <= _SHORT else -1
        if size >= 0:
            for i in range(_by_scan(parts, size, 1, ranks, joins)):
                ids[used] = parts[i]
                used += 1
            offsets[job + 1] = used
            continue
        size = read_symbols(data, begin, end, symbols, bytewise, letters, text)
        at = 0
        while at < size:
            if text[at] < 0:
                used = put_bytes(ids, used, text[at])
                at += 1
                continue
            stop = at + 1
            while stop < size and text[stop] >= 0:
                stop += 1
            used = _by_chain(text, at, stop, job, walk, shorter, sizes, lefts, rights, joins, left_at, pairs, ids, used)
            at = stop
        offsets[job + 1] = used
    return used
