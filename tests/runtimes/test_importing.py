"""Imported tokenizers: the ids of their own library, a folder that loads again, and a clear word for what is broken."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sentencepiece
import tokenizers
from hypothesis import given
from llama_cpp import llama_cpp_ids
from strategies import korean_text
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from koktok import load
from koktok.errors import ArtifactError, InputError, UsageError
from koktok.extension.base_tokenizer import open_base
from koktok.runtimes import LibraryTokenizer, gguf
from koktok.runtimes.huggingface.runtime import agreement, files_for_transformers
from koktok.runtimes.library import PROBES
from koktok.runtimes.tiktoken.ranks import VOCABULARIES, ranks_of
from koktok.text.patterns import LLAMA_CPP
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.open import load_folder

Ids = Callable[[str], list[int]]


def train_hf(kind: str, lines: list[str]) -> tokenizers.Tokenizer:
    """A small tokenizer in the manner of a family of models."""
    specials = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
    if kind == "bert":
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(lowercase=False)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece(cleanup=False)
        specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        trainer: Any = trainers.WordPieceTrainer(vocab_size=3000, special_tokens=specials, show_progress=False)
    elif kind in ("gpt2", "qwen"):
        made = tokenizers.Tokenizer(models.BPE())
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "gpt2")
        regex = next(regex for (regex, _), name in LLAMA_CPP.items() if name == "qwen2")
        split = pre_tokenizers.Split(tokenizers.Regex(regex), "isolated")
        made.pre_tokenizer = level if kind == "gpt2" else pre_tokenizers.Sequence([split, level])
        made.normalizer = None if kind == "gpt2" else normalizers.NFC()
        made.decoder = decoders.ByteLevel()
        specials = ["<|endoftext|>"]
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=2000, special_tokens=specials, initial_alphabet=sorted(alphabet), show_progress=False
        )
    elif kind == "llama":
        made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        made.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
        specials += [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=specials, show_progress=False)
    else:  # as in T5 and XLM-R
        made = tokenizers.Tokenizer(models.Unigram())
        made.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
        )
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        made.decoder = decoders.Metaspace(prepend_scheme="always")
        made.post_processor = None
        trainer = trainers.UnigramTrainer(
            vocab_size=2000, special_tokens=specials, unk_token="<unk>", show_progress=False
        )
    made.train_from_iterator(lines, trainer)
    if kind == "xlm-r":
        ids = [("<s>", made.token_to_id("<s>")), ("</s>", made.token_to_id("</s>"))]
        made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ids)
    made.enable_truncation(7)
    made.enable_padding()
    return made


def train_spm(lines: list[str], folder: Path, **options: Any) -> Path:
    prefix = folder / "spm"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(prefix),
        vocab_size=1900,
        minloglevel=4,
        num_threads=1,
        **options,
    )
    return prefix.with_suffix(".model")


HF = ("bert", "gpt2", "qwen", "llama", "xlm-r")
SPM: dict[str, dict[str, Any]] = {
    "spm unigram": {
        "model_type": "unigram",
        "byte_fallback": True,
        "user_defined_symbols": ["<sep>"],
        "normalization_rule_name": "identity",
    },
    "spm bpe": {"model_type": "bpe", "control_symbols": ["[CLS]"]},  # with SentencePiece's own normalizer
    "spm real spaces": {"model_type": "bpe", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
}

RUNS = {"spm unigram": "t5", "gpt2": "gpt2", "qwen": "gpt2", "vocab.json": "gpt2"}
"""What llama.cpp runs, and as which of its models."""


class Foreign:
    """One foreign tokenizer as a file, as its library runs it, and as koktok imports it."""

    def __init__(self, name: str, file: Path, reference: Ids, **options: Any) -> None:
        self.name, self.file, self.reference = name, file, reference
        self.ours: LibraryTokenizer = load(file, **options)  # type: ignore[assignment]


@pytest.fixture(scope="module", params=[*HF, *SPM, "vocab.txt", "vocab.json", "tiktoken"])
def foreign(
    request: pytest.FixtureRequest,
    mini: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    trained: Callable[..., Path],
) -> Foreign:
    folder = tmp_path_factory.mktemp("foreign")
    if request.param in SPM:
        model = train_spm(mini, folder, **SPM[request.param])
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        return Foreign(request.param, model, lambda text: list(processor.encode(text)))
    if request.param == "tiktoken":
        tokenizer = load(trained(train={"model": "bpe-bytes"}))
        ranks = ranks_of(tokenizer.definition)
        file = folder / "own.tiktoken"
        file.write_text(ranks.text())
        encoding = ranks.encoding()
        return Foreign(request.param, file, encoding.encode_ordinary, pattern=ranks.pattern, specials={"<|end|>": 5000})
    kind = {"vocab.txt": "bert", "vocab.json": "gpt2"}.get(request.param, request.param)
    hf = train_hf(kind, mini)
    file = folder / "tokenizer.json"
    hf.save(str(file))
    if request.param in ("vocab.txt", "vocab.json"):
        hf.model.save(str(folder))
        file.unlink()
        file = folder / request.param
    hf.no_truncation()
    hf.no_padding()
    hf.encode_special_tokens = True
    return Foreign(request.param, file, lambda text: list(hf.encode(text, add_special_tokens=False).ids))


@given(text=korean_text())
def test_the_ids_of_its_library_on_any_text(foreign: Foreign, text: str) -> None:
    text = text[:400]
    encoding = foreign.ours.encode(text)
    assert encoding.ids == foreign.reference(text)
    assert len(encoding.ids) == len(encoding.pieces) == len(encoding.offsets)
    assert all(0 <= a <= b <= len(text) for a, b in encoding.offsets)


def test_saved_and_loaded_it_is_the_same(foreign: Foreign, tmp_path: Path, mini: list[str]) -> None:
    folder = foreign.ours.save(tmp_path / "a")
    again = load(folder)
    assert isinstance(again, LibraryTokenizer)
    assert repr(again) == repr(foreign.ours)
    for line in mini[::20]:
        assert again.encode(line) == foreign.ours.encode(line)
        assert again.decode(again.encode(line).ids) == foreign.ours.decode(foreign.ours.encode(line).ids)
    with pytest.raises(ArtifactError, match=r"holds an imported tokenizer.*\nhint: koktok.load\("):
        TrainedTokenizer.load(folder)
    first = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {file.name: file.read_bytes() for file in again.save(tmp_path / "b").iterdir()} == first
    assert repr(load(folder)) == repr(again)


def test_reports_see_the_same_ids(foreign: Foreign, tmp_path: Path, mini: list[str]) -> None:
    """Also of text that spells a special token, and of the folder that keeps it; spans are those of the adapter."""
    token = next(iter(foreign.ours.vocab.special_ids))
    lines = [*mini[::7], f"가{token}나", *PROBES]
    wanted = [foreign.ours.encode(line).ids for line in lines]
    tokens = foreign.ours.encode_ids(iter(lines), threads=2)
    assert [row.tolist() for row in tokens] == wanted
    assert foreign.ours.decode_ids(tokens) == [foreign.ours.decode(ids) for ids in wanted]
    how: Any = {"allowed_special": "all", "add_special_tokens": foreign.ours.library == "tokenizers"}
    around, inside = foreign.ours.encode_ids([token], before=[token], **how), foreign.ours.encode(token, **how).ids
    assert around[0].tolist() == [foreign.ours.vocab.special_ids[token], *inside]
    opened = [foreign.ours, load(str(foreign.ours.save(tmp_path / "kept")))]
    if foreign.file.name != "own.tiktoken":  # whose pattern has no name
        opened.append(load(str(foreign.file)))
    for adapter in opened:
        rows = adapter.encode_lines(lines)
        assert [row.tolist() for row in rows] == adapter.ids(lines) == wanted
        assert (adapter.size, adapter.specials) == (foreign.ours.vocab.size, foreign.ours.vocab.special_ids)
        assert adapter.decode_batch(wanted) == [adapter.decode(ids) for ids in wanted]
    assert {adapter.digest() for adapter in opened} == {foreign.ours.vocab.digest()}
    assert not isinstance(foreign.ours, TrainedTokenizer)


def test_references_are_loaded(tmp_path: Path) -> None:
    ranks = "".join(f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256))
    (tmp_path / "a.tiktoken").write_text(ranks)
    ours = load(f"tiktoken:{tmp_path / 'a.tiktoken'}#gpt2")
    assert ours.encode("가").ids == load("bytes").encode("가").ids == [234, 176, 128]
    assert load("bytes").decode([234, 176, 128]) == "가"
    assert load(ours.save(tmp_path / "kept")) == ours


def test_a_tekken_file_is_kept_as_ranks(tmp_path: Path) -> None:
    vocab = [{"rank": b, "token_bytes": base64.b64encode(bytes([b])).decode()} for b in range(256)]
    config = {"pattern": r"\s|\S", "default_vocab_size": 259, "default_num_special_tokens": 3}
    named = [{"rank": 1, "token_str": "<s>", "is_control": True}]
    (tmp_path / "tekken.json").write_text(json.dumps({"vocab": vocab, "config": config, "special_tokens": named}))
    ours = load(tmp_path)
    assert load_folder(tmp_path) == ours
    assert ours.vocab.special_ids == {"<SPECIAL_0>": 0, "<s>": 1, "<SPECIAL_2>": 2}
    assert ours.encode("a<s>", allowed_special=["<s>"]).ids == [ord("a") + 3, 1]
    again = load(ours.save(tmp_path / "kept"))
    assert again.encode("가 a").ids == ours.encode("가 a").ids == [i + 3 for i in "가 a".encode()]


def test_vocabulary(foreign: Foreign) -> None:
    vocab = foreign.ours.vocab
    assert vocab.size == len(vocab.tokens)
    assert all(vocab.tokens[i] == token for token, i in (vocab.ids | vocab.special_ids).items())
    assert not set(vocab.ids.values()) & set(vocab.special_ids.values())
    assert vocab.digest() == vocab.digest()


def test_lossless_is_measured(foreign: Foreign) -> None:
    lossless = foreign.ours.lossless
    assert lossless == (foreign.file.name in ("own.tiktoken", "vocab.json")) or foreign.file.name == "tokenizer.json"


def test_special_tokens_are_text_unless_allowed(foreign: Foreign) -> None:
    ours, ids = foreign.ours, foreign.ours.vocab.special_ids
    token = next(token for token in ids if token not in ("<unk>", "[UNK]"))
    text = f"가{token}나"
    assert isinstance(ours, LibraryTokenizer)
    # T5 and XLM-R have their special tokens among their pieces, and the library finds them there.
    assert (ids[token] in ours.encode(text).ids) == (foreign.name == "xlm-r") == (token in ours.reachable)
    assert ids[token] in ours.encode(text, allowed_special="all").ids
    found = ours.encode(text, allowed_special=[token])
    assert found.offsets[found.ids.index(ids[token])] == (1, 1 + len(token))
    with pytest.raises(InputError, match="'<no>' is not a special token"):
        ours.encode(text, allowed_special=["<no>"])
    assert token in ours.decode([ids[token]])
    assert token not in ours.decode([ids[token]], skip_special_tokens=True)


def test_bad_input(foreign: Foreign) -> None:
    ours = foreign.ours
    for wrong in (None, b"x", ["x"], 7):
        with pytest.raises(InputError, match="expected one `str`"):
            ours.encode(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"lone surrogate U\+D800 at character 1"):
        ours.encode("a\ud800")
    with pytest.raises(InputError, match="expected texts, got one `str`"):
        ours.encode_batch("text")
    for ids in ([ours.vocab.size], [-1], ["1"]):
        with pytest.raises(InputError, match="id"):
            ours.decode(ids)  # type: ignore[arg-type]
    for name in ("normalizer", "pattern", "model", "words"):
        assert not hasattr(ours, name)
        with pytest.raises(UsageError, match=f"has no `{name}` of koktok's"):
            getattr(ours, name)
    for ask in (lambda: ours.sample("x", alpha=1.0, seed_or_rng=0), lambda: ours.n_best("x", 2), lambda: ours.stream()):
        with pytest.raises(UsageError, match="for koktok's own tokenizers"):
            ask()
    with pytest.raises(UsageError):
        ours.encode("x", superwords=False)
    assert ours.encode("").ids == []


def test_templates_are_the_librarys(mini: list[str], tmp_path: Path) -> None:
    hf = train_hf("xlm-r", mini)
    hf.save(str(tmp_path / "tokenizer.json"))
    ours = load(tmp_path)
    found = ours.encode("가나", add_special_tokens=True).pieces
    assert (found[0], found[-1]) == ("<s>", "</s>")
    assert ours.encode("가나").pieces == found[1:-1]


def test_other_formats(foreign: Foreign, tmp_path: Path) -> None:
    """tokenizer.json of everything, and GGUF of what llama.cpp runs."""
    ours = foreign.ours
    files = files_for_transformers(ours)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    loaded = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert loaded.get_vocab_size() <= ours.vocab.size
    assert all(loaded.token_to_id(token) == i for token, i in ours.vocab.special_ids.items())
    # "\r\n" at the ends is stripped by one library and not by the other; NFD goes through different code.
    assert len(agreement(ours, files)) <= (3 if foreign.file.suffix == ".model" else 0)
    if foreign.name not in RUNS:
        with pytest.raises(ArtifactError, match="no GGUF"):
            ours.gguf_vocab()
        return
    table = ours.gguf_vocab()
    assert gguf.read(gguf.write(table, tmp_path / "a.gguf")) == table
    assert table.model == RUNS[foreign.name]
    assert table.pre == {"gpt2": "gpt-2", "vocab.json": "gpt-2", "qwen": "qwen2"}.get(foreign.name, "default")
    assert len(table.tokens) == ours.vocab.size


def test_a_text_begins_in_llama_cpp_as_in_transformers(mini: list[str], tmp_path: Path) -> None:
    """As Llama 3's: its post-processor puts the beginning of a text there, and no end."""
    made, begin = train_hf("qwen", mini), "<|endoftext|>"
    assert not _imported(made, tmp_path / "plain.json").gguf_vocab().add_bos
    i = made.token_to_id(begin)
    made.post_processor = processors.TemplateProcessing(single=f"{begin} $A", special_tokens=[(begin, i)])
    table = _imported(made, tmp_path / "begun.json").gguf_vocab()
    assert (table.add_bos, table.roles["bos"], table.add_eos) == (True, i, False)


