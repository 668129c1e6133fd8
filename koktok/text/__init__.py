"""Text that comes from anywhere to normal text, cut into words.

In: files, folders, archives, Python objects. Out: lines; then normalized text and its pre-tokens.
Reading order: unpack, records, sources; normalize, pretokenize.
"""
