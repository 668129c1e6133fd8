"""The environment of child processes, which never import a file of the working directory.

Python puts the working directory first on the path of `python -c` and `python -m`, before its own library, so that a `typing.py`
in a folder of texts would run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def environment() -> dict[str, str]:
    """Return the environment of a child: this one, with a Python path without the working directory.

    If koktok itself is imported from the working directory (a checkout), that folder is the last one.

    Examples
    --------
    >>> environment()["PYTHONSAFEPATH"]
    '1'
    """
    own = Path(__file__).parents[2]
    # An entry that holds the separator would be read as two, the second one relative.
    whole = [entry for entry in sys.path if Path(entry).is_absolute() and os.pathsep not in entry]
    outside = [entry for entry in whole if not _is_here(Path(entry))]
    last = [str(own)] if _is_here(own) else []
    return os.environ | {"PYTHONPATH": os.pathsep.join(outside + last), "PYTHONSAFEPATH": "1"}


def _is_here(folder: Path) -> bool:
    return folder.exists() and folder.samefile(".")
