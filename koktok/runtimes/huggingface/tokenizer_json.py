"""tokenizer.json, which `tokenizers` and `transformers` load without code of koktok, and the files beside it.

The five stages are the nodes of Hugging Face's engine: normalizer, pre-tokenizer, model, post-processor, decoder. Spaces are
real spaces inside pieces, so the decoder only joins bytes and fuses, and every text is restored exactly. The layout is that
of the library's own writer to the byte, so that `save_pretrained` right after loading changes nothing. `koktok.load` reads
the vocabulary from tokenizer.json, too.

`train_new_from_iterator` on such a file (transformers 4.57.6 and 5.23, tests/model/test_special.py) keeps normalizer, pre-tokenizer,
decoder, roles and template, and loses morpheme boundaries, byte fallback and the order of ids. Characters that are not in its
text then decode to U+FFFD (unigram) or to nothing (bpe), and two runs of unigram differ. Only the byte-level kinds stay lossless.
`koktok train --recipe FOLDER` loses nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from koktok import hangul
from koktok.errors import ArtifactError
from koktok.model.definition import Definition
from koktok.model.special import Style
from koktok.model.vocab import BYTE_PIECES, MARK, WITH_UNKNOWN, Vocab, VocabKind, splits
from koktok.runtimes.huggingface.normalizer import normalizer_node
from koktok.runtimes.huggingface.pre_tokenizer import APART, FIRST_SPACE, cutting, sequence
from koktok.runtimes.limits import first_that_holds
from koktok.text.prefix import CUT_MARK, GUARD, START, Prefix

MODEL_TYPES: Mapping[VocabKind, str] = {
    "unigram": "Unigram",
    "bpe": "BPE",
    "bpe-bytes": "BPE",
    "wordpiece": "WordPiece",
    "wordpiece-bytes": "WordPiece",
    "word": "WordLevel",
    "syllable": "BPE",  # without merges
    "jamo": "BPE",
}
"""The type of the model node of each kind of vocabulary that it can hold."""


def refuses(one: Definition) -> str:
    """The reason why a tokenizer.json cannot hold a tokenizer, or '' if it can."""
    return first_that_holds([("longest-match", one.vocab.kind not in MODEL_TYPES)], one.vocab.kind)


def tokenizer_json(one: Definition) -> str:
    """The tokenizer.json, the same bytes for the same tokenizer."""
    vocab, reason = one.vocab, refuses(one)
    if reason:
        raise ArtifactError(f"no tokenizer.json: {reason}")
    step = normalizer_node(one.normalizer)
    nodes = step["normalizers"] if step["type"] == "Sequence" else [step]
    before, after = _first_space(one.prefix)
    separators, pre_tokenizer = cutting(vocab, one.pattern, one.prefix)
    decoders = _decoders(vocab) + (jamo_decoders() if one.jamo else [])
    decoders += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * bool(one.prefix)
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, **token} for i, token in added_tokens(one).items()],
        "normalizer": {"type": "Sequence", "normalizers": [*before, *nodes, *after, *separators]},
        "pre_tokenizer": pre_tokenizer,
        "post_processor": _post_processor(one),
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": _model(vocab),
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def differs(text: str, one: Definition) -> str:
    """The first part of a tokenizer.json that decides ids and is not that of the tokenizer, or ''.

    Earlier versions did not cut words apart where that changes no id.
    """
    content, ours = json.loads(text), json.loads(tokenizer_json(one))
    if ours["pre_tokenizer"] == sequence([*FIRST_SPACE, APART]) and content.get("pre_tokenizer") == sequence(
        [*FIRST_SPACE]
    ):
        ours["pre_tokenizer"] = content["pre_tokenizer"]
    parts = ("added_tokens", "normalizer", "pre_tokenizer", "model", "post_processor")
    return next((part for part in parts if content.get(part) != ours[part]), "")


def _replace(old: dict[str, str], new: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": old, "content": new}


def _first_space(prefix: Prefix) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes before and after those of normalization, which mark a space at the beginning of a part.

    Metaspace adds the prefix space at the beginning of a text alone: before a character whose place is 0. `START` has the place
    of the first raw character, and the mark takes it. No `^`, which is the beginning of a line in one engine and of the text in
    another.
    """
    if prefix == "first":
        return [{"type": "Prepend", "prepend": START}], [
            {"type": "Prepend", "prepend": GUARD},
            _replace({"Regex": f"{GUARD}{START}(?= )"}, CUT_MARK),
            _replace({"String": f"{GUARD}{START}"}, ""),
        ]
    return [], [{"type": "Prepend", "prepend": " "}] * bool(prefix)


