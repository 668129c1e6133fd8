"""The typed and versioned content of a report, from which every rendering is made.

`Report` and its JSON. The same inputs give the same bytes on the same day; seconds are not in it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from koktok.errors import ArtifactError
from koktok.files import Product
from koktok.metrics import Measure, Scores

FORMAT: Final = "koktok-report"
VERSION: Final = 5


def is_report(path: Path) -> bool:
    """Whether a file is JSON of koktok's report, by its first bytes."""
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(64)


FOLDER = Product("report.sha256", "report", guest=True)
"""The files of a report in a folder, which may hold others."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TextInfo(_Frozen):
    """A text that was measured on; `name` is its domain."""

    name: str
    lines: int
    eojeols: int
    characters: int
    bytes: int
    digest: str


class GoldInfo(_Frozen):
    """A file of gold morphemes; `standing` is human or silver.

    `syllables_f1` is what one token per syllable scores, `reachable_recall` what no token of whole syllables can exceed;
    `resampled` are the units of the intervals (`9 documents`), `kinds` the number of boundaries of each kind.
    """

    name: str
    standing: str
    sentences: int
    words: int
    skipped: int
    digest: str
    coverage: float = 1.0
    syllables_f1: float = 0.0
    reachable_recall: float = 1.0
    resampled: str = ""
    kinds: dict[str, int] = {}


class SpanInfo(_Frozen):
    """A file of marked spans; `skipped` texts are not NFC."""

    name: str
    texts: int
    spans: int
    skipped: int
    digest: str
    resampled: str = ""


class Sentence(_Frozen):
    """A text, its gold cuts (None where there are none), and the tokens of each row, by number, as spans.

    `unjudged` are places where a cut is neither right nor wrong: beside anything but a Hangul syllable, and at the edges of
    syllables that hold a border.
    """

    text: str
    gold: list[int] | None = None
    unjudged: list[int] = []
    standing: str = ""
    tokens: dict[int, list[tuple[int, int]]] = {}


class Report(_Frozen):
    """Everything that the Markdown and the page show; `beside` are English and code, `made` is a date.

    Examples
    --------
    >>> report = Report(title="t", seed=0, resamples=0, libraries={}, measures=[], texts=[], golds=[], rows=[])
    >>> Report.from_json(report.to_json()) == report
    True
    """

    format: Literal["koktok-report"] = FORMAT
    version: int = VERSION
    title: str
    command: str = ""
    made: str = ""
    seed: int
    resamples: int
    libraries: dict[str, str]
    measures: list[Measure]
    texts: list[TextInfo]
    golds: list[GoldInfo]
    spans: list[SpanInfo] = []
    beside: list[TextInfo] = []
    rows: list[Scores]
    reference: str = ""
    sentences: list[Sentence] = []
    remarks: list[str] = []
    resampled: str = ""

    def to_json(self) -> str:
        """Deterministic JSON, a final newline included; figures with at most nine digits behind the point."""
        return _dumped(self.model_dump(mode="json"))

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report of `to_json`."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise ArtifactError(f"a report is JSON, and this is not: {error}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ArtifactError(f"this JSON is not a report of koktok: it has no `format: {FORMAT}`")
        if data.get("version") != VERSION:
            raise ArtifactError(
                f"this report has version {data.get('version')!r}, this koktok reads version {VERSION}",
                hint="pip install --upgrade koktok",
            )
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise ArtifactError(f"this report is broken: {error}") from error

    def measure(self, name: str) -> Measure | None:
        """The column of this name, if it was measured."""
        return next((measure for measure in self.measures if measure.name == name), None)


def _dumped(data: Any) -> str:
    """A line a key, and in lists a line an item: small enough to commit, and `git diff` shows which rows changed."""
    lines = []
    for key, value in _rounded(data).items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False, allow_nan=False) for item in value)
            lines.append(f"{json.dumps(key)}: [\n  {items}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _rounded(data: Any) -> Any:
    if isinstance(data, float):
        if not math.isfinite(data):
            raise ArtifactError(f"expected finite figures in the report, got {data}")
        return round(data, 9)
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_rounded(value) for value in data]
    return data
