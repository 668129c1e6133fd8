"""Everything that wants a tokenizer, done once: a training machine finds flat arrays, and needs numpy and PyTorch alone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from eval.kneser_ney import unknown_bits
from eval.peers import PEERS, Peer, digest_of, koktok_peer, train_peer
from eval.placebo import PLACEBOS
from eval.study.data import Lists, write_arrays
from eval.study.sizes import EQUAL, PARAGRAPH, ROWS, Size
from eval.tagger import SENTENCEPIECE, Sentences, at_tokens
from eval.texts import data_of, parts, runs, size_of
from koktok.files import write_file
from koktok.metrics import Text
from koktok.metrics.gold.spans import SpanCorpus, read_spans
from koktok.protocol.tokenizer import Tokenizer
from koktok.recipe import TrainRecipe
from koktok.tokenizer.open import load

PIECE: Final = 2_000
"""Bytes of neighbouring lines that stay together when the order of training text is drawn."""


def peers() -> dict[str, Peer]:
    """The rows of the plan by name; those of `EQUAL` are trained like `sp-unigram` with other sizes."""
    known = {peer.name: peer for peer in (*PEERS, *PLACEBOS)}
    return {
        "sp-unigram": known[SENTENCEPIECE],
        "koktok-default": known[f"koktok {TrainRecipe().preset}"],
        "koktok-aligned": known["koktok aligned"],
        "koktok-across": known["koktok lm, superwords"],
        "koktok-encoder": koktok_peer("koktok encoder, bert", preset="encoder", other={"special": {"style": "bert"}}),
        "koktok-moved": known[PLACEBOS[0].name],
    }


def pieces(train: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Neighbouring lines of a source, so many bytes or more."""
    for lines in train.values():
        yield from runs(lines, PIECE)


def held_out(held: Mapping[str, Sequence[str]], most: int) -> tuple[Text, list[str]]:
    """From the front of each source what is asked, from its end half as much that chooses rates."""
    test, dev = {}, []
    for name, lines in held.items():
        share = min(most // max(1, len(held)), sum(map(size_of, lines)) // 2)
        test[name] = lines[: _fitting(lines, share)]
        rest = lines[len(test[name]) :][::-1]
        dev += rest[: _fitting(rest, share // 2)]
    return Text.of({name: lines for name, lines in test.items() if lines}), dev


def _fitting(lines: Sequence[str], most: int) -> int:
    return int(np.searchsorted(np.cumsum([size_of(line) for line in lines]), most, side="right"))


@dataclass(frozen=True)
class Questions:
    """Questions on the beginnings of paragraphs, with the span of the answer and the number of the article."""

    corpus: SpanCorpus  # a text and a span for each question
    questions: list[str]

    @classmethod
    def read(cls, path: Path, most: int | None) -> Questions:
        """Those of KorQuAD whose answer lies in what is asked of its paragraph."""
        texts, spans, articles, questions = [], [], [], []
        for article, content in enumerate(json.loads(path.read_text(encoding="utf-8"))["data"]):
            for paragraph in content["paragraphs"]:
                for asked in paragraph["qas"]:
                    answer = asked["answers"][0]
                    start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
                    if end <= PARAGRAPH:
                        texts.append(paragraph["context"][:PARAGRAPH])
                        spans.append([(start, end)])
                        articles.append(article)
                        questions.append(asked["question"])
        some = slice(most)
        labels = [[""] for _ in texts[some]]
        return cls(SpanCorpus(path.stem, texts[some], spans[some], articles[some], labels=labels), questions[some])


def tasks_of(size: Size, data: Path) -> tuple[SpanCorpus, Questions]:
    """The sentences with entities and the questions, as many as the size takes."""
    found = read_spans(data / "gold" / "klue-ner-v1.1_dev.tsv")
    some = slice(size.tuned)
    entities = SpanCorpus(
        found.name, found.texts[some], found.spans[some], found.documents[some], labels=found.labels[some]
    )
    return entities, Questions.read(data / "gold" / "KorQuAD_v1.0_dev.json", size.tuned)


def prepare(size: Size, work: Path, given: str, rows: str) -> None:
    """Write `data/`: what all rows share, and a folder for each."""
    data = data_of(given)
    train, held = parts(data / "text", size.cap)
    lines = [line for part in train.values() for line in part]
    test, dev = held_out(held, size.held)
    entities, questions = tasks_of(size, data)
    cut = list(pieces(train))
    shared = {
        "data": str(data),
        "text": digest_of(lines),
        "units": test.blocks.tolist(),
        "test_bytes": [size_of(line) for line in test.lines],
        "train_bytes": sum(size_of(line) for piece in cut for line in piece),
        "articles": questions.corpus.documents,
        "tuned_bytes": {
            "entities": sum(map(size_of, entities.texts)),
            "answers": sum(map(size_of, [*questions.corpus.texts, *questions.questions])),
        },
    }
    write_file(work / "data" / "shared.json", json.dumps(shared, ensure_ascii=False).encode())
    train_row = partial(train_peer, lines=lines, work=work)
    for name in dict.fromkeys(name for kind in size.kinds for name in ROWS[kind] if re.search(rows, name)):
        if name in EQUAL:
            wanted = load(train_row(peers()[EQUAL[name]], size=size.ids))
            subject = at_tokens(partial(train_row, peers()["sp-unigram"]), wanted, test.lines, size.ids)
        else:
            subject = load(train_row(peers()[name], size=size.ids))
        pack(work / "data" / name, subject, cut, test.lines, dev, Sentences.of(entities, subject), questions)
        print(f"{name}: {subject.size:,} ids", file=sys.stderr, flush=True)


def pack(
    place: Path,
    subject: Tokenizer,
    cut: Sequence[Sequence[str]],
    test: Sequence[str],
    dev: Sequence[str],
    entities: Sentences,
    questions: Questions,
) -> None:
    """The ids of all texts for one tokenizer, and what is to be known of it; a line and a question have an end."""
    end = int(subject.size or 0)

    def ended(lines: Sequence[str]) -> list[list[int]]:
        return [[*row, end] for row in map(np.ndarray.tolist, subject.encode_ids(list(lines)))]

    rows = iter(ended([line for piece in cut for line in piece]))
    train = Lists.of([[i for _ in piece for i in next(rows)] for piece in cut])
    answers = Sentences.of(questions.corpus, subject)
    arrays = {"train": train, "test": Lists.of(ended(test)), "dev": Lists.of(ended(dev))}
    arrays["questions"] = Lists.of(ended(questions.questions))
    for task, cuts in (("entities", entities), ("answers", answers)):
        for column in ("ids", "labels", "starts", "ends"):
            arrays[f"{task}-{column}"] = Lists(getattr(cuts, column).astype(np.uint16), cuts.texts)
    about = {
        "digest": subject.digest(),
        "vocabulary": end + 1,
        "bytes_per_token": sum(size_of(line) for piece in cut for line in piece) / len(train.flat),
        "tokens": len(subject.encode_lines(list(test)).ids) / sum(len(line.split()) for line in test),
        "unknown_bits": unknown_bits(subject, subject.encode_lines(list(test))).tolist(),
    }
    write_arrays(place / "ids.npz", arrays)
    write_file(place / "about.json", json.dumps(about).encode())
