"""File formats, a module for each: tokenizer.json, tokenizer.model, tiktoken, GGUF, the model card, the folder."""
