"""Scores of a tokenizer on lines and on gold morphemes; `definitions.toml` defines each metric.

Everything is a ratio of sums per line, so values, domains, intervals and paired tests come from the same tables, and a metric
over shards is the metric over the whole.
"""

from koktok.metrics.boundaries import GoldPage, boundary_table
from koktok.metrics.page import Page, PageTokens, Parallel, Text
from koktok.metrics.registry import Measure, Metric, describe, metrics
from koktok.metrics.scoring import Material, Scores, Settings, compare, evaluate, score
from koktok.metrics.statistics import Difference, Statistics, Table, Units, Value, holm

__all__ = [
    "Difference",
    "GoldPage",
    "Material",
    "Measure",
    "Metric",
    "Page",
    "PageTokens",
    "Parallel",
    "Scores",
    "Settings",
    "Statistics",
    "Table",
    "Text",
    "Units",
    "Value",
    "boundary_table",
    "compare",
    "describe",
    "evaluate",
    "holm",
    "metrics",
    "score",
]
