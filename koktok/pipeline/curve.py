"""The curve of tokens per eojeol against boundary F1: many settings and sizes, trained from one count.

Each vocabulary is measured on held-out words, with two references. Recall is high where many cuts are made, so the row of the
*trivial* tokenizer (every character a token) is among the rows. And with c cuts between syllables where the analyser has g, no
tokenizer can have more than F1 = 2 min(c, g) / (c + g), the *ceiling*. The cuts are those of an analyser (silver), so an F1 near 1
means that the vocabulary repeats the analyser, not that it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from koktok.count import Counts
from koktok.count.prepared import prepare, texts_of
from koktok.errors import UsageError, VocabSizeError
from koktok.metrics.silver import Silver, SilverFigures
from koktok.model.models import model_for
from koktok.model.tokens import Spans, Tokens
from koktok.pipeline.baseline import PlainSentencePiece
from koktok.pipeline.train import RunOptions, segment_text
from koktok.pipeline.words import cut_texts, cut_words
from koktok.progress import OnProgress
from koktok.recipe import Recipe
from koktok.segment.segmented import SegmentedCounts
from koktok.tokenizer.trained import TrainedTokenizer
from koktok.training.job import Job
from koktok.training.unigram import train_unigrams
from koktok.training.unigram_point import DEFAULT, FRONTIER, PRESETS, Point

if TYPE_CHECKING:
    from koktok.model.vocab import Vocab


SPLITTING: Final = ("split", "digits")
"""Options that decide the pretokens, and with them what is counted: all points of a curve have the same."""


@dataclass(frozen=True)
class FrontierRow:
    """One vocabulary on the curve: its tokens and its cuts.

    Examples
    --------
    >>> row = FrontierRow("mine", 8000, 2.0, precision=0.5, recall=1.0, f1=2 / 3, f1_all=0.7, settings={})
    >>> round(row.ceiling, 3)  # twice as many cuts as the analyser has, and so at best half of them right
    0.667
    """

    name: str
    vocab_size: int
    tokens_per_eojeol: float
    precision: float
    recall: float
    f1: float
    f1_all: float
    settings: dict[str, Any] = field(hash=False)

    @property
    def ceiling(self) -> float:
        """The highest F1 with as many cuts between syllables; 1 if no cut was right, because their number is not known then."""
        if not self.precision:
            return 1.0
        times = self.recall / self.precision  # cuts for each of the analyser's
        return 2 * min(times, 1.0) / (times + 1.0)


@dataclass(frozen=True)
class Reference:
    """Figures of the held-out words alone, to compare rows with."""

    eojeols: int
    pretokens: int
    gold: int
    gaps: int
    others: int
    trivial: FrontierRow
    peers: tuple[FrontierRow, ...] = ()

    def ceiling(self, tokens_per_eojeol: float) -> float:
        """The highest F1 of any cutting of these words into that many tokens (no character as bytes).

        Each further token can be a right cut up to `gold` cuts, then a cut between other characters, and then it is a wrong one.

        Examples
        --------
        >>> words = reference(SegmentedCounts.from_marked({"집|에서": 1}), eojeols=1)
        >>> [round(words.ceiling(tokens), 3) for tokens in (1, 2, 3)]
        [0.0, 1.0, 0.667]
        """
        inside = tokens_per_eojeol * self.eojeols - self.pretokens
        cuts = min(max(float(self.gold), inside - self.others), inside, float(self.gaps))
        return 2 * min(cuts, self.gold) / (cuts + self.gold) if cuts > 0 else 0.0


def silver_of(held: SegmentedCounts, eojeols: float) -> Silver:
    """The held-out words to measure on; UsageError if they have no boundary."""
    silver = Silver(held, eojeols)
    if not silver.boundaries:
        raise UsageError(
            "the held-out words have no cut between two Hangul syllables, so there is no boundary F1: an analyser "
            "has to cut them, and jamo must stay in syllables",
            hint="--segmenter kiwi",
        )
    return silver


def _row(silver: Silver, name: str, size: int, spans: Callable[[str], Spans], settings: dict[str, Any]) -> FrontierRow:
    """Measure a way to cut words."""
    cut = [spans(word) for word in silver.texts]
    figures = silver.score(Tokens.of([[0] * len(row) for row in cut], cut, silver.texts))  # ids do not matter here
    return _row_of(name, size, figures, settings)


def _row_of(name: str, size: int, figures: SilverFigures, settings: dict[str, Any]) -> FrontierRow:
    return FrontierRow(
        name, size, figures.tokens_per_eojeol, figures.precision, figures.recall, figures.f1, figures.f1_all, settings
    )


def measure(name: str, vocab: Vocab, silver: Silver, **settings: Any) -> FrontierRow:
    """Measure a vocabulary of any kind, by its run-time model on every distinct held-out word.

    Examples
    --------
    >>> from koktok.model.vocab import Vocab
    >>> silver = silver_of(SegmentedCounts.from_marked({"집|에서": 3, "에서": 1}), eojeols=4)
    >>> row = measure("mine", Vocab.unigram({"집": -1.0, "에": -1.0, "서": -1.0, "에서": -1.5}), silver)
    >>> row.tokens_per_eojeol, row.precision, row.recall, row.f1
    (1.75, 1.0, 1.0, 1.0)
    """
    model = model_for(vocab)
    return _row(silver, name, vocab.size, lambda word: model.encode(word)[1], settings)


def reference(held: SegmentedCounts, *, eojeols: int) -> Reference:
    """Return the trivial row and what the ceiling depends on.

    Examples
    --------
    >>> reference(SegmentedCounts.from_marked({" 집|에서": 2}), eojeols=2).trivial
    FrontierRow(name='one token per character', vocab_size=4, tokens_per_eojeol=3.0, precision=0.5, recall=1.0,
                f1=0.666..., f1_all=0.666..., settings={})
    """
    silver = silver_of(held, eojeols)

    def characters(word: str) -> list[tuple[int, int]]:
        first = 2 if word.startswith(" ") and len(word) > 1 else 1
        return [(0, first), *((i, i + 1) for i in range(first, len(word)))]

    words = [(word, n) for word, n in zip(held.words, held.n.tolist(), strict=True) if word]
    return Reference(
        eojeols=eojeols,
        pretokens=sum(n for _, n in words),
        gold=int(silver.boundaries),
        gaps=int(silver.places),
        others=sum(n * (len(word) - 1) for word, n in words) - int(silver.places),
        trivial=_row(silver, "one token per character", len(set().union(*held.words)), characters, {}),
    )


def frontier(
    jobs: Sequence[Job],
    held: SegmentedCounts,
    *,
    held_eojeols: int,
    points: Sequence[Point] = FRONTIER,
    on_progress: OnProgress | None = None,
    figures: Callable[[Vocab], SilverFigures] | None = None,
) -> list[FrontierRow]:
    """Train every point at every size, and measure all on held-out words; a job is the text and a size.

    Only cuts between two Hangul syllables count, of any kind and confidence. `figures` measures a vocabulary; by default its
    model does, on these words.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에": 30, " 학교|에서": 20, " 집|에서": 10})
    >>> points = [Point("short", nu=0.2, min_count=2), FRONTIER[-1]]
    >>> rows = frontier([Job(counts, 265)], counts, held_eojeols=60, points=points)
    >>> [(row.name, round(row.tokens_per_eojeol, 2), round(row.f1, 2)) for row in rows]
    [('short', 1.0, 0.0), ('aligned', 2.0, 1.0)]
    """
    silver = silver_of(held, held_eojeols)  # an error comes before the training
    settings = {point.name: {key: value for key, value in asdict(point).items() if key != "name"} for point in points}
    trained = [row for job in jobs for row in train_unigrams(job, points).items()]
    rows = []
    for done, (name, result) in enumerate(trained, start=1):
        vocab = result.vocab
        rows.append(
            _row_of(name, vocab.size, figures(vocab), settings[name])
            if figures
            else measure(name, vocab, silver, **settings[name])
        )
        if on_progress:
            on_progress("measure", done, len(trained))
    return ordered(rows)


def ordered(rows: Sequence[FrontierRow]) -> list[FrontierRow]:
    """Sort rows by size, then tokens."""
    return sorted(rows, key=lambda row: (row.vocab_size, row.tokens_per_eojeol, row.name))


def on_front(rows: Sequence[FrontierRow]) -> list[bool]:
    """Return for each row whether no other beats it, by having at most its size and tokens and at least its F1.

    Size is a cost like tokens, as it is paid in embeddings.

    Examples
    --------
    >>> def row(tokens, f1, size=8000):
    ...     return FrontierRow("", size, tokens, f1, f1, f1, f1, {})
    >>> on_front([row(1.7, 0.6), row(1.8, 0.5), row(1.9, 0.9), row(1.6, 0.9, size=32000)])
    [True, False, True, True]
    """
    front: list[tuple[int, float, float]] = []  # rows that beat another come before it in this order
    marks = {}
    for key in sorted({(row.vocab_size, row.tokens_per_eojeol, -row.f1) for row in rows}):
        marks[key] = not any(tokens <= key[1] and minus <= key[2] for _, tokens, minus in front)
        front += [key] * marks[key]
    return [marks[row.vocab_size, row.tokens_per_eojeol, -row.f1] for row in rows]


def peers(words: Counts, recipe: Recipe, silver: Silver, sizes: Sequence[int]) -> tuple[FrontierRow, ...]:
    """Train SentencePiece Unigram with its default settings at every size that the words allow."""
    rows = []
    for size in sizes:
        coverage = recipe.train.character_coverage
        with suppress(VocabSizeError):
            plain = PlainSentencePiece(words, model="unigram", vocab_size=size, character_coverage=coverage)
            rows.append(_row_of(plain.name, size, silver.figures(plain.tokenizer), {}))
    return tuple(rows)


def _not_its_own(point: str, recipe: Recipe) -> dict[str, Any]:
    """How words are split for all points, where a training with this preset would split them otherwise."""
    own = recipe.changed(preset=point if point in PRESETS else DEFAULT).pretokenize
    ours = recipe.pretokenize
    return {name: getattr(ours, name) for name in SPLITTING if getattr(own, name) != getattr(ours, name)}


def train_frontier(
    text: Any, recipe: Recipe, *, vocab_sizes: Sequence[int], options: RunOptions | None = None, peer: bool = True
) -> tuple[list[FrontierRow], Reference]:
    """Train many settings and sizes from one count, without superwords, and measure them on held-out words beside SentencePiece."""
    options = options or RunOptions()
    if recipe.train.model != "unigram":
        raise UsageError(f"expected --model unigram for a curve, got {recipe.train.model}", hint="--model unigram")
    recipe = recipe.changed(superwords=0.0)
    sizes = sorted({*vocab_sizes}, reverse=True)  # one that is too large is refused before the others are trained
    for size in reversed(sizes):  # one that is impossible is refused; the largest decides the sample of a large text
        recipe = recipe.changed(vocab_size=size)
    recipe, prepared = segment_text(text, recipe, options, check=False)
    raw = prepared.reading.held
    if not raw.total:
        raise UsageError("the curve is drawn on held-out words, and nothing was held out", hint="--holdout 0.05")
    raw = Counts.from_frame(texts_of(raw.frame, after_a_space=recipe.pretokenize.prefix_space))
    held = cut_words(prepare(raw, recipe.normalizer, recipe.pattern), recipe, prepared.segmenter, options.on_progress)
    eojeols = sum(n for word, n in raw.items() if word.strip(" "))

    def told(before: int, done: int, total: int | None) -> None:
        options.on_progress("train", before * (total or 0) + done, len(sizes) * (total or 0))

    jobs = [
        Job.of(
            prepared.segmented,
            recipe.changed(vocab_size=size),
            recipe.pattern,
            threads=options.threads,
            on_progress=partial(told, before),
        )
        for before, size in enumerate(sizes)
    ]
    # On whole words, as in the closing table of a training: all gaps are those beside digits, too, and SentencePiece would put
    # a space before every digit of a pretoken.
    silver = Silver(cut_texts(prepared.reading.held, recipe, prepared.segmenter))
    rows = [
        replace(row, settings=row.settings | _not_its_own(row.name, recipe))
        for row in frontier(
            jobs,
            held,
            held_eojeols=eojeols,
            on_progress=options.on_progress,
            figures=lambda vocab: silver.score(TrainedTokenizer(recipe, vocab).encode_lines(silver.texts)),
        )
    ]
    against = reference(held, eojeols=eojeols)
    if peer and prepared.reading.complete:
        against = replace(against, peers=peers(prepared.reading.train, recipe, silver, sizes[::-1]))
    return rows, against
