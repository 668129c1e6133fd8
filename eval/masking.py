"""What masking by token, eojeol and morpheme teaches a small BERT, on Korean probes.

    python -m eval.masking TOKENIZER TEXT... --reviews FOLDER [--ner FILE] [--steps 250] [--seeds 3] [--work FOLDER]

TOKENIZER is a folder with a mask token (`koktok export TOKENIZER --to hf --style bert -o FOLDER`), TEXT what is read in
pre-training, a line a document. FOLDER is `raw/` of github.com/e9t/nsmc (reviews with ratings, of films that are not in
corpus:bench-ko: 15*.json to 29*.json), FILE klue-ner-v1.1_dev.tsv of github.com/KLUE-benchmark/KLUE.

One model for each unit and seed, of one size, one text, one number of steps, one rate of masked tokens; and one for each seed
that was not pre-trained. Each goes through the probes:

    sentiment   reviews of rating 9 and 10 against 1 to 4, balanced; fine-tuned; share that is right
    josa        a particle of one token is masked in held-out reviews, alone; of twelve particles the model takes one; share
                that is right, without fine-tuning
    NER         entities of KLUE-NER dev, four sentences in five for fine-tuning; F1 of entities with their kind (where FILE is
                given: at 2 layers of 128 and 819,200 tokens it was .05 whatever was masked, and without pre-training)

Differences are paired by seed; intervals are 95 % of Student's t over seeds, so with three of them they are wide, and say so.
Finished models are kept in the work folder, so that a run that was stopped goes on. It runs on a GPU where there is one, and
wants `pip install 'koktok[instances,train]'`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eval.machine import Told, machine
from koktok import load
from koktok.files import cache_dir, write_file
from koktok.instances import Instances, Masking, Packed, Plan, write_packed
from koktok.instances.borders import ENDING, MORPHEME, MarkedTexts
from koktok.instances.masking import IGNORED
from koktok.instances.word_cuts import WordCuts
from koktok.text.sources import Source

UNITS = ("token", "eojeol", "morpheme")
NONE = "no pre-training"
JOSA = ("은", "는", "이", "가", "을", "를", "에", "의", "도", "로", "만", "와")
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's t at .975, by the number of seeds."""


# ── probes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def reviews(folder: Path) -> list[tuple[str, int]]:
    """Reviews with 1 for those that praise and 0 for those that do not; as many of each, in a fixed order."""
    found: dict[int, dict[str, None]] = {0: {}, 1: {}}
    for path in sorted(folder.glob("*.json")):
        if not "15" <= path.name[:2] <= "29":
            continue
        for item in json.loads(path.read_text(encoding="utf-8")):
            text, rating = " ".join(item["review"].split()), int(item["rating"])
            if 10 <= len(text) <= 140 and not 4 < rating < 9:
                found[int(rating > 8)][text] = None
    n = min(map(len, found.values()))
    pairs = [(text, label) for label, texts in found.items() for text in [*texts][:n]]
    return [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))]


