"""tokenizer.json and its neighbours: what `tokenizers` and `transformers` load without any code of ours.

This file adds: the hand-over. The five stages are written as the nodes that Hugging Face's engine runs: normalizer,
pre-tokenizer, model, (no) post-processor, decoder. Spaces are real spaces inside pieces, so the decoder only has to
join bytes and fuse, and every text comes back exactly. tokenizer.json is also where `Tokenizer.load` reads the
vocabulary from.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from koktok.errors import ArtifactError
from koktok.models.bpe import splits
from koktok.models.wordpiece import MARK, MAX_CHARS, NO_MAX_CHARS
from koktok.vocab import BYTE_PIECES, WITH_UNKNOWN, Vocab

if TYPE_CHECKING:
    from koktok.normalize import Normalizer
    from koktok.pretokenize import Pattern

__all__ = ["config_json", "special_tokens_json", "tokenizer_json", "vocab_from_json", "why_not"]

ROLES = {
    "pad_token": ("<pad>", "[PAD]"),
    "unk_token": ("<unk>", "[UNK]"),
    "bos_token": ("<s>", "<bos>", "<|begin_of_text|>"),
    "eos_token": ("</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
    "cls_token": ("[CLS]", "<cls>"),
    "sep_token": ("[SEP]", "<sep>"),
    "mask_token": ("<mask>", "[MASK]"),
}
"""Which special token plays which role for transformers, by the spellings that readers know."""

KINDS = {
    "Unigram": ("unigram",),
    "BPE": ("bpe", "bpe-bytes", "syllable", "jamo"),
    "WordPiece": ("wordpiece", "wordpiece-bytes"),
    "WordLevel": ("word",),
}
"""Hugging Face's models, and the kinds of vocabulary that each runs."""

NO_LIMIT = int(1e30)
"""What transformers itself writes where a model has no maximum length."""


def tokenizer_json(vocab: Vocab, normalizer: Normalizer, pattern: Pattern, *, jamo: bool = False) -> str:
    """The whole tokenizer as Hugging Face's JSON, the same bytes for the same tokenizer.

    Parameters
    ----------
    vocab : Vocab
    normalizer : Normalizer
    pattern : Pattern
    jamo : bool
        Whether pieces are spelled in conjoining jamo; adds the decomposition and its inverse.

    Raises
    ------
    ArtifactError
        When Hugging Face cannot run this vocabulary; says why.
    """
    reason = why_not(vocab)
    if reason:
        raise ArtifactError(f"no tokenizer.json: {reason}")
    first_special = vocab.size - len(vocab.specials)
    steps = [normalizer.to_hf()]
    decoders = _decoders(vocab)
    if jamo:
        from koktok import jamo as letters

        steps += letters.to_hf_normalizer()
        decoders += letters.to_hf_decoder()
    nodes = [node for step in steps for node in (step["normalizers"] if step["type"] == "Sequence" else [step])]
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": first_special + i,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for i, token in enumerate(vocab.specials)
        ],
        "normalizer": {"type": "Sequence", "normalizers": nodes},
        "pre_tokenizer": _pre_tokenizer(vocab, pattern),
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": _model(vocab),
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def why_not(vocab: Vocab) -> str:
    """Why this vocabulary has no tokenizer.json, or '' where it has one."""
    if vocab.kind in ("ngram", "morpheme"):
        return f"Hugging Face has no longest match with byte fallback, which a {vocab.kind} vocabulary wants"
    return ""


def _pre_tokenizer(vocab: Vocab, pattern: Pattern) -> dict[str, Any]:
    """Our pattern, and behind it what the model wants to be done with a pretoken."""
    more: dict[str, Any]
    if vocab.kind in ("bpe-bytes", "wordpiece-bytes"):
        more = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    elif vocab.kind == "wordpiece":
        # Spaces stand at the head of a pretoken only, and WordPiece drops them.
        more = {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}
    else:
        return pattern.to_hf()
    return {"type": "Sequence", "pretokenizers": [pattern.to_hf(), more]}


