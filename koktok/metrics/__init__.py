"""(lines, tokenizer, gold) → scores: a file a family, and every definition in the docstring of its function.

This folder adds: sums per line before anything else. Values, domains, intervals and paired tests all come from the same
tables of counts, so that a metric over shards is the metric over the whole, and no figure travels without a signature.
"""

from koktok.metrics.boundaries import GoldPage, boundary_table
from koktok.metrics.probe import Labelled
from koktok.metrics.registry import Definition, Metric, describe, metrics
from koktok.metrics.scoring import Scores, compare, score
from koktok.metrics.speed import Speed, speed
from koktok.metrics.statistics import Difference, Statistics, Table, Units, Value, holm
from koktok.metrics.tokens import Page, Parallel, Text, Tokens, cuts_of

__all__ = [
    "Definition",
    "Difference",
    "GoldPage",
    "Labelled",
    "Metric",
    "Page",
    "Parallel",
    "Scores",
    "Speed",
    "Statistics",
    "Table",
    "Text",
    "Tokens",
    "Units",
    "Value",
    "boundary_table",
    "compare",
    "cuts_of",
    "describe",
    "holm",
    "metrics",
    "score",
    "speed",
]
