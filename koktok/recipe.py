"""`Recipe`: every setting that changes the result, and no other (no threads, no paths, no progress).

koktok.toml of a trained folder holds the recipe and the signature (digests of the text, versions of libraries), which
`--recipe koktok.toml` ignores.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from koktok.errors import ArtifactError, KoktokError, RecipeError, UsageError, did_you_mean
from koktok.files import read_utf8
from koktok.hangul import KS_X_1001, KS_X_1001_SIGNS, LETTERS
from koktok.model import special as styles
from koktok.model.definition import Definition
from koktok.model.special import DEFAULT_SPECIALS, NO_LIMIT, STYLES, RoleName, Side, StyleName, TemplateName
from koktok.model.vocab import BYTE_OF, BYTE_PIECES, KINDS, SPACE_MARK, UNKNOWN, WITH_UNKNOWN, Vocab, VocabKind
from koktok.text.normalize import Folds, JamoNormalizer, Normalizer
from koktok.text.patterns import ACROSS_SPACES, Published, PublishedPattern
from koktok.text.prefix import Prefix
from koktok.text.pretokenize import Pattern
from koktok.text.sources import MOST_WEIGHT

__all__ = [
    "Options",
    "PretokenizeRecipe",
    "Recipe",
    "SegmentRecipe",
    "SourceRecord",
    "SpecialRecipe",
    "TrainRecipe",
]

FORMAT: Final = 2
"""Version of the recipe and of the folder; a folder of another version is refused."""

FALLBACK_MODELS = ("unigram", "unigram-em", "bpe", "wordpiece", "syllable")
"""Models over characters, which may lack one; bytes lack none, and whole words are not spelled."""

BYTE_MODELS = tuple(kind for kind, row in KINDS.items() if row.bytewise)
"""Models whose pieces are spelled in bytes."""

SPM_MODELS = ("unigram", "bpe")
"""Models that the sentencepiece library can train with koktok's cuts."""

SELECTED_MODELS = ("unigram", "bpe", "bpe-bytes")
"""Models whose pieces are chosen under the cost: presets, targets and superwords are theirs."""

SPACED_MODELS = (*(model for model in get_args(VocabKind) if model not in WITH_UNKNOWN), "unigram-em")
"""Models that may have a space before the first word."""

PREFIXED_MODELS = ("unigram", "unigram-em", "bpe", "syllable", "jamo")
"""Models with a space before the first word by default: 1 % fewer tokens, and a word has the same pieces at any place in a text."""

PREFIXED_STYLES = ("bert", "roberta", "t5")
"""Families for tagging and extraction: transformers gets a text of them in words, `tokenizer(words, is_split_into_words=True)`."""

MOST_IDS = 10_000_000
"""Largest vocabulary: ten times the largest that models have, and what a gigabyte of memory holds."""

MOST_COST = 1e6
"""Largest cost: times a billion running tokens it is still an exact float. Only the proportions of costs matter."""

LONGEST_REQUIRED = 64
"""Characters of a required piece, as of any piece."""

LONGEST_SPECIAL = 256
"""Characters of a special token; those of known models have under 40."""

NAMED = {"ks-x-1001": ("".join(KS_X_1001), "".join(sorted(KS_X_1001_SIGNS)), "".join(LETTERS))}
"""Sets of characters that a list of required ones may name; the recipe records their characters."""

Script = Literal["hangul", "latin", "other"]

SCRIPTS: tuple[Script, ...] = get_args(Script)
"""Scripts of pieces, see `koktok.training.scripts`."""

Values = dict[str, Any]
Price = Literal["tokens", "bits"]
Group = Literal["josa", "eomi", "all"]
Preset = Literal["lm", "encoder", "aligned", "short"]
Model = Literal[VocabKind, "unigram-em"]

