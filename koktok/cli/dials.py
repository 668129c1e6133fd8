"""Options for the dials of a training: each is a field of the Recipe, which says its type, its default and what it does.

A verb lists the fields that it takes, in groups; name, type, choices, default and help are the field's. They are read
when the verb is called, for loading the Recipe takes longer than everything else that `koktok --help` needs.
"""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
from typer.core import TyperCommand

from koktok.cli.options import Grouped, fraction, pairs, size_of
from koktok.errors import InputError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Groups = Mapping[str, str]
"""Names of fields, separated by spaces, by the heading under which `--help` shows them; "" is that of the other options."""

OPTIONS = {"character_coverage": "coverage", "mass": "segment-mass", "required": "require"}
"""Fields whose option has another name."""


@dataclass(frozen=True)
class Typed:
    """How a field is typed that is more than a number or a name."""

    metavar: str
    value: Callable[[Any], Any]
    """What was typed to the field's value."""
    several: bool = False
    """Whether the option may be repeated."""


def _lines(file: str) -> tuple[str, ...]:
    from koktok.blocklist import Blocklist

    return Blocklist.load(Path(file)).lines


def _required(name: str) -> str | list[str]:
    """What `--require` names: a list of its own, or the lines of a file of characters."""
    if name in ("auto", "none", "ks-x-1001"):
        return name
    hint = "--require ks-x-1001 | none | FILE"
    try:
        lines = Path(name).read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"`--require {name}` is no known list, and cannot be read as a file of characters: {error}", hint=hint
        ) from error
    if not lines:
        raise InputError(f"`{name}` holds no characters", hint=hint)
    return [unicodedata.normalize("NFC", line) for line in lines]


def _shares(items: list[str]) -> dict[str, float] | None:
    from koktok.recipe import SCRIPTS

    wanted = f"SCRIPT=SHARE with one of {', '.join(SCRIPTS)}, and a share from 0 to 1"
    return pairs("--reserve-script", items, fraction, wanted=wanted, example="latin=0.3", names=SCRIPTS) or None


def _chat_template(given: str) -> str | None:
    from koktok.formats.styles import chat_template_of

    return chat_template_of(given)


TYPED: Mapping[str, Typed] = {
    "vocab_size": Typed("32000|32k", size_of),
    "blocklist": Typed("FILE", _lines),
    "required": Typed("NAME|FILE", _required),
    "reserve_script": Typed("SCRIPT=SHARE", _shares, several=True),
    "specials": Typed("A,B,...", lambda given: tuple(given.split(","))),
    "chat_template": Typed("NAME|FILE", _chat_template),
    "user_dictionary": Typed("FILE", str),
}


class Dial:
    """A field of the Recipe as an option.

    Examples
    --------
    >>> dial = Dial("segmenter")
    >>> dial.option, dial.key, dial.default
    ('--segmenter', 'segment.segmenter', 'kiwi')
    >>> dial.help
    'The analyser, which runs while training only: kiwi | mecab | okt | komoran | kkma | hannanum | khaiii | soynlp | whitespace.'
    """

    def __init__(self, name: str) -> None:
        from koktok.recipe import SECTION_OF, Recipe

        self.name = name
        section = SECTION_OF.get(name)
        fields = Recipe.model_fields
        if section:
            fields = fields[section].annotation.model_fields  # type: ignore[union-attr]
        self.field: FieldInfo = fields[name]
        self.key = f"{section}.{name}" if section else name
        self.option = f"--{OPTIONS.get(name, name.replace('_', '-'))}"
        self.types = [*_members(self.field.annotation)]
        self.choices = [choice for choice in self.types if isinstance(choice, str)]

    @property
    def default(self) -> str:
        """The default as one types it; nothing where there is none."""
        value = self.field.default
        if isinstance(value, bool) or value in (None, "", (), {}):
            return ""
        return ",".join(value) if isinstance(value, tuple) else value if isinstance(value, str) else f"{value:g}"

    @property
    def description(self) -> str:
        """What the field's docstring says, on one line."""
        return " ".join((self.field.description or "").split())

    @property
    def help(self) -> str:
        """The first sentence of that, with the choices."""
        sentence = re.split(r"\.\s+(?=[A-Z`])", self.description)[0].removesuffix(".")
        choices = f": {' | '.join(self.choices)}" if self.choices and bool not in self.types else ""
        return f"{sentence}{choices}."

    def parameter(self, heading: str, *, default: bool) -> inspect.Parameter:
        """The option, for a function that Typer reads; `default`, whether its help names it."""
        typed, option = TYPED.get(self.name), self.option
        kind: Any = next((kind for kind in (bool, int, float) if kind in self.types), str)
        if typed is not None:
            kind = list[str] if typed.several else str
        if kind is bool:
            option = f"{option}/--no-{option[2:]}"
        info = typer.Option(
            option,
            help=f"{self.help} [{self.default}]" if default and self.default else self.help,
            metavar=typed.metavar if typed else None,
            parser=size_of if typed and typed.value is size_of else None,
            autocompletion=self._completed if self.choices and kind is str else None,
            rich_help_panel=heading or None,
        )
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, info]
        )

    def _completed(self, incomplete: str) -> list[str]:
        return [choice for choice in self.choices if choice.startswith(incomplete)]


def _members(annotation: Any) -> Iterator[Any]:
    """The types that an annotation joins, and the choices of its literals."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for part in get_args(annotation):
            yield from _members(part)
    elif origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin is Literal:
        yield from get_args(annotation)
    else:
        yield annotation


def values_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, by field, as `Recipe.changed` takes it; what was not typed is left out."""
    typed = {name: value for name, value in given.items() if value is not None and value != []}
    return {
        name: TYPED[name].value(value) if name in TYPED and isinstance(value, str | list) else value
        for name, value in typed.items()
    }


def add_dialled(app: typer.Typer, verb: Callable[..., None], groups: Groups, *, defaults: bool = True) -> None:
    """Give an app a verb that takes dials as keywords, `verb(..., **dials)`; its options are made when it is called.

    The dials come behind the verb's positional parameters and before those that are for keywords alone. What nobody typed
    is None; `defaults` says whether it then is what the Recipe has.
    """

    class Later(TyperCommand):
        def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            alone.command(cls=Grouped)(_with_options(verb, groups, defaults=defaults))
            return typer.main.get_command(alone).make_context(info_name, args, parent, **extra)

    app.command(verb.__name__, cls=Later, help=verb.__doc__)(lambda: None)


def _with_options(verb: Callable[..., None], groups: Groups, *, defaults: bool) -> Callable[..., None]:
    """The verb as Typer reads it: a parameter for each option."""
    own = [*inspect.signature(verb, eval_str=True).parameters.values()]
    dials = [
        Dial(name).parameter(heading, default=defaults) for heading, names in groups.items() for name in names.split()
    ]
    first = [p.replace(kind=p.KEYWORD_ONLY) for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
    last = [p for p in own if p.kind is p.KEYWORD_ONLY]

    def run(**words: Any) -> None:
        verb(**words)

    run.__doc__ = verb.__doc__
    run.__signature__ = inspect.Signature([*first, *dials, *last])  # type: ignore[attr-defined]
    return run
