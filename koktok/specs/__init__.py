"""Any tokenizer, ours or foreign, behind one small interface: lines in, ids and spans out.

This folder adds: fairness. Every row of a comparison is encoded whole line by whole line, without tokens for beginning
and end, and its spans count code points of the same line, so that no metric knows which library it measures. What an
adapter does to the input (decompose, segment) is a note of the subject and travels with its figures.
"""

from koktok.specs.analysers import ANALYSERS
from koktok.specs.opening import KINDS, open_spec, parse_spec
from koktok.specs.packages import PACKAGES, package_names
from koktok.specs.subject import Row, Rows, Subject
from koktok.specs.trivial import TRIVIAL

__all__ = [
    "ANALYSERS",
    "KINDS",
    "PACKAGES",
    "TRIVIAL",
    "Row",
    "Rows",
    "Subject",
    "open_spec",
    "package_names",
    "parse_spec",
]
