"""The option schema: command-line options whose type, default and help come from what they set.

An option sets a field of the Recipe (`vocab_size`) or of another model (`Masking.rate`), whose docstring describes it. A verb
lists the names that it takes, in groups. They are read when the verb is called, because loading the Recipe takes longer than
everything else that `koktok --help` needs.
"""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from koktok.cli.options import Grouped, fraction, pairs, size_of, whole_number
from koktok.errors import InputError, UsageError

Groups = Mapping[str, str]
"""Names of fields and parameters, separated by spaces, by the heading under which `--help` shows them; "" is that of the other options."""

HOMES = {
    "Folds": "koktok.text.normalize",
    "ExtendOptions": "koktok.extension.learn",
    "PruneOptions": "koktok.extension.prune",
    "Plan": "koktok.instances.plan",
    "Masking": "koktok.instances.masking",
    "PackOptions": "koktok.instances.packing",
    "WriteOptions": "koktok.instances.write",
}
"""Modules of the models whose fields are options."""

OPTIONS = {
    "character_coverage": "coverage",
    "required": "require",
    "required_pieces": "require-pieces",
    "ExtendOptions.pad_to": "pad-to-multiple",
    "ExtendOptions.sizes": "frontier",
    "ExtendOptions.specials": "special",
    "PruneOptions.drop": "prune",
    "Masking.unit": "mask",
}
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
    from koktok.text.blocklist import Blocklist

    return Blocklist.load(Path(file)).lines


def _required(name: str) -> str | list[str]:
    """What `--require` names: a list of its own, or the characters of a file."""
    if name in ("auto", "none", "ks-x-1001"):
        return name
    from koktok.files import typed

    hint = "--require ks-x-1001 | none | FILE"
    found = _words(name, "a file of characters", hint)
    if several := [word for word in found if len(word) > 1]:
        raise InputError(
            f"expected a character a line in `{name}`, got {several[0]!r}",
            hint=f"--require-pieces {typed(name)}, or white space between the characters",
        )
    return found


def _required_pieces(name: str) -> list[str]:
    return _words(name, "a file of pieces", "--require-pieces FILE")


def _words(name: str, what: str, hint: str) -> list[str]:
    """What white space separates in a file."""
    from koktok.files import read_utf8

    words = read_utf8(Path(name), what, hint).removeprefix("\ufeff").split()
    if not words:
        raise InputError(f"`{name}` is empty; expected {what}", hint=hint)
    return [unicodedata.normalize("NFC", word) for word in words]


def _shares(items: list[str]) -> dict[str, float] | None:
    from koktok.recipe import SCRIPTS

    expected = f"SCRIPT=SHARE with one of {', '.join(SCRIPTS)}, and a share from 0 to 1"
    return pairs("--reserve-script", items, fraction, expected=expected, example="latin=0.3", names=SCRIPTS) or None


def _keep(word: str) -> float | dict[str, float]:
    from koktok.training.unigram_point import GROUPS

    if "=" not in word:
        try:
            return fraction(word)
        except ValueError:
            raise UsageError(f"expected `--keep` with a share from 0 to 1, got `{word}`", hint="--keep 0.8") from None
    expected = f"KIND=SHARE with one of {', '.join(GROUPS)}, and a share from 0 to 1"
    return pairs("--keep", word.split(","), fraction, expected=expected, example="josa=0.9,eomi=0.8", names=GROUPS)


def _chat_template(name: str) -> str | None:
    from koktok.tokenizer.restyle import chat_template_of

    return chat_template_of(name)


def _sizes(words: str) -> list[int]:
    return [size_of(word) for word in words.split(",")]


def _special_ids(items: list[str]) -> dict[str, int]:
    return pairs("--special", items, whole_number, expected="TOKEN=ID", example="'<|a|>=7'")


def _rate(words: str) -> float | tuple[float, ...]:
    try:
        first, *more = (float(part) for part in words.split(":"))
    except ValueError:
        raise UsageError(
            f"expected `--rate` with a share, or two, got `{words}`", hint="--rate 0.15, or --rate 0.3:0.15"
        ) from None
    return (first, *more) if more else first


TYPED: Mapping[str, Typed] = {
    "vocab_size": Typed("32000|32k", size_of),
    "blocklist": Typed("FILE", _lines),
    "keep": Typed("0.8|josa=0.9,eomi=0.8", _keep),
    "required": Typed("NAME|FILE", _required),
    "required_pieces": Typed("FILE", _required_pieces),
    "reserve_script": Typed("SCRIPT=SHARE", _shares, several=True),
    "specials": Typed("A,B,...", lambda given: tuple(given.split(","))),
    "chat_template": Typed("NAME|FILE", _chat_template),
    "user_dictionary": Typed("FILE", str),
    "ExtendOptions.add": Typed("N|8k", size_of),
    "ExtendOptions.sizes": Typed("N,N,...", _sizes),
    "ExtendOptions.fill": Typed("reserved|unused|FILE", str),
    "ExtendOptions.specials": Typed("TOKEN=ID", _special_ids, several=True),
    "PruneOptions.drop": Typed("N|8k|all", lambda word: word if word == "all" else size_of(word)),
    "PruneOptions.keep_scripts": Typed("A,B,...", lambda given: [word.strip() for word in given.split(",")]),
    "Masking.rate": Typed("0.15|0.3:0.15", _rate),
}


