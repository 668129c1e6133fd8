"""The WordPiece models: the longest piece from the left, again and again; a word with an unknown part is all [UNK].

Greedy matching tries every length at every place. LinMaxMatch (Song et al. 2021,
arXiv:2012.15524) walks a trie of all pieces once: where the walk fails, the node says which pieces the text so far is
certain to begin with (its failure pops) and where the walk goes on (its failure link). Both give the same pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from koktok.errors import UsageError
from koktok.tokenizer.model import Encoded, Model
from koktok.vocab import MARK, Vocab, spell

if TYPE_CHECKING:
    import numpy as np


_ROOT, _INSIDE = 0, 1  # nodes of the trie: the start of a word, and what follows "##"


class WordPieceModel(Model):
    """WordPiece over characters; the spaces before a word are dropped.

    Notes
    -----
    Equal to Hugging Face's model on the text behind the spaces. Special tokens are rows of its table, so a word that
    spells one is cut behind the first character of it, here and in tokenizer.json (`Vocab.guard`).

    Examples
    --------
    >>> vocab = Vocab.plain("wordpiece", ["학교", "학", "##교", "##에서", "##에"], specials=["[UNK]"])
    >>> model = WordPieceModel(vocab)
    >>> model.encode(" 학교에서"), model.encode(" 학원")
    (([0, 3], [(1, 3), (3, 5)]), ([5], [(1, 3)]))
    """

    drawn_by = "dropout"

    def __init__(
        self, vocab: Vocab, *, match: Literal["greedy", "linear"] = "linear", max_chars: int | None = None
    ) -> None:
        if match not in ("greedy", "linear"):
            raise UsageError(f"match = {match!r}; wanted 'greedy' or 'linear'")
        super().__init__(vocab)
        self._ids = vocab.ids
        self._max_chars = vocab.longest_word if max_chars is None else max_chars
        self._longest = max(map(len, vocab.pieces), default=1)
        self._linear = match == "linear"

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans."""
        return self._by_parts(pretoken, self._by_trie if self._linear else self._by_length)

    def sample(self, pretoken: str, *, dropout: float, rng: np.random.Generator) -> Encoded:
        """MaxMatch-dropout (Hiraoka 2022): every match is passed over with a probability, for the next shorter one.

        Examples
        --------
        >>> import numpy as np
        >>> vocab = Vocab.plain("wordpiece", ["학교", "학", "##교"], specials=["[UNK]"])
        >>> WordPieceModel(vocab).sample("학교", dropout=1.0, rng=np.random.default_rng(0))
        ([1, 2], [(0, 1), (1, 2)])
        """
        if not 0 <= dropout <= 1:
            raise UsageError(f"dropout = {dropout}; wanted a probability from 0 to 1")
        return self._by_parts(pretoken, lambda word: self._by_length(word, lambda: rng.random() < dropout))

    def _by_parts(self, pretoken: str, match: Callable[[str], list[str] | None]) -> Encoded:
        """A pretoken that spells a special token goes in parts, each a word of its own; see `Vocab.guard`."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        at = 0
        for part in self.vocab.guarded(pretoken):
            found, where = self._encode(part, match)
            ids += found
            spans += [(at + start, at + end) for start, end in where] if at else where
            at += len(part)
        return ids, spans

    def _encode(self, pretoken: str, match: Callable[[str], list[str] | None]) -> Encoded:
        word = pretoken.lstrip(" ")
        start = len(pretoken) - len(word)
        if not word:
            return [], []
        found = match(word) if len(word) <= self._max_chars else None
        if found is None:
            return [self.vocab.unknown_id], [(start, len(pretoken))]
        ids, spans = [], []
        for i, piece in enumerate(found):
            end = start + len(piece) - (len(MARK) if i else 0)
            ids.append(self._ids[piece])
            spans.append((start, end))
            start = end
        return ids, spans

    def _by_length(self, word: str, passed_over: Callable[[], bool] = lambda: False) -> list[str] | None:
        """The pieces of a word, or None when a part is unknown."""
        found: list[str] = []
        start, size = 0, len(word)
        while start < size:
            mark = MARK if start else ""
            for end in range(min(size, start + self._longest), start, -1):
                piece = mark + word[start:end]
                if piece in self._ids and (end == start + 1 or not passed_over()):
                    break
            else:
                return None
            found.append(piece)
            start = end
        return found

    @cached_property
    def _trie(self) -> tuple[list[dict[str, int]], list[int], list[tuple[str, ...]]]:
        """Children, failure link (-1: none) and failure pops of every node; section 3.1 of the paper."""
        children: list[dict[str, int]] = [{}, {}]
        whole: dict[int, str] = {}
        for piece in self.vocab.pieces:
            node, rest = (_INSIDE, piece[len(MARK) :]) if piece.startswith(MARK) else (_ROOT, piece)
            for char in rest:
                if char not in children[node]:
                    children[node][char] = len(children)
                    children.append({})
                node = children[node][char]
            whole[node] = piece
        link = [-1] * len(children)
        pops: list[tuple[str, ...]] = [()] * len(children)
        queue = deque([_ROOT, _INSIDE])
        while queue:
            parent = queue.popleft()
            for char, node in children[parent].items():
                queue.append(node)
                if node in whole:
                    link[node], pops[node] = _INSIDE, (whole[node],)
                    continue
                # The longest match of a text that ends here is that of the parent's text; what is left is looked up
                # from where that leads, and may give up more pieces on the way.
                fallback, popped = link[parent], pops[parent]
                while fallback >= 0 and char not in children[fallback]:
                    popped += pops[fallback]
                    fallback = link[fallback]
                if fallback >= 0:
                    link[node], pops[node] = children[fallback][char], popped
        return children, link, pops

    def _by_trie(self, word: str) -> list[str] | None:
        if word.startswith(MARK):
            # As in Hugging Face, a word that spells a continued piece is that piece; the trie keeps the two apart.
            return self._by_length(word)
        children, link, pops = self._trie
        found: list[str] = []
        node = _ROOT
        for char in word:
            while char not in children[node]:
                if link[node] < 0:
                    return None
                found += pops[node]
                node = link[node]
            node = children[node][char]
        # Behind the last character the walk fails until it stands at an empty continuation.
        while node != _INSIDE:
            if link[node] < 0:
                return None
            found += pops[node]
            node = link[node]
        return found


class ByteWordPieceModel(WordPieceModel):
    """WordPiece over the bytes of UTF-8 as GPT-2 spells them, the spaces before a word included; nothing is unknown.

    Examples
    --------
    >>> vocab = Vocab.plain("wordpiece-bytes", ["Ġ", "##ê", "##°", "##Ģ", "##°Ģ"], specials=["[UNK]"])
    >>> ByteWordPieceModel(vocab).encode(" 가")
    ([0, 1, 4], [(0, 1), (1, 2), (1, 2)])
    """

    def _encode(self, pretoken: str, match: Callable[[str], list[str] | None]) -> Encoded:
        ids, spans = super()._encode(spell(pretoken), match)
        owner = [i for i, char in enumerate(pretoken) for _ in range(len(char.encode()))]
        return ids, [(owner[start], owner[end - 1] + 1) for start, end in spans]
