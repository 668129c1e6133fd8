"""Hugging Face: tokenizer.json, the folders of `transformers`, and the files of its older tokenizers."""
