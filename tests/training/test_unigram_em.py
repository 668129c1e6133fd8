"""Classic Unigram: the E step against enumeration, and the loss beside SentencePiece's on equal counts and seeds."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference.trainers import train_unigram_em
from test_unigram import text, ways

from koktok.segment.segmented import SegmentedCounts
from koktok.training.candidates import CandidatePolicy, mine
from koktok.training.unigram_em import digamma, expectation


def test_digamma_equals_known_values():
    assert digamma(np.array([0.5, 1.0, 10.0])) == pytest.approx([-1.9635100260, -0.5772156649, 2.2517525890], abs=1e-8)


def test_expectation_equals_enumeration():
    counts = SegmentedCounts.from_marked({" 학교에": 3, "가가가": 2, "나": 1})
    found = mine(counts, CandidatePolicy(min_count=1, aligned=False, coverage=1.0))
    score = np.random.default_rng(1).normal(-2, 1, len(found.pieces))
    value = dict(zip(found.pieces, score.tolist(), strict=True))
    loss, expected = 0.0, dict.fromkeys(found.pieces, 0.0)
    for word, _, n in counts.items():
        table = {tuple(way): np.exp(sum(value[word[a:b]] for a, b in way)) for way in ways(word)}
        loss -= n * np.log(sum(table.values()))
        for way, p in table.items():
            for a, b in way:
                expected[word[a:b]] += n * p / sum(table.values())
    with ThreadPoolExecutor(2) as pool:
        ours, n = expectation(found.lattice, score, pool)
    assert ours == pytest.approx(loss)
    assert n == pytest.approx([expected[piece] for piece in found.pieces])


def test_em_lowers_the_loss_and_fills_the_size():
    trained = train_unigram_em(text(), vocab_size=330, specials=["<s>"])
    assert trained.vocab.size == 330
    first, second = (entry["objective"] for entry in trained.log["rounds"][:2])
    assert second < first


def test_loss_is_not_over_sentencepiece():
    import io

    import sentencepiece as spm

    counts = text()
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([f"{word}\t{n}" for word, _, n in counts.items()]),
        model_writer=model,
        input_format="tsv",
        vocab_size=60,
        model_type="unigram",
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        character_coverage=1.0,
        split_by_unicode_script=False,
        bos_id=-1,
        eos_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    processor = spm.SentencePieceProcessor(model_proto=model.getvalue())
    theirs = {processor.id_to_piece(i).replace("▁", " "): processor.get_score(i) for i in range(1, 60)}
    ours = train_unigram_em(counts, vocab_size=256 + 59, coverage=1.0).vocab
    found = mine(counts, CandidatePolicy(min_count=1, max_length=16, aligned=False, coverage=1.0))

    def loss(score):
        known = np.array([piece in score for piece in found.pieces])
        values = np.array([score.get(piece, 0.0) for piece in found.pieces])
        values -= np.log(np.exp(values[known]).sum())  # digamma scores do not sum to one
        with ThreadPoolExecutor(1) as pool:
            return expectation(found.lattice.only(known, pool), values, pool)[0]

    assert loss(dict(zip(ours.pieces, ours.scores, strict=True))) <= loss(theirs) * 1.01
