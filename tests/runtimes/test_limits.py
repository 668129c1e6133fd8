"""What no format can hold says why, each reason with a vocabulary that has it; what a format can hold is the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import koktok

from koktok import load
from koktok.errors import ArtifactError
from koktok.model.definition import Definition
from koktok.model.vocab import KINDS, Vocab
from koktok.runtimes import RUNTIMES, gguf
from koktok.runtimes.huggingface import tokenizer_json
from koktok.runtimes.sentencepiece import model_proto
from koktok.runtimes.tiktoken import ranks
from koktok.runtimes.where import limitations, runs_in
from koktok.text.normalize import JamoNormalizer, Normalizer
from koktok.text.patterns import ACROSS_SPACES, PublishedPattern
from koktok.text.pretokenize import Pattern

SPECIALS = ("<unk>", "</s>")
PLAIN = Normalizer()
UNIGRAM = Vocab.unigram({"가": -1.0, "나": -2.0}, specials=SPECIALS)
CROSSING = Vocab.bpe("가 나", ["가 나"], specials=SPECIALS)
BYTES = Vocab.bpe_bytes(["ê°", "ê°Ģ"], specials=SPECIALS)

WRITERS: dict[str, tuple[Callable[[Definition], str], Callable[[Definition], Any]]] = {
    "hf": (tokenizer_json.refuses, tokenizer_json.tokenizer_json),
    "spm": (model_proto.refuses, model_proto.model_proto),
    "gguf": (gguf.refuses, gguf.table_of),
    "tiktoken": (ranks.refuses, ranks.ranks_of),
}
"""What says why a runtime cannot hold a definition, and what writes one that it can."""

TRAINED = {"tiktoken": {"train": {"model": "bpe-bytes"}, "pretokenize": {"pattern": "llama3"}}}
"""The recipes for runtimes that cannot hold the usual one."""


@pytest.mark.parametrize("what", ["spm", "gguf"])
def test_groups_of_three_digits_need_a_pattern(what: str) -> None:
    refuses, _ = WRITERS[what]
    assert "groups of three digits" in refuses(Definition(UNIGRAM, pattern=Pattern(digits="three")))
    assert not refuses(Definition(UNIGRAM, pattern=Pattern(digits="free")))


@pytest.mark.parametrize(
    ("what", "vocab", "normalizer", "message", "hint"),
    [
        ("hf", Vocab.plain("ngram", ["가"]), PLAIN, "no longest match with byte fallback", ""),
        ("spm", BYTES, PLAIN, "SentencePiece has no bpe-bytes model", ""),
        ("spm", Vocab.bpe("가", []), PLAIN, "requires an unknown token", ""),
        ("spm", Vocab.bpe("\0가", ["\0가"], specials=SPECIALS), PLAIN, "holds a NUL beside other characters", ""),
        ("spm", CROSSING, PLAIN, "'가 나' crosses a pretoken boundary", ""),
        ("gguf", BYTES, PLAIN, "patterns that are built into it", "koktok train TEXT --model bpe --out FOLDER"),
        ("gguf", Vocab.plain("wordpiece", ["가"], specials=("[UNK]",)), PLAIN, "no wordpiece model", ""),
        ("gguf", CROSSING, PLAIN, "'가 나' crosses a pretoken boundary", ""),
        ("gguf", Vocab.bpe("가", [], specials=("</s>",)), PLAIN, "requires an unknown token", ""),
        ("gguf", Vocab.bpe("가", [], specials=("<unk>",)), PLAIN, "requires an end-of-sequence token", ""),
        ("gguf", UNIGRAM, JamoNormalizer(), "conjoining jamo", ""),
        ("tiktoken", UNIGRAM, PLAIN, "byte-level BPE only, and this is unigram", "--model bpe-bytes"),
        ("tiktoken", BYTES, JamoNormalizer(), "cannot split syllables", "--model bpe-bytes"),
        # Joins never reach "abcd": "bc" comes before "ab" and "cd", and nothing joins to it.
        ("tiktoken", Vocab.bpe_bytes(["bc", "cd", "ab", "abcd"]), PLAIN, "would use it for a whole word", ""),
    ],
)
def test_an_unsupported_vocabulary_has_a_reason(
    what: str, vocab: Vocab, normalizer: Normalizer, message: str, hint: str
) -> None:
    one, (refuses, write) = Definition(vocab, normalizer), WRITERS[what]
    assert message in refuses(one)
    with pytest.raises(ArtifactError, match=message) as caught:
        write(one)
    assert hint in caught.value.hint


def test_a_supported_vocabulary_has_no_reason_and_the_same_bytes() -> None:
    assert {*WRITERS, "hf2"} == {*RUNTIMES}  # of which hf writes what hf2 rewrites
    for what, (refuses, write) in WRITERS.items():
        one = Definition({"tiktoken": BYTES}.get(what, UNIGRAM))
        assert refuses(one) == ""
        assert write(one) == write(one)
    assert ranks.refuses(Definition(Vocab.bpe_bytes(["ab", "abc", "abcd"]))) == ""
    one = Definition(UNIGRAM)
    assert ranks.files(ranks.ranks_of(Definition(BYTES))) == ranks.files(ranks.ranks_of(Definition(BYTES)))
    assert tokenizer_json.config_files(one) == tokenizer_json.config_files(one)


@pytest.mark.parametrize("kind", KINDS)
def test_the_card_says_what_the_options_of_a_training_change(kind: str) -> None:
    def notes(**changes: bool) -> str:
        return "\n".join(limitations(kind, **{"superwords": False, "jamo": False, **changes}))

    spaced = kind != "wordpiece"  # whose pieces hold no space
    assert ("do not use `is_split_into_words=True`" in notes(prefix=False)) == spaced
    assert ("gives the ids of the running text" in notes(prefix=True)) == spaced
    assert ("sees a sentence as one word" in notes(trim=False)) == spaced
    assert ("masks whole eojeols, because" in notes(trim=True)) == spaced
    assert "Superwords are not for question answering" in notes(superwords=True)


@pytest.mark.parametrize("kind", KINDS)
def test_one_line_says_where_a_vocabulary_runs(kind: str) -> None:
    vocab = Vocab(kind, ("가",), (-1.0,) if kind == "unigram" else (), ("<unk>",))  # type: ignore[arg-type]
    said = runs_in(
        Definition(vocab, prefix="first" if kind == "unigram" else ""), "llama3" if kind == "bpe-bytes" else "koktok"
    )
    assert "\n" not in said
    assert said.startswith("Runs in ")
    assert "train with" in said
    assert ("tiktoken (`" in said) == (kind == ranks.KIND)
    assert ("transformers" in said) == (kind in tokenizer_json.MODEL_TYPES)
    assert ("sentencepiece" in said.split(";")[0]) == (kind in ("unigram", "bpe"))


@pytest.mark.parametrize("pattern", ["koktok", *ACROSS_SPACES])
def test_a_pattern_that_cuts_at_spaces_is_advised_without_superwords(pattern: str) -> None:
    vocab = Vocab.bpe_bytes([])
    for superwords in (False, True):
        said = runs_in(Definition(vocab), pattern, superwords=superwords)
        notes = "\n".join(limitations("bpe-bytes", superwords=superwords, jamo=False, pattern=pattern))
        for text in (said, notes):
            assert text.count("`--pattern llama3` and without `--superwords`") == (superwords and "llama3" in text)
        assert ("for llama.cpp, train with `--pattern superbpe`" in said) == (superwords and pattern == "koktok")
        assert ("OpenVINO" in said) == (pattern == "exaone-moe")
        assert ("tokenizers 0.2x" in said) == (pattern != "koktok")


@pytest.mark.parametrize("to", RUNTIMES)
def test_python_exports_what_the_command_exports(to: str, trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained(**TRAINED.get(to, {}))
    notes = load(folder).export(to, tmp_path / "python")
    done = koktok("export", folder, "--to", to, "-o", tmp_path / "command")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "".join(f"note: {note}\n" for note in notes)
    made, typed = (
        {file.relative_to(place): file.read_bytes() for file in place.rglob("*") if file.is_file()}
        or place.read_bytes()
        for place in (tmp_path / "python", tmp_path / "command")
    )
    assert made == typed


def test_who_puts_no_space_before_the_first_word_of_byte_level_bpe_is_told() -> None:
    """In the line of a training, on the card, and by the export to GGUF, which llama.cpp does not heed there."""
    vocab = Vocab.bpe_bytes(["ab"], specials=("<unk>", "</s>"))
    for prefix in ("", "each"):
        one = Definition(vocab, pattern=PublishedPattern("llama3"), prefix=prefix)
        card = "\n".join(limitations("bpe-bytes", superwords=False, jamo=False, pattern="llama3", prefix=bool(prefix)))
        for said in (runs_in(one, "llama3"), card, "\n".join(gguf.notes(gguf.table_of(one)))):
            assert ('" " + text' in said) == bool(prefix), said
        assert ("know the pattern llama3" in runs_in(one, "llama3")) == (not prefix)
