"""The checks of lines of text, independent classes.

The text is read once, some hundred lines at a time, and encoded once by the public `encode`, while the other libraries encode
the same lines on other cores.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from koktok.errors import ArtifactError
from koktok.model.encoding import BLANK, Encoding
from koktok.model.vocab import MARK, SCORE_STEP, WITH_UNKNOWN
from koktok.protocol.agree import agreement
from koktok.runtimes.runtime import Encodes, Reader, WrittenTable
from koktok.text.prefix import without_prefix
from koktok.tokenizer import TrainedTokenizer
from koktok.verification.finding import CheckResult, shown

EXACT = SCORE_STEP * (1 << 24)
"""Up to here floats of 32 bits hold every multiple of a score's step, so that sums of scores are not rounded."""

FEW = 2_000
"""Lines for checks that take milliseconds a line: decomposed text, and jamo in Hugging Face's decoder."""


@dataclass(frozen=True)
class Batch:
    """Some lines, their normal forms, their encodings, and the decoded text of these."""

    lines: list[str]
    normal: list[str]
    encodings: list[Encoding]
    decoded: list[str]

    def only(self, chosen: Sequence[int]) -> Batch:
        """A batch of the lines with these numbers."""
        names = ("lines", "normal", "encodings", "decoded")
        return replace(self, **{name: [getattr(self, name)[i] for i in chosen] for name in names})


class Check:
    """A check of batches of lines, which counts in its results; a slow one gets a sample of a large text."""

    slow = True

    def __init__(self, tokenizer: TrainedTokenizer, *results: CheckResult) -> None:
        self._tokenizer, self._results = tokenizer, results

    def look(self, batch: Batch) -> None:
        """Check some lines."""
        raise NotImplementedError

    def results(self) -> Iterable[CheckResult]:
        """The results."""
        return self._results


class RoundTrip(Check):
    """Check: `decode(encode(x)) == normalize(x)` (law 4), or for lossy kinds the same ids again."""

    slow = False

    def __init__(self, tokenizer: TrainedTokenizer) -> None:
        kind = tokenizer.vocab.kind
        lossy = f"encode(decode(ids)) is ids; a {kind} vocabulary does not keep every text"
        self.result = CheckResult(
            "round trip", message="decode(encode(x)) is normalize(x)" if tokenizer.lossless else lossy
        )
        super().__init__(tokenizer, self.result)

    def look(self, batch: Batch) -> None:
        """Check some lines."""
        for line, normal, ours, decoded in zip(batch.lines, batch.normal, batch.encodings, batch.decoded, strict=True):
            if self._tokenizer.lossless:
                self.result.record(decoded == normal, "{} comes back as {}", line, decoded)
            elif MARK not in normal and self._tokenizer.vocab.unknown_id not in ours.ids:
                # Text that spells a mark, or is unknown, cannot be restored; all other text has the same pieces again.
                again = self._tokenizer.encode(decoded).ids
                self.result.record(again == ours.ids, "{} comes back as {}: other ids", line, decoded)