def _imported(made: tokenizers.Tokenizer, file: Path) -> LibraryTokenizer:
    made.save(str(file))
    ours = load(file)
    assert isinstance(ours, LibraryTokenizer)
    return ours


def test_user_defined_symbols_that_llama_cpp_cannot_read(mini: list[str], tmp_path: Path) -> None:
    model = train_spm(mini, tmp_path, model_type="unigram", user_defined_symbols=["ㅋㅋ"], byte_fallback=True)
    ours = load(model)
    assert isinstance(ours, LibraryTokenizer)
    assert "ㅋㅋ" in ours.encode("ㄹㅇㅋㅋ").pieces
    with pytest.raises(ArtifactError, match="begin with the bytes of the user-defined symbol 'ㅋㅋ'"):
        ours.gguf_vocab()


@pytest.mark.slow
def test_llama_cpp_gives_the_same_ids(foreign: Foreign, mini: list[str], tmp_path: Path) -> None:
    ours = foreign.ours
    if foreign.name not in RUNS:
        pytest.skip("llama.cpp has no tokenizer of this kind")
    lines = [line for line in [*mini, " 두  칸 ", "1234 don't\t\n x"] if line]
    found = llama_cpp_ids(gguf.write(ours.gguf_vocab(), tmp_path / "a.gguf"), lines)
    fragments, compared = ours.vocab.fragment_ids, 0
    for line, ids in zip(lines, found, strict=True):
        expected = ours.encode(line).ids
        if foreign.name != "spm unigram" or not fragments.intersection(expected):
            assert ids == expected, line
            compared += 1
    assert compared > 0.8 * len(lines)


