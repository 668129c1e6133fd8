"""What morpheme-aware vocabularies do for small models: PLAN.md, parts 2 and 3, and the code that carries them out."""
