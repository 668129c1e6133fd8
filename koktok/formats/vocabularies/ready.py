"""A trained folder packed into one small file, and unpacked.

The packed file has only what the rest cannot be derived from: pieces sorted by spelling, which compresses well, each with its
score (of a unigram) or its rank; koktok.toml and the model card. `koktok.formats` writes all other files again, and koktok.toml
has their checksum.
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
from koktok.model.vocab import SCORE_STEP, Vocab
from koktok.recipe import Recipe

HERE = Path(__file__).resolve().parent

PREFIX = "koktok:"
"""The prefix of the name of a ready vocabulary; optional before the path of a folder."""


@dataclass(frozen=True)
class ReadyVocabulary:
    """A vocabulary that is part of koktok."""

    name: str
    title: str
    digest: str
    recipe: Recipe

    @property
    def text(self) -> tuple[str, ...]:
        """The corpora of its training, by their names for `koktok train`."""
        return tuple(f"corpus:{source.name}" for source in self.recipe.sources)

    @cached_property
    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(lzma.decompress(self._pack.read_bytes()))
        return content

    @cached_property
    def vocab(self) -> Vocab:
        """Its pieces with their scores."""
        content = self._content
        numbers = dict(zip(content["pieces"].split("\0"), content["numbers"], strict=True))
        order = sorted(numbers, key=lambda piece: (numbers[piece], piece))
        scores = tuple(-numbers[piece] * SCORE_STEP for piece in order) if content["kind"] == "unigram" else ()
        return Vocab(
            content["kind"], tuple(order), scores, tuple(content["specials"]), byte_fallback=content["byte_fallback"]
        )

    @cached_property
    def trained(self) -> Recipe:
        """The recipe of its training, with the digests of the sources."""
        return Recipe.from_toml(self._content["toml"])

    @property
    def card(self) -> str:
        """Its model card."""
        return str(self._content["card"])

    @cached_property
    def files(self) -> Mapping[str, str | bytes]:
        """The files of its folder by name."""
        signature = tomllib.loads(self._content["toml"])["signature"]
        signature = {k: v for k, v in signature.items() if k not in ("kind", "vocab", "seal")}
        return {**files_of(self.trained, self.vocab, signature), CARD: self.card}

    def differences(self, folder: Path) -> list[str]:
        """The files that are missing in that folder, or different."""

        def same(name: str, data: str | bytes) -> bool:
            file = folder / name
            return file.is_file() and file.read_bytes() == (data.encode() if isinstance(data, str) else data)

        return [name for name, data in self.files.items() if not same(name, data)]

    @property
    def file(self) -> Path:
        """Its recipe, for `koktok train --recipe`."""
        return HERE / f"{self.name}.toml"

    @property
    def _pack(self) -> Path:
        return HERE / f"{self.name}.xz"

    def write(self, folder: str | Path, *, force: bool = True) -> Path:
        """Write its folder, see `Tokenizer.save`."""
        return write_folder(folder, self.files, TOKENIZER, force=force)

    def folder(self) -> Path:
        """Its folder in the cache, written on first use, and again if a file was changed."""
        digest = hashlib.sha256(self._pack.read_bytes()).hexdigest()[:16]
        place = cache_dir() / "vocabularies" / digest / self.name
        if not is_intact(place, TOKENIZER):
            for name in (*self.files, TOKENIZER.manifest):  # only koktok writes in the cache
                (place / name).unlink(missing_ok=True)
            self.write(place)
        return place


def ready_vocabularies() -> list[ReadyVocabulary]:
    """All ready vocabularies, by name.

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
    """The folder of a tokenizer: of the ready vocabulary `koktok:NAME`, of a file in it (tokenizer.json), or the path itself."""
    reference = str(path)
    if reference.startswith(PREFIX) and not path.exists():
        rest = reference.removeprefix(PREFIX)
        if rest in _names() or not Path(rest).exists():
            return find(rest).folder()
        path = Path(rest)
    return path.parent if path.is_file() and (path.parent / MARK).is_file() else path


def packed(folder: Path) -> bytes:
    """The packed file of a trained folder, the same bytes for the same folder."""
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
        raise ArtifactError(f"`{folder}` has a piece with a null character, which cannot be packed")
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
