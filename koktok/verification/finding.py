"""What a check found: the shape of every row of a report, and the tally that a check keeps while it looks.

A check looks at texts one by one, says of each whether it is as it must be, and keeps a few that
are not; a check that cannot run says why, and is no failure.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from koktok.agree import EXAMPLES, Agreement, parting

LONGEST = 80

Outcome = Literal["pass", "fail", "not run"]


@dataclass(frozen=True)
class CheckResult:
    """A row of the report."""

    check: str
    outcome: Outcome
    looked: int = 0
    wrong: int = 0
    said: str = ""
    note: str = ""
    examples: tuple[str, ...] = ()


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
    >>> Verification("my-tokenizer", findings=(CheckResult("loads", "pass"), CheckResult("ids: x.gguf", "not run"))).passed
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


@dataclass
class Tally:
    """The counts of a running check.

    Examples
    --------
    >>> tally = Tally("even")
    >>> for n in (2, 3):
    ...     tally.record(n % 2 == 0, "{} is odd", n)
    >>> tally.finding()
    CheckResult(check='even', outcome='fail', looked=2, wrong=1, said='', note='', examples=('3 is odd',))
    """

    check: str
    said: str = ""
    checked: int = 0
    wrong: int = 0
    examples: list[str] = field(default_factory=list)
    note: str = ""
    skipped: str = ""

    def record(self, good: bool, wrong: str, *values: Any) -> None:  # noqa: FBT001
        """Count one text; where it is bad, `wrong` with the values in its braces is the example."""
        self.checked += 1
        if not good:
            self.wrong += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append(wrong.format(*map(shown, values)))

    def add(self, found: Agreement) -> None:
        """Count the lines of a comparison of ids; those of `b` are the expected ones."""
        self.checked += found.checked
        self.wrong += found.differing
        for line, a, b in found.examples[: EXAMPLES - len(self.examples)]:
            at = parting(a, b)
            words = "{}: from token {} on {} in place of {}" if at else "{}: {} in place of {}"
            values = (line, at, a[at:], b[at:]) if at and a and b else (line, a, b)
            self.examples.append(words.format(*map(shown, values)))

    def finding(self) -> CheckResult:
        """The result so far."""
        if self.skipped:
            return CheckResult(self.check, "not run", said=self.skipped)
        outcome: Outcome = "fail" if self.wrong else "pass"
        return CheckResult(self.check, outcome, self.checked, self.wrong, self.said, self.note, tuple(self.examples))


def shown(value: Any) -> str:
    r"""A text or a list of ids, short enough for a line of a report.

    Examples
    --------
    >>> print(shown("가\n"), shown([1, 2, 3]))
    '가\n' [1, 2, 3]
    """
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
