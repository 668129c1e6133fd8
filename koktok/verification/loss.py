"""`decode(encode(x))`: the check that it is the normal form, and a table of its changes.

A change is counted by the rule of the normalizer that made it, or by the loss of the model, and by the class of characters, so
that a report has the row "NFD syllables were composed" and not ten thousand lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from koktok import hangul
from koktok.model.vocab import MARK
from koktok.verification.checks import Batch, Check
from koktok.verification.finding import CheckResult, Loss

if TYPE_CHECKING:
    from koktok.model.encoding import Encoding
    from koktok.tokenizer import TrainedTokenizer


_CLASSES = {
    "Hangul syllable": hangul.SYLLABLE,
    "compatibility jamo": "\u3131-\u318e",
    "conjoining jamo": hangul.LEAD + hangul.VOWEL + hangul.TAIL,
    "old jamo": "\u1113-\u1160\u1176-\u11a7\u11c3-\u11ff\ua960-\ua97c\ud7b0-\ud7fb",
    "half-width jamo": "\uffa0-\uffdc",
    "Latin": "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "full-width form": "\uff01-\uff5e\uffe0-\uffe6",
    "digit": "0-9",
    "Han": "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "kana": "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "space": " ",
    "other white space": "\\s",
}
_FIRST = re.compile("|".join(f"([{ranges}])" for ranges in _CLASSES.values()))
_NAMES = (*_CLASSES,)
_CATEGORIES = {"C": "control or invisible", "L": "other letter", "M": "mark", "N": "other number", "P": "punctuation"}


def class_of(char: str) -> str:
    r"""The class of a character in reports.

    Examples
    --------
    >>> [class_of(char) for char in "가ㅋ\u1112A!\u200b😀"]
    ['Hangul syllable', 'compatibility jamo', 'conjoining jamo', 'Latin', 'punctuation', 'control or invisible', 'symbol']
    """
    match = _FIRST.match(char)
    if match and match.lastindex:
        return _NAMES[match.lastindex - 1]
    return _CATEGORIES.get(unicodedata.category(char)[0], "symbol")


class RoundTrip(Check):
    """Check: `decode(encode(x)) == normalize(x)` (law 4), or for lossy kinds the same ids again; and the table of losses."""

    slow = False

    def __init__(self, tokenizer: TrainedTokenizer) -> None:
        self._changes: Counter[tuple[str, str, str]] = Counter()
        message = "decode(encode(x)) is normalize(x)"
        if not tokenizer.lossless:
            message = (
                f"encode(decode(ids)) is ids; a {tokenizer.vocab.kind} vocabulary does not keep every text, see below"
            )
        self.result = CheckResult("round trip", message=message)
        super().__init__(tokenizer, self.result)

    def look(self, batch: Batch) -> None:
        """Check some lines; losses are counted in the user's lines alone."""
        for line in zip(batch.lines, batch.normal, batch.encodings, batch.decoded, strict=True):
            self._look(*line, count=batch.of_user)

    def _look(self, line: str, normal: str, encoding: Encoding, decoded: str, *, count: bool) -> None:
        same = decoded == normal
        if self._tokenizer.lossless:
            self.result.record(same, "{} comes back as {}", line, decoded)
        elif MARK not in normal and self._tokenizer.vocab.unknown_id not in encoding.ids:
            # Text that spells a mark, or is unknown, cannot be restored; all other text has the same pieces again.
            again = self._tokenizer.encode(decoded).ids
            self.result.record(again == encoding.ids, "{} comes back as {}: other ids", line, decoded)
        if not count:
            return
        if normal != line:
            self._changes.update(self._tokenizer.normalizer.changes(line))
        if not same:
            encoding = encoding if normal == line else self._tokenizer.encode(normal)
            self._changes.update(_lost(self._tokenizer, normal, encoding))

    def losses(self) -> tuple[Loss, ...]:
        """The losses, most frequent first."""
        times: Counter[tuple[str, str]] = Counter()
        often: dict[tuple[str, str], tuple[int, str]] = {}
        for (rule, before, after), n in sorted(self._changes.items()):
            row = (rule, class_of(before[0]) if before else "nothing")
            times[row] += n
            if n > often.get(row, (0, ""))[0]:
                often[row] = (n, f"{_visible(before)} → {_visible(after)}")
        order = sorted(times, key=lambda row: (-times[row], row))
        return tuple(Loss(rule, name, times[rule, name], often[rule, name][1]) for rule, name in order)


def _lost(tokenizer: TrainedTokenizer, normal: str, encoding: Encoding) -> Iterator[tuple[str, str, str]]:
    """The changes of a normal text by a lossy model, as (rule, before, after)."""
    vocab = tokenizer.vocab
    spaced, unknown = vocab.kind == "wordpiece", vocab.unknown_id if not tokenizer.lossless else -1
    end = 0
    for k, (i, piece, (a, b)) in enumerate(zip(encoding.ids, encoding.pieces, encoding.offsets, strict=True)):
        gap, space = normal[end:a], spaced and bool(k) and not piece.startswith(MARK)
        if space and not gap:
            yield "space added", "", " "
        elif gap[space:]:
            yield "dropped", gap[space:], ""
        if i == unknown:
            yield "unknown", normal[a:b], vocab.tokens[unknown]
        end = max(end, b)
    if normal[end:]:
        yield "dropped", normal[end:], ""


def _visible(text: str) -> str:
    """A few characters; invisible ones by their code points."""
    if not text:
        return "nothing"
    if all(unicodedata.category(char)[0] not in "CMZ" and not hangul.is_conjoining(char) for char in text):
        return text[:12]
    return " ".join(f"U+{ord(char):04X}" for char in text[:4])
