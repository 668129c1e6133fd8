"""`cuts:FILE`: the cuts of any program (a chunker, a byte model) as offsets in a file, measured like those of a tokenizer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from koktok.errors import InputError
from koktok.files import MOST_TEXT, read_bounded
from koktok.model.note import Note
from koktok.runtimes.references.trivial import OpenVocabulary

Spans = list[tuple[int, int]]


def open_cuts(spec: str, path: Path) -> OpenVocabulary:
    r"""Read lines of JSON with `text` and `cuts` (offsets between tokens) or `spans` (start and end of each token).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "cuts.jsonl"
    ...     _ = file.write_text('{"text": "집에 간다", "cuts": [1, 2, 4]}\n', encoding="utf-8")
    ...     open_cuts("cuts:file", file).encode_lines(["집에 간다"]).spans.tolist()
    [[0, 1], [1, 2], [2, 4], [4, 5]]
    """
    known: dict[str, Spans] = {}
    try:
        raw = read_bounded(path, MOST_TEXT, "lines of JSON")
        for number, line in enumerate(raw.decode("utf-8-sig").splitlines(), start=1):
            if line.strip():
                try:
                    text, spans = _spans_of(json.loads(line))
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise InputError(
                        f'`{path}`, line {number}: expected {{"text": …, "cuts": [offset, …]}} or "spans": [[start, end], …], '
                        f"got {line[:60]!r} ({type(error).__name__}: {error})"
                    ) from error
                known[text] = spans
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file of cuts `{path}` cannot be read: {error}") from error

    def cut(lines: Sequence[str]) -> list[Spans]:
        missing = next((line for line in lines if line not in known), None)
        if missing is not None:
            raise InputError(
                f"`{path}` has no cuts for the text {missing[:60]!r}",
                hint="cut every line that is measured, in NFC; `koktok segment --labels` shows the format",
            )
        return [known[line] for line in lines]

    digest = hashlib.sha256(raw).hexdigest()[:16]
    tokenizer = OpenVocabulary(
        spec, path.name.split(".")[0], cut, digest=digest, notes=[Note("cuts from a file", "파일에서 읽은 나눈 자리")]
    )
    tokenizer.any_text = False
    return tokenizer


def _spans_of(row: Any) -> tuple[str, Spans]:
    text = row["text"]
    if not isinstance(text, str):
        raise TypeError("expected a string as `text`")
    pairs = row["spans"] if "spans" in row else pairwise([0, *row["cuts"], len(text)])
    spans = [(int(start), int(end)) for start, end in pairs]
    places = [0, *(place for span in spans for place in span), len(text)]
    if places != sorted(places) or any(start == end for start, end in spans):
        raise ValueError("expected ascending offsets inside the text")
    return text, spans
