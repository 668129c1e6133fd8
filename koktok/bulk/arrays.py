"""The type of ids, and checks of flat ids from callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.errors import InputError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def id_type(size: int, wanted: Any = None) -> np.dtype[Any]:
    """The numpy type for the ids of a vocabulary: uint16 where they fit, else uint32, or the one that was asked for."""
    if wanted is None:
        return np.dtype(np.uint16 if size <= 1 << 16 else np.uint32)
    try:
        chosen = np.dtype(wanted)
    except (TypeError, ValueError):
        chosen = np.dtype(object)
    if chosen.kind not in "iu" or np.iinfo(chosen).max < size - 1:
        raise UsageError(f"dtype = {wanted!r} cannot hold the ids 0 to {size - 1}", hint='dtype="uint32"')
    found: np.dtype[Any] = chosen
    return found


def checked_flat(ids: Any, offsets: Any, size: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Flat ids and the places of documents, if they fit each other and a vocabulary of that size."""
    try:
        flat = np.ascontiguousarray(ids)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"rows came where flat ids were wanted: {error}", hint="tokenizer.decode_batch(rows)"
        ) from None
    places = _places_of(offsets)
    if flat.dtype.kind not in "iu" and len(flat):
        raise InputError(f"an array of {flat.dtype} came where ids (integers) were wanted")
    if flat.dtype.kind not in "iu":
        flat = flat.astype(np.uint16)
    if (
        flat.ndim != 1
        or places.ndim != 1
        or not len(places)
        or places[0] < 0
        or places[-1] > len(flat)
        or (len(places) == 1 and places[0] > 0)
    ):
        raise InputError(
            "flat ids and a rising indptr that lie inside them were wanted",
            hint="decode_ids(tokens.ids, tokens.indptr)",
        )
    if (np.diff(places) < 0).any():
        raise InputError("the offsets of documents go back", hint="decode_ids(tokens.ids, tokens.indptr)")
    if len(flat) and not 0 <= (low := int(flat.min())) <= (high := int(flat.max())) < size:
        bad = low if low < 0 else high
        raise InputError(f"the id {bad} is outside the vocabulary (0 to {size - 1})")
    return flat, places


def _places_of(offsets: Any) -> NDArray[np.int64]:
    """Offsets as they came, if they are integers."""
    try:
        given = np.asarray(offsets)
    except (TypeError, ValueError):  # rows of several lengths
        given = np.asarray("")
    if given.dtype.kind not in "iu" and given.size:
        raise InputError(
            f"offsets must be an array of integers, and {type(offsets).__name__} came",
            hint="decode_ids(tokens.ids, tokens.indptr)",
        )
    return np.ascontiguousarray(given, np.int64)
