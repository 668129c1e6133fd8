"""New rows of an extended model, made in four ways: bits per byte while it is trained on.

    python -m eval.extend_init DATA [--size 6000] [--add 1024] [--first-mb 3] [--mb 0.8] [--seeds 3] [--work FOLDER] [--report FILE]

DATA is a folder with `text/`, or `corpus:bench-ko`. A byte-level BPE of `--size` ids is trained on English (documentation of
installed packages) with a tenth of Korean, and a small GPT-2 of transformers (`--layers`, `--width`, input and output apart) on
`--first-mb` of it. Then the vocabulary gets `--add` Korean pieces by `koktok extend`, the model their rows by each method, and
every model reads the same `--mb` of Korean once; so does the model that was not extended. Held out are other Korean lines, of
whole bytes the same for all:

    bits per byte = sum of -log2 p(token) / bytes of UTF-8

Seeds differ in the order of the text and in what is drawn; `random` rows are drawn as GPT-2's own are, N(0, .02). Intervals are 95 %
of Student's t over the seeds, of the difference to `mean` with the same seed. It runs on a GPU where there is one; runs that are
finished are kept in `--work`, so that one that was stopped goes on. A model of this size says which start is better, not what an
extension brings to a large one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import statistics
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from eval.machine import Told, machine
from eval.texts import data_of, split
from koktok.count.counting import read
from koktok.extend.base_text import prepare
from koktok.extend.base_tokenizer import base_of, holds_hangul, runner_of
from koktok.extend.embeddings import weights_of
from koktok.extend.extension_files import definition_of, extended
from koktok.extend.learn import LearnOptions, learn
from koktok.files import cache_dir, write_file
from koktok.formats.published import VOCABULARIES
from koktok.segment.cache import CachedSegmenter
from koktok.segment.kiwi import KiwiSegmenter
from koktok.vocab import BYTE_CHARS

METHODS = ("mean", "eeve", "weighted", "random")
POINTS = (0.0, 0.1, 0.25, 0.5, 1.0)
CONTEXT, BATCH = 128, 8
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}
"""Two-sided quantiles of Student's t by degrees of freedom."""


def english(megabytes: float) -> list[str]:
    """Lines of documentation of installed packages, without Hangul."""
    found, size = [], 0.0
    for file in chain.from_iterable(
        sorted(Path(np.__file__).parent.parent.glob(name)) for name in ("*/*.md", "*/*.rst", "*/*.txt", "*/licenses/*")
    ):
        if file.suffix not in (".md", ".rst", ".txt") or not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8", errors="ignore")[:100_000].splitlines():
            if len(line.split()) > 5 and not holds_hangul(line.encode()):
                found.append(line)
                size += len(line.encode()) + 1
        if size > megabytes * 1e6:
            break
    return found


def cut(lines: Sequence[str], megabytes: float) -> list[str]:
    """The first lines, up to so many bytes."""
    sizes = np.cumsum([len(line.encode()) + 1 for line in lines])
    return list(lines[: int(np.searchsorted(sizes, megabytes * 1e6))])


def base_definition(lines: list[str], size: int) -> dict[str, Any]:
    """tokenizer.json of a byte-level BPE as Llama 3's, of the lines."""
    import tokenizers
    from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.BPE())
    pattern = VOCABULARIES["llama3"].regex.replace("++", "+").replace("?+", "?").replace("*+", "*")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=size, initial_alphabet=list(BYTE_CHARS), show_progress=False)
    )
    found: dict[str, Any] = json.loads(made.to_str())
    return found


class Model:
    """A small GPT-2 and how it is trained."""

    def __init__(self, rows: int, width: int, layers: int, seed: int) -> None:
        import torch
        import transformers

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(seed)
        config = transformers.GPT2Config(
            vocab_size=rows,
            n_positions=CONTEXT,
            n_embd=width,
            n_layer=layers,
            n_head=4,
            tie_word_embeddings=False,
            bos_token_id=0,
            eos_token_id=0,
        )
        self.net = transformers.GPT2LMHeadModel(config).to(self.device)

    def blocks(self, runner: Any, lines: Sequence[str]) -> Any:
        """Ids of the lines in rows of the context."""
        import torch

        flat = [i for row in runner.encode_batch_fast([line + "\n" for line in lines]) for i in row.ids]
        n = len(flat) // CONTEXT
        return torch.tensor(flat[: n * CONTEXT]).reshape(n, CONTEXT).to(self.device)

    def train(self, blocks: Any, rate: float, between: Any = None) -> None:
        """One pass, constant rate after a warm-up; `between` is asked before each step."""
        import torch

        optimizer = torch.optim.AdamW(self.net.parameters(), lr=rate, weight_decay=0.01)
        self.net.train()
        steps = len(blocks) // BATCH
        for step in range(steps):
            if between is not None:
                between(step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, (step + 1) / 20)
            batch = blocks[step * BATCH : (step + 1) * BATCH]
            loss = self.net(input_ids=batch, labels=batch).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            optimizer.step()

    def bits(self, runner: Any, lines: Sequence[str]) -> float:
        """Bits per byte; each line alone, begun with a line feed, cut at the context."""
        import torch

        rows = runner.encode_batch_fast(["\n" + line + "\n" for line in lines])
        total, size = 0.0, 0
        self.net.eval()
        with torch.no_grad():
            for first in range(0, len(rows), 16):
                ids = [row.ids for row in rows[first : first + 16]]
                longest = max(map(len, ids))
                batch = torch.tensor([row + [0] * (longest - len(row)) for row in ids]).to(self.device)
                logits = self.net(input_ids=batch).logits[:, :-1]
                loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:], reduction="none")
                for k, row in enumerate(ids):
                    total += float(loss[k, : len(row) - 1].sum())
        self.net.train()
        size = sum(len(line.encode()) + 1 for line in lines)
        return total / math.log(2) / size


