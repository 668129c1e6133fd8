"""What a vocabulary is and how it runs; reading order: vocab, special, models, encoding, decoding, tokens.

In: pieces, scores and special tokens, and a pretoken. Out: its ids and spans; ids to text again.
"""
