"""Recipe to trainer: the one place that knows which function trains which model, and with which options of the recipe.

A trainer is a pure function of counts and its own options and knows no recipe; an adapter
picks the options that the recipe gives it, asks again with a lower floor where the text is small, and brings vocabulary
and log back in one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from koktok.blocklist import JUNK, PERSONAL_DEFAULT, Blocklist
from koktok.count import Counts
from koktok.errors import VocabSizeError
from koktok.hangul import MODERN_JAMO
from koktok.progress import Done
from koktok.recipe import Recipe, TrainRecipe
from koktok.segment.segmented import SegmentedCounts
from koktok.text.pretokenize import Pattern
from koktok.training.alphabet import BASIC, alphabet_of, required_characters
from koktok.training.summary import account
from koktok.training.superwords import SuperwordPolicy
from koktok.vocab import BYTE_PIECES, Vocab

if TYPE_CHECKING:
    from numpy.typing import NDArray


Found = TypeVar("Found")

UNIGRAM_FLOORS = (None, 5, 3, 2)
"""How often a string must occur to become a piece: as the preset says, and less where that leaves too few candidates."""

WORDPIECE_FLOORS = (5, 3, 2, 1)
"""How often a pair must stand to be joined: its score favours rare pairs, so as high as the text allows."""

BYTES_PER_CHARACTER = 3
"""Of UTF-8, for Hangul: the length of a piece is counted in characters in a recipe, in bytes by a byte-level trainer."""


@dataclass(frozen=True)
class Job:
    """What an adapter gets."""

    counts: SegmentedCounts
    recipe: Recipe
    pattern: Pattern
    threads: int | None = None
    tell: Done = lambda _done, _total: None
    runs: SegmentedCounts | None = None
    run_documents: NDArray[np.uint64] | None = None
    eojeols: float | None = None

    @property
    def options(self) -> TrainRecipe:
        """The section of the recipe that is about training."""
        return self.recipe.train

    @property
    def common(self) -> dict[str, Any]:
        """What every trainer takes."""
        return {"vocab_size": self.options.vocab_size, "specials": self.recipe.special_tokens}

    @property
    def superwords(self) -> SuperwordPolicy:
        """Which pieces may cross spaces."""
        options = self.options
        return SuperwordPolicy(options.superwords, inner=options.inner_superwords, price=options.superword_price)

    @cached_property
    def blocklist(self) -> Blocklist:
        """What no piece may hold."""
        personal = PERSONAL_DEFAULT if self.options.personal_data == "drop" else ()
        return Blocklist(self.options.blocklist, personal, JUNK if self.options.junk == "drop" else ())

    def blocked(self, piece: str) -> bool:
        """True for what the recipe does not want as a piece; single characters are the alphabet, and stay."""
        return len(piece) > 1 and self.blocklist.refuses(piece) is not None

    def crosses(self, piece: str) -> bool:
        """True for what no piece may spell: across a pre-token border, a token that text must not reach, a blocked word."""
        return piece in self._reserved or self.pattern.crosses(piece) or self.blocked(piece)

    @cached_property
    def _reserved(self) -> frozenset[str]:
        return frozenset((*BYTE_PIECES, *self.recipe.special_tokens))

    def alphabet(self, *, n_bytes: int = len(BYTE_PIECES)) -> tuple[str, ...]:
        """The characters that must be pieces, see `koktok.training.alphabet`."""
        rare = MODERN_JAMO if self.recipe.jamo == "fallback" else ""
        found = alphabet_of(
            zip(self.counts.words, self.counts.n.tolist(), strict=True),
            vocab_size=self.options.vocab_size,
            taken=n_bytes + len(self.recipe.special_tokens) + len(rare),
            coverage=self.options.character_coverage,
            required=MODERN_JAMO if self.recipe.spelled else self.options.required,
        )
        return tuple(sorted({*found, *rare})) if rare else found


@dataclass(frozen=True)
class Learnt:
    """What a training gives, whoever trained."""

    vocab: Vocab
    log: dict[str, Any]


def train(job: Job) -> Learnt:
    """Train the model that the recipe names.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3})
    >>> learnt = train(Job(counts, Recipe.build({"train": {"model": "word", "vocab_size": 7}}), Pattern()))
    >>> learnt.vocab.pieces, learnt.log["trainer"]
    ((' 학교에서', ' 집에서'), 'word')
    """
    name = "spm" if job.options.backend == "spm" else job.options.model
    vocab, log = _ADAPTERS[name](job)
    # The default trainer's account is its own: it decodes all words, in compiled code.
    own = {} if "boundaries" in log else account(job.counts, vocab)
    return Learnt(vocab, {"trainer": name, "vocab_size": vocab.size, **log, **own})


def check_counts(counts: Counts, recipe: Recipe) -> None:
    """Refuse a size that these words cannot give, before they are analysed.

    The largest size is a bound: cuts rule out some pieces more (one in ten of a small text), so that a training may still
    find that the text has too few.
    """
    from koktok.training.candidates import CandidatePolicy, mine
    from koktok.training.unigram_search import check_size

    options = recipe.train
    if options.model not in ("unigram", "unigram-em", "bpe") or recipe.spelled:
        return
    job = Job(SegmentedCounts.uncut(counts), recipe, recipe.pattern)
    alphabet = job.alphabet()
    lengths = np.fromiter(map(len, counts.words), dtype=np.int64, count=len(counts))
    whole = int(((lengths > 1) & (lengths <= options.max_piece_length) & (counts.n > 1)).sum())
    if options.model != "unigram" or options.superwords or whole >= options.vocab_size:
        return  # whole words alone are candidates enough
    policy = CandidatePolicy(
        min_count=2, max_length=options.max_piece_length, aligned=False, coverage=1e-9, crosses=job.crosses
    )
    found = mine(job.counts, policy, alphabet)
    beside = len(BYTE_PIECES) + len(recipe.special_tokens) + int(found.required.sum())
    check_size(options.vocab_size, beside, beside + len(found.pieces) - found.n_chars, cut=False)


def relaxed(floors: Iterable[Any], attempt: Callable[[Any], Found]) -> Found:
    """The first attempt whose floor leaves enough candidates; the error of the last where none does."""
    refused: VocabSizeError | None = None
    for floor in floors:
        try:
            return attempt(floor)
        except VocabSizeError as error:
            refused = error
    assert refused is not None, "there is at least one floor"
    raise refused


def _unigram(job: Job) -> tuple[Vocab, dict[str, Any]]:
    from koktok.training.unigram import train_unigram

    options, alphabet = job.options, job.alphabet()
    wide: dict[str, Any] = {}
    if job.runs is not None:
        wide = {"runs": job.runs, "superwords": job.superwords, "run_documents": job.run_documents}
    trained = relaxed(
        UNIGRAM_FLOORS,
        lambda floor: train_unigram(
            job.counts,
            **job.common,
            preset=options.preset,
            keep=options.keep,
            tokens=options.tokens_per_eojeol,
            eojeols=job.eojeols,
            lam=options.lam,
            mu=options.mu,
            nu=options.nu,
            min_count=floor,
            max_length=options.max_piece_length,
            required=alphabet,
            coverage=1e-9,  # `alphabet_of` has decided
            crosses=job.crosses,
            reserve={str(script): share for script, share in options.reserve_script.items()},
            threads=job.threads,
            **wide,
        ),
    )
    return trained.vocab, trained.log


def _unigram_em(job: Job) -> tuple[Vocab, dict[str, Any]]:
    from koktok.training.unigram_em import train_unigram_em

    trained = train_unigram_em(
        job.counts,
        **job.common,
        max_length=job.options.max_piece_length,
        required=job.alphabet(),
        coverage=1e-9,  # `alphabet_of` has decided
        crosses=job.crosses,
        threads=job.threads,
    )
    return trained.vocab, trained.log


def _bpe(job: Job) -> tuple[Vocab, dict[str, Any]]:
    from koktok.training.bpe import curriculum, train_bpe

    spelled = job.options.model == "bpe-bytes"
    wide: dict[str, Any] = {}
    if job.runs is not None:
        wide = {"runs": job.runs, "superwords": job.superwords, "documents": job.run_documents}
    result = train_bpe(
        job.counts,
        **job.common,
        alphabet="bytes" if spelled else "chars",
        characters=None if spelled else job.alphabet(),
        stages=curriculum(job.options.share),
        max_length=job.options.max_piece_length * (BYTES_PER_CHARACTER if spelled else 1),
        # Bytes at the edge of a piece are no characters yet, so a script cannot be told; and no rule is needed, because
        # words are pretokens already and no special token or byte piece can be spelled by a part of one.
        crosses=job.blocked if spelled else job.crosses,
        on_progress=job.tell,
        **wide,
    )
    return result.vocab, {"stages": list(result.log)}


def _wordpiece(job: Job) -> tuple[Vocab, dict[str, Any]]:
    from koktok.training.wordpiece import train_wordpiece

    options = job.options
    spelled = options.model == "wordpiece-bytes"
    # A required character takes two pieces here, at the head of a word and inside.
    asked = "none" if job.recipe.spelled else options.required
    listed = required_characters(asked, options.vocab_size, pieces=2)
    listed = (*listed, *MODERN_JAMO) if job.recipe.jamo else listed
    alphabet = None if spelled else job.alphabet(n_bytes=0)
    # A syllable that lacks one of its two pieces would be taken apart in both places.
    both = alphabet if alphabet and job.recipe.jamo == "fallback" else ()
    required = {*BASIC, *listed, *both} - {" "}  # which the model drops
    result = relaxed(
        WORDPIECE_FLOORS,
        lambda floor: train_wordpiece(
            job.counts,
            **job.common,
            alphabet="bytes" if spelled else "chars",
            characters=alphabet,
            required=() if spelled else required,
            min_count=floor,
            max_length=options.max_piece_length * (BYTES_PER_CHARACTER if spelled else 1),
            crosses=job.blocked if spelled else job.crosses,
            on_progress=job.tell,
        ),
    )
    return result.vocab, {"stages": list(result.log)}


def _simple(job: Job) -> tuple[Vocab, dict[str, Any]]:
    from koktok.training.baselines import train_simple

    options = job.options
    kind: Any = options.model
    listed = kind in ("ngram", "morpheme")  # these list an alphabet beside their units; for the others it is the units
    basic = (*BASIC, *(MODERN_JAMO if job.recipe.jamo else ()))
    vocab = train_simple(
        job.counts,
        kind,
        **job.common,
        characters=job.alphabet() if listed else None,
        required=() if listed or kind == "word" else basic,
        n=options.ngram,
        crosses=job.blocked,
    )
    return vocab, {}


def _spm(job: Job) -> tuple[Vocab, dict[str, Any]]:
    from koktok.training.spm import train_spm

    vocab = train_spm(
        job.counts,
        **job.common,
        model="bpe" if job.options.model == "bpe" else "unigram",
        alphabet=job.alphabet(),
        max_piece_length=job.options.max_piece_length,
        crosses=job.blocked,
    )
    return vocab, {"model": job.options.model}


_ADAPTERS: dict[str, Callable[[Job], tuple[Vocab, dict[str, Any]]]] = {
    "spm": _spm,
    "unigram": _unigram,
    "unigram-em": _unigram_em,
    "bpe": _bpe,
    "bpe-bytes": _bpe,
    "wordpiece": _wordpiece,
    "wordpiece-bytes": _wordpiece,
    "word": _simple,
    "syllable": _simple,
    "jamo": _simple,
    "ngram": _simple,
    "morpheme": _simple,
}
