"""A trained folder as one small file, and back.

What is left of a folder when all is taken away that follows from the rest. Pieces stand by their spelling,
where neighbours are alike, each with its score (of a unigram) or its rank; koktok.toml and the model card stand as they
are. Everything else in the folder is written again by `koktok.formats`, and koktok.toml holds its checksum.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, UsageError, did_you_mean
from koktok.files import cache_dir, is_intact, write_folder
from koktok.formats.folder import CARD, MARK, TOKENIZER, files_of, read_folder
from koktok.recipe import Recipe
from koktok.vocab import SCORE_STEP, Vocab

HERE = Path(__file__).resolve().parent

PREFIX = "koktok:"
"""What stands before the name of a ready vocabulary, and may stand before the path of a folder."""


@dataclass(frozen=True)
class ReadyVocabulary:
    """A vocabulary that travels with koktok."""

    name: str
    title: str
    digest: str
    recipe: Recipe

    @property
    def text(self) -> tuple[str, ...]:
        """The corpora that it is trained on, as they are named to `koktok train`."""
        return tuple(f"corpus:{source.name}" for source in self.recipe.sources)

    @cached_property
    def files(self) -> Mapping[str, str | bytes]:
        """The files of its folder by name."""
        content = json.loads(lzma.decompress(self._pack.read_bytes()))
        numbers = dict(zip(content["pieces"].split("\0"), content["numbers"], strict=True))
        tables = tomllib.loads(content["toml"])
        signature = {k: v for k, v in tables["signature"].items() if k not in ("kind", "vocab", "seal")}
        order = sorted(numbers, key=lambda piece: (numbers[piece], piece))
        scores = tuple(-numbers[piece] * SCORE_STEP for piece in order) if content["kind"] == "unigram" else ()
        vocab = Vocab(
            content["kind"], tuple(order), scores, tuple(content["specials"]), byte_fallback=content["byte_fallback"]
        )
        recipe = Recipe.from_toml(content["toml"], stored=True)
        return {**files_of(recipe, vocab, signature), CARD: content["card"]}

    def differences(self, folder: Path) -> list[str]:
        """The files that are other ones in that folder, or are not there."""
        wanted = {name: data.encode() if isinstance(data, str) else data for name, data in self.files.items()}
        there = {name: (folder / name).read_bytes() if (folder / name).is_file() else b"" for name in wanted}
        return [name for name in wanted if there[name] != wanted[name]]

    @property
    def file(self) -> Path:
        """Its recipe, as `koktok train --recipe` reads it."""
        return HERE / f"{self.name}.toml"

    @property
    def _pack(self) -> Path:
        return HERE / f"{self.name}.xz"

    def write(self, folder: str | Path, *, force: bool = True) -> Path:
        """Write its folder, which `AutoTokenizer.from_pretrained` opens; see `Tokenizer.save`."""
        return write_folder(folder, self.files, TOKENIZER, force=force)

    def folder(self) -> Path:
        """Its folder in the cache, written on first use, and again where a file of it was changed."""
        digest = hashlib.sha256(self._pack.read_bytes()).hexdigest()[:16]
        place = cache_dir() / "vocabularies" / digest / self.name
        if not is_intact(place, TOKENIZER):
            for name in (*self.files, TOKENIZER.manifest):  # the cache is koktok's alone
                (place / name).unlink(missing_ok=True)
            self.write(place)
        return place


def ready_vocabularies() -> list[ReadyVocabulary]:
    """All of them, by name.

    Examples
    --------
    >>> [ready.name for ready in ready_vocabularies()][:2]
    ['ko-16k', 'ko-32k']
    """
    return [find(name) for name in _names()]


def find(name: str) -> ReadyVocabulary:
    """The vocabulary of that name."""
    known = _names()
    name = name.removeprefix(PREFIX)
    if name not in known:
        raise UsageError(
            f"there is no vocabulary `{name}`; there are: {', '.join(known)}",
            hint=did_you_mean(name, known) or "koktok vocabulary list",
        )
    text = (HERE / f"{name}.toml").read_text(encoding="utf-8")
    about = tomllib.loads(text)["vocabulary"]
    return ReadyVocabulary(name, about["title"], about["digest"], Recipe.from_toml(text))


def _names() -> list[str]:
    return sorted((file.stem for file in HERE.glob("*.toml")), key=lambda name: (name.split("k")[0], len(name), name))


def folder_of(path: Path) -> Path:
    """The folder of a tokenizer: of a ready one that `koktok:NAME` names, of a file in it (tokenizer.json), or itself."""
    named = str(path)
    if named.startswith(PREFIX) and not path.exists():
        rest = named.removeprefix(PREFIX)
        if rest in _names() or not Path(rest).exists():
            return find(rest).folder()
        path = Path(rest)
    return path.parent if path.is_file() and (path.parent / MARK).is_file() else path


def packed(folder: Path) -> bytes:
    """A trained folder as one small file, the same bytes for the same folder."""
    _, vocab, _ = read_folder(folder)
    numbers = [round(-score / SCORE_STEP) for score in vocab.scores] or range(len(vocab.pieces))
    by_spelling = dict(sorted(zip(vocab.pieces, numbers, strict=True)))
    content: dict[str, Any] = {
        "toml": (folder / MARK).read_text(encoding="utf-8"),
        "card": (folder / CARD).read_text(encoding="utf-8"),
        "kind": vocab.kind,
        "specials": vocab.specials,
        "byte_fallback": vocab.byte_fallback,
        "pieces": "\0".join(by_spelling),
        "numbers": [*by_spelling.values()],
    }
    if "\0" in "".join(by_spelling):
        raise ArtifactError(f"`{folder}` has a piece with a null character, which is not packed")
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
