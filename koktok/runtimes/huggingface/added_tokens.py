"""All tokens of a folder with ids and roles, as transformers' `AutoTokenizer` reads them from every file of it.

The vocabulary of tokenizer.json, a SentencePiece model, vocab.json or ranks is not all: `added_tokens_decoder`, roles and
further special tokens of tokenizer_config.json, or else added_tokens.json and special_tokens_map.json, add to it. transformers
adds them in a fixed order, and the library `tokenizers` gives the next ids to those without one. `place` does the same with the
same library, so that each of them has the row of the model's matrices that it was trained with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from koktok.errors import ArtifactError
from koktok.files import read_bounded
from koktok.runtimes.huggingface.tokenizer_json import parsed
from koktok.runtimes.huggingface.vocab_files import tokenizers_library

FILES: Final = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
    *("config.json", "generation_config.json"),
)
"""The files beside a vocabulary that say something about its tokens."""

SAVED: Final = FILES[:4]
"""Those of them that are saved with an imported tokenizer."""

OF_MODEL: Final = FILES[4:]
"""Those that belong to the model, and name ids."""

ROLES: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The roles, in the order in which transformers adds their tokens."""

IDS_OF_TOKENS: Final = ("_token_id", "_token_ids", "_token_index", "suppress_tokens", "bad_words_ids")
"""How the keys of a configuration end whose values are ids."""

_MOST: Final = 100_000_000

_ENDOFTEXT: Final = "<|endoftext|>"


def _defaults(*tokens: str | None) -> dict[str, str]:
    return {role: token for role, token in zip(ROLES, tokens, strict=True) if token}


_OF_BERT: Final = _defaults(None, None, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")
_OF_BART: Final = _defaults("<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>")

CLASSES: Final[Mapping[str, Mapping[str, str]]] = {
    **{name: {} for name in ("", "PreTrained", "TokenizersBackend")},
    **dict.fromkeys(("Bert", "DistilBert", "Electra"), _OF_BERT),
    **dict.fromkeys(("Roberta", "Bart"), _OF_BART),
    "GPT2": _defaults(_ENDOFTEXT, _ENDOFTEXT, _ENDOFTEXT, None, None, None, None),
    **dict.fromkeys(("Qwen2", "Qwen3_5"), _defaults(None, _ENDOFTEXT, _ENDOFTEXT, None, _ENDOFTEXT, None, None)),
    "Llama": _defaults("<s>", "</s>", "<unk>", None, None, None, None),
    "Gemma": _defaults("<bos>", "<eos>", "<unk>", None, "<pad>", None, "<mask>"),
}
"""The roles that classes of transformers give where no file does; these classes take the ids of any vocabulary as they are."""

MOVING: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("XLMRoberta", "Camembert", "MBart"), _OF_BART),
    **dict.fromkeys(("T5", "Pegasus"), _defaults(None, "</s>", "<unk>", None, "<pad>", None, None)),
    "Albert": _defaults("[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"),
    "DebertaV2": _defaults("[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"),
    "GPTNeoX": _defaults(_ENDOFTEXT, _ENDOFTEXT, _ENDOFTEXT, None, "<|padding|>", None, None),
}
"""Those whose code moves ids or adds tokens where there is no tokenizer.json."""


