"""What a figure was measured with, and where it is written down."""

from __future__ import annotations

import lzma
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from koktok.files import write_file

LIBRARIES = ("koktok", "kiwipiepy", "sentencepiece", "tokenizers", "numpy", "numba")


def processor() -> str:
    """The name of the processor."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return model


def machine() -> str:
    """One line: processor, cores, Python and the libraries that matter."""
    found = []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}; {', '.join(found)}"


def report_text(file: Path) -> str:
    """Read a report, which may be packed by xz."""
    data = file.read_bytes()
    return (lzma.decompress(data) if file.suffix == ".xz" else data).decode()


def write_between(page: Path, name: str, text: str) -> None:
    """Replace what stands in a page between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    whole = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if whole.count(begin) != 1 or whole.count(end) != 1:
        sys.exit(f"expected one line {begin.strip()} and one line {end} in {page}")
    before, _, rest = whole.partition(begin)
    write_file(page, f"{before}{begin}\n{text}\n\n{end}{rest.partition(end)[2]}".encode())


class Told:
    """Lines of a run, printed as they come; a report file is written anew after every line, so that a stopped run leaves one."""

    def __init__(self, report: Path | None = None) -> None:
        self.report = report
        script = Path(sys.argv[0])
        module = script.parent.name if script.stem == "__main__" else script.stem
        command = ["python", "-m", f"eval.{module}", *_shown(sys.argv[1:])]
        self.lines = [f"    {' '.join(command)}", ""]

    def __call__(self, line: str) -> None:
        """Tell a line, or some."""
        print(line, flush=True)
        self.lines.append(line)
        if self.report is not None:
            write_file(self.report, ("\n".join(self.lines) + "\n").encode())


def _shown(words: list[str]) -> list[str]:
    """Words of a command as another machine would type them: no folder of this one, and no report."""
    shown: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if word == "--report" or before == "--report" or word.startswith("--report="):
            continue
        shown.append(Path(word).name if "/" in word else word)
    return shown
