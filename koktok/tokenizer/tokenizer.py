"""`TrainedTokenizer`: normalize, pre-tokenize, model: text to ids and back, with offsets into the text that the caller passed.

Decode(encode(x)) == normalize(x) for every text (law 4), and offsets are half-open code
points of the raw text, also where normalization changed its length (law 7). Text that spells a special token is text,
unless the caller allows that token.

`encode` and `decode` define what all of this does, in Python that can be read; `koktok.bulk` gives the same ids and texts
by the gigabyte, in compiled code that tests hold to these.
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
from koktok.formats.folder import TOKENIZER, files_of, read_folder, with_extra
from koktok.formats.probe import PROBE, probe_json
from koktok.formats.vocabularies import folder_of
from koktok.recipe import Recipe
from koktok.special import Style, cut_at, special_tokens
from koktok.text.prefix import SPACE_MARK, with_prefix, without_prefix
from koktok.tokenizer.any_tokenizer import Allowed, Tokenizer, checked_text
from koktok.tokenizer.decoding import Stream, checked_ids, decoder_for
from koktok.tokenizer.encoding import Encoding, NormalText, blanks_of, trimmed
from koktok.tokenizer.models import Encoded, best_choices, model_for, n_best_of, sampler_for
from koktok.tokenizer.tokens import ByteTable, Spans, Tokens, tokens_by_bytes
from koktok.vocab import WITH_UNKNOWN, Vocab

if TYPE_CHECKING:
    import numpy as np

    from koktok.bulk import Decoder, Encoder


CACHED_WORDS = 1 << 18
"""Solved pre-tokens kept: a quarter of a million distinct words cover over .97 of running Korean text, in about 100 MB."""

CACHED_LENGTH = 48
"""Longer pre-tokens are seldom met twice and would only fill the memory."""

LONG_TEXT = 1 << 18
"""Characters from which the garbage collector waits: it would go through all offsets so far every 70,000 tokens, which took
36 s of processor time for a text of 10 MB with ten million tokens, and 8 s without."""

_NOTHING: Encoded = ((), ())
"""The tokens of `SPACE_MARK`."""

Solve = Callable[[str], Encoded]
"""A pretoken to ids and spans."""


@cache
def _version() -> str:
    return version("koktok")


class TrainedTokenizer(Tokenizer):
    """A trained tokenizer.

    Parameters
    ----------
    recipe : Recipe
        How text is normalized and pre-tokenized.
    vocab : Vocab
        What the model runs on.
    signature : mapping, optional
        Where the vocabulary came from; written beside the recipe.

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

    def __init__(self, recipe: Recipe, vocab: Vocab, signature: Mapping[str, Any] | None = None) -> None:
        if not isinstance(recipe, Recipe) or not isinstance(vocab, Vocab):
            raise UsageError(
                f"expected a recipe and a vocabulary, got {type(recipe).__name__} and {type(vocab).__name__}",
                hint="TrainedTokenizer.load(FOLDER), or koktok.train(lines).tokenizer",
            )
        self.recipe = recipe
        self.vocab = vocab
        self.signature = dict(signature or {})
        self.normalizer = recipe.normalizer_for(vocab)
        self.pattern = recipe.pattern
        self.words = self.pattern.within_words
        self.prefix = recipe.prefix_for(vocab)
        self.model = model_for(vocab)
        self._cache: dict[str, Encoded] = {}
        self.name = f"koktok {vocab.kind}"
        self.size: int = vocab.size
        self.unknown_ids = frozenset({vocab.unknown_id} if vocab.kind in WITH_UNKNOWN else ())
        self.byte_ids = frozenset(range(vocab.n_bytes))
        self.special_ids = frozenset(vocab.special_ids.values()) - self.unknown_ids
        self.libraries = {"koktok": _version()}
        self.notes = () if self.lossless else (f"a {vocab.kind} vocabulary does not keep every text",)

    def __repr__(self) -> str:
        return f"TrainedTokenizer({self.vocab.kind}, size={self.vocab.size}, digest={self.vocab.digest()})"

    def __reduce__(self) -> tuple[Any, ...]:
        # What was compiled and solved is made again: a used tokenizer pickles to the same bytes as a fresh one.
        return type(self), (self.recipe, self.vocab, self.signature)

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides what a text becomes, and ids become.

        Vocabulary, folds, pattern, jamo and style; not what the vocabulary was trained on.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = [self.vocab.digest(), self.normalizer.signature(), asdict(self.pattern), self.recipe.jamo]
        parts.append({name: value for name, value in asdict(self.style).items() if name != "trim_offsets"})
        parts += {"": [], "each": ["prefix space"], "first": ["prefix space first"]}[self.prefix] + [
            "trimmed offsets"
        ] * self.style.trim_offsets
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def lossless(self) -> bool:
        """True where `decode(encode(x)) == normalize(x)` for every text; False for WordPiece and whole words.

        `wordpiece` loses runs of spaces, the spaces around punctuation and unknown words; `word` unknown words;
        `wordpiece-bytes` nothing but a "##" that begins a word.
        """
        return self.model.lossless

    @cached_property
    def style(self) -> Style:
        """What the special tokens are for; `koktok.formats.styles.restyle` changes it without a new training."""
        return self.recipe.style_for(self.vocab.specials)

    # --- What is measured ---------------------------------------------------------------------------------------------

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        """Ids and spans of each line."""
        encoded = self.encode_ids(list(lines))
        flat = encoded.ids.tolist()
        ids = [flat[start:end] for start, end in pairwise(encoded.indptr.tolist())]

        def offsets(which: list[int]) -> list[Spans]:
            return [self.encode(lines[k]).offsets for k in which]

        return tokens_by_bytes(lines, ids, self._written, offsets, spaced=self.vocab.kind != "wordpiece")

    @cached_property
    def _written(self) -> ByteTable:
        mute = self.special_ids | self.unknown_ids
        return ByteTable([b"" if i in mute else text for i, text in enumerate(self.vocab.token_bytes)])

    def token_bytes(self, i: int) -> bytes | None:
        """What an id writes; None for unknown and special ids."""
        return None if i in self.special_ids or i in self.unknown_ids else self.vocab.token_bytes[i]

    def piece(self, i: int) -> str:
        """The string of an id."""
        return self.vocab.tokens[i]

    def unigram(self) -> dict[str, float] | None:
        """Each piece with its score; None for jamo, whose pieces are no text of the line."""
        vocab = self.vocab
        if vocab.kind != "unigram" or self.recipe.jamo:
            return None
        return dict(zip(vocab.pieces, vocab.scores, strict=True))

    def unigram_words(self, line: str) -> list[str]:
        """Pretokens."""
        return list(self.pattern.pretokenize(self.normalize(line)))

    # --- Encoding -----------------------------------------------------------------------------------------------------

    def normalize(self, text: str) -> str:
        """What `decode(encode(text))` gives back: the text as the model sees it, but for a space before the first word."""
        normal = self.normalizer(text)
        return hangul.join(normal) if self.recipe.jamo else normal

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Allowed = (),
        superwords: bool = True,
    ) -> Encoding:
        """Text to ids, pieces and offsets; always the same for the same text.

        Parameters
        ----------
        text : str
        add_special_tokens : bool
            Put around it what the recipe's style wants there ([CLS] ... [SEP]); those have the empty offsets (0, 0).
        allowed_special : collection of str, or "all"
            Special tokens that are read as such where the text spells them; anything else stays text.
        superwords : bool
            False keeps every piece inside its word, for prompts that end at a word and are continued by a model.

        Raises
        ------
        InputError
            When `text` is no `str`, holds a lone surrogate, or an allowed token is no special token.
        """
        found = self._encode(text, allowed_special, self._solve, superwords=superwords)
        if not add_special_tokens:
            return found
        ids = self.vocab.special_ids
        before, behind = ([ids[token] for token in tokens] for tokens in self.style.frame)
        none = [(0, 0)]
        return self._encoding(
            [*before, *found.ids, *behind], [*none * len(before), *found.offsets, *none * len(behind)]
        )

    # --- Batches and arrays -------------------------------------------------------------------------------------------

    def encode_ids(
        self,
        texts: Any,
        *,
        threads: int | None = None,
        dtype: Any = None,
        add_special_tokens: bool = False,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        allowed_special: Allowed = (),
    ) -> Tokens:
        """Ids of many texts in one flat array: those of `encode`, at many times its speed, and nothing else.

        Parameters
        ----------
        texts : iterable of str, or pyarrow.Array or ChunkedArray of strings
            Each is a document.
        threads : int, optional
            The default is one for each core; small inputs take one. The ids are the same for any number.
        dtype : numpy type, optional
            The default is uint16 where all ids of the vocabulary fit, else uint32.
        add_special_tokens, allowed_special
            As in `encode`, for every document.
        before, after : sequence of str
            Special tokens that every document begins and ends with, outside those of `add_special_tokens`.

        Returns
        -------
        Tokens
            `ids`, and `indptr`, where each document begins and ends.

        Raises
        ------
        InputError
            As `encode`; and when a bare `str` comes in place of texts.
        UsageError
            When `dtype` cannot hold the ids, or `threads` is less than 1.

        Examples
        --------
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0, "한국": -3.0}, specials=["</s>"]))
        >>> tokens = tokenizer.encode_ids(["한국", "국"], after=["</s>"])
        >>> tokens.ids.tolist(), tokens.indptr.tolist(), tokens[1].tolist()
        ([256, 259, 260, 256, 257, 260], [0, 3, 6], [256, 257, 260])
        """
        frame = self.style.frame if add_special_tokens else ([], [])
        return self._ids_by(
            self.bulk_encoder,
            texts,
            before=[*special_tokens(before, self.vocab.special_ids, "before"), *frame[0]],
            after=[*frame[1], *special_tokens(after, self.vocab.special_ids, "after")],
            threads=threads,
            dtype=dtype,
            allowed_special=allowed_special,
        )

    @cached_property
    def bulk_encoder(self) -> Encoder:
        """What `encode_ids` runs on; made on first use, and keeps the words that it has solved."""
        from koktok.bulk import Encoder

        return Encoder(self.vocab, self.normalizer, self.pattern, lstrip=self.style.lstrip, prefix=self.prefix)

    # --- Decoding -----------------------------------------------------------------------------------------------------

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text.

        Bytes that are no UTF-8 become U+FFFD; no encoding of a text holds such bytes. Where `lossless` is False the
        text comes back as well as Hugging Face's decoder can: WordPiece puts one space before each word.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.
        """
        kept = checked_ids(ids, self.vocab.size)
        if skip_special_tokens:
            kept = [i for i in kept if i < self.vocab.first_special]
        text = decoder_for(self.vocab).decode(kept)
        text = hangul.join(text) if self.recipe.jamo else text
        return without_prefix(text, self.prefix)

    def stream(self, *, skip_special_tokens: bool = False) -> Stream:
        """A decoder for ids that come one by one, as a model gives them: `push` each, then `finish`.

        Parameters
        ----------
        skip_special_tokens : bool
            As in `decode`.

        Examples
        --------
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0}))
        >>> stream = tokenizer.stream()
        >>> [stream.push(i) for i in tokenizer.encode("한국").ids], stream.finish()
        (['', '한', '국'], '')
        """
        letters = bool(self.recipe.jamo)
        return Stream(self.vocab, letters=letters, prefix=self.prefix, skip_special_tokens=skip_special_tokens)

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
            BPE and WordPiece: the probability with which a join, or a match, is passed over; 0 gives `encode`.
        seed_or_rng : int or numpy.random.Generator
            A seed gives the same sample each time; a generator goes on from call to call.
        n_best : int, optional
            Unigram: draw from so many best segmentations of each pretoken; the default is all.
        allowed_special
            As in `encode`.

        Raises
        ------
        UsageError
            For a keyword that is not of this kind of model, for none, or a value out of range; names the right one.

        Examples
        --------
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> tokenizer.sample("한국", alpha=100.0, seed_or_rng=0).pieces
        [' ', '한국']
        >>> tokenizer.sample("한국", dropout=0.1, seed_or_rng=0)
        Traceback (most recent call last):
            ...
        koktok.errors.UsageError: `dropout` is not for a unigram tokenizer, whose samples take `alpha`
        hint: tokenizer.sample(text, alpha=0.1, seed_or_rng=0)
        """
        draw = sampler_for(self.model, alpha=alpha, dropout=dropout, seed_or_rng=seed_or_rng, n_best=n_best)
        return self._encode(text, allowed_special, lambda pretoken: self._shown(draw(pretoken)))

    def n_best(self, text: str, n: int) -> list[tuple[Encoding, float]]:
        """The `n` best segmentations of a whole text with their scores, best first; fewer when there are not so many.

        The first is that of `encode`. Exact: the lists of the pretokens are combined best first.

        Parameters
        ----------
        text : str
        n : int
            At least 1.

        Raises
        ------
        UsageError
            When `n` is less than 1, or the model gives no scores to segmentations (only unigram does).

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
        read = self._read(checked_text(text))
        solved = {pretoken: n_best(pretoken, n) for pretoken in dict.fromkeys(word for _, word in read.pretokens)}
        lists = [solved[pretoken] for _, pretoken in read.pretokens]
        found = []
        for choice, score in best_choices([[score for _, score in ways] for ways in lists], n):
            ids: list[int] = []
            offsets: list[tuple[int, int]] = []
            for (at, _), ways, i in zip(read.pretokens, lists, choice, strict=True):
                more, spans = self._shown(ways[i][0])
                ids += more
                offsets += read.offsets(at, spans)
            found.append((self._encoding(ids, offsets), score))
        return found

    @property
    def roles(self) -> Mapping[str, str]:
        """Special tokens by the part that they play for transformers: `bos_token`, `eos_token`, `pad_token` ..."""
        return self.style.roles

    # --- Saving and loading -------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None, force: bool = True) -> Path:
        """Write the folder that transformers, tokenizers and sentencepiece load.

        Kinds that Hugging Face has no model for (`ngram`, `morpheme`) get a vocab.json of ours in place of
        tokenizer.json and its neighbours: only koktok loads such a folder. tokenizer.model is there for unigram and
        character BPE, where SentencePiece can express the pattern.

        Parameters
        ----------
        path : str or Path
            A new folder, or an older koktok tokenizer: its files are replaced, all others in the folder stay.
        extra : mapping, optional
            More files for the folder, for instance a model card.
        force : bool
            False refuses to replace another tokenizer that koktok wrote there.

        Raises
        ------
        UsageError
            When something else is at that place, or a file that koktok did not write has the name of a new one,
            or `extra` holds what is no file of the folder.
        InputError
            When the disk says no; nothing half-written is left.
        """
        files = files_of(self.recipe, self.vocab, self.signature)
        files[PROBE] = probe_json(lambda lines: [self.encode(line).ids for line in lines])
        return write_folder(path, with_extra(files, extra), TOKENIZER, force=force)

    @classmethod
    def load(cls, reference: str | Path) -> Self:
        """The tokenizer of a folder that koktok wrote; `koktok.load` opens those of other libraries too.

        Parameters
        ----------
        reference : str or Path
            The folder, or the tokenizer.json in it; or a vocabulary that travels with koktok, `koktok:ko-32k`.

        Raises
        ------
        ArtifactError
            When the folder is missing, damaged, changed by hand, written by a newer koktok, or somebody else's.
        """
        folder = folder_of(path_of(reference))
        return read_whole(folder, TOKENIZER, lambda: cls(*read_folder(folder)))

    # --- Private ------------------------------------------------------------------------------------------------------

    def _encode(self, text: str, allowed: Allowed, solve: Solve, *, superwords: bool = True) -> Encoding:
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
                # What most texts are: normal already. Places in what the model reads are places in the text.
                first, read = len(offsets), with_prefix(part, self.prefix, first=not start)
                at = start - (len(read) - len(part))
                for pretoken in (self.pattern if superwords else self.words).pretokenize(read):
                    found, spans = solve(pretoken) if pretoken != SPACE_MARK else _NOTHING
                    ids += found
                    offsets += [(at + a, at + b) for a, b in spans]
                    at += len(pretoken)
                while first < len(offsets) and offsets[first][0] < start:  # the place of what is behind it
                    a, b = offsets[first]
                    offsets[first] = (start, max(b, start + (a < b)))  # trimmed ones may be empty
                    first += 1
                continue
            normal = self._read(part, superwords=superwords, first=not start)
            for at, pretoken in normal.pretokens:
                found, spans = solve(pretoken)
                ids += found
                offsets += normal.offsets(at, spans, start)
        return self._encoding(ids, offsets)

    def _shown(self, encoded: Encoded) -> Encoded:
        """What a model says of a pretoken, with spans as the style wants them."""
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

    def _solve(self, pretoken: str) -> Encoded:
        solved = self._cache.get(pretoken)
        if solved is None:
            ids, spans = self._shown(self.model.encode(pretoken))
            solved = tuple(ids), tuple(spans)  # the garbage collector does not go through tuples of numbers again
            if len(pretoken) <= CACHED_LENGTH:
                if len(self._cache) >= CACHED_WORDS:
                    self._cache.clear()
                self._cache[pretoken] = solved
        return solved

    @cached_property
    def _bulk_decoder(self) -> Decoder:
        from koktok.bulk import Decoder

        return Decoder(self.vocab, letters=bool(self.recipe.jamo), prefix=self.prefix)
