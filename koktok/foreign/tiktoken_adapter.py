"""`tiktoken:`, ranks with a pattern, and Mistral's tekken files, which are the same in JSON."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from koktok.errors import InputError, MissingExtraError, UsageError
from koktok.foreign.base import Rows, Subject
from koktok.foreign.engines import asking
from koktok.foreign.spans import ByteTable, Spans, rows_by_bytes
from koktok.foreign.trial import prove
from koktok.text.patterns import PUBLISHED, TIKTOKEN
from koktok.vocab import check_sparse

__all__ = ["PATTERNS", "Tiktoken", "open_tekken", "open_tiktoken"]

PATTERNS: Final[dict[str, str]] = {
    # As cl100k_base was published first. What tiktoken has today keeps a line break and the spaces behind it together at the
    # end of a text; on lines, which hold no line break, the two are the same, and digests of reports hold this one.
    **PUBLISHED,
    "gpt2": TIKTOKEN["gpt2 before 0.8"],
    "llama4": PUBLISHED["o200k"],
}
"""Patterns by the vocabulary that made them known; a rank file does not hold its own."""


class Tiktoken(Subject):
    """Byte-pair ranks and a pattern.

    Parameters
    ----------
    spec, name, notes
        As in `Subject`.
    ranks : dict of bytes to int
    pattern : str
    shift : int
        Added to each rank to get the id (control tokens that come first).
    """

    def __init__(
        self, spec: str, name: str, ranks: dict[bytes, int], pattern: str, *, shift: int = 0, notes: Sequence[str] = ()
    ) -> None:
        try:
            import tiktoken
        except ImportError as error:
            raise MissingExtraError("tiktoken", "tiktoken") from error
        if min(ranks.values(), default=0) < 0:
            raise InputError(f"`{spec}` gives the negative id {min(ranks.values())}")
        check_sparse(ranks.values(), spec)
        prove("tiktoken", pattern, ranks, {}, where=spec)
        try:
            self.encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        except Exception as error:
            raise InputError(f"`{spec}` makes no tiktoken encoding: {error}") from error
        self._table = [b""] * (max(ranks.values(), default=-1) + 1)
        for written, rank in ranks.items():
            self._table[rank] = written
        self._bytes = ByteTable(self._table)
        self._shift = shift
        whole = hashlib.sha256(pattern.encode())
        for written in self._table:
            whole.update(len(written).to_bytes(4, "little") + written)
        super().__init__(
            spec,
            name,
            size=len(self._table) + shift,
            digest=whole.hexdigest()[:16],
            libraries={"tiktoken": version("tiktoken")},
            notes=notes,
            special_ids=range(shift),
        )

    def encode(self, lines: Sequence[str]) -> Rows:
        """As `Subject.encode`."""
        with asking("tiktoken"):
            ids = self.encoding.encode_ordinary_batch(list(lines), num_threads=2)

        def none_left(which: list[int]) -> list[Spans]:
            raise InputError(f"`{self.spec}` lost bytes of the line {lines[which[0]][:60]!r}")

        rows = rows_by_bytes(lines, ids, self._bytes, none_left)
        rows.ids = rows.ids + self._shift
        return rows

    def decode(self, ids: Sequence[int]) -> str | None:
        """As `Subject.decode`."""
        return b"".join(self._table[i - self._shift] for i in ids if i >= self._shift).decode("utf-8", "replace")

    def token_bytes(self, i: int) -> bytes | None:
        """As `Subject.token_bytes`."""
        return self._table[i - self._shift] or None if i >= self._shift else None


def open_tiktoken(spec: str, path: Path, pattern: str, *, name: str = "") -> Subject:
    """A file of `base64 rank` lines; the pattern by name, or in a file of its own. Or koktok's export, which holds both."""
    if path.is_dir():
        from koktok.formats.tiktoken import load

        export = load(path)
        return Tiktoken(spec, name or export.name, dict(export.ranks), export.pattern)
    known_as = pattern.removesuffix("_base")
    if known_as in PATTERNS:
        expression = PATTERNS[known_as]
    elif pattern and Path(pattern).is_file():
        expression = Path(pattern).read_text(encoding="utf-8").rstrip("\n")
    else:
        known = ", ".join(sorted(PATTERNS))
        came = f"the pattern `{pattern}` is not known" if pattern else "a rank file does not hold its pattern"
        raise UsageError(f"{came}; wanted one of {known}, or a file", hint=f"tiktoken:{path}#cl100k")
    ranks = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
            except (ValueError, binascii.Error) as error:
                raise InputError(f"`{path}` line {number} is not `base64 rank`: {line[:40]!r}") from error
    return Tiktoken(spec, name or path.stem, ranks, expression)


def open_tekken(spec: str, path: Path, *, name: str = "") -> Subject:
    """A tekken.json of Mistral: ranks, pattern and control tokens in one file."""
    form = json.loads(path.read_text(encoding="utf-8"))
    config = form["config"]
    controls = int(config["default_num_special_tokens"])
    kept = form["vocab"][: int(config["default_vocab_size"]) - controls]
    ranks = {base64.b64decode(entry["token_bytes"]): int(entry["rank"]) for entry in kept}
    return Tiktoken(spec, name or path.stem, ranks, config["pattern"], shift=controls)
