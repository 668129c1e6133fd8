"""The files beside a tokenizer.json that koktok reads: the roles of special tokens, and the ids that the model's configuration names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from koktok.errors import ArtifactError
from koktok.files import read_bounded
from koktok.runtimes.huggingface.tokenizer_json import parsed

SAVED: Final = ("tokenizer_config.json", "chat_template.jinja")
"""Those that are saved with a tokenizer."""

OF_MODEL: Final = ("config.json", "generation_config.json")
"""Those that belong to the model, and name ids."""

NAMING: Final = ("tokenizer_config.json", "config.json", "special_tokens_map.json", "added_tokens.json")
"""Files that say how transformers reads the vocabulary beside them: its class, and further tokens."""

ROLES: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The roles of special tokens in transformers."""

IDS_OF_TOKENS: Final = ("_token_id", "_token_ids", "_token_index", "suppress_tokens", "bad_words_ids")
"""How the keys of a configuration end whose values are ids."""

_MOST: Final = 100_000_000


def is_of_transformers(folder: Path) -> bool:
    """Whether files of a folder say how transformers reads its vocabulary."""
    return any((folder / name).exists() for name in NAMING)


def has_merges(vocab: Path) -> bool:
    """Whether a vocab.json has its merges.txt beside it."""
    return (vocab.parent / "merges.txt").is_file()


def files_beside(vocabulary: Path) -> dict[str, bytes]:
    """The files beside a vocabulary, by name."""
    places = (vocabulary.parent / name for name in (*SAVED, *OF_MODEL))
    return {place.name: read_bounded(place, _MOST, "a file of a tokenizer") for place in places if place.exists()}


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


def roles_of(config: Mapping[str, Any]) -> dict[str, str]:
    """The special token of each role in a tokenizer_config.json.

    Examples
    --------
    >>> roles_of({"eos_token": {"content": "</s>", "lstrip": False}, "pad_token": None, "model_max_length": 512})
    {'eos_token': '</s>'}
    """
    stated = ((role, config.get(role)) for role in ROLES)
    tokens = ((role, token.get("content") if isinstance(token, dict) else token) for role, token in stated)
    return {role: token for role, token in tokens if isinstance(token, str) and token}


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


def named_ids(files: Mapping[str, bytes], where: str) -> list[tuple[str, int]]:
    """The ids that config.json and generation_config.json name, each with its key."""
    return [pair for name in OF_MODEL for pair in ids_of_model(json_of(files, name, where))]
