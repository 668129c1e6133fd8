"""Where koktok keeps what it can make again: fetched corpora and analyses."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir() -> Path:
    """The user's cache folder for koktok, or what `KOKTOK_CACHE` says; made when first written to."""
    chosen = os.environ.get("KOKTOK_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("koktok", appauthor=False))
