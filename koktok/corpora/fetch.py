"""Fetching: a recipe to a folder of plain text in the cache, one file for each source.

A folder appears whole or not at all; afterwards the corpus needs no network. The cache is the user's (``~/.cache/koktok`` on
Linux) or ``$KOKTOK_CACHE``; recipes come from ``$KOKTOK_CORPORA``, then from koktok itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koktok.corpora import download
from koktok.corpora.extract import prose
from koktok.corpora.recipe import AnySource, CorpusRecipe, LocalSource, load
from koktok.errors import CorpusError, InputError, did_you_mean, visible
from koktok.files import Product, cache_dir, check_folder, path_of, sweep, workplace, workplace_of, write_folder
from koktok.hangul import has_syllable
from koktok.progress import OnProgress

_EXTRACTION = 1  # part of every cache key; to be raised when `koktok.corpora.extract` gives other lines


def _folders() -> Iterator[Path]:
    if own := os.environ.get("KOKTOK_CORPORA"):
        if not Path(own).is_dir():
            raise CorpusError(f"expected a folder in KOKTOK_CORPORA, got `{own}`", hint="unset KOKTOK_CORPORA")
        yield Path(own)
    yield _own_folder()


def _own_folder() -> Path:
    package = Path(__file__).resolve().parent.parent
    # The wheel carries the recipes inside the package; an editable install has them beside it.
    return package / "_corpora" if (package / "_corpora").is_dir() else package.parent / "corpora"


def mini_lines() -> list[str]:
    """Return the lines of koktok's own small corpus, without the cache.

    Examples
    --------
    >>> sum(len(line.split()) for line in mini_lines())
    11246
    """
    files = sorted((_own_folder() / "mini").glob("*.txt"))
    return [line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def list_corpora() -> list[CorpusRecipe]:
    """Return every recipe that can be fetched by name, sorted; a recipe of the user hides one of koktok.

    Examples
    --------
    >>> "mini" in [recipe.name for recipe in list_corpora()]
    True
    """
    files = {file.stem: file for folder in reversed(list(_folders())) for file in folder.glob("*.toml")}
    return [load(files[name]) for name in sorted(files)]


def find(name: str) -> CorpusRecipe:
    """Return a recipe by its name, or by the path of its .toml file.

    Examples
    --------
    >>> find("demo").languages
    ('ko',)
    """
    path_of(name, "a corpus")
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
    """Describe a recipe and the place of its text.

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
    """Return the folder of the text, whose name has a digest of the recipe and its local files."""
    digest = hashlib.sha256(f"{_EXTRACTION}\0".encode() + recipe.file.read_bytes())
    if recipe.sources_of:
        digest.update(b"\0" + (recipe.file.parent / f"{recipe.sources_of}.toml").read_bytes())
    for source in recipe.source:
        if isinstance(source, LocalSource):
            for file in download.local_files(source, recipe.file.parent):
                with file.open("rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").digest()
                digest.update(b"\0" + os.fsencode(file.name) + b"\0" + content)
    return cache_dir() / "corpora" / f"{recipe.name}-{digest.hexdigest()[:16]}"


def held_out_name(stem: str) -> str:
    """Return the name of the file of a source's held-out part."""
    return f"{stem}.held-out.txt"


def texts(name: str) -> list[Path]:
    """Return the text files of a corpus, and fetch it unless the cache has it.

    `NAME` is the training part, `NAME/held-out` the held-out part.

    Examples
    --------
    >>> [path.name for path in texts("mini")]
    ['mini.txt']
    """
    wanted = name.endswith(_HELD_OUT)
    folder = fetch(name.removesuffix(_HELD_OUT))
    stems = sorted(source.stem for source in find(name.removesuffix(_HELD_OUT)).source if source.format != "file")
    found = [folder / (held_out_name(stem) if wanted else f"{stem}.txt") for stem in stems]
    found = [file for file in found if file.exists()]
    if not found:
        what = "holds nothing out" if wanted else "holds files, and no text"
        raise CorpusError(f"the corpus `{name.removesuffix(_HELD_OUT)}` {what}", hint=f"ls {folder}")
    return found


_HELD_OUT = "/held-out"


def fetch(name: str, *, force: bool = False, mirror: str | None = None, on_progress: OnProgress | None = None) -> Path:
    """Return the folder of a corpus's text, and download and extract it unless the cache has it.

    The folder has a UTF-8 .txt file for each source, with a paragraph, item or cell on each line (and a second one,
    ``.held-out.txt``, if the recipe holds out), unchanged files for sources of the format "file", and ``fetched.json`` with
    checksums and counts. Fetching again replaces these files and no others.

    Examples
    --------
    >>> [path.name for path in fetch("mini").glob("*.txt")]
    ['mini.txt']
    """
    recipe = find(name)
    place = _place(recipe)
    if place.is_dir() and not force:
        return place
    report = on_progress or (lambda *_: None)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        sweep(place.parent, ".*.koktok")
        with workplace(workplace_of(place, ".fetch"), wait=float("inf")):
            if place.is_dir() and not force:  # another process has fetched it
                return place
            check_folder(place, _TEXT, [f"{source.stem}.txt" for source in recipe.source])
            write_folder(place, lambda made: _make(recipe, made, report, mirror), _TEXT, force=True)
    except (InputError, OSError) as error:
        what = f"the corpus `{recipe.name}` cannot be written to `{place.parent}`: {error}"
        raise CorpusError(what, hint="export KOKTOK_CACHE=/a/folder/to/write/in") from error
    report("done", len(recipe.source), len(recipe.source))
    return place


