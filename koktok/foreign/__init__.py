"""Any tokenizer, ours or a library's, behind one interface: `load` opens it; one adapter a library.

In goes a path or a reference; out comes an `Tokenizer`, which `report`, `diff`, `doctor`, `verify` and `eval/` measure, and
which every verb runs. So all of them see the same ids. What an adapter does to the input (decompose, segment) is a note that
travels with its figures.
"""

from koktok.foreign.analysers import ANALYSERS
from koktok.foreign.conversion import gguf_table, hf_files
from koktok.foreign.library import LibraryTokenizer
from koktok.foreign.open import KINDS, load, parse_spec
from koktok.foreign.packages import PACKAGES, package_names
from koktok.foreign.trivial import TRIVIAL

__all__ = [
    "ANALYSERS",
    "KINDS",
    "PACKAGES",
    "TRIVIAL",
    "LibraryTokenizer",
    "gguf_table",
    "hf_files",
    "load",
    "package_names",
    "parse_spec",
]
