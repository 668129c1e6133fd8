"""Second endpoints: minimal pairs, linear probes, prompts that end inside an eojeol, continuations that are no UTF-8."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from eval.study.data import Prepared
from eval.study.model import Llama, device
from eval.study.sizes import HOW, Cell
from eval.study.train import Runs
from koktok.files import write_file

BATCH = 64
NEXT = 4
"""Tokens that a greedy continuation gets: a character of three byte pieces, and one more."""
SAMPLED = 32
"""Tokens of a sampled continuation, for a quarter of the prompts."""

Row = list[int]


class Asked:
    """A trained model, and the questions."""

    def __init__(self, model: Llama, data: Prepared) -> None:
        self.model, self.data = model.eval(), data

    def rows(self, name: str) -> list[Row]:
        """Ids behind the end of a line."""
        return [[self.data.end, *ids.tolist()] for ids in self.data.ids[name]]

    def batches(self, rows: Sequence[Row]) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
        """Numbers of rows, their ids padded on the right, which a causal model does not see, and their lengths."""
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for at in range(0, len(order), BATCH):
            some = order[at : at + BATCH]
            lengths = torch.tensor([len(rows[i]) for i in some], device=device())
            ids = torch.full((len(some), int(lengths.max())), self.data.end, device=device())
            for k, i in enumerate(some):
                ids[k, : len(rows[i])] = torch.tensor(rows[i], device=device())
            yield some, ids, lengths

    def nats(self, rows: Sequence[Row]) -> np.ndarray:
        """Nats of each row behind its first id."""
        found = np.zeros(len(rows))
        for some, ids, lengths in self.batches(rows):
            losses = functional.cross_entropy(
                self.model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none"
            ).view(len(some), -1)
            there = torch.arange(1, ids.shape[1], device=device()) < lengths[:, None]
            found[some] = (losses * there).sum(1).double().cpu().numpy()
        return found

    def means(self, rows: Sequence[Row]) -> torch.Tensor:
        """The mean hidden state of each row."""
        found = torch.zeros(len(rows), self.model.embedding.embedding_dim, dtype=torch.float64)
        for some, ids, lengths in self.batches(rows):
            there = (torch.arange(ids.shape[1], device=device()) < lengths[:, None])[..., None]
            found[some] = ((self.model.hidden(ids) * there).sum(1) / lengths[:, None]).double().cpu()
        return found

    def continued(self, rows: Sequence[Row], count: int, generator: torch.Generator | None = None) -> list[bytes]:
        """What the model writes behind each row: the likeliest, or drawn where there is a generator."""
        rows = [row.copy() for row in rows]
        starts = [len(row) for row in rows]
        for _ in range(count):
            for some, ids, lengths in self.batches(rows):
                last = self.model.hidden(ids)[torch.arange(len(some), device=device()), lengths - 1]
                scores = functional.linear(last, self.model.embedding.weight).float().cpu()
                drawn = (
                    torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]
                    if generator
                    else scores.argmax(-1)
                )
                for i, token in zip(some, drawn.tolist(), strict=True):
                    rows[i].append(token)
        written = [text.encode("latin-1") for text in self.data.about["written"]]
        return [b"".join(written[i] for i in row[start:]) for row, start in zip(rows, starts, strict=True)]

    def answers(self) -> dict[str, float]:
        """The share that is right, of every probe."""
        found = {}
        answers = self.data.shared["answers"]
        for kind in ("josa", "eomi"):
            right, wrong = (self.nats(self.rows(f"{kind}-{which}")) for which in ("right", "wrong"))
            if len(right):
                found[kind] = float((right < wrong).mean())
        for kind in (kind for kind in answers if kind != "prompts"):
            train = self.means(self.rows(f"{kind}-train"))
            labels = torch.tensor(answers[kind])
            taken = classifier(train, labels[: len(train)])
            for how in HOW:
                asked = self.means(self.rows(f"{kind}-{how}"))
                found[f"{kind}, {how}"] = float((taken(asked) == labels[len(train) :]).double().mean())
        prompts = self.rows("prompts")
        if prompts:
            written = [text.decode("utf-8", "ignore")[:1] for text in self.continued(prompts, NEXT)]
            found["inside an eojeol"] = float(
                np.mean([a == b for a, b in zip(written, answers["prompts"], strict=True)])
            )
            drawn = self.continued(prompts[: max(1, len(prompts) // 4)], SAMPLED, torch.Generator().manual_seed(0))
            found["UTF-8"] = float(np.mean([valid(text) for text in drawn]))
        return found


def valid(text: bytes) -> bool:
    """Whether bytes are UTF-8, an incomplete last character apart.

    Examples
    --------
    >>> valid("가나".encode()[:-1]), valid("가나".encode()[1:])
    (True, False)
    """
    try:
        codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return False
    return True


def classifier(features: torch.Tensor, labels: torch.Tensor) -> Any:
    """Logistic regression on standardized features, L2 of .001 a weight and text; a function from features to classes."""
    middle, spread = features.mean(0), features.std(0) + 1e-9
    weights = torch.zeros(features.shape[1] + 1, int(labels.max()) + 1, dtype=torch.float64, requires_grad=True)

    def scores(x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = (x - middle) / spread @ weights[1:] + weights[0]
        return found

    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        found = functional.cross_entropy(scores(features), labels) + 1e-3 * weights[1:].square().sum()
        found.backward()
        return found

    optimizer.step(loss)
    return lambda x: scores(x).detach().argmax(-1)


def probe(runs: Runs, names: Sequence[str], seeds: Sequence[int]) -> None:
    """All models of equal bytes that are there and were not asked yet."""
    for name in names:
        for cell in (cell for seed in seeds for cell in there(runs, name, seed)):
            path = runs.place(cell) / "probes.json"
            if path.exists():
                continue
            data = runs.prepared(name)
            model = Llama(runs.size, data.about["vocabulary"]).to(device())
            model.load_state_dict(torch.load(runs.place(cell) / "model.pt", map_location=device(), weights_only=True))
            found = Asked(model.requires_grad_(requires_grad=False), data).answers()
            write_file(path, json.dumps(found).encode())
            print(f"{cell.key}: {found}", file=sys.stderr, flush=True)


def there(runs: Runs, name: str, seed: int) -> list[Cell]:
    """The finished model of equal bytes, where there is one."""
    try:
        cells = [cell for cell in runs.cells(name, seed) if cell.arm == "bytes" and not cell.again]
    except FileNotFoundError:
        return []
    return [cell for cell in cells if "bits" in (runs.done(cell) or {})]
