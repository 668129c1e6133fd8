"""X1, bits per character: a small causal language model, trained on the ids of koktok and of SentencePiece.

    python -m eval.language_model TEXT... [--size 8000] [--characters 3000000] [--seeds 1] [--json FILE]

TEXT are files, folders or globs of plain text. One block of 50 lines in twenty is held out by hash. Every tokenizer is
trained on the other lines, at one vocabulary size, and so is a Llama of `--layers` and `--width` from transformers, from
nothing. A line and an end-of-sequence token is a document; the end counts as a character, as it does in the text.

    bits per character = sum of -log2 p(token) / characters, over the same held-out text in NFC for every tokenizer

Losses per token cannot be compared across tokenizers; bits per character can (segmentations besides the one that the
tokenizer gives are left out, so each figure is an upper bound). Two protocols:

    equal text     every model reads the same `--characters` once; a tokenizer with fewer tokens takes fewer steps
    equal compute  every model takes the steps that SentencePiece takes for that text: with one vocabulary size, context
                   and batch, a step is the same number of floating-point operations for all; text is read again from its
                   start where it is short, and the table says how often it was read

The road is the one that users take: the saved folder in `AutoTokenizer`, a map over a `datasets.Dataset`, the collator of
transformers, PyTorch. It runs on a GPU where there is one. It needs `pip install 'koktok[train]'`.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.machine import machine

if TYPE_CHECKING:
    import torch

Encode = Callable[[list[str]], list[list[int]]]

BLOCK = 50
WINDOWS = 16  # of held-out text at a time
KOKTOK, SUPERWORDS, SENTENCEPIECE = "koktok balanced", "koktok balanced, superwords", "SentencePiece unigram"


@dataclass(frozen=True)
class Ids:
    """A tokenizer, as a training sees it."""

    name: str
    encode: Encode
    size: int
    end: int
    collator: Any


@dataclass
class Row:
    """One model."""

    tokenizer: str
    protocol: str
    seed: int
    steps: int
    tokens: int
    characters: int
    epochs: float
    tokens_per_character: float
    bits_per_character: float
    seconds: float


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(paths: list[str], share: float, most: int) -> tuple[list[str], list[str]]:
    """Lines for training, and lines held out, at most so many characters of them; all in NFC."""
    from koktok.text.normalize import Normalizer
    from koktok.text.sources import Source, held_block, read_lines

    normalize = Normalizer()
    kept: list[str] = []
    held: list[str] = []
    for path in paths:
        lines = (normalize(line) for line in read_lines(Source.of(path)))
        for i, line in enumerate(lines):
            if line.strip():
                (held if held_block(i // BLOCK, share, Path(path).name) else kept).append(line)
    seen = set(kept)
    held = [line for line in dict.fromkeys(held) if line not in seen]
    random.Random(0).shuffle(held)  # a part of every file, not the first file alone
    return kept, held[: cut_at(held, most)]


def cut_at(lines: Sequence[str], characters: int) -> int:
    """How many lines it takes for so many characters, the ends of lines counted."""
    for i, line in enumerate(lines):
        characters -= len(line) + 1
        if characters <= 0:
            return i + 1
    return len(lines)


# ── tokenizers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def koktok(name: str, lines: list[str], size: int, folder: Path, **train: Any) -> Ids:
    """Trained, saved, and loaded by transformers like any other tokenizer."""
    from transformers import AutoTokenizer, DataCollatorForLanguageModeling

    from koktok import Recipe
    from koktok.pipeline import road

    recipe = Recipe().changed(train={"vocab_size": size, **train}, holdout=0.0)
    made = road.train(lines, recipe).tokenizer.save(folder / name.replace(" ", "-").replace(",", ""))
    auto = AutoTokenizer.from_pretrained(str(made))

    def encode(texts: list[str]) -> list[list[int]]:
        found: list[list[int]] = auto(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return found

    return Ids(name, encode, len(auto), auto.eos_token_id, DataCollatorForLanguageModeling(auto, mlm=False))


def sentencepiece(name: str, lines: list[str], size: int) -> Ids:
    """SentencePiece with its own defaults, but for what would change the text: NFKC, single spaces, and <unk> for bytes."""
    import sentencepiece as spm
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=name.split()[-1],
        vocab_size=size,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        byte_fallback=True,
        max_sentence_length=1 << 20,
        num_threads=2,
        pad_id=3,
        minloglevel=2,
    )
    processor = spm.SentencePieceProcessor(model_proto=model.getvalue())
    # The collator pads, and asks a tokenizer for nothing else.
    rows = {processor.id_to_piece(i): i for i in range(size)}
    pads = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(rows, unk_token="<unk>")), pad_token="<pad>"
    )
    collator = DataCollatorForLanguageModeling(pads, mlm=False)
    return Ids(name, lambda texts: processor.encode(texts), size, processor.eos_id(), collator)


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def blocks_of(lines: list[str], ids: Ids, context: int) -> Any:
    """Lines to a `datasets.Dataset` of blocks of one length, by two batched maps; the rest of a batch is carried on."""
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    rest: list[int] = []

    def tokenize(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        return {"input_ids": [[*row, ids.end] for row in ids.encode(batch["text"])]}

    def group(batch: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        flat = [*rest, *(i for row in batch["input_ids"] for i in row)]
        whole = len(flat) - len(flat) % context
        rest[:] = flat[whole:]
        return {"input_ids": [flat[at : at + context] for at in range(0, whole, context)]}

    text = Dataset.from_dict({"text": lines})
    options = {"batched": True, "load_from_cache_file": False, "keep_in_memory": True}
    return text.map(tokenize, remove_columns=["text"], **options).map(group, **options)


def batches(blocks: Any, ids: Ids, size: int, steps: int) -> Iterator[dict[str, torch.Tensor]]:
    """So many batches, from the start again where there are too few."""
    from torch.utils.data import DataLoader

    done = 0
    while done < steps:
        for batch in DataLoader(blocks, batch_size=size, collate_fn=ids.collator, drop_last=True):
            if done == steps:
                return
            done += 1
            yield batch


def train(blocks: Any, ids: Ids, steps: int, given: argparse.Namespace, seed: int) -> Any:
    """A Llama from nothing, AdamW, warm-up and cosine."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=ids.size,
        hidden_size=given.width,
        intermediate_size=4 * given.width,
        num_hidden_layers=given.layers,
        num_attention_heads=max(1, given.width // 64),
        max_position_embeddings=given.context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=ids.end,
        pad_token_id=None,
    )
    model: Any = LlamaForCausalLM(config).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.rate, betas=(0.9, 0.95), weight_decay=0.1)
    warm = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: (
            (step + 1) / warm if step < warm else 0.55 + 0.45 * math.cos(math.pi * (step - warm) / max(1, steps - warm))
        ),
    )
    model.train()
    for batch in batches(blocks, ids, given.batch, steps):
        loss = model(**{key: value.to(device()) for key, value in batch.items()}).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return model


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def bits(model: Any, rows: list[list[int]], end: int, context: int) -> float:
    """Bits of all tokens of a text, from half a context at least wherever there is so much before."""
    import torch

    stream = torch.tensor([end, *(i for row in rows for i in (*row, end))])  # the text begins behind an end
    model.eval()
    return float(token_bits(lambda ids: model(ids).logits, stream, context).sum())