def entities(path: Path) -> list[tuple[str, list[str]]]:
    """Sentences with a tag a character."""
    found: list[tuple[str, list[str]]] = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line and not line.startswith("##")]
        rows = [row for row in rows if len(row) == 2 and len(row[0]) == 1]
        if rows:
            found.append(("".join(char for char, _ in rows), [tag for _, tag in rows]))
    return found


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Entities of BIO tags."""
    found, begin = set(), None
    for i, (before, tag) in enumerate(pairwise(["O", *tags, "O"])):
        if begin is not None and (not tag.startswith("I-") or tag[2:] != before[2:]):
            found.add((begin, i, before[2:]))
            begin = None
        if tag.startswith("B-") or (tag != "O" and begin is None):
            begin = i
    return found


class Probes:
    """Inputs of the probes, as ids.

    Parameters
    ----------
    tokenizer : Tokenizer
    packed : Packed
        What its special tokens are.
    given : Namespace
        The options.
    """

    def __init__(self, tokenizer: Any, packed: Packed, given: argparse.Namespace) -> None:
        roles = packed.manifest["roles"]
        self.cls, self.sep, self.pad, self.mask = (roles[f"{r}_token"] for r in ("cls", "sep", "pad", "mask"))
        rated = reviews(given.reviews)
        rows = [([self.cls, *tokenizer.encode(text).ids[:46], self.sep], label) for text, label in rated]
        self.sentiment = rows[: given.fine], rows[given.fine : given.fine + 2000]
        self.tags = ["O"]
        self.ner: list[tuple[list[int], list[int], list[tuple[int, int]], list[str]]] = []
        for text, tags in entities(given.ner) if given.ner else ():
            encoding = tokenizer.encode(text)
            self.tags += [tag for tag in dict.fromkeys(tags) if tag not in self.tags]
            # A token has the tag of its first letter, spaces apart.
            places = [end - len(text[start:end].lstrip()) for start, end in encoding.offsets][:94]
            labels = [self.tags.index(tags[min(at, len(tags) - 1)]) for at in places]
            ids = [self.cls, *encoding.ids[:94], self.sep]
            self.ner.append((ids, [IGNORED, *labels, IGNORED], encoding.offsets[:94], tags))
        names = {tokenizer.vocab.tokens[i]: i for i in range(tokenizer.vocab.size)}
        self.josa_ids = [names[josa] for josa in JOSA]
        self.josa = list(
            self._josa(tokenizer, [text for text, _ in rated[given.fine + 2000 :][: 20 * given.josa]], given.josa)
        )

    def _josa(self, tokenizer: Any, texts: list[str], most: int) -> Iterator[tuple[list[int], int, int]]:
        """Ids with one particle masked, its place, and its number."""
        numbers = {i: n for n, i in enumerate(self.josa_ids)}
        n = 0
        for _, tokens, marks in MarkedTexts(tokenizer, WordCuts.of_kiwi())(iter([texts]), threads=1):
            for begin, end in pairwise(tokens.offsets.tolist()):
                ids, mine = tokens.ids[begin:end].tolist()[:46], marks[begin:end]
                for at in range(1, len(ids) - 1):
                    alone = mine[at] & (MORPHEME | ENDING) == MORPHEME | ENDING and mine[at + 1] & MORPHEME
                    if alone and not mine[at - 1] & ENDING and ids[at] in numbers and n < most:
                        masked = [self.cls, *ids[:at], self.mask, *ids[at + 1 :], self.sep]
                        yield masked, at + 1, numbers[ids[at]]
                        n += 1
                        break  # one of a review


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def encoder(size: int, pad: int, given: argparse.Namespace) -> Any:
    import transformers

    config = transformers.BertConfig(
        vocab_size=size, hidden_size=given.width, num_hidden_layers=given.layers, num_attention_heads=given.width // 32,
        intermediate_size=4 * given.width, max_position_embeddings=given.positions, pad_token_id=pad,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertModel(config, add_pooling_layer=False)


def optimizer_of(parameters: Any, rate: float, steps: int) -> tuple[Any, Any]:
    import torch

    optimizer = torch.optim.AdamW(parameters, rate, weight_decay=0.01)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    return optimizer, schedule


def padded(rows: Sequence[Sequence[int]], fill: int) -> np.ndarray:
    found = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for row, ids in zip(found, rows, strict=True):
        row[: len(ids)] = ids
    return found


class Model:
    """A BERT and its masked head, whose rows are the embeddings."""

    def __init__(self, size: int, pad: int, seed: int, given: argparse.Namespace) -> None:
        import torch

        torch.manual_seed(seed)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.bert = encoder(size, pad, given).to(self.device)
        self.transform = torch.nn.Sequential(
            torch.nn.Linear(given.width, given.width), torch.nn.GELU(), torch.nn.LayerNorm(given.width)
        ).to(self.device)
        self.bias = torch.nn.Parameter(torch.zeros(size, device=self.device))
        self.pad, self.width = pad, given.width

    def hidden(self, ids: np.ndarray) -> Any:
        """Hidden states of rows of ids."""
        import torch

        given = torch.from_numpy(ids).to(self.device)
        return self.bert(input_ids=given, attention_mask=(given != self.pad).long()).last_hidden_state

    def logits(self, hidden: Any) -> Any:
        """Scores of all ids for hidden states."""
        return self.transform(hidden) @ self.bert.embeddings.word_embeddings.weight.T + self.bias

    def parts(self) -> list[Any]:
        """All parameters."""
        return [*self.bert.parameters(), *self.transform.parameters(), self.bias]


def pretrained(packed: Packed, unit: str, seed: int, given: argparse.Namespace) -> tuple[Model, float]:
    """A model after its steps, and the mean loss of the last tenth."""
    import torch

    roles = packed.manifest["roles"]
    model = Model(packed.manifest["vocab_size"], roles["pad_token"], seed, given)
    if unit == NONE:
        return model, math.nan
    plan = Plan("mlm", given.length, seed, Masking(unit, given.rate), across=True)  # type: ignore[arg-type]
    rows, losses = Instances(packed, plan), []
    optimizer, schedule = optimizer_of(model.parts(), given.lr, given.steps)
    at = 0
    for _ in range(given.steps):
        if at + given.batch > len(rows):
            rows.set_epoch(rows.epoch + 1)
            at = 0
        batch = [*rows.batch(range(at, at + given.batch))]
        at += given.batch
        labels = torch.from_numpy(padded([row["labels"] for row in batch], IGNORED)).to(model.device)
        chosen = labels != IGNORED
        hidden = model.hidden(padded([row["input_ids"] for row in batch], model.pad))
        loss = torch.nn.functional.cross_entropy(model.logits(hidden[chosen]), labels[chosen])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parts(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    return model, statistics.fmean(losses[-max(1, given.steps // 10) :])


def tuned(model: Model, rows: Sequence[tuple[Any, ...]], classes: int, *, whole: bool, seed: int, epochs: int) -> Any:
    """A head, and a copy of the model, that were trained together."""
    import copy

    import torch

    torch.manual_seed(seed)
    mine = copy.copy(model)
    mine.bert = copy.deepcopy(model.bert)
    head = torch.nn.Linear(model.width, classes).to(model.device)
    steps = epochs * math.ceil(len(rows) / 32)
    optimizer, schedule = optimizer_of([*mine.bert.parameters(), *head.parameters()], 5e-4, steps)
    order = np.random.default_rng(seed)
    for _ in range(epochs):
        by_length = sorted(order.permutation(len(rows)).tolist(), key=lambda i: len(rows[i][0]))
        batches = [by_length[i : i + 32] for i in range(0, len(rows), 32)]
        for k in order.permutation(len(batches)):
            some = [rows[i] for i in batches[k]]
            found = head(mine.hidden(padded([row[0] for row in some], mine.pad)))
            if whole:
                target = torch.tensor([row[1] for row in some], device=mine.device)
                loss = torch.nn.functional.cross_entropy(mean_of(found, some), target)
            else:
                target = torch.from_numpy(padded([row[1] for row in some], IGNORED)).to(mine.device)
                loss = torch.nn.functional.cross_entropy(found.flatten(0, 1), target.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    return mine, head


def mean_of(found: Any, rows: Sequence[tuple[Any, ...]]) -> Any:
    """The mean over the tokens of each row."""
    import torch

    sizes = torch.tensor([len(row[0]) for row in rows], device=found.device)
    there = torch.arange(found.shape[1], device=found.device) < sizes[:, None]
    return (found * there[..., None]).sum(1) / sizes[:, None]


def scores(model: Model, probes: Probes, seed: int, given: argparse.Namespace) -> dict[str, float]:
    import torch

    def batches(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
        return (rows[i : i + 100] for i in range(0, len(rows), 100))

    found = {}
    with torch.no_grad():
        right = 0
        for some in batches(probes.josa):
            hidden = model.hidden(padded([ids for ids, _, _ in some], model.pad))
            at = torch.tensor([at for _, at, _ in some], device=model.device)
            taken = model.logits(hidden[torch.arange(len(some)), at])[:, probes.josa_ids].argmax(-1)
            right += sum(a == n for a, (_, _, n) in zip(taken.tolist(), some, strict=True))
        found["josa"] = right / len(probes.josa)
    train, test = probes.sentiment
    mine, head = tuned(model, train, 2, whole=True, seed=seed, epochs=given.epochs)
    with torch.no_grad():
        right = 0
        for some in batches(test):
            logits = mean_of(head(mine.hidden(padded([ids for ids, _ in some], model.pad))), some)
            right += sum(a == label for a, (_, label) in zip(logits.argmax(-1).tolist(), some, strict=True))
        found["sentiment"] = right / len(test)
    if not probes.ner:
        return found
    cut = len(probes.ner) * 4 // 5
    mine, head = tuned(model, probes.ner[:cut], len(probes.tags), whole=False, seed=seed, epochs=given.epochs)
    hits = ours = theirs = 0
    with torch.no_grad():
        for some in batches(probes.ner[cut:]):
            taken = head(mine.hidden(padded([row[0] for row in some], model.pad))).argmax(-1).tolist()
            for row, (_, _, offsets, gold) in zip(taken, some, strict=True):
                tags = ["O"] * len(gold)
                for (start, end), k in zip(offsets, row[1:], strict=False):
                    name = probes.tags[k]
                    for i in range(start, end):
                        tags[i] = name if i == start or name == "O" else f"I-{name[2:]}"
                a, b = spans(tags), spans(gold)
                hits, ours, theirs = hits + len(a & b), ours + len(a), theirs + len(b)
        found["NER"] = 2 * hits / max(1, ours + theirs)
    return found


# ── the run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def interval(values: Sequence[float]) -> str:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.3f}"
    half = STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.3f} ± {half:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text", nargs="+", type=Path)
    parser.add_argument("--reviews", type=Path, required=True)
    parser.add_argument("--ner", type=Path)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.15)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--positions", type=int, default=128, help="the longest that the model can read")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--epochs", type=int, default=2, help="of fine-tuning")
    parser.add_argument("--fine", type=int, default=4000, help="reviews for fine-tuning")
    parser.add_argument("--josa", type=int, default=2000, help="particles that are asked for")
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval" / "masking")
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    tokenizer = load(given.tokenizer)
    sources = [Source.of(path, name=path.name) for path in given.text]
    packed = write_packed(tokenizer, sources, given.work / "packed", documents="lines", threads=1)
    probes = Probes(tokenizer, packed, given)
    options = {key: value for key, value in vars(given).items() if isinstance(value, int | float)}
    options |= {"packed": packed.digest(), "probes": [len(probes.josa), len(probes.sentiment[1]), len(probes.ner)]}
    rows: dict[str, list[dict[str, float]]] = {}
    losses: dict[str, list[float]] = {}
    for seed in range(given.seeds):
        for unit in (*UNITS, NONE):
            kept = given.work / f"{unit.replace(' ', '-')}-{seed}.json"
            run = {"unit": unit, "seed": seed, **{key: value for key, value in options.items() if key != "seeds"}}
            if not kept.exists() or (done := json.loads(kept.read_text()))["run"] != run:
                begun = time.process_time()
                model, loss = pretrained(packed, unit, seed, given)
                done = {"run": run, "loss": loss, "scores": scores(model, probes, seed, given)}
                write_file(kept, json.dumps(done).encode())
                seconds = time.process_time() - begun
                print(f"{unit}, seed {seed}: {done['scores']}, loss {loss:.3f}, {seconds:.0f} s", file=sys.stderr)
            rows.setdefault(unit, []).append(done["scores"])
            losses.setdefault(unit, []).append(done["loss"])
    told = Told(given.report)
    told(f"{machine()}, torch; {os.environ.get('OMP_NUM_THREADS', 'all')} thread(s)\n")
    told(
        f"{packed.manifest['n_tokens']:,} tokens of text, {given.steps * given.batch * given.length:,} read by each model; "
    )
    told(f"{given.layers} layers of {given.width}, {given.seeds} seeds; {len(probes.josa):,} particles and ")
    names = [*rows["token"][0]]
    asked = f"{len(probes.sentiment[1]):,} reviews"
    asked += f" and {len(probes.ner) - len(probes.ner) * 4 // 5:,} sentences" if probes.ner else ""
    told(f"{asked} are asked for; loss is that of the last tenth of the steps, on what the unit masked")
    commonest = max(Counter(number for _, _, number in probes.josa).values()) / len(probes.josa)
    told(f"whoever takes the commonest particle every time is right in {commonest:.3f}\n")
    told(f"| masked by | loss | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for unit, found in rows.items():
        loss = interval(losses[unit]) if unit != NONE else "–"
        told(f"| {unit} | {loss} | {' | '.join(interval([one[name] for one in found]) for name in names)} |")
    told(f"\n| against tokens, by seed | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for unit in (*UNITS[1:], NONE):
        pairs = list(zip(rows[unit], rows["token"], strict=True))
        told(f"| {unit} | {' | '.join(interval([a[name] - b[name] for a, b in pairs]) for name in names)} |")


if __name__ == "__main__":
    main()