@pytest.mark.filterwarnings("ignore")
def test_exported_folders_load_in_transformers(foreign: Foreign, tmp_path: Path, mini: list[str]) -> None:
    import transformers

    ours = foreign.ours
    for name, content in files_for_transformers(ours).items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    auto = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    same = sum(auto(line, add_special_tokens=False)["input_ids"] == ours.encode(line).ids for line in mini[::5])
    assert same >= 0.99 * len(mini[::5])


def saved_folder(folder: Path) -> Path:
    file = folder / "tokenizer.json"
    tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])).save(str(file))
    return load(file).save(folder / "saved")


@pytest.mark.parametrize("name", ["koktok.toml", "tokenizer.json"])
def test_a_saved_folder_that_was_changed(name: str, tmp_path: Path) -> None:
    folder = saved_folder(tmp_path)
    whole = (folder / name).read_bytes()
    for damage in (whole[: len(whole) // 2], whole.replace(b"1", b"2")):
        (folder / name).write_bytes(damage)
        with pytest.raises(ArtifactError):
            load_folder(folder)
    (folder / name).unlink()
    with pytest.raises(ArtifactError):
        load_folder(folder)


def test_a_library_from_the_future(tmp_path: Path) -> None:
    mark = saved_folder(tmp_path) / "koktok.toml"
    whole = mark.read_text()
    for old, new, message in (
        ('library = "tokenizers"', 'library = "later"', "requires the library 'later'"),
        ("format = 1", "format = 2", "has format 2; this koktok reads 1"),
    ):
        mark.write_text(whole.replace(old, new))
        with pytest.raises(ArtifactError, match=message):
            load_folder(mark.parent)


def test_lowercase_comes_from_the_config_or_the_caller(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\na\nA\nab\n")
    assert load(tmp_path).encode("A").pieces == ["A"]
    assert load(tmp_path, lowercase=True).encode("A").pieces == ["a"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')
    assert load(tmp_path).encode("A").pieces == ["a"]


def test_ranks_by_the_name_of_their_pattern(tmp_path: Path) -> None:
    ranks = "".join(f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256))
    (tmp_path / "cl100k_base.tiktoken").write_text(ranks)
    assert load(tmp_path).vocab.size == load(tmp_path / "cl100k_base.tiktoken").vocab.size == 256
    with pytest.MonkeyPatch.context() as patch:
        known = VOCABULARIES["cl100k_base"]
        digest = load(tmp_path).ranks.digest()
        patch.setitem(VOCABULARIES, "cl100k_base", replace(known, sha256=digest))
        ours = load(tmp_path)
    assert ours.vocab.special_ids["<|endoftext|>"] == 100257
    with pytest.raises(InputError, match="the id 300 has no token"):
        ours.decode([300])
    assert ours.encode("가<|endoftext|>", allowed_special="all").offsets == [(0, 1)] * 3 + [(1, 14)]


def test_a_possessive_range_of_tiktoken_is_one_in_hugging_face(tmp_path: Path) -> None:
    r"""Oniguruma reads \p{N}{1,3}+ as any number of digits; then 1234 would be one piece."""
    pieces = [*(bytes([i]) for i in range(256)), b"12", b"123", b"1234"]
    ranks = "".join(f"{base64.b64encode(piece).decode()} {i}\n" for i, piece in enumerate(pieces))
    (tmp_path / "cl100k_base.tiktoken").write_text(ranks)
    ours = load(tmp_path)
    assert ours.encode("1234").ids == [257, ord("4")]
    text = files_for_transformers(ours)["tokenizer.json"]
    assert isinstance(text, str)
    assert tokenizers.Tokenizer.from_str(text).encode("1234").ids == [257, ord("4")]


@pytest.mark.parametrize("opened", [load, open_base])
def test_a_library_that_cannot_load_is_refused_at_once(
    opened: Callable[[Any], Any], trained: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tokenizers 1.0 has neither `from_str` nor offsets; the error says which versions do, and the line to type."""
    file = tmp_path / "tokenizer.json"
    file.write_bytes((trained(train={"model": "bpe-bytes"}) / "tokenizer.json").read_bytes())
    newer = SimpleNamespace(Tokenizer=type("Tokenizer", (), {}), __version__="1.0.0")
    monkeypatch.setitem(sys.modules, "tokenizers", newer)
    with pytest.raises(UsageError, match=r"expected tokenizers 0.21 to 0.x, got 1.0.0") as refused:
        opened(str(file))
    assert refused.value.hint == "pip install 'tokenizers<1'"
