"""Tokenizers as files of other libraries, and back: `koktok export` and `koktok import`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from koktok.cli.options import Folder, Force, Quiet, pairs, whole_number
from koktok.errors import UsageError
from koktok.files import typed

if TYPE_CHECKING:
    from koktok.runtimes import LibraryTokenizer
    from koktok.tokenizer import TrainedTokenizer


OPTIONS = {
    "With --to hf (default: those of the tokenizer)": (
        "style template chat_template model_max_length padding_side truncation_side trim_offsets pad_to_multiple"
    )
}
"""Fields of the Recipe that a trained tokenizer may change."""

TO = "hf and tiktoken: a folder. hf2 (tokenizer.json of version 2.0, for tokenizers 1.x), spm and gguf: a file."


def export(
    tokenizer: Folder,
    to: Annotated[Literal["hf", "hf2", "spm", "tiktoken", "gguf"], typer.Option(help=TO, show_default=False)],
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
    from koktok.runtimes.folder import MARK
    from koktok.tokenizer.open import load_folder

    if place_of(out) == tokenizer.resolve():
        raise UsageError("`--out` is the tokenizer itself; it would be replaced", hint=f"--out {typed(f'{out}-{to}')}")
    if to != "hf" and (out / MARK).is_file():
        raise UsageError(f"the folder `{out}` holds a koktok tokenizer, which would be lost", hint="--out NEW-NAME")
    idle = [*settings] if to != "hf" else []
    idle += ["user_defined"] if user_defined and to != "spm" else []
    idle += ["name"] if name and to not in ("tiktoken", "gguf") else []
    idle += ["into"] if into and to != "gguf" else []
    idle += ["name"] if name and into else []
    if idle:
        option = f"--{idle[0].replace('_', '-')}"
        what = f"`--to {to}`{' --into' if into else ''}"
        raise UsageError(f"`{option}` does nothing with {what}", hint="koktok export --help")
    if name and Path(name).name != name:
        raise UsageError(f"`--name {name}` is not a name of a file", hint=f"--name {typed(Path(name).name or 'mine')}")
    loaded = load_folder(tokenizer)
    called = name or tokenizer.resolve().name
    match to:
        case "hf":
            notes = _hf(loaded, out, settings, force=force)
        case "hf2":
            notes = _hf2(loaded, out, force=force)
        case "spm":
            notes = _spm(loaded, out, user_defined or [], force=force)
        case "tiktoken":
            notes = _tiktoken(loaded, out, called, force=force)
        case "gguf":
            notes = _gguf(loaded, out, called, into, force=force)
    for line in () if quiet else notes:
        print(f"note: {line}", file=sys.stderr)
    print(out)


def _hf(tokenizer: TrainedTokenizer | LibraryTokenizer, out: Path, looks: dict[str, Any], *, force: bool) -> list[str]:
    from koktok.files import write_folder
    from koktok.runtimes import LibraryTokenizer, hf_files
    from koktok.runtimes.conversion import agreement
    from koktok.runtimes.folder import TOKENIZER
    from koktok.runtimes.huggingface.adapter import HuggingFace
    from koktok.runtimes.library import PROBES
    from koktok.runtimes.limits import unsupported_reason
    from koktok.runtimes.probe import PROBE, probe_json

    if isinstance(tokenizer, LibraryTokenizer):
        if looks:
            raise UsageError("styles are for koktok's own tokenizers; an imported one keeps its special tokens")
        files = hf_files(tokenizer)
        different = agreement(tokenizer, files)
        files[PROBE] = probe_json(HuggingFace(str(files["tokenizer.json"])).ids)
        write_folder(out, files, TOKENIZER, force=force)
        same = f"{len(PROBES) - len(different)} of {len(PROBES)} hard texts get the same ids as from the source"
        return [same, *(f"other ids for {probe!r}" for probe in different[:5])]
    before, roles = tokenizer.digest(), dict(tokenizer.roles)
    if looks:
        from koktok.tokenizer.restyle import restyle

        tokenizer = restyle(tokenizer, **looks)
    reason = unsupported_reason("hf", tokenizer.definition)
    if reason:
        raise UsageError(f"no tokenizer.json: {reason}", hint="koktok train TEXT --model unigram --out FOLDER")
    tokenizer.save(out, force=force)
    changed = [
        f"{role} {roles.get(role, 'none')} → {tokenizer.roles.get(role, 'none')}"
        for role in dict.fromkeys((*roles, *tokenizer.roles))
        if roles.get(role) != tokenizer.roles.get(role)
    ]
    return [
        *([f"special tokens: {', '.join(changed)}"] if changed else []),
        *([f"the digest was {before} and is {tokenizer.digest()}"] if tokenizer.digest() != before else []),
    ]


def _hf2(tokenizer: TrainedTokenizer | LibraryTokenizer, out: Path, *, force: bool) -> list[str]:
    from koktok.files import write_file
    from koktok.runtimes import LibraryTokenizer, hf_files
    from koktok.runtimes.huggingface.tokenizer_json import in_version_2, tokenizer_json
    from koktok.runtimes.limits import unsupported_reason

    roles: Mapping[str, str] = {}
    if isinstance(tokenizer, LibraryTokenizer):
        text = str(hf_files(tokenizer)["tokenizer.json"])
    elif reason := unsupported_reason("hf", tokenizer.definition):
        raise UsageError(f"no tokenizer.json: {reason}", hint="koktok train TEXT --model unigram --out FOLDER")
    else:
        text = tokenizer_json(tokenizer.definition)
        roles = tokenizer.style.roles
    data = in_version_2(text, roles).encode()
    write_file(out, data, ours=lambda file: file.read_bytes() == data, force=force, what="tokenizer.json")
    notes = ["tokenizers 0.x does not read version 2.0, and the format may change before tokenizers 1.0"]
    if getattr(tokenizer, "prefix", "") == "first":
        notes.append("a text that begins with a space loses it")
    return notes


def _spm(
    tokenizer: TrainedTokenizer | LibraryTokenizer, out: Path, user_defined: list[str], *, force: bool
) -> list[str]:
    from koktok.files import write_file
    from koktok.runtimes import LibraryTokenizer
    from koktok.runtimes.sentencepiece.adapter import SentencePiece
    from koktok.runtimes.sentencepiece.model_proto import differences, may_be_ours, model_proto

    if isinstance(tokenizer, LibraryTokenizer):
        if not isinstance(tokenizer, SentencePiece):
            raise UsageError(f"this tokenizer was imported from {tokenizer.library}, and is not a SentencePiece model")
        if user_defined:
            raise UsageError("`--user-defined` is for koktok's own tokenizers")
        whole = tokenizer.data
        write_file(
            out, whole, ours=lambda file: may_be_ours(file) or file.read_bytes() == whole, force=force, what="model"
        )
        return []
    data = model_proto(tokenizer.definition, user_defined)
    write_file(out, data, ours=may_be_ours, force=force, what="model")
    notes = ["SentencePiece leaves the space before the first word when it decodes"] * bool(tokenizer.prefix)
    return notes + [f"not normalized by SentencePiece: {line}" for line in differences(tokenizer.normalizer)]


def _tiktoken(tokenizer: TrainedTokenizer | LibraryTokenizer, out: Path, name: str, *, force: bool) -> list[str]:
    from dataclasses import replace

    from koktok.files import write_folder
    from koktok.runtimes import LibraryTokenizer
    from koktok.runtimes.tiktoken.adapter import Tiktoken
    from koktok.runtimes.tiktoken.ranks import EXPORT, files, ranks_of

    if isinstance(tokenizer, LibraryTokenizer):
        if not isinstance(tokenizer, Tiktoken):
            raise UsageError(f"this tokenizer was imported from {tokenizer.library}, and has no ranks")
        write_folder(out, files(replace(tokenizer.ranks, name=name)), EXPORT, force=force)
        return []
    ranks = ranks_of(tokenizer.definition, name)
    write_folder(out, files(ranks, tokenizer.normalizer.signature(), tokenizer.pattern.javascript), EXPORT, force=force)
    notes = [
        "tiktoken puts no space before the first word: pass ' ' + text, and remove the space after decoding"
    ] * bool(tokenizer.prefix)
    return [*notes, "tiktoken has no normalizer: give it text that is normalized already (koktok normalize)"]


def _gguf(
    tokenizer: TrainedTokenizer | LibraryTokenizer, out: Path, name: str, into: Path | None, *, force: bool
) -> list[str]:
    from koktok.runtimes import LibraryTokenizer, gguf, gguf_table

    if isinstance(tokenizer, LibraryTokenizer):
        table, chat_template = gguf_table(tokenizer), ""
        notes = [f"llama.cpp runs it as `{table.model}`, pattern `{table.pre}`", *gguf.notes(table)]
    else:
        table = gguf.table_of(tokenizer.definition)
        chat_template = tokenizer.style.chat_template
        notes = [f"llama.cpp runs it as `{table.model}`", *gguf.notes(table, tokenizer.normalizer)]
    if into is None:
        gguf.write(table, out, name=name, force=force)
        return [gguf.ALONE, *notes]
    gguf.write_into(table, into, out, chat_template=chat_template)
    more = len(gguf.fitted(table, into).tokens) - len(table.tokens)
    return [*notes, *([f"the model has {more:,} rows more than there are ids; they are named [PAD…]"] if more else [])]


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