@dataclass(frozen=True)
class FolderTokens:
    """What the files beside a vocabulary say: roles, tokens with an id, and further special tokens."""

    where: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    listed: tuple[Mapping[str, Any], ...] = ()
    named: tuple[str, ...] = ()
    """Special tokens with a name of their own, as image_token."""

    further: tuple[str, ...] = ()
    """Special tokens of `additional_special_tokens`, or of `extra_special_tokens` in a list."""

    class_name: str = ""
    """The class of transformers, if its code may move ids or add tokens that no file has."""

    of_model: tuple[tuple[str, int], ...] = ()
    """Ids that config.json and generation_config.json name, each with its key."""

    def place(
        self, vocab: Mapping[str, int], added: Sequence[Mapping[str, Any]] = (), *, gaps: bool = False
    ) -> list[dict[str, Any]]:
        """The rows of "added_tokens" of a vocabulary: those that it has, and those that the folder adds, with their ids.

        With `gaps`, a token has the id that the folder states, as in a file of ranks, also if ids before it have no token.
        """
        rows = {str(row["content"]): dict(row) for row in added}
        new = [row for row in self._rows() if row["content"] not in rows]
        known = {**vocab, **{token: int(row["id"]) for token, row in rows.items()}}
        given = (_after if gaps else _by_library)(vocab, known, rows, new)
        owners = {i: token for token, i in known.items()}
        for row in self._rows():
            token, stated = str(row["content"]), row["id"]
            i = given[token]
            if stated is not None and stated != i:
                owned = f", which is that of {owners[stated]!r}" if stated in owners else ""
                raise ArtifactError(
                    f"`{self.where}` gives {token!r} the id {stated}{owned}; AutoTokenizer would give {i}",
                    hint="AutoTokenizer.from_pretrained(FOLDER).save_pretrained(NEW) writes a folder whose files agree",
                )
            if owners.setdefault(i, token) != token:
                raise ArtifactError(
                    f"`{self.where}`: {token!r} has no id: AutoTokenizer would give it that of {owners[i]!r}"
                )
            rows.setdefault(token, {**row, "id": i})
        self._refuse_orders(known)
        return sorted(rows.values(), key=lambda row: int(row["id"]))

    def _rows(self) -> list[dict[str, Any]]:
        """Tokens in the order in which transformers adds them, with an id where a file states it."""
        special = {*self.roles.values(), *self.named, *self.further}
        rows = [{**row, "special": row["special"] or row["content"] in special} for row in self.listed]
        have = {row["content"] for row in rows}
        more = dict.fromkeys((*(self.roles[role] for role in ROLES if role in self.roles), *self.named, *self.further))
        return rows + [_row(None, token, special=True) for token in more if token not in have]

    def _refuse_orders(self, known: Mapping[str, int]) -> None:
        """Transformers 4 adds named special tokens after the further ones, transformers 5 before them."""
        apart = [next((token for token in tokens if token not in known), "") for tokens in (self.named, self.further)]
        if all(apart):
            raise ArtifactError(
                f"`{self.where}`: transformers 4 and 5 give {apart[0]!r} and {apart[1]!r} different ids",
                hint="AutoTokenizer.from_pretrained(FOLDER).save_pretrained(NEW), with the version that the model was trained with",
            )


def _by_library(
    vocab: Mapping[str, int],
    known: Mapping[str, int],
    rows: Mapping[str, Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
) -> dict[str, int]:
    """Ids of all tokens; the library `tokenizers` chooses those of the new ones."""
    tokens = [row["content"] for row in new]
    if known.keys() >= set(tokens):
        return dict(known)
    tokenizers = tokenizers_library()
    library = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=dict(vocab), merges=[]))
    library.add_tokens([*sorted(rows, key=lambda token: int(rows[token]["id"])), *tokens])
    return {**known, **{token: library.token_to_id(token) for token in tokens}}


def _after(
    vocab: Mapping[str, int],  # noqa: ARG001 - as of `_by_library`
    known: Mapping[str, int],
    rows: Mapping[str, Mapping[str, Any]],  # noqa: ARG001
    new: Sequence[Mapping[str, Any]],
) -> dict[str, int]:
    """Ids of all tokens; new ones have that which a file states, if it is free, or one after all others."""
    given, taken = dict(known), set(known.values())
    for row in new:
        token, i = row["content"], row["id"]
        given.setdefault(token, i if i is not None and i not in taken else max(taken, default=-1) + 1)
        taken.add(given[token])
    return given


