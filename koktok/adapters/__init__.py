"""Tokenizers of any library behind one interface: `load` opens a path or a reference; an adapter for each library.

The result is a `Tokenizer`, which every verb runs and every report measures, so that all of them see the same ids. If an
adapter changes its input (decomposes, segments), a note is shown with its figures.
"""

from koktok.adapters.analysers import ANALYSERS
from koktok.adapters.conversion import gguf_table, hf_files
from koktok.adapters.library import LibraryTokenizer
from koktok.adapters.open import REFERENCES, load, parse_spec
from koktok.adapters.packages import PACKAGES, package_names
from koktok.adapters.trivial import TRIVIAL

__all__ = [
    "ANALYSERS",
    "PACKAGES",
    "REFERENCES",
    "TRIVIAL",
    "LibraryTokenizer",
    "gguf_table",
    "hf_files",
    "load",
    "package_names",
    "parse_spec",
]
