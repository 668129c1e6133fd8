"""Text held out of training: groups of lines, or documents by their hash; the sum of the hashes is a digest in any order.

The number of a line needs one reader from the first line to the last. If many machines read at once, the SHA-256 of each
document decides whether it is held out, and the sum of all hashes is the digest of the source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from koktok.text.blocks import Block

HELD_TOGETHER = 50
"""Lines that are held out together, because neighbours share a topic and often whole sentences."""

LIMBS = 8
"""A SHA-256 is the number whose digits to the base 2³², the lowest first, are its eight words."""


def is_held(group: int, share: float, key: str) -> bool:
    """Whether a group of lines is held out: by a hash of its number and the key, so a larger share holds out the same and more."""
    side = hashlib.blake2b(f"{key}\0{group}".encode(), digest_size=8).digest()
    return int.from_bytes(side, "big") < int(share * 2**64)


def held_lines(first: int, n: int, share: float, key: str) -> NDArray[np.bool_]:
    """Whether each of `n` lines of a source is held out, the first of them being number `first`, from 0."""
    if not share:
        return np.zeros(n, np.bool_)
    groups = range(first // HELD_TOGETHER, (first + n - 1) // HELD_TOGETHER + 1)
    held = np.repeat(np.array([is_held(i, share, key) for i in groups], np.bool_), HELD_TOGETHER)
    begin = first % HELD_TOGETHER
    return held[begin : begin + n]


def held_by_document(block: Block, digests: NDArray[np.uint32], share: float) -> NDArray[np.bool_]:
    """Whether each line of a block is held out with its document: by its text, so that copies go to the same side."""
    return np.repeat(digests[:, 0] < share * 2.0**32, np.diff(np.flatnonzero(block.ends), prepend=-1))


def document_hashes(documents: Iterable[bytes]) -> NDArray[np.uint32]:
    """Return the SHA-256 of each document."""
    digests = b"".join([hashlib.sha256(document).digest() for document in documents])
    return np.frombuffer(digests, "<u4").reshape(-1, LIMBS)


def hash_sum(digests: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """The sums of each word over documents, which add up over any parts of them; for up to 2³² documents."""
    sums: NDArray[np.uint64] = digests.sum(axis=0, dtype=np.uint64)
    return sums


def hash_sum_digest(limbs: Iterable[int]) -> str:
    """The digest of documents in any order: the sum of their SHA-256, modulo 2²⁵⁶, in hexadecimal."""
    total = sum(limb << 32 * i for i, limb in enumerate(limbs))
    return f"documents:{total % (1 << 32 * LIMBS):064x}"
