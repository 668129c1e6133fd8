"""Corpora by recipe: what to download, from whom, under which licence, and the checksum that it must have.

A recipe is a TOML file. Fetching one leaves a folder of plain text in the cache, one file a source; after that it is
offline. A folder appears whole or not at all: everything is made under a temporary name and renamed at the end.

The cache is the user's (``~/.cache/koktok`` on Linux) or ``$KOKTOK_CACHE``; recipes come from ``$KOKTOK_CORPORA``,
then from koktok itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from koktok.errors import CorpusError, InputError, did_you_mean
from koktok.files import Product, cache_dir, check_folder, sweep, workplace, workplace_of, write_folder
from koktok.hangul import has_syllable
from koktok.text import download
from koktok.text.corpus_recipe import CorpusRecipe, LocalSource, load
from koktok.text.extract import prose

__all__ = ["CorpusRecipe", "fetch", "find", "list_corpora", "show"]

_EXTRACTION = 1  # Part of every cache key: raise it when `koktok.text.extract` gives other lines.


def _folders() -> Iterator[Path]:
    if own := os.environ.get("KOKTOK_CORPORA"):
        if not Path(own).is_dir():
            raise CorpusError(f"KOKTOK_CORPORA names `{own}`, which is no folder", hint="unset KOKTOK_CORPORA")
        yield Path(own)
    here = Path(__file__).resolve().parent.parent
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
    return [load(files[name]) for name in sorted(files)]


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
        return load(Path(name))
    folders = list(_folders())
    for folder in folders:
        if (file := folder / f"{name}.toml").is_file() and file.parent == folder:
            return load(file)
    known = sorted({file.stem for folder in folders for file in folder.glob("*.toml")})
    raise CorpusError(
        f"there is no corpus `{name}`; there are: {', '.join(known)}",
        hint=did_you_mean(name, known, "corpus:{}") or "corpus:path/to/recipe.toml",
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
                with file.open("rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").digest()
                digest.update(f"\0{file.name}\0".encode() + content)
    return cache_dir() / "corpora" / f"{recipe.name}-{digest.hexdigest()[:16]}"


def fetch(name: str, *, force: bool = False, on_progress: Callable[[str, int, int], None] | None = None) -> Path:
    """Return the folder with the corpus's text, after downloading and extracting it where it is not there yet.

    The folder holds a UTF-8 .txt file for each source, a paragraph, item or cell a line, and ``fetched.json`` with
    the checksums and counts. Lines that came before are known by a 16-byte digest, so `dedupe` holds no text. Fetching
    anew replaces these files, and no other that lies there.

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
    >>> [path.name for path in fetch("mini").glob("*.txt")]
    ['mini.txt']
    """
    recipe = find(name)
    place = _place(recipe)
    if place.is_dir() and not force:
        return place
    tell = on_progress or (lambda *_: None)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        sweep(place.parent)
        with workplace(workplace_of(place, ".fetch"), wait=float("inf")):
            if place.is_dir() and not force:  # another process was quicker
                return place
            check_folder(place, _TEXT, [f"{source.stem}.txt" for source in recipe.source])
            write_folder(place, lambda made: _make(recipe, made, tell), _TEXT)
    except (InputError, OSError) as error:
        what = f"the corpus `{recipe.name}` cannot be kept in `{place.parent}`: {error}"
        raise CorpusError(what, hint="export KOKTOK_CACHE=/a/folder/to/write/in") from error
    tell("done", len(recipe.source), len(recipe.source))
    return place


def _without_manifest(folder: Path) -> tuple[str, ...]:
    """What an older koktok fetched, which wrote no manifest."""
    try:
        sources = json.loads((folder / "fetched.json").read_text(encoding="utf-8"))["sources"]
        return ("fetched.json", *(f"{row['source']}.txt" for row in sources))
    except (OSError, ValueError, KeyError, TypeError):
        return ()


_TEXT = Product("fetched.sha256", "corpus", frozenset({"fetched.json"}), earlier=_without_manifest)


def _make(recipe: CorpusRecipe, made: Path, tell: Callable[[str, int, int], None]) -> None:
    seen: set[bytes] = set()
    rows: list[dict[str, Any]] = []
    for index, source in enumerate(recipe.source):
        tell(f"{source.kind} {source.stem}", index, len(recipe.source))
        folder = made / f"download-{index}"
        folder.mkdir()
        row: dict[str, Any] = {"source": source.stem, "sha256": None, "documents": 0, "lines": 0, "eojeols": 0}
        row |= {"without_hangul": 0, "repeated": 0}
        with (made / f"{source.stem}.txt").open("w", encoding="utf-8", newline="\n") as out:
            for document in download.documents(source, recipe.file.parent, folder):
                row["documents"] += 1
                row["sha256"] = document.sha256
                with document.open() as stream:
                    for line in prose(stream, source.format, encoding=source.encoding, name=document.name):
                        if recipe.hangul_only and not has_syllable(line):
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
