"""Training: text and a recipe → a tokenizer.

`train` has the stages of a training, `words` prepares its words, `training` is its result; `baseline` is the table of its figures;
`curve` trains many settings from one count; `estimate` predicts the cost.
"""

from koktok.pipeline.train import Prepared, RunOptions
from koktok.pipeline.training import Training

__all__ = ["Prepared", "RunOptions", "Training"]
