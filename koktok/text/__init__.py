"""Text that comes from anywhere to normal text, cut into words.

In: files, folders, archives, corpora by recipe, Python objects. Out: lines; then normalized text and its pre-tokens.
Reading order: unpack, records, sources; corpus_recipe, download, extract, corpora; normalize, pretokenize.
"""
