"""Korean pieces for the vocabulary of an existing language model: ids kept, nothing but Hangul changed, and proven.

In: a tokenizer of somebody else's model, and text. Out: a folder with the extended tokenizer, extension.json (what is new, and
of which old ids it is made) and rows for the embeddings.
Reading order: base_tokenizer, base_text, merges, learn, extension_files, laws, prune, embeddings, cost_card, extend.
"""
