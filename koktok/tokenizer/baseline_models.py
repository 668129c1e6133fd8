"""The models of simple tokenizers, the baselines that show why subwords win: whole words, and the longest match.

Nothing to learn from the text but a list. A word tokenizer knows a pretoken or does not; syllables,
jamo, character n-grams and morphemes are taken from the left, the longest that is listed, with bytes for the rest.
"""

from __future__ import annotations

from koktok.tokenizer.model import Encoded, Model
from koktok.vocab import Vocab


class WordModel(Model):
    """A pretoken (eojeol 어절, its leading space included) is one token, or unknown.

    Examples
    --------
    >>> model = WordModel(Vocab.plain("word", [" 학교", " 집"], specials=["[UNK]"]))
    >>> model.encode(" 집"), model.encode(" 집에")
    (([1], [(0, 2)]), ([2], [(0, 3)]))
    """

    def encode(self, pretoken: str) -> Encoded:
        """An id and its span; nothing for an empty pretoken, several where it spells a special token (`Vocab.guard`)."""
        if not pretoken:
            return [], []
        ids, spans, at = [], [], 0
        for part in self.vocab.guarded(pretoken):  # one part, but where the text spells a special token
            ids.append(self.vocab.ids.get(part, self.vocab.unknown_id))
            spans.append((at, at + len(part)))
            at += len(part)
        return ids, spans


class LongestMatchModel(Model):
    """The longest listed piece from the left, again and again; a character that is not listed becomes its bytes.

    Notes
    -----
    No analyser runs, so a "morpheme" tokenizer takes 학교에 for what the list says, not for what the sentence says.

    Examples
    --------
    >>> model = LongestMatchModel(Vocab.plain("morpheme", [*"학교에서", "학교", "에서"]))
    >>> [model.vocab.tokens[i] for i in model.encode("학교에서é")[0]]
    ['학교', '에서', '<0xC3>', '<0xA9>']
    """

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(vocab)
        self._ids = vocab.ids
        self._longest = max(map(len, vocab.pieces), default=1)

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        start, size = 0, len(pretoken)
        while start < size:
            for end in range(min(size, start + self._longest), start, -1):
                known = self._ids.get(pretoken[start:end])
                if known is not None:
                    ids.append(known)
                    spans.append((start, end))
                    break
            else:
                end = start + 1
                data = pretoken[start:end].encode()
                ids += data  # a byte piece's id is the byte
                spans += [(start, end)] * len(data)
            start = end
        return ids, spans
