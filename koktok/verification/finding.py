"""The results of checks, and the report.

A check counts texts and wrong texts, and keeps a few examples of these; a check that cannot run has a reason, and is no
failure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from koktok.protocol.agree import EXAMPLES, Agreement

LONGEST = 80

Outcome = Literal["pass", "fail", "not run"]


@dataclass
class CheckResult:
    """A row of the report; it counts while a check runs.

    Examples
    --------
    >>> result = CheckResult("even")
    >>> for n in (2, 3):
    ...     result.record(n % 2 == 0, "{} is odd", n)
    >>> result.outcome, result.checked, result.wrong, result.examples
    ('fail', 2, 1, ['3 is odd'])
    """

    check: str
    outcome: Outcome = "pass"
    checked: int = 0
    wrong: int = 0
    message: str = ""
    note: str = ""
    examples: list[str] = field(default_factory=list)

    def record(self, good: bool, wrong: str, *values: Any) -> None:  # noqa: FBT001
        """Count one text; `wrong`, formatted with the values, is the example of a bad one."""
        self.checked += 1
        if not good:
            self._fail(1)
            if len(self.examples) < EXAMPLES:
                self.examples.append(wrong.format(*map(shown, values)))

    def add(self, agreement: Agreement) -> None:
        """Count the lines of a comparison of ids; those of `b` are the expected ones."""
        self.checked += agreement.checked
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
        """Mark the check as one that cannot run."""
        self.outcome, self.message = "not run", why
        return self

    @property
    def skipped(self) -> bool:
        """Whether the check cannot run."""
        return self.outcome == "not run"


def _first_difference(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def loads(why: str = "") -> CheckResult:
    """The first row of every report: whether the folder loads."""
    return CheckResult(
        "loads", "fail" if why else "pass", 1, bool(why), "the folder loads", examples=[why] if why else []
    )


@dataclass(frozen=True)
class Verification:
    """All findings about a folder.

    Examples
    --------
    >>> Verification("my-tokenizer", findings=(CheckResult("loads", message="pass"), CheckResult("ids: x.gguf", message="not run"))).passed
    True
    """

    folder: str
    tokenizer: str = ""
    lines: int = 0
    characters: int = 0
    findings: tuple[CheckResult, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check failed; a check that cannot run is no failure."""
        return all(finding.outcome != "fail" for finding in self.findings)

    def to_json(self) -> str:
        """The report as JSON."""
        content: dict[str, Any] = asdict(self)
        return json.dumps({"passed": self.passed, **content}, ensure_ascii=False, indent=1)


def shown(value: Any) -> str:
    r"""A text or a list of ids, shortened for a line of a report.

    Examples
    --------
    >>> print(shown("가\n"), shown([1, 2, 3]))
    '가\n' [1, 2, 3]
    """
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