class Format(Check):
    """Check: a format gives the ids of `encode` (law 6), and its decoder the text of `decode`."""

    def __init__(self, tokenizer: TrainedTokenizer, name: str, reader: Reader) -> None:
        super().__init__(tokenizer)
        self.name, self.reader = name, reader
        of = "normal text" if reader.normalized else "raw text"
        self.ids = CheckResult(f"ids: {name}", message=f"the ids of TrainedTokenizer, on {of}")
        self.text = CheckResult(f"decode: {name}", message="the text of TrainedTokenizer.decode")
        # A decoder of jamo has ten thousand nodes in Hugging Face, and takes milliseconds a line.
        self._to_decode = FEW if tokenizer.recipe.jamo else sys.maxsize
        self.unread = self._spaced = self._joined = self._raw = self._raw_differ = self._rounded = 0

    def rows(self, lines: list[str], normal: list[str]) -> list[list[int] | None]:
        """Ids of the lines in the format; None for a line that it cannot read."""
        texts = normal if self.reader.normalized else lines
        prefix = self._tokenizer.prefix
        reads = [*map(self.reader.reads, texts)]
        if self.reader.normalized and prefix == "first":
            # There is no space before a raw line whose first character is dropped; most lines are normal already.
            align = self._tokenizer.normalizer.align
            kept = (a == b or next(iter(align(a).starts), 0) == 0 for a, b in zip(lines, normal, strict=True))
            reads = [can and first for can, first in zip(reads, kept, strict=True)]
        readable = self.reader.with_space([text for text, can in zip(texts, reads, strict=True) if can], prefix=prefix)
        ids = iter(self.reader.tokenizer.ids(readable) if readable else ())  # transformers fails on an empty list
        return [next(ids) if can else None for can in reads]

    def compare(self, batch: Batch, rows: Sequence[list[int] | None]) -> None:
        """Compare ids and texts."""
        known, texts, compared = [], [], []
        both = batch.normal if self.reader.normalized else batch.lines
        for line, text, ours, decoded, theirs in zip(
            batch.lines, both, batch.encodings, batch.decoded, rows, strict=True
        ):
            if theirs is None:
                self.unread += 1
                continue
            if self.reader.joins(text, prefix=self._tokenizer.prefix):
                self._spaced += 1
                if ours.ids != theirs:
                    self._joined += 1
                    continue
            known.append(ours.ids)
            texts.append(decoded)
            if ours.ids != theirs and self.reader.rounds and _total(self._tokenizer, ours.ids) < -EXACT:
                self._rounded += 1
                continue
            compared.append((line, theirs, ours.ids))
        self.ids.add(agreement(compared))
        known = known[: max(0, self._to_decode - self.text.checked)]
        decoded_texts = [self.reader.tokenizer.text_of(ids) for ids in known]
        if self._tokenizer.prefix and not self.reader.takes_space:
            decoded_texts = [without_prefix(text, self._tokenizer.prefix) for text in decoded_texts]
        for ids, expected, text in zip(known, texts, decoded_texts, strict=False):
            self.text.record(text == expected, "{}: {} in place of {}", ids, text, expected)

    def look(self, batch: Batch) -> None:
        """Count the lines with other ids by the format's own normalizer; a documented difference, no failure."""
        if not self.reader.own_normalizer:
            return
        pairs = zip(batch.lines, batch.normal, batch.encodings, strict=True)
        changed = [(line, ours.ids) for line, normal, ours in pairs if line != normal and self.reader.reads(line)]
        rows = self.reader.tokenizer.ids([line for line, _ in changed])
        self._raw += len(changed)
        self._raw_differ += sum(ids != ours for ids, (_, ours) in zip(rows, changed, strict=True))

    def results(self) -> Iterator[CheckResult]:
        """Ids, text, and pieces."""
        notes = (
            (self.unread, f"lines that the library cannot read: {self.unread:,}"),
            (
                self._joined,
                f"it gives other ids for {self._joined:,} of the {self._spaced:,} lines that begin with a space",
            ),
            (
                self._rounded,
                f"lines with other ids because its 32-bit sums of scores are rounded: {self._rounded:,}; use shorter lines",
            ),
            (
                self._raw_differ,
                f"on raw text its own normalizer gives other ids for {self._raw_differ:,} of the {self._raw:,} lines that "
                "normalization changes; normalize first",
            ),
        )
        self.ids.note = "; ".join(note for n, note in notes if n)
        yield self.ids
        if self.text.checked:
            yield self.text
        yield pieces_of(self._tokenizer, self.name, self.reader)


def _total(tokenizer: TrainedTokenizer, ids: Sequence[int]) -> float:
    """The sum of the scores of these ids, 0 if the model has no scores."""
    vocab = tokenizer.vocab
    scores, first = vocab.scores, vocab.n_bytes
    return sum(scores[i - first] if i >= first else vocab.byte_score for i in ids) if scores else 0.0


class Offsets(Check):
    """Check: offsets ascend inside the raw text, cover it, and each covers the text of its piece (law 7).

    A part of the sample is checked in NFD, too, where the offsets of other libraries are wrong.
    """

    def __init__(self, tokenizer: TrainedTokenizer) -> None:
        self.result = CheckResult("offsets", message="they index the raw text, also where it is decomposed (NFD)")
        super().__init__(tokenizer, self.result)
        self._decomposed = 0
        kind = tokenizer.vocab.kind
        self._spelled = not tokenizer.recipe.jamo and not kind.endswith("-bytes")
        self._drops = tokenizer.recipe.normalize.repeats > 0 or kind in WITH_UNKNOWN
        self._special = tokenizer.vocab.size - len(tokenizer.vocab.specials)
        self._trims = tokenizer.style.trim_offsets

    def look(self, batch: Batch) -> None:
        """Check some lines, the first of all in NFD, too."""
        texts = [*zip(batch.lines, batch.encodings, strict=True)]
        decomposed = _decomposed(batch.lines[: max(0, FEW - self._decomposed)])
        self._decomposed += len(batch.lines)
        for text, encoding in (*texts, *((raw, self._tokenizer.encode(raw)) for raw in decomposed)):
            wrong = self._wrong(text, encoding)
            self.result.record(not wrong, "{}: {}", text, wrong)

    def _wrong(self, line: str, encoding: Encoding) -> str:
        """The fault, or ''."""
        spans = encoding.offsets
        if not len(spans) == len(encoding.ids) == len(encoding.pieces):
            return f"{len(encoding.ids)} ids, {len(encoding.pieces)} pieces, {len(spans)} offsets"
        blank = [self._trims and not piece.removeprefix(MARK).strip(BLANK) for piece in encoding.pieces]
        if not all(0 <= a <= b <= len(line) and (a < b or gone) for (a, b), gone in zip(spans, blank, strict=True)):
            return "an offset is empty or outside the text"
        if not all(a <= c and b <= d for (a, b), (c, d) in pairwise(spans)):
            return "offsets go back"
        normalize = self._tokenizer.normalizer
        end = 0
        pieces = encoding.pieces
        if self._tokenizer.prefix and pieces:
            pieces = [pieces[0].removeprefix(" "), *pieces[1:]]
        for i, piece, (a, b) in zip(encoding.ids, pieces, spans, strict=True):
            if a > end and self._lost(line[end:a]):
                return f"no token covers {shown(line[end:a])}"
            end = max(end, b)
            if self._spelled and self._tokenizer.vocab.n_bytes <= i < self._special:
                spelled = piece.strip(BLANK) if self._trims else piece
                spelled = spelled if spelled in line[a:b] else spelled.removeprefix(MARK)
                if spelled not in line[a:b] and spelled not in normalize(line[a:b]):
                    return f"the piece {shown(piece)} has the offsets of {shown(line[a:b])}"
        if end < len(line) and self._lost(line[end:]):
            return f"no token covers {shown(line[end:])}"
        return ""

    def _lost(self, uncovered: str) -> bool:
        """Whether text without a token should have one."""
        normal = self._tokenizer.normalizer(uncovered)
        return not self._drops and bool(normal.strip(BLANK) if self._trims else normal)


