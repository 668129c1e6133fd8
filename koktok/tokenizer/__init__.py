"""Text to ids and back: `TrainedTokenizer`, and the run-time models behind it."""

from koktok.model.encoding import Encoding
from koktok.tokenizer.trained import TrainedTokenizer

__all__ = ["Encoding", "TrainedTokenizer"]
