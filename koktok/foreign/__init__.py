"""Any tokenizer, ours or foreign, behind one small interface: lines in, ids and spans out; one adapter a library.

In goes a path or a reference (`open`); out comes a `ForeignTokenizer`, which `report`, `diff`, `doctor`, `verify` and `eval/`
measure, and which `load` and `import` give the calls of `koktok.Tokenizer` (`ImportedTokenizer`). So all of them see the same ids.
Every row of a comparison is encoded whole line by whole line, without tokens for beginning and end, and its spans count
code points of the same line. What an adapter does to the input (decompose, segment) is a note that travels with its figures.
"""

from koktok.foreign.analysers import ANALYSERS
from koktok.foreign.base import ForeignTokenizer, Row, Rows
from koktok.foreign.conversion import gguf_table, hf_files
from koktok.foreign.import_file import import_tokenizer, load
from koktok.foreign.imported import ImportedTokenizer, load_folder, load_imported
from koktok.foreign.open import KINDS, open_spec, parse_spec
from koktok.foreign.packages import PACKAGES, package_names
from koktok.foreign.trivial import TRIVIAL

__all__ = [
    "ANALYSERS",
    "KINDS",
    "PACKAGES",
    "TRIVIAL",
    "ForeignTokenizer",
    "ImportedTokenizer",
    "Row",
    "Rows",
    "gguf_table",
    "hf_files",
    "import_tokenizer",
    "load",
    "load_folder",
    "load_imported",
    "open_spec",
    "package_names",
    "parse_spec",
]
