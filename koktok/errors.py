"""Every error that koktok raises on purpose.

::

    KoktokError                  anything below; exit code 1
    ├── UsageError               a wrong argument or option; exit code 2
    │   └── RecipeError          a recipe with an unknown key or an impossible value
    ├── InputError               files or text that cannot be read
    ├── CorpusError              a corpus recipe, its download or its checksum
    ├── VocabSizeError           a vocabulary size above what the text can give, or below what it needs
    ├── AnalyserError            the morphological analyser failed
    ├── ArtifactError            a saved folder that is broken, foreign, or of another version
    └── MissingExtraError        an optional library is not installed

A message names what was expected and what came; the hint is the line to type.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = [
    "AnalyserError",
    "ArtifactError",
    "CorpusError",
    "InputError",
    "KoktokError",
    "MissingExtraError",
    "RecipeError",
    "UsageError",
    "VocabSizeError",
    "asking",
    "did_you_mean",
    "in_python",
    "visible",
]

_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Spell out the control characters of a text, so that a terminal shows them and does not execute them.

    Signs of the direction of writing and lone surrogates are among them; tab and newline are not.

    Examples
    --------
    >>> print(visible("가\x1b[2J\t나"))
    가\u001b[2J  나
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def did_you_mean(name: str, known: Iterable[str], shown: str = "{}") -> str:
    """Return a question with the known name that is most similar to a wrong one, or "".

    Examples
    --------
    >>> did_you_mean("dmeo", ["demo", "mini"], "corpus:{}")
    'did you mean `corpus:demo`?'
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean `{shown.replace('{}', close[0])}`?" if close else ""


_OPTION = re.compile(r"--(no-)?([a-z][a-z-]*)(?:[ =]('[^']*'|(?!(?:and|or|left|with)\b)[\w<\[/.][^\s,|]*))?")
_FIELDS = {"coverage": "character_coverage", "require": "required", "require-pieces": "required_pieces"}
_LISTS = ("specials", "sizes")


def in_python(hint: str) -> str:
    """Return a hint with the options of the command line as parameters; a line for the shell stays one.

    Examples
    --------
    >>> in_python("--vocab-size 2800"), in_python("--field 'text[]'"), in_python("--no-prefix-space, or --model unigram")
    ('vocab_size=2800', "field='text[]'", "prefix_space=False, or model='unigram'")
    >>> in_python("koktok train TEXT --holdout 0"), in_python("koktok train TEXT --model bpe --out FOLDER")
    ('koktok.train(TEXT, holdout=0)', "koktok.train(TEXT, model='bpe').save('FOLDER')")
    """
    if match := re.fullmatch(r"koktok train (\w+)(?: \.\.\.)?((?: --[a-z-]+ [\w.<>'/-]+)+)", hint):
        options = [_parameter(option) for option in _OPTION.finditer(match[2])]
        given = [option for option in options if not option.startswith("out=")]
        out = "".join(f".save({option.removeprefix('out=')})" for option in options if option.startswith("out="))
        return f"koktok.train({', '.join([match[1], *given])}){out}"
    if re.match(r"koktok |git |hf |cp |iconv |\w+ [^'\"]*[|>]", hint) or "in Python" in hint:
        return hint
    return _OPTION.sub(_parameter, hint)


def _parameter(option: re.Match[str]) -> str:
    no, words, typed = option.groups()
    name = _FIELDS.get(words, words.replace("-", "_"))
    if typed is None:
        return f"{name}=False" if no else name
    value = typed.strip("'")
    if name in _LISTS:
        return f"{name}={value.split(',')}"
    return f"{name}={value}" if re.fullmatch(r"-?\d+(\.\d+)?", value) else f"{name}={value!r}"


class KoktokError(Exception):
    """The base class of all errors. Control characters in quoted names and text are spelled out (`visible`).

    `hint` is what one types in a shell; `str(error)` has it as Python (`in_python`).

    Parameters
    ----------
    message : str
        What was expected, and what came.
    hint : str
        The line to type, or the way out; may be empty.

    Examples
    --------
    >>> error = InputError("`a.txt` is empty", hint="koktok train other.txt")
    >>> print(error)
    `a.txt` is empty
    hint: koktok train other.txt
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = visible(message)
        self.hint = visible(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\nhint: {in_python(self.hint)}" if self.hint else self.message


class UsageError(KoktokError, ValueError):
    """A wrong argument or option."""

    exit_code = 2


class RecipeError(UsageError):
    """A recipe with an unknown key or an impossible value."""


class InputError(KoktokError, ValueError):
    """Files or text that cannot be read."""


class CorpusError(KoktokError):
    """A corpus recipe, its download or its checksum."""


class VocabSizeError(KoktokError, ValueError):
    """A vocabulary size above what the text can give, or below what it needs."""

    possible: int = 0
    """A size that the text can give, as far as was seen."""


class AnalyserError(KoktokError, RuntimeError):
    """The morphological analyser failed."""


class ArtifactError(KoktokError, ValueError):
    """A saved folder that is broken, foreign, or of another version."""


class MissingExtraError(KoktokError, ImportError):
    """An optional library is not installed.

    Examples
    --------
    >>> print(MissingExtraError("pyarrow", "arrow"))
    the library `pyarrow` is needed here and is not installed
    hint: pip install 'koktok[arrow]'
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(
            f"the library `{module}` is needed here and is not installed", f"pip install 'koktok[{extra}]'"
        )


class asking:  # noqa: N801 - used as a statement
    """A context in which whatever a library raises becomes an error of koktok; panics of Rust are no `Exception`.

    With a `definition` the library is reading that file, which is an ArtifactError; else it is reading a text, an InputError.

    Examples
    --------
    >>> with asking("tokenizers"):
    ...     raise BaseException("a panic")
    Traceback (most recent call last):
        ...
    koktok.errors.InputError: the library tokenizers fails on this text: BaseException: a panic
    hint: the definition is at fault: import it again, from a source that you trust
    """

    def __init__(self, library: str, definition: str = "", hint: str = "") -> None:
        self.library, self.definition, self.hint = library, definition, hint

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        unchanged = KoktokError | KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError
        if error is None or isinstance(error, unchanged):
            return
        what = f"{type(error).__name__}: {error}".strip()
        if self.definition:
            raise ArtifactError(
                f"the library {self.library} cannot read `{self.definition}`: {what}", hint=self.hint
            ) from None
        raise InputError(
            f"the library {self.library} fails on this text: {what}",
            hint="the definition is at fault: import it again, from a source that you trust",
        ) from None
