"""`verify`: check that a saved folder is lossless and gives the same ids in every format, on any text.

`probes` has difficult lines, `formats` opens every format in its library, `checks` and `folders` have the checks,
`extension` and `others` those of folders that koktok extended or did not train, `finding` their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from koktok.corpora.paths import as_text
from koktok.errors import ArtifactError, UsageError
from koktok.extension.extension_files import is_extension
from koktok.extension.prune import is_pruned
from koktok.files import path_of
from koktok.progress import OnProgress
from koktok.runtimes.runtime import WrittenTable
from koktok.text.sources import Source, read
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.open import load_folder
from koktok.tokenizer.ready import folder_of
from koktok.verification.checks import (
    Batch,
    Check,
    Format,
    Offsets,
    OffsetsOfHuggingFace,
    RoundTrip,
    same_table,
)
from koktok.verification.extension import RANDOM, verify_extension, verify_pruned
from koktok.verification.finding import CheckResult, Verification, loads
from koktok.verification.folders import probe, specials, specials_of_format, unchanged
from koktok.verification.formats import Unopened, open_formats
from koktok.verification.others import is_of_others, verify_others
from koktok.verification.probes import tricky_lines
from koktok.verification.roles import ids_by_role, roles, same_roles

__all__ = ["SAMPLE", "CheckResult", "Verification", "verify"]

SAMPLE = 20_000
"""Lines for the slow checks, evenly spread over the text."""

BATCH = 500


def verify(
    folder: str | Path,
    lines: Iterable[str] | Path = (),
    *,
    exports: Iterable[str | Path] = (),
    sample: int = SAMPLE,
    strings: int | None = None,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Check a folder, first whether its files are as they were written.

    Parameters
    ----------
    folder : str or Path
        A saved tokenizer; an extension or pruned vocabulary of `koktok extend`, or any other folder of a tokenizer, whose ids and
        special tokens are compared with those of transformers' `AutoTokenizer`, and of the bases that are then the `exports`.
    lines : iterable of str, or Path
        The user's text, or the file that holds it; difficult lines are always checked, too. Each distinct line is checked
        once.
    exports : iterable of str or Path
        Exports, folders or files, that must be the same tokenizer.
    sample : int
        Number of lines for the slow checks: transformers and offsets.
    strings : int, optional
        Number of random strings for an extension, 10,000 by default; for a byte-level base also of random byte strings.
    on_progress : callable, optional
        Called with the stage, the number of lines done and their total.

    Returns
    -------
    Verification
        `passed` is the verdict. A folder that cannot be loaded is a failed check, not an error.

    Raises
    ------
    UsageError
        When there is no export at a path, or `strings` or `exports` do not apply to this kind of folder.
    MissingExtraError
        When transformers is required and not installed.

    Examples
    --------
    >>> import tempfile
    >>> from koktok import Recipe
    >>> from koktok.tokenizer import TrainedTokenizer
    >>> from koktok.model.vocab import Vocab
    >>> vocab = Vocab.unigram({"한": -2.0, "국": -2.0, "한국": -3.0}, specials=Recipe().special_tokens)
    >>> folder = TrainedTokenizer(Recipe(), vocab).save(tempfile.mkdtemp() + "/tokenizer")
    >>> report = verify(folder, ["한국은 한국"])
    >>> report.passed, report.lines
    (True, 1)
    """
    place = folder_of(path_of(folder))
    changed = list(unchanged(place))
    report = _verified(place, _lines(lines), exports, sample, strings, on_progress)
    return replace(report, findings=(*changed, *report.findings))


