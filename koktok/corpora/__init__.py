"""Corpora by recipe: `corpus:NAME` in, folders of plain text in the cache out, with a checksum for each.

Reading order: `recipe` (the TOML file), `download` and `git` (the ways of fetching), `extract` (markup to lines), `fetch` (the
folder in the cache), `paths` (corpora among the paths of a user).
"""
