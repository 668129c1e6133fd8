"""A base and text in, the folder of an extension out: the one place that knows all steps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koktok.blocklist import PERSONAL_DEFAULT, Blocklist
from koktok.corpora.paths import as_text
from koktok.count.counting import read
from koktok.errors import ArtifactError, UsageError
from koktok.extension.base_text import prepare
from koktok.extension.base_tokenizer import Base, base_of, open_base
from koktok.extension.cost_card import CostModel, card
from koktok.extension.embeddings import METHODS, Method, model_of, npz
from koktok.extension.extension_files import EXTENSION, FOLDER, Extension, ExtensionRecord, extended, files_of
from koktok.extension.laws import proof
from koktok.extension.learn import NU, LearnOptions, SizePoint, learn
from koktok.files import check_folder, write_folder
from koktok.formats.probe import PROBE, probe_json
from koktok.progress import OnProgress, silent
from koktok.segment.cache import CachedSegmenter
from koktok.segment.workers import Workers, in_subprocess

ADD = 8192
"""New pieces, where nobody says how many."""


@dataclass(frozen=True)
class Extended:
    """What `extend` wrote.

    Parameters
    ----------
    extension : Extension
    points : tuple of SizePoint
        The base, then each size.
    looked : int
        How many single facts the proof looked at.
    notes : tuple of str
    folder : Path
    """

    extension: Extension
    points: tuple[SizePoint, ...]
    looked: int
    notes: tuple[str, ...]
    folder: Path


def extend(
    reference: str | Path | Base,
    text: Any,
    out: str | Path,
    *,
    add: int | None = None,
    fill: str | None = None,
    keep: float | None = None,
    nu: float | None = None,
    sizes: Sequence[int] = (),
    init: Method = "mean",
    policy: str = "morphemes",
    segmenter: str = "kiwi",
    user_dictionary: str | None = None,
    blocklist: Blocklist | None = None,
    min_count: int | None = None,
    holdout: float = 0.05,
    pad_to: int = 1,
    pattern: str | None = None,
    specials: Mapping[str, int] | None = None,
    threads: int | None = None,
    cache: Path | bool | None = None,
    force: bool = True,
    on_progress: OnProgress = silent,
) -> Extended:
    """Learn Korean pieces for a tokenizer, prove the extension, and write its folder.

    Parameters
    ----------
    reference : str, Path or Base
        The base: what `open_base` opens.
    text : Path, Source, a sequence of these, or iterable of str or of mappings with a field `text`
    out : str or Path
    add : int, optional
        Number of new pieces; by default 8,192, or the largest of the sizes.
    fill : str, optional
        Slots that the base reserves, in place of ids after all others: `reserved`, `unused`, or a file of tokens.
    keep : float, optional
        Share of the morpheme boundaries that are token boundaries; `nu` is adjusted to reach it.
    nu : float, optional
        Cost of a morpheme boundary inside a piece, as a share of what the piece saves; by default 1.
    sizes : sequence of int
        Sizes to report from one run; the largest is written unless `add` is given.
    init : {"mean", "eeve", "weighted"}
        Initialization of new embedding rows.
    policy, segmenter, user_dictionary, threads, cache
        As in `koktok.train`.
    blocklist : Blocklist, optional
        Strings that no piece may contain; by default what looks like personal data.
    min_count : int, optional
        Minimum number of tokens that a piece saves, and minimum count of a word; by default 2, and all words.
    holdout : float
        Share of the lines held out for evaluation.
    pad_to : int
        Where the model's matrices grow, round their rows up to a multiple of this.
    pattern : str, optional
        For tiktoken ranks: the name of a pattern, or a regular expression.
    specials : mapping of str to int, optional
        For tiktoken ranks: special tokens with their ids.
    force : bool
        Whether another extension that koktok wrote at `out` may be replaced.
    on_progress : callable
        Progress.

    Raises
    ------
    KoktokError
        When a step fails; nothing is written then.
    """
    if init not in METHODS:
        raise UsageError(f"`--init {init}` is not known", hint=f"--init {' | '.join(METHODS)}")
    if pad_to < 1 or (min_count is not None and min_count < 1):
        name, came = ("pad-to-multiple", pad_to) if pad_to < 1 else ("min-count", min_count)
        raise UsageError(f"--{name} {came} came; 1 or more was wanted", hint=f"--{name} 64")
    if keep is not None and nu is not None:
        raise UsageError("--keep finds --nu; one of them was wanted", hint="--keep 0.8")
    add = max(sizes, default=ADD) if add is None else add
    wanted = LearnOptions(
        add,
        NU if nu is None else nu,
        keep,
        tuple(sizes),
        min_count or 2,
        Blocklist(personal=PERSONAL_DEFAULT) if blocklist is None else blocklist,
    )
    check_folder(out, FOLDER)
    base = reference if isinstance(reference, Base) else open_base(str(reference), pattern=pattern, specials=specials)
    reading = read(as_text(text), holdout=holdout, threads=threads, on_progress=on_progress)
    if not force:
        check_folder(out, FOLDER, same=lambda folder: _learnt_in(folder) == (reading.train.digest(), add))
    workers = in_subprocess(segmenter, user_dictionary=user_dictionary, processes=threads)
    asked = (
        workers
        if cache is False or segmenter == "whitespace"
        else CachedSegmenter(workers, cache if isinstance(cache, Path) else None)
    )
    try:
        counted = prepare(base, reading, asked, policy=policy, min_count=min_count, on_progress=on_progress)
    finally:
        if isinstance(workers, Workers):
            workers.close()
    learnt = learn(base, counted, wanted, on_progress)
    log = {
        "nu": learnt.penalty,
        "policy": policy,
        "segmenter": asked.signature(),
        "blocklist": (wanted.blocked or Blocklist()).digest(),
        "min_count": min_count,
        "counts": reading.train.digest(),
        "pad_to": pad_to,
        "frontier": [{**point.__dict__, "f1": point.f1} for point in learnt.points],
    }
    extension = extended(base, learnt, add, fill=fill, log=log)
    on_progress("write", 0, None)
    files = files_of(extension)
    new = base_of(str(out), files)
    looked = _proven(base, new, extension.record)
    notes = [*base.notes, *_notes(extension, counted.left_out)]
    files[PROBE] = probe_json(new.encode).encode()
    files["init.npz"] = npz(extension.record, init)
    model = model_of(base.name)
    held = counted.held_words > 0
    files["README.md"] = card(
        extension, learnt.points, held=held, model=CostModel(*model) if model else None, notes=notes
    ).encode()
    folder = write_folder(out, files, FOLDER, force=force)
    return Extended(extension, learnt.points, looked, tuple(notes), folder)


def _learnt_in(folder: Path) -> tuple[str, int]:
    """Digest of the words that the extension in a folder was learnt from, and how many pieces it has."""
    try:
        told = json.loads((folder / EXTENSION).read_text(encoding="utf-8"))
        return told["counts"], len(told["pieces"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "", 0


def _proven(base: Base, new: Base, record: ExtensionRecord) -> int:
    """Nothing is written that is not proven."""
    looked = 0
    for said in proof(base, new, record):
        looked += 1
        if not said.holds:
            raise ArtifactError(
                f"this extension would break a law ({said.law}): {said.wrong}; nothing was written",
                hint="report it, with the base",
            )
    return looked


def _notes(extension: Extension, left_out: int) -> list[str]:
    base, notes = extension.base, []
    if base.kind == "unigram":
        notes.append(
            "Unigram: that no text gets longer is likely, and no theorem; `koktok verify` counts it on your text"
        )
    if extension.holes:
        notes.append(f"{extension.holes:,} ids below {extension.size:,} have no token; llama.cpp wants them padded")
    if not extension.filled and base.added and max(base.added) + 1 == base.size:
        notes.append(f"new ids begin behind the special tokens, at {base.size:,}")
    if left_out:
        notes.append(f"{left_out:,} running words that the base's normalizer changes were not learnt from")
    return notes
