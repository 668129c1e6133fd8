"""What a corpus recipe may say: its sources, its keys, and the bounds of each.

A recipe is a TOML file from anybody, and what stands in it reaches command lines, addresses, paths and a terminal. So
every key has a pattern or a bound here, and a recipe that breaks one is refused when it is read, before anything runs.
"""

from __future__ import annotations

import codecs
import re
import shlex
import tomllib
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from koktok.errors import CorpusError, did_you_mean, visible

_MAX_BYTES = 1 << 20
"""Of a recipe; the longest of ours has 2 KiB."""


def _like(pattern: str, wanted: str) -> AfterValidator:
    """A check of the whole string, with a message for people."""
    test = re.compile(pattern, re.ASCII | re.IGNORECASE)

    def check(value: str) -> str:
        if value and not test.fullmatch(value):
            raise ValueError(f"{wanted} was wanted; {value[:80]!r} came")
        return value

    return AfterValidator(check)


def _no_control(value: str) -> str:
    if visible(value) != value:
        raise ValueError(f"text without control characters was wanted; {value[:80]!r} came")
    return value


def _charset(value: str) -> str:
    # Of Python's text encodings these two are for host names, and take quadratic time.
    try:
        found = codecs.lookup(value)
        known = found._is_text_encoding and found.name not in ("idna", "punycode")
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ValueError(f"the name of a text encoding was wanted; {value[:80]!r} came")
    return value


def _inside(value: str) -> str:
    for kind in (PurePosixPath, PureWindowsPath):
        path = kind(value)
        if path.anchor or ".." in path.parts:
            raise ValueError(f"a path below the recipe's own folder was wanted; {value[:80]!r} came")
    return value


def _repository(value: str) -> str:
    parts = urlsplit(value)
    names = parts.path.strip("/").split("/")
    plain = all(re.fullmatch(r"[\w.-]+", name, re.ASCII) and name.strip(".") for name in names)
    local = parts.scheme != "http" or parts.hostname == "127.0.0.1"
    if not (parts.hostname and local and plain) or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"expected https://HOST/OWNER/NAME, got {value[:80]!r}")
    return value


