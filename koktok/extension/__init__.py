"""Korean pieces for the vocabulary of an existing language model: old ids stay, only text with Hangul changes, with a proof.

The input is the tokenizer of a model, and text. The output is a folder with the extended tokenizer, extension.json (new pieces
and the old ids of their text) and rows for the embeddings.
Reading order: base_tokenizer, base_text, merges, learn, extension_files, laws, prune, embeddings, cost_card, extend.
"""
