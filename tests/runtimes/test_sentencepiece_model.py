"""SentencePiece's message, beside the code that SentencePiece generated for it and its own loader."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from koktok.runtimes.sentencepiece.message import BYTE, NORMAL, ModelProto, NormalizerSpec, Row, TrainerSpec


@pytest.fixture(scope="module")
def generated() -> Any:
    return pytest.importorskip("sentencepiece.sentencepiece_model_pb2").ModelProto


@pytest.fixture(scope="module", params=["unigram", "bpe", "theirs"])
def data(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> bytes:
    if request.param != "theirs":
        return (trained(train={"model": request.param}) / "tokenizer.model").read_bytes()
    model = io.BytesIO()
    sentences = iter(["나는 학교에 갔다", "너는 집에 갔다 1,234", "학교에서 집으로 간다"] * 20)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_writer=model, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def test_reads_what_the_generated_code_reads_and_writes_the_same_bytes(generated: Any, data: bytes) -> None:
    theirs, ours = generated.FromString(data), ModelProto(data)
    assert len(ours.pieces) == len(theirs.pieces) > 20
    for mine, other in [
        *zip(ours.pieces, theirs.pieces, strict=True),
        (ours.trainer_spec, theirs.trainer_spec),
        (ours.normalizer_spec, theirs.normalizer_spec),
        (ours.denormalizer_spec, theirs.denormalizer_spec),
    ]:
        for name in {*vars(type(mine))} - {"__module__", "__doc__", "__slots__", "__firstlineno__", "input"}:
            if not name.startswith("__"):
                assert getattr(mine, name) == getattr(other, name), name
    assert ours.serialized() == data == theirs.SerializeToString(deterministic=True)
    changes = {"vocab_size": 7, "pad_id": -1, "unk_piece": "모름", "byte_fallback": True}
    for proto in theirs, ours:
        proto.pieces[3].piece, proto.pieces[3].score, proto.pieces[3].type = "새것", -0.1, BYTE
        proto.normalizer_spec.name = "x" * 300
        proto.denormalizer_spec.add_dummy_prefix = False
        for name, value in changes.items():
            setattr(proto.trainer_spec, name, value)
    theirs.pieces.add(piece="가", score=1e-40, type=NORMAL)
    ours.add("가", 1e-40, NORMAL)
    assert ours.serialized() == theirs.SerializeToString(deterministic=True) != data


def test_defaults_are_those_of_the_generated_code(generated: Any) -> None:
    theirs = generated()
    for mine, other in (
        (Row(), generated.SentencePiece()),
        (TrainerSpec(), theirs.trainer_spec),
        (NormalizerSpec(), theirs.normalizer_spec),
    ):
        names = [name for name in vars(type(mine)) if not name.startswith("__") and name != "input"]
        assert len(names) > 2
        assert [getattr(mine, name) for name in names] == [getattr(other, name) for name in names]


def test_the_library_loads_what_we_write_and_gives_the_same_ids(data: bytes) -> None:
    before, after = (
        sentencepiece.SentencePieceProcessor(model_proto=model) for model in (data, ModelProto(data).serialized())
    )
    text = "나는 학교에 갔다. 1,234원 ①"
    assert before.encode(text) == after.encode(text)


def test_unknown_fields_and_messages_in_parts_come_back() -> None:
    strange = bytes.fromhex("a2 06 03 61 62 63 a8 06 ff ff 03 b1 06 00 01 02 03 04 05 06 07 bd 06 00 00 80 3f")
    row = Row(bytes.fromhex("0a 03 ea b0 80 18 07") + strange)
    assert (row.piece, row.type) == ("가", NORMAL)  # 7 is no type that is known
    assert row.serialized() == bytes.fromhex("0a 03 ea b0 80 18 07") + strange
    row.score = math.inf
    assert row.serialized() == bytes.fromhex("0a 03 ea b0 80 15 00 00 80 7f 18 07") + strange
    model = ModelProto(bytes.fromhex("12 02 20 05 12 03 b0 01 00 12 02 20 09") + strange)
    assert model.trainer_spec.vocab_size == 9
    assert not model.trainer_spec.split_by_whitespace
    assert model.serialized().endswith(strange)


@given(st.data())
def test_what_is_cut_or_broken_is_refused_or_read_as_the_generated_code_reads_it(generated: Any, data: Any) -> None:
    model = ModelProto()
    for piece, kind in ("<unk>", 2), ("가나", 1), ("▁b", 1):
        model.add(piece, -1.5, kind)
    model.trainer_spec.pad_id, model.normalizer_spec.name = -1, "nfkc"
    whole = bytearray(model.serialized())
    for _ in range(data.draw(st.integers(0, 2))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    broken = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        ours = ModelProto(broken)
        written = ours.serialized()
    except ValueError:
        if b"\x0b" in broken or any(byte & 7 in (3, 4) for byte in broken):
            return  # groups, which nobody writes, are refused
        with pytest.raises(Exception, match="Error parsing"):
            generated.FromString(broken)
        return
    theirs = generated.FromString(broken)
    assert generated.FromString(written) == theirs
    assert [row.score for row in ours.pieces] == [row.score for row in theirs.pieces]
