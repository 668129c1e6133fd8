"""The rows of a report, which checks count in, and the report.

A check looks at texts one by one, says of each whether it is as it must be, and keeps a few that
are not; a check that cannot run says why, and is no failure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from koktok.tokenizer.agree import EXAMPLES, Agreement

LONGEST = 80

Outcome = Literal["pass", "fail", "not run"]


@dataclass
class CheckResult:
    """A row of the report, which counts while a check runs.

    Examples
    --------
    >>> result = CheckResult("even")
    >>> for n in (2, 3):
    ...     result.record(n % 2 == 0, "{} is odd", n)
    >>> result.outcome, result.looked, result.wrong, result.examples
    ('fail', 2, 1, ['3 is odd'])
    """

    check: str
    outcome: Outcome = "pass"
    looked: int = 0
    wrong: int = 0
    said: str = ""
    note: str = ""
    examples: list[str] = field(default_factory=list)

    def record(self, good: bool, wrong: str, *values: Any) -> None:  # noqa: FBT001
        """Count one text; where it is bad, `wrong` with the values in its braces is the example."""
        self.looked += 1
        if not good:
            self._fail(1)
            if len(self.examples) < EXAMPLES:
                self.examples.append(wrong.format(*map(shown, values)))

    def add(self, agreement: Agreement) -> None:
        """Count the lines of a comparison of ids; those of `b` are the expected ones."""
        self.looked += agreement.checked
        self._fail(agreement.differing)
        for line, a, b in agreement.examples[: EXAMPLES - len(self.examples)]:
            at = _first_difference(a or (), b or ())
            words = "{}: from token {} on {} in place of {}" if at else "{}: {} in place of {}"
            values = (line, at, a[at:], b[at:]) if at and a and b else (line, a, b)
            self.examples.append(words.format(*map(shown, values)))

    def _fail(self, times: int) -> None:
        self.wrong += times
        self.outcome = "fail" if self.wrong else self.outcome

    def skip(self, why: str) -> CheckResult:
        """Count nothing: the check cannot run."""
        self.outcome, self.said = "not run", why
        return self

    @property
    def skipped(self) -> bool:
        """Whether the check cannot run."""
        return self.outcome == "not run"


def _first_difference(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def loads(why: str = "") -> CheckResult:
    """The first row of every report: whether the folder loads, or why not."""
    return CheckResult(
        "loads", "fail" if why else "pass", 1, bool(why), "the folder loads", examples=[why] if why else []
    )


@dataclass(frozen=True)
class Loss:
    """What `decode(encode(x))` changes, by rule and by class of character."""

    rule: str
    characters: str
    times: int
    example: str


@dataclass(frozen=True)
class Verification:
    """All findings about a folder.

    Examples
    --------
    >>> Verification("my-tokenizer", findings=(CheckResult("loads", said="pass"), CheckResult("ids: x.gguf", said="not run"))).passed
    True
    """

    folder: str
    tokenizer: str = ""
    lines: int = 0
    characters: int = 0
    findings: tuple[CheckResult, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def passed(self) -> bool:
        """True where no check failed; what could not run is no failure."""
        return all(finding.outcome != "fail" for finding in self.findings)

    def to_json(self) -> str:
        """The report as JSON."""
        content: dict[str, Any] = asdict(self)
        return json.dumps({"passed": self.passed, **content}, ensure_ascii=False, indent=1)


def shown(value: Any) -> str:
    r"""A text or a list of ids, short enough for a line of a report.

    Examples
    --------
    >>> print(shown("가\n"), shown([1, 2, 3]))
    '가\n' [1, 2, 3]
    """
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
