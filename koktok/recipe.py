"""`Recipe`: everything that changes the artifact and nothing that does not (no threads, no paths, no progress).

The file koktok.toml of a trained folder holds the recipe and, beside it, the signature: what was read and which
libraries ran. `--recipe koktok.toml` takes the first and ignores the second.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from koktok import special as styles
from koktok.errors import ArtifactError, KoktokError, RecipeError, UsageError, did_you_mean
from koktok.special import DEFAULT_SPECIALS, NO_LIMIT, STYLES, WORDPIECE_SPECIALS, Side, StyleName, TemplateName
from koktok.text.normalize import Folds, JamoNormalizer, Normalizer
from koktok.text.patterns import Published, PublishedPattern
from koktok.text.prefix import Prefix
from koktok.text.pretokenize import Pattern
from koktok.text.sources import MOST_WEIGHT
from koktok.vocab import BYTE_PIECES, FORBIDDEN, UNKNOWN, WITH_UNKNOWN, ModelKind, Vocab

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
"""Version of the recipe; a folder of a newer version is refused, an older one is read for ever."""

FALLBACK_MODELS = ("unigram", "unigram-em", "bpe", "wordpiece", "syllable")
"""Models over characters, which may lack one; bytes lack none, and whole words are not spelled."""

SPM_MODELS = ("unigram", "bpe")
"""What the sentencepiece library can train for us."""

WIDE_MODELS = ("unigram", "bpe", "bpe-bytes")
"""Models whose pieces may cross spaces."""

TARGETS = ("keep", "tokens_per_eojeol", "nu", "share")
"""What a preset stands for one of: a target, or the `nu` (of Unigram) or the `share` (of BPE) that is found for a target."""

DIALS = {"unigram": "nu", "bpe": "share", "bpe-bytes": "share"}
"""Models whose own trainer meets a target, and the option that it finds for it."""

PREFIXED_MODELS = ("unigram", "unigram-em", "bpe", "syllable", "jamo")
"""Models with a space before the first word by default: 1 % fewer tokens, and a word is cut alike wherever it stands."""

WIDE_PRESETS = ("lm", "encoder", "short")
"""Presets whose pieces may cross spaces by default."""

PREFIXED_STYLES = ("bert", "roberta", "t5")
"""Families that tag and extract: transformers gets a text of them in words, `tokenizer(words, is_split_into_words=True)`."""

MOST_IDS = 10_000_000
"""Largest vocabulary: ten times the largest that models have, and what a gigabyte of memory holds."""

MOST_COST = 1e6
"""Largest cost: times a billion running tokens it is still an exact float. Only the proportions of costs matter."""

LONGEST_SPECIAL = 256
"""Characters of a special token; those of known models have under 40."""

Script = Literal["hangul", "latin", "other"]

SCRIPTS: tuple[Script, ...] = get_args(Script)
"""What pieces are told by, see `koktok.training.unigram`."""

Price = Literal["tokens", "bits"]
Group = Literal["josa", "eomi", "all"]

Cost = Annotated[float, Field(ge=0, le=MOST_COST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
SomeShare = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
"""A share that cannot be nothing."""


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
    digits: Literal["free", "single"] = "single"
    """Numbers as any other text, or split into single digits."""
    pattern: Literal["koktok", Published] = "koktok"
    """For `bpe-bytes`: a published pattern in place of `split` and `digits`. It is identical to the published one, because fast
    runtimes recognize no other. By default `llama3`, but `koktok` where `split`, `digits` or superwords are given."""
    prefix_space: bool = False
    """A space before the first word of a text, which decoding removes. The first word is then tokenized like any other, and a
    text passed as a list of words gets the ids of the running text. On for Unigram and BPE; off for byte-level BPE and
    WordPiece, as their runtimes expect."""


class SegmentRecipe(_Section):
    """The morphological analyser, and the boundaries that are used."""

    segmenter: (
        Literal["kiwi", "mecab", "okt", "komoran", "kkma", "hannanum", "khaiii", "soynlp", "whitespace"] | LearntFolder
    ) = "kiwi"
    """The analyser, used during training only. `dpe:FOLDER` is a segmentation written by `koktok segment --learn`."""
    policy: str = "morphemes"
    """Boundaries to use: a named policy, kinds of boundary or Sejong tags, e.g. morphemes, josa, or j,e,vcp,xsv."""
    mass: SomeShare = 1.0
    """Share of the running words that is analysed, frequent words first. The other words are cut by the endings of the
    analysed ones."""
    user_dictionary: str = ""
    """Kiwi's user dictionary: form TAB tag TAB score. The recipe stores the name of the file without its folder."""
    user_dictionary_sha256: Annotated[str, Field(pattern="^([0-9a-f]{16,64})?$")] = ""
    """SHA-256 of that file, or its first digits; set by the training, which refuses another file."""


