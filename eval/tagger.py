"""How many entities a linear tagger finds over the tokens of each vocabulary, by the number of labelled sentences; PLAN.md, part 1.

    python -m eval.tagger corpus:bench-ko [--seeds 20] [--rows REGEX] [--out eval/reports/DATE-tagger.json] [--page docs/benchmark.md]

A file for each row and seed is kept in the work folder, so that a run that was stopped goes on. `--page` writes the tables into a page, between
the lines `<!-- eval.tagger -->` and `<!-- end of eval.tagger -->`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from eval.contrasts import Counts, Scored, contrasts, plain, scored, with_interval
from eval.machine import write_between
from eval.peers import PEERS, digest_of, train_peer
from eval.placebo import PLACEBOS
from eval.texts import data_of, split
from koktok.corpora.fetch import fetch
from koktok.files import cache_dir, write_file
from koktok.hangul import is_syllable
from koktok.metrics.gold.spans import SpanCorpus, read_spans
from koktok.metrics.spans import SpanPage, span_table
from koktok.model.tokens import Ints
from koktok.protocol.tokenizer import Tokenizer
from koktok.recipe import TrainRecipe
from koktok.report.markdown import table
from koktok.tokenizer.open import load

FORMULA: Final = 1
"""Raised where a figure changes: a kept seed is one of this number."""
SIZE: Final = 32_000
FOLDS: Final = 5
PASSES: Final = 6
SHARES: Final = (1, 3, 10, 30, 100)
"""Percent of the labelled sentences of a seed's folds."""
REVIEWS: Final = 5_000
BUCKETS: Final = 1 << 20
"""Of the hashed features; some half a million of a row are distinct."""
LABELS: Final = 13
"""Outside, and the beginning and the inside of six types: 1 + 2 t, 2 + 2 t."""
WIDTH: Final = 16
"""Labels in memory: 64 bytes, a cache line, for each feature."""
LEAST: Final = 0.01
"""*More* is said from one point on."""

_WRITTEN: Final = (
    "으로부터 에서부터 이라는 이라고 에서는 에서도 에게는 으로는 으로서 으로써 까지는 부터는 에게서 라는 라고 께서 "
    "에게 에서 한테 으로 로서 로써 하고 이랑 부터 까지 마저 조차 밖에 보다 처럼 만큼 마다 이나 이란 이며 이다 에는 에도 "
    "로는 과의 와의 과는 와는 은 는 이 가 을 를 의 도 만 에 께 로 와 과 랑 나 란 며"
)
PARTICLES: Final = tuple(sorted(_WRITTEN.split(), key=len, reverse=True))
"""Particles and forms of the copula, the longest first, as a list of those that strip them has them."""

SENTENCEPIECE: Final = "SentencePiece Unigram, defaults"
ALIGNED: Final = "koktok aligned"
AT_EQUAL_TOKENS: Final = "SentencePiece Unigram at aligned's tokens"
MOVED, AT_RANDOM = (placebo.name for placebo in PLACEBOS)
ROWS: Final = (
    SENTENCEPIECE,
    "SentencePiece Unigram, spaces only",
    AT_EQUAL_TOKENS,
    "SentencePiece BPE, defaults",
    "HF byte-level BPE",
    f"koktok {TrainRecipe().preset}",
    "koktok encoder",
    ALIGNED,
    MOVED,
    AT_RANDOM,
    "syllables",
    "kiwi",
)
PRIMARY: Final = tuple((ALIGNED, other) for other in (SENTENCEPIECE, AT_EQUAL_TOKENS, MOVED))
PAIRS: Final = (*PRIMARY, (ALIGNED, AT_RANDOM), (MOVED, SENTENCEPIECE), (AT_RANDOM, SENTENCEPIECE))
TASKS: Final = ("entities", "stripped", "control")
ALL_LABELS: Final = "entities, 100 %"


