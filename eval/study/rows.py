"""The rows of the size `cpu` (PLAN.md, part 3), what is compared, and their vocabularies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final
from unittest.mock import patch

from eval.peers import CURVE, PEERS, Peer, koktok_peer
from eval.placebo import PLACEBOS
from eval.tagger import SENTENCEPIECE, at_tokens
from koktok.protocol.tokenizer import Tokenizer
from koktok.recipe import Group
from koktok.tokenizer.open import load
from koktok.training import price
from koktok.training.unigram_point import PRESETS

IDS: Final = 32_000
MOST: Final = 64_000
"""Ids of SentencePiece that are looked at for equal tokens."""


@dataclass(frozen=True)
class Row:
    """A vocabulary: what trains it, and its ids; or those of SentencePiece that give at most the tokens of another row."""

    name: str
    shown: str
    peer: str = ""
    ids: int = IDS
    equal: str = ""
    like: str = ""
    """The row whose rate it takes; its own where it is empty."""
    tried: str = ""
    """The row that it is one change of: it has a short run of one seed, by which the change is judged."""


KOKTOK: Final = ("lm", "bpe", "aligned", "encoder", "short", "superbpe")
"""Rows that are compared with SentencePiece at their tokens."""


def change(name: str, shown: str, peer: str) -> Row:
    """A row that is one change of `lm-before`."""
    return Row(name, f"`lm-before`, {shown}", peer, like="lm-before", tried="lm-before")


ROWS: Final = {
    row.name: row
    for row in (
        Row("sp", "SentencePiece Unigram, defaults", SENTENCEPIECE),
        Row("lm", "koktok `lm`", "koktok lm", like="lm-before"),
        Row("bpe", "koktok `bpe-bytes`, Llama 3's pattern", "koktok bpe-bytes lm", like="bpe-before"),
        Row("hf", "Hugging Face byte-level BPE, Llama 3's pattern", "HF byte-level BPE, Llama 3's pattern"),
        Row(
            "bpe-space",
            "`bpe-bytes`, a space before the first word",
            "koktok bpe-bytes lm, space first",
            like="bpe-before",
        ),
        Row("aligned", "koktok `aligned`", "koktok aligned"),
        Row("encoder", "koktok `encoder`", "koktok encoder", like="aligned"),
        Row("sp-lm", "SentencePiece at the tokens of `lm`", equal="lm", like="sp"),
        Row("sp-bpe", "SentencePiece at the tokens of `bpe-bytes`", equal="bpe", like="sp"),
        Row("sp-aligned", "SentencePiece at the tokens of `aligned`", equal="aligned", like="sp-12k"),
        Row("moved", "placebo: `aligned`, cuts moved", PLACEBOS[0].name, like="aligned"),
        Row("lm-before", "`lm` with its former targets", "koktok lm, before"),
        Row("lm-more", "`lm-before`, more of the boundaries", "koktok lm, more", like="lm-before"),
        Row("sp-before", "SentencePiece at the tokens of `lm-before`", equal="lm-before", like="sp"),
        Row("sp-more", "SentencePiece at the tokens of `lm-more`", equal="lm-more", like="sp"),
        Row("bpe-before", "`bpe` with its former targets", "koktok bpe-bytes lm, before"),
        Row(
            "bpe-space-before",
            "`bpe-before`, a space before the first word",
            "koktok bpe-bytes lm before, space first",
            like="bpe-before",
        ),
        change("lm-tokens", "as many tokens as SentencePiece", "koktok unigram, 1.75 asked"),
        change("lm-rare", "rare pieces dearer", "koktok lm, rare dearer"),
        change("lm-digits", "digits free", "koktok lm before, digits free"),
        Row("sp-12k", "SentencePiece Unigram, defaults, 12,000 ids", SENTENCEPIECE, 12_000),
        Row("lm-12k", "koktok `lm`, 12,000 ids", "koktok lm", 12_000, like="sp-12k"),
        Row("sp-spaces", "SentencePiece Unigram, spaces only", "SentencePiece Unigram, spaces only", like="sp"),
        Row("sp-aligned-rate", "`sp-aligned`, at the rate of `sp`", equal="aligned", like="sp"),
        Row("sp-12k-rate", "`sp-12k`, at the rate of `sp`", SENTENCEPIECE, 12_000, like="sp"),
        Row("lm-12k-rate", "`lm-12k`, at the rate of `lm`", "koktok lm", 12_000, like="lm-before"),
        Row("lm-8k", "koktok `lm`, 8,000 ids", "koktok lm", 8_000, like="lm-before"),
        Row("lm-64k", "koktok `lm`, 64,000 ids", "koktok lm", 64_000, like="lm-before"),
        Row("lm-128k", "koktok `lm`, 128,000 ids", "koktok lm", 128_000, like="lm-before"),
        Row("superbpe", "`bpe-bytes`, SuperBPE's pattern", "koktok bpe-bytes lm, superbpe", like="bpe-before"),
        Row(
            "superbpe-space",
            "the same, a space before the first word",
            "koktok bpe-bytes lm, superbpe, space first",
            like="bpe-before",
        ),
        Row("short", "koktok `short`", "koktok short", like="lm-before"),
        Row("sp-encoder", "SentencePiece at the tokens of `encoder`", equal="encoder", like="sp-12k"),
        Row("sp-encoder-rate", "`sp-encoder`, at the rate of `sp`", equal="encoder", like="sp"),
        Row("sp-superbpe", "SentencePiece at the tokens of `superbpe`", equal="superbpe", like="sp"),
        Row("sp-short", "SentencePiece at the tokens of `short`", equal="short", like="sp"),
    )
}
"""In the order in which they run: a study that is cut short has the principal ones."""

FIRST: Final = (*tuple(ROWS)[:11], "sp-aligned-rate")
"""Those that have all their seeds before the others have more than one."""

PRIMARY: Final = (
    ("lm", "sp"), ("lm", "sp-lm"), ("bpe", "hf"), ("bpe", "sp"), ("bpe", "sp-bpe"),
    ("aligned", "sp"), ("aligned", "sp-aligned-rate"), ("aligned", "moved"),
)  # fmt: skip
PAIRS: Final = (
    *PRIMARY,
    *((name, "sp") for name, row in ROWS.items() if name not in ("sp", "lm", "bpe", "aligned") and not row.tried),
    *((name, f"sp-{name}") for name in KOKTOK if name not in ("lm", "bpe", "aligned")),
    ("lm", "sp-spaces"), ("lm", "encoder"), ("lm", "aligned"), ("bpe-before", "sp-more"),
    ("aligned", "sp-aligned"), ("sp-aligned-rate", "sp-aligned"), ("encoder", "sp-encoder-rate"),
    ("sp-encoder-rate", "sp-encoder"), ("sp-12k-rate", "sp-12k"), ("lm-12k-rate", "lm-12k"),
    ("lm-12k-rate", "lm"), ("lm-12k-rate", "sp-12k-rate"), ("lm-12k-rate", "sp-aligned-rate"), ("lm-8k", "sp-aligned-rate"),
    ("bpe-space", "bpe"), ("bpe-space", "hf"), ("superbpe", "bpe"), ("superbpe-space", "superbpe"),
    ("bpe-space", "sp-bpe"), ("superbpe-space", "sp-superbpe"),
    ("lm", "lm-before"), ("lm-more", "lm-before"), ("lm-before", "sp-before"), ("lm-more", "sp-more"),
    ("bpe", "bpe-before"), ("bpe-before", "hf"),
    ("bpe-space", "bpe-space-before"), ("bpe-space-before", "bpe-before"),
    ("lm-8k", "lm"), ("lm-64k", "lm"), ("lm-128k", "lm"),
)  # fmt: skip
"""First minus second."""


BEFORE: Final[dict[Group, float]] = {"josa": 0.77, "eomi": 0.68, "all": 0.64}
"""Targets of `lm` until it was changed by the study."""
RARE: Final = 0.3
"""Share of the price that goes with the bits of a piece, three times that of the presets."""


def before(peer: Peer, *, rarity: float = price.RARITY) -> Peer:
    """A row of the preset `lm` as it was, and where a rare piece may cost more."""

    def make(lines: Sequence[str], size: int, folder: Path) -> str:
        former = {"lm": replace(PRESETS["lm"], keep=BEFORE, at_least=True)}
        with patch.dict(PRESETS, former), patch.object(price, "RARITY", rarity):
            return peer.make(lines, size, folder)

    return replace(peer, make=make)


def peers() -> dict[str, Peer]:
    """What trains the rows, by name."""
    space: dict[str, object] = {"prefix_space": True}
    bpe = partial(koktok_peer, model="bpe-bytes")
    more = (
        before(koktok_peer("koktok lm, before", preset="lm")),
        koktok_peer("koktok lm, more", preset="lm", keep=dict(PRESETS["lm"].keep or {})),
        before(koktok_peer("koktok lm, rare dearer", preset="lm"), rarity=RARE),
        before(koktok_peer("koktok lm before, digits free", preset="lm", other={"pretokenize": {"digits": "free"}})),
        before(bpe("koktok bpe-bytes lm, before")),
        before(bpe("koktok bpe-bytes lm before, space first", other={"pretokenize": space})),
        bpe("koktok bpe-bytes lm, space first", other={"pretokenize": space}),
        bpe("koktok bpe-bytes lm, superbpe, space first", other={"pretokenize": space | {"pattern": "superbpe"}}),
    )
    return {peer.name: peer for peer in (*PEERS, *CURVE, *PLACEBOS, *more)}


def opened(row: Row, train: Callable[..., str], texts: Sequence[str], known: Mapping[str, Peer]) -> Tokenizer:
    """The tokenizer of a row; `train` takes a peer and a size, `texts` are those whose tokens are to be equal."""
    if row.equal:
        wanted = opened(ROWS[row.equal], train, texts, known)
        return at_tokens(partial(train, known[SENTENCEPIECE]), wanted, texts, MOST)
    return load(train(known[row.peer], size=row.ids))
