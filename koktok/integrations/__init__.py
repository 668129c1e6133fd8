"""Other libraries with koktok inside: `transformers` with the analyser at run time. Reading order: runtime, transformers."""
