"""The run-time models: for every kind, the same ids in Python, in compiled code, in Hugging Face and in SentencePiece.

Vocabularies are drawn at random from few characters, so that ties, repetitions and pieces that no join reaches are the rule.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.models import best_sum, spm
from tokenizers import Tokenizer, pre_tokenizers

from koktok.bulk.solvers import Solver
from koktok.bulk.texts import Texts
from koktok.model.models import UnigramModel, WordPieceModel, model_for
from koktok.model.vocab import BYTE_CHARS, KINDS, MARK, Vocab, VocabKind, spell
from koktok.runtimes.huggingface import tokenizer_json
from koktok.runtimes.huggingface.tokenizer_json import _model
from koktok.runtimes.sentencepiece import model_proto

ALPHABET = "가나ㅋ a<0x>A#"
"""Of every vocabulary; holds what spells the byte piece `<0x0A>`, and the mark of WordPiece."""

SPECIALS = ("[PAD]", "[UNK]")

# "é", "😀" and "▁" are in no vocabulary.
texts = st.text(ALPHABET + "é😀▁", max_size=40) | st.integers(1, 60).map(lambda n: "ㅋ" * n)


@st.composite
def vocabularies(draw: st.DrawFn, kind: VocabKind) -> Vocab:
    """Pieces in any order: many that only some order of joins can reach, as after an import or a selection."""
    row = KINDS[kind]
    if row.bytewise:
        text = spell(draw(texts))
        spans = st.tuples(st.integers(0, len(text)), st.integers(2, 6)).map(lambda span: text[span[0] : sum(span)])
        longer = sorted(piece for piece in draw(st.sets(spans, max_size=20)) if len(piece) > 1)
    else:
        longer = sorted(draw(st.sets(st.text(ALPHABET, min_size=2, max_size=5), max_size=25)))
    longer = [] if KINDS[kind].single else longer
    alphabet = sorted(BYTE_CHARS if row.bytewise else ALPHABET)
    pieces = [*alphabet, *draw(st.permutations(longer))]
    if row.marked:
        inside = [MARK + piece for piece in pieces]
        if not row.bytewise:  # where some parts of words are unknown
            pieces, inside = ([p for p in part if draw(st.booleans())] for part in (pieces, inside))
        pieces = list(dict.fromkeys([*pieces, *inside]))
    if kind == "unigram":
        level = draw(st.booleans())
        return Vocab.unigram({piece: -1.0 if level else -draw(st.integers(1, 4)) / 2 for piece in pieces})
    if kind == "bpe-bytes":
        return Vocab.bpe_bytes(pieces[len(alphabet) :])
    return Vocab.plain(kind, pieces, specials=SPECIALS if row.unknown else ())


def hugging_face(vocab: Vocab, text: str, **changes: Any) -> list[tuple[int, tuple[int, int]]]:
    """Ids and offsets of the model that tokenizer.json holds, or of one that differs in a value."""
    absent = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    content = {
        "version": "1.0",
        "added_tokens": [],
        **dict.fromkeys(absent),
        "model": _model(vocab) | changes,
    }
    tokenizer = Tokenizer.from_str(json.dumps(content))
    if vocab.bytewise:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    encoding = tokenizer.encode(text)
    return list(zip(encoding.ids, encoding.offsets, strict=True))


def ids_of_hf(vocab: Vocab, text: str, **changes: Any) -> list[int]:
    return [i for i, _ in hugging_face(vocab, text, **changes)]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(data=st.data())
def test_all_engines_give_the_same_ids(kind: VocabKind, data: st.DataObject) -> None:
    """Law 6 of models. Spans are compared where Hugging Face does not fuse those of unknown characters."""
    vocab, text = data.draw(vocabularies(kind)), data.draw(texts)
    ids, spans = model_for(vocab).encode(text)
    spelled = Texts.of([text])
    assert Solver.of(vocab)(spelled.data, spelled.begins, spelled.ends)[0].tolist() == ids
    if kind in tokenizer_json.MODEL_TYPES and text:
        bare = text.lstrip(" ") if kind == "wordpiece" else text
        lead = len(text) - len(bare)
        theirs = [(i, (a + lead, b + lead)) for i, (a, b) in hugging_face(vocab, bare)]
        assert [i for i, _ in theirs] == ids
        assert vocab.n_bytes or [span for _, span in theirs] == spans
    if kind in model_proto.MODEL_TYPES:
        assert spm(vocab).encode(text) == ids


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_spans_cover_the_pretoken_and_ids_spell_it(kind: VocabKind, data: st.DataObject) -> None:
    vocab, text = data.draw(vocabularies(kind)), data.draw(texts)
    model = model_for(vocab)
    ids, spans = model.encode(text)
    covered = {at for a, b in spans for at in range(a, b)}
    assert covered == set(range(len(text) - len(text.lstrip(" ")) if kind == "wordpiece" else 0, len(text)))
    assert spans == sorted(spans)
    if vocab.bytewise:
        assert all(i < vocab.first_special for i in ids)
    else:
        distinct = list(dict.fromkeys(spans))
        assert all(one[1] == two[0] for one, two in pairwise(distinct))
        for i, (start, end) in zip(ids, spans, strict=True):
            if vocab.n_bytes <= i < vocab.first_special:
                assert text[start:end] in (vocab.tokens[i], vocab.tokens[i].removeprefix(MARK))
    if model.lossless:
        assert b"".join(vocab.token_bytes[i] for i in ids).decode() == text


def test_every_kind_has_a_row() -> None:
    assert set(KINDS) == set(get_args(VocabKind))


# ── Unigram ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(vocabularies("unigram"), texts)
def test_unigram_score_is_the_best(vocab: Vocab, text: str) -> None:
    ids, spans = UnigramModel(vocab).encode(text)
    score = sum(vocab.scores[i - 256] for i in ids if i >= 256)
    unknown = sum(text[a:b] not in vocab.ids for a, b in dict.fromkeys(spans))
    assert score + unknown * (vocab.byte_score - 10) == best_sum(vocab, text)


def test_hugging_face_reads_text_as_a_byte_piece_beside_unknown_characters() -> None:
    vocab = Vocab.unigram({"가": -1.0})
    text = "<0x0A>"
    assert UnigramModel(vocab).encode(text)[0] == spm(vocab).encode(text) == list(text.encode())
    assert ids_of_hf(vocab, text) == [10]  # why trainers must put these characters into every vocabulary


@pytest.mark.parametrize(
    "vocab",
    [
        Vocab.unigram({"ㅋ": -1, "ㅋㅋ": -1.5, "가": -1, "가ㅋ": -2, "ㅋㅋㅋㅋㅋㅋㅋㅋ": -3}),
        Vocab.bpe("ㅋ가", ["ㅋㅋ", "ㅋㅋㅋㅋ", "가ㅋ", "ㅋㅋㅋㅋㅋㅋㅋㅋ", "가가"]),
    ],
    ids=["unigram", "bpe"],
)
def test_a_long_pretoken_keeps_its_ids(vocab: Vocab) -> None:
    text = "".join(random.Random(0).choices("ㅋㅋㅋ가", k=1 << 17))
    assert model_for(vocab).encode(text)[0] == ids_of_hf(vocab, text)


# ── BPE ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_byte_chars_are_gpt2s() -> None:
    assert sorted(BYTE_CHARS) == sorted(pre_tokenizers.ByteLevel.alphabet())
    text = bytes(range(128)).decode() + "éÿ가"
    [(spelled, _)] = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    assert spelled == "".join(BYTE_CHARS[byte] for byte in text.encode())


# ── WordPiece ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_special_tokens_are_not_reached_by_text() -> None:
    """Such text is cut behind its first character, so that Hugging Face finds no special token in its own table."""
    vocab = Vocab.plain("wordpiece", ["[", "P", "##A", "##D", "##]", "##P"], specials=SPECIALS)
    ids, spans = WordPieceModel(vocab).encode(" [PAD]")
    assert [vocab.tokens[i] for i in ids] == ["[", "P", "##A", "##D", "##]"]
    assert spans == [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]


def test_dropout_follows_its_probabilities() -> None:
    vocab = Vocab.plain("wordpiece", ["가나다", "가나", "가", "##나다", "##나", "##다"], specials=SPECIALS)
    model = WordPieceModel(vocab)
    rng = np.random.default_rng(7)
    seen = Counter(
        tuple(vocab.tokens[i] for i in model.sample("가나다", dropout=0.25, rng=rng)[0]) for _ in range(4000)
    )
    expected = {
        ("가나다",): 0.75,
        ("가나", "##다"): 0.25 * 0.75,
        ("가", "##나다"): 0.25 * 0.25 * 0.75,
        ("가", "##나", "##다"): 0.25 * 0.25 * 0.25,
    }
    chi2 = sum((seen[key] - 4000 * p) ** 2 / (4000 * p) for key, p in expected.items())
    assert chi2 < 11.34  # 3 degrees of freedom, 1 %
    assert sum(seen.values()) == sum(seen[key] for key in expected)


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────────────────────


MORPHEMES = Vocab.plain("morpheme", [*"학교에서는 ", "학교", " 학교", "에서", "에서는"], specials=["</s>"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 학교에서는", [" 학교", "에서는"]),
        ("학교에서", ["학교", "에서"]),
        ("교에", ["교", "에"]),
        ("</s>", ["<0x3C>", "<0x2F>", "<0x73>", "<0x3E>"]),
        ("é학", ["<0xC3>", "<0xA9>", "학"]),
        ("", []),
    ],
)
def test_longest_match(text: str, expected: list[str]) -> None:
    ids, _ = model_for(MORPHEMES).encode(text)
    assert [MORPHEMES.tokens[i] for i in ids] == expected


def test_words_are_known_or_unknown() -> None:
    vocab = Vocab.plain("word", [" 집", "집"], specials=["<pad>", "<unk>"])
    model = model_for(vocab)
    assert not model.lossless
    assert model.encode(" 집") == ([0], [(0, 2)])
    assert model.encode("집") == ([1], [(0, 1)])
    assert model.encode(" 집에") == ([vocab.unknown_id], [(0, 3)])
    assert model.encode("<pad>") == ([vocab.unknown_id] * 2, [(0, 1), (1, 5)])  # never the special token
    assert model.encode("") == ([], [])
