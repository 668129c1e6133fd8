"""Measurements of koktok and its peers; run from the repository root with `python -m eval.NAME`, never installed."""
