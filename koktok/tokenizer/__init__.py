"""Text to ids and back: `TrainedTokenizer`, and the run-time models behind it."""

from koktok.tokenizer.encoding import Encoding
from koktok.tokenizer.tokenizer import TrainedTokenizer

__all__ = ["Encoding", "TrainedTokenizer"]
