"""The main road on small text: figures, signatures, determinism, weights, and every kind of bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import MINI, MODELS, ROOT, sample_above

from koktok import Recipe, load
from koktok.count import Counts, count_words, sample, shards, words_of
from koktok.count.counting import counting, read
from koktok.count.prepared import prepare
from koktok.count.sample import Sample
from koktok.errors import KoktokError, VocabSizeError
from koktok.metrics.borders import border_share
from koktok.metrics.silver import Silver
from koktok.pipeline import words
from koktok.pipeline.baseline import PlainByteLevel, PlainSentencePiece, our_row
from koktok.pipeline.card import model_card
from koktok.pipeline.train import train
from koktok.pipeline.words import TrainingWords, training_words
from koktok.segment.segmented import SegmentedCounts
from koktok.text.normalize import Normalizer
from koktok.text.patterns import PUBLISHED
from koktok.text.pretokenize import Pattern
from koktok.text.sources import Source

Trained = Callable[..., Path]
PLAIN = Recipe().changed(segment={"segmenter": "whitespace"}, train={"vocab_size": 410}, holdout=0.0)


TEXT = (
    "나는 집에 간다.\n너는 학교에 가서 책을 읽는다.\n우리 집 마당에는 커다란 감나무가 한 그루 있다.\n"
    "가을이면 감이 주렁주렁 열리고 까치가 날아와 홍시를 쪼아 먹는다.\n집에서 학교까지는 걸어서 십 분이 걸린다.\n"
) * 9


def write(path: Path, text: str) -> Source:
    path.write_text(text, encoding="utf-8")
    return Source.of(path)


def test_normalizing_distinct_words_is_normalizing_the_text(mini: list[str]) -> None:
    """Law 11, which is what makes count-first exact."""
    normalizer, pattern = Normalizer(), Pattern(digits="single")
    whole: dict[str, int] = {}
    for line in mini:
        for pretoken in pattern.pretokenize(normalizer(line)):
            whole[pretoken] = whole.get(pretoken, 0) + 1
    assert prepare(count_words(mini), normalizer, pattern).as_dict() == whole


def test_held_out_lines_are_not_trained_on(mini: list[str]) -> None:
    source = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    reading = read([source], holdout=0.2)
    assert reading.train + reading.held == count_words(mini)
    assert 0.05 < reading.held.total / reading.train.total < 0.5
    assert all(line in mini for line in reading.samples)
    assert read([source], holdout=0.2).held == reading.held
    assert len(read([source], holdout=0.0).held) == 0


def test_the_signature_tells_what_was_read_and_who_ran(trained: Trained) -> None:
    tokenizer = load(trained())
    signature = tokenizer.signature
    assert signature["segmenter"].startswith("kiwi:0.")
    assert signature["lines"] == 1025
    assert {"koktok", "trainer", "normalizer", "counts", "segmented"} <= signature.keys()
    (source,) = tokenizer.recipe.sources
    assert (source.name, len(source.digest)) == ("mini", 64)
    again = Recipe.load(trained())
    assert again == tokenizer.recipe


def test_digits_as_the_recipe_says(tmp_path: Path) -> None:
    source = write(tmp_path / "a.txt", TEXT + "값은 1234567원이다 1234567원 1,234\n" * 300)
    pieces = {}
    for digits in ("single", "three", "free"):
        recipe = PLAIN.changed(pretokenize={"digits": digits}, train={"model": "bpe", "vocab_size": 475})
        tokenizer = train([source], recipe).tokenizer
        pieces[digits] = tokenizer.encode("1234567원 1,234").pieces
    assert pieces["single"] == [" 1", *"234567", "원", " 1", ",", "2", "3", "4"]
    assert pieces["three"] == [" 123", "456", "7", "원", " 1", ",", "234"]
    assert pieces["free"] == [" 1234567원", " 1", ",", "234"]


def test_progress_goes_on_from_source_to_source(tmp_path: Path) -> None:
    sources = [write(tmp_path / f"{name}.txt", TEXT) for name in "ab"]
    told: list[tuple[str, int, int | None]] = []
    train(sources, PLAIN, on_progress=lambda *what: told.append(what))
    reading = [(done, total) for stage, done, total in told if stage == "read"]
    size = 2 * len(TEXT.encode())
    assert reading[-1] == (size, size)
    assert reading == sorted(reading)
    assert {stage for stage, _, _ in told} >= {"read", "normalize", "segment", "train"}


def test_required_syllables_are_pieces_where_there_is_room(tmp_path: Path) -> None:
    source = write(tmp_path / "a.txt", TEXT)
    recipe = PLAIN.changed(train={"required": "ks-x-1001", "vocab_size": 2819})
    assert {"뷔", "①", "㎡"} <= {*train([source], recipe).tokenizer.vocab.pieces}
    with pytest.raises(VocabSizeError, match=r"at least 2,[78]\d\d ids.*\nhint: vocab_size=2[78]\d\d or more"):
        train([source], recipe.changed(train={"vocab_size": 2000}))


@pytest.mark.parametrize("model", ["unigram", "unigram-em", "bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes", "word"])
@pytest.mark.parametrize("size", [100, 90_000])
def test_the_size_in_the_hint_trains(size: int, model: str) -> None:
    """A smaller vocabulary asks for fewer characters, so that the text may have fewer pieces for it."""
    recipe = PLAIN.changed(train={"model": model, "vocab_size": size})
    lines = TEXT.splitlines() * 5
    try:
        train(lines, recipe)
    except VocabSizeError as error:
        size = int(error.hint.split()[1].strip(","))
    assert train(lines, recipe, vocab_size=size).tokenizer.vocab.size == size


@pytest.mark.parametrize("model", ["unigram", "bpe-bytes"])
def test_a_size_too_large_for_its_text_is_said(model: str, mini: list[str]) -> None:
    told = [train(mini, vocab_size=size, model=model, holdout=0.0).notes for size in (2600, 7000)]
    assert not told[0]
    assert re.search(r"7,000 ids are many for this text: [3-6],\d{3} of them .* fewer than 5 times", "\n".join(told[1]))


def test_addresses_teach_no_pieces_unless_they_are_wanted(tmp_path: Path) -> None:
    address = "https://news.example.co.kr/main/read.nhn?mode=LSD&oid="
    source = write(tmp_path / "a.txt", TEXT + f"(출처:{address}) 나는 집에 간다.\n" * 20)
    made, keeping = (train([source], PLAIN.changed(train={"junk": junk})) for junk in ("drop", "keep"))
    longer, wanted = ({piece for piece in one.tokenizer.vocab.pieces if piece[1:]} for one in (made, keeping))
    assert any(piece in address for piece in wanted)
    assert not any(piece in address for piece in longer)
    assert " (출처:" in made.segmented.words, "what stands before an address is text"
    assert made.tokenizer.decode(made.tokenizer.encode(address).ids) == address


def words_of_training(recipe: Recipe, **how: Any) -> TrainingWords:
    with counting([Source.of(*sorted(MINI.glob("*.txt")), name="mini")], holdout=0.0, runs=True, **how) as counted:
        return training_words(counted, recipe)[1]


def test_of_many_runs_a_sample_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the words in it, which have the count 0 if they are in no sample; `--min-count` trains on all."""
    recipe = Recipe().changed(superwords=0.3)
    every = words_of_training(recipe)
    monkeypatch.setattr(words, "RUNS", len(every.runs) // 2)
    sample_above(monkeypatch, len(every.runs) // 8)
    some = words_of_training(recipe)
    assert len(every.runs) / 5 < len(some.runs) < len(every.runs) / 2
    assert (some.runs.n > some.runs.seen).any()
    eojeols, of_all = (sum(n * len(words_of(run)) for run, n in part.items()) for part in (some.runs, every.runs))
    assert eojeols == pytest.approx(of_all, rel=0.05)
    n = every.runs.as_dict()
    assert all(seen <= n[run] for run, seen in zip(some.runs.words, some.runs.seen.tolist(), strict=True))
    own = dict(zip(some.counts.words, some.counts.seen.tolist(), strict=True))
    assert own.items() <= every.counts.as_dict().items()
    assert {word for run in some.runs.words for word in words_of(run)} <= own.keys()
    assert 0 < int((some.counts.n > 0).sum()) < len(own) < len(every.counts)
    assert words_of_training(recipe.changed(min_count=1)).runs == every.runs


@pytest.mark.parametrize("recipe", [{}, {"superwords": 0.3}, {"min_count": 2}, {"prefix_space": False}])
def test_the_words_of_a_training_are_those_of_one_table_in_memory(
    recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 8: shards, threads, ranges and files of a count change no word, and neither do they where a sample is drawn."""
    given = Recipe().changed(**recipe)
    for whole in (sample.WHOLE, 300):
        sample_above(monkeypatch, whole)
        one = words_of_training(given, threads=1)
        with monkeypatch.context() as patch:
            for name, value in {"SHARD": 3000, "PART": 500, "_STEP": 8, "KEPT": 20_000}.items():
                patch.setattr(shards, name, value)
            many = words_of_training(given, threads=3)
        assert one.counts == many.counts
        assert one.runs == many.runs
        assert (one.eojeols, one.notes) == (many.eojeols, many.notes)
        for counts in (one.counts, one.runs):
            if counts is not None:
                assert (counts.seen is None) == (whole > 300 or "min_count" in recipe)


def test_no_table_of_all_words_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table from the count to the trainer is larger than a range and the samples that are wanted."""
    for name, value in {"SHARD": 3000, "PART": 500, "_STEP": 8, "KEPT": 20_000}.items():
        monkeypatch.setattr(shards, name, value)
    for name in ("PEER_WORDS", "MEASURED"):
        monkeypatch.setattr(words, name, 200)
    sample_above(monkeypatch, 50)
    sizes: list[int] = []
    whole = Counts.from_frame.__func__  # type: ignore[attr-defined]

    def seen(cls: type[Counts], frame: Any) -> Counts:
        sizes.append(len(frame))
        found: Counts = whole(cls, frame)
        return found

    add = Sample.add

    def added(self: Sample, table: Any) -> None:
        add(self, table)
        sizes.append(sum(map(len, self._kept)))

    monkeypatch.setattr(Counts, "from_frame", classmethod(seen))
    monkeypatch.setattr(Sample, "add", added)
    distinct = len(words_of_training(Recipe().changed(min_count=1)).counts)
    for recipe in (Recipe(), Recipe().changed(superwords=0.3)):
        sizes.clear()
        words_of_training(recipe)
        assert 0 < max(sizes) < distinct / 3


def test_undecodable_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT.encode() + b"\xff\xfe\n" + "너는 집에\n".encode())
    made = train([Source.of(tmp_path / "a.txt")], PLAIN)
    assert any("1 line without readable text" in note and "a.txt:46" in note for note in made.notes)


def test_a_second_training_asks_nothing(tmp_path: Path) -> None:
    source = Source.of(MINI / "news.txt")
    recipe = Recipe().changed(train={"vocab_size": 1200})
    first = train([source], recipe, cache=tmp_path)
    again = train([source], recipe, cache=tmp_path)
    assert first.asked > 500
    assert again.asked == 0
    assert again.known == first.asked + first.known
    assert again.tokenizer.vocab == first.tokenizer.vocab


EVERY = {"unigram": {}, "bpe-bytes": {"model": "bpe-bytes"}}
MORE = {model: {"model": model} for model in ("bpe", "wordpiece-bytes", "morpheme")} | {"jamo": {"jamo": True}}

TRAINING = """
import json, sys
from conftest import KiwiHere
from koktok.segment import workers
from test_build import saved
workers._Child = KiwiHere
saved(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
"""


def saved(threads: int, out: str, recipes: dict[str, dict[str, Any]]) -> None:
    """A folder a recipe, and every word is analysed."""
    source = Source.of(MINI / "news.txt", MINI / "essay.txt", name="x")
    for name, fields in recipes.items():
        recipe = Recipe().changed(vocab_size=1200, **fields)
        train([source], recipe, cache=False, threads=threads).tokenizer.save(f"{out}/{name}")


@pytest.mark.parametrize("recipes", [EVERY, pytest.param(MORE, marks=pytest.mark.slow)])
def test_the_same_bytes_in_any_process_with_any_threads(recipes: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """Law 5: in this process, and in one with a hash seed of its own."""
    saved(1, str(tmp_path / "1"), recipes)
    command = [sys.executable, "-c", TRAINING, "2", str(tmp_path / "2"), json.dumps(recipes)]
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests", Path(__file__).parent)))
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": paths})
    one, two = (
        {path.relative_to(place): path.read_bytes() for path in place.glob("*/*")}
        for place in (tmp_path / "1", tmp_path / "2")
    )
    assert {path.parent.name for path in one if path.name in ("tokenizer.json", "vocab.json")} == {*recipes}
    assert one == two


def uncut(words: Counts) -> Silver:
    """Words to measure on that nobody has cut."""
    return Silver(SegmentedCounts.uncut(words))


def test_figures_are_those_of_the_text(trained: Trained, mini: list[str]) -> None:
    """Words weighted by their counts give what encoding the lines gives."""
    tokenizer, mini = load(trained(train={"superwords": 0.0})), [line for line in mini if "  " not in line]
    tokens = [i for line in mini for i in tokenizer.encode(line).ids]
    first = Counter()  # the tokenizer puts the space before a word
    for word, n in count_words(mini).items():
        first[word.removeprefix(" ")] += n
    row = our_row("x", tokenizer, uncut(Counts.from_mapping(first))).figures
    eojeols = sum(len(line.split(" ")) - line.split(" ").count("") for line in mini)
    assert row.tokens_per_eojeol == pytest.approx(len(tokens) / eojeols)
    assert row.byte_fallback == pytest.approx(sum(i < 256 for i in tokens) / len(tokens))
    assert row.unknown == 0
    assert row.borders == 0


def test_borders_of_held_out_sentences_are_those_of_the_lines(trained: Trained, mini: list[str]) -> None:
    tokenizer = load(trained(train={"superwords": 0.3}))
    lines = [line for line in mini if " " in line]
    row = our_row("x", tokenizer, uncut(Counts.from_mapping(dict.fromkeys(lines, 1))))
    assert row.figures.borders == border_share(tokenizer, sorted({*lines})) > 0
    none = replace(row, figures=replace(row.figures, borders=0.0))
    for figures, there in (([none, row], True), ([none], False)):
        card = model_card(tokenizer, figures, {}, words=1, held_out=True)
        table = [
            line for line in card.splitlines() if line.startswith(("| tokenizer |", "|---|---|---|---|-", "| x |"))
        ]
        assert {line.count("|") for line in table} == {8 + there}
        assert (f"| {row.figures.borders:.1%} |" in card, "Borders: " in card, "| borders |" in card) == (there,) * 3


def test_unknown_words_and_bytes_are_counted_for_every_model(trained: Trained, mini: list[str]) -> None:
    words = count_words(mini)
    word, spelled = (load(trained(**MODELS[name])) for name in ("word", "bpe-bytes"))
    ids = [i for line in mini for i in word.encode(line).ids]
    assert our_row("x", word, uncut(words)).figures.unknown == pytest.approx(
        ids.count(word.vocab.unknown_id) / len(ids)
    )
    assert our_row("x", spelled, uncut(words)).figures.unknown == 0
    assert 0 < our_row("x", spelled, uncut(words)).figures.byte_fallback < 0.1


def test_plain_sentencepiece_is_measured_alike(mini: list[str]) -> None:
    words = count_words(mini)
    plain = PlainSentencePiece(words, model="unigram", vocab_size=2000, character_coverage=0.9995)
    row = plain.row(uncut(words)).figures
    lines = sum(len(ids) for ids in plain.tokenizer.encode_ids(mini))
    eojeols = sum(n for word, n in words.items() if word.strip(" "))
    assert row.tokens_per_eojeol == pytest.approx(lines / eojeols, rel=1e-3)  # its normalizer may join across spaces
    assert "".join(plain.pieces("나는 집에")) == " 나는 집에"
    with pytest.raises(VocabSizeError, match="Vocabulary size"):
        PlainSentencePiece(words, model="unigram", vocab_size=10**6, character_coverage=0.9995)


def test_plain_byte_level_bpe_is_that_of_the_library_with_the_same_pattern(mini: list[str], trained: Trained) -> None:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    ours = load(trained(**MODELS["bpe-bytes"]))
    plain = PlainByteLevel(count_words(mini), ours)
    by_hand = Tokenizer(models.BPE())
    cut = pre_tokenizers.Split(Regex(PUBLISHED["llama3"]), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    by_hand.pre_tokenizer = pre_tokenizers.Sequence([cut, level])
    by_hand.normalizer, by_hand.decoder = normalizers.NFC(), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=ours.vocab.size,
        special_tokens=[row["content"] for row in plain.tokenizer.content["added_tokens"]],
        initial_alphabet=level.alphabet(),
        show_progress=False,
    )
    by_hand.train_from_iterator(mini, trainer)
    assert plain.tokenizer.size == ours.vocab.size
    same = sum(
        by_hand.encode(line).ids == list(ids) for line, ids in zip(mini, plain.tokenizer.encode_ids(mini), strict=True)
    )
    assert same > 0.9 * len(mini)  # the first word of a line has a space among koktok's words
    assert "".join(plain.pieces("나는 집에")) == "나는 집에"


def test_a_broken_library_ends_a_training_before_its_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines() -> Iterator[str]:
        raise AssertionError("the text was read")
        yield ""

    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(KoktokError, match=r"`sentencepiece` cannot be imported"):
        train(lines(), measured=True)
