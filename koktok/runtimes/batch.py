"""Many texts through a foreign library, with the interface of `koktok.bulk`: ids of `encode`, texts of `decode`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from koktok.bulk.arrays import checked_flat, id_type
from koktok.bulk.encoder import workers_of
from koktok.bulk.texts import Texts
from koktok.model.tokens import Tokens, running
from koktok.protocol.tokenizer import Allowed, Tokenizer

_BATCH, _DOCUMENTS = 1 << 21, 1 << 14


class LibraryEncoder:
    """Texts to ids, as `koktok.bulk.Encoder` gives them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def __call__(self, texts: Any, *, dtype: Any = None, **options: Any) -> Tokens:
        """Ids of many documents; see `Tokenizer.encode_ids`."""
        parts = [tokens for _, tokens in self.stream(texts, dtype=dtype, **options)]
        return Tokens.joined(parts, id_type(self.tokenizer.vocab.size, dtype))

    def stream(
        self,
        texts: Any,
        *,
        threads: int | None = None,
        dtype: Any = None,
        allowed_special: Allowed = (),
        before: Sequence[int] = (),
        after: Sequence[int] = (),
        add_special_tokens: bool = False,
    ) -> Iterator[tuple[Texts, Tokens]]:
        """The same, a part at a time, in order, each with its texts; in one thread for any number."""
        workers_of(threads)  # refuses a number below 1
        chosen = id_type(self.tokenizer.vocab.size, dtype)
        options: dict[str, Any] = {"allowed_special": allowed_special, "add_special_tokens": add_special_tokens}
        encode = self.tokenizer.encode
        encode("", **options)  # refuses names that are no special tokens also if there are no texts
        for make in Texts.batches(texts, _BATCH, _DOCUMENTS):
            batch = make()
            rows = [[*before, *encode(text, **options).ids, *after] for text in map(batch.text, range(len(batch)))]
            flat = np.array([i for row in rows for i in row], chosen)
            yield batch, Tokens(flat, running([*map(len, rows)]))


class LibraryDecoder:
    """Ids to texts, as `koktok.bulk.Decoder` gives them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def __call__(
        self, ids: Any, offsets: Any, *, skip_special_tokens: bool = False, threads: int | None = None
    ) -> list[str]:
        """Texts of documents; see `Tokenizer.decode_ids`."""
        workers_of(threads)  # refuses a number below 1
        flat, places = checked_flat(ids, offsets, self.tokenizer.vocab.size)
        rows = [flat[first:last].tolist() for first, last in pairwise(places)]
        return self.batch(rows, skip_special_tokens=skip_special_tokens)

    def batch(self, rows: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """Texts of rows of ids."""
        return [self.tokenizer.decode(row, skip_special_tokens=skip_special_tokens) for row in rows]