Text = Annotated[str, Field(max_length=5000), AfterValidator(_no_control)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Include = Annotated[tuple[Annotated[Text, Field(min_length=1, max_length=500)], ...], Field(max_length=200)]
Megabytes = Annotated[int, Field(ge=1, le=1_000_000)]
# PEP 508 and PEP 440.
Project = Annotated[
    str, Field(min_length=1, max_length=100), _like(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", "a name of a PyPI project")
]
Version = Annotated[
    str,
    Field(min_length=1, max_length=100),
    _like(
        r"v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[._-]?(?:alpha|a|beta|b|preview|pre|c|rc)[._-]?[0-9]*)?"
        r"(?:-[0-9]+|[._-]?(?:post|rev|r)[._-]?[0-9]*)?(?:[._-]?dev[._-]?[0-9]*)?(?:\+[a-z0-9]+(?:[._-][a-z0-9]+)*)?",
        "a version such as 1.2.3",
    ),
]
Repository = Annotated[
    str, Field(max_length=2000, pattern=r"^(https://|http://127\.0\.0\.1[:/])[!-~]+$"), AfterValidator(_repository)
]
LocalPath = Annotated[Text, Field(min_length=1, max_length=500), AfterValidator(_inside)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Source(_Strict):
    """What every kind of source has: the form of its text, its encoding, and the name of its file in the cache."""

    name: Annotated[str, Field(pattern=r"^(\w[\w.-]*)?$", max_length=100)] = ""
    format: Literal["txt", "md", "json", "jsonl", "html", "csv", "tsv", "ipynb", "po", "file"] = "txt"
    fields: Include = ()
    encoding: Annotated[str, Field(max_length=40), AfterValidator(_charset)] = "utf-8"
    licence: Text = ""
    domain: Text = ""
    use: Literal["open", "measure"] = "open"
    """Whether its licence lets anybody train on it and give the result away, or it is for measuring alone."""
    unit: Literal["document", "line"] = "document"
    """What is held out whole."""
    text_sha256: Sha256 | None = None
    """Of the lines that koktok takes from it, before those that came before are dropped and a part is held out."""
    stem_of: ClassVar[str]

    @property
    def stem(self) -> str:
        """Name of the source's file, without its extension."""
        given = self.name or PurePosixPath(str(getattr(self, self.stem_of)).split("?")[0]).name.split(".")[0].strip("*")
        return re.sub(r"[^\w .-]", "-", given[:100]) or "text"

    @property
    def place(self) -> str:
        """Where it comes from, and which version of it."""
        version = next((found for key in ("commit", "version") if (found := getattr(self, key, ""))), "")
        return f"{getattr(self, self.stem_of)} {version[:12]}".strip()


class _Fetched(_Source):
    """What comes from others, and may be as large as they like."""

    max_mb: Megabytes = 500
    """Million bytes of the files, unpacked."""


class PypiSource(_Fetched):
    """Members of a wheel, which is downloaded and opened, never installed."""

    kind: Literal["pypi"]
    package: Project
    version: Version
    sha256: Sha256
    include: Annotated[Include, Field(min_length=1)]
    stem_of = "package"


class GitSource(_Fetched):
    """Files of a git repository at one commit, from its host or a mirror; proven by git's ids."""

    kind: Literal["git"]
    repository: Repository
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    include: Annotated[Include, Field(min_length=1)]
    exclude: Include = ()
    stem_of = "repository"


class LocalSource(_Source):
    """Files beside the recipe: a path or a glob, relative to its folder."""

    kind: Literal["local"]
    path: LocalPath
    stem_of = "path"


AnySource = PypiSource | GitSource | LocalSource
_KINDS: dict[str, type[_Source]] = {
    "pypi": PypiSource,
    "git": GitSource,
    "local": LocalSource,
}


class CorpusRecipe(_Strict):
    """A corpus: where its text comes from and what is known about it."""

    name: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]*$", max_length=100)]
    title: Text
    description: Text
    languages: Annotated[tuple[Text, ...], Field(max_length=100)]
    domain: Text
    licence: Text
    licence_stated: Text
    eojeols: Annotated[int, Field(ge=0, le=10**13)]
    hangul_only: bool = False
    dedupe: bool = False
    held_out: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    sources_of: Annotated[str, Field(pattern="^([a-z0-9][a-z0-9-]*)?$", max_length=100)] = ""
    source: Annotated[tuple[Annotated[AnySource, Field(discriminator="kind")], ...], Field(max_length=200)] = ()
    _file: Path = Path()

    @model_validator(mode="after")
    def _own_stems(self) -> CorpusRecipe:
        stems = [source.stem.casefold() for source in self.source]  # as files are called on Windows and macOS
        if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
            raise ValueError(f"two sources are called `{twice[0]}`; give one a `name`")
        if bool(self.source) == bool(self.sources_of):
            raise ValueError("[[source]] tables, or `sources_of` another recipe, are wanted: one of the two")
        return self

    @property
    def file(self) -> Path:
        """The TOML file that it was read from."""
        return self._file


def load(file: Path) -> CorpusRecipe:
    """Read a recipe."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES >> 10} KiB")
        table = tomllib.loads(content.decode())
        recipe = CorpusRecipe.model_validate(table)
    except ValidationError as error:
        raise CorpusError(f"the recipe `{file}`: {_first(error, table)}", hint="see corpora/README.md") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CorpusError(
            f"the recipe `{file}` cannot be read: {error}", hint=f"ls -l {shlex.quote(str(file))}"
        ) from None
    if recipe.name != file.stem:
        raise CorpusError(f"the recipe `{file}` calls itself `{recipe.name}`", hint=f'name = "{file.stem}"')
    if recipe.sources_of:
        base = load(file.parent / f"{recipe.sources_of}.toml")
        recipe = recipe.model_copy(update={"source": tuple(one for one in base.source if one.use == "open")})
    recipe._file = file.resolve()
    return recipe


def _first(error: ValidationError, table: dict[str, Any]) -> str:
    """Return the first thing wrong, with the key and what may stand there."""
    # An unknown key comes first: it is often the missing one, misspelt.
    problem = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    where = [str(part + 1) if isinstance(part, int) else part[:80] for part in problem["loc"] if part not in _KINDS]
    if problem["type"] != "extra_forbidden":
        return f"{' '.join(where) or 'the whole'}: {problem['msg'].removeprefix('Value error, ')}"
    fields = CorpusRecipe.model_fields
    if problem["loc"][0] == "source":
        fields = _KINDS[table["source"][problem["loc"][1]]["kind"]].model_fields
    ask = did_you_mean(where[-1], fields)
    return f"unknown key `{' '.join(where)}`{f'; {ask}' if ask else '.'} Allowed: {', '.join(fields)}"