Cost = Annotated[float, Field(ge=0, le=MOST_COST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SomeShare = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Only:
    """The models that a field is for; `own`: and koktok's own trainers only. For others it has its plain default."""

    models: Collection[str]
    own: bool = False
    hint: str = "--model unigram --backend koktok"

    def check(self, name: str, value: Any, train: TrainRecipe) -> None:
        """Raise RecipeError if the model or the trainer is another one."""
        if train.model not in self.models or (self.own and train.backend != "koktok"):
            shown = f"`{name} = {value}`" if isinstance(value, str) else f"`{name}`"
            trainers = "koktok's own trainers of " * self.own
            backend = f" of the backend {train.backend}" * (self.own and train.backend != "koktok")
            raise RecipeError(
                f"{shown} is for {trainers}{', '.join(self.models)}, not for {train.model}{backend}", hint=self.hint
            )


SELECTED = Only(SELECTED_MODELS, own=True)
TARGET: Final = "target"
"""Marks the fields of which a recipe has at most one: a target, or the `nu` that a target would set."""

LearntFolder = Annotated[str, Field(pattern=r"^dpe:[^\x00-\x1f]+$")]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Options(_Section):
    """Settings beside the recipe; the docstring of a field is the help of its option."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            if isinstance(cause := first.get("ctx", {}).get("error"), KoktokError):
                raise cause from None
            name = ".".join(map(str, first["loc"][:1]))
            if first["type"] == "extra_forbidden":
                hint = did_you_mean(name, sorted(type(self).model_fields)) or ", ".join(type(self).model_fields)
                raise UsageError(f"{type(self).__name__} has no `{name}`", hint=hint) from None
            field, expected = type(self).model_fields[name], first["msg"].replace("Input should be", "expected")
            hint = f"{name}: {field.description}" if field.default is None else f"{name} = {field.default!r}"
            raise UsageError(f"`{name}`: {expected}, got {first['input']!r}", hint=hint) from None


class PretokenizeRecipe(_Section):
    """Pre-tokenization."""

    split: Literal["eojeol", "scripts"] = "eojeol"
    """Pre-tokenization, at white space or also between scripts. `eojeol` splits at white space only; `scripts` also between
    Hangul, Latin, digits, Han, kana and symbols."""
    digits: Literal["free", "single", "three"] = "single"
    """Numbers as runs of digits without signs, as single digits, or in groups of at most three digits from the left, as in the patterns of
    GPT-4 and Llama 3. By default `single`, which suits models that calculate, but `free` for the preset `encoder`."""
    pattern: Annotated[Literal["koktok", Published], Only(("bpe-bytes",), hint="--model bpe-bytes")] = "koktok"
    """For `bpe-bytes`: a published pattern in place of `split` and `digits`. It is identical to the published one, because fast
    runtimes recognize no other. By default `llama3`, but `koktok` where `split`, `digits` or superwords are given. Pieces may cross spaces
    with `superbpe` and `exaone-moe`, if superwords are given."""
    prefix_space: Annotated[bool, Only(SPACED_MODELS, hint="--no-prefix-space, or --model unigram")] = False
    """A space before the first word of a text, which decoding removes. The first word is then tokenized like any other, and a
    text passed as a list of words gets the ids of the running text. On for Unigram and BPE; off for byte-level BPE and
    WordPiece, as their runtimes expect."""


class SegmentRecipe(_Section):
    """The morphological analyser, and the boundaries that are used."""

    segmenter: (
        Literal["kiwi", "mecab", "okt", "komoran", "kkma", "hannanum", "khaiii", "soynlp", "whitespace"] | LearntFolder
    ) = "kiwi"
    """The morphological analyser. It is used during training only; `dpe:FOLDER` is a segmentation written by `koktok segment --learn`."""
    policy: str = "morphemes"
    """Boundaries to use: a named policy, kinds of boundary or Sejong tags, e.g. morphemes, josa, or j,e,vcp,xsv."""
    user_dictionary: str = ""
    """Kiwi's user dictionary: form TAB tag TAB score. The recipe stores the name of the file without its folder."""
    user_dictionary_sha256: Annotated[str, Field(pattern="^([0-9a-f]{16,64})?$")] = ""
    """SHA-256 of that file, or its first digits; set by the training, which refuses another file."""

    @field_validator("policy")
    @classmethod
    def _is_a_policy(cls, value: str) -> str:
        from koktok.segment.policy import Policy

        Policy.parse(value)
        return value


class TrainRecipe(_Section):
    """The model, and the training of its vocabulary."""

    model: Model = "unigram"
    """Model type. `unigram-em` is Unigram trained by EM, as in SentencePiece; `word` to `morpheme` are baselines."""
    backend: Annotated[Literal["koktok", "spm"], Only(SPM_MODELS, hint="--backend koktok")] = "koktok"
    """Trainer: koktok's own, or the sentencepiece library with koktok's cuts."""
    vocab_size: Annotated[int, Field(ge=1, le=MOST_IDS)] = 32_000
    """Vocabulary size, including 256 bytes, special and reserved tokens."""
    preset: Annotated[Preset, SELECTED] = "lm"
    """Unigram, BPE: for a language model, for an encoder, for nearly all boundaries, or for the fewest tokens. `lm`: the
    fewest bits of a small language model at equal compute that were measured, 8 to 12 % more tokens than SentencePiece with its default
    settings. `encoder`: more boundaries, so that spans can be marked. `aligned`: nearly all boundaries. `short`: the fewest tokens."""
    keep: Annotated[SomeShare | dict[Group, SomeShare] | None, SELECTED, TARGET] = None
    """Unigram, BPE: share of the boundaries before particles, before endings and of all that are token boundaries, e.g. 0.8, or
    josa=0.9,eomi=0.8; by default those of the preset. They are measured on the running text without punctuation, and `nu` is
    adjusted to reach them."""
    price: Annotated[Price, Only(SELECTED_MODELS, own=True, hint="--price tokens")] = "tokens"
    """Unigram, BPE: cost of a piece. One token each, or in bits: more for a rare piece, and for one that contains a boundary or a space, if its
    parts do not predict each other."""
    tokens_per_eojeol: Annotated[Positive | None, SELECTED, TARGET] = None
    """Unigram, BPE: target number of tokens per eojeol, e.g. 1.8, in place of `keep`."""
    lam: Annotated[Annotated[float, Field(ge=1 / MOST_COST, le=MOST_COST, allow_inf_nan=False)] | None, SELECTED] = None
    """Unigram, BPE: cost of a token. By default that of the preset."""
    mu: Annotated[Cost | None, SELECTED] = None
    """Unigram, BPE: cost of a cut inside a morpheme."""
    nu: Annotated[Cost | dict[str, Cost] | None, SELECTED, TARGET] = None
    """Unigram, BPE: cost of a morpheme boundary inside a piece. One number, or one for each kind of boundary; excludes a target."""
    superwords: Annotated[
        Share, Only(SELECTED_MODELS, own=True, hint=f"--superwords 0, or --model {' | '.join(SELECTED_MODELS)}")
    ] = 0.0
    """Unigram, BPE: maximum share of pieces that cross spaces (수 있, 에 대한), e.g. 0.3. They make 1 to 5 % fewer tokens, but the ids of
    a prompt then depend on the text after it, and pre-split words get other ids. Such pieces contain no cut inside a word."""
    inner_superwords: bool = False
    """Superwords may contain cuts inside a word (할 수 있는), at the same cost as other pieces."""
    blocklist: tuple[str, ...] = ()
    """Strings that no piece may contain, one per line. A word, `=word`, `!innocent word` or `/pattern/` (see `koktok.text.blocklist`)."""
    personal_data: Literal["keep", "drop"] = "drop"
    """Pieces that look like an address, a telephone number or a registration number. `keep` learns them, `drop` leaves them out."""
    junk: Literal["keep", "drop"] = "drop"
    """Pieces of web addresses and HTML entities, runs (of five of one character, or of three signs or jamo beside other text) and
    other repetitions. `keep` learns them; `drop` leaves them out, and learns nothing from addresses."""
    reserve_script: dict[Script, Share] = {}
    """Unigram, BPE: minimum share of pieces for a script, e.g. latin=0.3. For mixtures of languages; the other pieces are those that
    save most."""
    min_count: Annotated[int, Field(ge=0, le=10**12)] = 0
    """Minimum count of a word in training. With 0 all words are used; of very many distinct words the rare ones are sampled."""
    max_piece_length: Annotated[int, Field(ge=1, le=64)] = 12
    """Maximum length of a piece in characters. In Unigram, pieces without a Hangul syllable may be 5/3 as long."""
    character_coverage: SomeShare = 0.9995
    """Share of the characters of the text that have a piece of their own. The others become bytes."""
    ngram: Annotated[int, Field(ge=2, le=64)] = 2
    """Model `ngram`: longest n-gram."""
    required: Literal["none", "ks-x-1001", "auto"] | tuple[str, ...] = "auto"
    """Characters that must be pieces, as a named set or a file. `ks-x-1001`: its 2,350 syllables, 51 letters and 54 common signs;
    `auto`: those if the syllables take at most a sixth of the ids, else the letters and the syllables of everyday phrases; in a
    recipe also a list of strings with the characters, of which one may be `ks-x-1001`."""
    required_pieces: Annotated[
        tuple[str, ...], Only(SELECTED_MODELS, own=True, hint="--model unigram | bpe | bpe-bytes, --backend koktok")
    ] = ()
    """Unigram, BPE: strings that must be pieces, separated by white space. Where the pattern cuts numbers in groups of three, all groups of
    one to three digits are pieces besides, from 32,000 ids on and unless `required` is `none`."""
    specials: tuple[str, ...] = DEFAULT_SPECIALS
    """Special tokens, in the order of their ids. One with a role is ROLE=TOKEN (pad=<|blank|>; pad, unk, bos, eos, cls, sep, mask), if its
    spelling does not say it. WordPiece has a default of its own: `[PAD],[UNK],[CLS],[SEP],[MASK]`."""
    reserved: Annotated[int, Field(ge=0, le=MOST_IDS)] = 0
    """Number of reserved tokens, `<|reserved_0|>` and so on."""

    @field_validator("required")
    @classmethod
    def _are_characters(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(value, str):
            return value
        strings = tuple(string for item in value for string in NAMED.get(item, (item,)))
        wrong = next((c for c in "".join(strings) if not c.isprintable() or c in SPACE_MARK), None)
        if wrong is not None:
            raise RecipeError(f"`required`: {wrong!r} cannot be a piece", hint="--require ks-x-1001")
        return strings

    @field_validator("required_pieces")
    @classmethod
    def _can_be_pieces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = next(
            (s for s in value if not s.isprintable() or not s or SPACE_MARK in s or len(s) > LONGEST_REQUIRED), None
        )
        if wrong is not None:
            raise RecipeError(
                f"`required_pieces`: {wrong!r} cannot be a piece; expected 1 to {LONGEST_REQUIRED} printable characters",
                hint="--require-pieces FILE",
            )
        return value

    @field_validator("specials")
    @classmethod
    def _can_be_tokens(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value) or not all(value):
            raise ValueError("special tokens must be distinct and not empty")
        for token in value:
            _check_special(token)
        return value

    @field_validator("blocklist")
    @classmethod
    def _can_be_read(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from koktok.text.blocklist import Blocklist

        Blocklist(value)
        return value


class SpecialRecipe(_Section):
    """Special tokens: their roles, the template, and the settings of transformers.

    Nothing here changes a piece, so `koktok.tokenizer.restyle.restyle` changes it without a new training.
    """

    style: StyleName = "plain"
    """Model family that sets the special tokens, roles and template. `plain` has the usual tokens and adds none around a text."""
    template: TemplateName | None = None
    """Special tokens around a text. By default those of the style."""
    chat_template: str = ""
    """Chat template: `chatml`, `llama-3`, or a Jinja template."""
    roles: dict[RoleName, str] = {}
    """Special tokens whose role their spelling does not say, by role: `pad`, `unk`, `bos`, `eos`, `cls`, `sep`, `mask`."""
    eos: str = ""
    """Special token after a document (`encode --eos`). By default `eos_token`, but the end of a text where `eos_token` is the end of a turn."""
    model_max_length: Annotated[int, Field(ge=1, le=NO_LIMIT)] | None = None
    """Maximum input length in tokens. By default that of the style."""
    padding_side: Side | None = None
    """Side on which short texts are padded."""
    truncation_side: Side | None = None
    """Side on which long texts are truncated."""
    trim_offsets: bool = False
    """Offsets exclude the white space at the edges of a token, as RoBERTa's do. Whole-word masking in transformers then works on
    words. On for the styles bert and roberta, except for WordPiece, whose pieces contain no spaces."""
    pad_to_multiple: Annotated[int, Field(ge=1, le=4096)] = 1
    """Add reserved tokens until the size is a multiple of this, e.g. 64."""

    @field_validator("chat_template")
    @classmethod
    def _is_a_template(cls, value: str) -> str:
        styles.chat_template(value)
        return value


class SourceRecord(_Section):
    """A source of the training text."""

    name: str
    """Name of the source."""
    weight: Annotated[float, Field(gt=0, le=MOST_WEIGHT, allow_inf_nan=False)] = 1.0
    """Factor of its counts."""
    digest: str = ""
    """SHA-256 of its lines."""


class Recipe(_Section):
    r"""All settings of a training.

    Examples
    --------
    >>> recipe = Recipe.from_toml('[recipe.train]\nvocab_size = 8000')
    >>> recipe.train.vocab_size, recipe.normalize.zero_width
    (8000, True)
    >>> Recipe.from_toml('[recipe.train]\nvocab_sise = 8000')
    Traceback (most recent call last):
        ...
    koktok.errors.RecipeError: the recipe has the unknown key `train.vocab_sise`
    hint: did you mean `vocab_size`?
    """

    format: Literal[2] = FORMAT
    """Version of this layout."""
    normalize: Folds = Folds()
    pretokenize: PretokenizeRecipe = PretokenizeRecipe()
    segment: SegmentRecipe = SegmentRecipe()
    train: TrainRecipe = TrainRecipe()
    special: SpecialRecipe = SpecialRecipe()
    jamo: bool | Literal["fallback"] = False
    """Train on conjoining jamo.

    Syllables are decomposed after the analysis, and composed again by decode.

    Always on for the model `jamo`, whose pieces are single jamo. With `fallback` only
    syllables without a piece of their own become jamo (뎠 = 뎌 + ㅆ), in place of bytes or of an unknown token.
    """
    holdout: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.05
    """Share of lines held out for evaluation. In blocks of 50 lines, selected by hash."""
    sources: tuple[SourceRecord, ...] = ()
    """Sources of the training text; set by the training."""

    @field_validator("jamo", mode="before")
    @classmethod
    def _jamo_is_one_of_three(cls, value: Any) -> Any:
        if value not in (True, False, "fallback"):
            raise RecipeError(f'the recipe value `jamo` is {value!r}: expected true, false or "fallback"')
        return value

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, values: Any) -> Any:
        # Before validation, because a frozen recipe shows what it holds: the defaults are in koktok.toml.
        return resolve(values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _is_possible(self) -> Recipe:
        train, pretokenize, given = self.train, self.pretokenize, self._values()
        for name, only in ONLY.items():
            if given[name] != DEFAULTS[name]:
                only.check(name, given[name], train)
        if self.jamo == "fallback":
            Only(FALLBACK_MODELS, hint="--model unigram").check("jamo", "fallback", train)
        targets = [name for name in TARGETS if given[name] is not None]
        if len(targets) > 1:
            first, second = (f"--{name.replace('_', '-')}" for name in targets[:2])
            raise RecipeError(f"{first} and {second} set the same option", hint="one of them, not both")
        if train.model in WITH_UNKNOWN and not set(UNKNOWN) & set(train.specials):
            raise RecipeError(
                f"a {train.model} vocabulary needs one of the special tokens {', '.join(UNKNOWN)}",
                hint=f"--specials '{','.join((UNKNOWN[0], *train.specials))}'",
            )
        taken = len(train.specials) + train.reserved
        if train.reserved and taken >= train.vocab_size:  # without reserved tokens the trainer has a better message
            raise RecipeError(
                f"{taken:,} special tokens and reserved slots leave no id for a piece: `vocab_size` is {train.vocab_size:,}",
                hint=f"--vocab-size {taken + 8000}, or fewer --reserved",
            )
        read_as_bytes = [token for token in self.special_tokens if set(token) <= BYTE_OF.keys() and not token.isascii()]
        if train.model in BYTE_MODELS and read_as_bytes:
            raise RecipeError(
                f"the special token {read_as_bytes[0]} is spelled with GPT-2's letters for bytes alone, and Hugging Face decodes "
                "it to other text",
                hint="--specials with one of ASCII, or --model bpe",
            )
        if self.spelled and train.superwords:
            raise RecipeError("`superwords` are for pieces of syllables, not of jamo", hint="--superwords 0")
        if self.jamo and train.required_pieces:
            raise RecipeError("`required_pieces` are pieces of syllables, not of jamo", hint="--no-jamo")
        if train.inner_superwords and not train.superwords:
            raise RecipeError("`inner_superwords` requires `superwords`", hint="--superwords 0.4")
        if pretokenize.pattern not in ("koktok", *ACROSS_SPACES) and train.superwords:
            raise RecipeError(
                f"the pattern {pretokenize.pattern} cuts at every space, so there are no superwords",
                hint=f"--superwords 0, or --pattern {' | '.join(ACROSS_SPACES)}",
            )
        if pretokenize.pattern != "koktok" and (pretokenize.split, pretokenize.digits) != ("eojeol", "single"):
            raise RecipeError(
                f"the pattern {pretokenize.pattern} itself decides where words and digits are cut",
                hint="--split and --digits left out",
            )
        named = (*self.special.roles.values(), self.special.eos)
        if strange := [token for token in named if token and token not in self.special_tokens]:
            raise RecipeError(
                f"`{strange[0]}` has a role, and is no special token; there are {', '.join(self.special_tokens)}",
                hint=f"--specials '{','.join((*train.specials, strange[0]))}'",
            )
        try:
            self.style_for(self.special_tokens).around(pair=True)
        except ArtifactError as error:
            raise RecipeError(error.message, error.hint) from None
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # pydantic would pickle a set of names, whose order depends on the process.
        return type(self).model_validate_json, (self.model_dump_json(),)

    @property
    def spelled(self) -> bool:
        """Whether all pieces are spelled in conjoining jamo."""
        return self.jamo is True

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """Special tokens, reserved slots and the last tokens of a style, in the order of their ids."""
        tail = STYLES[self.special.style].tail
        head = tuple(token for token in self.train.specials if token not in tail)
        return (*head, *styles.reserved_slots(self.train.reserved), *tail)

    def style_for(self, specials: tuple[str, ...]) -> styles.Style:
        """The style of a vocabulary with these special tokens, see `koktok.model.special`."""
        settings = self.special.model_dump(exclude={"style", "chat_template", "pad_to_multiple"})
        return styles.style_for(self.special.style, specials, chat=self.special.chat_template, **settings)

    @property
    def normalizer(self) -> Normalizer:
        """The normalizer of text before the analysis; see `normalizer_for`."""
        return Normalizer(self.normalize)

    def normalizer_for(self, vocab: Vocab) -> Normalizer:
        """The normalizer of a tokenizer with this vocabulary, which decomposes syllables with `jamo`."""
        if not self.jamo:
            return self.normalizer
        whole = vocab.whole_characters if self.jamo == "fallback" else ()
        return JamoNormalizer(self.normalize, whole)

    def prefix_for(self, vocab: Vocab) -> Prefix:
        """The place of the space before the first word, see `koktok.text.prefix`."""
        if not self.pretokenize.prefix_space:
            return ""
        return "each" if vocab.bytewise or not vocab.n_bytes else "first"

    @property
    def pattern(self) -> Pattern:
        """The pattern of pretokens; superwords cross spaces, see `Pattern.within_words`."""
        chosen = self.pretokenize
        if chosen.pattern != "koktok":
            return PublishedPattern(name=chosen.pattern)
        return Pattern(split=chosen.split, digits=chosen.digits, superwords=self.train.superwords > 0)

    def definition_for(self, vocab: Vocab) -> Definition:
        """What turns text into ids of this vocabulary, and back."""
        style = self.style_for(vocab.specials)
        return Definition(vocab, self.normalizer_for(vocab), self.pattern, self.prefix_for(vocab), style)

    @classmethod
    def build(cls, values: Mapping[str, Any]) -> Recipe:
        """Build a recipe from plain nested values.

        Parameters
        ----------
        values : mapping

        Raises
        ------
        RecipeError
            For an unknown key or an impossible value; names the key, what came and what is allowed.
        """
        if not isinstance(values, Mapping):
            raise RecipeError(f"expected the values of a recipe as a mapping, got a {type(values).__name__}")
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise _explained(error) from None
        except UnicodeEncodeError as error:
            raise RecipeError(f"a value of the recipe holds a lone surrogate: {error.object[:40]!r}") from None

    @classmethod
    def from_toml(cls, text: str) -> Recipe:
        """The `[recipe]` table of a TOML text; `[signature]` and `[vocabulary]` beside it are ignored.

        Raises
        ------
        RecipeError
            When the text is not TOML, holds other tables, or the recipe is wrong.
        """
        if not isinstance(text, str):
            raise RecipeError(f"expected TOML, got a {type(text).__name__}", hint="Recipe.load(FILE)")
        try:
            table = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else error
            raise RecipeError(f"the recipe is not TOML: {why}") from None
        strange = sorted(table.keys() - {"recipe", "signature", "vocabulary"})
        if strange:
            raise RecipeError(f"the recipe file has the unknown table `{strange[0]}`", hint="[recipe]")
        return cls.build(table.get("recipe", {}))

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """The recipe of a file, or of a trained folder.

        Raises
        ------
        RecipeError
            When it cannot be read.
        """
        if not isinstance(path, str | os.PathLike):
            raise RecipeError(f"expected the path of a recipe, got {path!r}")
        file = Path(path)
        try:
            file = file / "koktok.toml" if file.is_dir() else file
            text = read_utf8(file, "a recipe", "")
        except ArtifactError as error:
            raise RecipeError(f"no recipe: {error.message}", hint=error.hint) from error
        except (OSError, ValueError) as error:
            raise RecipeError(f"the recipe `{file}` cannot be read: {error}") from error
        return cls.from_toml(text)

    def to_toml(self, signature: Mapping[str, Any] | None = None) -> str:
        """The recipe as TOML, every default spelled out, with an optional `[signature]` table."""
        import tomli_w

        table: dict[str, Any] = {"recipe": self.model_dump(mode="json", exclude_none=True)}  # TOML has no null
        if signature is not None:
            table["signature"] = dict(signature)
        return tomli_w.dumps(table)

    def changed(self, **changes: Any) -> Recipe:
        """A copy with some values replaced, by name, or those of a section as a mapping; values of None change nothing.

        What follows from the changed values changes with them: the pattern of pretokens with the model, the special tokens with
        the style. Another target, or a preset, takes the place of the old target.

        Raises
        ------
        RecipeError
            As `build`.

        Examples
        --------
        >>> Recipe().changed(train={"vocab_size": 8000, "model": None}, holdout=0.1).train.vocab_size
        8000
        >>> Recipe().changed(vocab_size=8000, digits="free").pretokenize.digits
        'free'
        """
        new: Values = {}
        for name, value in changes.items():
            fields = _plain(value) if name in SECTIONS else {name: value}
            if fields is None or (name in SECTIONS and any(SECTION_OF.get(field) != name for field in fields)):
                return self.build({name: value})  # whose error names what is wrong
            new.update(fields)
        new = {name: value for name, value in new.items() if value is not None}
        given = self.given | new
        if not new.keys().isdisjoint(("preset", *TARGETS)):
            given = {name: value for name, value in given.items() if name in new or name not in TARGETS}
        if given.get("segmenter", "kiwi") != "kiwi" and "user_dictionary" not in new:
            given |= {"user_dictionary": "", "user_dictionary_sha256": ""}
        if "specials" not in new and _can_resolve(given):
            before, after = (
                (of["style"], of["model"], of["chat_template"]) for of in (self._values(), DEFAULTS | given)
            )
            given["specials"] = styles.changed(self.train.specials, before, after)
        if _are_strings(given.get("specials")):  # who changes the tokens leaves the roles of those that are gone
            kept, old = styles.named_roles(given["specials"])[0], self.special
            there = {"roles": {role: token for role, token in old.roles.items() if token in kept}}
            given |= {**there, "eos": old.eos if old.eos in kept else ""} | new
        return self.build(_by_table(given))

    @property
    def given(self) -> Values:
        """The fields that differ from their defaults, by name: from them `resolve` makes the others."""
        values = self._values()
        return {name: value for name, value in values.items() if value != _default(name, values, ())}

    def _values(self) -> Values:
        """All fields by name."""
        values = self.model_dump()
        return {name: values[section][name] for name, section in SECTION_OF.items()} | {
            name: value for name, value in values.items() if name not in SECTIONS
        }


# ── defaults ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Rule:
    """A default other than the plain one of a field: its value, and the recipes it is for.

    `applies` takes the values of all fields by name, as far as the rules above have resolved them, and the names of those
    that were given.
    """

    field: str
    default: Any
    applies: Callable[[Values, Collection[str]], bool]


def _has_own_trainer(values: Values) -> bool:
    return values["model"] in SELECTED_MODELS and bool(values["backend"] == "koktok")


RULES = (
    Rule(
        "prefix_space",
        True,
        lambda v, _: (
            v["model"] in PREFIXED_MODELS or (v["style"] in PREFIXED_STYLES and v["model"] not in WITH_UNKNOWN)
        ),
    ),
    Rule(
        "split",
        "scripts",
        lambda v, _: _has_own_trainer(v) and (v["model"], v["preset"]) == ("unigram", "aligned"),
    ),
    Rule("price", "bits", lambda v, _: _has_own_trainer(v)),
    Rule(
        "pattern",
        "llama3",  # it replaces `split` and `digits`, and no piece crosses a space
        lambda v, given: (
            v["model"] == "bpe-bytes"
            and not v["superwords"]
            and (v["split"], v["digits"]) == ("eojeol", "single")
            and not {"split", "digits"} & {*given}
        ),
    ),
    Rule(
        "digits",
        "free",  # as good in boundaries and tokens, and more answers that are numbers (eval/log/046)
        lambda v, _: _has_own_trainer(v) and (v["preset"], v["pattern"]) == ("encoder", "koktok"),
    ),
    Rule("zero_width", False, lambda v, _: v["pattern"] != "koktok"),  # published patterns have no fold
    Rule(
        "trim_offsets",
        True,
        lambda v, _: v["style"] in STYLES and STYLES[v["style"]].trim_offsets and v["model"] != "wordpiece",
    ),
)
"""Defaults that depend on other fields, in the order in which they are resolved."""


def _default(name: str, values: Values, given: Collection[str]) -> Any:
    """The default of a field."""
    rules = (rule.default for rule in RULES if rule.field == name and rule.applies(values, given))
    return next(rules, DEFAULTS[name])


def resolve(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values of a recipe, table by table, with a value for each field; unchanged where a field or table refuses them."""
    tables = {name: table for name in SECTIONS if (table := _plain(values.get(name, {}))) is not None}
    given = {name: value for table in tables.values() for name, value in table.items() if name in DEFAULTS}
    if tables.keys() != SECTIONS.keys() or not _can_resolve(given):
        return values
    whole = DEFAULTS | given
    for rule in RULES:
        if rule.field not in given:
            whole[rule.field] = _default(rule.field, whole, given)
    if _are_strings(whole["specials"]) and isinstance(whole["roles"], Mapping):
        whole["specials"], named = styles.named_roles(whole["specials"])
        whole["roles"] = {**whole["roles"], **named}
    style, chat, specials = whole["style"], whole["chat_template"], whole["specials"]
    if style in STYLES and ((style, chat) != ("plain", "") or specials in (DEFAULT_SPECIALS, [*DEFAULT_SPECIALS])):
        whole["specials"] = styles.joined(specials, style, whole["model"], chat)
    whole["jamo"] = whole["model"] == "jamo" or values.get("jamo", False)
    resolved = _by_table(whole)
    return {**resolved, **values, "jamo": whole["jamo"], **{name: tables[name] | resolved[name] for name in SECTIONS}}


def _are_strings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _can_resolve(given: Values) -> bool:
    """Whether the fields on which others depend are of the right type."""
    names = ("model", "backend", "preset", "style", "chat_template")
    return all(isinstance(given.get(name, ""), str) for name in names)


def _by_table(values: Values) -> Values:
    """Fields by name as the tables of a recipe."""
    tables: Values = {}
    for name, value in values.items():
        if section := SECTION_OF.get(name):
            tables.setdefault(section, {})[name] = value
        else:
            tables[name] = value
    return tables


def _plain(section: Any) -> Values | None:
    """A section as a mapping, whether it came as one or as a model; None for anything else."""
    if isinstance(section, BaseModel):
        return section.model_dump()
    if isinstance(section, Folds):
        return asdict(section)
    return dict(section) if isinstance(section, Mapping) else None


SECTIONS: dict[str, type] = {
    name: field.annotation
    for name, field in Recipe.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, _Section | Folds)
}
"""The tables of a recipe."""

SECTION_OF: dict[str, str] = {
    name: section for section, of in SECTIONS.items() for name in inspect.signature(of).parameters
}
"""Fields by their own name, which no two sections share, to the section that holds them."""

DEFAULTS: Values = {name: value for of in SECTIONS.values() for name, value in (_plain(of()) or {}).items()} | {
    name: field.default for name, field in Recipe.model_fields.items() if name not in SECTIONS
}
"""The plain defaults of all fields by name."""

_MARKS = {name: field.metadata for of in (TrainRecipe, PretokenizeRecipe) for name, field in of.model_fields.items()}
ONLY = {name: mark for name, marks in _MARKS.items() for mark in marks if isinstance(mark, Only)}
TARGETS = tuple(name for name, marks in _MARKS.items() if TARGET in marks)


def _check_special(token: str) -> None:
    """Refuse a special token that a reader of the files would misinterpret or could not write."""
    strange = next((char for char in token if unicodedata.category(char) in ("Cc", "Cs")), "")
    if strange:
        raise RecipeError(
            f"the special token {token[:40]!r} holds the control character U+{ord(strange):04X}; expected visible text",
            hint="--specials '<unk>,<s>,</s>'",
        )
    if len(token) > LONGEST_SPECIAL:
        raise RecipeError(
            f"expected special tokens of at most {LONGEST_SPECIAL} characters, got one of {len(token):,}",
            hint="--specials '<unk>,<s>,</s>'",
        )
    if token in BYTE_PIECES:
        raise RecipeError(
            f"the special token {token} is spelled like the byte piece of SentencePiece and Hugging Face",
            hint=f"--specials '{token.replace('0x', 'byte_')}'",
        )


def _explained(error: ValidationError) -> RecipeError:
    """Translate the first error of pydantic into a RecipeError."""
    first, *others = error.errors()
    if isinstance(first["input"], Mapping) and others and others[0]["loc"][:-2] == first["loc"][:-1]:
        first = others[0]  # of a number or a mapping, the mapping was meant
    key = ".".join(str(part) for part in first["loc"] if not re.match(r"constrained-|literal\[|dict\[", str(part)))
    if key == "format":
        message = f"the recipe's `format` is {first['input']!r}, and this koktok reads format {FORMAT}"
        return RecipeError(message, hint=f"format = {FORMAT}, and the options of `koktok train --help`")
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        keys = sorted(_keys())
        hint = did_you_mean(str(first["loc"][-1]), keys) or f"the keys are {', '.join(keys)}"
        return RecipeError(f"the recipe has the unknown key `{key}`", hint=hint)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, KoktokError):
        return RecipeError(cause.message, cause.hint)
    values = re.findall(r"'([^']+)'", str(first.get("ctx", {}).get("expected", "")))
    hint = did_you_mean(str(first["input"]), values)
    return RecipeError(f"the recipe value `{key}` is {first['input']!r}: {first['msg'].lower()}", hint=hint)


def _keys() -> set[str]:
    return {*SECTION_OF, *SourceRecord.model_fields, *Recipe.model_fields}
