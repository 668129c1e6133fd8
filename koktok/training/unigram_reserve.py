"""`reserve`: how the scripts share a vocabulary, where text of two languages is trained on.

The cost shares the pieces by what they save in the text at hand, so a language that is a tenth
of the text gets the places that a tenth of the text is worth. Who will meet more of it later keeps places for it here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from koktok.errors import UsageError
from koktok.recipe import SCRIPTS
from koktok.text.pretokenize import CLASSES
from koktok.training.candidates import Candidates

if TYPE_CHECKING:
    from numpy.typing import NDArray


_LETTERS = {script: re.compile(f"[{CLASSES[script]}]") for script in SCRIPTS[:2]}


def script_of(piece: str) -> str:
    """The script of a piece by its letters: Hangul where it has any, else Latin where it has any, else other.

    Examples
    --------
    >>> [script_of(piece) for piece in (" 학교", "ㅋㅋ", "PC방", " the", "é", "漢字", "():", "    ", "19")]
    ['hangul', 'hangul', 'hangul', 'latin', 'latin', 'other', 'other', 'other', 'other']
    """
    return next((script for script, letters in _LETTERS.items() if letters.search(piece)), SCRIPTS[2])


def by_script(pieces: Iterable[str]) -> dict[str, int]:
    """How many pieces each script has."""
    found = Counter(map(script_of, pieces))
    return {script: found[script] for script in SCRIPTS}


def check_reserve(reserve: Mapping[str, float]) -> None:
    """Refuse unknown scripts and shares that are none."""
    strange = sorted(set(reserve) - set(SCRIPTS))
    if strange:
        raise UsageError(f"`{strange[0]}` is no script that pieces are told by", hint=", ".join(SCRIPTS))
    if any(not 0 <= share <= 1 for share in reserve.values()) or sum(reserve.values()) > 1 + 1e-9:
        raise UsageError(f"the shares of scripts are from 0 to 1, and 1 together at most; {dict(reserve)} came")


def floors_of(found: Candidates, reserve: Mapping[str, float], n_pieces: int) -> list[tuple[NDArray[np.bool_], int]]:
    """For each reserved script, its longer pieces and how many of them the required characters leave to choose."""
    if not reserve:
        return []
    script = np.asarray([script_of(piece) for piece in found.pieces])
    floors, taken = [], int(found.required.sum())
    for name, share in sorted(reserve.items()):
        group = script == name
        least = max(int(n_pieces * share) - int((group[: found.n_chars] & found.required).sum()), 0)
        group[: found.n_chars] = False
        floors.append((group, least))
        taken += least
    if taken > n_pieces:
        raise UsageError(
            f"the scripts {', '.join(sorted(reserve))} and the required characters of the others ask for {taken:,} of "
            f"{n_pieces:,} pieces",
            hint="smaller shares, or a larger --vocab-size",
        )
    return floors
