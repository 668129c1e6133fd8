"""What no format can hold says why, each reason with a vocabulary that has it; what a format can hold is the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from koktok.errors import ArtifactError
from koktok.model.vocab import KINDS, Vocab
from koktok.runtimes import gguf
from koktok.runtimes.huggingface.tokenizer_json import config_json, special_tokens_json, tokenizer_json
from koktok.runtimes.limits import limitations, runs_in, unsupported_reason
from koktok.runtimes.sentencepiece.model_proto import model_proto
from koktok.runtimes.tiktoken.ranks import files, ranks_of
from koktok.text.normalize import JamoNormalizer, Normalizer
from koktok.text.patterns import ACROSS_SPACES
from koktok.text.pretokenize import Pattern

SPECIALS = ("<unk>", "</s>")
PATTERN, PLAIN = Pattern(), Normalizer()
UNIGRAM = Vocab.unigram({"가": -1.0, "나": -2.0}, specials=SPECIALS)
CROSSING = Vocab.bpe("가 나", ["가 나"], specials=SPECIALS)
BYTES = Vocab.bpe_bytes(["ê°", "ê°Ģ"], specials=SPECIALS)

WRITERS: dict[str, Callable[..., Any]] = {
    "hf": lambda vocab, normalizer=PLAIN: tokenizer_json(vocab, normalizer, PATTERN),
    "sentencepiece": lambda vocab, normalizer=PLAIN: model_proto(vocab, PATTERN, normalizer=normalizer),
    "gguf": lambda vocab, normalizer=PLAIN: gguf.table_of(vocab, PATTERN, normalizer),
    "tiktoken": lambda vocab, normalizer=PLAIN: ranks_of(vocab, PATTERN, jamo=isinstance(normalizer, JamoNormalizer)),
}


@pytest.mark.parametrize("what", ["sentencepiece", "gguf"])
def test_groups_of_three_digits_need_a_pattern(what: str) -> None:
    assert "groups of three digits" in unsupported_reason(what, UNIGRAM, Pattern(digits="three"))
    assert not unsupported_reason(what, UNIGRAM, Pattern(digits="free"))


@pytest.mark.parametrize(
    ("what", "vocab", "normalizer", "message", "hint"),
    [
        ("hf", Vocab.plain("ngram", ["가"]), PLAIN, "no longest match with byte fallback", ""),
        ("sentencepiece", BYTES, PLAIN, "SentencePiece has no bpe-bytes model", ""),
        ("sentencepiece", Vocab.bpe("가", []), PLAIN, "requires an unknown token", ""),
        ("sentencepiece", CROSSING, PLAIN, "'가 나' crosses a pretoken boundary", ""),
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
    what: Any, vocab: Vocab, normalizer: Normalizer, message: str, hint: str
) -> None:
    jamo = isinstance(normalizer, JamoNormalizer)
    assert message in unsupported_reason(what, vocab, PATTERN, jamo=jamo)
    with pytest.raises(ArtifactError, match=message) as caught:
        WRITERS[what](vocab, normalizer)
    assert hint in caught.value.hint


def test_a_supported_vocabulary_has_no_reason_and_the_same_bytes() -> None:
    for what, vocab in (("hf", UNIGRAM), ("sentencepiece", UNIGRAM), ("gguf", UNIGRAM), ("tiktoken", BYTES)):
        assert unsupported_reason(what, vocab, PATTERN) == ""  # type: ignore[arg-type]
        assert WRITERS[what](vocab) == WRITERS[what](vocab)
    assert unsupported_reason("tiktoken", Vocab.bpe_bytes(["ab", "abc", "abcd"])) == ""
    assert files(ranks_of(BYTES, PATTERN)) == files(ranks_of(BYTES, PATTERN))
    assert (config_json(UNIGRAM), special_tokens_json(UNIGRAM)) == (config_json(UNIGRAM), special_tokens_json(UNIGRAM))


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
    said = runs_in(vocab, jamo=False, pattern="llama3" if kind == "bpe-bytes" else "koktok", prefix=kind == "unigram")
    assert "\n" not in said
    assert said.startswith("Runs in ")
    assert "train with" in said
    for library, column in (("tiktoken (`", "tiktoken"), ("transformers", "hugging_face")):
        assert (library in said) == bool(getattr(KINDS[vocab.kind], column))
    assert ("sentencepiece" in said.split(";")[0]) == (kind in ("unigram", "bpe"))


@pytest.mark.parametrize("pattern", ["koktok", *ACROSS_SPACES])
def test_a_pattern_that_cuts_at_spaces_is_advised_without_superwords(pattern: str) -> None:
    vocab = Vocab.bpe_bytes([])
    for superwords in (False, True):
        said = runs_in(vocab, jamo=False, pattern=pattern, superwords=superwords)
        notes = "\n".join(limitations("bpe-bytes", superwords=superwords, jamo=False, pattern=pattern))
        for text in (said, notes):
            assert text.count("`--pattern llama3` and without `--superwords`") == (superwords and "llama3" in text)
        assert ("for llama.cpp, train with `--pattern superbpe`" in said) == (superwords and pattern == "koktok")
        assert ("OpenVINO" in said) == (pattern == "exaone-moe")
        assert ("tokenizers 0.2x" in said) == (pattern != "koktok")
