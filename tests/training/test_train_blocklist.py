"""The recipe's blocklist and personal data: no trainer makes such a piece, and the text is spelled all the same."""

from __future__ import annotations

import pytest
from reference.trainers import train_wordpiece

from koktok import Recipe, Tokenizer
from koktok.blocklist import Blocklist
from koktok.errors import RecipeError
from koktok.pipeline import road
from koktok.segment.segmented import SegmentedCounts
from koktok.vocab import unspell

LINES = [
    "멍청이꽃은 들에 핀다.",
    "멍청하다고 하지 마라.",
    "멍청한 말은 멍청하다.",
    "연락은 010-1234-5678 로",
    "누구@메일 kim@mail.kr",
] * 40
MODELS = ["unigram", "unigram-em", "bpe", "bpe-bytes", "word", "ngram", "morpheme"]
SIZES = {"bpe-bytes": 330, "unigram-em": 385, "word": 12, "ngram": 430, "morpheme": 390}


def pieces_of(tokenizer: Tokenizer) -> list[str]:
    return [unspell(piece) if tokenizer.vocab.kind == "bpe-bytes" else piece for piece in tokenizer.vocab.pieces]


def train(model: str, **more: object) -> Tokenizer:
    values = {"model": model, "vocab_size": SIZES.get(model, 410), "ngram": 3, **more}
    recipe = Recipe().changed(
        train=values, pretokenize={"digits": "free"}, segment={"segmenter": "whitespace"}, holdout=0.0
    )
    return road.train(LINES, recipe, cache=False).tokenizer


@pytest.mark.parametrize("model", MODELS)
def test_no_piece_holds_what_the_recipe_blocks(model: str) -> None:
    free = train(model, personal_data="keep")
    assert any("멍청" in piece for piece in pieces_of(free)), "or nothing is shown"
    kept = train(model, blocklist=["멍청", "!멍청이꽃"])
    held = [piece for piece in pieces_of(kept) if "멍청" in piece]
    assert all("멍청이꽃" in piece for piece in held)
    if kept.lossless:
        for line in LINES[:5]:
            assert kept.decode(kept.encode(line).ids) == line


@pytest.mark.parametrize("alphabet", ["chars", "bytes"])
def test_wordpiece_asks_about_text(alphabet: str) -> None:
    counts = SegmentedCounts.from_marked({" 멍청": 9, " 멍청하": 9})

    def texts(**more: object) -> list[str]:
        made = train_wordpiece(counts, vocab_size=999, min_count=1, alphabet=alphabet, allow_fewer=True, **more).vocab
        bare = [piece.removeprefix("##") for piece in made.pieces]
        return [unspell(piece) for piece in bare] if alphabet == "bytes" else bare

    blocked = Blocklist(["멍청"])
    assert any(blocked.refuses(piece) for piece in texts())
    assert not any(blocked.refuses(piece) for piece in texts(crosses=lambda piece: bool(blocked.refuses(piece))))


def test_spm_is_asked_for_more() -> None:
    free, kept = (train("bpe", backend="spm", blocklist=lines) for lines in ([], ["멍청"]))
    assert any("멍청" in piece for piece in free.vocab.pieces)
    assert not any("멍청" in piece for piece in kept.vocab.pieces)
    assert kept.vocab.size == free.vocab.size


def test_personal_data_is_dropped_unless_kept() -> None:
    dropped, kept = (train("bpe", personal_data=choice) for choice in ("drop", "keep"))
    assert any("010-1234" in piece for piece in kept.vocab.pieces)
    assert not any("010-1234-5" in piece or "@mail" in piece for piece in dropped.vocab.pieces)
    assert dropped.decode(dropped.encode(LINES[3]).ids) == LINES[3]


def test_jamo_pieces_are_read_as_syllables() -> None:
    recipe = Recipe().changed(
        train={"model": "bpe", "vocab_size": 480, "blocklist": ["멍청"]},
        segment={"segmenter": "whitespace"},
        jamo=True,
        holdout=0.0,
    )
    tokenizer = road.train(LINES, recipe, cache=False).tokenizer
    assert not any("멍청" in tokenizer.decode([i]) for i in range(tokenizer.vocab.size))


def test_the_recipe_keeps_the_list_and_refuses_what_cannot_be_read() -> None:
    recipe = Recipe().changed(train={"blocklist": ["나쁜", "/말+/"]})
    assert Recipe.from_toml(recipe.to_toml()).train.blocklist == ("나쁜", "/말+/")
    with pytest.raises(RecipeError, match="regular expression"):
        Recipe().changed(train={"blocklist": ["/(/"]})
    with pytest.raises(RecipeError, match="personal_data"):
        Recipe().changed(train={"personal_data": "perhaps"})