def with_rows(old: Model, told: dict[str, Any], method: str, rows: int, given: argparse.Namespace, seed: int) -> Model:
    """The model with rows for new ids."""
    import torch

    new = Model(rows, given.width, given.layers, seed)
    state = old.net.state_dict()
    weights = weights_of(told, "mean" if method == "random" else method)
    for name, one in zip(("transformer.wte.weight", "lm_head.weight"), weights, strict=True):
        matrix = state[name].cpu().numpy()
        drawn = np.random.default_rng(seed).normal(0, 0.02, (rows - len(matrix), matrix.shape[1]))
        made = drawn if method == "random" else one.of(matrix, 0, len(told["pieces"]))
        if method == "weighted" and name.startswith("transformer"):
            norm = np.median(np.linalg.norm(matrix[told["base"]["hangul"]], axis=1))
            made = made * (norm / np.linalg.norm(made, axis=1, keepdims=True))
        state[name] = torch.tensor(np.concatenate([matrix, made]).astype(np.float32))
    new.net.load_state_dict(state)
    return new


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval.extend_init", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--size", type=int, default=6000)
    parser.add_argument("--add", type=int, default=1024)
    parser.add_argument("--first-mb", type=float, default=3.0)
    parser.add_argument("--mb", type=float, default=0.8)
    parser.add_argument("--held-kb", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval" / "extend_init")
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    import torch

    told = Told(given.report)
    named = {name: value for name, value in vars(given).items() if name not in ("work", "report", "seeds")}
    work = given.work / hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]
    work.mkdir(parents=True, exist_ok=True)

    train, by_file = split(data_of(given.data) / "text")
    chance = random.Random(16)
    chance.shuffle(train)
    held = [
        line
        for some in by_file.values()
        for line in some
        if 20 < len(line.encode()) < 300 and holds_hangul(line.encode())
    ]
    chance.shuffle(held)
    held = cut(held, given.held_kb / 1000)
    korean, first_korean = cut(train, given.mb), cut(train[::-1], given.first_mb / 10)
    first = [*cut(english(given.first_mb), given.first_mb * 0.9), *first_korean]
    chance.shuffle(first)

    definition = base_definition(first, given.size)
    base = base_of("tiny", {"tokenizer.json": json.dumps(definition)})
    text = prepare(base, read(train, holdout=0.0), CachedSegmenter(KiwiSegmenter(threads=1)))
    learnt = learn(base, text, LearnOptions(given.add))
    extension = extended(base, learnt, given.add)
    extended_runner = runner_of(definition_of(extension))
    strings = base.strings
    pieces = [
        {"id": i, "base": list(piece.ids), "lengths": [max(1, len(strings[k])) / 3 for k in piece.ids]}
        for piece, i in zip(extension.pieces, extension.ids, strict=True)
    ]
    table = {"base": {"hangul": [i for i, string in enumerate(strings) if holds_hangul(string)]}, "pieces": pieces}

    model = Model(base.size, given.width, given.layers, 0)
    kept = work / "first.pt"
    if not kept.is_file():
        model.train(model.blocks(base.runner, first), given.rate)
        torch.save(model.net.state_dict(), kept)
    model.net.load_state_dict(torch.load(kept))

    found: dict[str, list[list[float]]] = {}
    for seed in range(given.seeds):
        order = korean[:]
        random.Random(seed).shuffle(order)
        for method in (*METHODS, "not extended"):
            file = work / f"{method.replace(' ', '-')}-{seed}.json"
            if not file.is_file():
                if method == "not extended":
                    run, runner = Model(base.size, given.width, given.layers, seed), base.runner
                    run.net.load_state_dict(model.net.state_dict())
                else:
                    run, runner = with_rows(model, table, method, extension.size, given, seed), extended_runner
                curve: list[float] = []

                def between(done: float, run: Model = run, runner: Any = runner, curve: list[float] = curve) -> None:
                    if len(curve) < len(POINTS) - 1 and done >= POINTS[len(curve)]:
                        curve.append(run.bits(runner, held))

                run.train(run.blocks(runner, order), given.rate / 2, between)
                curve.append(run.bits(runner, held))
                write_file(file, json.dumps(curve).encode())
            found.setdefault(method, []).append(json.loads(file.read_text()))

    told(f"{machine()}; torch {torch.__version__}, {model.device}\n")
    tokens = [
        sum(map(len, (row.ids for row in runner.encode_batch_fast(held)))) for runner in (base.runner, extended_runner)
    ]
    told(
        f"{sum(p.numel() for p in model.net.parameters()):,} parameters, {base.size:,} ids and {given.add:,} more; trained on "
        f"{given.first_mb:g} MB first and {given.mb:g} MB of Korean then; held out {sum(len(line.encode()) + 1 for line in held):,} "
        f"bytes, {tokens[0]:,} tokens before and {tokens[1]:,} after\n"
    )
    told(
        f"| rows | {' | '.join(f'{point:.0%} read' for point in POINTS)} | to `mean` at the end |\n|---|{'---|' * (len(POINTS) + 1)}"
    )
    for method, curves in found.items():
        cells = [f"{statistics.mean(column):.3f}" for column in zip(*curves, strict=True)]
        beside = [a[-1] - b[-1] for a, b in zip(curves, found["mean"], strict=True)]
        wide = T95[len(beside) - 1] * statistics.stdev(beside) / math.sqrt(len(beside)) if len(beside) > 1 else math.nan
        last = "" if method == "mean" else f"{statistics.mean(beside):+.3f} ± {wide:.3f}"
        told(f"| {method} | {' | '.join(cells)} | {last} |")


if __name__ == "__main__":
    main()
