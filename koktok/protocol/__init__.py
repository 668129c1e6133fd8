"""The interface of all tokenizers: `Tokenizer`, and `agree`, whether two of them give the same ids.

In: nothing but text and ids; out: what every runtime implements and every verb, metric and export asks.
"""