def added_tokens(one: Definition) -> dict[int, dict[str, Any]]:
    """The special tokens by id, as Hugging Face describes them."""
    return {
        i: {
            "content": token,
            "single_word": False,
            "lstrip": token in one.style.lstrip,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token, i in one.vocab.special_ids.items()
    }


def _post_processor(one: Definition) -> dict[str, Any]:
    """The template around one text and around two, and before it the node that trims offsets.

    An empty template is written, too: transformers 5 would add the same node, and save it.
    """
    names: set[str] = set()

    def node(token: str, kind: int) -> dict[str, Any]:
        if token in ("A", "B"):
            return {"Sequence": {"id": token, "type_id": kind}}
        names.add(token)
        return {"SpecialToken": {"id": token, "type_id": kind}}

    single, pair = ([node(token, kind) for token, kind in one.style.around(pair=two)] for two in (False, True))
    used = {name: {"id": name, "ids": [one.vocab.special_ids[name]], "tokens": [name]} for name in sorted(names)}
    around = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": used}
    if not one.style.trim_offsets:
        return around
    trim = {"type": "ByteLevel", "add_prefix_space": bool(one.prefix), "trim_offsets": True, "use_regex": False}
    return {"type": "Sequence", "processors": [trim, around]}


def _decoders(vocab: Vocab) -> list[dict[str, Any]]:
    """The nodes of `koktok.model.decoding`."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    if vocab.bytewise:
        unmark = {"type": "Replace", "pattern": {"Regex": f"^{MARK}"}, "content": ""}
        return [unmark] * vocab.marked + [level]
    if vocab.marked:
        return [{"type": "WordPiece", "prefix": MARK, "cleanup": False}, {"type": "Fuse"}]
    return [{"type": "ByteFallback"}, {"type": "Fuse"}]


def jamo_decoders() -> list[dict[str, Any]]:
    """The nodes after Fuse that do the same as `koktok.hangul.join`.

    Hugging Face has no NFC decoder, so each syllable is a node: 399 open ones, then 10,773 that add a tail to
    them. That is 0.7 MB, 0.13 s to load, and 5 to 7 ms of processor time to decode a line of 42 characters (`python
    -m timeit --process` around `tokenizers.Tokenizer.decode`; ours takes 0.02). Fewer nodes are not possible: a node
    writes one fixed string, and only `ByteLevel` makes characters of bytes, but only of a token in which *all* characters
    spell bytes, unlike a fused text with hanja or emoji.
    """
    open_syllables = [(jamo, chr(c)) for c, jamo in hangul.SPLIT.items() if len(jamo) == 2]
    rules = open_syllables + hangul.tail_rules()
    return [{"type": "Replace", "pattern": {"String": a}, "content": b} for a, b in rules]


def _model(vocab: Vocab) -> dict[str, Any]:
    """The model node.

    Hugging Face's Unigram requires an `unk_id` among the pieces, and never gives it where byte fallback covers every character.
    It is the byte FF, which no UTF-8 has: JavaScript has no byte fallback, and what is unknown there decodes to U+FFFD. The
    special token `<unk>` cannot be it: as a row of the model it would match text that spells it.

    A model that does emit an unknown token requires it in its own table without a gap before it, so the table has all special
    tokens up to that one.
    """
    if vocab.kind == "unigram":
        byte_score = vocab.byte_score
        rows = [[piece, byte_score] for piece in BYTE_PIECES[: vocab.n_bytes]]
        rows += [[piece, score] for piece, score in zip(vocab.pieces, vocab.scores, strict=True)]
        return {
            "type": "Unigram",
            "unk_id": max(vocab.n_bytes - 1, 0),
            "vocab": rows,
            "byte_fallback": vocab.byte_fallback,
        }
    if vocab.kind in WITH_UNKNOWN:
        unknown = vocab.tokens[vocab.unknown_id]
        table = {token: i for i, token in enumerate(vocab.tokens[: vocab.unknown_id + 1])}
        if vocab.kind == "word":
            return {"type": "WordLevel", "vocab": table, "unk_token": unknown}
        return {
            "type": "WordPiece",
            "unk_token": unknown,
            "continuing_subword_prefix": MARK,
            "max_input_chars_per_word": vocab.longest_word,
            "vocab": table,
        }
    # Syllables and jamo are BPE without merges.
    ids = {piece: i for i, piece in enumerate((*BYTE_PIECES[: vocab.n_bytes], *vocab.pieces))}
    return bpe_node(ids, vocab.pieces, byte_fallback=vocab.byte_fallback)


def bpe_node(
    ids: Mapping[str, int],
    pieces: Collection[str],
    *,
    unknown: str | None = None,
    byte_fallback: bool = False,
    ignore_merges: bool = False,
) -> dict[str, Any]:
    """The node of a BPE model that merges to these pieces in their order; a run of unknown characters is one unknown token."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": unknown is not None,
        "byte_fallback": byte_fallback,
        "ignore_merges": ignore_merges,
        "vocab": dict(ids),
        "merges": [list(pair) for pair in splits(pieces)],
    }


