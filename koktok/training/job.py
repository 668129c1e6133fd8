"""`Job`, the input of a trainer, and `Learnt`, its output.

A trainer is a pure function of a job. `Job.of` builds it from a recipe: which characters are pieces, and what no piece may be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from koktok.errors import RecipeError
from koktok.hangul import MODERN_JAMO
from koktok.model.vocab import BYTE_CHARS, BYTE_PIECES, KINDS, SPACE_MARK, Vocab, VocabKind
from koktok.progress import Done
from koktok.recipe import SELECTED_MODELS, Recipe, TrainRecipe
from koktok.segment.segmented import SegmentedCounts
from koktok.text.blocklist import JUNK, PERSONAL_DEFAULT, Blocklist
from koktok.text.pretokenize import Pattern
from koktok.training.alphabet import BASIC, alphabet_of, check_size, digit_groups, line_ends, required_characters
from koktok.training.superwords import SuperwordPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BYTES_PER_CHARACTER = 3
"""Of UTF-8, for Hangul: the length of a piece is counted in characters in a recipe, in bytes by a byte-level trainer."""

UNLISTED = ("word", "syllable", "jamo", "wordpiece-bytes")
"""Kinds whose units are their alphabet, or that have none."""

COUNTED: tuple[VocabKind, ...] = ("word", "syllable", "jamo", "ngram", "morpheme")
"""Kinds whose pieces are the most frequent units."""


@dataclass(frozen=True)
class Job:
    """Counted words with cuts, a vocabulary size, options, and the rules for pieces."""

    counts: SegmentedCounts
    vocab_size: int
    kind: VocabKind = "unigram"
    specials: Collection[str] = ()
    alphabet: Collection[str] | None = None
    """Characters that are pieces; None: all of the text."""
    required: Collection[str] = ()
    """Characters that are always pieces."""
    strings: Collection[str] = ()
    """Longer strings that are always pieces."""
    line_ends: Collection[str] = ()
    """Strings with line ends that are pieces of a BPE; each is another one, or a character, and a character."""
    coverage: float = 1e-9
    """Share of the running characters that candidates add to the alphabet; nearly 0, as the recipe sets the alphabet."""
    max_length: int = 12
    crosses: Callable[[str], bool] | None = None
    """True for strings that no piece may be."""
    options: TrainRecipe = field(default_factory=TrainRecipe)
    runs: SegmentedCounts | None = None
    run_documents: NDArray[np.uint64] | None = None
    superwords: SuperwordPolicy = field(default_factory=SuperwordPolicy)
    eojeols: float | None = None
    threads: int | None = None
    on_progress: Done = lambda _done, _total: None

    @classmethod
    def of(cls, counts: SegmentedCounts, recipe: Recipe, pattern: Pattern, **more: Any) -> Job:
        """The job of a recipe.

        Examples
        --------
        >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3})
        >>> job = Job.of(counts, Recipe.build({"train": {"model": "bpe", "vocab_size": 400}}), Pattern())
        >>> len(job.alphabet), job.crosses("교 에"), job.crosses("에서")
        (102, True, False)
        """
        options, specials = recipe.train, tuple(recipe.special_tokens)
        kind: VocabKind = "unigram" if options.model == "unigram-em" else options.model
        row = KINDS[kind]
        personal = PERSONAL_DEFAULT if options.personal_data == "drop" else ()
        blocklist = Blocklist(options.blocklist, personal, JUNK if options.junk == "drop" else ())
        by_pattern = kind not in COUNTED and not row.bytewise and options.backend != "spm"
        n_bytes = 0 if row.marked else len(BYTE_PIECES)
        # A character has up to two pieces in a WordPiece, which checks the size by itself.
        alphabet = (
            None
            if kind in UNLISTED
            else _alphabet(counts, recipe, n_bytes, bytewise=row.bytewise, check=not row.marked)
        )
        strings = _strings(recipe, pattern, blocklist)
        if strings and alphabet is not None:
            alphabet = tuple(sorted({*alphabet, *"".join(strings)}))
        return cls(
            counts,
            options.vocab_size,
            kind,
            specials,
            alphabet,
            required=_required(recipe, kind, alphabet or ()),
            strings=[string for string in strings if len(string) > 1],
            line_ends=line_ends(pattern, options.vocab_size - len(BYTE_PIECES) - len(specials)) if row.bytewise else (),
            max_length=options.max_piece_length * (BYTES_PER_CHARACTER if row.bytewise else 1),
            # Where pieces are spelled in bytes no rule is needed: words are pretokens already, and no piece spells a special
            # token or a byte piece.
            crosses=partial(_refused, blocklist, pattern if by_pattern else None, frozenset((*BYTE_PIECES, *specials))),
            options=options,
            superwords=SuperwordPolicy(options.superwords, inner=options.inner_superwords),
            **more,
        )

    @property
    def text(self) -> SegmentedCounts:
        """The source of candidates: words, or runs of words if pieces may cross spaces."""
        return self.counts if self.runs is None else self.runs

    @property
    def n_eojeols(self) -> float:
        """Running eojeols of the text; by default the words."""
        return max(self.counts.total if self.eojeols is None else self.eojeols, 1e-9)

    @property
    def spelled(self) -> bool:
        """True if pieces are spelled in bytes."""
        return KINDS[self.kind].bytewise

    @property
    def joined(self) -> tuple[str, ...]:
        """The strings that are pieces of a BPE from the start, each behind its own beginnings, which lead to it."""
        beginnings = {string[:size] for string in self.strings for size in range(2, len(string) + 1)}
        return (*self.line_ends, *sorted(beginnings, key=lambda string: (len(string), string)))

    def letters(self) -> list[str]:
        """The alphabet: characters, or bytes for the WordPiece over bytes."""
        if self.kind == "wordpiece-bytes":
            return sorted(BYTE_CHARS)
        seen = {char for word in self.counts.words for char in word} if self.alphabet is None else set(self.alphabet)
        return sorted((seen | set(self.required)) - {SPACE_MARK})

    def room(self, letters: int) -> int:
        """The number of ids left for longer pieces."""
        row = KINDS[self.kind]
        n_bytes = 0 if row.unknown else len(BYTE_PIECES)
        taken = n_bytes + letters + len(self.specials)
        check_size(self.vocab_size, taken + len(self.joined))
        return self.vocab_size - taken


@dataclass(frozen=True)
class Learnt:
    """The result of a trainer."""

    vocab: Vocab
    log: dict[str, Any] = field(repr=False)
    merges: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def _alphabet(counts: SegmentedCounts, recipe: Recipe, n_bytes: int, *, bytewise: bool, check: bool) -> tuple[str, ...]:
    rare = MODERN_JAMO if recipe.jamo == "fallback" else ""
    options = recipe.train
    found = alphabet_of(
        zip(counts.words, counts.n.tolist(), strict=True),
        vocab_size=options.vocab_size,
        taken=n_bytes + len(recipe.special_tokens) + len(rare),
        coverage=options.character_coverage,
        required=MODERN_JAMO if recipe.spelled else options.required,
        bytewise=bytewise,
        check=check,
    )
    return tuple(sorted({*found, *rare})) if rare else found


def _strings(recipe: Recipe, pattern: Pattern, blocklist: Blocklist) -> list[str]:
    """The strings that the recipe requires, and the groups of digits that its pattern cuts."""
    options = recipe.train
    asked = sorted({recipe.normalizer(string) for string in options.required_pieces} - {""})
    for string in asked:
        why = "" if not pattern.crosses(string) else "the pattern cuts it"
        why = why or (len(string) > 1 and blocklist.refuses(string)) or ""
        if string in {*BYTE_PIECES, *recipe.special_tokens}:
            why = "it is the spelling of a special token or a byte piece"
        if why:
            raise RecipeError(
                f"`required_pieces`: {string!r} cannot be a piece: {why}", hint="--require-pieces FILE without it"
            )
    own = options.model in SELECTED_MODELS and options.backend == "koktok"
    groups = digit_groups(pattern, options.vocab_size) if own and options.required != "none" else ()
    return [*dict.fromkeys((*asked, *groups))]


def _required(recipe: Recipe, kind: VocabKind, alphabet: Collection[str]) -> Collection[str]:
    """Characters besides the alphabet of a kind that lists one."""
    if KINDS[kind].single:
        return (*BASIC, *(MODERN_JAMO if recipe.jamo else ()))
    if kind != "wordpiece":
        return ()
    # A required character takes two pieces here, at the head of a word and inside.
    asked = "none" if recipe.spelled else recipe.train.required
    listed = required_characters(asked, recipe.train.vocab_size, pieces=2)
    # A syllable that lacks one of its two pieces would be taken apart in both places.
    both = alphabet if recipe.jamo == "fallback" else ()
    return {*BASIC, *listed, *(MODERN_JAMO if recipe.jamo else ()), *both} - {" "}  # which the model drops


def _refused(blocklist: Blocklist, pattern: Pattern | None, reserved: frozenset[str], piece: str) -> bool:
    """True for what the recipe blocks, and across a pre-token border or for a token that text must not reach.

    Single characters are the alphabet, and stay.
    """
    if pattern is not None and (piece in reserved or pattern.crosses(piece)):
        return True
    return len(piece) > 1 and blocklist.refuses(piece) is not None
