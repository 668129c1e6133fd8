"""`TrainedTokenizer`: normalize, pre-tokenize, model: text to ids and back, with offsets into the text that the caller passed.

Decode(encode(x)) == normalize(x) for every text (law 4), and offsets are half-open code points of the raw text, also where
normalization changed its length (law 7). Text that spells a special token stays text, unless the caller allows that token.

`encode` and `decode` define the ids, in Python that can be read; `koktok.bulk` gives the same ids and texts in compiled code,
and tests compare the two.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from koktok import hangul
from koktok.errors import UsageError
from koktok.files import path_of, read_whole, write_folder
from koktok.model.decoding import Stream, checked_ids, decoder_for
from koktok.model.definition import Definition
from koktok.model.encoding import Encoding, NormalText, blanks_of, trimmed
from koktok.model.models import Encoded, best_choices, model_for, n_best_of, sampler_for
from koktok.model.note import Note
from koktok.model.special import cut_at
from koktok.model.tokens import ByteTable, Spans, Tokens, tokens_by_bytes
from koktok.model.vocab import WITH_UNKNOWN, Vocab
from koktok.protocol.tokenizer import Allowed, Tokenizer, checked_text
from koktok.recipe import Recipe
from koktok.runtimes.folder import TOKENIZER, files_of, read_folder, with_extra
from koktok.runtimes.probe import PROBE, probe_json
from koktok.runtimes.runtime import runtime_of
from koktok.text.prefix import CUT_MARK, with_prefix, without_prefix
from koktok.tokenizer.ready import folder_of
from koktok.tokenizer.restyle import restyle

if TYPE_CHECKING:
    import numpy as np

    from koktok.bulk import Decoder, Encoder


CACHED_WORDS = 1 << 18
"""Pretokens in the cache: a quarter of a million distinct words cover over .97 of running Korean text, in about 100 MB."""

CACHED_LENGTH = 48
"""Longer pretokens rarely occur twice and would only fill the memory."""

LONG_TEXT = 1 << 18
"""Characters from which the garbage collector waits: it would go through all offsets so far every 70,000 tokens, which took
36 s of processor time for a text of 10 MB with ten million tokens, and 8 s without."""


class TrainedTokenizer(Tokenizer):
    """A tokenizer that koktok trained.

    Parameters
    ----------
    recipe : Recipe
        Normalization, pre-tokenization and special tokens.
    vocab : Vocab
        Pieces and their ids.
    signature : mapping, optional
        Origin of the vocabulary; written beside the recipe.

    Examples
    --------
    >>> pieces = {" ": -9.0, "한": -8.0, "국": -8.0, "어": -8.0, "는": -7.0, "한국어": -5.0, " 한국어": -5.0}
    >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram(pieces))
    >>> encoding = tokenizer.encode("한국어는 한국어")
    >>> encoding.pieces, encoding.offsets
    ([' 한국어', '는', ' 한국어'], [(0, 3), (3, 4), (4, 8)])
    >>> tokenizer.decode(encoding.ids)
    '한국어는 한국어'
    """

    vocab: Vocab
    definition: Definition

    def __init__(self, recipe: Recipe, vocab: Vocab, signature: Mapping[str, Any] | None = None) -> None:
        if not isinstance(recipe, Recipe) or not isinstance(vocab, Vocab):
            raise UsageError(
                f"expected a recipe and a vocabulary, got {type(recipe).__name__} and {type(vocab).__name__}",
                hint="TrainedTokenizer.load(FOLDER), or koktok.train(lines).tokenizer",
            )
        self.recipe = recipe
        self.vocab = vocab
        self.signature = dict(signature or {})
        self.definition = one = recipe.definition_for(vocab)
        self.normalizer, self.pattern, self.prefix, self.style = one.normalizer, one.pattern, one.prefix, one.style
        self.words = self.pattern.within_words
        self.model = model_for(vocab)
        self._cache: dict[str, Encoded] = {}
        self.name = f"koktok {vocab.kind}"
        self.size: int = vocab.size
        self.unknown_ids = frozenset({vocab.unknown_id} if vocab.kind in WITH_UNKNOWN else ())
        self.byte_ids = frozenset(range(vocab.n_bytes))
        self.special_ids = frozenset(vocab.special_ids.values()) - self.unknown_ids
        self.libraries = {"koktok": _version()}
        self.notes = ()
        if not self.lossless:
            english = f"a {vocab.kind} vocabulary does not keep every text"
            self.notes = (Note(english, f"{vocab.kind} 어휘는 일부 글자를 복원하지 못함"),)

    def __repr__(self) -> str:
        return f"TrainedTokenizer({self.vocab.kind}, size={self.vocab.size}, digest={self.vocab.digest()})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Without caches: a used tokenizer pickles to the same bytes as a fresh one.
        return type(self), (self.recipe, self.vocab, self.signature)

    @property
    def lossless(self) -> bool:  # type: ignore[override]
        """True where `decode(encode(x)) == normalize(x)` for every text; False for WordPiece and whole words.

        `wordpiece` loses runs of spaces, the spaces around punctuation and unknown words; `word` unknown words;
        `wordpiece-bytes` nothing but a "##" that begins a word.
        """
        return self.model.lossless

    @property
    def roles(self) -> Mapping[str, str]:  # type: ignore[override]
        return self.style.roles

    @property
    def end_of_document(self) -> str:
        return self.style.end

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over vocabulary, folds, pattern, jamo and style, not over the origin."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = [self.vocab.digest(), self.normalizer.signature(), asdict(self.pattern), self.recipe.jamo]
        apart = ("trim_offsets", "end", "named")
        parts.append({name: value for name, value in asdict(self.style).items() if name not in apart})
        parts += [{"end": self.style.end}] * (self.style.end != self.roles.get("eos_token", ""))
        parts += {"": [], "each": ["prefix space"], "first": ["prefix space first"]}[self.prefix] + [
            "trimmed offsets"
        ] * self.style.trim_offsets
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    # --- Encoding -----------------------------------------------------------------------------------------------------

    def normalize(self, text: str) -> str:
        normal = self.normalizer(text)
        return hangul.join(normal) if self.definition.jamo else normal

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Allowed = (),
        superwords: bool = True,
    ) -> Encoding:
        encoding = self._encode(text, allowed_special, self._solve, superwords=superwords)
        if not add_special_tokens:
            return encoding
        before, after = self.definition.frame
        none = [(0, 0)]
        return self._encoding(
            [*before, *encoding.ids, *after], [*none * len(before), *encoding.offsets, *none * len(after)]
        )

    def _encode(
        self, text: str, allowed: Allowed, solve: Callable[[str], Encoded], *, superwords: bool = True
    ) -> Encoding:
        if len(checked_text(text)) > LONG_TEXT and gc.isenabled():
            gc.disable()
            try:
                return self._encode(text, allowed, solve, superwords=superwords)
            finally:
                gc.enable()
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        special_ids = self.vocab.special_ids
        for start, end, special in cut_at(text, allowed, special_ids, self.style.lstrip):
            if special:
                ids.append(special_ids[special])
                offsets.append((end - len(special) if self.style.trim_offsets else start, end))
                continue
            part = text[start:end]
            if self.normalizer(part) == part:
                # Most texts are normal already: places in the model's text are places in the raw text.
                first, read = len(offsets), with_prefix(part, self.prefix, first=not start)
                at = start - (len(read) - len(part))
                for pretoken in (self.pattern if superwords else self.words).pretokenize(read):
                    more, spans = solve(pretoken) if pretoken != CUT_MARK else ((), ())
                    ids += more
                    offsets += [(at + a, at + b) for a, b in spans]
                    at += len(pretoken)
                while (
                    first < len(offsets) and offsets[first][0] < start
                ):  # the added space has the place of the next character
                    a, b = offsets[first]
                    offsets[first] = (start, max(b, start + (a < b)))  # trimmed ones may be empty
                    first += 1
                continue
            normal = self._read(part, superwords=superwords, first=not start)
            for at, pretoken in normal.pretokens:
                more, spans = solve(pretoken)
                ids += more
                offsets += normal.offsets(at, spans, start)
        return self._encoding(ids, offsets)

    def _solve(self, pretoken: str) -> Encoded:
        solved = self._cache.get(pretoken)
        if solved is None:
            ids, spans = self._trimmed(self.model.encode(pretoken))
            solved = tuple(ids), tuple(spans)  # the garbage collector does not go through tuples of numbers again
            if len(pretoken) <= CACHED_LENGTH:
                if len(self._cache) >= CACHED_WORDS:
                    self._cache.clear()
                self._cache[pretoken] = solved
        return solved

    def _trimmed(self, encoded: Encoded) -> Encoded:
        ids, spans = encoded
        return ids, trimmed(ids, spans, self._blanks) if self.style.trim_offsets else spans

    @cached_property
    def _blanks(self) -> dict[int, tuple[int, int]]:
        return blanks_of(self.vocab.tokens)

    def _read(self, text: str, *, superwords: bool = True, first: bool = True) -> NormalText:
        pattern = self.pattern if superwords else self.words
        return NormalText.of(text, self.normalizer, pattern, prefix=self.prefix, first=first)

    def _encoding(self, ids: list[int], offsets: list[tuple[int, int]]) -> Encoding:
        tokens = self.vocab.tokens
        return Encoding(ids, [tokens[i] for i in ids], offsets)

    @cached_property
    def bulk_encoder(self) -> Encoder:
        """The encoder of `encode_ids`; created on first use, and caches words."""
        from koktok.bulk import Encoder

        return Encoder(self.definition)

    # --- Decoding -----------------------------------------------------------------------------------------------------

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        checked = checked_ids(ids, self.vocab.size)
        if skip_special_tokens:
            checked = [i for i in checked if i < self.vocab.first_special]
        text = decoder_for(self.vocab).decode(checked)
        text = hangul.join(text) if self.definition.jamo else text
        return without_prefix(text, self.prefix)

    def stream(self, *, skip_special_tokens: bool = False) -> Stream:
        """A decoder of ids one by one, as a model generates them: `push` each, then `finish`.

        Examples
        --------
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0}))
        >>> stream = tokenizer.stream()
        >>> [stream.push(i) for i in tokenizer.encode("한국").ids], stream.finish()
        (['', '한', '국'], '')
        """
        return Stream(self.definition, skip_special_tokens=skip_special_tokens)

    @cached_property
    def bulk_decoder(self) -> Decoder:
        """The decoder of `decode_ids`."""
        from koktok.bulk import Decoder

        return Decoder(self.definition)

    # --- Sampling -----------------------------------------------------------------------------------------------------

    def sample(
        self,
        text: str,
        *,
        alpha: float | None = None,
        dropout: float | None = None,
        seed_or_rng: int | np.random.Generator,
        n_best: int | None = None,
        allowed_special: Allowed = (),
    ) -> Encoding:
        """Another segmentation of the same text, for subword regularization; `decode` gives the same text.

        Parameters
        ----------
        text : str
        alpha : float
            Unigram: a segmentation has a probability proportional to exp(alpha · score); the larger, the likelier the
            best one.
        dropout : float
            BPE and WordPiece: the probability with which a merge, or a match, is skipped; 0 gives `encode`.
        seed_or_rng : int or numpy.random.Generator
            A seed gives the same sample each time; a generator continues from call to call.
        n_best : int, optional
            Unigram: draw from so many best segmentations of each pretoken; the default is all.
        allowed_special
            As in `encode`.

        Raises
        ------
        UsageError
            For a keyword that is not of this model type, for none, or a value out of range; names the right one.

        Examples
        --------
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> tokenizer.sample("한국", alpha=100.0, seed_or_rng=0).pieces
        [' ', '한국']
        """
        draw = sampler_for(self.model, alpha=alpha, dropout=dropout, seed_or_rng=seed_or_rng, n_best=n_best)
        return self._encode(text, allowed_special, lambda pretoken: self._trimmed(draw(pretoken)))

    def n_best(self, text: str, n: int) -> list[tuple[Encoding, float]]:
        """The `n` best segmentations of a whole text with their scores, best first; fewer when there are not so many.

        The first is that of `encode`. Only `unigram` has scores of segmentations.

        Raises
        ------
        UsageError
            When `n` is less than 1, or the model gives no scores to segmentations.

        Examples
        --------
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> [(encoding.pieces, score) for encoding, score in tokenizer.n_best("한국", 2)]
        [([' ', '한국'], -4.0), ([' ', '한', '국'], -5.0)]
        """
        n_best = n_best_of(self.model)
        if not isinstance(n, int):
            raise UsageError(
                f"expected a whole number of at least 1 as `n`, got {n!r}", hint="tokenizer.n_best(text, 5)"
            )
        normal = self._read(checked_text(text))
        solved = {pretoken: n_best(pretoken, n) for pretoken in dict.fromkeys(word for _, word in normal.pretokens)}
        lists = [solved[pretoken] for _, pretoken in normal.pretokens]
        result = []
        for choice, score in best_choices([[score for _, score in ways] for ways in lists], n):
            ids: list[int] = []
            offsets: list[tuple[int, int]] = []
            for (at, _), ways, i in zip(normal.pretokens, lists, choice, strict=True):
                more, spans = self._trimmed(ways[i][0])
                ids += more
                offsets += normal.offsets(at, spans)
            result.append((self._encoding(ids, offsets), score))
        return result

    # --- What is measured ---------------------------------------------------------------------------------------------

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        encoded = self.encode_ids(list(lines))
        flat = encoded.ids.tolist()
        ids = [flat[start:end] for start, end in pairwise(encoded.indptr.tolist())]

        def offsets(which: list[int]) -> list[Spans]:
            return [self.encode(lines[k]).offsets for k in which]

        return tokens_by_bytes(lines, ids, self._written, offsets, spaced=self.vocab.kind != "wordpiece")

    @cached_property
    def _written(self) -> ByteTable:
        return ByteTable([self.token_bytes(i) or b"" for i in range(self.vocab.size)])

    def token_bytes(self, i: int) -> bytes | None:
        return None if i in self.special_ids or i in self.unknown_ids else self.vocab.token_bytes[i]

    # --- Saving and loading -------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None, force: bool = False) -> Path:
        """Write the folder that transformers, tokenizers and sentencepiece load, see `Tokenizer.save`.

        Kinds that Hugging Face has no model for (`ngram`, `morpheme`) get a vocab.json in place of tokenizer.json and its
        neighbours: only koktok loads such a folder. tokenizer.model is written for unigram and character BPE if
        SentencePiece can express the pattern.
        """
        files = files_of(self.recipe, self.vocab, self.signature)
        files[PROBE] = probe_json(lambda lines: [self.encode(line).ids for line in lines])
        return write_folder(path, with_extra(files, extra), TOKENIZER, force=force)

    def export(self, to: str, out: str | Path, *, force: bool = False, **options: Any) -> list[str]:
        runtime = runtime_of(to)
        runtime.check(options)
        if not runtime.is_koktoks or not options:
            return runtime.export(self, out, force=force, **options)
        styled = restyle(self, **options)
        notes = runtime.export(styled, out, force=force)
        before, after = self.roles, styled.roles
        changed = [
            f"{role} {before.get(role, 'none')} → {after.get(role, 'none')}"
            for role in dict.fromkeys((*before, *after))
            if before.get(role) != after.get(role)
        ]
        return [
            *([f"special tokens: {', '.join(changed)}"] if changed else []),
            *([f"the digest was {self.digest()} and is {styled.digest()}"] if styled != self else []),
            *notes,
        ]

    @classmethod
    def load(cls, reference: str | Path) -> Self:
        """The tokenizer of a folder that koktok trained; `koktok.load` opens those of other libraries too.

        Parameters
        ----------
        reference : str or Path
            The folder, or the tokenizer.json in it; or a vocabulary that is part of koktok, `koktok:ko-32k`.

        Raises
        ------
        ArtifactError
            When the folder is missing, damaged, changed by hand, written by a newer koktok, or not koktok's.
        """
        folder = folder_of(path_of(reference))
        return read_whole(folder, TOKENIZER, lambda place: cls(*read_folder(place)))


@cache
def _version() -> str:
    return version("koktok")