def _decoders(vocab: Vocab) -> list[dict[str, Any]]:
    """Tokens to one text; see `koktok.models.decoding` for the same in Python."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    match vocab.kind:
        case "bpe-bytes":
            return [level]
        case "wordpiece":
            return [{"type": "WordPiece", "prefix": MARK, "cleanup": False}, {"type": "Fuse"}]
        case "wordpiece-bytes":
            return [{"type": "Replace", "pattern": {"Regex": f"^{MARK}"}, "content": ""}, level]
        case _:
            return [{"type": "ByteFallback"}, {"type": "Fuse"}]


def _model(vocab: Vocab) -> dict[str, Any]:
    """The model node.

    `unk_id` names a byte: Hugging Face wants some id there, and never emits it, because byte fallback has an answer
    for every character. A model that does emit an unknown token wants it in its own table, with no gap before it: then
    the special tokens up to that one are in the table too.
    """
    if vocab.kind == "unigram":
        rows = [[piece, vocab.byte_score] for piece in BYTE_PIECES[: vocab.n_bytes]]
        rows += [[piece, score] for piece, score in zip(vocab.pieces, vocab.scores, strict=True)]
        return {"type": "Unigram", "unk_id": 0, "vocab": rows, "byte_fallback": vocab.byte_fallback}
    if vocab.kind in WITH_UNKNOWN:
        node = {
            "unk_token": vocab.tokens[vocab.unknown_id],
            "vocab": {token: i for i, token in enumerate(vocab.tokens[: vocab.unknown_id + 1])},
        }
        if vocab.kind == "word":
            return {"type": "WordLevel", **node}
        limit = MAX_CHARS if vocab.kind == "wordpiece" else NO_MAX_CHARS
        return {"type": "WordPiece", **node, "continuing_subword_prefix": MARK, "max_input_chars_per_word": limit}
    # Syllables and jamo are BPE without merges.
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": vocab.byte_fallback,
        "ignore_merges": False,
        "vocab": {piece: i for i, piece in enumerate((*BYTE_PIECES[: vocab.n_bytes], *vocab.pieces))},
        "merges": [list(pair) for pair in splits(vocab)],
    }


def special_tokens_json(vocab: Vocab) -> str:
    """special_tokens_map.json: the roles, for transformers 4."""
    return json.dumps(_roles(vocab), ensure_ascii=False, indent=2) + "\n"


def config_json(vocab: Vocab) -> str:
    """tokenizer_config.json, in the spelling that transformers 4.57 and 5 both load.

    `PreTrainedTokenizerFast` without a `backend` key: version 5 writes `TokenizersBackend`, which 4.57 cannot load.
    """
    first_special = vocab.size - len(vocab.specials)
    content = {
        "added_tokens_decoder": {
            str(first_special + i): {
                "content": token,
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": True,
            }
            for i, token in enumerate(vocab.specials)
        },
        **_roles(vocab),
        "clean_up_tokenization_spaces": False,
        "model_max_length": NO_LIMIT,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _roles(vocab: Vocab) -> dict[str, str]:
    found = {}
    for role, spellings in ROLES.items():
        token = next((spelling for spelling in spellings if spelling in vocab.specials), None)
        if token is not None:
            found[role] = token
    return found


def vocab_from_json(text: str, kind: str | None = None) -> Vocab:
    """The vocabulary of a tokenizer.json that koktok wrote.

    Parameters
    ----------
    text : str
    kind : str, optional
        Of the vocabulary, where the model's type alone does not tell: BPE runs four kinds.

    Raises
    ------
    ArtifactError
        When the text is no JSON, or not laid out as `tokenizer_json` lays it out.
    """
    try:
        content = json.loads(text)
        model = content["model"]
        specials = [token["content"] for token in sorted(content["added_tokens"], key=lambda token: token["id"])]
        known = KINDS.get(model["type"])
        if known is None:
            raise ArtifactError(f"tokenizer.json holds a model of type {model['type']!r}, which koktok does not write")
        kind = kind or known[0]
        if kind not in known:
            raise ArtifactError(f"tokenizer.json holds a model of type {model['type']!r}, which runs no {kind}")
        if kind == "unigram":
            rows = [(str(piece), float(score)) for piece, score in model["vocab"]]
        else:
            rows = [(piece, 0.0) for piece, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
        if kind in WITH_UNKNOWN:
            rows = [row for row in rows if row[0] not in specials]
        first = len(BYTE_PIECES) if model.get("byte_fallback") else 0
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"tokenizer.json is damaged or not koktok's: {type(error).__name__}: {error}") from error
    if tuple(piece for piece, _ in rows[:first]) != BYTE_PIECES[:first]:
        raise ArtifactError("tokenizer.json does not begin with the 256 byte pieces; it is not koktok's")
    return Vocab(
        kind,  # type: ignore[arg-type]
        tuple(piece for piece, _ in rows[first:]),
        tuple(score for _, score in rows[first:]) if kind == "unigram" else (),
        tuple(specials),
        byte_fallback=bool(first),
    )
