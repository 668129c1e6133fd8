"""tokenizer.model: the same vocabulary for the sentencepiece library.

`escape_whitespaces=false` keeps spaces real. No piece crosses a pretoken boundary, and boundaries depend on two neighbouring
characters alone, so SentencePiece's search over the whole line finds the same pieces as ours in each pretoken.

The normalizer is a table of strings and their replacements, as in SentencePiece: the longest match from left to right. Such a
table cannot express all of NFC (see `differences`), but none of its strings occurs in normalized text, so normalized text
always gives the same ids.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from pathlib import Path

from koktok import hangul
from koktok.errors import ArtifactError
from koktok.model.definition import Definition
from koktok.model.vocab import BYTE_PIECES, VocabKind
from koktok.runtimes.limits import first_that_holds, that_hold
from koktok.runtimes.sentencepiece.message import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    USER_DEFINED,
    ModelProto,
    NormalizerSpec,
)
from koktok.text.normalize import REPEATED, Folds, JamoNormalizer, Normalizer, nfc
from koktok.text.pretokenize import first_crossing

MODEL_TYPES: Mapping[VocabKind, int] = {"unigram": UNIGRAM, "bpe": BPE}
"""The type of the model of each kind of vocabulary that it can hold."""


def refuses(one: Definition) -> str:
    """The reason why a tokenizer.model cannot hold a tokenizer, or '' if it can."""
    return first_that_holds(_obstacles(one), one.vocab.kind)


def _obstacles(one: Definition) -> Iterator[tuple[str, object]]:
    """The cheapest to test first."""
    yield "spm-kind", one.vocab.kind not in MODEL_TYPES
    yield "spm-unknown", "unk" not in one.role_ids
    yield "threes", not one.pattern.bigram
    yield "spm-nul", next((piece for piece in one.vocab.pieces if "\0" in piece[:-1] or "\0" in piece[1:]), "")
    yield "crossing", first_crossing(one.vocab.pieces, one.pattern)


def differences(normalizer: Normalizer) -> list[str]:
    """The differences between the normalizer of a tokenizer.model and `normalizer`; normalized text is the same for both.

    Examples
    --------
    >>> for line in differences(Normalizer(Folds(repeats=2))):
    ...     print(line)
    two or more combining marks on a letter that has no composed form with all of them: they are not put in order
    a character that is dropped between a letter and its mark, or between two jamo: they are not composed
    the fold `repeats` is applied to runs of up to 32 characters, of one spelling
    """
    folds = normalizer.folds
    cases = (("marks", True), ("dropped", True), ("lone-jamo", folds.lone_jamo), ("repeats", folds.repeats))
    return that_hold("sentencepiece", cases, longest=folds.repeats + LENGTHS)


def rules(normalizer: Normalizer) -> dict[str, str]:
    """Strings and their replacements: every character that changes, and every spelling of a composed character."""
    if not isinstance(normalizer, JamoNormalizer) or normalizer.splits_all:
        return dict(_rules(normalizer.folds, isinstance(normalizer, JamoNormalizer)))
    composed = _rules(normalizer.folds, False)
    # Composed syllables are split again; rules that then change nothing are removed.
    jamo = normalizer.spelling
    more = {source: target.translate(jamo) for source, target in composed.items()} | {chr(c): jamo[c] for c in jamo}
    return {source: target for source, target in sorted(more.items()) if source != target}


LENGTHS = 30
"""Lengths of runs with a rule of `repeats`: SentencePiece allows fewer than 32 rules that begin with one another."""

DECOMPOSED = 0x30000
"""No code point from here on has a canonical decomposition."""


@lru_cache(maxsize=8)
def _rules(folds: Folds, jamo: bool) -> dict[str, str]:  # noqa: FBT001
    # Without folds that depend on any number of neighbours; see `differences`.
    normal = Normalizer(replace(folds, lone_jamo=False, repeats=0))
    table: dict[str, str] = {}
    folded: dict[str, list[str]] = {}  # by the last character of their replacement, which a mark may follow
    for source in normal.sources:
        folded.setdefault(normal(source)[-1:], []).append(source)

    def add(source: str) -> None:
        target = normal(source)
        target = hangul.split(target) if jamo else target
        if target != source:
            table[source] = target

    for source in normal.sources:
        add(source)
    for char in map(chr, range(1, DECOMPOSED)):
        apart = unicodedata.normalize("NFD", char)
        if apart == char:
            continue
        add(char)
        if len(apart) == 1 or nfc(apart) != normal(char):
            continue
        # All orders of its marks, and all partly composed spellings. Jamo have one order; if pieces are spelled in jamo,
        # syllables need no rule.
        one_order = {tuple(apart)} if not jamo else set()
        orders = one_order if hangul.is_syllable(char) else {(apart[0], *marks) for marks in permutations(apart[1:])}
        for spelled in map("".join, orders):
            if nfc(spelled) == nfc(apart):
                for taken in range(1, len(spelled)):
                    add(nfc(spelled[:taken]) + spelled[taken:])
                for source in folded.get(spelled[0], ()):
                    add(source + spelled[1:])
    for source in {*REPEATED, *normal.sources} if folds.repeats else ():
        target = normal(source)
        if target in REPEATED:
            for length in range(folds.repeats + 1, folds.repeats + LENGTHS + 1):
                table[source * length] = target * folds.repeats
    return dict(sorted(table.items()))


@lru_cache(maxsize=8)
def precompiled(rules: tuple[tuple[str, str], ...]) -> bytes:
    """Strings and what becomes of them, the longest match first, as SentencePiece compiles them; tokenizer.json takes it too."""
    import sentencepiece

    sentencepiece.set_min_log_level(2)  # or the builder prints the number of rules
    compiled = sentencepiece.SentencePieceNormalizer(norm_map=list(rules))
    return NormalizerSpec(compiled.serialized_normalizer_spec()).precompiled_charsmap


def charsmap(normalizer: Normalizer) -> bytes:
    """The compiled `rules`, for SentencePiece and llama.cpp."""
    return precompiled(tuple(rules(normalizer).items()))


@lru_cache(maxsize=1)
def _joins() -> bytes:
    # 가 + ㅆ too: if only rare syllables are split, some are split only before their tail.
    return precompiled((*((jamo, chr(c)) for c, jamo in hangul.SPLIT.items()), *hangul.tail_rules()))


def may_be_ours(file: Path) -> bool:
    """Whether a model has the layout of `model_proto`, which SentencePiece's own trainer never writes."""
    try:
        model = ModelProto(file.read_bytes())
    except (OSError, ValueError):
        return False
    spaces = model.normalizer_spec.escape_whitespaces or model.trainer_spec.split_by_whitespace
    first = model.pieces[0].type if model.pieces else CONTROL
    return not spaces and not model.trainer_spec.input and first in (BYTE, NORMAL)


