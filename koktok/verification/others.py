"""The checks of a folder that koktok did not train: its ids and special tokens against those of transformers.

`AutoTokenizer` reads tokenizer_config.json, too, and the class in it may replace the normalizer, the pre-tokenizer or the
post-processor of tokenizer.json. The classes that do so differ between versions of transformers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from koktok.errors import KoktokError, MissingExtraError, UsageError, asking
from koktok.progress import OnProgress
from koktok.protocol.agree import agree
from koktok.runtimes import LibraryTokenizer
from koktok.runtimes.folder import is_imported, is_koktoks
from koktok.runtimes.huggingface.adapter import HuggingFace, open_hf
from koktok.runtimes.huggingface.auto import auto_tokenizer
from koktok.runtimes.probe import LINES
from koktok.tokenizer.open import load_folder
from koktok.verification.finding import CheckResult, Verification, loads
from koktok.verification.probes import around_specials, tricky_lines
from koktok.verification.roles import ids_by_role, ids_in_transformers, roles, same_roles

_DEFINITION = "tokenizer.json"
_BATCH = 1000


def is_of_others(folder: Path) -> bool:
    """Whether koktok did not train the tokenizer of a folder; a damaged folder of koktok's is none of others."""
    return folder.is_dir() and (not is_koktoks(folder) or is_imported(folder))


def verify_others(
    folder: Path,
    lines: Iterable[str],
    *,
    exports: Sequence[str | Path] = (),
    sample: int,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Compare ids and special tokens with those of `AutoTokenizer`, and special tokens with the model in the folder."""
    if exports:
        raise UsageError(
            f"expected no exports for `{folder}`, which koktok did not train, got {len(exports)}",
            hint=f"koktok verify {folder} TEXT, without --with",
        )
    texts = list(dict.fromkeys(lines))
    size = len(texts), sum(map(len, texts))
    file = folder / _DEFINITION
    try:
        tokenizer = open_hf(str(folder), file) if file.is_file() else load_folder(folder)
    except KoktokError as error:
        return Verification(str(folder), findings=(loads(error.message),))
    assert isinstance(tokenizer, LibraryTokenizer)
    findings = [loads(), *roles(folder, tokenizer.vocab.tokens)]
    subject = ", ".join(f"{name} {number}" for name, number in tokenizer.libraries.items())
    subject = f"{_DEFINITION} in {subject}" if file.is_file() else f"{tokenizer!r} in {subject}"
    opens = CheckResult("transformers", message="AutoTokenizer opens the folder without code from it")
    if not file.is_file() and not (folder / "tokenizer_config.json").is_file():
        opens.skip("there is no tokenizer_config.json that says how to read the vocabulary")
        return Verification(str(folder), subject, *size, (*findings, opens))
    try:
        library = auto_tokenizer(folder)
    except Exception as error:  # errors of many libraries, also that a package of theirs is missing
        if isinstance(error, ModuleNotFoundError) and error.name == "transformers":
            raise MissingExtraError("transformers", "transformers") from error
        opens.record(False, "{}", f"{type(error).__name__}: {error}".splitlines()[0])
        return Verification(str(folder), subject, *size, (*findings, opens))
    opens.record(True, "")
    chosen = texts[:: max(1, len(texts) // max(1, sample))]
    every = list(dict.fromkeys((*chosen, *LINES, *tricky_lines(), *around_specials(tokenizer.specials))))
    findings += [
        opens,
        *same_roles(
            "transformers", ids_by_role(tokenizer.folder, tokenizer.vocab.tokens), ids_in_transformers(library)
        ),
        _compared(tokenizer, library, every, added=False, on_progress=on_progress),
    ]
    if isinstance(tokenizer, HuggingFace):
        findings.append(_compared(tokenizer, library, [*LINES, *chosen[:_BATCH]], added=True))
    subject += f", {type(library).__name__} of transformers {version('transformers')}"
    return Verification(str(folder), subject, *size, tuple(findings))


def _compared(
    tokenizer: LibraryTokenizer, library: Any, lines: list[str], *, added: bool, on_progress: OnProgress | None = None
) -> CheckResult:
    """Compare the ids of the library with those of the file; if `added`, with the special tokens that each adds."""
    split = {} if isinstance(tokenizer, HuggingFace) else {"split_special_tokens": True}  # others read them as text

    def of_library(batch: Sequence[str]) -> list[list[int]]:
        with asking("transformers"):
            rows: list[list[int]] = library(list(batch), add_special_tokens=added, **split)["input_ids"]
        return rows

    def of_file(batch: Sequence[str]) -> list[list[int]]:
        if added:
            return [tokenizer.encode(line, add_special_tokens=True).ids for line in batch]
        return tokenizer.ids(batch, specials=tokenizer.reads_specials)

    def with_progress() -> Iterator[str]:
        for done, line in enumerate(lines, 1):
            yield line
            if on_progress is not None and (done % _BATCH == 0 or done == len(lines)):
                on_progress("verify", done, len(lines))

    check = "ids with special tokens: transformers" if added else "ids: transformers"
    result = CheckResult(check, message="AutoTokenizer gives the ids of the file in its own library")
    result.add(agree(of_library, of_file, with_progress()))
    return result
