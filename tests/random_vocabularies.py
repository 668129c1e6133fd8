"""Random vocabularies of every kind, and texts for them.

A trained vocabulary is a poor witness: its merges come in an order that hides most of what bulk takes for granted. Here
pieces and merges are drawn at random from a few characters, whose bytes and spaces are then met in every order.
"""

from __future__ import annotations

import random
from typing import Any, get_args

from strategies import EMOJI, NASTY

from koktok import Recipe
from koktok.bulk import Encoder
from koktok.bulk.table import TABLE_BYTES
from koktok.model.vocab import BYTE_CHARS, BYTE_PIECES, KINDS, MARK, SPACE_MARK, Vocab, VocabKind, spell
from koktok.recipe import FALLBACK_MODELS, SELECTED_MODELS
from koktok.text.patterns import Published
from koktok.tokenizer import TrainedTokenizer

TEXTS = 40
"""Texts a vocabulary."""

PATTERNS = get_args(Published)
SPACED = ("", " ", "  ", "   ", "    ")
PLANE = [chr(code) for code in range(1 << 16) if not 0xD800 <= code < 0xE000]
"""The characters of the first plane."""

_POOL = [*"가각갂나놔냐뷁힣ㄱㅎㅠ漢字—①•–é0123aAzZ.!-'\n\t\u3000\u00a0\u200b", *NASTY, *EMOJI]
_KINDS: list[VocabKind] = [*get_args(VocabKind), *["bpe-bytes"] * 6, "bpe", "bpe", "unigram", "unigram"]
"""A kind as often as it has ways of its own in bulk."""


def random_recipe(rng: random.Random, kind: VocabKind) -> Recipe:
    """Fields that change how text is cut, as far as the kind has them."""
    model: dict[str, Any] = {"model": kind}
    words: dict[str, Any] = {}
    changes: dict[str, Any] = {"train": model, "pretokenize": words}
    if not KINDS[kind].unknown:
        words["prefix_space"] = rng.random() < 0.4
    if kind == "bpe-bytes" and rng.random() < 0.4:
        words["pattern"] = rng.choice(PATTERNS)
        return Recipe().changed(**changes)
    if kind in SELECTED_MODELS and rng.random() < 0.3:
        model["superwords"] = 0.5
    elif rng.random() < 0.2:
        changes["jamo"] = rng.choice((True, "fallback")) if kind in FALLBACK_MODELS else True
    words |= {"digits": rng.choice(("free", "single", "three")), "split": rng.choice(("eojeol", "scripts"))}
    if rng.random() < 0.3:
        changes["normalize"] = {"repeats": rng.randrange(4), "spaces": rng.random() < 0.5, "compatibility": True}
    return Recipe().changed(**changes)


def joined_everywhere(parts: list[str], left: str, right: str) -> list[str]:
    """The parts of a text with every pair of these neighbours joined, from the left."""
    joined: list[str] = []
    for part in parts:
        if joined and (joined[-1], part) == (left, right):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def random_pieces(rng: random.Random, text: list[str], most: int = 60) -> list[str]:
    """Joins of the symbols of a text: of its neighbours, as a trainer learns them, of any two pieces, or cut out of it."""
    pieces: dict[str, None] = {}
    symbols, parts, way = list(text), list(text), rng.random()
    for _ in range(rng.randrange(1, most)):
        at = rng.randrange(len(text))
        if way < 0.6 and len(parts) > 2:
            at %= len(parts) - 1
            left, right = parts[at], parts[at + 1]
            parts = joined_everywhere(parts, left, right)
        elif way < 0.8:
            left, right = rng.choice(symbols), rng.choice(symbols)
        else:
            left, right = text[at], "".join(text[at + 1 : at + rng.randrange(2, 9)])
        if len(left + right) < 24:
            pieces[left + right] = None
            symbols.append(left + right)
    found = [piece for piece in pieces if piece not in set(text)]
    if rng.random() < 0.2:
        rng.shuffle(found)
    return found