def added_nodes(specials: Mapping[str, int], more: Mapping[str, int]) -> list[dict[str, Any]]:
    """The "added_tokens" node; `more` are read in every text, special tokens only if the caller allows them."""
    rows = [(i, token, True) for token, i in specials.items()] + [(i, token, False) for token, i in more.items()]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [{"id": i, "content": token, **flags, "special": special} for i, token, special in sorted(rows)]


def whole_json(**nodes: Any) -> dict[str, Any]:
    """A tokenizer.json with these nodes, in their usual order."""
    order = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
    return {"version": "1.0", "truncation": None, "padding": None, **{name: nodes.get(name) for name in order}}


def vocab_from_json(text: str, kind: str | None = None, *, verified: bool = False) -> Vocab:
    """The vocabulary of a tokenizer.json that koktok wrote."""
    try:
        content = json.loads(text)
        model = content["model"]
        added = sorted(content["added_tokens"], key=lambda token: token["id"])
        specials = [token["content"] for token in added]
        kinds = [kind for kind, name in MODEL_TYPES.items() if name == model["type"]]
        if not kinds:
            raise ArtifactError(f"tokenizer.json has a model of type {model['type']!r}, which koktok does not write")
        kind = kind or kinds[0]
        if kind not in kinds:
            raise ArtifactError(f"tokenizer.json has a model of type {model['type']!r}, which runs no {kind}")
        if kind == "unigram":
            pieces = [str(piece) for piece, _ in model["vocab"]]
            scores = [float(score) for _, score in model["vocab"]]
        else:
            pieces, scores = sorted(model["vocab"], key=model["vocab"].__getitem__), []
            _check_ids(pieces, map(model["vocab"].__getitem__, pieces), 0)
        if kind in WITH_UNKNOWN:
            pieces = [piece for piece in pieces if piece not in specials]
        first = len(BYTE_PIECES) if model.get("byte_fallback") else 0
        special_ids = [token["id"] for token in added]
    except ArtifactError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"tokenizer.json is damaged or not koktok's: {type(error).__name__}: {error}") from error
    if tuple(pieces[:first]) != BYTE_PIECES[:first]:
        raise ArtifactError("expected a tokenizer.json with the 256 byte pieces first, got one that is not koktok's")
    _check_ids(specials, special_ids, len(pieces))
    make = Vocab.unchecked if verified else Vocab
    return make(
        kind,
        tuple(pieces[first:]),
        tuple(scores[first:]),
        tuple(specials),
        byte_fallback=bool(first),
    )


