"""What morpheme-aware vocabularies do for small models: PLAN.md, part 2, and the code that carries it out."""
