"""Text to ids and back: `Tokenizer`, and the run-time models that it is made of."""

from koktok.tokenizer.encoding import Encoding
from koktok.tokenizer.tokenizer import Tokenizer

__all__ = ["Encoding", "Tokenizer"]
