"""The user dictionary of Kiwi; a recipe holds its name and digest, not the path of its file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from koktok.errors import InputError, KoktokError, RecipeError
from koktok.files import MOST_TEXT, read_bounded
from koktok.recipe import Recipe
from koktok.segment import check_dictionary


def cut_note(path: str | None, recipe: Recipe) -> list[str]:
    """A note on the words of a user dictionary that are cut before the analyser sees them: 코로나19 where numbers are cut apart."""
    lines = (
        []
        if path is None
        else read_bounded(Path(path), MOST_TEXT, "a user dictionary").decode("utf-8", "replace").splitlines()
    )
    cut = [word for line in lines if (word := line.partition("\t")[0].strip()) and recipe.pattern.crosses(word)]
    more = ", …" * (len(cut) > 3)
    return [
        f"words of the user dictionary that the pattern cuts apart: {', '.join(cut[:3])}{more} (--digits free keeps numbers)"
    ] * bool(cut)


def with_dictionary(recipe: Recipe, path: str | None) -> tuple[Recipe, str | None]:
    """The recipe with the name and digest of its user dictionary, and the path of that file."""
    named, expected = recipe.segment.user_dictionary, recipe.segment.user_dictionary_sha256
    if path is None and not named and not expected:
        return recipe, None
    check_dictionary(recipe.segment.segmenter, path or named or expected)
    called = " ".join([*([f"`{named}`"] if named else []), *([f"of SHA-256 {expected[:16]}"] if expected else [])])
    try:
        digest = hashlib.sha256(read_bounded(Path(path or named), MOST_TEXT, "a user dictionary")).hexdigest()
    except (OSError, ValueError) as error:
        if path is not None:
            why, hint = (error.message, error.hint) if isinstance(error, KoktokError) else (error, "")
            raise InputError(f"the user dictionary `{path}` cannot be read: {why}", hint=hint) from error
        raise RecipeError(
            f"the recipe needs the user dictionary {called}, and there is no such file here",
            hint="--user-dictionary FILE, or --user-dictionary '' to do without",
        ) from None
    if not digest.startswith(expected):
        raise RecipeError(
            f"the recipe needs the user dictionary {called}, and `{path or named}` is a different file ({digest[:16]})",
            hint="--user-dictionary FILE with the one of the recipe, or --recipe with another recipe",
        )
    name = named if named and expected else Path(path or named).name
    return recipe.changed(segment={"user_dictionary": name, "user_dictionary_sha256": digest}), path or named
