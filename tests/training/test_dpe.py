"""Segmentation learnt from words: sums against brute force, paths, the folder, and a vocabulary trained from it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from koktok.cli import app
from koktok.errors import ArtifactError, InputError, MissingExtraError, UsageError
from koktok.pipeline.train import train
from koktok.segment import segmenter_for
from koktok.segment.dpe.learnt import Dpe
from koktok.segment.dpe.tree import END, TaggedWord, arcs_of, marginal, prefixes_of
from koktok.training.dpe import DpeOptions, learn

torch = pytest.importorskip("torch", reason="pip install 'koktok[dpe]'")
pytest.importorskip("safetensors", reason="pip install 'koktok[dpe]'")

STEMS, ENDINGS = ("학교", "도서관", "시장", "공원", "바다"), ("에서", "으로", "까지", "에는", "")
COUNTS = {TaggedWord(stem + ending): 3 for stem in STEMS for ending in ENDINGS}
TAGGED = {TaggedWord(word.text, ("NNG", "JKB")[: 1 + (len(word.text) > 3)]): n for word, n in COUNTS.items()}
OPTIONS = DpeOptions(pieces=60, longest=4, width=8, epochs=3)


@pytest.fixture(scope="module")
def made() -> Dpe:
    return learn(COUNTS, OPTIONS)


def log_probability(made: Dpe, words: Iterable[TaggedWord]) -> dict[TaggedWord, float]:
    """Of each word over all its segmentations, as learning sums it."""
    asked = sorted(words, key=lambda word: (word.tags, word.text))
    ids = ({symbol: i for i, symbol in enumerate(made.symbols)}, {piece: i for i, piece in enumerate(made.pieces)})
    tree = prefixes_of(asked, *ids, made.longest)
    total = marginal(arcs_of({name: weight.double() for name, weight in made.weights.items()}, tree), tree)
    return dict(zip(asked, total[torch.from_numpy(tree.word)].tolist(), strict=True))


def everyway(made: Dpe, word: TaggedWord) -> dict[tuple[int, ...], float]:
    """The log probability of every segmentation, by a decoder that is run anew for each piece."""
    spelled = word.text + END
    weights = {name: weight.double() for name, weight in made.weights.items()}
    gru = [weights[f"gru.{name}"] for name in ("input", "state", "input_bias", "state_bias")]

    def told(start: int, end: int) -> float:
        piece = spelled[start:end]
        if piece not in made.pieces and len(piece) > 1:
            return -math.inf
        state = torch.zeros(1, OPTIONS.width, dtype=torch.double)
        for symbol in (*word.tags, *spelled[:start]):
            known = made.symbols.index(symbol) if symbol in made.symbols else 0
            state = torch.gru_cell(weights["symbol"][known][None], state, *gru)
        odds = torch.log_softmax(weights["piece_bias"] + weights["piece"] @ state[0], 0)
        return odds[made.pieces.index(piece) if piece in made.pieces else 0].item()

    ways = {}
    for n in range(len(spelled)):
        for inner in combinations(range(1, len(spelled)), n):
            p = sum(told(a, b) for a, b in pairwise((0, *inner, len(spelled))))
            if p > -math.inf:
                ways[inner] = p
    return ways


@pytest.mark.parametrize("counts", [COUNTS, TAGGED], ids=["alone", "with tags"])
def test_sums_and_best_paths_are_those_of_all_segmentations(counts: dict[TaggedWord, int]) -> None:
    made = learn(counts, OPTIONS)
    asked = [
        *list(counts)[:3],
        TaggedWord("도시까"),
        TaggedWord("에서시로"),
        TaggedWord("꿹", ("NEW",)),
    ]  # unseen words, characters, tags
    told, cuts = log_probability(made, asked), made.cuts(asked)
    for word in asked:
        ways = everyway(made, word)
        assert told[word] == pytest.approx(math.log(sum(map(math.exp, ways.values()))), abs=1e-5)
        top = max(ways, key=ways.__getitem__)
        assert cuts[word] == tuple(at for at in top if at < len(word.text))


def test_learning_is_a_function_of_the_words_and_makes_them_more_probable(made: Dpe) -> None:
    again = learn(dict(reversed(COUNTS.items())), OPTIONS)
    assert again.digest == made.digest
    assert learn(COUNTS, DpeOptions(**{**OPTIONS.__dict__, "seed": 1})).digest != made.digest
    more = learn(COUNTS, DpeOptions(pieces=60, longest=4, width=8, epochs=40, rate=0.03))
    before, behind = (sum(log_probability(one, COUNTS).values()) for one in (made, more))
    assert behind > before + 2 * len(COUNTS)
    with pytest.raises(InputError, match="no words"):
        learn({})


def test_what_is_asked_together_changes_nothing(made: Dpe) -> None:
    assert made.cuts(COUNTS) == {word: made.cuts([word])[word] for word in COUNTS}


def test_a_folder_comes_back_and_a_damaged_one_says_so(made: Dpe, tmp_path: Path) -> None:
    folder = made.save(tmp_path / "made")
    again = Dpe.load(folder)
    assert (again.digest, again.cuts(COUNTS)) == (made.digest, made.cuts(COUNTS))
    with pytest.raises(UsageError, match="another segmentation"):
        learn(TAGGED, OPTIONS).save(folder)
    assert learn(TAGGED, OPTIONS).save(folder, force=True) == folder
    table = json.loads((folder / "dpe.json").read_text(encoding="utf-8"))
    for wrong in ({**table, "pieces": table["pieces"][:-1]}, {**table, "format": 2}, {}, []):
        (folder / "dpe.json").write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(ArtifactError):
            Dpe.load(folder)
    with pytest.raises(ArtifactError):
        segmenter_for(f"dpe:{tmp_path}")


def test_learnt_from_text_it_is_a_segmenter_like_any_other(tmp_path: Path) -> None:
    """With the command, without an analyser; only Hangul is cut, and pieces join back to the word."""
    lines = [f"{word.text}, {word.text}2번 OK!" for word in COUNTS] * 4
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("\n".join(lines), encoding="utf-8")
    done = CliRunner().invoke(app, ["segment", str(text), "--learn", str(out), "-q"])
    assert (done.exit_code, done.stdout.strip()) == (0, str(out)), done.output
    segmenter = segmenter_for(f"dpe:{out}")
    for word, pieces in zip(asked := ["학교에서,", "2번", "OK!"], segmenter.analyse(asked), strict=True):
        assert "".join(piece.form for piece in pieces) == word
    assert [piece.tag for piece in pieces] == ["SL", "SW"]
    options = {"segmenter": f"dpe:{out}", "model": "morpheme", "holdout": 0.0, "required": "none", "cache": tmp_path}
    first, second = (train(lines, vocab_size=380, **options) for _ in range(2))
    assert first.tokenizer == second.tokenizer
    assert first.asked > second.asked == 0
    assert first.tokenizer.recipe.segment.segmenter == f"dpe:{out}"
    with pytest.raises(UsageError, match="Kiwi only"):
        segmenter_for(f"dpe:{out}", user_dictionary="words.tsv")


def test_what_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtraError) as raised:
        learn(COUNTS, OPTIONS)
    assert "koktok[dpe]" in raised.value.hint
