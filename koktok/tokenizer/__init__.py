"""Text to ids and back: `Tokenizer`, the protocol of all, and `TrainedTokenizer`, what koktok trains."""

from koktok.model.encoding import Encoding
from koktok.tokenizer.trained import TrainedTokenizer

__all__ = ["Encoding", "TrainedTokenizer"]
