"""A small transformer, causal or not: rotary positions, RMS norms, SwiGLU, embeddings tied to the head; PyTorch alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from eval.study.data import Prepared
from eval.study.sizes import Size


def device() -> str:
    """The device of all models."""
    return "cuda" if torch.cuda.is_available() else "cpu"


CHUNK = 256
"""Tokens whose scores are made at once: those of all tokens of a step would be some 300 MB."""


class MeanNats(torch.autograd.Function):
    """The mean cross entropy of ids under tied scores, with its gradient made chunk by chunk in the forward pass.

    No score is kept or made twice: three matrix products, as few as there can be.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, shares: Tensor, targets: Tensor) -> Tensor:
        of_hidden, of_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        memory, total, count = hidden.new_empty(CHUNK, len(weight)), hidden.new_zeros(()), len(targets)
        for x, y, gradient in zip(hidden.split(CHUNK), targets.split(CHUNK), of_hidden.split(CHUNK), strict=True):
            scores = torch.addmm(shares, x, weight.T, out=memory[: len(x)])
            total -= scores.gather(1, y[:, None]).sum()
            most = scores.amax(1, keepdim=True)
            sums = scores.sub_(most).exp_().sum(1, keepdim=True)
            total += (most + sums.log()).sum()
            torch.mm(scores, weight, out=gradient).div_(sums).sub_(weight[y]).div_(count)
            of_weight.addmm_(scores.T, x / (sums * count)).index_add_(0, y, x, alpha=-1 / count)
        ctx.save_for_backward(of_hidden, of_weight)
        return total / count

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        of_hidden, of_weight = ctx.saved_tensors
        return of_hidden * gradient, of_weight * gradient, None, None


def nats(hidden: Tensor, weight: Tensor, shares: Tensor, targets: Tensor) -> Tensor:
    """The cross entropy of each id."""
    found = [
        functional.cross_entropy(torch.addmm(shares, x, weight.T), y, reduction="none")
        for x, y in zip(hidden.split(CHUNK), targets.split(CHUNK), strict=True)
    ]
    return torch.cat(found)


def rounded(vocabulary: int) -> int:
    """Ids in whole cache lines: matrix products of 32,001 columns take a tenth longer; those added have no probability."""
    return -(-vocabulary // 64) * 64


class Block(nn.Module):
    """Attention and SwiGLU, each behind a norm."""

    def __init__(self, size: Size, *, causal: bool) -> None:
        super().__init__()
        width = size.width
        self.head, self.causal = size.head, causal
        self.norms = nn.ModuleList([nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, width, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], seen: Tensor | None) -> Tensor:
        """Hidden states to hidden states; `turn` are cosines and sines of the positions, `seen` what may be looked at."""
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, width // self.head, self.head)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        q, k = turned(q, turn), turned(k, turn)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate(self.norms[1](x)).chunk(2, -1)
        added: Tensor = x + self.down(functional.silu(gate) * up)
        return added


def turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Each pair of coordinates (i, i + half) turned by its angle (RoPE, Su et al. 2021)."""
    cos, sin = (part.to(x.dtype) for part in turn)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Transformer(nn.Module):
    """A decoder (causal) or an encoder over ids below `vocabulary`."""

    def __init__(self, size: Size, vocabulary: int, *, causal: bool, shares: Tensor | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size.width)
        self.register_buffer("shares", shares)  # what the score of each id starts from, not trained
        self.blocks = nn.ModuleList([Block(size, causal=causal) for _ in range(size.layers)])
        self.head = size.head
        self.norm = nn.RMSNorm(size.width, eps=1e-6)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:  # what writes into the residual stream starts smaller (GPT-2)
                deep = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * size.layers) ** 0.5 if deep else 0.02)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The last hidden state of each position; behind the length of a row nothing is looked at."""
        places = torch.arange(ids.shape[1], device=ids.device)
        angles = places.float()[:, None] * 10_000.0 ** (-torch.arange(0, self.head, 2, device=ids.device) / self.head)
        turn = angles.cos(), angles.sin()
        seen = None if lengths is None else (places < lengths[:, None])[:, None, None]
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, turn, seen)
        found: Tensor = self.norm(x)
        return found

    def scores(self, hidden: Tensor) -> Tensor:
        """Scores of all ids."""
        return functional.linear(hidden, self.embedding.weight, self.shares)

    def body(self) -> int:
        """Parameters outside of the embedding."""
        return sum(weight.numel() for weight in self.parameters()) - self.embedding.weight.numel()


def begun(size: Size, data: Prepared, *, causal: bool) -> Transformer:
    """A new model over the ids of a row, and a mask for an encoder; scores start from the logarithms of the shares of the ids in the text."""
    vocabulary = data.about["vocabulary"]
    counts = np.bincount(data.lists["train"].flat, minlength=vocabulary) + 0.3
    shares = torch.full((rounded(vocabulary + (not causal)),), -math.inf)
    shares[:vocabulary] = torch.from_numpy(np.log(counts / counts.sum())).float()
    return Transformer(size, len(shares), causal=causal, shares=shares).to(device())
