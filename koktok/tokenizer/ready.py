"""Ready vocabularies by name: what travels of each, and its folder in the cache."""

from __future__ import annotations

import hashlib
import lzma
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from koktok.errors import UsageError, did_you_mean
from koktok.files import cache_dir, is_intact, path_of, workplace, workplace_of, write_folder
from koktok.model.vocab import Vocab
from koktok.recipe import Recipe
from koktok.runtimes.folder import CARD, MARK, TOKENIZER, files_of
from koktok.runtimes.huggingface.tokenizer_json import vocab_from_json

HERE = Path(__file__).resolve().parent / "vocabularies"

PREFIX = "koktok:"
"""The prefix of the name of a ready vocabulary; optional before the path of a folder."""


@dataclass(frozen=True)
class ReadyVocabulary:
    """A vocabulary that is part of koktok."""

    name: str
    title: str
    recipe: Recipe

    @property
    def text(self) -> tuple[str, ...]:
        """The corpora of its training, by their names for `koktok train`."""
        return tuple(f"corpus:{source.name}" for source in self.recipe.sources)

    def _kept(self, name: str) -> str:
        return (HERE / self.name / name).read_text(encoding="utf-8")

    @cached_property
    def _signature(self) -> dict[str, Any]:
        signature: dict[str, Any] = tomllib.loads(self._kept(MARK))["signature"]
        return signature

    @property
    def digest(self) -> str:
        """The digest of its pieces and scores."""
        return str(self._signature["vocab"])

    @cached_property
    def _json(self) -> str:
        return lzma.decompress((HERE / self.name / "tokenizer.json.xz").read_bytes()).decode()

    @cached_property
    def vocab(self) -> Vocab:
        """Its pieces with their scores."""
        return vocab_from_json(self._json, self._signature["kind"])

    @cached_property
    def trained(self) -> Recipe:
        """The recipe of its training, with the digests of the sources."""
        return Recipe.from_toml(self._kept(MARK))

    @property
    def card(self) -> str:
        """Its model card."""
        return self._kept(CARD)

    @cached_property
    def files(self) -> Mapping[str, str | bytes]:
        """The files of its folder by name: those that travel, and those of other libraries, which are made of them."""
        made = files_of(self.trained, self.vocab, {})
        return {**made, MARK: self._kept(MARK), "tokenizer.json": self._json, CARD: self.card}

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

    def write(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write its folder, see `Tokenizer.save`."""
        return write_folder(folder, self.files, TOKENIZER, force=force)

    def folder(self) -> Path:
        """Its folder in the cache, written on first use, and again if a file was changed."""
        digest = hashlib.sha256((self._kept(MARK) + self.card).encode()).hexdigest()[:16]
        place = cache_dir() / "vocabularies" / digest / self.name
        if is_intact(place, TOKENIZER):
            return place
        place.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(place, ".renew")):  # of several processes the first writes it
            if not is_intact(place, TOKENIZER):
                for name in (*self.files, TOKENIZER.manifest):  # only koktok writes in the cache
                    (place / name).unlink(missing_ok=True)
                self.write(place, force=True)
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
    return ReadyVocabulary(name, about["title"], Recipe.from_toml(text))


def _names() -> list[str]:
    return sorted((file.stem for file in HERE.glob("*.toml")), key=lambda name: (name.split("k")[0], len(name), name))


def asked_for(text: str) -> str:
    """A question whether a ready vocabulary is meant, where its name was typed alone and is no path.

    Examples
    --------
    >>> asked_for("ko-32k"), asked_for("koktok:ko-32k")
    ('did you mean `koktok:ko-32k`?', '')
    """
    return "" if Path(text).exists() else did_you_mean(text, {text} & {*_names()}, f"{PREFIX}{{}}")


def folder_of(path: Path) -> Path:
    """The folder of a tokenizer: of the ready vocabulary `koktok:NAME`, of a file in it (tokenizer.json), or the path itself."""
    reference = str(path_of(path, "a tokenizer"))
    if hint := asked_for(reference):
        raise UsageError(f"there is no file or folder `{reference}`", hint=hint)
    if reference.startswith(PREFIX) and not path.exists():
        rest = reference.removeprefix(PREFIX)
        if rest in _names():
            return find(rest).folder()
        path = Path(rest)
        if not path.exists():
            known = [*_names(), *(str(place) for place in path.parent.glob("*/") if (place / MARK).is_file())]
            raise UsageError(
                f"there is no ready vocabulary and no folder `{rest}`",
                hint=did_you_mean(rest, known, f"{PREFIX}{{}}") or "koktok vocabulary list",
            )
    return path.parent if path.is_file() and (path.parent / MARK).is_file() else path
