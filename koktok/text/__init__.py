"""Files, corpora and lines to normal text, cut into words: sources, records, corpora, normalize, pretokenize."""
