"""`koktok:`, a folder that koktok trained."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from koktok.foreign.base import ForeignTokenizer, Rows
from koktok.foreign.imported import ImportedTokenizer, load_folder
from koktok.foreign.spans import ByteTable, Spans, rows_by_bytes
from koktok.tokenizer import Tokenizer


class Own(ForeignTokenizer):
    """A `koktok.Tokenizer`."""

    library: ClassVar[str] = "koktok"

    def __init__(self, spec: str, name: str, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        vocab = tokenizer.vocab
        unknown = {vocab.unknown_id} if vocab.kind in ("wordpiece", "word") else set()
        super().__init__(
            spec,
            name,
            size=vocab.size,
            digest=tokenizer.digest(),
            libraries={"koktok": version("koktok")},
            notes=[] if tokenizer.lossless else [f"a {vocab.kind} vocabulary does not keep every text"],
            unknown_ids=unknown,
            byte_ids=range(vocab.n_bytes),
            special_ids=set(range(vocab.size - len(vocab.specials), vocab.size)) - unknown,
        )
        self._spaced = vocab.kind != "wordpiece"
        mute = self.special_ids | unknown
        self._table = [b"" if i in mute else text for i, text in enumerate(vocab.token_bytes)]
        self._bytes = ByteTable(self._table)

    def encode(self, lines: Sequence[str]) -> Rows:
        """As `ForeignTokenizer.encode`."""
        ids = [row.tolist() for row in self.tokenizer.encode_ids(list(lines))]

        def offsets(which: list[int]) -> list[Spans]:
            return [self.tokenizer.encode(lines[k]).offsets for k in which]

        return rows_by_bytes(lines, ids, self._bytes, offsets, spaced=self._spaced)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:
        """As `ForeignTokenizer.decode`."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def token_bytes(self, i: int) -> bytes | None:
        """As `ForeignTokenizer.token_bytes`."""
        return None if i in self.special_ids or i in self.unknown_ids else self._table[i]

    def piece(self, i: int) -> str:
        """As `ForeignTokenizer.piece`."""
        return self.tokenizer.vocab.tokens[i]

    def unigram(self) -> dict[str, float] | None:
        """As `ForeignTokenizer.unigram`; None for jamo, whose pieces are no text of the line."""
        vocab = self.tokenizer.vocab
        if vocab.kind != "unigram" or self.tokenizer.recipe.jamo:
            return None
        return dict(zip(vocab.pieces, vocab.scores, strict=True))

    def words(self, line: str) -> list[str]:
        """As `ForeignTokenizer.words`: pretokens."""
        return list(self.tokenizer.pattern.pretokenize(self.tokenizer.normalize(line)))


def open_own(spec: str, path: Path) -> ForeignTokenizer:
    """A folder with a koktok.toml; what was imported is run by its own adapter."""
    name = path.resolve().name
    tokenizer = load_folder(path)
    if isinstance(tokenizer, ImportedTokenizer):
        adapter = tokenizer.adapter
        adapter.spec, adapter.name = spec, name
        return adapter
    return Own(spec, name, tokenizer)
