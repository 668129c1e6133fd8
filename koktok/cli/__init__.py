"""The verbs, a file a group. Each parses its words, calls the library, and prints: data on stdout, progress on stderr.

This folder adds nothing but the surface: whatever a verb does can be done from Python with the functions that it calls.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from koktok.cli.corpus import corpus_app
from koktok.cli.count import count
from koktok.cli.examine import diff, doctor, report
from koktok.cli.export import OPTIONS as EXPORT_OPTIONS
from koktok.cli.export import export, import_
from koktok.cli.extend import OPTIONS as EXTEND_OPTIONS
from koktok.cli.extend import extend
from koktok.cli.instances import OPTIONS as INSTANCES_OPTIONS
from koktok.cli.instances import instances
from koktok.cli.metrics import metrics
from koktok.cli.option_schema import Groups, add_verb
from koktok.cli.options import Grouped
from koktok.cli.playground import playground
from koktok.cli.text import NORMALIZE_OPTIONS, SEGMENT_OPTIONS, decode, encode, normalize, segment
from koktok.cli.train import OPTIONS as TRAIN_OPTIONS
from koktok.cli.train import train
from koktok.cli.verify import verify
from koktok.cli.vocabularies import vocabulary_app
from koktok.errors import KoktokError, visible
from koktok.progress import write_utf8

__all__ = ["app", "main"]

VERBS_WITH_OPTIONS: dict[Callable[..., None], Groups] = {
    train: TRAIN_OPTIONS,
    extend: EXTEND_OPTIONS,
    instances: INSTANCES_OPTIONS,
    normalize: NORMALIZE_OPTIONS,
    segment: SEGMENT_OPTIONS,
    export: EXPORT_OPTIONS,
}
"""Verbs whose options come from the option schema."""

app = typer.Typer(
    name="koktok",
    help="Korean tokenizers that cut words at morpheme boundaries, for Hugging Face, SentencePiece and tiktoken.",
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (
    count,
    train,
    extend,
    instances,
    encode,
    decode,
    normalize,
    segment,
    diff,
    doctor,
    report,
    metrics,
    playground,
    verify,
    export,
):
    if verb in VERBS_WITH_OPTIONS:
        add_verb(app, verb, VERBS_WITH_OPTIONS[verb], defaults=verb is not export)
    else:
        app.command(cls=Grouped)(verb)
app.command("import")(import_)
app.add_typer(corpus_app, name="corpus")
app.add_typer(vocabulary_app, name="vocabulary")

INTERRUPTED = 130
"""What a shell calls a process that SIGINT ended."""


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(installed("koktok"))
        raise typer.Exit


def _end_without_reader() -> NoReturn:
    """End without an error if the reader of the pipe (head, less) has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still to be flushed
    sys.exit(0)


def main() -> None:
    """Run the command line; every error of koktok becomes one message and an exit code."""
    # Typer 0.16 took click inside; where the class lives depends on the version, its name does not.
    if sys.stdout is None:  # `>&-`
        print("error: standard output is closed, and data goes there\nhint: > FILE", file=sys.stderr)
        sys.exit(1)
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # that PyTorch is not installed
    write_utf8()
    logging.getLogger("koktok").addHandler(logging.NullHandler())  # the verbs print what the library logs
    wrong_words: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = app(prog_name="koktok", standalone_mode=False) or 0  # `python -m` has another name
        sys.stdout.flush()
        if code == INTERRUPTED:  # newer Typers return this where older ones raise
            raise KeyboardInterrupt
        sys.exit(code)
    except KoktokError as error:
        print(f"error: {error.message}" + f"\nhint: {error.hint}" * bool(error.hint), file=sys.stderr)
        sys.exit(error.exit_code)
    except wrong_words as error:
        error.show()
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        print("\nstopped; the words analysed and the files finished so far are kept", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _end_without_reader()
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        _end_without_reader()  # click has made exit code 1 of it
    except OSError as error:  # a full disk, a folder without rights
        print(f"error: {visible(str(error))}", file=sys.stderr)
        sys.exit(1)
