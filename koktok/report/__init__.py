"""Rows to JSON, Markdown and one self-contained HTML page.

Everything that a reader of figures sees. `Report` is the rows; the figures of each rendering come from them alone, so the
three can never disagree.
"""

from __future__ import annotations

from koktok.report.markdown import to_markdown
from koktok.report.page import to_html
from koktok.report.schema import Report

__all__ = ["Report", "to_html", "to_markdown"]
