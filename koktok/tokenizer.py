"""`Tokenizer`: normalize, pre-tokenize, model: text to ids and back, with offsets into the text that the caller passed.

This file adds: composition. decode(encode(x)) == normalize(x) for every text (law 4), and offsets are half-open code
points of the raw text, also where normalization changed its length (law 7). Text that spells a special token is text,
unless the caller allows that token.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, Literal

from koktok import jamo
from koktok.errors import ArtifactError, InputError
from koktok.models import model_for
from koktok.normalize import Folds, Normalizer
from koktok.pretokenize import Pattern
from koktok.recipe import Recipe
from koktok.vocab import Vocab

__all__ = ["Encoding", "Tokenizer"]

CACHED_WORDS = 1 << 18
"""Solved pre-tokens kept: a quarter of a million distinct words cover over .97 of running Korean text, in about 100 MB."""

CACHED_LENGTH = 48
"""Longer pre-tokens are seldom met twice and would only fill the memory."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """What `encode` returns: three lists of one length.

    Parameters
    ----------
    ids : list of int
    pieces : list of str
        The string of each id.
    offsets : list of (int, int)
        Code points of the text that was passed, half-open; the byte tokens of one character share its span.
    """

    ids: list[int]
    pieces: list[str]
    offsets: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer:
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
    >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram(pieces))
    >>> encoding = tokenizer.encode("한국어는 한국어")
    >>> encoding.pieces, encoding.offsets
    (['한국어', '는', ' 한국어'], [(0, 3), (3, 4), (4, 8)])
    >>> tokenizer.decode(encoding.ids)
    '한국어는 한국어'
    """

    def __init__(self, recipe: Recipe, vocab: Vocab, signature: Mapping[str, Any] | None = None) -> None:
        self.recipe = recipe
        self.vocab = vocab
        self.signature = dict(signature or {})
        self.normalizer = Normalizer(Folds(**recipe.normalize.model_dump()))
        self.pattern = Pattern(split=recipe.pretokenize.split, digits=recipe.pretokenize.digits)
        self.model = model_for(vocab)
        self._cache: dict[str, tuple[list[int], list[tuple[int, int]]]] = {}

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab.kind}, size={self.vocab.size}, digest={self.vocab.digest()})"

    def normalize(self, text: str) -> str:
        """The text as the model sees it: what `decode(encode(text))` gives back."""
        return self.normalizer(text)

    def encode(self, text: str, *, allowed_special: Collection[str] | Literal["all"] = ()) -> Encoding:
        """Text to ids, pieces and offsets.

        Parameters
        ----------
        text : str
        allowed_special : collection of str, or "all"
            Special tokens that are read as such where the text spells them; anything else stays text.

        Raises
        ------
        InputError
            When `text` is no `str`, holds a lone surrogate, or an allowed token is no special token.
        """
        if not isinstance(text, str):
            raise InputError(
                f"`encode` got {type(text).__name__} where one `str` was wanted",
                hint="tokenizer.encode_batch(texts) for many" if isinstance(text, Iterable) else "",
            )
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, part, special in self._parts(text, allowed_special):
            if special:
                ids.append(self.vocab.special_ids[part])
                offsets.append((start, start + len(part)))
            else:
                self._encode_plain(part, start, ids, offsets)
        tokens = self.vocab.tokens
        return Encoding(ids, [tokens[i] for i in ids], offsets)

    def encode_batch(
        self, texts: Iterable[str], *, allowed_special: Collection[str] | Literal["all"] = ()
    ) -> list[Encoding]:
        """Many texts at once, each as `encode` does it.

        Raises
        ------
        InputError
            When a bare `str` comes in place of texts.
        """
        if isinstance(texts, str):
            raise InputError("one `str` came where texts were wanted", hint="tokenizer.encode_batch([text])")
        return [self.encode(text, allowed_special=allowed_special) for text in texts]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text.

        Bytes that are no UTF-8 become one U+FFFD each; no encoding of a text holds such bytes.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.
        """
        tokens, n_bytes = self.vocab.tokens, self.vocab.n_bytes
        first_special = self.vocab.size - len(self.vocab.specials)
        parts: list[str] = []
        raw = bytearray()
        for given in ids:
            try:
                i = index(given)  # numpy integers are ids too
            except TypeError:
                raise InputError(f"`decode` got the id {given!r}; ids are integers") from None
            if not 0 <= i < len(tokens):
                raise InputError(f"the id {i} is outside the vocabulary (0 to {len(tokens) - 1})")
            if i < n_bytes:
                raw.append(i)
                continue
            if i >= first_special and skip_special_tokens:
                continue
            if raw:
                parts.append(_text(raw))
                raw.clear()
            parts.append(tokens[i])
        parts.append(_text(raw))
        joined = "".join(parts)
        return jamo.join(joined) if self.recipe.jamo else joined

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None) -> Path:
        """Write the folder that transformers, tokenizers and sentencepiece load.

        Parameters
        ----------
        path : str or Path
            A new folder, or an older koktok tokenizer, which is replaced.
        extra : mapping, optional
            More files for the folder, for instance a model card.

        Raises
        ------
        UsageError
            When something else is at that place.
        InputError
            When the disk says no; nothing half-written is left.
        """
        from koktok.export.folder import MARK, write_folder
        from koktok.export.hf import config_json, special_tokens_json, tokenizer_json
        from koktok.export.sentencepiece import model_proto, why_not

        files: dict[str, str | bytes] = {
            "tokenizer.json": tokenizer_json(self.vocab, self.normalizer, self.pattern, jamo=self.recipe.jamo),
            "tokenizer_config.json": config_json(self.vocab),
            "special_tokens_map.json": special_tokens_json(self.vocab),
            MARK: self.recipe.to_toml({**self.signature, "vocab": self.vocab.digest()}),
        }
        if not why_not(self.vocab, self.pattern):
            files["tokenizer.model"] = model_proto(self.vocab, self.pattern, jamo=self.recipe.jamo)
        return write_folder(path, files | dict(extra or {}))

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """The tokenizer of a folder.

        Raises
        ------
        ArtifactError
            When the folder is missing, damaged, changed by hand, or written by a newer koktok.
        """
        import tomllib

        from koktok.export.folder import MARK
        from koktok.export.hf import vocab_from_json

        folder = Path(path)
        try:
            toml = (folder / MARK).read_text(encoding="utf-8")
            text = (folder / "tokenizer.json").read_text(encoding="utf-8")
            signature = tomllib.loads(toml).get("signature", {})
            recipe = Recipe.from_toml(toml)
        except (OSError, ValueError) as error:  # RecipeError and decoding errors are ValueErrors
            raise ArtifactError(
                f"`{folder}` is no readable koktok tokenizer: {error}", hint="koktok train TEXT --out FOLDER"
            ) from error
        vocab = vocab_from_json(text)
        if vocab.digest() != signature.get("vocab"):
            raise ArtifactError(
                f"the vocabulary in `{folder}/tokenizer.json` is not the one that {MARK} was written with",
                hint="train again, or load it with tokenizers.Tokenizer.from_file",
            )
        return cls(recipe, vocab, {key: value for key, value in signature.items() if key != "vocab"})

    def _parts(self, text: str, allowed: Collection[str] | Literal["all"]) -> list[tuple[int, str, bool]]:
        """The text cut at allowed special tokens, before normalization, longest token first as in Hugging Face."""
        specials = self.vocab.special_ids
        names = list(specials) if allowed == "all" else list(allowed)
        unknown = [name for name in names if name not in specials]
        if unknown:
            raise InputError(f"{unknown[0]!r} is no special token; there are {', '.join(specials) or 'none'}")
        if not names:
            return [(0, text, False)]
        pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
        parts, end = [], 0
        for match in pattern.finditer(text):
            if match.start() > end:
                parts.append((end, text[end : match.start()], False))
            parts.append((match.start(), match[0], True))
            end = match.end()
        if end < len(text):
            parts.append((end, text[end:], False))
        return parts

    def _encode_plain(self, text: str, base: int, ids: list[int], offsets: list[tuple[int, int]]) -> None:
        aligned = self.normalizer.align(text)
        seen = aligned.normal
        starts: Sequence[int] = aligned.starts
        ends: Sequence[int] = aligned.ends
        if self.recipe.jamo:
            syllable = jamo.align(seen)
            seen = jamo.split(seen)
            starts, ends = [starts[i] for i in syllable], [ends[i] for i in syllable]
        at = 0
        for pretoken in self.pattern.pretokenize(seen):
            found, spans = self._solve(pretoken)
            ids += found
            offsets += [(base + starts[at + a], base + ends[at + b - 1]) for a, b in spans]
            at += len(pretoken)

    def _solve(self, pretoken: str) -> tuple[list[int], list[tuple[int, int]]]:
        solved = self._cache.get(pretoken)
        if solved is None:
            solved = self.model.encode(pretoken)
            if len(pretoken) <= CACHED_LENGTH:
                if len(self._cache) >= CACHED_WORDS:
                    self._cache.clear()
                self._cache[pretoken] = solved
        return solved


def _text(raw: bytearray) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "�" * len(raw)  # a byte each, as Hugging Face's ByteFallback does
