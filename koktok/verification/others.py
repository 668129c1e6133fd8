"""The checks of a folder that koktok did not train: its ids and special tokens against those of transformers.

`AutoTokenizer` reads tokenizer_config.json, too, and the class in it may replace the normalizer, the pre-tokenizer or the
post-processor of tokenizer.json. The classes that do so differ between versions of transformers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.errors import KoktokError, MissingExtraError, asking
from koktok.progress import OnProgress
from koktok.protocol.agree import agree, agreement
from koktok.runtimes import LibraryTokenizer
from koktok.runtimes.folder import is_imported, is_koktoks
from koktok.runtimes.huggingface.adapter import open_hf
from koktok.runtimes.huggingface.auto_tokenizer import auto_tokenizer
from koktok.runtimes.huggingface.config_files import is_of_transformers
from koktok.runtimes.probe import LINES
from koktok.tokenizer.open import load_folder
from koktok.tokenizer.ready import folder_of
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
    """Compare ids and special tokens with those of `AutoTokenizer`, of this folder and of each of `exports`."""
    texts = list(dict.fromkeys(lines))
    size = len(texts), sum(map(len, texts))
    file = folder / _DEFINITION
    try:
        whole = load_folder(folder)
        tokenizer = open_hf(str(folder), file) if file.is_file() else whole
    except MissingExtraError:
        raise
    except KoktokError as error:
        return Verification(str(folder), findings=(loads(error.message),))
    assert isinstance(tokenizer, LibraryTokenizer)
    assert isinstance(whole, LibraryTokenizer)
    stated = whole.roles if is_of_transformers(folder) else {}
    findings = [loads(), *roles(folder, stated, whole.vocab.tokens)]
    subject = ", ".join(f"{name} {number}" for name, number in tokenizer.libraries.items())
    subject = f"{_DEFINITION} in {subject}" if file.is_file() else f"{tokenizer!r} in {subject}"
    if not exports and not file.is_file() and not is_of_transformers(folder):
        opens = CheckResult("transformers").skip("no file says how transformers is to read the vocabulary")
        return Verification(str(folder), subject, *size, (*findings, opens))
    library, opens = opened_in_transformers(folder)
    if library is None:
        return Verification(str(folder), subject, *size, (*findings, opens))
    chosen = texts[:: max(1, len(texts) // max(1, sample))]
    every = list(dict.fromkeys((*chosen, *LINES, *tricky_lines(), *around_specials(tokenizer.specials))))
    findings += [
        opens,
        *same_roles("transformers", ids_by_role(stated, whole.vocab.tokens), ids_in_transformers(library)),
        compared(tokenizer, library, every, added=False, on_progress=on_progress),
    ]
    if tokenizer.has_template:
        findings.append(compared(tokenizer, library, [*LINES, *chosen[:_BATCH]], added=True))
    for export in exports:
        findings += same_as_base(str(export), folder_of(Path(export)), library, every)
    subject += f", {type(library).__name__} of transformers {version('transformers')}"
    return Verification(str(folder), subject, *size, tuple(findings))


def opened_in_transformers(folder: Path) -> tuple[Any, CheckResult]:
    """What `AutoTokenizer` opens, and the check that it does."""
    opens = CheckResult("transformers", message="AutoTokenizer opens the folder without code from it")
    try:
        library = auto_tokenizer(folder)
    except Exception as error:  # errors of many libraries, also that a package of theirs is missing
        if isinstance(error, ModuleNotFoundError) and error.name == "transformers":
            raise MissingExtraError("transformers", "transformers") from error
        opens.record(False, "{}", f"{type(error).__name__}: {error}".splitlines()[0])
        return None, opens
    opens.record(True, "")
    return library, opens


def same_as_base(
    name: str, base: Path, library: Any, lines: Sequence[str], table: NDArray[np.int64] | None = None
) -> Iterator[CheckResult]:
    """Check: `AutoTokenizer` gives a base the ids and roles that it gives what was made of it.

    With the new id of each old one, a text is compared if none of its pieces is gone.
    """
    before, opens = opened_in_transformers(base)
    if before is None:
        opens.check = f"transformers: {name}"
        yield opens
        return

    def moved(i: int) -> int:
        return i if table is None else int(table[i])

    for added, what in ((False, "ids"), (True, "ids with special tokens")):
        result = CheckResult(
            f"{what}: {name} in transformers", message="AutoTokenizer gives the ids that it gives the base"
        )
        with asking("transformers"):
            old = before(list(lines), add_special_tokens=added)["input_ids"]
            new = library(list(lines), add_special_tokens=added)["input_ids"]
        rows = zip(lines, new, ([moved(i) for i in row] for row in old), strict=True)
        result.add(agreement(row for row in rows if -1 not in row[2]))
        yield result
    ids = {role: moved(i) for role, i in ids_in_transformers(before).items()}
    yield from same_roles(f"{name} in transformers", ids, ids_in_transformers(library))


def compared(
    tokenizer: LibraryTokenizer, library: Any, lines: list[str], *, added: bool, on_progress: OnProgress | None = None
) -> CheckResult:
    """Compare the ids of the library with those of the file; if `added`, with the special tokens that each adds."""
    split = {"split_special_tokens": not tokenizer.reads_specials}

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
