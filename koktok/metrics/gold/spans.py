"""Texts with spans that people marked, entities or answers: KLUE-NER and SQuAD files (KorQuAD)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koktok.errors import InputError
from koktok.files import MOST_TEXT, read_bounded
from koktok.text.normalize import normalized


@dataclass(frozen=True)
class SpanCorpus:
    """Texts (NFC), of each the spans as (start, end) in code points with their types, and the number of its document."""

    name: str
    texts: list[str]
    spans: list[list[tuple[int, int]]]
    documents: list[int]
    digest: str = ""
    skipped: int = 0
    """Texts that are not NFC, and left out."""
    labels: list[list[str]] = field(default_factory=list)
    """The type of each span; answers have the type ''."""

    @property
    def n_spans(self) -> int:
        """Number of spans."""
        return sum(map(len, self.spans))


def read_spans(path: str | Path) -> SpanCorpus:
    r"""Read a file of KLUE-NER (lines of character TAB tag) or of SQuAD's JSON.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ner.tsv"
    ...     _ = file.write_text("경\tB-OG\n찰\tI-OG\n은\tO\n\n", encoding="utf-8")
    ...     corpus = read_spans(file)
    >>> corpus.texts, corpus.spans, corpus.labels
    (['경찰은'], [[(0, 2)]], [['OG']])
    """
    path = Path(path)
    raw = read_bounded(path, MOST_TEXT, "a file of spans")
    try:
        text = raw.decode("utf-8-sig")
        read = [*(_squad(json.loads(text)) if text.lstrip().startswith("{") else _klue_ner(text))]
    except UnicodeDecodeError as error:
        raise InputError(f"the file of spans `{path}` cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"expected SQuAD's JSON or lines of character TAB tag, got `{path}`: {type(error).__name__}: {error}"
        ) from error
    rows = [row for row in read if row[0] == normalized("NFC", row[0])]
    if not any(spans for _, spans, _ in rows):
        raise InputError(f"the file of spans `{path}` holds no span", hint="KLUE-NER, or SQuAD's JSON with answers")
    return SpanCorpus(
        path.stem,
        texts=[text for text, _, _ in rows],
        spans=[[(start, end) for start, end, _ in spans] for _, spans, _ in rows],
        documents=[document for _, _, document in rows],
        digest=hashlib.sha256(raw).hexdigest()[:16],
        skipped=len(read) - len(rows),
        labels=[[label for _, _, label in spans] for _, spans, _ in rows],
    )


_Marked = tuple[str, list[tuple[int, int, str]], int]
"""A text, its spans with their types, the number of its document."""


def _klue_ner(text: str) -> Iterator[_Marked]:
    """Sentences; each is a document of its own kind, so all have the same number."""
    chars: list[str] = []
    tags: list[str] = []
    for line in [*text.split("\n"), ""]:
        char, tab, tag = line.rstrip("\r").partition("\t")
        if tab and len(char) == 1:
            chars.append(char)
            tags.append(tag)
        elif not line.strip():
            if chars:
                starts = [i for i, tag in enumerate(tags) if tag.startswith("B-")]
                yield "".join(chars), [(i, _end(tags, i), tags[i].removeprefix("B-")) for i in starts], 0
            chars, tags = [], []
        elif not line.startswith("##"):
            raise ValueError(f"the line {line[:40]!r}")


def _end(tags: list[str], start: int) -> int:
    return next((i for i in range(start + 1, len(tags)) if not tags[i].startswith("I-")), len(tags))


def _squad(content: Any) -> Iterator[_Marked]:
    """Paragraphs of articles, with the first answer to each question."""
    for number, article in enumerate(content["data"]):
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            if not isinstance(text, str):
                raise TypeError(f"expected text as context, got {type(text).__name__}")
            text.encode()  # raises for a lone surrogate
            spans: list[tuple[int, int, str]] = []
            for question in paragraph["qas"]:
                if question["answers"]:
                    answer = question["answers"][0]
                    start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
                    if text[start:end] != answer["text"]:
                        raise ValueError(f"the answer {answer['text'][:40]!r} is not at {start}")
                    spans.append((start, end, ""))
            yield text, spans, number
