"""Bulk: the same ids and texts as one by one, on every input, for every kind of model, with any number of threads."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok import Recipe, Tokenizer, load
from koktok.bulk import Encoder
from koktok.bulk.table import TABLE_BYTES
from koktok.bulk.texts import Texts, block_of_utf8
from koktok.bulk.units import _INERT, NOT_PLAIN, REPEATED, marks_of
from koktok.errors import InputError
from koktok.model.definition import Definition
from koktok.model.vocab import BYTE_CHARS, Vocab, spell
from koktok.text.normalize import Folds, Normalizer
from koktok.tokenizer import TrainedTokenizer

Trained = Callable[..., Path]


def encoder_of(tokenizer: Tokenizer, table_bytes: int = TABLE_BYTES) -> Encoder:
    """A new one, with nothing solved."""
    assert tokenizer.definition is not None
    return Encoder(tokenizer.definition, table_bytes=table_bytes)


_FORMS = (
    "가",
    "\x00",
    "a\x00b",
    "일곱자짜리조각",
    "여덟자가되는조각",
    "가나다" * 9,
    "😀",
    "가😀나",
    "é",
    "\ufffd",
    "ab",
    "나😀",
)
_TAIL = ("[UNK]", "<😀>", "<s>")
_BYTES = (0, 0x41, 0xEA, 0xB0, 0x80, 0xF0, 0x9F, 0x98, 0xED, 0xA0, 0xC0, 0xC3, 0xA9)


def _odd_vocabularies() -> dict[str, Vocab]:
    letters = dict.fromkeys("".join(_FORMS))
    pieces = tuple(dict.fromkeys([*letters, *_FORMS]))
    torn = ["".join(BYTE_CHARS[byte] for byte in text.encode()[1:] + b"\xea") for text in ("가", "가나", "😀")]
    return {
        "characters": Vocab.unigram(dict.fromkeys(pieces, -1.0), specials=_TAIL),
        "bytes": Vocab.bpe_bytes([*(spell(form) for form in _FORMS if len(spell(form)) > 1), *torn], specials=_TAIL),
        "wordpiece": Vocab.plain("wordpiece", [*pieces, *(f"##{piece}" for piece in pieces)], specials=_TAIL),
    }


ODD = {name: TrainedTokenizer(Recipe(), vocab) for name, vocab in _odd_vocabularies().items()}


@pytest.mark.parametrize("name", ODD)
@given(rows=st.lists(st.lists(st.integers(0, 99), max_size=9), max_size=6))
def test_tokens_of_every_form_decode_as_by_decode(name: str, rows: list[list[int]]) -> None:
    """Tokens that are long, torn, outside the first plane, or hold the null that stands between documents."""
    tokenizer = ODD[name]
    vocab = tokenizer.vocab
    named = [*range(0 if name == "wordpiece" else 256, vocab.size), *(_BYTES if name == "characters" else ())]
    if name == "bytes":
        named += [vocab.ids[BYTE_CHARS[byte]] for byte in _BYTES]
    given_ids = [[named[i % len(named)] for i in row] for row in rows]
    for skip in (False, True):
        expected = [tokenizer.decode(row, skip_special_tokens=skip) for row in given_ids]
        assert tokenizer.decode_batch(given_ids, skip_special_tokens=skip) == expected
        assert tokenizer.decode_batch(map(tuple, given_ids), skip_special_tokens=skip) == expected


@pytest.mark.parametrize("name", ["characters", "bytes"])
def test_runs_of_bytes_decode_as_by_decode(name: str) -> None:
    """The first and last characters of every length, whole, cut short, and with each byte changed a little."""
    tokenizer = ODD[name]
    chars = "\x01\x7f\x80\xff\u07ff\u0800\u0fff\u1000\ud7ff\ue000\uffff\U00010000\U0003ffff\U00040000\U0010ffff"
    whole = [char.encode() for char in chars]
    runs = [*whole, *(text[:-1] for text in whole), *(a + b for a, b in itertools.pairwise(whole))]
    for text in whole:
        runs += [text[:i] + bytes([text[i] + d & 255]) + text[i + 1 :] for i in range(len(text)) for d in (-1, 1, 64)]
    for run in runs:
        row = list(run) if name == "characters" else [tokenizer.vocab.ids[BYTE_CHARS[byte]] for byte in run]
        row.append(tokenizer.vocab.size - 3)
        assert tokenizer.decode_batch([row, row]) == [tokenizer.decode(row)] * 2


def test_a_piece_of_text_crosses_every_border(
    trained: Trained, mini: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of few units, batches of few characters, a table that is always full: the ids are the same."""
    import koktok.bulk.encoder as module

    tokenizer = load(trained(pretokenize={"split": "scripts", "digits": "single"}))
    texts = [*mini[:300], "", "1234567890" * 20, "가\u200b나 1\u200b234567", "ㅋ" * 500, "\x00a\x00", " " * 100]
    expected = [tokenizer.encode(text).ids for text in texts]
    for room, batch, table_bytes, threads in ((3, 1 << 21, 0, 1), (64, 50, 1 << 20, 3), (1, 1, 0, 2)):
        monkeypatch.setattr(module, "_ROOM", room)
        monkeypatch.setattr(module, "BATCH", batch)
        monkeypatch.setattr(module, "DOCUMENTS", 7)
        encoder = encoder_of(tokenizer, table_bytes)
        assert [ids.tolist() for ids in encoder(texts, threads=threads)] == expected
        assert [ids.tolist() for ids in encoder(iter(texts), threads=threads)] == expected


