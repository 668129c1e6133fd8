"""`Training`, the result of `koktok.train`, and its folder with a model card."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koktok.corpora.fetch import find
from koktok.corpora.recipe import CorpusRecipe
from koktok.count.counting import CountResult
from koktok.errors import CorpusError
from koktok.metrics.coverage import coverage
from koktok.metrics.silver import SilverRow
from koktok.pipeline.card import Credit, model_card
from koktok.recipe import SourceRecord
from koktok.runtimes.folder import CARD
from koktok.segment.segmented import SegmentedCounts
from koktok.tokenizer import TrainedTokenizer


@dataclass
class Training:
    """The result of `train`: the tokenizer, with the data, the log and the figures of its training.

    Parameters
    ----------
    tokenizer : TrainedTokenizer
    reading : CountResult
    segmented : SegmentedCounts
        The words that the vocabulary was trained on.
    seconds : dict of str to float
        Wall time by stage.
    asked, known : int
        Words that were analysed, and words found in the cache.
    notes : list of str
        Remarks for the user.
    log : dict
        The log of the trainer for JSON: candidates, rounds or merges, pieces by length and shape, boundaries inside pieces.
    analyser_peak : int
        Peak memory of all processes of the analyser, in bytes.
    silver : SegmentedCounts, optional
        Held-out texts with the analyser's cuts (the training words if nothing was held out), with `measured`.
    """

    tokenizer: TrainedTokenizer
    reading: CountResult = field(repr=False)  # holds sentences of the text
    segmented: SegmentedCounts
    seconds: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    known: int = 0
    notes: list[str] = field(default_factory=list)
    log: dict[str, Any] = field(default_factory=dict)
    analyser_peak: int = 0
    silver: SegmentedCounts | None = None

    def save(self, folder: str | Path, figures: Sequence[SilverRow] = (), *, force: bool = False) -> Path:
        """Write the tokenizer with a model card that shows these figures; see `TrainedTokenizer.save`."""
        held = self.reading.held.total
        corpora = _corpora(self.tokenizer.recipe.sources)
        card = model_card(
            self.tokenizer,
            figures,
            {name: corpus.licence for name, corpus in corpora.items()},
            words=held or self.reading.train.total,
            held_out=bool(held),
            covered=coverage(self.tokenizer),
            credited=[
                Credit(source.stem, source.place, source.licence)
                for corpus in corpora.values()
                for source in corpus.source
                if source.licence
            ],
            languages=[*dict.fromkeys(("ko", *(code for corpus in corpora.values() for code in corpus.languages)))],
        )
        return self.tokenizer.save(folder, extra={CARD: card}, force=force)


def _corpora(sources: Iterable[SourceRecord]) -> dict[str, CorpusRecipe]:
    """The recipes of sources that are known corpora."""
    known = {}
    for source in sources:
        with suppress(CorpusError):  # most sources are no corpora
            known[source.name] = find(source.name)
    return known
