"""The corpus recipe: a TOML file with its sources, and a pattern or bound for every key.

A recipe may come from anybody, and its values reach command lines, addresses, paths and a terminal. So it is checked as a whole
when it is read, before anything runs.
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
"""The longest recipe of koktok has 2 KiB."""


def _like(pattern: str, expected: str) -> AfterValidator:
    """Return a check of the whole string against a pattern."""
    test = re.compile(pattern, re.ASCII | re.IGNORECASE)

    def check(value: str) -> str:
        if value and not test.fullmatch(value):
            raise ValueError(f"expected {expected}, got {value[:80]!r}")
        return value

    return AfterValidator(check)


def _no_control(value: str) -> str:
    if visible(value) != value:
        raise ValueError(f"expected text without control characters, got {value[:80]!r}")
    return value


def _charset(value: str) -> str:
    # These two are for host names, and Python decodes them in quadratic time.
    try:
        found = codecs.lookup(value)
        known = found._is_text_encoding and found.name not in ("idna", "punycode")
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ValueError(f"expected the name of a text encoding, got {value[:80]!r}")
    return value


def _inside(value: str) -> str:
    for kind in (PurePosixPath, PureWindowsPath):
        path = kind(value)
        if path.anchor or ".." in path.parts:
            raise ValueError(f"expected a path below the folder of the recipe, got {value[:80]!r}")
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
    """The keys of every kind of source."""

    name: Annotated[str, Field(pattern=r"^(\w[\w.-]*)?$", max_length=100)] = ""
    format: Literal["txt", "code", "md", "json", "jsonl", "html", "csv", "tsv", "ipynb", "po", "file"] = "txt"
    fields: Include = ()
    encoding: Annotated[str, Field(max_length=40), AfterValidator(_charset)] = "utf-8"
    licence: Text = ""
    domain: Text = ""
    use: Literal["open", "measure"] = "open"
    """`open` if its licence allows to train on it and publish the result; else it is for measuring alone."""
    unit: Literal["document", "line"] = "document"
    """The unit that is held out as a whole."""
    text_sha256: Sha256 | None = None
    """SHA-256 of its lines, before repeated ones are dropped and a part is held out."""
    stem_of: ClassVar[str]

    @property
    def stem(self) -> str:
        """The name of the source's file, without its extension."""
        given = self.name or PurePosixPath(str(getattr(self, self.stem_of)).split("?")[0]).name.split(".")[0].strip("*")
        return re.sub(r"[^\w .-]", "-", given[:100]) or "text"

    @property
    def place(self) -> str:
        """The origin and version of the source."""
        version = next((found for key in ("commit", "version") if (found := getattr(self, key, ""))), "")
        return f"{getattr(self, self.stem_of)} {version[:12]}".strip()


class _Fetched(_Source):
    """A source from others, whose size has a bound."""

    max_mb: Megabytes = 500
    """Million bytes of the files, unpacked."""


class PypiSource(_Fetched):
    """Files of a wheel, which is downloaded and never installed."""

    kind: Literal["pypi"]
    package: Project
    version: Version
    sha256: Sha256
    include: Annotated[Include, Field(min_length=1)]
    stem_of = "package"


class GitSource(_Fetched):
    """Files of a git repository at one commit, from its host or a mirror."""

    kind: Literal["git"]
    repository: Repository
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    include: Annotated[Include, Field(min_length=1)]
    exclude: Include = ()
    stem_of = "repository"


class LocalSource(_Source):
    """Files beside the recipe: a path or a glob relative to its folder."""

    kind: Literal["local"]
    path: LocalPath
    stem_of = "path"


AnySource = PypiSource | GitSource | LocalSource
_SOURCES: dict[str, type[_Source]] = {"pypi": PypiSource, "git": GitSource, "local": LocalSource}


class CorpusRecipe(_Strict):
    """A corpus: its sources and a description."""

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
            raise ValueError(f"two sources are called `{twice[0]}`: one requires a `name`")
        if bool(self.source) == bool(self.sources_of):
            raise ValueError("expected [[source]] tables or `sources_of`, one of the two")
        return self

    @property
    def file(self) -> Path:
        """The TOML file of the recipe."""
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
        raise CorpusError(f"the recipe `{file}` has the name `{recipe.name}`", hint=f'name = "{file.stem}"')
    if recipe.sources_of:
        base = load(file.parent / f"{recipe.sources_of}.toml")
        recipe = recipe.model_copy(update={"source": tuple(one for one in base.source if one.use == "open")})
    recipe._file = file.resolve()
    return recipe


def _first(error: ValidationError, table: dict[str, Any]) -> str:
    """Describe the first error with its key and the allowed values."""
    # An unknown key comes first: it is often the missing one, misspelt.
    problem = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    where = [str(part + 1) if isinstance(part, int) else part[:80] for part in problem["loc"] if part not in _SOURCES]
    if problem["type"] != "extra_forbidden":
        return f"{' '.join(where) or 'the whole'}: {problem['msg'].removeprefix('Value error, ')}"
    fields = CorpusRecipe.model_fields
    if problem["loc"][0] == "source":
        fields = _SOURCES[table["source"][problem["loc"][1]]["kind"]].model_fields
    ask = did_you_mean(where[-1], fields)
    return f"unknown key `{' '.join(where)}`{f'; {ask}' if ask else '.'} Allowed: {', '.join(fields)}"