class TrainRecipe(_Section):
    """The model, and the training of its vocabulary."""

    model: Literal[ModelKind, "unigram-em"] = "unigram"
    """Model type. `unigram-em` is Unigram trained by EM, as in SentencePiece; `word` to `morpheme` are baselines."""
    backend: Literal["koktok", "spm"] = "koktok"
    """Trainer: koktok's own, or the sentencepiece library with koktok's cuts."""
    vocab_size: Annotated[int, Field(ge=1, le=MOST_IDS)] = 32_000
    """Vocabulary size, including 256 bytes, special and reserved tokens."""
    preset: Literal["lm", "encoder", "aligned", "short"] = "lm"
    """Unigram, BPE: for a language model, for an encoder, or for the most accurate boundaries. `lm`: as few tokens as SentencePiece
    makes. `encoder`: 10 % more, so that spans can be marked. `aligned`: nearly all boundaries."""
    keep: SomeShare | dict[Group, SomeShare] | None = None
    """Unigram, BPE: share of the boundaries before particles, before endings and of all that are token boundaries, e.g. 0.8, or
    josa=0.9,eomi=0.8; by default those of the preset. They are measured on the running text without punctuation, and `nu` or `share` is
    adjusted to reach them."""
    price: Price = "tokens"
    """Unigram: cost of a piece. One token each, or in bits: more for a rare piece, and for one that swallows a boundary or a space,
    the less its parts have in common."""
    tokens_per_eojeol: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Unigram, BPE: target number of tokens per eojeol, e.g. 1.8, in place of `keep`."""
    lam: Annotated[float, Field(ge=1 / MOST_COST, le=MOST_COST, allow_inf_nan=False)] | None = None
    """Unigram: cost of a token. By default that of the preset."""
    mu: Cost | None = None
    """Unigram: cost of a cut inside a morpheme."""
    nu: Cost | dict[str, Cost] | None = None
    """Unigram: cost of a morpheme boundary inside a piece. One number, or one for each kind of boundary; excludes a target."""
    superwords: Share = 0.0
    """Unigram, BPE: maximum share of pieces that cross spaces (수 있, 는 것 같). Such pieces contain no cut inside a word. By
    default 0.3 in Unigram's presets but `aligned`, otherwise 0."""
    inner_superwords: bool = False
    """Superwords may contain cuts inside a word (할 수 있는), at the same cost as other pieces."""
    blocklist: tuple[str, ...] = ()
    """Strings that no piece may contain, one per line. A word, `=word`, `!innocent word` or `/pattern/` (see `koktok.text.blocklist`)."""
    personal_data: Literal["keep", "drop"] = "drop"
    """Pieces that look like an address, a telephone number or a registration number. Learned, or left out."""
    junk: Literal["keep", "drop"] = "drop"
    """Pieces of web addresses and HTML entities, runs (of five of one character, or of three signs or jamo beside other text) and
    other repetitions. Learned, or left out; nothing is learned from addresses then."""
    reserve_script: dict[Script, Share] = {}
    """Unigram: minimum share of pieces for a script, e.g. latin=0.3. For mixtures of languages; the other places go to the pieces
    that save most."""
    share: Share | None = None
    """BPE: share of the merges that are learned inside morphemes, in place of a preset or target. The others may join morphemes
    of one eojeol."""
    min_count: Annotated[int, Field(ge=0, le=10**12)] = 0
    """Minimum count of a word in training. With 0 all words are used; of very many distinct words the rare ones are sampled."""
    max_piece_length: Annotated[int, Field(ge=1, le=64)] = 12
    """Maximum length of a piece in characters. In Unigram, pieces without a Hangul syllable may be 5/3 as long."""
    character_coverage: SomeShare = 0.9995
    """Share of the characters of the text that have a piece of their own. The others become bytes."""
    ngram: Annotated[int, Field(ge=2, le=64)] = 2
    """Model `ngram`: longest n-gram."""
    required: Literal["none", "ks-x-1001", "auto"] | tuple[str, ...] = "auto"
    """Characters that must be pieces, as a named set or a file. `ks-x-1001`: its 2,350 syllables and 54 common signs; `auto`: those if
    the syllables take at most a sixth of the ids, else those of everyday phrases; in a recipe also a list of strings with the
    characters."""
    specials: tuple[str, ...] = DEFAULT_SPECIALS
    """Special tokens, in the order of their ids. WordPiece has a default of its own: `[PAD],[UNK],[CLS],[SEP],[MASK]`."""
    reserved: Annotated[int, Field(ge=0, le=MOST_IDS)] = 0
    """Number of reserved tokens, `<|reserved_0|>` and so on."""

    @model_validator(mode="before")
    @classmethod
    def _specials_of_wordpiece(cls, values: Any) -> Any:
        # Before validation, because a frozen recipe shows what it holds: the resolved default stands in koktok.toml.
        if not isinstance(values, Mapping) or values.get("model") not in ("wordpiece", "wordpiece-bytes"):
            return values
        usual = values.get("specials", DEFAULT_SPECIALS) in (DEFAULT_SPECIALS, [*DEFAULT_SPECIALS])
        return {**values, "specials": WORDPIECE_SPECIALS} if usual else values

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        values = {("price" if name == "superword_price" else name): value for name, value in values.items()}
        return {**values, "preset": "lm"} if values.get("preset") == "balanced" else values

    @model_validator(mode="before")
    @classmethod
    def _share_of_bpe(cls, values: Any) -> Any:
        # Older recipes name one with every model.
        if isinstance(values, Mapping) and "share" in values and DIALS.get(values.get("model", "unigram")) != "share":
            return {name: value for name, value in values.items() if name != "share"}
        return values

    @model_validator(mode="after")
    def _leaves_ids_to_pieces(self) -> TrainRecipe:
        taken = len(self.specials) + self.reserved
        if self.reserved and taken >= self.vocab_size:  # without them the trainer says what the text wants
            raise RecipeError(
                f"{taken:,} special tokens and reserved slots leave no id for a piece: `vocab_size` is {self.vocab_size:,}",
                hint=f"--vocab-size {taken + 8000}, or fewer --reserved",
            )
        return self

    @model_validator(mode="after")
    def _preset_is_heard(self, info: ValidationInfo) -> TrainRecipe:
        # A folder of an older koktok may hold a preset that its model never heard; it loads for ever.
        usual = type(self).model_fields["preset"].default
        heard = self.model in DIALS and self.backend == "koktok"
        if self.preset != usual and not heard and not (info.context or {}).get("stored"):
            raise RecipeError(
                f"`preset` is for koktok's own trainers of {', '.join(DIALS)}, not for {self.model} of the backend {self.backend}",
                hint="--model unigram --backend koktok",
            )
        return self

    @model_validator(mode="after")
    def _fits_the_model(self) -> TrainRecipe:
        if self.backend == "spm" and self.model not in SPM_MODELS:
            raise RecipeError(
                f"the sentencepiece library trains {' and '.join(SPM_MODELS)} here, not {self.model}",
                hint="--backend koktok",
            )
        self._has_one_target()
        if self.model in WITH_UNKNOWN and not set(UNKNOWN) & set(self.specials):
            raise RecipeError(
                f"a {self.model} vocabulary wants one of the special tokens {', '.join(UNKNOWN)}",
                hint=f"--specials {','.join((UNKNOWN[0], *self.specials))}",
            )
        return self

    @field_validator("required")
    @classmethod
    def _are_characters(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        wrong = [] if isinstance(value, str) else [c for c in "".join(value) if not c.isprintable() or c in FORBIDDEN]
        if wrong:
            raise RecipeError(f"{wrong[0]!r} can be no piece, and `required` asks for it", hint="--require ks-x-1001")
        return value

    def _has_one_target(self) -> None:
        """Refuse targets that exclude each other, and those of a trainer that has none."""
        names = ("keep", "tokens_per_eojeol", DIALS.get(self.model, "keep"))
        given = [name for name in dict.fromkeys(names) if getattr(self, name) is not None]
        if len(given) > 1:
            first, second = (f"--{name.replace('_', '-')}" for name in given[:2])
            raise RecipeError(f"{first} and {second} set the same option", hint="one of them, not both")
        aimed = self.model in DIALS and self.backend == "koktok"
        if given and given[0] in names[:2] and not aimed:
            raise RecipeError(
                f"`{given[0]}` is for koktok's own trainers of {', '.join(DIALS)}, not for {self.model}",
                hint="--model unigram --backend koktok",
            )


class SpecialRecipe(_Section):
    """Special tokens: their roles, the template, and the settings of transformers.

    Nothing here changes a piece, so `koktok.formats.styles.restyle` changes it without a new training.
    """

    style: StyleName = "plain"
    """Model family that sets the special tokens, roles and template. `plain` has the usual tokens and adds none around a text."""
    template: TemplateName | None = None
    """Special tokens around a text. By default those of the style."""
    chat_template: str = ""
    """Chat template: `chatml`, `llama-3`, or a Jinja template."""
    model_max_length: Annotated[int, Field(ge=1, le=NO_LIMIT)] | None = None
    """Maximum input length in tokens. By default that of the style."""
    padding_side: Side | None = None
    """Side on which short texts are padded."""
    truncation_side: Side | None = None
    """Side on which long texts are truncated."""
    trim_offsets: bool = False
    """Offsets exclude the white space at the edges of a token, as RoBERTa's do. Whole-word masking in transformers then works on
    words. On where `Recipe.changed` sets the style bert or roberta, except for WordPiece, whose pieces contain no spaces."""
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

    format: Literal[1, 2] = FORMAT
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
            raise RecipeError(f'the recipe value `jamo` is {value!r}: wanted true, false or "fallback"')
        return value

    @field_validator("train")
    @classmethod
    def _specials_can_be_tokens(cls, value: TrainRecipe, info: ValidationInfo) -> TrainRecipe:
        if len(set(value.specials)) != len(value.specials) or not all(value.specials):
            raise ValueError("special tokens must be distinct and not empty")
        if not (info.context or {}).get(
            "stored"
        ):  # what an older koktok took is in its folders, and these load for ever
            for token in value.specials:
                _check_special(token)
        return value

    @model_validator(mode="before")
    @classmethod
    def _jamo_model_reads_jamo(cls, values: Any) -> Any:
        train = values.get("train") if isinstance(values, Mapping) else None
        if isinstance(train, Mapping) and train.get("model") == "jamo":
            return {**values, "jamo": True}
        return values

    @model_validator(mode="before")
    @classmethod
    def _usual_values(cls, values: Any) -> Any:
        # Before validation, so that koktok.toml shows them. Format 1 had none but what it says.
        if not isinstance(values, Mapping) or values.get("format") == 1:
            return values
        for (section, name), value in usual(values).items():
            fields = values.get(section, {})  # what is no table stays as it came, and its field says what is wrong
            if (section, name) != TRIMMED and isinstance(fields, Mapping) and name not in fields:
                values = {**values, section: {**fields, name: value}}
        return values

    @model_validator(mode="before")
    @classmethod
    def _pattern_of_the_model(cls, values: Any) -> Any:
        # Runs before `_usual_values`, which names the split: pydantic begins with the last one.
        if not isinstance(values, Mapping):
            return values
        space, train = _plain(values.get("pretokenize", {})), _plain(values.get("train", {}))
        if {"pattern", "split", "digits"} & space.keys() or values.get("format") == 1 or _pattern(train) == "koktok":
            return values
        return {"normalize": {"zero_width": False}, **values, "pretokenize": {**space, "pattern": _pattern(train)}}

    @model_validator(mode="before")
    @classmethod
    def _specials_of_the_style(cls, values: Any) -> Any:
        # Before validation, so that koktok.toml shows the special tokens that there are.
        if not isinstance(values, Mapping):
            return values
        special, train = _plain(values.get("special", {})), _plain(values.get("train", {}))
        name, chat = special.get("style", "plain"), special.get("chat_template", "")
        known = isinstance(name, str) and isinstance(chat, str) and name in STYLES  # else the fields say what is wrong
        if not known or (name, chat) == ("plain", ""):
            return values
        given = train.get("specials", DEFAULT_SPECIALS)
        specials = styles.joined(given, name, train.get("model", "unigram"), chat)
        return {**values, "special": special, "train": {**train, "specials": specials}}

    @model_validator(mode="after")
    def _template_has_its_tokens(self) -> Recipe:
        try:
            self.style_for(self.special_tokens).around(pair=True)
        except ArtifactError as error:
            raise RecipeError(error.message, error.hint) from None
        return self

    @model_validator(mode="after")
    def _published_pattern_is_possible(self) -> Recipe:
        chosen = self.pretokenize
        if chosen.pattern == "koktok":
            return self
        name = f"the pattern {chosen.pattern}"
        if self.train.model != "bpe-bytes":
            raise RecipeError(f"{name} is for byte-level BPE, not for {self.train.model}", hint="--model bpe-bytes")
        if self.train.superwords:
            raise RecipeError(f"{name} cuts at every space, so there are no superwords", hint="--superwords 0")
        if (chosen.split, chosen.digits) != ("eojeol", "single"):
            raise RecipeError(
                f"{name} says by itself where words and digits are cut", hint="--split and --digits left out"
            )
        return self

    @model_validator(mode="after")
    def _a_space_can_be_in_pieces(self) -> Recipe:
        if self.pretokenize.prefix_space and self.train.model in WITH_UNKNOWN:
            raise RecipeError(
                f"a {self.train.model} vocabulary reads whole words and has no space before the first",
                hint="--no-prefix-space, or --model unigram",
            )
        return self

    @model_validator(mode="after")
    def _superwords_are_possible(self) -> Recipe:
        fits = self.train.model in WIDE_MODELS and self.train.backend == "koktok" and not self.spelled
        if self.train.superwords and not fits:
            raise RecipeError(
                "superwords are for koktok's own unigram and BPE on syllables",
                hint=f"--superwords 0, or --model {' | '.join(WIDE_MODELS)}",
            )
        if self.train.inner_superwords and not self.train.superwords:
            raise RecipeError("inner superwords are superwords, and there are none", hint="--superwords 0.4")
        if self.train.price == "bits" and (self.train.model, self.train.backend) != ("unigram", "koktok"):
            raise RecipeError("a price in bits is for koktok's own unigram trainer", hint="--price tokens")
        return self

    @field_validator("train")
    @classmethod
    def _blocklist_can_be_read(cls, value: TrainRecipe) -> TrainRecipe:
        from koktok.text.blocklist import Blocklist

        try:
            Blocklist(value.blocklist)
        except KoktokError as error:
            raise RecipeError(error.message, error.hint) from None
        return value

    @model_validator(mode="after")
    def _fallback_has_a_use(self) -> Recipe:
        if self.jamo == "fallback" and self.train.model not in FALLBACK_MODELS:
            raise RecipeError(
                f"jamo for rare syllables alone is for {', '.join(FALLBACK_MODELS)}, not for {self.train.model}",
                hint="--model unigram",
            )
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # pydantic would pickle a set of names, whose order depends on the process.
        return self._restored, (self.model_dump_json(),)

    @classmethod
    def _restored(cls, text: str) -> Recipe:
        return cls.model_validate_json(text, context={"stored": True})

    @property
    def spelled(self) -> bool:
        """Whether all pieces are spelled in conjoining jamo."""
        return self.jamo is True

    @model_validator(mode="after")
    def _policy_is_known(self) -> Recipe:
        from koktok.segment.policy import Policy

        Policy.parse(self.segment.policy)
        return self

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """Specials, reserved slots and what a style wants at the very end, in the order of their ids."""
        tail = STYLES[self.special.style].tail
        head = tuple(token for token in self.train.specials if token not in tail)
        return (*head, *styles.reserved_slots(self.train.reserved), *tail)

    def style_for(self, specials: tuple[str, ...]) -> styles.Style:
        """The style of a vocabulary with these special tokens, see `koktok.special`."""
        wanted = self.special.model_dump(exclude={"style", "chat_template", "pad_to_multiple"})
        return styles.style_for(self.special.style, specials, chat=self.special.chat_template, **wanted)

    @property
    def normalizer(self) -> Normalizer:
        """What normalizes text before words are analysed; see `normalizer_for`."""
        return Normalizer(self.normalize)

    def normalizer_for(self, vocab: Vocab) -> Normalizer:
        """What normalizes the text that a vocabulary reads: syllables are taken apart where `jamo` says so."""
        if not self.jamo:
            return self.normalizer
        whole = vocab.whole_characters if self.jamo == "fallback" else ()
        return JamoNormalizer(self.normalize, whole)

    def prefix_for(self, vocab: Vocab) -> Prefix:
        """Where the space before the first word stands: see `koktok.text.prefix`."""
        if not self.pretokenize.prefix_space:
            return ""
        return "each" if self.format == 1 or vocab.bytewise or not vocab.n_bytes else "first"

    @property
    def pattern(self) -> Pattern:
        """What cuts text into pretokens; superwords cross spaces, see `Pattern.within_words`."""
        chosen = self.pretokenize
        if chosen.pattern != "koktok":
            return PublishedPattern(name=chosen.pattern)
        return Pattern(split=chosen.split, digits=chosen.digits, superwords=self.train.superwords > 0)

    @classmethod
    def build(cls, values: Mapping[str, Any], *, stored: bool = False) -> Recipe:
        """A recipe of plain nested values.

        Parameters
        ----------
        values : mapping
        stored : bool
            The values stand in a folder that was trained with them, perhaps by an older koktok, which took special tokens
            that are refused today.

        Raises
        ------
        RecipeError
            For an unknown key or an impossible value; names the key, what came and what is allowed.
        """
        if not isinstance(values, Mapping):
            raise RecipeError(f"a {type(values).__name__} came where the values of a recipe were wanted")
        try:
            return cls.model_validate(dict(values), context={"stored": stored})
        except ValidationError as error:
            raise _explained(error) from None
        except UnicodeEncodeError as error:
            raise RecipeError(f"a value of the recipe holds a lone surrogate: {error.object[:40]!r}") from None

    @classmethod
    def from_toml(cls, text: str, *, stored: bool = False) -> Recipe:
        """The `[recipe]` table of a TOML text; `[signature]` and `[vocabulary]` beside it are ignored. `stored` as in `build`.

        Raises
        ------
        RecipeError
            When the text is no TOML, holds other tables, or the recipe is wrong.
        """
        if not isinstance(text, str):
            raise RecipeError(f"a {type(text).__name__} came where TOML was wanted", hint="Recipe.load(FILE)")
        try:
            table = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else error
            raise RecipeError(f"the recipe is no TOML: {why}") from None
        strange = sorted(table.keys() - {"recipe", "signature", "vocabulary"})
        if strange:
            raise RecipeError(f"the recipe file has the unknown table `{strange[0]}`", hint="[recipe]")
        return cls.build(table.get("recipe", {}), stored=stored)

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """The recipe of a file, or of a trained folder.

        Raises
        ------
        RecipeError
            When it cannot be read.
        """
        if not isinstance(path, str | os.PathLike):
            raise RecipeError(f"{path!r} came where the path of a recipe was wanted")
        file = Path(path)
        file = file / "koktok.toml" if file.is_dir() else file
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise RecipeError(f"the recipe `{file}` cannot be read: {error}") from error
        recipe = cls.from_toml(text)
        signed = re.search(r'^segmenter = "kiwi:.*\|user:([0-9a-f]{16})"$', text, re.M)
        if signed and not (recipe.segment.user_dictionary or recipe.segment.user_dictionary_sha256):
            # Folders of the first koktok have the dictionary in the signature alone.
            return recipe.changed(segment={"user_dictionary_sha256": signed[1]})
        return recipe

    def to_toml(self, signature: Mapping[str, Any] | None = None) -> str:
        """The recipe as TOML, every default spelled out, with an optional `[signature]` table."""
        import tomli_w

        table: dict[str, Any] = {"recipe": self.model_dump(mode="json", exclude_none=True)}  # TOML has no null
        if signature is not None:
            table["signature"] = dict(signature)
        return tomli_w.dumps(table)

    def changed(self, **changes: Any) -> Recipe:
        """A copy with some values replaced, by name, or those of a section as a mapping; values of None change nothing.

        Another style takes the special tokens of the old one away; another target, or a preset, the old target; a published
        pattern the fold of zero-width characters, where `normalize` does not come with it.

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
        for name in changes.keys() & SECTION_OF.keys():
            section = SECTION_OF[name]
            changes = {**changes, section: {**_plain(changes.get(section)), name: changes[name]}}
            del changes[name]
        values = self.model_dump(mode="json")
        train = _plain(changes.get("train"))
        if any(train.get(name) is not None for name in ("preset", *TARGETS)):
            values["train"] |= dict.fromkeys(TARGETS)
        for key, change in changes.items():
            if isinstance(change, Mapping) and isinstance(values.get(key), dict):
                values[key] |= {name: value for name, value in change.items() if value is not None}
            elif change is not None:
                values[key] = change
        segment, asked = values["segment"], _plain(changes.get("segment"))
        if isinstance(segment, dict) and segment.get("segmenter") != "kiwi" and "user_dictionary" not in asked:
            segment |= {"user_dictionary": "", "user_dictionary_sha256": ""}  # it was Kiwi's
        sound = isinstance(values["train"], dict) and isinstance(
            values["special"], dict
        )  # or `build` says what is wrong
        before, after = usual(self.model_dump(mode="json")), usual(values)
        for (section, name), value in after.items() if sound else ():
            named = _plain(changes.get(section)).get(name) is not None
            as_usual = getattr(getattr(self, section), name) == before[section, name]
            if isinstance(values[section], dict) and not named and as_usual:
                values[section][name] = value
        space, pattern = _plain(changes.get("pretokenize")), str(self.pretokenize.pattern)
        if space.get("pattern") is not None:
            pattern = space["pattern"]
        elif pattern == _pattern(self.train.model_dump()):
            cutting = _plain(values["pretokenize"])
            plain = (cutting.get("split"), cutting.get("digits")) == ("eojeol", "single")
            named = space.get("split") is not None or space.get("digits") is not None
            pattern = _pattern(_plain(values["train"])) if plain and not named else "koktok"
            values["pretokenize"] = {**cutting, "pattern": pattern}
        if pattern != self.pretokenize.pattern and "normalize" not in changes and isinstance(values["normalize"], dict):
            # Whoever knows a published pattern knows NFC, and no fold before it.
            values["normalize"]["zero_width"] = pattern == "koktok"
        if sound and train.get("specials") is None:
            old = (self.special.style, self.train.model, self.special.chat_template)
            new = (values["special"]["style"], values["train"]["model"], values["special"]["chat_template"])
            values["train"]["specials"] = styles.changed(self.train.specials, old, new)
        return self.build(values)


class Fields(TypedDict, total=False):
    """Fields of a recipe by name, as `koktok.train` takes them; a type checker finds a misspelt one."""

    zero_width: bool | None
    fullwidth: bool | None
    spaces: bool | None
    quotes: bool | None
    dashes: bool | None
    halfwidth_jamo: bool | None
    repeats: int | None
    compatibility: bool | None
    lone_jamo: bool | None
    split: str | None
    digits: str | None
    pattern: str | None
    prefix_space: bool | None
    segmenter: str | None
    policy: str | None
    mass: float | None
    user_dictionary_sha256: str | None
    model: str | None
    backend: str | None
    vocab_size: int | None
    preset: str | None
    keep: float | Mapping[Group, float] | None
    tokens_per_eojeol: float | None
    lam: float | None
    mu: float | None
    nu: float | None
    superwords: float | None
    inner_superwords: bool | None
    price: str | None
    blocklist: Sequence[str] | None
    personal_data: str | None
    junk: str | None
    reserve_script: Mapping[Script, float] | None
    share: float | None
    min_count: int | None
    max_piece_length: int | None
    character_coverage: float | None
    ngram: int | None
    required: str | Sequence[str] | None
    specials: Sequence[str] | None
    reserved: int | None
    style: str | None
    template: str | None
    chat_template: str | None
    model_max_length: int | None
    padding_side: str | None
    truncation_side: str | None
    trim_offsets: bool | None
    pad_to_multiple: int | None
    jamo: bool | Literal["fallback"]
    holdout: float


TRIMMED: Final = ("special", "trim_offsets")
"""What only `Recipe.changed` sets."""


def _pattern(train: Mapping[str, Any]) -> str:
    """The pattern by default: a published one where the model takes one, see `PretokenizeRecipe.pattern`."""
    return "llama3" if train.get("model") == "bpe-bytes" and not train.get("superwords") else "koktok"


def usual(values: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The defaults that depend on the model, the preset and the style, by section and field."""
    train, special = _plain(values.get("train", {})), _plain(values.get("special", {}))
    model, style, preset = train.get("model", "unigram"), special.get("style", "plain"), train.get("preset", "lm")
    own = model == "unigram" and train.get("backend", "koktok") == "koktok"
    wide = own and preset in WIDE_PRESETS and values.get("jamo") is not True
    space = model in PREFIXED_MODELS or (style in PREFIXED_STYLES and model not in WITH_UNKNOWN)
    trims = any(name == style and row.trim_offsets for name, row in STYLES.items())  # if pieces hold spaces
    return {
        ("pretokenize", "prefix_space"): space,
        ("pretokenize", "split"): "scripts" if own and preset == "aligned" else "eojeol",
        ("train", "superwords"): 0.3 if wide else 0.0,
        ("train", "price"): "bits" if own else "tokens",
        TRIMMED: trims and model != "wordpiece",
    }


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


def _check_special(token: str) -> None:
    """Refuse a special token that some reader of the files takes for something else, or cannot write."""
    strange = next((char for char in token if unicodedata.category(char) in ("Cc", "Cs")), "")
    if strange:
        raise RecipeError(
            f"the special token {token[:40]!r} holds the control character U+{ord(strange):04X}; wanted: text that one can see",
            hint="--specials '<unk>,<s>,</s>'",
        )
    if len(token) > LONGEST_SPECIAL:
        raise RecipeError(
            f"a special token of {len(token):,} characters came; {LONGEST_SPECIAL} are the most",
            hint="--specials '<unk>,<s>,</s>'",
        )
    if token in BYTE_PIECES:
        raise RecipeError(
            f"the special token {token} is spelled like the byte piece of SentencePiece and Hugging Face",
            hint=f"--specials '{token.replace('0x', 'byte_')}'",
        )


def _plain(section: Any) -> dict[str, Any]:
    """A section as a mapping, whether it came as one or as a model."""
    if isinstance(section, BaseModel):
        return section.model_dump()
    if isinstance(section, Folds):
        return asdict(section)
    return dict(section) if isinstance(section, Mapping) else {}  # pydantic says what is wrong with anything else


def _explained(error: ValidationError) -> RecipeError:
    """The first complaint of pydantic in our words."""
    first, *others = error.errors()
    if isinstance(first["input"], Mapping) and others and others[0]["loc"][:-2] == first["loc"][:-1]:
        first = others[0]  # of a number or a mapping, the mapping was meant
    key = ".".join(str(part) for part in first["loc"] if not re.match(r"constrained-|literal\[|dict\[", str(part)))
    if key == "format":
        message = f"the recipe's `format` is {first['input']!r}, and this koktok reads formats 1 and {FORMAT}"
        return RecipeError(message, hint="pip install --upgrade koktok")
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
