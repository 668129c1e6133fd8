"""Ready vocabularies: each folder is what its recipe says, opens everywhere, and is named as a tokenizer is named."""

from __future__ import annotations

import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import koktok, works

from koktok import load, verify
from koktok.corpora.fetch import find as find_corpus
from koktok.errors import UsageError
from koktok.metrics.coverage import coverage
from koktok.pipeline.card import limits_of
from koktok.recipe import Recipe
from koktok.runtimes.folder import CARD, MARK, files_of
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.ready import ReadyVocabulary, ready_vocabularies

READY = {ready.name: ready for ready in ready_vocabularies()}
NAMES = [*READY]
SMALL = ("ko-16k", "ko-32k-bytes")
LINES = ["학교에서는 책을 읽습니다.", "안녕하세요, 괜찮아요! The quick brown fox 2026", "뷁 漢字 😀\tㅋㅋ"]


def test_there_is_one_for_every_purpose() -> None:
    assert {"ko-16k", "ko-32k", "ko-64k", "ko-32k-aligned", "ko-32k-bytes", "ko-32k-superwords", "ko-en-code-64k"} <= {
        *NAMES
    }
    places = [ready.file.with_suffix("") for ready in READY.values()]
    assert sum(file.stat().st_size for place in places for file in place.iterdir()) < 4_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_vocabulary_is_what_its_recipe_says(name: str) -> None:
    """If this fails because a default or a sentence of the card has changed: python -m eval.ready build."""
    ready = READY[name]
    tokenizer, recipe = TrainedTokenizer(ready.trained, ready.vocab), ready.trained
    assert (ready.vocab.digest(), ready.vocab.size) == (ready.digest, ready.recipe.train.vocab_size)
    assert recipe.model_copy(update={"sources": ()}) == ready.recipe.model_copy(update={"sources": ()})
    assert [source.name for source in recipe.sources] == [source.name for source in ready.recipe.sources]
    assert [tokenizer.decode(tokenizer.encode(line).ids) for line in LINES] == LINES
    for text in ready.text:  # the text may be redistributed, and the card credits it
        for source in find_corpus(text.removeprefix("corpus:")).source:
            assert source.use == "open"
            assert source.licence
            assert f"| {source.stem} | {source.place} | {source.licence} |" in ready.card
    assert "of the 2,350 common syllables" in ready.card
    assert all(f"* {line}\n" in ready.card for line in limits_of(tokenizer))
    figures = coverage(tokenizer)
    assert figures.syllables > (0.99 if name != "ko-32k-bytes" else 0.5)
    assert figures.characters > 0.95  # a page of that text is in hanja
    assert figures.bytes < 0.1
    assert not figures.unknown


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in SMALL)) for name in NAMES])
def test_a_folder_is_written_and_loaded(name: str) -> None:
    """Its koktok.toml has the checksums of the files that travel with it, and they are those that are written today."""
    ready, tokenizer = READY[name], TrainedTokenizer.load(f"koktok:{name}")
    assert files_of(ready.trained, ready.vocab, tokenizer.signature).items() <= ready.files.items()
    assert (
        tokenizer.vocab.digest()
        == READY[name].digest
        == tomllib.loads(str(READY[name].files[MARK]))["signature"]["vocab"]
    )


@pytest.mark.parametrize("name", SMALL)
def test_transformers_opens_the_folder(name: str, tmp_path: Path) -> None:
    import transformers

    done = works("vocabulary", "get", name, "-o", tmp_path / "mine")
    assert done.stdout == f"{tmp_path / 'mine'}\n"
    theirs, ours = (
        transformers.AutoTokenizer.from_pretrained(tmp_path / "mine"),
        TrainedTokenizer.load(f"koktok:{name}"),
    )
    assert [theirs(line, add_special_tokens=False)["input_ids"] for line in LINES] == [
        row.tolist() for row in ours.encode_ids(LINES)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_verify_passes_for_all_on_mini(name: str, mini: list[str]) -> None:
    assert verify(f"koktok:{name}", mini).passed


def test_every_verb_takes_the_name() -> None:
    tokenizer = load("koktok:ko-16k")
    assert (type(tokenizer), tokenizer.name) == (TrainedTokenizer, "ko-16k")
    ids = koktok("encode", "koktok:ko-16k", "--as", "ids", stdin="학교에서는\n").stdout
    assert ids.split() == [str(i) for i in tokenizer.encode("학교에서는").ids]
    assert koktok("decode", "koktok:ko-16k", stdin=ids).stdout == "학교에서는\n"


def test_of_several_that_open_it_at_once_the_first_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path))
    ready, written = READY["ko-16k"], []

    def write(self: ReadyVocabulary, folder: Path, *, force: bool = False) -> Path:
        written.append(folder)
        return plain(self, folder, force=force)

    plain = ReadyVocabulary.write
    monkeypatch.setattr(ReadyVocabulary, "write", write)
    for changed in (False, True):
        if changed:
            (written[0] / "tokenizer.json").write_text("{}")
        with ThreadPoolExecutor(4) as threads:
            places = {*threads.map(lambda _: ready.folder(), range(4))}
        assert places == {*written}
        assert len(written) == 1 + changed
        assert load(str(written[0])).vocab_size == 16_000
    assert [path.name for path in written[0].parent.iterdir()] == ["ko-16k"]


