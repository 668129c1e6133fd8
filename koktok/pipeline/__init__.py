"""Training: text and a recipe → a tokenizer.

`road` has the stages of a training; `words` prepares its words; `baseline` is the table of its figures; `curve` trains many settings
from one count; `estimate` predicts the cost.
"""

from koktok.pipeline.road import Options, Prepared, Training, train

__all__ = ["Options", "Prepared", "Training", "train"]
