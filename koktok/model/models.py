"""The run-time models: a pretoken to the pieces that it is made of, a class for each algorithm.

They define the ids, in Python that can be read; `koktok.bulk` gives the same ids in compiled code, and tests compare the two.
A model only *cuts*; ids, spans, bytes, the guard of special tokens and the unknown token follow in `Model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush, nlargest
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from koktok.errors import UsageError
from koktok.model.vocab import KINDS, MARK, Vocab, VocabKind, spell

if TYPE_CHECKING:
    import numpy as np

Encoded = tuple[Sequence[int], Sequence[tuple[int, int]]]
"""Ids and, in parallel, half-open spans in code points of the pretoken.

Spans of byte-level tokens may overlap: a token that holds a part of a character spans all of it.
"""

Skip = Callable[[], bool]
"""Whether dropout skips a merge or a match."""

MAX_ALPHA = 1e6
"""Largest `alpha`: a step of a score (1/256) then makes a segmentation e^3906 times likelier, and only the best is drawn."""


class Model:
    """A pure function of one pretoken; callers cache it."""

    sampled_by: ClassVar[Literal["alpha", "dropout"] | None] = None
    """The keyword of `sample`; None where a pretoken has one segmentation only."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self._bytewise, self._drops_spaces = vocab.bytewise, vocab.kind == "wordpiece"
        self._mark = len(MARK) if vocab.marked else 0

    @property
    def lossless(self) -> bool:
        """True where decode(encode(x)) == x for every x."""
        return KINDS[self.vocab.kind].lossless

    def cut(self, text: str, skip: Skip | None = None) -> list[str] | None:
        """The pieces of a text, and characters that are no piece; None where the whole text is unknown."""
        raise NotImplementedError

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans of the best segmentation; never special tokens, except the unknown token of lossy kinds."""
        return self._encoded(pretoken, self.cut)

    def sample(self, pretoken: str, *, dropout: float, rng: np.random.Generator) -> Encoded:
        """A segmentation that skips each merge or match with this probability; 0 is `encode`."""
        if not 0 <= dropout <= 1:
            raise UsageError(f"expected a probability from 0 to 1 as `dropout`, got {dropout}")
        return self._encoded(pretoken, lambda text: self.cut(text, lambda: rng.random() < dropout))

    def _encoded(self, pretoken: str, cut: Callable[[str], list[str] | None]) -> Encoded:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        ids_of, end = self.vocab.ids.get, 0
        for part in self.vocab.guarded(pretoken):  # the pretoken itself, unless it spells a special token
            whole = spell(part) if self._bytewise else part
            text = whole.lstrip(" ") if self._drops_spaces else whole
            start = end + len(whole) - len(text)
            end += len(whole)
            pieces = cut(text)
            if pieces is None:
                ids.append(self.vocab.unknown_id)
                spans.append((start, end))
                continue
            mark = 0
            for piece in pieces:
                end = start + len(piece) - mark
                known = ids_of(piece)
                if known is None:
                    data = piece.encode()
                    ids += data  # the id of a byte piece is the byte
                    spans += [(start, end)] * len(data)
                else:
                    ids.append(known)
                    spans.append((start, end))
                start, mark = end, self._mark
        if self._bytewise:  # a piece that holds a part of a character spans all of it
            owner = [i for i, char in enumerate(pretoken) for _ in char.encode()]
            spans = [(owner[start], owner[end - 1] + 1) for start, end in spans]
        return ids, spans


SCORE = ""
"""Key of a node of the trie under which the score of the piece that ends there is stored; other keys are characters."""


class UnigramModel(Model):
    """The segmentation with the highest sum of scores, by Viterbi (Kudo 2018, arXiv:1804.10959), linear in the length.

    Scores are multiples of 1/256, so equal sums are common, and ids agree between libraries only if ties break alike: of
    equal sums the one whose last piece starts earliest wins, as in Hugging Face and SentencePiece. Hugging Face keeps byte
    pieces in its trie, so text that spells `<0x0A>` beside unknown characters may differ there; it also fuses the spans of
    unknown characters in a row.

    Examples
    --------
    >>> model = UnigramModel(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
    >>> model.encode("가나é")  # é is no piece: its two bytes share its span
    ([257, 195, 169], [(0, 2), (2, 3), (2, 3)])
    >>> [(ids, score) for (ids, _), score in model.n_best("가나", 9)]
    [([257], -1.5), ([256, 258], -3.0)]
    """

    sampled_by = "alpha"

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(vocab)
        self._unknown = vocab.unknown_score

    @cached_property
    def _trie(self) -> dict[str, Any]:
        trie: dict[str, Any] = {}
        for piece, score in zip(self.vocab.pieces, self.vocab.scores, strict=True):
            node = trie
            for char in piece:
                node = node.setdefault(char, {})
            node[SCORE] = score
        return trie

    def cut(self, text: str, skip: Skip | None = None) -> list[str]:  # noqa: ARG002
        """The pieces of the best path."""
        size, first, unknown = len(text), self._trie.get, self._unknown
        best, back = [0.0] + [-math.inf] * size, [0] * (size + 1)  # for every end: the best sum, and its last start
        for start, char in enumerate(text):
            total, end, node = best[start], start + 1, first(char)
            # A character that no piece holds is a step of every path.
            if node is None and total + unknown > best[end]:
                best[end], back[end] = total + unknown, start
            while node is not None:
                score = node.get(SCORE)
                if score is not None and total + score > best[end]:
                    best[end], back[end] = total + score, start
                if end == size:
                    break
                node = node.get(text[end])
                end += 1
        pieces, end = [], size
        while end:
            pieces.append(text[back[end] : end])
            end = back[end]
        return pieces[::-1]

    def n_best(self, pretoken: str, n: int) -> list[tuple[Encoded, float]]:
        """The `n` best segmentations with their sums of scores, best first; the first is that of `encode`."""
        if n < 1:
            raise UsageError(f"expected at least 1 as `n`, got {n}")
        paths: list[list[tuple[float, int, int]]] = [[(0.0, 0, 0)]]  # by end: minus score, last start, which path to it
        for arcs in self._arcs(pretoken):
            longer = [(path[0] - score, start, k) for start, score in arcs for k, path in enumerate(paths[start])]
            paths.append(sorted(longer)[:n])
        result = []
        for rank, (cost, _, _) in enumerate(paths[-1]):
            cuts, k = [len(pretoken)], rank
            while cuts[-1]:
                _, start, k = paths[cuts[-1]][k]
                cuts.append(start)
            result.append((self._between(pretoken, cuts), -cost or 0.0))
        return result

    def sample(  # type: ignore[override]
        self, pretoken: str, *, alpha: float = 1.0, rng: np.random.Generator, n_best: int | None = None
    ) -> Encoded:
        """A segmentation drawn with a probability proportional to exp(alpha · score), from all or from the `n_best`.

        Drawn exactly, by forward-filtering and backward-sampling (Scott 2002), as in SentencePiece for `nbest_size=-1`.
        """
        if not 0 <= alpha <= MAX_ALPHA:
            raise UsageError(f"expected a number from 0 to {MAX_ALPHA:g} as `alpha`, got {alpha}")
        if n_best is not None:
            best = self.n_best(pretoken, n_best)
            return best[_draw([alpha * score for _, score in best], rng)][0]
        forward, arcs = [0.0], list(self._arcs(pretoken))  # forward[end]: log of the summed weight of all paths to it
        for ways in arcs:
            logs = [forward[start] + alpha * score for start, score in ways]
            top = max(logs)
            forward.append(top + math.log(sum([math.exp(log - top) for log in logs])))
        cuts = [len(pretoken)]
        while cuts[-1]:
            ways = arcs[cuts[-1] - 1]
            cuts.append(ways[_draw([forward[start] + alpha * score for start, score in ways], rng)][0])
        return self._between(pretoken, cuts)

    def _between(self, pretoken: str, cuts: list[int]) -> Encoded:
        """Ids and spans of the pieces between `cuts`, which fall from the end to 0."""
        return self._encoded(pretoken, lambda text: [text[a:b] for b, a in pairwise(cuts)][::-1])

    def _arcs(self, text: str) -> Iterator[list[tuple[int, float]]]:
        """For every end from 1 on, the pieces that end there as (start, score), starts ascending."""
        waiting: dict[int, list[tuple[int, float]]] = {}
        for start, char in enumerate(text):
            end, node = start + 1, self._trie.get(char)
            if node is None:
                waiting.setdefault(end, []).append((start, self._unknown))
            while node is not None:
                if (score := node.get(SCORE)) is not None:
                    waiting.setdefault(end, []).append((start, score))
                node = node.get(text[end]) if end < len(text) else None
                end += 1
            yield waiting.pop(start + 1)


def _draw(logs: list[float], rng: np.random.Generator) -> int:
    """An index with a probability proportional to exp(log)."""
    top = max(logs)
    weights = [math.exp(log - top) for log in logs]
    left = rng.random() * sum(weights)
    for i, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return i
    return len(logs) - 1  # rounding


class BpeModel(Model):
    """Merge the neighbours whose merged piece has the lowest rank, leftmost first, until nothing merges; n log n.

    Sennrich et al. (2016, arXiv:1508.07909) rank pairs. Here, as in tiktoken and SentencePiece, a rank belongs to the
    *piece*, and any pair that spells it may merge. Hugging Face ranks pairs and gets every split of every piece: when a piece
    is made, no merge has crossed its edges, so the merges inside were those of the piece by itself, and one split of each piece
    is ever merged. A merge that dropout skips comes back when one of its parts grows, as in SentencePiece (Provilkov et
    al. 2020, arXiv:1910.13267).

    Examples
    --------
    >>> BpeModel(Vocab.bpe("가나", ["가나"])).encode("나가나é")
    ([257, 258, 195, 169], [(0, 1), (1, 3), (3, 4), (3, 4)])
    >>> BpeModel(Vocab.bpe_bytes(["ê°", "ê°Ģ"])).encode("가a")
    ([257, 64], [(0, 1), (1, 2)])
    """

    sampled_by = "dropout"

    def cut(self, text: str, skip: Skip | None = None) -> list[str]:
        """The pieces when nothing merges any more."""
        ranks, tokens, size = self.vocab.ids, self.vocab.tokens, len(text)
        parts = list(text)  # a part that was merged into its left neighbour is ""
        right, left = list(range(1, size + 1)), list(range(-1, size - 1))
        # One integer an entry, rank · size + place: it sorts by rank, then from the left, and compares fast.
        heap = [rank * size + i for i in range(size - 1) if (rank := ranks.get(text[i : i + 2])) is not None]
        heapify(heap)
        while heap:
            rank, i = divmod(heappop(heap), size)
            j = right[i]
            if not parts[i] or j >= size or parts[i] + parts[j] != tokens[rank]:
                continue  # one of the two was merged with something else since
            if skip is not None and skip():
                continue
            parts[i], parts[j] = tokens[rank], ""
            k = right[i] = right[j]
            if k < size:
                left[k] = i
                if (merged := ranks.get(parts[i] + parts[k])) is not None:
                    heappush(heap, merged * size + i)
            if (h := left[i]) >= 0 and (merged := ranks.get(parts[h] + parts[i])) is not None:
                heappush(heap, merged * size + h)
        return [part for part in parts if part]


class LongestMatchModel(Model):
    """The longest listed piece from the left; a character that is not listed becomes its bytes.

    No analyser runs, so a "morpheme" tokenizer segments 학교에 as the list says, not as the sentence says.

    Examples
    --------
    >>> model = LongestMatchModel(Vocab.plain("morpheme", [*"학교에서", "학교", "에서"]))
    >>> [model.vocab.tokens[i] for i in model.encode("학교에서é")[0]]
    ['학교', '에서', '<0xC3>', '<0xA9>']
    """

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(vocab)
        self._longest = max(map(len, vocab.pieces), default=1)

    def cut(self, text: str, skip: Skip | None = None) -> list[str] | None:  # noqa: ARG002
        """The pieces, and characters that are none."""
        return longest_first(text, self.vocab.ids, self._longest)


class WordPieceModel(LongestMatchModel):
    """The longest piece from the left, after the first only continued ones (##); a word with an unknown part is unknown.

    The spaces before a word are dropped, but not where pieces are spelled in bytes. Dropout is MaxMatch-dropout (Hiraoka
    2022): the next shorter match is taken, and a match of one character stays.

    Examples
    --------
    >>> vocab = Vocab.plain("wordpiece", ["학교", "학", "##교", "##에서", "##에"], specials=["[UNK]"])
    >>> WordPieceModel(vocab).encode(" 학교에서"), WordPieceModel(vocab).encode(" 학원")
    (([0, 3], [(1, 3), (3, 5)]), ([5], [(1, 3)]))
    """

    sampled_by = "dropout"

    def cut(self, text: str, skip: Skip | None = None) -> list[str] | None:
        """The pieces of a word; None for one that has no such pieces, or is too long."""
        fits = len(text) <= self.vocab.longest_word
        return longest_first(text, self.vocab.ids, self._longest, MARK, skip) if fits else None


class WordModel(Model):
    """A pretoken (eojeol 어절, its leading space included) is one token, or unknown.

    Examples
    --------
    >>> model = WordModel(Vocab.plain("word", [" 학교", " 집"], specials=["[UNK]"]))
    >>> model.encode(" 집"), model.encode(" 집에")
    (([1], [(0, 2)]), ([2], [(0, 3)]))
    """

    def cut(self, text: str, skip: Skip | None = None) -> list[str] | None:  # noqa: ARG002
        """The word itself, if it is known."""
        return [] if not text else [text] if text in self.vocab.ids else None


MODELS: Mapping[VocabKind, type[Model]] = {
    "unigram": UnigramModel,
    "bpe": BpeModel,
    "bpe-bytes": BpeModel,
    "wordpiece": WordPieceModel,
    "wordpiece-bytes": WordPieceModel,
    "word": WordModel,
    "syllable": LongestMatchModel,
    "jamo": LongestMatchModel,
    "ngram": LongestMatchModel,
    "morpheme": LongestMatchModel,
}
"""The run-time model of each kind of vocabulary."""


def longest_first(
    text: str, known: Mapping[str, int], longest: int, mark: str = "", skip: Skip | None = None
) -> list[str] | None:
    """The longest known piece from the left, again and again.

    With a mark, pieces after the first begin with it, and the result is None where a part is unknown; without one,
    an unknown character is a part of its own.
    """
    pieces: list[str] = []
    start, size = 0, len(text)
    while start < size:
        prefix = mark if start else ""
        for end in range(min(size, start + longest), start, -1):
            piece = prefix + text[start:end]
            if piece in known and (skip is None or end == start + 1 or not skip()):
                break
        else:
            if mark:
                return None
            piece, end = text[start], start + 1
        pieces.append(piece)
        start = end
    return pieces


def model_for(vocab: Vocab) -> Model:
    """The model that runs `vocab`.

    Examples
    --------
    >>> model = model_for(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
    >>> model.encode("가나가")
    ([257, 256], [(0, 2), (2, 3)])
    """
    return MODELS[vocab.kind](vocab)


# --- Sampling ---------------------------------------------------------------------------------------------------------


def sampler_for(
    model: Model, *, seed_or_rng: int | np.random.Generator, **keywords: float | None
) -> Callable[[str], Encoded]:
    """A function that draws a segmentation of a pretoken; its errors name the keyword of this kind of model."""
    import numpy as np

    kind, keyword = model.vocab.kind, model.sampled_by
    if keyword is None:
        raise UsageError(f"a {kind} tokenizer has one segmentation of a text only", hint="tokenizer.encode(text)")
    hint = f"tokenizer.sample(text, {keyword}=0.1, seed_or_rng=0)"
    options: dict[str, Any] = {name: value for name, value in keywords.items() if value is not None}
    for name in options:
        if name != keyword and (keyword, name) != ("alpha", "n_best"):
            raise UsageError(f"`{name}` is not for a {kind} tokenizer, whose samples take `{keyword}`", hint=hint)
    if keyword not in options:
        raise UsageError(f"samples of a {kind} tokenizer require `{keyword}`", hint=hint)
    for name, value in options.items():
        number, expected = (int, "a whole number") if name == "n_best" else (int | float, "a number")
        if isinstance(value, bool) or not isinstance(value, number):
            raise UsageError(f"expected {expected} as `{name}`, got {value!r}", hint=hint)
    try:
        rng = np.random.default_rng(seed_or_rng)
    except (TypeError, ValueError) as error:
        raise UsageError(f"seed_or_rng = {seed_or_rng!r}: {error}", hint=hint) from None
    return lambda pretoken: model.sample(pretoken, rng=rng, **options)


def n_best_of(model: Model) -> Callable[[str, int], list[tuple[Encoded, float]]]:
    """The function that gives the n best segmentations of a pretoken."""
    if not isinstance(model, UnigramModel):
        raise UsageError(
            f"a {model.vocab.kind} tokenizer has no scores of segmentations, so it cannot rank them",
            hint="koktok train --model unigram",
        )
    return model.n_best


def best_choices(lists: Iterable[Sequence[float]], n: int) -> list[tuple[tuple[int, ...], float]]:
    """The `n` highest sums of one number from each list, as the choice of each list and the sum, best first."""
    if n < 1:
        raise UsageError(f"expected at least 1 as `n`, got {n}")
    best: list[tuple[float, Any]] = [(0.0, ())]  # sums, and the choices backwards: (last, (the one before, ...))
    for scores in lists:
        longer = ((total + score, (i, before)) for total, before in best for i, score in enumerate(scores))
        best = nlargest(n, longer, key=itemgetter(0))
    result = []
    for total, chain in best:
        choice = []
        while chain:
            i, chain = chain
            choice.append(i)
        result.append((tuple(reversed(choice)), total))
    return result
