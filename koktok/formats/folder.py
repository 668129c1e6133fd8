"""A saved tokenizer: which files it is made of, and a folder that is there whole or not at all.

This file adds: one list. Whoever writes a folder writes these files, under a temporary name beside its place, and
renames it at the end; whoever reads one gets the recipe and the vocabulary, or one error.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.recipe import FORMAT, Recipe

if TYPE_CHECKING:
    from koktok.tokenizer import Tokenizer
    from koktok.vocab import Vocab

__all__ = ["MARK", "check_target", "files_of", "is_imported", "path_of", "read_folder", "seal_of", "write_folder"]

MARK = "koktok.toml"
"""The file by which koktok knows a folder as its own."""


def files_of(tokenizer: Tokenizer) -> dict[str, str | bytes]:
    """The files of a saved tokenizer by name; the same bytes for the same tokenizer.

    Examples
    --------
    >>> from koktok import Recipe, Tokenizer
    >>> from koktok.vocab import Vocab
    >>> specials = Recipe().special_tokens
    >>> sorted(files_of(Tokenizer(Recipe(), Vocab.bpe("가", [], specials=specials))))
    ['koktok.toml', 'special_tokens_map.json', 'tokenizer.json', 'tokenizer.model', 'tokenizer_config.json']
    """
    from koktok.formats import hf, hf_config, plain, sentencepiece

    vocab, recipe = tokenizer.vocab, tokenizer.recipe
    signature = {**tokenizer.signature, "kind": vocab.kind, "vocab": vocab.digest()}
    files: dict[str, str | bytes] = {MARK: ""}
    if hf.why_not(vocab):
        files["vocab.json"] = plain.vocab_json(vocab)
    else:
        style = tokenizer.style
        files["tokenizer.json"] = hf.tokenizer_json(vocab, tokenizer.normalizer, tokenizer.pattern, style=style)
        signature["seal"] = seal_of(files["tokenizer.json"])
        files |= hf_config.config_files(vocab, style)
    if not sentencepiece.why_not(vocab, tokenizer.pattern):
        files["tokenizer.model"] = sentencepiece.model_proto(vocab, tokenizer.pattern, normalizer=tokenizer.normalizer)
    files[MARK] = recipe.to_toml(signature)
    return files


def read_folder(folder: Path) -> tuple[Recipe, Vocab, dict[str, Any]]:
    """What a folder of ours says: recipe, vocabulary, and the signature without what `files_of` adds to it.

    Raises
    ------
    ArtifactError
        When the folder is missing, damaged, changed by hand, or written by a newer koktok.
    """
    from koktok.formats import hf, plain

    own = (folder / "vocab.json").is_file() and not (folder / "tokenizer.json").is_file()
    file = folder / ("vocab.json" if own else "tokenizer.json")
    try:
        toml = (folder / MARK).read_text(encoding="utf-8")
        data = file.read_bytes()
        text = data.decode("utf-8")
        tables = tomllib.loads(toml)
        signature, written = tables.get("signature", {}), tables.get("recipe", {})
        newer = isinstance(written, dict) and written.get("format", FORMAT) != FORMAT
        recipe = Recipe() if newer else Recipe.from_toml(toml)
    except (OSError, ValueError) as error:  # RecipeError and decoding errors are ValueErrors
        raise ArtifactError(
            f"`{folder}` is no readable koktok tokenizer: {error}", hint="koktok train TEXT --out FOLDER"
        ) from error
    if newer:
        raise ArtifactError(
            f"`{folder}` has format {written['format']!r}, and this koktok reads format {FORMAT}",
            hint="pip install -U koktok",
        )
    if not isinstance(signature, dict):
        raise ArtifactError(f"the signature in `{folder / MARK}` is no table")
    kind = signature.pop("kind", None)
    digest, sealed = signature.pop("vocab", None), signature.pop("seal", None) == seal_of(data)
    vocab = plain.vocab_from_json(text) if own else hf.vocab_from_json(text, kind, sealed=sealed)
    if not sealed and vocab.digest() != digest:
        raise ArtifactError(
            f"the vocabulary in `{file}` is not the one that {MARK} was written with",
            hint="train again" if own else "train again, or load it with tokenizers.Tokenizer.from_file",
        )
    return recipe, vocab, signature


def is_imported(folder: Path) -> bool:
    """True where the folder holds a foreign tokenizer that `koktok import` has read."""
    try:
        return "\n[imported]" in "\n" + (folder / MARK).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def seal_of(content: str | bytes) -> str:
    """First 16 hex digits of the SHA-256 of a file: one that still has its seal need not be checked again on loading."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def path_of(path: str | Path) -> Path:
    """`path` as a path.

    Raises
    ------
    UsageError
        When it is none.

    Examples
    --------
    >>> path_of(None)
    Traceback (most recent call last):
        ...
    koktok.errors.UsageError: None came where the path of a folder was wanted
    """
    if not isinstance(path, str | os.PathLike) or "\0" in str(path) or not str(path):
        raise UsageError(f"{path!r} came where the path of a folder was wanted")
    return Path(path)


def check_target(path: str | Path) -> Path:
    """The target of a save, or an error before any work is done for it.

    Raises
    ------
    UsageError
        When the path is a file, or a folder that holds something other than a koktok tokenizer.
    InputError
        When its parent cannot be written to.
    """
    target = check_folder(path)
    if target.is_dir() and not (target / MARK).is_file() and any(target.iterdir()):
        raise UsageError(f"the folder `{target}` is not empty and holds no koktok tokenizer", hint="--out NEW-FOLDER")
    return target


def check_folder(path: str | Path) -> Path:
    """A folder that is there, or can be made; else an error as `check_target` has them."""
    target = path_of(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"`{target}` is a file; a folder is wanted", hint=f"--out {target}.koktok")
    parent = target.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not os.access(parent, os.W_OK):
        raise InputError(f"the folder `{parent}` cannot be written to", hint="--out FOLDER-OF-YOURS")
    return target


def write_folder(path: str | Path, files: Mapping[str, str | bytes]) -> Path:
    r"""Write all files, or none.

    Parameters
    ----------
    path : str or Path
        The folder; an older koktok tokenizer there is replaced.
    files : mapping of str to str or bytes
        Contents by name; text is written as UTF-8 with `\n`.

    Raises
    ------
    InputError
        When the disk says no; nothing is left behind and what was there before is untouched.
    """
    target = check_target(path)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    try:
        fresh.chmod(0o755)
        for name, content in files.items():
            (fresh / name).write_bytes(content.encode() if isinstance(content, str) else content)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.absolute().parent))
            target.rename(old / "folder")
            fresh.rename(target)
            shutil.rmtree(old)
        else:
            fresh.rename(target)
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out another folder"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target