def test_the_table_stays_within_its_bound(trained: Trained) -> None:
    tokenizer = load(trained())
    rng = random.Random(0)
    encoder = encoder_of(tokenizer, 1 << 22)
    for _ in range(20):
        encoder(
            ["".join(chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(3)) + f" {i}" for i in range(10_000)], threads=1
        )
        assert max(table.nbytes for table in encoder._idle) <= 1 << 22


def test_units_that_hash_alike_do_not_mix(trained: Trained, mini: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An adversary may find such units: they cost time within a bound, and no id."""
    import koktok.bulk.table as module

    tokenizer = load(trained())
    real = module.hash_units

    def alike(words_at: Any, begins: Any, ends: Any, hashes: Any) -> None:
        real(words_at, begins, ends, hashes)
        hashes[hashes > 0] = 7 << 6 | hashes[hashes > 0] & 63  # the lowest bits are the size

    texts = [*mini[:200], "가나다라마바사아자차카타" * 2, "가나다라마바사아자차카파" * 2]
    monkeypatch.setattr(module, "hash_units", alike)
    tokens = encoder_of(tokenizer)(texts, threads=1)
    assert [ids.tolist() for ids in tokens] == [tokenizer.encode(text).ids for text in texts]


def test_what_was_found_in_a_full_table_keeps_its_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of more than three ids are found, then so many new ones come that the table is full: SIGSEGV, or others' ids."""
    import koktok.bulk.table as module

    monkeypatch.setattr(module, "_FIRST", 1 << 12)
    encoder = Encoder(Definition(Vocab.unigram({"가": -1.0})), table_bytes=1 << 19)
    known = [(4 + i % 20, chr(0xAC01 + i)) for i in range(500)]
    new = [(5, chr(0xB000 + i)) for i in range(4000)]
    words = ["가" * n + end for n, end in known + new]
    encoder(words[: len(known)], threads=1)
    expected = [[256] * n + [*end.encode()] for n, end in known + new]
    assert [ids.tolist() for ids in encoder(words, threads=1)] == expected


def test_ids_above_a_million_are_kept_too() -> None:
    """They have no room beside their word in the table."""
    from koktok.bulk.table import WordTable, count_ids, expand

    data = np.frombuffer("가나다".encode("utf-16-le") + bytes(32), np.uint16)
    begins, ends = np.array([0, 1, 2, 0]), np.array([1, 2, 3, 1])
    table = WordTable()
    heads, jobs, places = table.look_up(data, begins, ends)
    assert jobs.tolist() == [0, 1, 2]
    solved = np.array([1 << 21, 5, 6, 7, 8], np.int32), np.array([0, 2, 5]), np.array([2, 3, 0])
    table.keep(places, *solved)
    for found in (heads, table.look_up(data, begins, ends)[0]):
        assert count_ids(found, solved[2]) == 7
        out, offsets = np.empty(10, np.int32), np.zeros(3, np.int64)
        expand(found, table.ids, *solved, out, 0, np.array([2, 4]), 0, 2, offsets)
        assert out[:7].tolist() == [1 << 21, 5, 6, 7, 8, 1 << 21, 5]
        assert offsets.tolist() == [0, 5, 7]


def test_arrow_strings_are_read_where_they_lie(trained: Trained, mini: list[str]) -> None:
    import pyarrow as pa

    tokenizer = load(trained())
    expected = tokenizer.encode_ids(mini)
    array = pa.array(mini)
    for given_as in (
        array,
        array.cast(pa.large_string()),
        pa.chunked_array([mini[:10], [], mini[10:]]),
        pa.array(["x", *mini])[1:],
        array.dictionary_encode(),
    ):
        assert tokenizer.encode_ids(given_as) == expected
    assert tokenizer.encode_ids(array, allowed_special="all") == tokenizer.encode_ids(mini, allowed_special="all")
    assert tokenizer.encode_ids(pa.array([], pa.string())) == tokenizer.encode_ids([])
    with pytest.raises(InputError, match="expected texts, got 1 nulls"):
        tokenizer.encode_ids(pa.array(["가", None]))
    with pytest.raises(InputError, match="expected an Arrow array of strings, got int64"):
        tokenizer.encode_ids(pa.array([1]))
    torn = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xea")]
    )
    with pytest.raises(InputError, match="not UTF-8"):
        tokenizer.encode_ids(torn)


