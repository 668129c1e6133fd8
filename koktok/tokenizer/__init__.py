"""Text to ids and back: `TrainedTokenizer`, and the run-time models that it is made of."""

from koktok.tokenizer.encoding import Encoding
from koktok.tokenizer.tokenizer import TrainedTokenizer

__all__ = ["Encoding", "TrainedTokenizer"]