def test_a_ready_name_means_the_same_in_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of that name is meant by its path."""
    READY["ko-16k"].write(tmp_path / "ko-32k")
    READY["ko-16k"].write(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    assert TrainedTokenizer.load("koktok:ko-32k").vocab.size == 32_000
    assert TrainedTokenizer.load("koktok:./ko-32k").vocab.size == TrainedTokenizer.load("ko-32k").vocab.size == 16_000
    assert TrainedTokenizer.load("koktok:own").vocab.size == 16_000


def test_the_error_for_a_wrong_name_suggests_a_similar_one() -> None:
    with pytest.raises(UsageError, match="there is no ready vocabulary and no folder `ko-32`") as told:
        TrainedTokenizer.load("koktok:ko-32")
    assert "ko-32k" in str(told.value)
    for opened in (load, TrainedTokenizer.load):
        with pytest.raises(UsageError, match=r"(?s)no file.*ko-32k.*did you mean `koktok:ko-32k`"):
            opened("ko-32k")
    for words, missing, meant in (
        (["vocabulary", "get", "ko-64"], "vocabulary `ko-64`; there are: ko-16k", "ko-64k"),
        (["encode", "koktok:ko-64", "x"], "ready vocabulary and no folder `ko-64`", "koktok:ko-64k"),
    ):
        done = koktok(*words)
        assert done.returncode == 2
        assert f"there is no {missing}" in done.stderr
        assert f"did you mean `{meant}`?" in done.stderr


def test_the_verb_lists_and_shows() -> None:
    rows = [line.split("\t") for line in koktok("vocabulary", "list").stdout.splitlines()]
    assert [row[0] for row in rows] == NAMES
    assert ["ko-32k-bytes", "32000", "bpe-bytes"] in [row[:3] for row in rows]
    shown = koktok("vocabulary", "show", "ko-en-code-64k").stdout
    assert "koktok vocabulary build ko-en-code-64k" in shown
    assert "corpus:open-ko, corpus:open-en" in shown
    assert READY["ko-en-code-64k"].digest in shown


def test_the_recipe_of_a_ready_one_trains() -> None:
    """The file in the package is a recipe like any other."""
    assert Recipe.load(READY["ko-32k-aligned"].file).special.style == "bert"


@pytest.mark.slow
def test_the_smallest_is_built_again_bit_for_bit(tmp_path: Path) -> None:
    """Where the user's cache has the corpus: its fetching wants a network."""
    cache = Path(os.environ.get("KOKTOK_TEST_CORPORA", ""))
    if not os.environ.get("KOKTOK_TEST_CORPORA") or not any((cache / "corpora").glob("open-ko-*")):
        pytest.skip("KOKTOK_TEST_CORPORA names no cache folder with corpus:open-ko")
    works("vocabulary", "build", "ko-16k", "-o", tmp_path / "again", env={"KOKTOK_CACHE": str(cache)})
    assert not READY["ko-16k"].differences(tmp_path / "again")


def test_a_different_build_lists_the_files(tmp_path: Path) -> None:
    folder = READY["ko-16k"].write(tmp_path / "again")
    assert not READY["ko-16k"].differences(folder)
    (folder / CARD).write_text("other")
    (folder / "tokenizer.model").unlink()
    assert {*READY["ko-16k"].differences(folder)} == {CARD, "tokenizer.model"}
