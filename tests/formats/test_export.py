"""Law 6: every format gives the ids of `Tokenizer`, loaded by the real libraries."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers
from conftest import MODELS, WITHOUT_HF
from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text

from koktok import Tokenizer
from koktok.errors import ArtifactError
from koktok.formats.hf import config_json, special_tokens_json, tokenizer_json
from koktok.formats.limits import unsupported_reason
from koktok.formats.sentencepiece import model_proto
from koktok.text.normalize import Normalizer
from koktok.text.prefix import without_prefix
from koktok.text.pretokenize import Pattern
from koktok.vocab import Vocab

RECIPES: dict[str, dict[str, Any]] = {
    **{name: recipe for name, recipe in MODELS.items() if name not in WITHOUT_HF},
    "jamo bpe-bytes": {"jamo": True, "train": {"model": "bpe-bytes", "vocab_size": 1500}},
    "jamo wordpiece": {"jamo": True, "train": {"model": "wordpiece", "vocab_size": 1500}},
    "scripts": {"pretokenize": {"split": "scripts", "digits": "single"}},
    "free digits": {"pretokenize": {"digits": "free"}},
    "jamo": {"jamo": True, "train": {"vocab_size": 1500}},
    "jamo fallback": {"jamo": "fallback"},
    "jamo fallback bpe": {"jamo": "fallback", "train": {"model": "bpe"}},
    "jamo fallback wordpiece": {"jamo": "fallback", "train": {"model": "wordpiece", "vocab_size": 4000}},
    "folds": {
        "normalize": {
            "fullwidth": True,
            "spaces": True,
            "quotes": True,
            "dashes": True,
            "repeats": 2,
            "lone_jamo": True,
        }
    },
}


class Formats:
    """One trained folder in every library that loads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ours = Tokenizer.load(folder)
        self.hf = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        model = folder / "tokenizer.model"
        self.spm = sentencepiece.SentencePieceProcessor(model_file=str(model)) if model.exists() else None