def _verified(
    place: Path,
    lines: Iterable[str],
    exports: Iterable[str | Path],
    sample: int,
    strings: int | None,
    on_progress: OnProgress | None,
) -> Verification:
    """Check what a folder holds, by its kind."""
    if is_extension(place):
        return verify_extension(
            place, lines, exports=exports, strings=RANDOM if strings is None else strings, on_progress=on_progress
        )
    if strings is not None:
        raise UsageError(
            f"random strings are for extensions, and `{place}` is not one",
            hint=f"koktok verify {place} TEXT, without --random",
        )
    if is_pruned(place):
        return verify_pruned(place, lines, exports=[*exports])
    if is_of_others(place):
        return verify_others(place, lines, exports=[*exports], sample=sample, on_progress=on_progress)
    try:
        tokenizer = load_folder(place)
    except ArtifactError as error:
        return Verification(str(place), findings=(loads(error.message),))
    assert isinstance(tokenizer, TrainedTokenizer)
    texts = list(dict.fromkeys(lines))
    checks = _Checks(tokenizer, place, [Path(export) for export in exports])
    tricky = [line for line in tricky_lines() if line not in set(texts)]
    step = max(1, len(texts) // max(1, sample))
    done = 0
    with ThreadPoolExecutor(2) as pool:
        for rows, of_user in ((texts, True), (tricky, False)):
            for first in range(0, len(rows), BATCH):
                batch = rows[first : first + BATCH]
                chosen = [i for i in range(len(batch)) if not of_user or (first + i) % step == 0]
                checks.look(batch, chosen, pool)
                done += len(batch)
                if on_progress is not None:
                    on_progress("verify", done, len(texts) + len(tricky))
    findings = (loads(), *checks.results())
    return Verification(str(place), repr(tokenizer), len(texts), sum(map(len, texts)), findings)


def _lines(given: Any) -> Iterable[str]:
    """The lines of files, or those that were given, as they are."""
    text = as_text(given)
    if isinstance(text, list) and text and all(isinstance(source, Source) for source in text):
        return [line for block in read(text) for line in block.lines()]
    if isinstance(text, str | bytes | Mapping) or hasattr(text, "columns") or not isinstance(text, Iterable):
        read(text)  # raises with the reason
    return text  # type: ignore[no-any-return]


class _Checks:
    """All checks of one folder."""

    def __init__(self, tokenizer: TrainedTokenizer, folder: Path, exports: list[Path]) -> None:
        self._tokenizer, self._folder = tokenizer, folder
        self._round_trip = RoundTrip(tokenizer)
        self._formats: list[Format] = []
        self._unopened: list[CheckResult] = []
        self._tables: list[CheckResult] = []
        offsets: list[Check] = [Offsets(tokenizer)]
        for name, reader in open_formats(tokenizer, folder, exports):
            if isinstance(reader, Unopened):
                outcome = ("fail", 1, 1) if reader.fault else ("not run", 0, 0)
                self._unopened.append(CheckResult(f"ids: {name}", *outcome, reader.why))  # type: ignore[arg-type]
                continue
            if isinstance(reader, WrittenTable):
                self._tables.append(same_table(tokenizer, name, reader))
                continue
            self._formats.append(Format(tokenizer, name, reader))
            if reader.has_offsets:
                offsets.append(OffsetsOfHuggingFace(tokenizer, name, reader.tokenizer))
        self._offsets = offsets

    def look(self, lines: list[str], chosen: list[int], pool: ThreadPoolExecutor) -> None:
        """Run every check on some lines, the slow ones on the chosen lines; libraries encode on other cores."""
        tokenizer = self._tokenizer
        normal = [tokenizer.normalize(line) for line in lines]
        running = []
        for check in self._formats:
            some = chosen if check.reader.slow else range(len(lines))
            rows = pool.submit(check.rows, [lines[i] for i in some], [normal[i] for i in some])
            running.append((check, some, rows))
        encodings = [tokenizer.encode(line) for line in lines]
        batch = Batch(lines, normal, encodings, [tokenizer.decode(encoding.ids) for encoding in encodings])
        for check, some, rows in running:
            check.compare(batch.only(some), rows.result())
        sampled = batch.only(chosen)
        for other in (self._round_trip, *self._formats, *self._offsets):
            other.look(sampled if other.slow else batch)

    def results(self) -> Iterator[CheckResult]:
        """The results, with those of the checks without text."""
        tokenizer, folder = self._tokenizer, self._folder
        yield from self._round_trip.results()
        yield from self._unopened
        for check in self._formats:
            yield from check.results()
        yield from self._tables
        for other in self._offsets:
            yield from other.results()
        tokens = tokenizer.vocab.tokens
        yield from roles(folder, tokenizer.roles, tokens)
        yield specials(tokenizer)
        for check in self._formats:
            yield specials_of_format(tokenizer, check.name, check.reader)
            if check.reader.has_roles:
                theirs = ids_by_role(check.reader.tokenizer.roles, tokens)
                yield from same_roles(check.name, ids_by_role(tokenizer.roles, tokens), theirs)
        yield probe(folder, lambda lines: [tokenizer.encode(line).ids for line in lines])