def _decomposed(lines: Iterable[str]) -> list[str]:
    """In NFD, the lines that NFD changes."""
    return [raw for line in lines if (raw := unicodedata.normalize("NFD", line)) != line]


class OffsetsOfHuggingFace(Check):
    """Check: Hugging Face's offsets are ours on normal text; differences in NFD are counted in a note.

    The bytes of a run of unknown characters share one span there; ours are inside it. With trimmed offsets, white space at
    the beginning of a text remains in part there if the prefix space is added before it, and the empty span of a blank token
    may be at another place. Offsets after normalizer nodes that replace jamo (jamo mode, the fold `lone_jamo`) drift there
    and are not compared.
    """

    def __init__(self, tokenizer: TrainedTokenizer, name: str, adapter: Encodes) -> None:
        self.result = CheckResult(f"offsets: {name}", message="Hugging Face's are ours on normal text")
        super().__init__(tokenizer, self.result)
        self._adapter, self._seen = adapter, 0
        self._trims = tokenizer.style.trim_offsets
        self._keeps_first = tokenizer.prefix and self._trims
        self._decomposed = self._differ = 0
        if tokenizer.recipe.jamo or tokenizer.recipe.normalize.lone_jamo:
            self.result.skip("Hugging Face's offsets drift where its normalizer splits jamo; use koktok's")

    def look(self, batch: Batch) -> None:
        """Check the normal texts, and count the NFD lines with different offsets."""
        if self.result.skipped:
            return
        n_bytes = self._tokenizer.vocab.n_bytes
        for text, theirs in zip(batch.normal, self._adapter.offsets(batch.normal), strict=True):
            ours = self._tokenizer.encode(text)
            same = len(theirs) == len(ours) and all(
                (a, b) == (c, d)
                or (c <= a <= b <= d and (i < n_bytes or (self._keeps_first and c == 0)))
                or (self._trims and a == b and c == d)
                for i, (a, b), (c, d) in zip(ours.ids, ours.offsets, theirs, strict=True)
            )
            self.result.record(same, "{}: {} in place of {}", text, theirs, ours.offsets)
        raw = _decomposed(batch.lines[: max(0, FEW - self._seen)])
        self._seen += len(batch.lines)
        for text, theirs in zip(raw, self._adapter.offsets(raw), strict=True):
            ours = self._tokenizer.encode(text)
            self._decomposed += 1
            self._differ += len(theirs) != len(ours) or any(
                span != span_ for i, span, span_ in zip(ours.ids, ours.offsets, theirs, strict=True) if i >= n_bytes
            )
        if self._differ:
            self.result.note = (
                f"Hugging Face's offsets are wrong on {self._differ:,} of {self._decomposed:,} decomposed (NFD) lines; "
                "use koktok's there"
            )


def pieces_of(tokenizer: TrainedTokenizer, name: str, reader: Reader) -> CheckResult:
    """Check: a format has the same piece at every id."""
    result = CheckResult(f"pieces: {name}", message="the same piece at every id")
    ours, theirs = (
        dict(enumerate(tokenizer.vocab.tokens)),
        {i: piece for i, piece in enumerate(reader.tokenizer.tokens) if piece},
    )
    for i in sorted(ours.keys() | theirs.keys()):
        result.record(ours.get(i) == theirs.get(i), "id {}: {} in place of {}", i, theirs.get(i), ours.get(i))
    return result


def same_table(tokenizer: TrainedTokenizer, name: str, table: WrittenTable) -> CheckResult:
    """Check: a format holds the table that koktok writes; no ids are compared, and the note lists the library's differences."""
    result = CheckResult(
        f"pieces: {name}", message="the table that koktok writes; no ids, its library runs outside Python"
    )
    result.note = table.note(tokenizer.definition)
    try:
        for what, expected, actual in table.rows(tokenizer.definition):
            result.record(expected == actual, "{}: {} in place of {}", what, actual, expected)
    except ArtifactError as error:
        result.record(False, "{}", error.message)
    return result
