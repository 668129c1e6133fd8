"""Files that koktok could have written: read back as koktok's own tokenizer.

A file is ours where a normalizer, a pattern and a vocabulary of ours are found that
would write the same nodes; then every law holds for it, and nothing has to be compared text by text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from itertools import product
from typing import Any, Final, Literal, get_args

from koktok.errors import KoktokError
from koktok.formats import hf, sentencepiece
from koktok.formats.limits import why_not
from koktok.formats.pre_tokenizer import cutting
from koktok.recipe import FORMAT, Recipe
from koktok.sentencepiece_model import CONTROL, NORMAL, UNIGRAM, UNKNOWN, USER_DEFINED, ModelProto
from koktok.special import STYLES, StyleName, style_for
from koktok.text.normalize import Folds, JamoNormalizer, Normalizer
from koktok.text.prefix import GUARD, Prefix
from koktok.text.pretokenize import Digits, Pattern, Split
from koktok.tokenizer import Tokenizer
from koktok.vocab import BYTE_PIECES, ModelKind, Vocab

NODES = ("normalizer", "pre_tokenizer", "model", "decoder")
"""What decides ids and text in a tokenizer.json; templates and padding are the reader's."""

LOOKS = ("added_tokens", "post_processor")
"""By which a style is told."""

SUPERWORDS = 0.1
"""Any share above 0 says that pieces may cross spaces."""

Jamo = bool | Literal["fallback"]

IN_JAMO: Final[tuple[Jamo, ...]] = (True, "fallback")
"""What the recipe's `jamo` may be where a file takes syllables apart."""


def own_json(text: str, content: Mapping[str, Any]) -> Tokenizer | None:
    """The tokenizer of a tokenizer.json that koktok wrote, or None."""
    kinds = hf.KINDS.get(content["model"].get("type"), ())
    apart = any(node.get("type") == "Precompiled" for node in _steps(content))
    prepended = [node.get("prepend") for node in _steps(content) if node.get("type") == "Prepend"]
    prefix: Prefix = "first" if GUARD in prepended else "each" if prepended else ""
    trim = any(node.get("trim_offsets") for node in _parts(content.get("post_processor"), "processors"))
    folds = _folds(content)
    for kind in kinds:
        try:
            vocab = hf.vocab_from_json(text, kind)
        except KoktokError:
            continue
        for earlier, pattern, jamo in product((False, True), _patterns(), IN_JAMO if apart else (False,)):
            if cutting(vocab, pattern, prefix, earlier=earlier)[1] != content.get("pre_tokenizer"):
                continue
            plain = _written(vocab, pattern, folds, "plain", jamo=jamo, prefix=prefix, earlier=earlier)
            if plain is None or any(plain[name] != content.get(name) for name in NODES):
                continue
            for style in _styles(vocab):
                found = _written(vocab, pattern, folds, style, jamo=jamo, prefix=prefix, trim=trim, earlier=earlier)
                if found and all(found[name] == content.get(name) for name in LOOKS):
                    return _made(vocab, pattern, folds, style, jamo=jamo, prefix=prefix, trim=trim)
            return _made(vocab, pattern, folds, "plain", jamo=jamo, prefix=prefix, trim=trim)
    return None


def own_model(proto: ModelProto, data: bytes) -> Tokenizer | None:
    """The tokenizer of a tokenizer.model that koktok wrote with its default folds, or None.

    The pattern is not in the model, and need not be: no piece crosses its cuts, so any pattern that cuts no piece gives
    the same ids.
    """
    if proto.normalizer_spec.name != "user_defined" or proto.normalizer_spec.escape_whitespaces:
        return None
    model: ModelKind = "unigram" if proto.trainer_spec.model_type == UNIGRAM else "bpe"
    rows = [row for row in proto.pieces if row.type == NORMAL]
    specials = [row.piece for row in proto.pieces if row.type in (UNKNOWN, CONTROL, USER_DEFINED)]
    if any(row.type == USER_DEFINED for row in proto.pieces):
        return None
    joins = proto.denormalizer_spec.name == "koktok_jamo"
    prefix: Prefix = "first" if proto.normalizer_spec.add_dummy_prefix else ""
    try:
        vocab = Vocab(
            model,
            tuple(row.piece for row in rows),
            tuple(row.score for row in rows) if model == "unigram" else (),
            tuple(specials),
            byte_fallback=tuple(row.piece for row in proto.pieces[:256]) == BYTE_PIECES,
        )
    except KoktokError:
        return None
    pattern = next((pattern for pattern in _patterns() if not why_not("sentencepiece", vocab, pattern)), None)
    for jamo in IN_JAMO if joins else (False,):
        normalizer = _normalizer(vocab, Folds(), jamo)
        if pattern and sentencepiece.model_proto(vocab, pattern, normalizer=normalizer, prefix=bool(prefix)) == data:
            return _made(vocab, pattern, Folds(), "plain", jamo=jamo, prefix=prefix)
    return None