_TEXT = Product("fetched.sha256", "corpus", frozenset({"fetched.json"}))


def is_held_out(recipe: CorpusRecipe, text: str) -> bool:
    """Whether a recipe holds out a document of this name, or a line of these letters: decided by hash, alike on every machine."""
    return int.from_bytes(_digest(text)[:8], "big") < recipe.held_out * 2**64


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass
class _Lines:
    """The lines of a recipe: which were seen, and which are held out; both as digests of 16 bytes."""

    recipe: CorpusRecipe
    seen: set[bytes] = field(default_factory=set)
    held_out: set[bytes] = field(default_factory=set)

    def key(self, text: str) -> bytes:
        return _digest(text)

    def is_held_out(self, text: str) -> bool:
        """Whether a document's name or a line's letters are held out."""
        return is_held_out(self.recipe, text)


def _make(recipe: CorpusRecipe, made: Path, report: OnProgress, mirror: str | None) -> None:
    lines = _Lines(recipe)
    rows: list[dict[str, Any]] = []
    for index, source in enumerate(recipe.source):
        report(f"{source.kind} {source.stem}", index, len(recipe.source))
        folder = made / f"download-{index}"
        folder.mkdir()
        found = download.documents(source, recipe.file.parent, folder, mirror)
        row = _copied(source, found, made) if source.format == "file" else _extracted(source, found, made, lines)
        shutil.rmtree(folder)
        rows.append({"source": source.stem} | row)
    for source, row in zip(recipe.source, rows, strict=True):
        if lines.held_out and source.format != "file":
            row["also_held_out"] = _without(made / f"{source.stem}.txt", lines)
            row["lines"] -= row["also_held_out"]
    totals = {key: sum(row.get(key, 0) for row in rows) for key in ("lines", "eojeols")}
    text = json.dumps({"recipe": recipe.name, **totals, "sources": rows}, ensure_ascii=False, indent=1)
    (made / "fetched.json").write_text(text + "\n", encoding="utf-8")


_RESERVED = ("fetched.json", "fetched.sha256")


def _copied(source: AnySource, found: Iterator[download.Document], made: Path) -> dict[str, Any]:
    """Copy files unchanged: treebanks and vocabularies."""
    digests: dict[str, str] = {}
    for document in found:
        name = document.name.rsplit("/", 1)[-1]
        name = f"{source.name}.{name}" if source.name else name
        if (
            name in _RESERVED or "\n" in name or name != visible(name) or not name.strip(".")
        ):  # a line feed would make lines of the manifest
            raise CorpusError(
                f"the source `{source.stem}` has a file {document.name!r}, whose name cannot be kept",
                hint="exclude = [...] in its [[source]]",
            )
        if (made / name).exists():
            raise CorpusError(f"the source `{source.stem}` has two files `{name}`", hint="name = in its [[source]]")
        data = document.read()
        (made / name).write_bytes(data)
        digests[name] = hashlib.sha256(data).hexdigest()
    return {"files": digests}


def _extracted(source: AnySource, found: Iterator[download.Document], made: Path, lines: _Lines) -> dict[str, Any]:
    recipe, whole = lines.recipe, hashlib.sha256()
    row: dict[str, Any] = {"sha256": None, "documents": 0, "lines": 0, "eojeols": 0}
    row |= {"without_hangul": 0, "repeated": 0}
    places = [made / f"{source.stem}.txt", *([made / held_out_name(source.stem)] if recipe.held_out else [])]
    with ExitStack() as stack:
        files = [stack.enter_context(place.open("w", encoding="utf-8", newline="\n")) for place in places]
        for document in found:
            row["documents"] += 1
            row["sha256"] = document.sha256
            apart = lines.is_held_out(f"{source.stem}\0{document.name}")
            stream = io.BytesIO(document.read())
            for line in prose(
                stream, source.format, encoding=source.encoding, name=document.name, fields=source.fields
            ):
                if recipe.hangul_only and not has_syllable(line):
                    row["without_hangul"] += 1
                    continue
                whole.update(f"{line}\n".encode("utf-8", "surrogatepass"))  # with lines that an earlier source has
                if recipe.dedupe:
                    if (key := lines.key(line)) in lines.seen:
                        row["repeated"] += 1
                        continue
                    lines.seen.add(key)
                row["lines"] += 1
                row["eojeols"] += len(line.split())
                letters = "".join(line.split())
                if recipe.held_out and (lines.is_held_out(letters) if source.unit == "line" else apart):
                    lines.held_out.add(lines.key(letters))
                    files[1].write(line + "\n")
                else:
                    files[0].write(line + "\n")
    if not row["lines"]:
        raise CorpusError(f"the source `{source.stem}` of `{recipe.name}` gave no line", hint="see its `include`")
    row["text_sha256"] = whole.hexdigest()
    if source.text_sha256 and source.text_sha256 != row["text_sha256"]:
        raise CorpusError(
            f"the source `{source.stem}` of `{recipe.name}`: the text has another checksum than its recipe\n"
            f"  expected {source.text_sha256}\n  got      {row['text_sha256']}",
            hint="compare the text, then write text_sha256 = … into its [[source]]",
        )
    return row


def _without(place: Path, lines: _Lines) -> int:
    """Remove lines of a training file that are held out elsewhere, compared without spaces, and return their number."""
    kept = place.with_suffix(".kept")
    gone = 0
    with place.open(encoding="utf-8", newline="\n") as old, kept.open("w", encoding="utf-8", newline="\n") as new:
        for line in old:
            if lines.key("".join(line.split())) in lines.held_out:
                gone += 1
            else:
                new.write(line)
    kept.replace(place)
    return gone