@pytest.fixture(scope="module", params=RECIPES)
def formats(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Formats:
    return Formats(trained(**RECIPES[request.param]))


def check_same(formats: Formats, text: str, *, decode: bool = True) -> None:
    normal = formats.ours.normalize(text)
    for line in (text, normal):  # with another first character there is no space before it: see `koktok.text.prefix`
        ours = formats.ours.encode(line)
        assert formats.hf.encode(line).ids == ours.ids
    if decode:
        assert formats.hf.decode(ours.ids, skip_special_tokens=False) == formats.ours.decode(ours.ids)
    if formats.ours.lossless:
        assert formats.ours.decode(ours.ids) == normal
    if formats.spm is not None and "\0" not in normal and not normal.startswith(" "):  # it has no mark for such a space
        assert formats.spm.encode(normal) == ours.ids
        assert without_prefix(formats.spm.decode(ours.ids), formats.ours.prefix) == normal


@given(text=korean_text())
def test_the_same_ids_on_any_text(formats: Formats, text: str) -> None:
    for token in formats.ours.vocab.specials:  # Hugging Face reads them as tokens; `split_special_tokens` avoids it
        text = text.replace(token, "")
    if formats.ours.vocab.kind == "wordpiece-bytes":
        text = text[:500]  # Hugging Face tries every length at every place of a word
    check_same(formats, text)


@given(st.data())
def test_any_ids_decode_to_the_same_text(formats: Formats, data: st.DataObject) -> None:
    """Also ids that no text has, broken bytes among them."""
    vocab = formats.ours.vocab
    some = st.one_of(st.integers(0, vocab.size - 1), st.sampled_from(sorted(vocab.fragment_ids) or [0]))
    ids = data.draw(st.lists(some, max_size=12))
    for skip in (False, True):
        ours = formats.ours.decode(ids, skip_special_tokens=skip)
        theirs = formats.hf.decode(ids, skip_special_tokens=skip)
        assert ours == theirs


def test_the_same_ids_on_every_line_of_mini(formats: Formats, mini: list[str]) -> None:
    for number, line in enumerate(mini):  # jamo take Hugging Face 5 ms a line
        check_same(formats, line, decode=not formats.ours.recipe.jamo or number % 5 == 0)


def test_the_same_offsets_as_hugging_face_on_normal_text(formats: Formats, mini: list[str]) -> None:
    """Law 7. Hugging Face fuses neighbouring unknown characters before it falls back to bytes, and gives the bytes of
    all of them one span; ours tells them apart, so ours lie inside."""
    if formats.ours.recipe.jamo or formats.ours.recipe.normalize.lone_jamo:
        pytest.skip(
            "Hugging Face's offsets drift behind Replace nodes that touch old Hangul and jamo; ours are tested above"
        )
    compared = 0
    for line in map(formats.ours.normalize, mini):
        ours, theirs = formats.ours.encode(line), formats.hf.encode(line)
        for i, (a, b), (c, d) in zip(ours.ids, ours.offsets, theirs.offsets, strict=True):
            byte = i < formats.ours.vocab.n_bytes
            assert c <= a < b <= d if byte else (a, b) == (c, d), (line, i, (a, b), (c, d))
            compared += 1
    assert compared > 10_000


def test_text_that_spells_special_tokens_is_text_when_asked(formats: Formats) -> None:
    text = "가{3}나{4}".format(*formats.ours.vocab.specials)
    formats.hf.encode_special_tokens = True
    try:
        assert formats.hf.encode(text).ids == formats.ours.encode(text).ids
    finally:
        formats.hf.encode_special_tokens = False
    assert formats.hf.encode(text).ids == formats.ours.encode(text, allowed_special="all").ids


def test_what_has_no_tokenizer_model_says_why(formats: Formats) -> None:
    reason = unsupported_reason("sentencepiece", formats.ours.vocab, formats.ours.pattern)
    assert bool(reason) == (formats.spm is None)
    ours = formats.ours
    assert bool(reason) == (ours.vocab.kind not in ("unigram", "bpe"))


def test_what_hugging_face_cannot_run_says_why() -> None:
    vocab = Vocab.plain("ngram", ["가", "나", "가나"])
    with pytest.raises(ArtifactError, match="no longest match with byte fallback, which a ngram vocabulary wants"):
        tokenizer_json(vocab, Normalizer(), Pattern())


@pytest.mark.parametrize(
    ("vocab", "pattern", "message"),
    [
        (Vocab.bpe("가", []), Pattern(), "wants an unknown token"),
        (Vocab.bpe("가 나", ["가 나"], specials=("<unk>",)), Pattern(), "'가 나' crosses a pre-token border"),
    ],
)
def test_a_model_that_would_differ_is_refused(vocab: Vocab, pattern: Pattern, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        model_proto(vocab, pattern)


def test_sentencepiece_knows_the_special_tokens(trained: Callable[..., Path]) -> None:
    formats = Formats(trained())
    spm, ids = formats.spm, formats.ours.vocab.special_ids
    assert spm is not None
    assert (spm.unk_id(), spm.bos_id(), spm.eos_id(), spm.pad_id()) == tuple(
        ids[token] for token in ("<unk>", "<s>", "</s>", "<pad>")
    )
    assert spm.get_piece_size() == formats.ours.vocab.size
    assert spm.is_control(ids["<mask>"])
    assert spm.is_byte(0)
    assert spm.encode("</s>") == formats.ours.encode("</s>").ids


def test_the_same_bytes_every_time() -> None:
    vocab = Vocab.unigram({"가": -1.0, "나": -2.0}, specials=("<unk>", "</s>"))
    for make in (
        lambda: tokenizer_json(vocab, Normalizer(), Pattern()),
        lambda: config_json(vocab),
        lambda: special_tokens_json(vocab),
        lambda: model_proto(vocab, Pattern()),
    ):
        assert make() == make()


@pytest.mark.filterwarnings("ignore")
class TestTransformers:
    """`AutoTokenizer` without any code of ours. Version 4.57 is tested by tests/formats/test_transformers4.py."""

    @pytest.fixture(scope="class")
    @staticmethod
    def auto(trained: Callable[..., Path]) -> Any:
        transformers = pytest.importorskip("transformers", reason="the extra `transformers` is not installed")
        return transformers.AutoTokenizer.from_pretrained(str(trained()))

    def test_ids_offsets_and_decode(self, auto: Any, trained: Callable[..., Path], mini: list[str]) -> None:
        ours = Tokenizer.load(trained())
        for line in mini[::5]:
            got = auto(line, return_offsets_mapping=True)
            assert got["input_ids"] == ours.encode(line).ids
            assert auto.decode(got["input_ids"]) == ours.normalize(line)
            assert all(a <= c for (a, _), (c, _) in pairwise(got["offset_mapping"]))

    @pytest.mark.parametrize("model", ["bpe-bytes", "wordpiece", "wordpiece-bytes", "word", "syllable", "jamo model"])
    def test_every_model_loads(self, model: str, trained: Callable[..., Path], mini: list[str]) -> None:
        transformers = pytest.importorskip("transformers", reason="the extra `transformers` is not installed")
        folder = trained(**MODELS[model])
        auto, ours = transformers.AutoTokenizer.from_pretrained(str(folder)), Tokenizer.load(folder)
        assert len(auto) == ours.vocab.size
        assert auto.unk_token_id == ours.vocab.special_ids[auto.unk_token]
        if model.startswith("wordpiece"):
            assert (auto.cls_token, auto.sep_token, auto.mask_token) == ("[CLS]", "[SEP]", "[MASK]")
        for line in mini[::7]:
            ids = auto(line)["input_ids"]
            assert ids == ours.encode(line).ids
            assert auto.decode(ids) == ours.decode(ids)

    def test_roles_and_sizes(self, auto: Any, trained: Callable[..., Path]) -> None:
        vocab = Tokenizer.load(trained()).vocab
        assert len(auto) == vocab.size == max(auto.get_vocab().values()) + 1
        assert auto.is_fast
        assert (auto.bos_token, auto.eos_token, auto.unk_token, auto.pad_token, auto.mask_token) == (
            "<s>",
            "</s>",
            "<unk>",
            "<pad>",
            "<mask>",
        )
        assert auto.convert_tokens_to_ids(list(vocab.tokens)) == list(range(vocab.size))
        assert auto.clean_up_tokenization_spaces is False

    def test_split_special_tokens_at_call_time(self, auto: Any, trained: Callable[..., Path]) -> None:
        ours = Tokenizer.load(trained())
        assert auto("가</s>", split_special_tokens=True)["input_ids"] == ours.encode("가</s>").ids
        assert auto("가</s>")["input_ids"] == ours.encode("가</s>", allowed_special="all").ids

    def test_padding_and_truncation(self, auto: Any) -> None:
        got = auto(["가 나 다 라", "가"], padding=True, truncation=True, max_length=3)
        assert [len(ids) for ids in got["input_ids"]] == [3, 3]
        assert got["input_ids"][1][-1] == auto.pad_token_id

    def test_saved_again_it_is_the_same_tokenizer(
        self, auto: Any, trained: Callable[..., Path], tmp_path: Path, mini: list[str]
    ) -> None:
        auto.save_pretrained(str(tmp_path))
        first = json.loads((trained() / "tokenizer.json").read_text())
        assert json.loads((tmp_path / "tokenizer.json").read_text())["model"] == first["model"]
        again = type(auto).from_pretrained(str(tmp_path))
        assert again(mini[:50])["input_ids"] == auto(mini[:50])["input_ids"]
