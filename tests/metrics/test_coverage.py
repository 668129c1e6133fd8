"""Coverage: what the card and the doctor tell of a vocabulary on koktok's own general text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import MINI

import koktok
from koktok.corpora.fetch import mini_lines
from koktok.hangul import KS_X_1001
from koktok.metrics.coverage import coverage
from koktok.report.doctor import diagnose
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.open import load

SMALL = {"segmenter": "whitespace", "vocab_size": 900, "holdout": 0.0, "required": "none", "character_coverage": 0.9}


@pytest.mark.parametrize("model", ["unigram", "bpe-bytes"])
def test_shares_are_those_of_single_characters_and_of_the_tokens(model: str, tmp_path: Path) -> None:
    folder = koktok.train(MINI / "news.txt", **SMALL | {"model": model}).save(tmp_path / "made")
    found, tokenizer = coverage(load(str(folder))), TrainedTokenizer.load(folder)

    def pieces(chars: Iterable[str]) -> set[str]:
        """Characters that are a token by themselves, at the start of a text, behind a space or behind another character."""
        some = [*chars]
        alone, behind, inside = (
            tokenizer.encode_ids([f"{before}{char}" for char in some]) for before in ("", " ", "0")
        )
        last = tokenizer.decode_batch([[int(row[-1])] for row in inside])
        rows = zip(some, alone, behind, last, strict=True)
        return {char for char, *single, text in rows if 1 in map(len, single) or text == char}

    alone = pieces({*"".join(mini_lines())})
    running = [char for line in mini_lines() for char in line if not char.isspace()]
    assert found.characters == pytest.approx(sum(char in alone for char in running) / len(running))
    assert found.syllables == len(pieces(KS_X_1001)) / 2350
    ids = [i for line in mini_lines() for i in tokenizer.encode(line).ids]
    broken = [i for i in ids if i < tokenizer.vocab.n_bytes or "\ufffd" in tokenizer.decode([i])]
    assert found.bytes == pytest.approx(len(broken) / len(ids)) != 0
    told = diagnose(load(str(folder))).facts
    assert told["characters of corpora/mini that are pieces"] == found.characters
    assert told["tokens of corpora/mini that are bytes"] == found.bytes
    card = (folder / "README.md").read_text("utf-8")
    assert f"{found.characters:.2%} of the characters are pieces" in card
    assert f"{found.bytes:.2%} of the tokens are bytes" in card
    assert f"{found.syllables:.1%} of the 2,350 common syllables" in card


def test_the_text_does_not_depend_on_the_users_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = mini_lines()
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini.toml").write_text("")
    monkeypatch.setenv("KOKTOK_CORPORA", str(tmp_path))
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "not-there"))
    assert mini_lines() == before
    assert not (tmp_path / "not-there").exists()
