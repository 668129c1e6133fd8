"""The files of a saved tokenizer; `koktok.files` writes them, and `read_folder` gives the recipe and the vocabulary."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from koktok.errors import ArtifactError, InputError, UsageError, did_you_mean
from koktok.files import Product, checked, read_bounded, read_utf8, typed
from koktok.model.vocab import Vocab
from koktok.recipe import FORMAT, Recipe
from koktok.runtimes.huggingface import tokenizer_json as hf
from koktok.runtimes.sentencepiece import model_proto as sentencepiece
from koktok.runtimes.tiktoken.ranks import SPEC

MARK = "koktok.toml"
"""The file that marks a folder as koktok's."""

CARD = "README.md"

_READ = ("special_tokens_map.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
"""Files that libraries read in the folder of a tokenizer."""

IN_A_FOLDER: Final = (
    *("tokenizer.json", "tokenizer.model", SPEC, "vocab.txt", "*.model"),
    *("model.json", "vocab.json", "*.tiktoken", "tekken*.json"),
)
"""Files that define a tokenizer in a folder of others, the preferred ones first."""

TOKENIZER = Product("koktok.sha256", "tokenizer", frozenset({MARK, *_READ}))
"""The folder of a tokenizer, trained or imported, or of a frontier of some."""


def files_of(recipe: Recipe, vocab: Vocab, signature: Mapping[str, Any]) -> dict[str, str | bytes]:
    """The files of a saved tokenizer by name; the same bytes for the same tokenizer."""
    one = recipe.definition_for(vocab)
    signature = {**signature, "kind": vocab.kind, "vocab": vocab.digest()}
    files: dict[str, str | bytes] = {MARK: ""}
    if hf.refuses(one):
        files["vocab.json"] = vocab_json(vocab)
    else:
        files["tokenizer.json"] = hf.tokenizer_json(one)
        signature["seal"] = checksum_of(files["tokenizer.json"])
        files |= hf.config_files(one)
    if not sentencepiece.refuses(one):
        files["tokenizer.model"] = sentencepiece.model_proto(one)
    files[MARK] = recipe.to_toml(signature)
    return files


def vocab_json(vocab: Vocab) -> str:
    """vocab.json: a vocabulary of a kind that no other library runs; a tokenizer.json with other ids is worse than none."""
    content = {
        "kind": vocab.kind,
        "byte_fallback": vocab.byte_fallback,
        "pieces": vocab.pieces,
        "specials": vocab.specials,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _read_vocab_json(text: str) -> Vocab:
    try:
        content = json.loads(text)
        pieces, specials = map(str, content["pieces"]), map(str, content["specials"])
        return Vocab(content["kind"], tuple(pieces), (), tuple(specials), byte_fallback=bool(content["byte_fallback"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArtifactError(f"vocab.json is damaged or not koktok's: {type(error).__name__}: {error}") from error


def with_extra(files: Mapping[str, str | bytes], extra: Mapping[str, str | bytes] | None) -> dict[str, str | bytes]:
    """The files of a folder with further files of the caller."""
    hint = 'tokenizer.save(FOLDER, extra={"NOTICE": "text"})'
    if not isinstance(extra, Mapping | None):
        raise UsageError(f"expected contents by name of a file as `extra`, got {extra!r}", hint=hint)
    more = dict(extra or {})
    for name, content in more.items():
        if not isinstance(name, str) or name in ("", "..") or Path(name).name != name or "\\" in name or "\0" in name:
            raise UsageError(f"expected names of files in the folder in `extra`, got {name!r}", hint=hint)
        if not isinstance(content, str | bytes):
            raise UsageError(f"expected text or bytes as {name!r} in `extra`, got {content!r}", hint=hint)
    if twice := sorted(files.keys() & more.keys()):
        raise UsageError(f"`{twice[0]}` is a file of the tokenizer itself")
    return {**files, **more}


class Imported(BaseModel):
    """What koktok.toml says of a tokenizer that another library runs."""

    format: int
    library: str
    files: list[str]
    sha256: str


class Mark(BaseModel):
    """koktok.toml: the recipe of a trained tokenizer or the definition of an imported one, and the signature."""

    model_config = ConfigDict(extra="forbid")
    recipe: dict[str, Any] = {}
    signature: dict[str, Any] = {}
    vocabulary: dict[str, Any] = {}
    imported: Imported | None = None


_AGAIN = "copy the folder again, or train again"
TRAIN: Final = "koktok train TEXT --out FOLDER"


def read_mark(folder: Path) -> Mark:
    """Read the koktok.toml of a folder."""
    if not (folder / MARK).is_file():
        foreign = next((name for name in IN_A_FOLDER if any(folder.glob(name))), "") if folder.is_dir() else ""
        hint = f"koktok.load({str(folder)!r}) opens its {foreign} with its own library" if foreign else ""
        if folder.is_file():
            hint = f"koktok import {typed(folder)} --out FOLDER"
        if not folder.exists():
            near = [path.name for path in folder.parent.glob("*/") if (path / MARK).is_file()]
            raise InputError(f"there is no folder `{folder}`", hint=did_you_mean(folder.name, near) or TRAIN)
        raise _unreadable(folder, f"there is no {MARK} in it", hint or TRAIN)
    text = read_utf8(folder / MARK)
    try:
        mark = checked(Mark, tomllib.loads(text), f"`{folder / MARK}`", _AGAIN)
    except (ValueError, RecursionError) as error:
        raise _unreadable(folder, f"{MARK} is not TOML: {error}") from error
    if (form := mark.recipe.get("format", FORMAT)) != FORMAT:
        raise ArtifactError(
            f"`{folder}` has format {form!r}, and this koktok reads format {FORMAT}",
            hint="pip install -U koktok, or train again",
        )
    if not text.endswith("\n"):  # a number that has lost its last digits is a number
        raise _unreadable(folder, f"{MARK} ends without a line break, so a part of it is missing")
    return mark


def _unreadable(folder: Path, why: str, hint: str = _AGAIN) -> ArtifactError:
    return ArtifactError(f"`{folder}` is not a readable koktok tokenizer: {why}", hint=hint)


def read_folder(folder: Path) -> tuple[Recipe, Vocab, dict[str, Any]]:
    """Read a folder: recipe, vocabulary, and the signature without the entries that `files_of` adds."""
    mark = read_mark(folder)
    if mark.imported:
        raise ArtifactError(
            f"`{folder}` holds an imported tokenizer, which runs in its own library",
            hint=f"koktok.load({str(folder)!r})",
        )
    own = (folder / "vocab.json").is_file() and not (folder / "tokenizer.json").is_file()
    file = folder / ("vocab.json" if own else "tokenizer.json")
    signature, data = mark.signature, read_bounded(file)
    kind = signature.pop("kind", None)
    digest, verified = signature.pop("vocab", None), signature.pop("seal", None) == checksum_of(data)
    try:
        recipe, text = Recipe.build(mark.recipe), data.decode("utf-8")
        vocab = _read_vocab_json(text) if own else hf.vocab_from_json(text, kind, verified=verified)
    except ArtifactError as error:
        raise ArtifactError(f"`{file}`: {error.message}", hint=error.hint or _AGAIN) from error
    except ValueError as error:  # RecipeError and UnicodeDecodeError
        raise _unreadable(folder, str(error)) from error
    if verified:
        return recipe, vocab, signature
    if vocab.digest() != digest:
        changed, why = "vocabulary", f"its digest differs from that in {MARK}"
    else:
        changed, why = "" if own else hf.differs(text, recipe.definition_for(vocab)), f"it is not what {MARK} says"
    if changed:
        raise ArtifactError(
            f"the {changed} in `{file}` was changed: {why}",
            hint="train again" if own else "train again, or load it with tokenizers.Tokenizer.from_file",
        )
    return recipe, vocab, signature


def is_koktoks(folder: Path) -> bool:
    """Whether koktok saved a tokenizer in a folder, also if its koktok.toml is gone; exports have none."""
    with suppress(OSError, ValueError):
        return (folder / MARK).is_file() or MARK in read_utf8(folder / TOKENIZER.manifest)
    return False


def is_imported(folder: Path) -> bool:
    """True if the folder contains a tokenizer of another library, written by `koktok import`."""
    with suppress(ArtifactError):
        return read_mark(folder).imported is not None
    return False


def checksum_of(content: str | bytes) -> str:
    """First 16 hex digits of the SHA-256 of a file; a file with an unchanged checksum is not checked again on loading."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]
