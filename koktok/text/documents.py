"""Hashes of documents: the hold-out by document, and a digest of all documents in any order.

Blocks of lines and the digest of a whole source (`koktok.text.sources`) need one reader from the first line to the last.
Where many machines read at once, the SHA-256 of each document decides whether it is held out, and the sum of all hashes is
the digest of the source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


LIMBS = 8
"""A SHA-256 is the number whose digits to the base 2³², the lowest first, are its eight words."""


def document_hashes(documents: Iterable[bytes]) -> NDArray[np.uint32]:
    """SHA-256 of each document.

    Examples
    --------
    >>> document_hashes([b"", "가".encode()])[:, 0].tolist()
    [1120186595, 2471685732]
    """
    digests = b"".join([hashlib.sha256(document).digest() for document in documents])
    return np.frombuffer(digests, "<u4").reshape(-1, LIMBS)


def held_documents(digests: NDArray[np.uint32], share: float) -> NDArray[np.bool_]:
    """Whether each document is held out of training: by its text alone, so that its copies go to the same side.

    Examples
    --------
    >>> int(held_documents(document_hashes([b"%d" % i for i in range(2000)]), 0.05).sum())
    90
    """
    return digests[:, 0] < share * 2.0**32


def hash_sum(digests: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """The sums of each word over documents, which add up over any parts of them; for up to 2³² documents."""
    sums: NDArray[np.uint64] = digests.sum(axis=0, dtype=np.uint64)
    return sums


def hash_sum_digest(limbs: Iterable[int]) -> str:
    """The digest of documents in any order: the sum of their SHA-256, modulo 2²⁵⁶, in hexadecimal.

    Examples
    --------
    >>> one, other = document_hashes([b"a", b"b"]), document_hashes([b"b", b"a"])
    >>> hash_sum_digest(hash_sum(one).tolist()) == hash_sum_digest(hash_sum(other).tolist())
    True
    >>> hash_sum_digest(hash_sum(one).tolist())[:26]
    'documents:58498b853465f484'
    """
    total = sum(limb << 32 * i for i, limb in enumerate(limbs))
    return f"documents:{total % (1 << 32 * LIMBS):064x}"