def model_proto(one: Definition, user_defined: Collection[str] = ()) -> bytes:
    """The serialized ModelProto, the same bytes for the same vocabulary."""
    vocab, reason = one.vocab, refuses(one)
    if reason:
        raise ArtifactError(f"no tokenizer.model: {reason}")
    if strange := [token for token in user_defined if token not in vocab.specials]:
        raise ArtifactError(
            f"{strange[0]!r} is not a special token of this tokenizer", hint=f"there are {', '.join(vocab.specials)}"
        )
    model = ModelProto()
    for piece in BYTE_PIECES[: vocab.n_bytes]:
        model.add(piece, 0.0, BYTE)
    scores = vocab.scores or [-float(rank) for rank in range(len(vocab.pieces))]
    for piece, score in zip(vocab.pieces, scores, strict=True):
        model.add(piece, score, NORMAL)
    roles = {role: one.role_ids.get(role, -1) for role in ("unk", "bos", "eos", "pad")}
    for token, i in vocab.special_ids.items():
        kind = USER_DEFINED if token in user_defined else CONTROL
        model.add(token, 0.0, UNKNOWN if i == roles["unk"] else kind)

    trainer = model.trainer_spec
    trainer.model_type = MODEL_TYPES[vocab.kind]
    trainer.vocab_size = vocab.size
    trainer.byte_fallback = vocab.byte_fallback
    trainer.split_by_whitespace = False
    for role, i in roles.items():
        setattr(trainer, f"{role}_id", i)
        if i >= 0:
            setattr(trainer, f"{role}_piece", vocab.tokens[i])
    model.normalizer_spec.name = "user_defined"  # SentencePiece's own name, and the only one that kitoken reads
    model.normalizer_spec.precompiled_charsmap = charsmap(one.normalizer)
    if one.jamo:
        model.denormalizer_spec.name = "koktok_jamo"
        model.denormalizer_spec.precompiled_charsmap = _joins()
    for spec in (model.normalizer_spec, model.denormalizer_spec) if one.jamo else (model.normalizer_spec,):
        spec.add_dummy_prefix = False
        spec.remove_extra_whitespaces = False
        spec.escape_whitespaces = False
    model.normalizer_spec.add_dummy_prefix = bool(one.prefix)
    return model.serialized()
