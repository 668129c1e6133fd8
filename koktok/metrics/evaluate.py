"""`evaluate`: tokenizers of any library measured on the same text and gold morphemes, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from koktok.errors import UsageError
from koktok.foreign import ForeignTokenizer, open_spec
from koktok.foreign.koktok_adapter import Own
from koktok.gold import GoldCorpus, read_gold
from koktok.metrics.boundaries import GoldPage
from koktok.metrics.scoring import Scores, score
from koktok.metrics.tokens import Text
from koktok.text.sources import Source, lines_of, text_of
from koktok.tokenizer import Tokenizer


def evaluate(
    tokenizers: Any,
    text: Any = None,
    gold: Any = (),
    *,
    extended: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Scores]:
    """Tokens, unknowns and morpheme boundaries of tokenizers, every figure with a 95 % interval.

    Parameters
    ----------
    tokenizers : Tokenizer, Path, str, or several of them
        A tokenizer, a folder or file, or a reference as `koktok report` takes it (`hf:FILE`, `package:NAME`, `kiwi`).
    text : Path, several paths, lines, or a mapping of names to lines, optional
        Every file, or name, is a domain.
    gold : Path or several paths, optional
        Gold morphemes: CoNLL-U, KLUE-DP, Sejong.
    extended : bool
        Also the metrics that encode again: round trips, noise, reach of the vocabulary. Minutes each.
    resamples, seed : int
        Of the bootstrap; 0 draws no intervals.

    Returns
    -------
    dict of str to Scores
        By name, in their order. `scores["name"].values["fertility"].value` are tokens per eojeol, `"boundary_f1"` is the F1
        on the gold; `koktok metrics` lists all and what they mean.

    Raises
    ------
    UsageError
        When there is nothing to measure, or on.
    KoktokError
        When a tokenizer cannot be opened, or a file not be read.

    Examples
    --------
    >>> evaluate("syllables", ["하늘이 맑다", "비가 온다"], resamples=0)["syllables"].values["fertility"].value
    2.25
    """
    opened = [_opened(one) for one in _several(tokenizers)]
    if not opened:
        raise UsageError("no tokenizer came to measure", hint='koktok.evaluate("my-tokenizer", Path("text.txt"))')
    pages = [GoldPage(one if isinstance(one, GoldCorpus) else read_gold(Path(one))) for one in _several(gold)]
    measured = None if text is None else _text(text)
    found: dict[str, Scores] = {}
    for tokenizer in opened:
        name = tokenizer.name
        while name in found:
            name += "'"
        found[name] = score(tokenizer, measured, gold=pages, extended=extended, resamples=resamples, seed=seed)
    return found


def _several(given: Any) -> Sequence[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | Path) else [given]


def _opened(given: Any) -> ForeignTokenizer:
    if isinstance(given, ForeignTokenizer):
        return given
    if isinstance(given, Tokenizer):
        return Own("", f"koktok {given.vocab.kind}", given)
    if isinstance(given, str | Path):
        return open_spec(str(given))
    raise UsageError(f"a {type(given).__name__} came where a tokenizer, a folder or a reference was wanted")


def _text(given: Any) -> Text:
    if isinstance(given, Text):
        return given
    if isinstance(given, Mapping):
        return Text.of(given)
    found = text_of(given)
    if isinstance(found, list) and found and isinstance(found[0], Source):
        return Text.read([file for source in found for file in source.paths])
    return Text.of({"text": list(lines_of(found))})
