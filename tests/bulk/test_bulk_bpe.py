"""BPE in bulk: by characters, by chain and by joins, the ids are those of the model that joins one pair after the other."""

from __future__ import annotations

import random

import pytest
from random_vocabularies import joined_everywhere

from koktok.bulk.bpe import _DOUBT, _pair, solve_bpe, solve_bpe_by_joins
from koktok.bulk.solvers import Solver
from koktok.bulk.texts import Texts
from koktok.model.models import model_for
from koktok.model.vocab import Vocab, spell


def assert_equal_ids(vocab: Vocab, texts: list[str]) -> Solver:
    """The solver, when it gives the ids of the model."""
    solver, model = Solver.of(vocab), model_for(vocab)
    spelled = Texts.of(texts)
    ids, offsets = solver(spelled.data, spelled.begins, spelled.ends)
    for i, text in enumerate(texts):
        assert ids[offsets[i] : offsets[i + 1]].tolist() == model.encode(text)[0], (vocab.pieces, text)
    return solver


def learnt(rng: random.Random, parts: list[str], n: int) -> list[str]:
    """Joins of neighbours of a text, drawn at random and made everywhere, as a trainer makes them."""
    found: list[str] = []
    while len(found) < n and len(parts) > 2:
        at = rng.randrange(len(parts) - 1)
        left, right = parts[at], parts[at + 1]
        found += [left + right] * (left + right not in found)
        parts = joined_everywhere(parts, left, right)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_characters_of_any_ranks(seed: int) -> None:
    """Pieces in the order in which they were made, and in any order: what no join reaches, and parts of a higher rank."""
    rng = random.Random(seed)
    kernels = []
    for turn in range(100):
        alphabet = "가나" if turn % 2 else "가나다라"
        have = list(alphabet)
        for _ in range(rng.randrange(1, 12)):
            made = rng.choice(have) + rng.choice(have)
            if turn % 3 == 0 and rng.random() < 0.2:
                made = "".join(rng.choice(alphabet) for _ in range(rng.randrange(2, 6)))
            if made not in have and len(made) < 12:
                have.append(made)
        pieces = have[len(alphabet) :]
        if turn % 5 == 0:
            rng.shuffle(pieces)
        texts = ["".join(rng.choice(f"{alphabet}{alphabet}é") for _ in range(rng.randrange(60))) for _ in range(30)]
        kernels.append(assert_equal_ids(Vocab.bpe(alphabet, pieces), texts).kernel)
    assert {kernel.__name__ for kernel in kernels} == {solve_bpe.__name__, solve_bpe_by_joins.__name__}


@pytest.mark.parametrize("seed", range(2))
def test_bytes_that_leave_their_characters(seed: int) -> None:
    """Joins of a part of a character with its neighbour, before and after its own bytes are joined."""
    rng = random.Random(seed)
    chars = "가각나 a놔é漢😀"
    sure = doubted = 0
    for turn in range(100):
        pieces = learnt(rng, list(spell("".join(rng.choice(chars) for _ in range(60)))), rng.randrange(3, 50))
        if turn % 6 == 0:
            rng.shuffle(pieces)
        texts = ["".join(rng.choice(chars) for _ in range(rng.randrange(60))) for _ in range(30)]
        solver = assert_equal_ids(Vocab.bpe_bytes(pieces), [*texts, "a" * 50, " " * 50])
        if solver.kernel is solve_bpe:
            whole, _, doubtful = solver.constants[-3:]
            sure += sum(whole[ord(char)] >= 0 for char in "가각나놔漢")
            doubted += int(doubtful.sum())
    assert sure > 20
    assert doubted


def test_a_space_takes_the_first_byte() -> None:
    """As in every vocabulary that learnt from running text: the commonest pair is a space and the first byte of a syllable."""
    ga, na = spell("가"), spell("나")
    taken = [f"{spell(' ')}{ga[:end]}" for end in (1, 2, 3)]
    pieces = [*taken, ga[:2], ga, na[:2], na, ga + na, taken[-1] + na, na[1:] + ga]
    solver = assert_equal_ids(Vocab.bpe_bytes(pieces), ["가나", " 가나", " 가 가나가", "나가 나가", "  가나"])
    whole, spaced, _ = solver.constants[-3:]
    assert spaced[ord("가")] == 256 + pieces.index(taken[-1])
    assert whole[ord("가")] == 256 + pieces.index(ga)
    assert spaced[ord("나")] < 0


def test_one_neighbour_takes_the_last_byte() -> None:
    """A join of it with a whole character, before its own bytes are joined: elsewhere the character is whole."""
    ga, na = spell("가"), spell("나")
    pieces = [na[:2], na, ga[:2], ga[2:] + na, ga, ga + ga]
    solver = assert_equal_ids(Vocab.bpe_bytes(pieces), ["가가", "가나", "가가나 나가", "가 가나가가", "나"])
    whole, _, doubtful = solver.constants[-3:]
    assert whole[ord("가")] & ~_DOUBT == 256 + pieces.index(ga)
    assert doubtful[_pair(ord("가"), ord("나"))]
    assert not doubtful[_pair(ord("가"), ord("가"))]
