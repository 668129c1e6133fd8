"""`verify`: proof that a saved folder is lossless, and equal in every format; on any text, by the user's own command.

Whatever the tests of this repository prove of small folders is proven again of the folder at hand:
`probes` (what breaks tokenizers), `formats` (every format in the library that runs it), `loss`, `checks` and `folders` (what
is checked), `finding` (what was found).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from koktok.errors import ArtifactError, UsageError
from koktok.extension.extension_files import is_extension
from koktok.extension.prune import is_pruned
from koktok.foreign.huggingface_adapter import HuggingFace
from koktok.foreign.open import load_folder
from koktok.progress import OnProgress
from koktok.tokenizer import Tokenizer
from koktok.verification.checks import FEW, Batch, Batches, Ids, Offsets, OffsetsOfHuggingFace, Streams, pieces_of_gguf
from koktok.verification.extension import RANDOM, verify_extension, verify_pruned
from koktok.verification.finding import CheckResult, Loss, Tally, Verification
from koktok.verification.folders import probe, saving, specials, specials_of_format
from koktok.verification.formats import Unopened, ggufs, open_formats
from koktok.verification.loss import RoundTrip
from koktok.verification.probes import tricky_lines
from koktok.vocabularies import folder_of

__all__ = ["SAMPLE", "CheckResult", "Loss", "Verification", "verify"]

SAMPLE = 20_000
"""Lines that the slow checks look at, spread evenly over the text."""

BATCH = 500


def verify(
    folder: str | Path,
    lines: Iterable[str] = (),
    *,
    exports: Iterable[str | Path] = (),
    sample: int = SAMPLE,
    strings: int | None = None,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Check everything about a folder.

    Parameters
    ----------
    folder : str or Path
        A saved tokenizer, or an extension or pruned vocabulary (`koktok extend`); then `exports` are bases that it must extend.
    lines : iterable of str
        The user's text; `TRICKY` lines of our own are always checked besides. Each distinct line is looked at once.
    exports : iterable of str or Path
        Exports, folders or files, that must be the same tokenizer.
    sample : int
        How many lines the slow checks look at: transformers, offsets, batches, streams.
    strings : int, optional
        How many random strings an extension is looked at with besides, 10,000 by default; of a byte-level base as many random
        byte strings, too.
    on_progress : callable, optional
        Called with a stage, lines done and their total.

    Returns
    -------
    Verification
        `report.passed` is the verdict. A folder that cannot be loaded is a finding, no error.

    Raises
    ------
    UsageError
        When the folder holds a tokenizer that koktok imported and another library runs, no export lies at a place, or `strings`
        came for a folder that is no extension.

    Examples
    --------
    >>> import tempfile
    >>> from koktok import Recipe, Tokenizer
    >>> from koktok.vocab import Vocab
    >>> vocab = Vocab.unigram({"한": -2.0, "국": -2.0, "한국": -3.0}, specials=Recipe().special_tokens)
    >>> folder = Tokenizer(Recipe(), vocab).save(tempfile.mkdtemp() + "/tokenizer")
    >>> report = verify(folder, ["한국은 한국"])
    >>> report.passed, report.lines
    (True, 1)
    """
    place = folder_of(Path(folder))
    if is_extension(place):
        return verify_extension(
            place, lines, exports=exports, strings=RANDOM if strings is None else strings, on_progress=on_progress
        )
    if strings is not None:
        raise UsageError(
            f"random strings are for extensions, and `{place}` is none",
            hint=f"koktok verify {place} TEXT, without --random",
        )
    if is_pruned(place):
        return verify_pruned(place, lines, exports=[*exports])
    try:
        tokenizer = load_folder(place)
    except ArtifactError as error:
        return Verification(
            str(place), findings=(CheckResult("loads", "fail", 1, 1, "the folder loads", examples=(error.message,)),)
        )
    if not isinstance(tokenizer, Tokenizer):
        raise UsageError(
            f"`{place}` holds an imported tokenizer, which another library runs; there is nothing of koktok's to prove",
            hint="koktok diff A B --text TEXT, or koktok report",
        )
    texts = list(dict.fromkeys(lines))
    check = _Checks(tokenizer, place, [Path(export) for export in exports])
    tricky = [line for line in tricky_lines() if line not in set(texts)]
    total = len(texts) + len(tricky)
    step = max(1, len(texts) // max(1, sample))
    done = 0
    with ThreadPoolExecutor(2) as pool:
        for batch, first, of_user in _batches(texts, tricky):
            chosen = [i for i in range(len(batch)) if not of_user or (first + i) % step == 0]
            check.look(batch, chosen, pool, account=of_user)
            done += len(batch)
            if on_progress is not None:
                on_progress("verify", done, total)
    findings = (CheckResult("loads", "pass", 1, 0, "the folder loads"), *check.findings())
    return Verification(
        str(place), repr(tokenizer), len(texts), sum(map(len, texts)), findings, check.round_trip.losses()
    )


def _batches(texts: list[str], tricky: list[str]) -> Iterator[tuple[list[str], int, bool]]:
    """Lines, the place of the first, and whether they are the user's."""
    for lines, of_user in ((texts, True), (tricky, False)):
        for first in range(0, len(lines), BATCH):
            yield lines[first : first + BATCH], first, of_user


class _Checks:
    """All checks of one folder."""

    def __init__(self, tokenizer: Tokenizer, folder: Path, exports: list[Path]) -> None:
        self._tokenizer, self._folder = tokenizer, folder
        self.round_trip = RoundTrip(tokenizer)
        self._offsets, self._batches, self._streams = Offsets(tokenizer), Batches(tokenizer), Streams(tokenizer)
        self._formats: list[Ids] = []
        self._unopened: list[CheckResult] = []
        self._theirs: list[OffsetsOfHuggingFace] = []
        for name, reader in open_formats(tokenizer, folder, exports):
            if isinstance(reader, Unopened):
                outcome = ("fail", 1, 1) if reader.fault else ("not run", 0, 0)
                self._unopened.append(CheckResult(f"ids: {name}", *outcome, reader.why))  # type: ignore[arg-type]
                continue
            self._formats.append(Ids(tokenizer, name, reader))
            if not reader.slow and isinstance(reader.adapter, HuggingFace):
                self._theirs.append(OffsetsOfHuggingFace(tokenizer, name, reader.adapter))
        self._gguf = [
            (file.name if place == folder else f"{file.resolve().parent.name}/{file.name}", file)
            for place in (folder, *exports)
            for file in ggufs(place)
        ]
        self._decomposed = 0

    def look(self, lines: list[str], chosen: list[int], pool: ThreadPoolExecutor, *, account: bool) -> None:
        """Look at some lines with every check, with the slow ones at those chosen."""
        tokenizer = self._tokenizer
        normal = [tokenizer.normalize(line) for line in lines]
        running = []
        for format_ in self._formats:
            some = chosen if format_.reader.slow else range(len(lines))
            rows = pool.submit(format_.rows, [lines[i] for i in some], [normal[i] for i in some])
            running.append((format_, some, rows))
        encodings = [tokenizer.encode(line) for line in lines]
        batch = Batch(lines, normal, encodings, [tokenizer.decode(encoding.ids) for encoding in encodings])
        for line, plain, encoding, decoded in zip(lines, normal, encodings, batch.decoded, strict=True):
            self.round_trip.look(line, plain, encoding, decoded, account=account)
        self._batches.look_flat(batch)
        for format_, some, rows in running:
            format_.look(batch.only(some), rows.result())
        self._look_closely(batch.only(chosen))

    def _look_closely(self, batch: Batch) -> None:
        self._batches.look(batch)
        self._streams.look(batch)
        for line, encoding in zip(batch.lines, batch.encodings, strict=True):
            self._offsets.look(line, encoding)
        for format_ in self._formats:
            format_.look_raw(batch)
        for theirs in self._theirs:
            theirs.look(batch.normal)
        decomposed = batch.lines[: max(0, FEW - self._decomposed)]
        self._decomposed += len(decomposed)
        for line in decomposed:
            self._offsets.look_decomposed(line)
        for theirs in self._theirs:
            theirs.look_decomposed(decomposed)

    def findings(self) -> Iterator[CheckResult]:
        """What was found, and the checks that need no text."""
        tokenizer = self._tokenizer
        yield self.round_trip.tally.finding()
        yield from self._unopened
        for format_ in self._formats:
            yield from format_.findings()
        for name, file in self._gguf:
            yield pieces_of_gguf(tokenizer, name, file).finding()
        tallies: list[Tally] = [self._offsets.tally, *(theirs.tally for theirs in self._theirs)]
        tallies += [self._batches.tally, self._batches.bulk, self._streams.tally, specials(tokenizer)]
        tallies += [specials_of_format(tokenizer, format_.name, format_.reader) for format_ in self._formats]
        tallies += [
            saving(tokenizer, self._folder),
            probe(self._folder, lambda lines: [tokenizer.encode(line).ids for line in lines]),
        ]
        yield from (tally.finding() for tally in tallies)
