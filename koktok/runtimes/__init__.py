"""The libraries that run tokenizers, a file or folder for each: how a definition is written for it, recognized, opened and run.

In: a `Definition`, or a file that a library wrote; out: files, or a `LibraryTokenizer`, which every verb runs and every report
measures, so that all of them see the same ids. If an adapter changes its input (decomposes, segments), a note is shown with its figures.
"""

from koktok.runtimes.huggingface.runtime import Folder, Version2
from koktok.runtimes.library import LibraryTokenizer
from koktok.runtimes.llama_cpp import LlamaCpp
from koktok.runtimes.references.analysers import ANALYSERS
from koktok.runtimes.references.packages import PACKAGES, package_names
from koktok.runtimes.references.trivial import TRIVIAL
from koktok.runtimes.runtime import RUNTIMES
from koktok.runtimes.sentencepiece.runtime import ModelFile
from koktok.runtimes.tiktoken.runtime import RanksFolder

RUNTIMES.update((member.name, member) for member in (Folder(), Version2(), ModelFile(), RanksFolder(), LlamaCpp()))

__all__ = ["ANALYSERS", "PACKAGES", "RUNTIMES", "TRIVIAL", "LibraryTokenizer", "package_names"]
