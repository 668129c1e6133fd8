"""Imported tokenizers in other formats: tokenizer.json of SentencePiece models and of ranks, GGUF where llama.cpp can run it.

The nodes of another library are combined to do the same; `agreement` compares the ids on hard texts.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from koktok.errors import ArtifactError, InputError
from koktok.model.special import NO_LIMIT
from koktok.protocol.agree import Ids, agree
from koktok.runtimes import gguf
from koktok.runtimes.huggingface.adapter import HuggingFace
from koktok.runtimes.huggingface.tokenizer_json import bpe_node
from koktok.runtimes.library import PROBES, LibraryTokenizer
from koktok.runtimes.sentencepiece.adapter import SentencePiece
from koktok.runtimes.sentencepiece.message import BPE, NORMAL, UNIGRAM, USER_DEFINED
from koktok.runtimes.tiktoken.adapter import Tiktoken
from koktok.text.patterns import LLAMA_CPP, PUBLISHED, STEPS


def hf_definition(adapter: LibraryTokenizer) -> dict[str, Any]:
    """The tokenizer.json of an imported tokenizer, as values."""
    if isinstance(adapter, HuggingFace):
        return dict(adapter.content)
    if isinstance(adapter, SentencePiece):
        return _from_sentencepiece(adapter)
    if isinstance(adapter, Tiktoken):
        return _from_ranks(adapter)
    raise ArtifactError(f"expected a tokenizer with a tokenizer.json, got one of {adapter.library}")


def hf_config(adapter: LibraryTokenizer) -> str:
    """A tokenizer_config.json for an imported tokenizer that has none."""
    config = {
        **adapter.roles,
        "clean_up_tokenization_spaces": False,
        "model_max_length": NO_LIMIT,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return json.dumps(config, ensure_ascii=False, indent=2) + "\n"


def hf_files(adapter: LibraryTokenizer) -> dict[str, str | bytes]:
    """A folder for transformers: tokenizer.json and tokenizer_config.json."""
    if isinstance(adapter, HuggingFace):
        files = adapter.files()
    else:
        files = {"tokenizer.json": json.dumps(hf_definition(adapter), ensure_ascii=False, indent=2) + "\n"}
    return {**files, "tokenizer_config.json": files.get("tokenizer_config.json", hf_config(adapter))}


def agreement(adapter: LibraryTokenizer, files: Mapping[str, str | bytes]) -> list[str]:
    """The hard texts (`PROBES`) for which the tokenizer.json of `files` gives other ids than `adapter`."""
    text = files["tokenizer.json"]
    other = HuggingFace(text if isinstance(text, str) else text.decode("utf-8"))

    def ids(read: Callable[[str], Sequence[int]]) -> Ids:
        def row(line: str) -> Sequence[int] | None:
            try:
                return read(line)
            except InputError:  # the library refuses it
                return None

        return lambda lines: [*map(row, lines)]

    theirs, ours = ids(lambda line: other.read(line)[0]), ids(lambda line: adapter.encode(line).ids)
    return [example.line for example in agree(theirs, ours, PROBES, examples=len(PROBES)).examples]


def _added(specials: Mapping[str, int], more: Mapping[str, int]) -> list[dict[str, Any]]:
    """The "added_tokens" node; `more` are read in every text, special tokens only if the caller allows them."""
    rows = [(i, token, True) for token, i in specials.items()] + [(i, token, False) for token, i in more.items()]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [{"id": i, "content": token, **flags, "special": special} for i, token, special in sorted(rows)]


def _whole(**nodes: Any) -> dict[str, Any]:
    order = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
    return {"version": "1.0", "truncation": None, "padding": None, **{name: nodes.get(name) for name in order}}


def _from_sentencepiece(adapter: SentencePiece) -> dict[str, Any]:
    proto = adapter.proto
    trainer, spec = proto.trainer_spec, proto.normalizer_spec
    if trainer.model_type not in (UNIGRAM, BPE) or trainer.treat_whitespace_as_suffix:
        raise ArtifactError("no tokenizer.json for word or character models, nor for spaces as suffixes")
    steps: list[dict[str, Any]] = []
    if spec.precompiled_charsmap:
        packed = base64.b64encode(spec.precompiled_charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": packed})
    if spec.remove_extra_whitespaces:
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    space = "▁" if spec.escape_whitespaces else " "
    if spec.add_dummy_prefix:
        steps.append({"type": "Prepend", "prepend": " "})
    if spec.escape_whitespaces:
        steps.append({"type": "Replace", "pattern": {"String": " "}, "content": space})
    decoders: list[dict[str, Any]] = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if spec.escape_whitespaces:
        decoders.insert(0, {"type": "Replace", "pattern": {"String": space}, "content": " "})
    if spec.add_dummy_prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    scores = {row.piece: row.score for row in proto.pieces if row.type in (NORMAL, USER_DEFINED)}
    lowest = min((row.score for row in proto.pieces if row.type == NORMAL), default=0.0)
    if trainer.model_type == UNIGRAM:
        # Hugging Face matches every row in text, SentencePiece only normal ones: the others get the lowest score.
        model: dict[str, Any] = {
            "type": "Unigram",
            "unk_id": adapter.unknown,
            "vocab": [[row.piece, scores.get(row.piece, lowest)] for row in proto.pieces],
            "byte_fallback": trainer.byte_fallback,
        }
    else:
        model = bpe_node(
            {row.piece: i for i, row in enumerate(proto.pieces)},
            sorted(scores, key=lambda piece: -scores[piece]),
            unknown=adapter.tokens[adapter.unknown or 0],
            byte_fallback=trainer.byte_fallback,
        )
    user_defined = {row.piece: i for i, row in enumerate(proto.pieces) if row.type == USER_DEFINED}
    return _whole(
        added_tokens=_added(adapter.specials, user_defined),
        normalizer={"type": "Sequence", "normalizers": steps} if steps else None,
        decoder={"type": "Sequence", "decoders": decoders},
        model=model,
    )


def _from_ranks(adapter: Tiktoken) -> dict[str, Any]:
    ranks = adapter.ranks
    spelled = {adapter.tokens[i]: i for i in sorted(ranks.ranks.values())}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    # Oniguruma reads the plus of \p{N}{1,3}+ as a repetition, other engines as possessive.
    regex = re.sub(r"(\{\d+(?:,\d*)?\})\+", r"\1", ranks.pattern)
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return _whole(
        added_tokens=_added(ranks.specials, {}),
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split, level]},
        decoder=level,
        # Special tokens are in the table, too: else the library would assign ids after its end.
        model=bpe_node(spelled | dict(ranks.specials), sorted(spelled, key=spelled.__getitem__), ignore_merges=True),
    )


def gguf_table(adapter: LibraryTokenizer) -> gguf.GgufVocab:
    """The GGUF of an imported tokenizer, if llama.cpp has a tokenizer of its kind."""
    if isinstance(adapter, SentencePiece):
        return _gguf_of_sentencepiece(adapter)
    if isinstance(adapter, HuggingFace):
        return _gguf_of_json(adapter)
    raise ArtifactError(
        f"no GGUF: expected a SentencePiece model or a tokenizer.json, got a tokenizer of {adapter.library}",
        hint="koktok export FOLDER --to hf, then koktok import that",
    )


def _gguf_of_sentencepiece(adapter: SentencePiece) -> gguf.GgufVocab:
    proto = adapter.proto
    trainer, spec = proto.trainer_spec, proto.normalizer_spec
    if trainer.model_type not in (UNIGRAM, BPE) or trainer.treat_whitespace_as_suffix:
        raise ArtifactError("no GGUF: llama.cpp runs unigram and BPE models with spaces as prefixes only")
    unigram = trainer.model_type == UNIGRAM
    if not unigram and not trainer.byte_fallback:
        raise ArtifactError("no GGUF: llama.cpp's BPE over characters requires byte pieces, and this model has none")
    tokens = tuple(adapter.tokens)
    types = tuple(row.type for row in proto.pieces)
    symbols = [token for token, kind in zip(tokens, types, strict=True) if kind == gguf.USER_DEFINED]
    beyond = next((token for token in symbols if not token.isascii()), None)
    if unigram and beyond is not None:
        # It matches the longest *beginning* of a symbol, byte by byte: after ㅋㅋ it leaves half of ㄹ.
        raise ArtifactError(
            f"no GGUF: llama.cpp breaks characters that begin with the bytes of the user-defined symbol {beyond!r}",
            hint="user-defined symbols in ASCII are fine",
        )
    if not spec.escape_whitespaces:
        if any("▁" in token for token in tokens):
            raise ArtifactError("no GGUF: llama.cpp writes a space as ▁, and this model has both")
        tokens = tuple(token.replace(" ", "▁") for token in tokens)
    ids = {"bos": trainer.bos_id, "eos": trainer.eos_id, "pad": trainer.pad_id, "unk": trainer.unk_id}
    return gguf.GgufVocab(
        model="t5" if unigram else "llama",
        pre="default",
        tokens=tokens,
        scores=tuple(row.score for row in proto.pieces),
        types=types,
        roles={role: i for role, i in ids.items() if i >= 0},
        charsmap=bytes(spec.precompiled_charsmap) if unigram else b"",
        add_space_prefix=spec.add_dummy_prefix,
        remove_extra_whitespaces=spec.remove_extra_whitespaces,
    )


_IN_STEPS = {steps: PUBLISHED[name] for name, steps in STEPS.items()}


def _gguf_of_json(adapter: HuggingFace) -> gguf.GgufVocab:
    model, node = adapter.content["model"], adapter.content.get("pre_tokenizer") or {}
    parts = node.get("pretokenizers", [node])
    kinds = [part.get("type") for part in parts]
    steps = tuple(part.get("pattern", {}).get("Regex", "") for part in parts[:-1] if part.get("type") == "Split")
    regex = {steps[:1]: "".join(steps), (): gguf.PATTERNS_OF_BYTE_LEVEL, **_IN_STEPS}.get(steps)
    if model.get("type") != "BPE" or kinds != [*["Split"] * len(steps), "ByteLevel"] or regex is None:
        raise ArtifactError(
            "no GGUF: expected a tokenizer.json of byte-level BPE with one pattern, got "
            f"{model.get('type')} with {', '.join(map(str, kinds))}",
            hint="koktok import the SentencePiece model, if there is one",
        )
    if parts[-1].get("add_prefix_space", True):
        raise ArtifactError("no GGUF: llama.cpp adds no space before a text, and this tokenizer does")
    pre = LLAMA_CPP.get((regex, bool(model.get("ignore_merges"))))
    if pre is None:
        raise ArtifactError(
            f"no GGUF: llama.cpp has no pattern `{regex[:60]}…` by name",
            hint=f"it has those of {', '.join(sorted(set(LLAMA_CPP.values())))}",
        )
    added = {token["id"]: bool(token["special"]) for token in adapter.content.get("added_tokens", ())}
    kind_of = {True: gguf.CONTROL, False: gguf.USER_DEFINED}
    roles = {role.removesuffix("_token"): adapter.specials[name] for role, name in adapter.roles.items()}
    # Special tokens around a text of one character are those around every text; llama.cpp has one before and one after.
    bare, whole = (adapter.encode("a", add_special_tokens=on).ids for on in (False, True))
    at = next((i for i in range(len(whole)) if whole[i : i + len(bare)] == bare), 0)
    around = {"bos": whole[:at], "eos": whole[at + len(bare) :]}
    roles |= {role: ids[0] for role, ids in around.items() if len(ids) == 1}
    return gguf.GgufVocab(
        model="gpt2",
        pre=pre,
        tokens=tuple(token or f"[PAD{i}]" for i, token in enumerate(adapter.tokens)),
        scores=(),
        types=tuple(
            kind_of[added[i]] if i in added else gguf.NORMAL if token else gguf.UNUSED
            for i, token in enumerate(adapter.tokens)
        ),
        roles=roles,
        merges=tuple(pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]),
        add_bos=len(around["bos"]) == 1,
        add_eos=len(around["eos"]) == 1,
    )