def _check_ids(tokens: Sequence[str], ids: Iterable[Any], first: int) -> None:
    """Refuse ids with gaps: the vocabulary is read in their order."""
    for expected, (token, i) in enumerate(zip(tokens, ids, strict=True), start=first):
        if i != expected or isinstance(i, bool):
            raise ArtifactError(
                f"tokenizer.json: expected the id {expected} of {token!r}, got {i!r}",
                hint="koktok import tokenizer.json --out FOLDER, if it is not koktok's",
            )


# --- The files beside tokenizer.json ----------------------------------------------------------------------------------
#
# transformers 4.57 and 5 write different files; these are such that both read: `PreTrainedTokenizerFast` without a `backend` key,
# because 5 writes `TokenizersBackend`, which 4.57 cannot load; `additional_special_tokens`, because 4.57 expects a mapping as
# `extra_special_tokens`; the chat template in the file that both prefer *and* under the key of older readers.


def config_files(one: Definition) -> dict[str, str]:
    """The files beside tokenizer.json, by name; the same bytes for the same vocabulary and style."""
    files = {"tokenizer_config.json": config_json(one), "special_tokens_map.json": special_tokens_json(one)}
    if one.style.chat_template:
        files["chat_template.jinja"] = one.style.chat_template
        files["generation_config.json"] = generation_json(one)
    return files


def config_json(one: Definition) -> str:
    """tokenizer_config.json."""
    style = one.style
    content: dict[str, Any] = {
        "added_tokens_decoder": {str(i): token for i, token in added_tokens(one).items()},
        **_roles(style),
        **({"chat_template": style.chat_template} if style.chat_template else {}),
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if style.token_types else []), "attention_mask"],
        "model_max_length": style.model_max_length,
        "padding_side": style.padding_side,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "truncation_side": style.truncation_side,
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def generation_json(one: Definition) -> str:
    """generation_config.json of a chat folder: `generate` stops at the end of a turn, and at the end of a text."""
    ids, style = one.vocab.special_ids, one.style
    ends = [style.roles.get("eos_token", ""), style.end]
    content = {
        "bos_token_id": ids.get(style.roles.get("bos_token", "")),
        "eos_token_id": [ids[token] for token in dict.fromkeys(ends) if token in ids],
        "pad_token_id": ids.get(style.roles.get("pad_token", "")),
    }
    return json.dumps({key: value for key, value in content.items() if value not in (None, [])}, indent=2) + "\n"


def special_tokens_json(one: Definition) -> str:
    """special_tokens_map.json: the roles, for transformers 4."""
    return json.dumps(_roles(one.style), ensure_ascii=False, indent=2) + "\n"


def _roles(style: Style) -> dict[str, Any]:
    """The role of each token; tokens without one are "additional", except reserved slots."""
    used = set(style.roles.values())
    more = [token for token in style.specials if token not in used and not token.startswith("<|reserved_")]
    return {**style.roles, **({"additional_special_tokens": more} if more else {})}


# --- Files of other writers -------------------------------------------------------------------------------------------