def _row(i: int | None, token: str, *, special: bool, flags: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A row of "added_tokens"; special tokens are searched in the text as it is, others after normalization."""
    of = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": not special}
    return {"id": i, "content": token, **{name: bool((flags or {}).get(name, value)) for name, value in of.items()}} | {
        "special": special
    }


def files_beside(vocabulary: Path) -> dict[str, bytes]:
    """The files beside a vocabulary that say something about its tokens, by name."""
    places = (vocabulary.parent / name for name in FILES)
    return {place.name: read_bounded(place, _MOST, "a file of a tokenizer") for place in places if place.exists()}


def folder_tokens(files: Mapping[str, bytes], where: str, definition: Mapping[str, Any] | None = None) -> FolderTokens:
    """What the files beside a vocabulary, or beside a tokenizer.json, say about its tokens."""
    config = json_of(files, "tokenizer_config.json", where)
    models = [json_of(files, name, where) for name in OF_MODEL]
    decoder = config.get("added_tokens_decoder")
    mapping: dict[str, Any] = {}
    listed: list[dict[str, Any]] = []
    if decoder is not None:
        for i, row in _items(decoder, "added_tokens_decoder", where):
            token = _content(row, f"added_tokens_decoder of `{where}`")
            flags = row if isinstance(row, dict) else {}
            listed.append(_row(_id(i, token, where), token, special=bool(flags.get("special")), flags=flags))
    else:
        mapping = json_of(files, "special_tokens_map.json", where)
        for token, i in json_of(files, "added_tokens.json", where).items():
            listed.append(_row(_id(i, token, where), token, special=False))
    stated = {**config, **mapping}
    class_name = _class(config, *models)
    kind = class_name.removesuffix("Fast").removesuffix("Tokenizer")
    known = {**CLASSES, **MOVING}
    kind = next((name for name in known if name.lower() == kind.lower().replace("-", "")), kind)
    roles: dict[str, Any] = dict(known.get(kind, {}))
    if definition is not None and isinstance(padding := definition.get("padding"), dict):
        roles.setdefault("pad_token", padding.get("pad_token"))
    roles |= {role: stated[role] for role in ROLES if role in stated}
    # Beside a tokenizer.json, code can add no tokens but those of roles, which most folders state.
    certain = kind in CLASSES or (definition is not None and (kind in MOVING or any(role in stated for role in ROLES)))
    extra = stated.get("extra_special_tokens") or {}
    further = stated.get("additional_special_tokens") or []
    named = [stated[name] for name in stated if name.endswith("_token") and name not in ROLES]
    named = [token for token in named if isinstance(token, str | dict)]
    if isinstance(extra, dict):
        named += extra.values()
    else:
        further = extra
    if not isinstance(further, list):
        raise ArtifactError(f"`{where}`: expected a list as additional_special_tokens, got {str(further)[:60]}")
    what = f"the special tokens of `{where}`"
    return FolderTokens(
        where,
        {role: _content(roles[role], what) for role in ROLES if roles.get(role) is not None},
        tuple(sorted(listed, key=lambda row: int(row["id"]))),
        tuple(_content(token, what) for token in named),
        tuple(_content(token, what) for token in further),
        "" if certain else class_name,
        tuple(pair for model in models for pair in ids_of_model(model)),
    )


def _class(config: Mapping[str, Any], model: Mapping[str, Any], *_: Any) -> str:
    """The class that reads the folder: of tokenizer_config.json, or that of the model."""
    return str(config.get("tokenizer_class") or model.get("tokenizer_class") or model.get("model_type") or "")


def ids_of_model(node: Any, key: str = "", *, ids: bool = False) -> Iterator[tuple[str, int]]:
    """The ids of tokens that a configuration names, with their keys: ..._token_id, ..._token_index, suppress_tokens and so on.

    Examples
    --------
    >>> list(ids_of_model({"vocab_size": 9, "eos_token_id": [3, 4], "text_config": {"pad_token_id": 0}}))
    [('eos_token_id', 3), ('eos_token_id', 4), ('pad_token_id', 0)]
    """
    if isinstance(node, dict):
        for name, value in node.items():
            yield from ids_of_model(value, name, ids=name.endswith(IDS_OF_TOKENS))
    elif isinstance(node, list):
        for value in node:
            yield from ids_of_model(value, key, ids=ids)
    elif ids and isinstance(node, int) and not isinstance(node, bool) and node >= 0:
        yield key, node


def json_of(files: Mapping[str, bytes], name: str, where: str) -> dict[str, Any]:
    """The content of a JSON file of a folder, empty without one."""
    try:
        content = parsed(files.get(name, b"{}").decode("utf-8"), f"{where}: {name}")
    except UnicodeDecodeError as error:
        raise ArtifactError(f"`{name}` of `{where}` is not UTF-8: {error}", hint="fetch it again") from error
    if not isinstance(content, dict):
        raise ArtifactError(
            f"`{name}` of `{where}` is not a JSON object, but {str(content)[:60]}", hint="remove it, or fetch it again"
        )
    return content


def _items(node: Any, name: str, where: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(node, dict):
        raise ArtifactError(f"`{where}`: expected tokens by id as {name}, got {str(node)[:60]}", hint="fetch it again")
    return node.items()


def _content(token: Any, what: str) -> str:
    """The string of a token, which may have flags."""
    content = token.get("content") if isinstance(token, dict) else token
    if not isinstance(content, str) or not content:
        raise ArtifactError(f"expected a token in {what}, got {str(token)[:60]}", hint="fetch it again")
    return content


def _id(i: Any, token: str, where: str) -> int:
    """An id, which JSON has as a string where it is a key."""
    text = str(i)
    if isinstance(i, bool) or not (text.isascii() and text.isdecimal()) or int(text) >= 1 << 31:
        raise ArtifactError(f"`{where}`: expected a whole number from 0 as id of {token!r}, got {i!r}")
    return int(text)