# ── features ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Examples:
    """Texts as rows of hashed features at places, each with a label: tokens of a sentence, or one place for a whole review."""

    features: npt.NDArray[np.int32]
    first: Ints  # where the features of each place begin, and where the last ones end
    texts: Ints  # where the places of each text begin, and where the last ones end
    labels: npt.NDArray[np.int8]
    pairs: int
    """So many features of a place are also joined with the label before."""


def hashed(template: int, *columns: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Buckets of a template's values."""
    with np.errstate(over="ignore"):
        state = np.uint64(template + 1) * np.uint64(0xD1B54A32D192ED03)
        for column in columns:
            state = (state ^ np.asarray(column).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            state ^= state >> np.uint64(29)
    return (np.asarray(state >> np.uint64(17)) % np.uint64(BUCKETS)).astype(np.int32)


@dataclass(frozen=True)
class Sentences:
    """Sentences with entities, as a tokenizer cuts them: flat arrays of their tokens."""

    corpus: SpanCorpus
    ids: Ints
    texts: Ints  # where the tokens of each sentence begin, and where the last ones end
    labels: npt.NDArray[np.int8]
    starts: Ints  # of the tokens, in their sentence
    ends: Ints

    @classmethod
    def of(cls, corpus: SpanCorpus, tokenizer: Tokenizer) -> Sentences:
        """Cut and labelled; tokens of white space alone are left out."""
        types = types_of(corpus)
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        labels: list[int] = []
        texts = [0]
        rows = tokenizer.encode_lines(corpus.texts).lines()
        for text, spans, given, row in zip(corpus.texts, corpus.spans, corpus.labels, rows, strict=True):
            owner = {at: k for k, span in enumerate(spans) for at in range(*span)}
            last = -1
            for i, (start, end) in zip(row.ids.tolist(), row.spans.tolist(), strict=True):
                token = text[start:end]
                bare = token.strip()
                if not bare:
                    continue
                start += len(token) - len(token.lstrip())
                end = start + len(bare)
                entity = next((owner[at] for at in range(start, end) if at in owner), -1)
                label = 0 if entity < 0 else 1 + 2 * types.index(given[entity]) + (entity == last)
                last = entity
                ids.append(i)
                starts.append(start)
                ends.append(end)
                labels.append(label)
            texts.append(len(ids))
        flat = (np.array(column, dtype=np.int64) for column in (ids, texts, labels, starts, ends))
        ids_of, texts_of, labels_of, starts_of, ends_of = flat
        return cls(corpus, ids_of, texts_of, labels_of.astype(np.int8), starts_of, ends_of)

    @cached_property
    def types(self) -> list[str]:
        """The types of entities, in the order of their labels."""
        return types_of(self.corpus)

    @property
    def examples(self) -> Examples:
        """Ten features a token; beside the ends of its sentence stands nothing."""
        line = np.repeat(np.arange(len(self.texts) - 1), np.diff(self.texts))
        edges = np.array(list(map(self._edges, line.tolist(), self.starts, self.ends)), np.int64).reshape(-1, 4)
        opening, closing, word, kind = edges.T

        def near(column: Ints, by: int) -> Ints:
            at = np.arange(len(column)) + by
            there = (at >= 0) & (at < len(column))
            there[there] = line[at[there]] == line[there]
            return np.where(there, column[np.clip(at, 0, len(column) - 1)] + 1, 0)

        before, here, behind = near(self.ids, -1), near(self.ids, 0), near(self.ids, 1)
        templates = (
            (here,), (behind,), (before,), (near(self.ids, -2),), (near(self.ids, 2),), (before, here), (here, behind),
            (closing, word), (opening, word), (kind, near(kind, 1), near(word, 1)),
        )  # fmt: skip
        features = np.stack([hashed(k, *columns) for k, columns in enumerate(templates)], axis=1)
        first = np.arange(len(self.ids) + 1) * len(templates)
        return Examples(features.ravel(), first, self.texts, self.labels, pairs=2)

    def _edges(self, line: int, start: int, end: int) -> tuple[int, int, int, int]:
        """First and last character of a token, whether it begins a word, and its kind of characters."""
        text = self.corpus.texts[line]
        token = text[start:end]
        word = start == 0 or text[start - 1].isspace()
        return ord(token[0]), ord(token[-1]), word, token.isdigit() + 2 * token.isalpha() + 4 * is_syllable(token[0])

    def spans(self, text: int, labels: npt.NDArray[np.int8]) -> Iterator[tuple[int, int, str]]:
        """The entities that the labels of a text say."""
        at, found = int(self.texts[text]), labels.tolist()
        k = 0
        while k < len(found):
            begun = k
            k += 1
            if found[begun] % 2:
                while k < len(found) and found[k] == found[begun] + 1:
                    k += 1
                yield int(self.starts[at + begun]), int(self.ends[at + k - 1]), self.types[found[begun] // 2]

    def judged(self, text: int, labels: npt.NDArray[np.int8]) -> tuple[int, int, int]:
        """Entities that are right, right with a particle taken off, and all."""
        written = self.corpus.texts[text]
        gold = {(*span, kind) for span, kind in zip(self.corpus.spans[text], self.corpus.labels[text], strict=True)}
        found = [*self.spans(text, labels)]
        stripped = {(start, without_particle(written, start, end), kind) for start, end, kind in found}
        return len(gold.intersection(found)), len(gold & stripped), len(found)


def types_of(corpus: SpanCorpus) -> list[str]:
    """The types of the entities of a corpus."""
    return sorted({label for labels in corpus.labels for label in labels})


def without_particle(text: str, start: int, end: int) -> int:
    """Where a span ends without its particle: where no syllable follows, and two characters stay.

    Examples
    --------
    >>> [without_particle(text, 0, 4) for text in ("서울에서 간다", "서울에서도", "서울역 앞")]
    [2, 4, 4]
    """
    if end < len(text) and is_syllable(text[end]):
        return end
    span = text[start:end]
    return end - next((len(p) for p in PARTICLES if span.endswith(p) and len(span) >= len(p) + 2), 0)


def reviews() -> tuple[list[str], list[int]]:
    """Reviews of `reviews-ko` with 0 for ratings 1 to 4 and 1 for 9 and 10, as many of each."""
    found: tuple[dict[str, None], dict[str, None]] = {}, {}
    for path in sorted(fetch("reviews-ko").glob("*.json")):
        items = json.loads(path.read_text(encoding="utf-8"))
        for item in items if isinstance(items, list) else ():  # fetched.json is none of them
            text, rating = " ".join(item["review"].split()), int(item["rating"])
            if 10 <= len(text) <= 140 and not 4 < rating < 9:
                found[rating > 8][text] = None
    chosen = [(text, label) for label, texts in enumerate(found) for text in [*texts][: REVIEWS // 2]]
    return [text for text, _ in chosen], [label for _, label in chosen]


def polarity(texts: Sequence[str], labels: Sequence[int], tokenizer: Tokenizer) -> Examples:
    """Each review as one place with the unigrams and bigrams of its tokens."""
    rows = [hashed(20, ids) for ids in tokenizer.encode_lines(list(texts))]
    both = [np.concatenate([row, hashed(21, row[:-1], row[1:])]) for row in rows]
    first = np.concatenate([[0], np.cumsum([len(row) for row in both])])
    return Examples(np.concatenate(both), first, np.arange(len(texts) + 1), np.array(labels, dtype=np.int8), pairs=0)


# ── the perceptron ────────────────────────────────────────────────────────────────────────────────────────────────────


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _passed(features, first, texts, labels, pairs, order, weights, sums, step, learn, out):
    """One pass over the texts of `order`: learn from them, or label them with the averages; the number of the next step.

    `sums` hold every change times its step, so that the average of the weights is weights - sums / steps.
    """
    scores = np.zeros(LABELS)
    used = np.zeros(np.diff(first).max() + pairs, np.int64)
    for text in order:
        last = 0
        for place in range(texts[text], texts[text + 1]):
            n = first[place + 1] - first[place]
            for k in range(n):
                used[k] = features[first[place] + k]
            for k in range(pairs):
                used[n + k] = (used[k] * 31 + (last + 1) * 7919 + k) & (BUCKETS - 1)
            n += pairs
            scores[:] = 0
            for k in range(n):
                if learn:
                    for label in range(LABELS):
                        scores[label] += weights[used[k], label]
                else:
                    for label in range(LABELS):
                        scores[label] += weights[used[k], label] - sums[used[k], label] / step
            best = 0
            for label in range(1, LABELS):
                follows = label % 2 == 1 or last == label or last == label - 1
                if follows and scores[label] > scores[best]:
                    best = label
            if not learn:
                out[place] = best
                last = best
                continue
            right = labels[place]
            if best != right:
                for k in range(n):
                    weights[used[k], right] += 1
                    weights[used[k], best] -= 1
                    sums[used[k], right] += step
                    sums[used[k], best] -= step
            step += 1
            last = right
    return step


def labelled(examples: Examples, train: Ints, test: Ints, seed: int) -> npt.NDArray[np.int8]:
    """Learn from some texts and label others; labels of all places, of which those of `test` count."""
    given = (examples.features, examples.first, examples.texts, examples.labels, examples.pairs)
    weights, sums = np.zeros((BUCKETS, WIDTH), np.float32), np.zeros((BUCKETS, WIDTH), np.float64)
    out = np.zeros(len(examples.labels), np.int8)
    rng, step = np.random.default_rng(seed), 1
    for _ in range(PASSES):
        step = _passed(*given, rng.permutation(train), weights, sums, step, True, out)
    _passed(*given, test, weights, sums, step, False, out)
    return out


def folds(count: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """What is learnt from, in the order in which parts take it, and what is asked, of each fold."""
    rng = np.random.default_rng(seed)
    parts = np.array_split(rng.permutation(count), FOLDS)
    for k, test in enumerate(parts):
        yield rng.permutation(np.concatenate(parts[:k] + parts[k + 1 :])), test


def judged(sentences: Sentences, control: Examples, seed: int) -> dict[str, Any]:
    """Of every share of labels: entities right, right without particles and found in each sentence; which reviews were right."""
    texts, examples = sentences.texts, sentences.examples
    found: dict[str, Any] = {"entities": {}, "control": {}}
    for share in SHARES:
        counts = np.zeros((len(texts) - 1, 3), np.int64)
        for train, test in folds(len(texts) - 1, seed):
            out = labelled(examples, train[: len(train) * share // 100], test, seed)
            for k in test.tolist():
                counts[k] = sentences.judged(k, out[texts[k] : texts[k + 1]])
        right = np.zeros(len(control.labels), np.int64)
        for train, test in folds(len(control.labels), seed):
            out = labelled(control, train[: len(train) * share // 100], test, seed)
            right[test] = out[test] == control.labels[test]
        found["entities"][str(share)] = counts.T.tolist()
        found["control"][str(share)] = right.tolist()
    return found


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tokens_of(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Tokens per eojeol."""
    return len(tokenizer.encode_lines(texts).ids) / sum(len(text.split()) for text in texts)


def at_tokens(train: Callable[..., str], like: Tokenizer, texts: Sequence[str], most: int) -> Tokenizer:
    """What `train` makes of the fewest thousands of ids that give at most the tokens of another tokenizer."""
    wanted, low, high = tokens_of(like, texts), 4, most // 1000
    while low < high:
        middle = (low + high) // 2
        fits = tokens_of(load(train(size=1000 * middle)), texts) <= wanted
        low, high = (low, middle) if fits else (middle + 1, high)
    return load(train(size=1000 * low))


class Experiment:
    """The data, and the rows on it, which are kept in the work folder."""

    def __init__(self, data: Path, work: Path) -> None:
        self.work = work
        self.corpus = read_spans(data / "gold" / "klue-ner-v1.1_dev.tsv")
        self.reviews = reviews()
        self.lines, _ = split(data / "text")
        self.peers = {peer.name: peer for peer in (*PEERS, *PLACEBOS)}
        constants = (FORMULA, PASSES, FOLDS, SHARES, PARTICLES, digest_of(self.reviews[0]), self.corpus.digest)
        self.key = digest_of([repr(constants)])

    def opened(self, name: str) -> Tokenizer:
        """The tokenizer of a row, trained where it is not in the work folder."""
        if name == AT_EQUAL_TOKENS:
            train = partial(train_peer, self.peers[SENTENCEPIECE], self.lines, work=self.work)
            return at_tokens(train, self.opened(ALIGNED), self.corpus.texts, SIZE)
        return load(train_peer(self.peers[name], self.lines, SIZE, self.work) if name in self.peers else name)

    def row(self, name: str, seeds: int, threads: int) -> dict[str, Any]:
        """What a row is, and the counts of its seeds by task: arrays of right, found and marked of shape (seeds, texts)."""
        tokenizer = self.opened(name)
        place = self.work / "tagger" / digest_of([name, tokenizer.digest(), repr(tokenizer.libraries), self.key])
        if missing := [seed for seed in range(seeds) if not (place / f"{seed}.json").exists()]:
            sentences, control = Sentences.of(self.corpus, tokenizer), polarity(*self.reviews, tokenizer)

            def run(seed: int) -> None:
                write_file(place / f"{seed}.json", json.dumps(judged(sentences, control, seed)).encode())
                print(f"{name}, seed {seed}", file=sys.stderr, flush=True)

            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, missing))
        kept = [json.loads((place / f"{seed}.json").read_text(encoding="utf-8")) for seed in range(seeds)]
        marked = np.array(list(map(len, self.corpus.spans)))
        counts: dict[str, Counts] = {}
        for share in SHARES:
            right, stripped, found = np.swapaxes([seed["entities"][str(share)] for seed in kept], 0, 1)
            answers = np.array([seed["control"][str(share)] for seed in kept])
            counts[f"entities, {share} %"] = right, found, marked
            counts[f"stripped, {share} %"] = stripped, found, marked
            counts[f"control, {share} %"] = answers, np.ones_like(answers), np.ones_like(answers[0])
        spans = span_table(tokenizer, SpanPage(self.corpus)).sums()
        row = {
            "name": name,
            "ids": tokenizer.size,
            "digest": tokenizer.digest(),
            "tokens": tokens_of(tokenizer, self.corpus.texts),
        }
        return row | {"expressed": float(spans["expressed"] / spans["spans"]), "counts": counts}


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def figures(rows: Sequence[Mapping[str, Any]], corpus: SpanCorpus) -> dict[str, Any]:
    """Scores of all rows by task and number of labels, and the contrasts of the plan."""
    scores = scored({row["name"]: row["counts"] for row in rows})
    spacing = np.diff(np.log(SHARES))
    weights = np.convolve(spacing, [0.5, 0.5]) / spacing.sum()  # the area under the curve
    for of_row in scores.values():
        for task in TASKS:
            of_row[f"{task}, mean"] = Scored.mean([of_row[f"{task}, {share} %"] for share in SHARES], weights.tolist())
    return {
        "corpus": {"digest": corpus.digest, "sentences": len(corpus.texts), "entities": corpus.n_spans},
        "learnt_from": len(corpus.texts) - len(corpus.texts) // FOLDS,
        "seeds": len(scores[rows[0]["name"]][ALL_LABELS].seeds),
        "rows": [
            {name: value for name, value in row.items() if name != "counts"}
            | {"scores": {task: plain(one.minus()) for task, one in scores[row["name"]].items()}}
            | {"by_seed": scores[row["name"]][ALL_LABELS].seeds.round(5).tolist()}
            for row in rows
        ],
        "contrasts": contrasts(scores, PAIRS, [(*pair, ALL_LABELS) for pair in PRIMARY]),
    }


def page(report: Mapping[str, Any]) -> str:
    """The tables and the sentence of the plan."""
    n, found = report["learnt_from"], report["contrasts"]
    heads = [
        "tokens of",
        "ids",
        "tokens",
        "spans",
        *(f"{n * share // 100:,}" for share in SHARES),
        "stripped",
        "control",
    ]
    shown = [f"entities, {share} %" for share in SHARES] + [f"{task}, 100 %" for task in TASKS[1:]]
    cells = [
        [row["name"], f"{row['ids']:,}" if row["ids"] else "", f"{row['tokens']:.3f}", f"{row['expressed']:.3f}"]
        + [f"{row['scores'][task]['value']:.3f} ± {row['scores'][task]['high'] - row['scores'][task]['value']:.3f}" for task in shown]
        for row in report["rows"]
    ]  # fmt: skip
    columns = (ALL_LABELS, *shown[-2:], "entities, mean")
    differences = [
        [pair, *(with_interval(tasks[task]) for task in columns), f"{p:.1g}" if (p := tasks[ALL_LABELS].get("holm")) else ""]
        for pair, tasks in found.items()
    ]  # fmt: skip
    lines = [
        f"F1 of entities (± half of a 95 % interval) by the number of labelled sentences: KLUE-NER dev, {report['corpus']['sentences']:,} "
        f"sentences, {report['corpus']['entities']:,} entities, {FOLDS} folds, {report['seeds']} seeds. Tokens: per eojeol of these "
        "sentences; spans: the share of the entities that tokens can express; stripped: with all labels, and one particle of a list taken "
        "off each end; control: accuracy of the polarity of film reviews, in which there are no spans.",
        table(heads, "l" + "r" * (len(heads) - 1), cells),
        "Differences in points [95 %], with all labels and as the mean over the logarithm of the numbers of labels; p by Holm of the three "
        "contrasts of the plan.",
        table(["", "entities", "stripped", "control", "entities, mean", "p"], "lrrrrr", differences),
    ]
    primary = {other: found.get(f"{ALIGNED} − {other}") for _, other in PRIMARY}
    moved = found.get(f"{MOVED} − {SENTENCEPIECE}")
    if moved and all(primary.values()):
        gain = primary[SENTENCEPIECE]
        lines.append(
            f"From {n:,} labelled sentences a tagger over `aligned` finds "
            f"{with_interval(gain[ALL_LABELS], 'points more entities than over SentencePiece')}; if particles are stripped with a "
            f"word list first, the gain is {with_interval(gain['stripped, 100 %'], 'points')}. "
            f"With cuts moved by one syllable it is {with_interval(moved[ALL_LABELS])}."
        )
        more = [
            other
            for other, tasks in primary.items()
            if tasks[ALL_LABELS]["low"] > LEAST and tasks[ALL_LABELS]["holm"] < 0.05
        ]
        lines.append(
            f"*More* by the plan (more than a point, p below .05): than {'; '.join(more) or 'none of the three'}."
        )
    return re.sub(r"(?<![\d.])0\.(?=\d)", ".", "\n\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", default="", help="regular expression for names of rows")
    parser.add_argument("--threads", type=int, default=2, help="seeds at once, 200 MB each")
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval", help="where vocabularies and seeds are kept")
    parser.add_argument("--out", type=Path, help="a JSON file")
    parser.add_argument("--page", type=Path, help="a page to write the tables into")
    given = parser.parse_args()
    experiment = Experiment(given.data, given.work)
    names = [name for name in dict.fromkeys(ROWS) if re.search(given.rows, name)]
    report = figures([experiment.row(name, given.seeds, given.threads) for name in names], experiment.corpus)
    print(page(report))
    if given.out:
        write_file(given.out, (json.dumps(report, ensure_ascii=False, indent=1) + "\n").encode())
    if given.page:
        write_between(given.page, "eval.tagger", page(report))


if __name__ == "__main__":
    main()
