"""`extend`: from a base and text to the folder of an extension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koktok.corpora.paths import as_text
from koktok.count.counting import read
from koktok.errors import ArtifactError
from koktok.extension.base_text import prepare
from koktok.extension.base_tokenizer import Base, base_of, open_base
from koktok.extension.cost_card import CostModel, card
from koktok.extension.embeddings import model_of, npz
from koktok.extension.extension_files import (
    FOLDER,
    Extension,
    ExtensionRecord,
    digest_of,
    extended,
    files_of,
    read_extension,
)
from koktok.extension.laws import proof
from koktok.extension.learn import NU, UNRECORDED, ExtendOptions, SizePoint, learn
from koktok.files import check_folder, write_folder
from koktok.progress import OnProgress, silent
from koktok.runtimes.huggingface.auto_tokenizer import not_carried
from koktok.runtimes.probe import PROBE, probe_json
from koktok.segment import DEFAULT, analyser_of
from koktok.segment.cache import CachedSegmenter
from koktok.segment.workers import Workers, in_subprocess
from koktok.text.blocklist import PERSONAL_DEFAULT, Blocklist
from koktok.tokenizer.ready import folder_of


@dataclass(frozen=True)
class Extended:
    """The result of `extend`: figures of the base and of each size, the number of proven facts, notes, and the folder."""

    extension: Extension
    points: tuple[SizePoint, ...]
    checked: int
    notes: tuple[str, ...]
    folder: Path


def extend(
    reference: str | Path | Base,
    text: Any,
    out: str | Path,
    *,
    policy: str = "morphemes",
    segmenter: str = DEFAULT,
    user_dictionary: str | None = None,
    blocklist: Blocklist | None = None,
    holdout: float = 0.05,
    threads: int | None = None,
    cache: Path | bool | None = None,
    force: bool = False,
    on_progress: OnProgress = silent,
    **options: Any,
) -> Extended:
    """Train Korean pieces for a tokenizer, prove the laws of the extension, and write its folder.

    Parameters
    ----------
    reference : str, Path or Base
        The base: a path, or a reference as `koktok.load` takes it.
    text : Path, Source, a sequence of these, or iterable of str or of mappings with a field `text`
    out : str or Path
    policy, segmenter, user_dictionary, threads, cache
        As in `koktok.train`.
    blocklist : Blocklist, optional
        Strings that no piece may contain; by default patterns of personal data.
    holdout : float
        Share of the lines held out for evaluation.
    force : bool
        Replace another extension that koktok wrote at `out`; refused by default.
    on_progress : callable
        Progress.
    **options
        Fields of `ExtendOptions` by name: `add=8192, keep=0.8`.

    Raises
    ------
    KoktokError
        When a step fails; nothing is written then.
    """
    settings = ExtendOptions(**options)
    blocklist = Blocklist(personal=PERSONAL_DEFAULT) if blocklist is None else blocklist
    check_folder(out, FOLDER)
    if not isinstance(reference, Base):
        reference = open_base(str(reference), pattern=settings.pattern, specials=settings.specials)
    base = reference
    reading = read(as_text(text), holdout=holdout, threads=threads, on_progress=on_progress)
    workers = in_subprocess(segmenter, user_dictionary=user_dictionary, processes=threads)
    uncached = cache is False or not analyser_of(segmenter).analyses
    analyser = workers if uncached else CachedSegmenter(workers, cache if isinstance(cache, Path) else None)
    log: dict[str, Any] = {
        **({"nu": NU if settings.nu is None else settings.nu} if settings.keep is None else {}),
        "policy": policy,
        "segmenter": analyser.signature(),
        "blocklist": blocklist.digest(),
        "counts": reading.train.digest(),
        **settings.model_dump(exclude=UNRECORDED),
    }
    try:
        if not force:
            check_folder(out, FOLDER, same=lambda folder: _is_learnt(folder, base, settings.size, log))
        counted = prepare(base, reading, analyser, policy=policy, min_count=settings.min_count, on_progress=on_progress)
    finally:
        if isinstance(workers, Workers):
            workers.close()
    learnt = learn(base, counted, settings, blocklist, on_progress)
    frontier = [{**point.__dict__, "f1": point.f1} for point in learnt.points]
    log = {"nu": learnt.penalty, **log, "frontier": frontier}
    extension = extended(base, learnt, settings.size, fill=settings.fill, log=log)
    on_progress("write", 0, None)
    files = files_of(extension)
    new = base_of(str(out), files)
    checked = _proven(base, new, extension.record)
    notes = [*base.notes, *_notes(extension, counted.left_out), *not_carried(folder_of(Path(base.name)), files)]
    files[PROBE] = probe_json(new.encode).encode()
    files["init.npz"] = npz(extension.record, settings.init)
    model = model_of(base.name)
    held = counted.held.words > 0
    files["README.md"] = card(
        extension, learnt.points, held=held, model=CostModel(*model) if model else None, notes=notes
    ).encode()
    folder = write_folder(out, files, FOLDER, force=force)
    return Extended(extension, learnt.points, checked, tuple(notes), folder)


def _is_learnt(folder: Path, base: Base, size: int, log: Mapping[str, Any]) -> bool:
    """Whether the extension in a folder was learned from the same base and text, with the same settings."""
    try:
        record = read_extension(folder)
    except ArtifactError:
        return False
    known = {
        "base": record.base.sha256,
        "size": len(record.pieces),
        **{name: getattr(record, name, None) for name in log},
    }
    return known == {"base": digest_of(base.definition), "size": size, **log}


def _proven(base: Base, new: Base, record: ExtensionRecord) -> int:
    """Raise an error if a law does not hold, and return the number of facts."""
    checked = 0
    for claim in proof(base, new, record):
        checked += 1
        if not claim.holds:
            raise ArtifactError(
                f"this extension would break a guarantee ({claim.law}): {claim.wrong}; nothing was written",
                hint="report it, with the base",
            )
    return checked


def _notes(extension: Extension, left_out: int) -> list[str]:
    base = extension.base
    notes = {
        "Unigram: a text may get more tokens; `koktok verify` counts such lines of your text": (base.kind == "unigram"),
        f"{extension.holes:,} ids below {extension.size:,} have no token; llama.cpp requires padding tokens": extension.holes,
        f"new ids begin after the special tokens, at {base.size:,}": (
            not extension.filled and base.added and max(base.added) + 1 == base.size
        ),
        f"{left_out:,} running words that the base's normalizer changes were left out of the training": left_out,
    }
    return [note for note, holds in notes.items() if holds]