def _styles(vocab: Vocab) -> list[StyleName]:
    """Those whose special tokens are all there, and plain, which has no opinion, last."""
    named = (name for name in get_args(StyleName) if name != "plain" and {*STYLES[name].specials} <= {*vocab.specials})
    return [*named, "plain"]


def _normalizer(vocab: Vocab, folds: Folds, jamo: Jamo) -> Normalizer:
    if not jamo:
        return Normalizer(folds)
    return JamoNormalizer(folds, vocab.whole_characters if jamo == "fallback" else ())


def _written(
    vocab: Vocab,
    pattern: Pattern,
    folds: Folds,
    style: StyleName,
    *,
    jamo: Jamo,
    prefix: Prefix,
    trim: bool = False,
    earlier: bool = False,
) -> dict[str, Any] | None:
    """What koktok would write, or None where the style wants tokens that are not there."""
    look = style_for(style, vocab.specials, trim_offsets=trim)
    try:
        text = hf.tokenizer_json(
            vocab, _normalizer(vocab, folds, jamo), pattern, style=look, prefix=prefix, earlier=earlier
        )
    except KoktokError:
        return None
    return dict(json.loads(text))


def _made(
    vocab: Vocab, pattern: Pattern, folds: Folds, style: StyleName, *, jamo: Jamo, prefix: Prefix, trim: bool = False
) -> Tokenizer:
    recipe = Recipe().changed(
        normalize={field.name: getattr(folds, field.name) for field in fields(folds)},
        pretokenize={"split": pattern.split, "digits": pattern.digits, "prefix_space": bool(prefix)},
        train={
            "model": vocab.kind,
            "vocab_size": vocab.size,
            "superwords": SUPERWORDS if pattern.superwords else 0.0,
            "specials": list(vocab.specials),
        },
        special={"style": style, "trim_offsets": trim},
        jamo=jamo,
        format=1 if prefix == "each" else FORMAT,
    )
    return Tokenizer(recipe, vocab, {"source": "import"})


def _patterns() -> list[Pattern]:
    """All of them; those that cut more often, and so cache better, first."""
    ways = product((False, True), reversed(get_args(Split)), ("single", *sorted({*get_args(Digits)} - {"single"})))
    return [Pattern(split=split, digits=digits, superwords=superwords) for superwords, split, digits in ways]


def _steps(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _parts(content.get("normalizer"), "normalizers")


def _parts(node: Any, inside: str) -> list[dict[str, Any]]:
    """What a node is made of, or the node itself; what is no node (the library reads older layouts) is left out."""
    parts = node.get(inside, [node]) if isinstance(node, dict) else []
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _regex(part: Mapping[str, Any]) -> str:
    pattern = part.get("pattern")
    return str(pattern.get("Regex", "")) if isinstance(pattern, dict) else ""


def _folds(content: Mapping[str, Any]) -> Folds:
    """The switches whose nodes are there; the rebuilding says whether that was all."""
    steps = _steps(content)
    values: dict[str, Any] = {}
    for field in fields(Folds):
        if field.name == "repeats":
            runs = [re.search(r"\(\?=\\1\{(\d+)\}\)$", _regex(step)) for step in steps]
            values["repeats"] = next((int(run[1]) for run in runs if run), 0)
            continue
        alone = Normalizer(Folds(**{"zero_width": False, field.name: True})).to_hf()
        wanted = [node for node in alone.get("normalizers", [alone]) if node["type"] != "NFC"]
        values[field.name] = bool(wanted) and all(node in steps for node in wanted)
    return Folds(**values)
