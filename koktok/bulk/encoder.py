"""`Encoder`: texts to ids in bulk: units, a table of those that were solved, and solvers for those that were not.

The units of a block are cut, looked up, the new ones solved (plain ones
directly, the others after the normalizer and the pattern), and their ids written out in order. Compiled
code does all of it without the lock of the interpreter, on as many threads as there are tables; a document's ids depend
on nothing but the document, so neither the number of threads nor what the tables hold can change them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from operator import index
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.bulk.arrays import id_type
from koktok.bulk.known_patterns import classes_of, cut_published
from koktok.bulk.solvers import Solver
from koktok.bulk.table import TABLE_BYTES, WordTable, count_ids, expand
from koktok.bulk.texts import CODEC, MARK_UNIT, Texts
from koktok.bulk.units import NOT_PLAIN, cut_threes, cut_units, cuts_of, joints_of, marks_of, pretokens_of
from koktok.errors import UsageError
from koktok.model.definition import Definition
from koktok.model.special import cut_at
from koktok.model.tokens import Tokens
from koktok.text.normalize import Normalizer
from koktok.text.patterns import PublishedPattern
from koktok.text.prefix import CUT_MARK

_ROOM = 1 << 16
"""Units a block: some 400 KB of UTF-16, whose records stay in the second cache until they are written out."""
BATCH, DOCUMENTS = 1 << 19, 1 << 12
"""Characters of text, and documents at most, that are handed to a thread at once. With 1 << 14 documents ten megabytes are five
batches, and one of two threads has three."""


class Encoder:
    """A tokenizer's vocabulary, normalizer and pattern, ready for bulk; it keeps solved words from call to call.

    Examples
    --------
    >>> from koktok.model.vocab import Vocab
    >>> encoder = Encoder(Definition(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5})))
    >>> [ids.tolist() for ids in encoder(["가나가", "", "나"])]
    [[257, 256], [], [258]]
    """

    def __init__(
        self,
        definition: Definition,
        *,
        table_bytes: int = TABLE_BYTES,
        marking: Callable[[Solver], Any] | None = None,
    ) -> None:
        self.definition = definition
        vocab, normalizer, pattern = definition.vocab, definition.normalizer, definition.pattern
        self.vocab, self.normalizer, self.pattern, self.prefix = vocab, normalizer, pattern, definition.prefix
        self.table_bytes = table_bytes
        # Where every syllable is taken apart, compiled code does it, and a syllable is as plain as elsewhere.
        letters = definition.spelled
        self._marks = marks_of(Normalizer(normalizer.folds) if letters else normalizer)
        self._classes: NDArray[np.uint8] | None = None
        self._published = ""
        if isinstance(pattern, PublishedPattern):  # a unit may be several pretokens
            self._published = pattern.name
            self._classes, self._marks = classes_of(self._marks)
        if vocab.guard:  # what may begin a special token is looked at twice
            self._marks = self._marks.copy()
            self._marks[[ord(token[0]) for token in vocab.specials]] = NOT_PLAIN
        self._cuts = cuts_of(pattern)
        if isinstance(pattern, PublishedPattern) and pattern.across_spaces:  # spaces that no piece crosses
            self._cuts = self._cuts & ~joints_of(vocab)
        self.marking = marking
        solver = Solver.of(vocab, letters=letters)
        self._solver = marking(solver) if marking else solver
        self._idle: deque[WordTable] = deque()  # a thread takes a table and gives it back; both are atomic

    def forget(self) -> None:
        """Empty the tables: what follows is as slow, and takes as little memory, as at first."""
        self._idle.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process solves for itself.
        return partial(Encoder, table_bytes=self.table_bytes, marking=self.marking), (self.definition,)

    def __call__(self, texts: Any, *, dtype: Any = None, **options: Any) -> Tokens:
        """Ids of many documents; see `Tokenizer.encode_ids`."""
        parts = [tokens for _, tokens in self.stream(texts, dtype=dtype, **options)]
        return Tokens.joined(parts, id_type(self.vocab.size, dtype))

    def stream(
        self,
        texts: Any,
        *,
        threads: int | None = None,
        dtype: Any = None,
        allowed_special: Collection[str] | Literal["all"] = (),
        before: Sequence[int] = (),
        after: Sequence[int] = (),
        add_special_tokens: bool = False,
    ) -> Iterator[tuple[Texts, Tokens]]:
        """The same, a part at a time, in order, each with its texts: for more text than memory holds."""
        chosen = id_type(self.vocab.size, dtype)
        if add_special_tokens:
            before, after = [*before, *self.definition.frame[0]], [*self.definition.frame[1], *after]
        edges = (np.asarray(before, np.int32), np.asarray(after, np.int32))
        batches = Texts.batches(texts, BATCH, DOCUMENTS, *self._cutter(allowed_special))

        def work(make: Callable[[], Texts]) -> tuple[Texts, Tokens]:
            batch = make()
            return batch, self._encode(batch, chosen, *edges)

        return _in_order(work, batches, workers_of(threads))

    def _cutter(self, allowed: Collection[str] | Literal["all"]) -> tuple[Any, ...]:
        if not allowed:
            return ()
        ids = self.vocab.special_ids
        cut_at("", allowed, ids)  # refuses what is not a special token, also where no text comes
        return (lambda text: cut_at(text, allowed, ids, self.definition.style.lstrip)), ids

    def _encode(
        self, texts: Texts, dtype: np.dtype[Any], before: NDArray[np.int32], after: NDArray[np.int32]
    ) -> Tokens:
        try:
            table = self._idle.pop()
        except IndexError:
            table = WordTable(self.table_bytes)
        if self.prefix:
            texts = texts.prefixed(self._marks == NOT_PLAIN, self.normalizer, self.prefix)
        tokens = self._with(table, texts, dtype, before, after)
        self._idle.append(table)  # not one that was left in the midst of a block: its heads wait for their ids
        return tokens

    def _with(
        self, table: WordTable, texts: Texts, dtype: np.dtype[Any], before: NDArray[np.int32], after: NDArray[np.int32]
    ) -> Tokens:
        data, n = texts.data, len(texts)
        room = min(_ROOM, texts.size + 1)
        begins, ends, plain = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.bool_)
        closes = np.zeros(n, np.int64)
        state = np.array([0, -1])
        offsets = np.zeros(n + 1, np.int64)
        out, used = np.empty(texts.size // 2 + 16, dtype), 0
        while state[0] < n:
            first = int(state[0])
            n_units = cut_units(
                data, texts.begins, texts.ends, state, self._marks, self._cuts,
                begins, ends, plain, closes,
            )  # fmt: skip
            heads, jobs, places = table.look_up(data, begins[:n_units], ends[:n_units])
            solved = self._solve(data, begins, ends, plain, jobs)
            table.keep(places, *solved)
            wanted = used + int(count_ids(heads, solved[2]))
            if wanted + 3 > len(out):
                out = np.concatenate([out[:used], np.empty(max(wanted + 3, 2 * len(out)) - used, dtype)])
            expand(heads, table.ids, *solved, out, used, closes, first, int(state[0]), offsets)
            used = wanted
        if len(before) or len(after) or texts.specials is not None:
            return _arranged(out[:used], offsets, texts, before, after)
        return Tokens(out[:used], offsets)

    def _solve(
        self,
        data: NDArray[np.uint16],
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        plain: NDArray[np.bool_],
        jobs: NDArray[np.int64],
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Ids of units, and for each unit its first one and how many."""
        easy = plain[jobs]
        ids, offsets = self._solve_plain(data, begins[jobs[easy]], ends[jobs[easy]])
        if easy.all():
            return ids, offsets[:-1], np.diff(offsets)
        firsts, counts = np.empty(len(jobs), np.int64), np.empty(len(jobs), np.int64)
        firsts[easy], counts[easy] = offsets[:-1], np.diff(offsets)
        normalizer, pattern, vocab = self.normalizer, self.pattern, self.vocab
        pretokens: list[str] = []
        upto = [0]
        for k in jobs[~easy]:
            unit = str(data[begins[k] : ends[k]].data, CODEC, "surrogatepass")
            for pretoken in pattern.pretokenize(CUT_MARK.join(map(normalizer, unit.split(chr(MARK_UNIT))))):
                pretokens += vocab.guarded(pretoken) if pretoken != CUT_MARK else ()
            upto.append(len(pretokens))
        spelled = Texts.of(pretokens)
        more, offsets = self._solver(spelled.data, spelled.begins, spelled.ends)
        unit_offsets = offsets[np.array(upto)]
        firsts[~easy], counts[~easy] = unit_offsets[:-1] + len(ids), np.diff(unit_offsets)
        return np.concatenate([ids, more]), firsts, counts

    def _solve_plain(
        self, data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of units that are normal, and where those of each begin and end."""
        if self._classes is None and self.pattern.bigram:
            solved: tuple[NDArray[np.int32], NDArray[np.int64]] = self._solver(data, begins, ends)
            return solved
        if self._classes is None:
            begins, ends, upto = pretokens_of(cut_threes, data, begins, ends, self._marks)
        else:
            begins, ends, upto = cut_published(data, begins, ends, self._classes, self._published)
        ids, offsets = self._solver(data, begins, ends)
        return ids, offsets[upto]


def _arranged(
    ids: NDArray[Any], offsets: NDArray[np.int64], texts: Texts, before: NDArray[np.int32], after: NDArray[np.int32]
) -> Tokens:
    """Documents from their parts and special tokens, with the tokens before and after each."""
    closes = np.arange(1, len(texts) + 1) if texts.closes is None else texts.closes
    specials = np.full(len(texts), -1, np.int32) if texts.specials is None else texts.specials
    edges = len(closes) * (len(before) + len(after))
    out = np.empty(len(ids) + int((specials >= 0).sum()) + edges, ids.dtype)
    ends = np.zeros(len(closes) + 1, np.int64)
    _arrange(ids, offsets, specials, closes, before, after, out, ends)
    return Tokens(out, ends)


@njit(nogil=True, cache=True)
def _arrange(ids, offsets, specials, closes, before, after, out, ends):
    used, part = 0, 0
    for document in range(len(closes)):
        for i in before:
            out[used] = i
            used += 1
        while part < closes[document]:
            if specials[part] >= 0:
                out[used] = specials[part]
                used += 1
            for at in range(offsets[part], offsets[part + 1]):
                out[used] = ids[at]
                used += 1
            part += 1
        for i in after:
            out[used] = i
            used += 1
        ends[document + 1] = used


def workers_of(threads: int | None) -> int:
    """How many threads: as many as the process may use cores, where none are named."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        n = 0 if isinstance(threads, bool) else index(threads)
    except TypeError:
        n = 0
    if n < 1:
        raise UsageError(f"threads = {threads!r}; expected a whole number of at least 1", hint="threads=1")
    return n


def _in_order(
    work: Callable[[Callable[[], Texts]], tuple[Texts, Tokens]], batches: Iterator[Callable[[], Texts]], workers: int
) -> Iterator[tuple[Texts, Tokens]]:
    """Results in the order of the batches; at most two batches a thread are waiting."""
    first = list(islice(batches, 2))
    if workers == 1 or len(first) < 2:  # a thread costs more than so little text
        yield from map(work, chain(first, batches))
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[tuple[Texts, Tokens]]] = deque()
        for batch in chain(first, batches):
            waiting.append(pool.submit(work, batch))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
