"""The check of special tokens by role: their ids, the rows of the model's matrices, and config.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError
from koktok.extension.embeddings import rows_of
from koktok.runtimes.huggingface.config_files import ROLES, files_beside, named_ids
from koktok.verification.finding import CheckResult

ROLES_CHECK = "special tokens by role"


def roles(folder: Path, stated: Mapping[str, str], tokens: Sequence[str]) -> Iterator[CheckResult]:
    """Check: each has an id inside the matrices, and config.json names the same; `tokens` are those of the tokenizer by id.

    A folder without roles and without a model has nothing to check.
    """
    result = CheckResult(ROLES_CHECK, message="each has a row of the matrices, and the id that config.json names")
    try:
        of_model = named_ids(files_beside(folder / "config.json"), str(folder))
        rows = rows_of(folder)
    except ArtifactError as error:
        result.record(False, error.message.replace("{", "{{").replace("}", "}}"))
        yield result
        return
    ids = {token: i for i, token in enumerate(tokens) if token}
    for role, token in stated.items():
        result.record(token in ids, "{} {} has no id in this tokenizer", role, token)
        named = {i for key, i in of_model if key == f"{role}_id"}
        if named and token in ids:
            same = ids[token] in named
            result.record(same, "{} {} has the id {}, config.json says {}", role, token, ids[token], sorted(named))
    if rows is not None:
        size = max(ids.values(), default=-1) + 1
        result.record(size <= rows, "the last id is {}, and the matrices have {} rows", size - 1, rows)
        for key, i in of_model:
            if key.removesuffix("_id") in ROLES:
                result.record(i < rows, "the {} of config.json is {}, and the matrices have {} rows", key, i, rows)
    if pad_is_eos(stated):
        result.note = (
            f"pad_token is eos_token ({stated['eos_token']}): a collator that leaves padding out of the loss leaves out the "
            "end of each text, too"
        )
    if result.checked:
        yield result


def pad_is_eos(roles: Mapping[str, str]) -> bool:
    """Whether padding cannot be told from the end of a text."""
    return "pad_token" in roles and roles["pad_token"] == roles.get("eos_token")


def same_roles(name: str, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[CheckResult]:
    """Check: the ids of special tokens by role are those of another tokenizer."""
    result = CheckResult(f"{ROLES_CHECK}: {name}", message="the same ids")
    for role in sorted({*before, *after}):
        result.record(before.get(role) == after.get(role), "{}: {} became {}", role, before.get(role), after.get(role))
    if result.checked:
        yield result


def ids_by_role(stated: Mapping[str, str], tokens: Sequence[str]) -> dict[str, int]:
    """The id of each role."""
    ids = {token: i for i, token in enumerate(tokens) if token}
    return {role: ids.get(token, -1) for role, token in stated.items()}


def ids_in_transformers(library: Any) -> dict[str, int]:
    """The id of each role in a tokenizer of transformers."""
    return {role: int(i) for role in ROLES if (i := getattr(library, f"{role}_id", None)) is not None}
