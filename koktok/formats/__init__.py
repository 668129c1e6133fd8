"""Other people's formats, a file a format: tokenizer.json, tokenizer.model, tiktoken, GGUF; the card, the folder."""