class OptionField:
    r"""A field of the Recipe, or of a model that `HOMES` names, as an option.

    Examples
    --------
    >>> field = OptionField("segmenter")
    >>> field.option, field.key, field.default
    ('--segmenter', 'segment.segmenter', 'kiwi')
    >>> field.help
    'The morphological analyser: kiwi | mecab | okt | komoran | kkma | hannanum | khaiii | soynlp | whitespace.'
    >>> OptionField("Folds.quotes").help
    'Curly quotes and primes to " and \'.'
    """

    def __init__(self, name: str) -> None:
        owner, _, self.name = name.rpartition(".")
        self.key, self.option, self.typed = name, option_of(name), TYPED.get(name)
        if owner:
            of: Any = getattr(import_module(HOMES[owner]), owner)
        else:
            from koktok.recipe import SECTION_OF, SECTIONS, Recipe

            section = SECTION_OF.get(self.name)
            of = SECTIONS[section] if section else Recipe
            self.key = f"{section}.{name}" if section else name
        self.value: Any
        """The default."""
        self.others: dict[str, Any] = {}
        """Other defaults, by the model or preset that has them."""
        if hasattr(of, "model_fields"):
            field = of.model_fields[self.name]
            kind, description = field.annotation, field.description or ""
            self.value = None if field.is_required() else field.default
            if not owner and section:  # a default may depend on the model or the preset
                self.value = getattr(getattr(_recipe_of(), section), self.name)
                for field, cases in _cases().items():
                    for case in cases if field != self.name else ():
                        if (value := getattr(getattr(_recipe_of(field, case), section), self.name)) != self.value:
                            self.others[case] = value
        else:  # a dataclass that the Recipe holds
            shown = _schema_of(of)[self.name]
            kind, self.value, description = get_type_hints(of)[self.name], shown["default"], shown["description"]
        self.description = " ".join(description.split())
        """The docstring of the field, on one line."""
        self.types = [*_members(kind)]
        self.choices = [choice for choice in self.types if isinstance(choice, str)]

    @property
    def default(self) -> str:
        """The default as one types it, and others with their model or preset; nothing where there is none."""
        others = [f"{case}: {_typed(value) or 'off'}" for case, value in self.others.items()]
        return "; ".join([_typed(self.value) or "off", *others]) if others else _typed(self.value)

    @property
    def help(self) -> str:
        """The first sentence of that, with the choices."""
        sentence = re.split(r"\.\s+(?=[A-Z`])", self.description)[0].removesuffix(".")
        choices = f": {' | '.join(self.choices)}" if self.choices and bool not in self.types else ""
        return f"{sentence}{choices}."

    def parameter(self, heading: str, *, default: bool) -> inspect.Parameter:
        """The option, for a function that Typer reads; `default`, whether its help names it."""
        typed, option = self.typed, self.option
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


@cache
def _schema_of(of: type) -> Any:
    """The fields of a dataclass with their defaults and descriptions; made once for all options."""
    from pydantic import TypeAdapter

    return TypeAdapter(of).json_schema()["properties"]


@cache
def _cases() -> dict[str, tuple[str, ...]]:
    """Models and presets whose defaults the help names where they are others."""
    from koktok.recipe import TrainRecipe

    return {"model": ("bpe-bytes",), "preset": get_args(TrainRecipe.model_fields["preset"].annotation)}


@cache
def _recipe_of(field: str = "", case: str = "") -> Any:
    """The recipe with all its defaults, or those of one model or preset; made once for all options."""
    from koktok.recipe import Recipe

    return Recipe.build({"train": {field: case} if field else {}})


def _typed(value: Any) -> str:
    """A default as one types it; nothing where there is none."""
    if value is True:
        return "on"
    if value is False or value in (None, "", (), {}):
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    return value if isinstance(value, str) else str(value if isinstance(value, int) else f"{value:g}")


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


def option_of(name: str) -> str:
    """The option of a field, as it is typed.

    Examples
    --------
    >>> option_of("vocab_size"), option_of("PruneOptions.drop")
    ('--vocab-size', '--prune')
    """
    return f"--{OPTIONS.get(name, name.rpartition('.')[2].replace('_', '-'))}"


def values_of(fields: Mapping[str, OptionField], words: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as the library takes it; what was not typed is left out."""
    typed = {name: value for name, value in words.items() if value is not None and value != []}
    return {
        name: how.value(value) if (how := fields[name].typed) and isinstance(value, str | list) else value
        for name, value in typed.items()
    }


def add_verb(app: typer.Typer, verb: Callable[..., None], groups: Groups, *, defaults: bool = True) -> None:
    """Add a verb that takes its options as keywords, `verb(..., **settings)`; they are built when it is called.

    The options come after the verb's positional parameters and before its keyword-only ones, and hold the typed values;
    `defaults` adds the default values to the help.
    """

    class Later(TyperCommand):
        def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            alone.command(cls=Grouped)(_with_options(verb, groups, defaults=defaults))
            return typer.main.get_command(alone).make_context(info_name, args, parent, **extra)

    app.command(verb.__name__, cls=Later, help=verb.__doc__)(lambda: None)


def _with_options(verb: Callable[..., None], groups: Groups, *, defaults: bool) -> Callable[..., None]:
    """The verb as Typer reads it: a parameter for each option."""
    own = [p for p in inspect.signature(verb, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    grouped = [(OptionField(name), heading) for heading, names in groups.items() for name in names.split()]
    by_name = {field.name: field for field, _ in grouped}
    options = [field.parameter(heading, default=defaults) for field, heading in grouped]
    first = [p.replace(kind=p.KEYWORD_ONLY) for p in own if p.kind is p.POSITIONAL_OR_KEYWORD]
    last = [p for p in own if p.kind is p.KEYWORD_ONLY]

    def run(**words: Any) -> None:
        verb(**{p.name: words[p.name] for p in own}, **values_of(by_name, {name: words[name] for name in by_name}))

    run.__doc__ = verb.__doc__
    run.__signature__ = inspect.Signature([*first, *options, *last])  # type: ignore[attr-defined]
    return run
