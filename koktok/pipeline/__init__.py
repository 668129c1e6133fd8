"""Text and a recipe → a trained tokenizer, and what it is measured beside.

`road` is the way itself, top to bottom; `baseline` the table at its end; `curve` many trainings from one count, with
`curve_views`; `estimate` what a training will take.
"""

from koktok.pipeline.road import Options, Prepared, Training, train

__all__ = ["Options", "Prepared", "Training", "train"]