def random_tokenizer(rng: random.Random, kind: VocabKind) -> tuple[TrainedTokenizer, list[str]]:
    """A tokenizer, and the characters that its pieces are made of."""
    chars = [*rng.choices(_POOL, k=rng.randrange(1, 7)), " "]
    chars += [chr(rng.choice((rng.randrange(0xAC00, 0xD7A4), rng.randrange(0x20, 0xD800)))) for _ in range(2)]
    recipe = random_recipe(rng, kind)
    normalizer = recipe.normalizer if recipe.jamo == "fallback" else recipe.normalizer_for(Vocab.bpe_bytes([]))
    text = [*normalizer("".join(random_text(rng, chars) for _ in range(6))).replace(SPACE_MARK, ""), "a"]
    specials = ("[UNK]", "</s>") if KINDS[kind].unknown else ("</s>",)
    if KINDS[kind].bytewise:
        text = [*spell("".join(text))]
    pieces = [piece for piece in random_pieces(rng, text) if len(piece) == 1 or not KINDS[kind].single]
    if kind == "bpe-bytes":
        return TrainedTokenizer(recipe, Vocab.bpe_bytes(pieces, specials=specials)), chars
    if kind == "wordpiece-bytes":
        text = [*BYTE_CHARS]
    if KINDS[kind].marked:
        forms = [form for piece in [*dict.fromkeys(text), *pieces] for form in (piece, MARK + piece)]
        pieces = [form for form in forms if len(form.removeprefix(MARK)) == 1 or rng.random() < 0.7]
    else:
        pieces = [*sorted(set(text)), *pieces]
    pieces = [piece for piece in dict.fromkeys(pieces) if piece not in (*specials, *BYTE_PIECES)]
    if kind == "unigram":
        scores = {piece: -rng.randrange(40) / 4 for piece in pieces}
        return TrainedTokenizer(recipe, Vocab.unigram(scores, specials=specials)), chars
    return TrainedTokenizer(recipe, Vocab.plain(kind, pieces, specials=specials)), chars


def random_text(rng: random.Random, chars: list[str]) -> str:
    """A few of the characters, and others, behind no space or up to four."""
    size = rng.choice((1, 3, 8, 8, 30))
    return "".join(
        rng.choice(SPACED) * (rng.random() < 0.5) + (rng.choice(PLANE) if rng.random() < 0.1 else rng.choice(chars))
        for _ in range(rng.randrange(size + 1))
    )


def differences(
    tokenizer: TrainedTokenizer, texts: list[str], *, table_bytes: int = TABLE_BYTES, threads: int = 1
) -> list[str]:
    """The texts whose ids in bulk are not those of `encode`."""
    encode = Encoder(tokenizer.definition, table_bytes=table_bytes)
    tokens = encode(texts, threads=threads)
    return [text for text, ids in zip(texts, tokens, strict=True) if ids.tolist() != tokenizer.encode(text).ids]


def lost(tokenizer: TrainedTokenizer, texts: list[str]) -> list[str]:
    """The texts of a lossless kind that `decode`, a stream or bulk decoding does not give back; none of other kinds."""
    if not tokenizer.lossless:
        return []
    bulk = tokenizer.decode_ids(tokenizer.encode_ids(texts))
    bad = []
    for text, decoded in zip(texts, bulk, strict=True):
        ids, stream = tokenizer.encode(text).ids, tokenizer.stream()
        streamed = "".join(stream.push(i) for i in ids) + stream.finish()
        if {tokenizer.decode(ids), streamed, decoded} != {tokenizer.normalize(text)}:
            bad.append(text)
    return bad


def case(seed: str) -> tuple[TrainedTokenizer, list[str], dict[str, Any]]:
    """A tokenizer, texts and how they are encoded: all of it a function of the seed."""
    rng = random.Random(seed)
    tokenizer, chars = random_tokenizer(rng, rng.choice(_KINDS))
    texts = [random_text(rng, chars) for _ in range(TEXTS)]
    texts += [f"{rng.choice(SPACED)}{spaces}{char}" for char in (*chars, rng.choice(PLANE)) for spaces in SPACED]
    return tokenizer, texts, {"table_bytes": rng.choice((1, TABLE_BYTES)), "threads": rng.choice((1, 2))}


def plane_behind_spaces(seed: str) -> tuple[TrainedTokenizer, list[str]]:
    """A tokenizer of bytes with merges of some two hundred characters, and the first plane behind one to four spaces."""
    rng = random.Random(seed)
    first = rng.randrange(0x80, 0xD000)
    chars = [chr(rng.randrange(first, first + 0x800)) for _ in range(200)]
    text = "".join(rng.choice(SPACED) + rng.choice(chars) for _ in range(2_000))
    tokenizer = TrainedTokenizer(
        random_recipe(rng, "bpe-bytes"), Vocab.bpe_bytes(random_pieces(rng, [*spell(text)], 600))
    )
    return tokenizer, [spaces + char for char in PLANE for spaces in SPACED[1:]]