def in_version_2(text: str, roles: Mapping[str, str]) -> str:
    """A tokenizer.json in version 2.0, as tokenizers 1.0.0rc3 reads it: with the token of each role.

    That release has `Metaspace` outside of a sequence only, so the file does without the mark before a text that begins with a
    space: such a text loses one space.
    """
    content = json.loads(text) | {"version": "2.0", "role_to_token": dict(roles)}
    steps = (content["pre_tokenizer"] or {}).get("pretokenizers")
    if steps and steps[: len(FIRST_SPACE)] == [*FIRST_SPACE]:
        if steps[len(FIRST_SPACE) :] not in ([], [APART]):
            raise ArtifactError(
                "no tokenizer.json of version 2.0: tokenizers 1.0 inserts the space before the first word only where no other "
                "pre-tokenizer follows, and this vocabulary has one",
                hint="koktok train … --no-prefix-space",
            )
        content["pre_tokenizer"] = steps[0]
        nodes = content["normalizer"]["normalizers"]
        marking = [node for some in _first_space("first") for node in some]
        content["normalizer"]["normalizers"] = [node for node in nodes if node not in marking]
    return json.dumps(content, ensure_ascii=False, indent=2)


def in_version_1(content: Mapping[str, Any]) -> dict[str, Any]:
    """A tokenizer.json in version 1.0, which tokenizers 0.x reads; its roles are in tokenizer_config.json."""
    return {key: value for key, value in content.items() if key != "role_to_token"} | {"version": "1.0"}


def parsed(text: str, where: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The content of a JSON text; an `ArtifactError` also if it is nested too deep."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except ArtifactError:
        raise
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise ArtifactError(f"`{where}` is not JSON: {why}", hint="fetch it again; it may be incomplete") from None


SPARE_IDS = 100_000
"""Ids without a token that a vocabulary may have beside three for each token: reserved ones, and holes."""


def check_sparse(ids: Collection[int], where: str) -> None:
    """Refuse ids far beyond the number of pieces: a table by id would fill the memory."""
    if max(ids, default=0) > 4 * len(ids) + SPARE_IDS:
        raise ArtifactError(
            f"`{where}` gives the id {max(ids)} in a vocabulary of {len(ids)} pieces", hint="ids count from 0"
        )


def checked_json(text: str, where: str) -> dict[str, Any]:
    """The content of a tokenizer.json in which every key and every id occurs once, which the library does not check."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        node = dict(pairs)
        if len(node) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ArtifactError(f"`{where}` has the key {twice!r} twice", hint="a piece has one id")
        return node

    content = parsed(text, where, distinct)
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or "vocab" not in model:
        raise ArtifactError(
            f"`{where}` is not a tokenizer.json: it has no model with a vocab",
            hint="tokenizer.json of a Hugging Face folder",
        )
    decoder = content.get("decoder")
    if (decoder.get("type") if isinstance(decoder, dict) else decoder) == "Kiwi":
        raise ArtifactError(
            f"`{where}` has Kiwi's own format, which the tokenizers library does not read",
            hint="kiwipiepy.sw_tokenizer.SwTokenizer reads it",
        )
    rows = model["vocab"]
    if isinstance(rows, dict):
        wrong = next(
            (piece for piece, i in rows.items() if not isinstance(i, int) or isinstance(i, bool) or i < 0), None
        )
        if wrong is not None:
            raise ArtifactError(f"`{where}`: expected a whole number from 0 as id of {wrong!r}, got {rows[wrong]!r}")
        taken: dict[int, str] = {}
        for piece, i in rows.items():
            if taken.setdefault(i, piece) != piece:
                raise ArtifactError(f"`{where}` gives the id {i} to {taken[i]!r} and to {piece!r}")
        check_sparse(taken, where)
    elif isinstance(rows, list):
        wrong = next((row for row in rows if not (isinstance(row, list) and row and isinstance(row[0], str))), None)
        if wrong is not None:
            raise ArtifactError(
                f"`{where}`: expected a piece and its score in each row of the vocabulary, got {str(wrong)[:60]}"
            )
        pieces = Counter(row[0] for row in rows)
        if pieces and pieces.most_common(1)[0][1] > 1:
            raise ArtifactError(f"`{where}` has the piece {pieces.most_common(1)[0][0]!r} twice")
        unknown = model.get("unk_id")
        if isinstance(unknown, int) and not 0 <= unknown < len(rows):
            raise ArtifactError(f"`{where}` has the unknown id {unknown}, and {len(rows)} pieces")
    return dict(content)
