"""The check of a folder that koktok did not train: the ids of its tokenizer.json against those of transformers.

`AutoTokenizer` reads tokenizer_config.json, too, and the class in it may replace the normalizer, the pre-tokenizer or the
post-processor of tokenizer.json. The classes that do so differ between versions of transformers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.adapters.huggingface_adapter import open_hf
from koktok.adapters.library import asking
from koktok.errors import ArtifactError, MissingExtraError, UsageError
from koktok.formats.folder import MARK, TOKENIZER, is_imported
from koktok.formats.probe import LINES
from koktok.tokenizer.agree import agree
from koktok.verification.finding import CheckResult, Verification, loads
from koktok.verification.formats import auto_tokenizer
from koktok.verification.probes import around_specials, tricky_lines

if TYPE_CHECKING:
    from koktok.adapters.huggingface_adapter import HuggingFace
    from koktok.progress import OnProgress

_DEFINITION = "tokenizer.json"
_BATCH = 1000


def is_of_others(folder: Path) -> bool:
    """Whether a folder has a tokenizer.json that koktok did not train; a damaged folder of koktok's is none."""
    koktoks = any((folder / name).is_file() for name in (MARK, TOKENIZER.manifest))
    return (folder / _DEFINITION).is_file() and (not koktoks or is_imported(folder))


def verify_others(
    folder: Path,
    lines: Iterable[str],
    *,
    exports: Sequence[str | Path] = (),
    sample: int,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Compare the ids of tokenizer.json with those of `AutoTokenizer`, without and with added special tokens."""
    if exports:
        raise UsageError(
            f"expected no exports for `{folder}`, which koktok did not train, got {len(exports)}",
            hint=f"koktok verify {folder} TEXT, without --with",
        )
    texts = list(dict.fromkeys(lines))
    size = len(texts), sum(map(len, texts))
    try:
        file = open_hf(str(folder), folder / _DEFINITION)
    except ArtifactError as error:
        return Verification(str(folder), findings=(loads(error.message),))
    opens = CheckResult("transformers", said="AutoTokenizer opens the folder without code from it")
    subject = f"{_DEFINITION} in tokenizers {version('tokenizers')}"
    try:
        library = auto_tokenizer(folder)
    except Exception as error:  # errors of many libraries, also that a package of theirs is missing
        if isinstance(error, ModuleNotFoundError) and error.name == "transformers":
            raise MissingExtraError("transformers", "transformers") from error
        opens.record(False, "{}", f"{type(error).__name__}: {error}".splitlines()[0])
        return Verification(str(folder), subject, *size, (loads(), opens))
    opens.record(True, "")
    chosen = texts[:: max(1, len(texts) // max(1, sample))]
    every = list(dict.fromkeys((*chosen, *LINES, *tricky_lines(), *around_specials(file.specials))))
    findings = [
        _compared(file, library, every, added=False, on_progress=on_progress),
        _compared(file, library, [*LINES, *chosen[:_BATCH]], added=True),
    ]
    subject += f", {type(library).__name__} of transformers {version('transformers')}"
    return Verification(str(folder), subject, *size, (loads(), opens, *findings))


def _compared(
    file: HuggingFace, library: Any, lines: list[str], *, added: bool, on_progress: OnProgress | None = None
) -> CheckResult:
    """Compare the ids of the library with those of the file; if `added`, with the special tokens that each adds."""

    def of_library(batch: Sequence[str]) -> list[list[int]]:
        with asking("transformers"):
            rows: list[list[int]] = library(list(batch), add_special_tokens=added)["input_ids"]
        return rows

    def of_file(batch: Sequence[str]) -> list[list[int]]:
        return (
            [file.encode(line, add_special_tokens=True).ids for line in batch] if added else file.ids_by_default(batch)
        )

    def with_progress() -> Iterator[str]:
        for done, line in enumerate(lines, 1):
            yield line
            if on_progress is not None and (done % _BATCH == 0 or done == len(lines)):
                on_progress("verify", done, len(lines))

    check = "ids with special tokens: transformers" if added else "ids: transformers"
    result = CheckResult(check, said=f"AutoTokenizer gives the ids of {_DEFINITION}")
    result.add(agree(of_library, of_file, with_progress()))
    return result
