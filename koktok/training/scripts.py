"""Shares of a vocabulary by script.

Under the cost, ids go to what saves most in the training text, so a language that is a tenth of the text gets about a tenth of
them. `--reserve-script` keeps places for one that will be met more often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from koktok.errors import UsageError
from koktok.recipe import SCRIPTS, Script
from koktok.text.pretokenize import CLASSES
from koktok.training.candidates import Candidates

_LETTERS = {script: re.compile(f"[{CLASSES[script]}]") for script in SCRIPTS[:2]}


def script_of(piece: str) -> str:
    """The script of a piece by its letters: Hangul where it has any, else Latin where it has any, else other."""
    return next((script for script, letters in _LETTERS.items() if letters.search(piece)), SCRIPTS[2])


def by_script(pieces: Iterable[str]) -> dict[str, int]:
    """How many pieces each script has."""
    found = Counter(map(script_of, pieces))
    return {script: found[script] for script in SCRIPTS}


def floors_of(found: Candidates, reserve: Mapping[Script, float], n_pieces: int) -> list[tuple[NDArray[np.bool_], int]]:
    """For each reserved script, its longer pieces and how many of them the required characters leave to choose."""
    if not reserve:
        return []
    script = np.asarray([script_of(piece) for piece in found.pieces])
    fixed = found.strings.copy()
    fixed[: found.n_chars] = found.required
    floors, taken = [], found.n_required
    for name, share in sorted(reserve.items()):
        group = script == name
        least = max(int(n_pieces * share) - int((group & fixed).sum()), 0)
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
