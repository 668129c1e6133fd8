"""The trainers by keyword, without a recipe: sizes and alphabets that no recipe has."""

from __future__ import annotations

from typing import Any

import numpy as np

from koktok.model.vocab import Vocab
from koktok.recipe import TrainRecipe
from koktok.segment.segmented import SegmentedCounts
from koktok.training import baselines, bpe, spm, unigram, unigram_em, wordpiece
from koktok.training.job import Job, Learnt
from koktok.training.unigram_point import PRESETS, chosen


def _job(counts: SegmentedCounts, vocab_size: int, kind: str, given: dict[str, Any]) -> Job:
    """A job of these fields, which are taken out of `given`."""
    names = (
        "specials",
        "coverage",
        "max_length",
        "crosses",
        "runs",
        "run_documents",
        "superwords",
        "eojeols",
        "threads",
    )
    fields = {name: given.pop(name) for name in (*names, "alphabet", "required", "on_progress") if name in given}
    reserve = given.pop("reserve", None)
    options = given.pop("options", {}) | {name: given.pop(name) for name in ("price",) if name in given}
    if reserve is not None:
        options["reserve_script"] = reserve
    return Job(
        counts,
        vocab_size,
        kind,
        options=TrainRecipe.model_construct(**{**TrainRecipe().model_dump(), **options}),
        **fields,
    )  # type: ignore[arg-type]


def train_unigram(counts: SegmentedCounts, *, vocab_size: int, preset: str = "lm", **given: Any) -> Learnt:
    given["alphabet"] = given.pop("required", ())
    given = {"coverage": 0.9995, **given}
    more = {"max_length": given["max_length"]} if "max_length" in given else {}
    job = _job(counts, vocab_size, "unigram", given)
    point = chosen(preset, **given, **more)
    return unigram.train_unigrams(job, [point])[point.name]


def train_unigrams(counts: SegmentedCounts, *, vocab_size: int, points: Any = None, **given: Any) -> dict[str, Learnt]:
    given["alphabet"] = given.pop("required", ())
    given = {"coverage": 0.9995, **given}
    job = _job(counts, vocab_size, "unigram", given)
    return unigram.train_unigrams(job, tuple(PRESETS.values()) if points is None else points)


def train_unigram_em(counts: SegmentedCounts, *, vocab_size: int, **given: Any) -> Learnt:
    given = {"coverage": 0.9995, "max_length": 16, **given}
    return unigram_em.train_unigram_em(_job(counts, vocab_size, "unigram", given), **given)


def _of_alphabet(given: dict[str, Any], kind: str) -> tuple[str, dict[str, Any]]:
    """The kind, and the fields as a job names them."""
    spelled = given.pop("alphabet", "chars") == "bytes"
    given["alphabet"] = given.pop("characters", None)
    given = {"max_length": 48 if spelled else 16, **given}
    documents = given.pop("documents", None)
    given["run_documents"] = None if documents is None else np.asarray(documents, np.uint64)
    return f"{kind}-bytes" if spelled else kind, given


def train_bpe(counts: SegmentedCounts, *, vocab_size: int, **given: Any) -> Learnt:
    kind, given = _of_alphabet(given, "bpe")
    if given.get("superwords", ...) is None:
        del given["superwords"]
    chosen = given.pop("chosen", False)
    job = _job(counts, vocab_size, kind, given)
    return bpe.train_bpe(job) if chosen else bpe.train_plain_bpe(job, **given)


def train_wordpiece(counts: SegmentedCounts, *, vocab_size: int, **given: Any) -> Learnt:
    kind, given = _of_alphabet({"specials": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), **given}, "wordpiece")
    return wordpiece.trained(_job(counts, vocab_size, kind, given), **given)


def train_simple(counts: SegmentedCounts, kind: str, *, vocab_size: int, n: int = 2, **given: Any) -> Vocab:
    given["alphabet"] = given.pop("characters", None)
    given["options"] = {"ngram": n}
    return baselines.train_simple(_job(counts, vocab_size, kind, given), **given).vocab


def train_spm(counts: SegmentedCounts, *, model: str, vocab_size: int, **given: Any) -> Vocab:
    given["max_length"] = given.pop("max_piece_length", 16)
    return spm.train_spm(_job(counts, vocab_size, model, given)).vocab