def token_bits(logits: Callable[[torch.Tensor], torch.Tensor], stream: torch.Tensor, context: int) -> Any:
    """Bits of all tokens of a stream but the first, each predicted once; an array of doubles."""
    import numpy as np
    import torch

    windows, at = [], 1
    while at < len(stream):
        start = max(0, at - context // 2)
        windows.append((start, at, min(start + context + 1, len(stream))))
        at = windows[-1][-1]
    found = np.zeros(len(stream) - 1)
    with torch.no_grad():
        for _, alike in groupby(windows, key=lambda window: window[2] - window[0]):
            for some in batched(alike, WINDOWS):
                ids = torch.stack([stream[start:stop] for start, _, stop in some]).to(device())
                scores = logits(ids[:, :-1]).float().flatten(0, 1)
                losses = torch.nn.functional.cross_entropy(scores, ids[:, 1:].flatten(), reduction="none")
                for row, (start, at, stop) in zip(losses.view(len(some), -1).double().cpu(), some, strict=True):
                    found[at - 1 : stop - 1] = row[at - start - 1 :].numpy() / math.log(2)
    return found


def batched(items: Iterator[tuple[int, int, int]], size: int) -> Iterator[list[tuple[int, int, int]]]:
    """So many at a time; itertools has it from Python 3.12 on."""
    while some := list(islice(items, size)):
        yield some


def measured(
    ids: Ids, protocol: str, lines: list[str], held: list[str], steps: int | None, given: argparse.Namespace, seed: int
) -> Row:
    """One training and its bits; without `steps`, as many as it takes to read all the lines once."""
    begun = time.perf_counter()
    blocks = blocks_of(lines, ids, given.context)
    once = len(blocks) // given.batch
    steps = once if steps is None else steps
    model = train(blocks, ids, steps, given, seed)
    rows = ids.encode(held)
    characters = sum(len(line) + 1 for line in held)
    read_once = sum(len(line) + 1 for line in lines)
    epochs = steps / max(1, once)
    row = Row(
        ids.name,
        protocol,
        seed,
        steps,
        steps * given.batch * given.context,
        round(read_once * epochs),
        epochs,
        sum(len(row) + 1 for row in rows) / characters,
        bits(model, rows, ids.end, given.context) / characters,
        time.perf_counter() - begun,
    )
    print(f"{protocol}, seed {seed}, {ids.name}: {row.bits_per_character:.4f} bits", file=sys.stderr, flush=True)
    return row


# ── surface ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def table(rows: list[Row]) -> Iterator[str]:
    yield "| protocol | tokenizer | steps | characters read | times | tokens/character | bits/character | s |"
    yield "|---|---|---|---|---|---|---|---|"
    for key in dict.fromkeys((row.protocol, row.tokenizer) for row in rows):
        same = [row for row in rows if (row.protocol, row.tokenizer) == key]
        found = [row.bits_per_character for row in same]
        spread = f" ± {statistics.stdev(found):.4f}" if len(found) > 1 else ""
        first = same[0]
        yield (
            f"| {key[0]} | {key[1]} | {first.steps:,} | {first.characters:,} | {first.epochs:.2f} "
            f"| {first.tokens_per_character:.4f} | {statistics.mean(found):.4f}{spread} "
            f"| {statistics.mean(row.seconds for row in same):.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="+", help="files, folders or globs of plain text")
    parser.add_argument("--size", type=int, default=8_000, help="vocabulary size of every tokenizer")
    parser.add_argument("--superwords", type=float, default=0.125, help="share of pieces that may cross spaces")
    parser.add_argument("--characters", type=int, default=1_500_000, help="text of the protocol `equal text`")
    parser.add_argument("--held", type=int, default=150_000, help="characters held out, at most")
    parser.add_argument("--share", type=float, default=0.05, help="share of the blocks held out")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--with-bpe", action="store_true", help="SentencePiece BPE as a fourth tokenizer")
    parser.add_argument("--json", type=Path, help="write every row here, too")
    given = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

    lines, held = read(given.text, given.share, given.held)
    if not held:
        parser.error(f"no block of {BLOCK} lines was held out of so short a text: --share {2 * given.share:g}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        spm = sentencepiece(SENTENCEPIECE, lines, given.size)
        others = [
            koktok(KOKTOK, lines, given.size, place),
            koktok(SUPERWORDS, lines, given.size, place, superwords=given.superwords),
        ]
    if given.with_bpe:
        others.append(sentencepiece("SentencePiece bpe", lines, given.size))
    print(f"{machine()}; torch {version('torch')}, transformers {version('transformers')}, on {device()}")
    print(
        f"{given.layers} layers, width {given.width}, context {given.context}, batch {given.batch}, vocabulary "
        f"{given.size:,}; held out {sum(len(line) + 1 for line in held):,} characters\n",
        flush=True,
    )
    rows: list[Row] = []
    for seed in range(given.seeds):
        order = lines.copy()
        random.Random(seed).shuffle(order)
        text = order[: cut_at(order, given.characters)]
        first = measured(spm, "equal text", text, held, None, given, seed)
        rows += [first, Row(**{**asdict(first), "protocol": "equal compute"})]
        for ids in others:
            rows.append(measured(ids, "equal text", text, held, None, given, seed))
            rows.append(
                measured(ids, "equal compute", order[: reach(ids, order, first)], held, first.steps, given, seed)
            )
        if given.json:
            given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    rows.sort(key=lambda row: row.protocol, reverse=True)
    print("\n".join(table(rows)))


def reach(ids: Ids, lines: list[str], first: Row) -> int:
    """How many lines hold the tokens that so many steps read, all of them where that is not enough."""
    wanted = first.tokens
    for at in range(0, len(lines), 1000):
        wanted -= sum(len(row) + 1 for row in ids.encode(lines[at : at + 1000]))
        if wanted <= 0:
            return min(at + 1000, len(lines))
    return len(lines)


if __name__ == "__main__":
    main()
