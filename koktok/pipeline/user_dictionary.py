"""The user dictionary of Kiwi: its name and digest are part of a recipe, the place of its file is not."""

from __future__ import annotations

import hashlib
from pathlib import Path

from koktok.errors import InputError, RecipeError, UsageError
from koktok.recipe import Recipe


def with_dictionary(recipe: Recipe, given: str | None) -> tuple[Recipe, str | None]:
    """The recipe with the name and digest of its user dictionary, and the path of that file."""
    named, wanted = recipe.segment.user_dictionary, recipe.segment.user_dictionary_sha256
    if given is None and not named and not wanted:
        return recipe, None
    if recipe.segment.segmenter != "kiwi":
        raise UsageError("a user dictionary works with Kiwi only", hint="--segmenter kiwi")
    called = " ".join([*([f"`{named}`"] if named else []), *([f"of SHA-256 {wanted[:16]}"] if wanted else [])])
    try:
        found = hashlib.sha256(Path(given or named).read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        if given is not None:
            raise InputError(f"the user dictionary `{given}` cannot be read: {error}") from error
        raise RecipeError(
            f"the recipe wants the user dictionary {called}, and there is no such file here",
            hint="--user-dictionary FILE, or --user-dictionary '' to do without",
        ) from None
    if not found.startswith(wanted):
        raise RecipeError(
            f"the recipe wants the user dictionary {called}, and `{given or named}` is another one ({found[:16]})",
            hint="--user-dictionary FILE with the one of the recipe, or --recipe with another recipe",
        )
    name = named if named and wanted else Path(given or named).name
    return recipe.changed(segment={"user_dictionary": name, "user_dictionary_sha256": found}), given or named
