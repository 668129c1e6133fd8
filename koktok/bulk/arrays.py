"""The type of ids, and checks of flat ids from callers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.errors import InputError, UsageError


def id_type(size: int, wanted: Any = None) -> np.dtype[Any]:
    """The numpy type for the ids of a vocabulary: uint16 where they fit, else uint32, or the one that was asked for."""
    if wanted is None:
        return np.dtype(np.uint16 if size <= 1 << 16 else np.uint32)
    chosen: np.dtype[Any] = np.dtype(object)
    with suppress(TypeError, ValueError):
        chosen = np.dtype(wanted)
    if chosen.kind not in "iu" or np.iinfo(chosen).max < size - 1:
        raise UsageError(f"dtype = {wanted!r} cannot hold the ids 0 to {size - 1}", hint='dtype="uint32"')
    return chosen


def checked_flat(ids: Any, indptr: Any, size: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return flat ids and where each document begins, if they fit each other and a vocabulary of that size."""
    hint = "decode_ids(tokens.ids, tokens.indptr)"
    try:
        flat, places = np.ascontiguousarray(ids), np.asarray(indptr)
    except (TypeError, ValueError, OverflowError) as error:  # rows of several lengths
        raise InputError(f"expected flat ids and an indptr, got rows: {error}", hint=hint) from None
    for name, array in (("ids", flat), ("indptr", places)):
        if array.size and array.dtype.kind not in "iu":
            raise InputError(f"expected integers as {name}, got an array of {array.dtype}", hint=hint)
    places = np.ascontiguousarray(places, np.int64)
    if (
        flat.ndim != 1
        or places.ndim != 1
        or not len(places)
        or not 0 <= places[0] <= places[-1] <= len(flat)
        or (np.diff(places) < 0).any()
        or (len(places) == 1 and places[0] > 0)
    ):
        raise InputError("expected flat ids, and an indptr that rises and lies inside them", hint=hint)
    if len(flat) and not 0 <= (low := int(flat.min())) <= (high := int(flat.max())) < size:
        bad = low if low < 0 else high
        raise InputError(f"the id {bad} is outside the vocabulary (0 to {size - 1})")
    return flat if len(flat) else flat.astype(np.uint16), places
