"""What a morpheme-aware vocabulary does for a language model: PLAN.md, and the code that carries it out."""
