"""What a figure was measured with: processor, cores, Python and the libraries that matter."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("koktok", "kiwipiepy", "sentencepiece", "tokenizers", "numpy", "numba")


def machine() -> str:
    """One line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    found = []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}; {', '.join(found)}"