_EDGES = (*"a\0\x7f\x80é߿ࠀ퟿가\uffff😀\U0010ffff",)


@given(
    data=st.one_of(
        st.binary(max_size=6),
        st.lists(
            st.sampled_from([0, 0x41, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5])
        ).map(bytes),
        st.lists(st.sampled_from(_EDGES)).map(lambda chars: "".join(chars).encode()),
    )
)
def test_utf8_is_read_as_by_python(data: bytes) -> None:
    """Of two documents the border lies within a character at times, which makes neither of them UTF-8."""
    for middle in range(len(data) + 1):
        parts = data[:middle], data[middle:]
        expected: list[str] | None = None
        with contextlib.suppress(UnicodeDecodeError):
            expected = [part.decode() for part in parts]
        found: list[str] | None = None
        with contextlib.suppress(InputError):
            texts = Texts.of_block(block_of_utf8(np.frombuffer(data, np.uint8), np.array([0, middle, len(data)])))
            found = [texts.text(i) for i in range(2)]
            assert texts.content(0, 2) == b"".join(part + b"\0" for part in parts)
        assert found == expected


def test_ids_have_the_smallest_dtype_or_the_one_asked_for(trained: Trained) -> None:
    tokenizer = load(trained())
    assert tokenizer.encode_ids(["가"]).ids.dtype == np.uint16
    assert tokenizer.encode_ids(["가"], dtype=np.int64).ids.dtype == np.int64


@pytest.mark.parametrize(
    "folds",
    [
        Folds(),
        Folds(zero_width=False),
        Folds(fullwidth=True, spaces=True, quotes=True, dashes=True, halfwidth_jamo=True, compatibility=True),
        Folds(lone_jamo=True, repeats=1),
        Folds(repeats=3),
    ],
)
def test_plain_characters_are_normal_beside_anything(folds: Folds) -> None:
    """Every plain character, between neighbours that compose, move or are dropped."""
    normalizer = Normalizer(folds)
    marks = marks_of(normalizer)
    plain = [chr(c) for c in np.flatnonzero((marks & 15) != NOT_PLAIN)]
    assert len(plain) > 40_000
    assert all(any(a <= ord(c) <= b for a, b in _INERT) for c in plain)
    for char in plain:
        if not marks[ord(char)] & REPEATED:
            assert normalizer(char * 5) == char * 5
    for other in ("", "\u0301", "e\u0323\u0301", "\u1100", "\u1161", "\u11a8", "\u1100\u119e", "\u3099", "\u200b", "½"):
        # Between what is not plain on both sides, and a bar that keeps what follows from the character's own mark.
        edge = normalizer("|" + other)
        single = [char for char in plain if not marks[ord(char)] & REPEATED]
        assert normalizer("".join("|" + other + char for char in single)) == "".join(edge + char for char in single)
