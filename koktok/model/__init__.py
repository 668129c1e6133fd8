"""What a vocabulary is and how it runs; reading order: vocab, special, models, encoding, decoding, tokens."""
