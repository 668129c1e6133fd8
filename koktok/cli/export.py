"""Tokenizers as files of other libraries, and back: `koktok export` and `koktok import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from koktok.cli.options import Folder, Force, Quiet, pairs, whole_number
from koktok.errors import UsageError
from koktok.files import typed

OPTIONS = {
    "With --to hf (default: those of the tokenizer)": (
        "style eos template chat_template model_max_length padding_side truncation_side trim_offsets pad_to_multiple"
    )
}
"""Fields of the Recipe that a trained tokenizer may change."""

Target = Literal["hf", "hf2", "spm", "tiktoken", "gguf"]
"""The names of `koktok.runtimes.RUNTIMES`, which start-up does not import."""

TO = "hf and tiktoken: a folder. hf2 (tokenizer.json of version 2.0, for tokenizers 1.x), spm and gguf: a file."


def export(
    tokenizer: Folder,
    to: Annotated[Target, typer.Option(help=TO, show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder or file to write.", show_default=False)],
    *,
    user_defined: Annotated[
        list[str] | None, typer.Option(help="spm: a special token that SentencePiece recognizes in text.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="gguf: model file, copied to --out with this tokenizer in it.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="tiktoken, gguf: name of the tokenizer. [name of the folder]")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Write a tokenizer for another library, and print what that library does differently.

    Example: koktok export my-tokenizer --to hf --style bert -o for-bert
    """
    from koktok.files import place_of
    from koktok.tokenizer.open import load_folder

    if place_of(out) == tokenizer.resolve():
        raise UsageError("`--out` is the tokenizer itself; it would be replaced", hint=f"--out {typed(f'{out}-{to}')}")
    typed_in = {"user_defined": user_defined, "into": into, "name": name}
    options = settings | {option: value for option, value in typed_in.items() if value}
    for line in load_folder(tokenizer).export(to, out, force=force, **options):
        if not quiet:
            print(f"note: {line}", file=sys.stderr)
    print(out)


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="A SentencePiece .model, tokenizer.json, vocab.txt, tiktoken ranks, tekken.json, their folder, or package:NAME.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.", show_default=False)],
    pattern: Annotated[
        str | None, typer.Option(help="Ranks: gpt2, cl100k_base, o200k_base, llama3, qwen2 ..., or a regex.")
    ] = None,
    special: Annotated[list[str] | None, typer.Option(help="Ranks: TOKEN=ID, a special token.")] = None,
    lowercase: Annotated[bool | None, typer.Option(help="vocab.txt: fold case and strip accents.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Import a tokenizer of another library into a folder that every command accepts; its ids do not change.

    Example: koktok import tokenizer.json -o theirs
    """
    from koktok.files import check_folder
    from koktok.runtimes import LibraryTokenizer
    from koktok.runtimes.folder import TOKENIZER
    from koktok.runtimes.huggingface.auto_tokenizer import not_carried
    from koktok.runtimes.library import PROBES
    from koktok.tokenizer.open import load

    if check_folder(out, TOKENIZER) == file.resolve():
        raise UsageError("`--out` is the folder that is read", hint=f"--out {typed(f'{out}-koktok')}")
    specials = pairs("--special", special, whole_number, expected="TOKEN=ID", example="'<|endoftext|>=100257'")
    tokenizer = load(file, pattern=pattern, specials=specials or None, lowercase=lowercase)
    tokenizer.save(out, force=force)
    if quiet:
        pass
    elif isinstance(tokenizer, LibraryTokenizer):
        how = next((str(note) for note in tokenizer.notes if "transformers" in tokenizer.libraries), "kept as it is")
        print(f"{how}, run by {tokenizer.library}; {tokenizer.vocab.size:,} ids", file=sys.stderr)
        for line in not_carried(file, tokenizer.files()):
            print(f"note: {line}", file=sys.stderr)
        print(f"{tokenizer.exact} of {len(PROBES)} hard texts come back as they were", file=sys.stderr)
        if tokenizer.reachable:
            named = ", ".join(tokenizer.reachable[:5])
            print(f"warning: text that spells {named} becomes that special token: it is a piece, too", file=sys.stderr)
    else:
        print(f"koktok's own {tokenizer.vocab.kind}; {tokenizer.vocab.size:,} ids", file=sys.stderr)
    print(out)
