"""A small Llama: rotary positions, RMS norms, SwiGLU, embeddings tied to the head; PyTorch alone, so that a bare GPU machine runs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import groupby, islice

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from eval.study.sizes import Size

WINDOWS = 16
"""Windows of held-out text that are read at once."""


def device() -> str:
    """Return the device of all models."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    """Attention and SwiGLU, each behind a norm."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.width
        self.head = size.head
        self.norms = nn.ModuleList([nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, width, bias=False)
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Hidden states to hidden states; `turn` are cosines and sines of the positions."""
        batch, length, width = x.shape
        q, k, v = (
            self.qkv(self.norms[0](x)).view(batch, length, 3, width // self.head, self.head).permute(2, 0, 3, 1, 4)
        )
        seen = functional.scaled_dot_product_attention(turned(q, turn), turned(k, turn), v, is_causal=True)
        x = x + self.dropout(self.out(seen.transpose(1, 2).reshape(batch, length, width)))
        gate, up = self.gate(self.norms[1](x)).chunk(2, -1)
        added: Tensor = x + self.dropout(self.down(functional.silu(gate) * up))
        return added


def turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Each pair of coordinates (i, i + half) turned by its angle (RoPE, Su et al. 2021)."""
    cos, sin = (part.to(x.dtype) for part in turn)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Llama(nn.Module):
    """A causal language model over ids below `vocabulary`."""

    def __init__(self, size: Size, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size.width)
        self.blocks = nn.ModuleList([Block(size) for _ in range(size.layers)])
        self.head = size.head
        self.norm = nn.RMSNorm(size.width, eps=1e-6)
        self.dropout = nn.Dropout(size.dropout)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:  # what writes into the residual stream starts smaller (GPT-2)
                deep = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * size.layers) ** 0.5 if deep else 0.02)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden state of each position."""
        places = torch.arange(ids.shape[1], device=ids.device, dtype=torch.float32)
        angles = places[:, None] * 10_000.0 ** (-torch.arange(0, self.head, 2, device=ids.device) / self.head)
        turn = angles.cos(), angles.sin()
        x = self.dropout(self.embedding(ids))
        for block in self.blocks:
            x = block(x, turn)
        found: Tensor = self.norm(x)
        return found

    def forward(self, ids: Tensor) -> Tensor:
        """Scores of all ids at each position."""
        return functional.linear(self.hidden(ids), self.embedding.weight)

    def body(self) -> int:
        """Parameters outside of the embedding."""
        return sum(weight.numel() for weight in self.parameters()) - self.embedding.weight.numel()


def token_bits(logits: Callable[[Tensor], Tensor], stream: Tensor, context: int) -> np.ndarray:
    """Return the bits of all tokens of a stream but the first, each predicted once, with half a context before it at least."""
    windows, at = [], 1
    while at < len(stream):
        start = max(0, at - context // 2)
        windows.append((start, at, min(start + context + 1, len(stream))))
        at = windows[-1][-1]
    bits = np.zeros(len(stream) - 1)
    with torch.no_grad():
        for _, alike in groupby(windows, key=lambda window: window[2] - window[0]):
            for some in _batched(alike, WINDOWS):
                ids = torch.stack([stream[start:stop] for start, _, stop in some]).to(device())
                scores = logits(ids[:, :-1]).float().flatten(0, 1)
                losses = functional.cross_entropy(scores, ids[:, 1:].flatten(), reduction="none")
                for row, (start, at, stop) in zip(losses.view(len(some), -1).double().cpu(), some, strict=True):
                    bits[at - 1 : stop - 1] = row[at - start - 1 :].numpy() / math.log(2)
    return bits


def _batched(items: Iterator[tuple[int, int, int]], size: int) -> Iterator[list[tuple[int, int, int]]]:
    """`itertools.batched` of Python 3.12."""
    while some := list(islice(items, size)):
        yield some
