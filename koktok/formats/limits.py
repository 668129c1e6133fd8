"""Limits of other libraries: reasons why a format cannot hold a vocabulary, and differences where it can.

limits.toml has the sentences by name, and this module their conditions. The card of a folder, the notes of an export and
errors use them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from koktok.model.definition import Definition
from koktok.model.vocab import KINDS, Vocab
from koktok.text.patterns import ACROSS_SPACES, LLAMA_CPP
from koktok.text.pretokenize import first_crossing


@cache
def _sentences() -> dict[str, dict[str, str]]:
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: {key: text.strip() for key, text in table.items()} for name, table in tables.items()}


def that_hold(table: str, cases: Iterable[tuple[str, object]], **holes: object) -> list[str]:
    """The sentences of a table whose condition holds; `holes` fill their fields."""
    return [_sentences()[table][name].format_map(holes) for name, holds in cases if holds]


def unsupported_reason(what: Literal["hf", "sentencepiece", "gguf", "tiktoken"], one: Definition) -> str:
    """The reason why a format cannot hold a tokenizer, or '' if it can."""
    for name, obstacle in _obstacles(what, one):
        if obstacle:
            return _sentences()["unsupported"][name].format(kind=one.vocab.kind, found=obstacle)
    return ""


def _obstacles(what: str, one: Definition) -> Iterator[tuple[str, object]]:
    """Every possible obstacle, the cheapest to test first: its name, and the offending piece or a truth value."""
    vocab, pattern = one.vocab, one.pattern
    row = KINDS[vocab.kind]
    if what == "hf":
        yield "longest-match", not row.hugging_face
    elif what == "tiktoken":
        yield "tiktoken-kind", not row.tiktoken
        yield "tiktoken-jamo", one.jamo
        yield "tiktoken-stray", _stray(vocab)
    else:
        no_unknown, no_end = (role not in one.role_ids for role in ("unk", "eos"))
        if what == "sentencepiece":
            yield "spm-kind", not row.sentencepiece
            yield "spm-unknown", no_unknown
            yield "threes", not pattern.bigram
            yield "crossing", first_crossing(vocab.pieces, pattern)
        else:
            yield "gguf-jamo", one.jamo
            yield "gguf-kind", not row.gguf
            if row.gguf == "gpt2":
                yield "gguf-pattern", (pattern.regex, False) not in LLAMA_CPP
                return
            yield "threes", not pattern.bigram
            yield "crossing", first_crossing(vocab.pieces, pattern)
            yield "gguf-unknown", no_unknown
            yield "gguf-end", no_end


def _stray(vocab: Vocab) -> str:
    """A piece that does not encode to itself, or ''."""
    from koktok.model.models import BpeModel

    # The same ranks over the characters that spell bytes: so a piece with half a character can be encoded, too.
    model = BpeModel(Vocab("bpe", vocab.pieces, byte_fallback=False))
    return next((piece for i, piece in enumerate(vocab.pieces) if model.encode(piece)[0] != [i]), "")


def runs_in(one: Definition, pattern: str = "koktok", *, superwords: bool = False) -> str:
    """Where a vocabulary runs with the same ids, and what to type for other runtimes, in one sentence."""
    row = KINDS[one.vocab.kind]
    if not row.hugging_face:
        name = "none"
    elif one.spelled:
        name = "jamo"
    elif row.tiktoken:
        name = {"koktok": "own-pattern", **dict.fromkeys(ACROSS_SPACES, "across-spaces")}.get(pattern, "published")
    else:
        name = {"unigram": "unigram", "bpe": "bpe"}.get(row.sentencepiece, "words")
    hf2 = ", in tokenizers 1.0 after `koktok export --to hf2`" if one.prefix == "first" else ""
    openvino = "" if pattern == "superbpe" else ", OpenVINO"  # which reads long runs of spaces in another way
    named = "superbpe" if superwords else "llama3"
    holes = _of_pattern(pattern, superwords=superwords)
    return that_hold("runs", [(name, True)], hf2=hf2, openvino=openvino, named=named, **holes)[0]


def _of_pattern(pattern: str, *, superwords: bool) -> dict[str, str]:
    """What sentences say of a pattern: its name, whether llama.cpp knows it, and what else to type for one that cuts at every space."""
    return {
        "pattern": pattern,
        "llama_cpp": "" if pattern == "o200k" else ", llama.cpp (`koktok export --to gguf`)",
        "without": " and without `--superwords`" * superwords,
    }


def limitations(
    kind: str,
    *,
    superwords: bool,
    jamo: bool,
    pattern: str = "koktok",
    prefix: bool = False,
    trim: bool = False,
    separated: bool = False,
) -> list[str]:
    """Sentences about the limits of other libraries and tasks with a vocabulary of this kind, and their workarounds."""
    spaced = kind != "wordpiece"  # pieces of WordPiece hold no space
    cases = (
        ("superwords", superwords),
        ("trimmed", spaced and trim),
        ("untrimmed", spaced and not trim),
        ("prefix", spaced and prefix),
        ("no-prefix", spaced and not prefix),
        ("unigram", kind == "unigram"),
        ("separated", separated),
        ("jamo", jamo),
        ("published", pattern not in ("koktok", *ACROSS_SPACES)),
        ("across-spaces", pattern in ACROSS_SPACES),
        ("own-pattern", pattern == "koktok" and kind == "bpe-bytes"),
    )
    or_syllable = ", or a syllable in jamo," if jamo else ""
    return that_hold("card", cases, or_syllable=or_syllable, **_of_pattern(pattern, superwords=superwords))
