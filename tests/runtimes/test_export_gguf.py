"""GGUF: what is written is read back, and llama.cpp itself (where a binding is installed) gives our ids."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import koktok
from llama_cpp import llama_cpp_ids, tiny_model

from koktok import Tokenizer, load
from koktok.errors import ArtifactError, UsageError
from koktok.model.definition import Definition
from koktok.model.vocab import Vocab
from koktok.runtimes.gguf import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    GgufVocab,
    notes,
    read,
    refuses,
    table_of,
    write,
    write_into,
)
from koktok.runtimes.sentencepiece.model_proto import charsmap
from koktok.text.normalize import Folds, Normalizer
from koktok.tokenizer.restyle import restyle

MODELS = {"unigram": ("unigram", "t5"), "bpe": ("bpe", "llama"), "syllable": ("syllable", "llama")}


@pytest.fixture(scope="module", params=MODELS)
def tokenizer(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Tokenizer:
    return load(trained(train={"model": request.param, "vocab_size": 1800 if request.param == "syllable" else 2300}))


def make(tokenizer: Tokenizer) -> GgufVocab:
    return table_of(tokenizer.definition)


@pytest.fixture(scope="module")
def written(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(make(tokenizer), tmp_path_factory.mktemp("gguf") / "a.gguf")


@pytest.fixture(scope="module")
def back(written: Path) -> GgufVocab:
    return read(written)


def test_a_written_file_is_read(tokenizer: Tokenizer, written: Path, back: GgufVocab, tmp_path: Path) -> None:
    table = make(tokenizer)
    assert back == table
    assert write(table, tmp_path / "b.gguf").read_bytes() == written.read_bytes()
    assert [file.name for file in (*written.parent.iterdir(), *tmp_path.iterdir())] == ["a.gguf", "b.gguf"]


def test_every_piece_score_and_type(tokenizer: Tokenizer, back: GgufVocab) -> None:
    vocab, table = tokenizer.vocab, back
    assert table.model == MODELS[vocab.kind][1]
    assert tuple(token.replace("▁", " ") for token in table.tokens) == vocab.tokens
    assert not any(" " in token for token in table.tokens)  # llama.cpp looks for ▁
    pieces = slice(256, 256 + len(vocab.pieces))
    if vocab.kind == "unigram":
        assert table.scores[pieces] == vocab.scores
        assert table.charsmap == charsmap(tokenizer.normalizer)
    else:
        assert list(table.scores[pieces]) == sorted(set(table.scores[pieces]), reverse=True)
    assert set(table.types[:256]) == {BYTE}
    assert set(table.types[pieces]) == {NORMAL}
    specials = dict(zip(vocab.specials, table.types[pieces.stop :], strict=True))
    assert specials.pop("<unk>") == UNKNOWN
    assert set(specials.values()) == {CONTROL}
    assert table.roles == {
        role: vocab.special_ids[token]
        for role, token in (("bos", "<s>"), ("eos", "</s>"), ("mask", "<mask>"), ("pad", "<pad>"), ("unk", "<unk>"))
    }
    assert table.add_space_prefix == bool(tokenizer.prefix)
    assert not table.remove_extra_whitespaces


SPECIALS = ("<unk>", "</s>")


def test_roles_without_a_token_have_defined_ids() -> None:
    """llama.cpp's own defaults would be ids of bytes."""
    assert table_of(Definition(Vocab.bpe("가", [], specials=SPECIALS))).roles == {
        "bos": 258,
        "eos": 258,
        "pad": 258,
        "unk": 257,
    }


def test_notes_say_what_differs() -> None:
    unigram = table_of(Definition(Vocab.unigram({"가": -1.0}, specials=SPECIALS)))
    said = "\n".join(notes(unigram, Normalizer(Folds(repeats=2))))
    assert "no byte fallback" in said
    assert "`repeats` is applied to runs of up to 32 characters" in said
    bpe = "\n".join(notes(table_of(Definition(Vocab.bpe("가", [], specials=SPECIALS)))))
    assert "no byte fallback" not in bpe
    assert "no normalizer" in bpe


class TestIntoAModel:
    @pytest.fixture
    def table(self, trained: Callable[..., Path]) -> GgufVocab:
        return make(load(trained(train={"model": "bpe"})))

    def test_tensors_and_keys_stay_and_the_tokenizer_is_ours(self, table: GgufVocab, tmp_path: Path) -> None:
        import gguf

        model = tiny_model(tmp_path / "model.gguf", len(table.tokens) + 3)
        before, was = gguf.GGUFReader(model), model.read_bytes()
        new = write_into(table, model, tmp_path / "new.gguf", chat_template="{{ new }}")
        after = gguf.GGUFReader(new)
        assert model.read_bytes() == was
        for one, two in zip(before.tensors, after.tensors, strict=True):
            assert (one.name, one.tensor_type, [*one.shape]) == (two.name, two.tensor_type, [*two.shape])
            assert one.data.tobytes() == two.data.tobytes()
        kept = [name for name in before.fields if not name.startswith(("GGUF.", "tokenizer."))]
        for name in kept:
            assert before.get_field(name).contents() == after.get_field(name).contents(), name
        assert [*after.get_field("tiny.languages").contents()] == ["en", "fr"]
        assert after.get_field("tokenizer.chat_template").contents() == "{{ new }}"
        back = read(new)
        size = len(table.tokens)
        assert (back.tokens[:size], back.roles) == (table.tokens, table.roles)
        assert back.tokens[size:] == tuple(f"[PAD{size + i}]" for i in range(3))
        assert {*back.types[size:]} == {CONTROL}

    def test_other_sizes_and_other_files_are_refused(self, table: GgufVocab, tmp_path: Path) -> None:
        small = tiny_model(tmp_path / "small.gguf", len(table.tokens) - 1)
        with pytest.raises(ArtifactError, match=r"has embeddings for other ids \(token_embd\.weight [\d,]+\) than"):
            write_into(table, small, tmp_path / "new.gguf")
        alone = write(table, tmp_path / "alone.gguf")
        with pytest.raises(ArtifactError, match="holds no model"):
            write_into(table, alone, tmp_path / "new.gguf")
        model = tiny_model(tmp_path / "model.gguf", len(table.tokens))
        with pytest.raises(UsageError, match="was not written by koktok"):
            write_into(table, model, small)
        model.write_bytes(model.read_bytes()[:-100])
        with pytest.raises(ArtifactError, match=r"is cut short|the library gguf cannot read"):
            write_into(table, model, tmp_path / "new.gguf")
        assert not (tmp_path / "new.gguf").exists()

    def test_the_verb(self, table: GgufVocab, trained: Callable[..., Path], tmp_path: Path) -> None:
        folder = trained(train={"model": "bpe"})
        model = tiny_model(tmp_path / "model.gguf", 2304)
        words = ("export", folder, "--to", "gguf", "-o", tmp_path / "new.gguf")
        done = koktok(*words, "--into", model)
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'new.gguf'}\n"), done.stderr
        assert "4 rows more than there are ids" in done.stderr
        assert "a vocabulary alone" not in done.stderr
        assert read(tmp_path / "new.gguf").tokens[:2300] == table.tokens
        again = koktok(*words, "--into", model)
        assert (again.returncode, "was not written by koktok" in again.stderr) == (2, True)
        alone = koktok(*words[:-1], tmp_path / "alone.gguf")
        assert (alone.returncode, "note: a vocabulary alone" in alone.stderr) == (0, True)
        other = koktok("export", folder, "--to", "spm", "--into", model, "-o", tmp_path / "new.model")
        assert (other.returncode, "`--into` does nothing with `--to spm" in other.stderr) == (2, True)


def header(*fields: bytes, tensors: int = 0, more: bytes = b"") -> bytes:
    """A GGUF of these fields."""
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, len(fields)) + b"".join(fields) + more


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def field(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


ARCHITECTURE = field(b"general.architecture", 8, text(b"llama"))


def tensor(*shape: int, name: bytes = b"token_embd.weight") -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, 0)


MALFORMED = {
    "nothing": (b"", "is not GGUF"),
    "another file": (b"GGML" + bytes(100), "is not GGUF"),
    "no architecture": (
        header(tensors=1, more=tensor(1, 259) + bytes(4 * 259 + 64)),
        "expected a string as `general.architecture`, got None",
    ),
    "a number for a name": (
        header(field(b"general.architecture", 4, b"\1\0\0\0")),
        "expected a string as `general.architecture`, got 1",
    ),
    "a name that is no UTF-8": (
        header(field(b"general.architecture", 8, text(b"\xff\xfe"))),
        "the library gguf cannot read .*UnicodeDecodeError",
    ),
    "a part of x parts": (header(ARCHITECTURE, field(b"split.count", 8, text(b"x"))), "the library gguf cannot read"),
    "a part of two": (header(ARCHITECTURE, field(b"split.count", 4, b"\2\0\0\0")), "is a part of a model"),
    "fields without end": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "the library gguf cannot read"),
    "a type that is none": (header(field(b"a", 99, b"")), "the library gguf cannot read"),
    "rows without end": (header(ARCHITECTURE, tensors=1, more=tensor(8, 1 << 31)), "the library gguf cannot read"),
    "one dimension": (header(ARCHITECTURE, tensors=1, more=tensor(8) + bytes(64)), "expected a row for each id"),
}
"""What a file may hold, and the one sentence about it."""


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_model_is_refused(name: str, tmp_path: Path) -> None:
    content, message = MALFORMED[name]
    (tmp_path / "model.gguf").write_bytes(content)
    table = table_of(Definition(Vocab.bpe("가", [], specials=SPECIALS)))
    with pytest.raises(ArtifactError, match=message):
        write_into(table, tmp_path / "model.gguf", tmp_path / "new.gguf")
    assert [file.name for file in tmp_path.iterdir()] == ["model.gguf"]


@pytest.mark.parametrize("style", ["plain", "bert", "roberta", "gpt", "llama", "t5"])
def test_a_text_begins_in_llama_cpp_as_in_transformers(
    style: str, trained: Callable[..., Path], tmp_path: Path
) -> None:
    tokenizer = restyle(load(trained(train={"model": "bpe"})), style)  # type: ignore[arg-type]
    if refuses(tokenizer.definition):
        return
    table = table_of(tokenizer.definition)
    back = read(write(table, tmp_path / "a.gguf"))
    assert back == table
    plain, whole = (tokenizer.encode("집", add_special_tokens=on).ids for on in (False, True))
    bos, eos = [table.roles["bos"]] * back.add_bos, [table.roles["eos"]] * back.add_eos
    assert [*bos, *plain, *eos] == whole


class TestBadInput:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        vocab = Vocab.bpe(map(chr, range(0xAC00, 0xAD00)), [], specials=SPECIALS)
        return write(table_of(Definition(vocab)), tmp_path / "a.gguf")

    @pytest.mark.parametrize("missing", [1, 500])
    def test_cut_short_within_its_last_field(self, tmp_path: Path, missing: int) -> None:
        table = table_of(Definition(Vocab.unigram({"가": -1.0}, specials=SPECIALS)))
        file = write(replace(table, charsmap=b"\1" * 1000), tmp_path / "a.gguf")
        assert read(file).charsmap == b"\1" * 1000
        file.write_bytes(file.read_bytes()[:-missing])
        with pytest.raises(ArtifactError, match=r"`tokenizer\.ggml\.precompiled_charsmap` is incomplete"):
            read(file)

    def test_a_failure_leaves_the_old_file(self, file: Path) -> None:
        before = file.read_bytes()
        table = read(file)
        object.__setattr__(table, "tokens", (*table.tokens[:-1], "\ud800"))
        with pytest.raises(UnicodeEncodeError):
            write(table, file)
        assert file.read_bytes() == before
        assert list(file.parent.iterdir()) == [file]


@pytest.mark.slow
def test_llama_cpp_gives_the_same_ids(tokenizer: Tokenizer, mini: list[str], tmp_path: Path) -> None:
    table, unknown = make(tokenizer), tokenizer.vocab.special_ids["<unk>"]
    raw = [*mini, " 두  칸 ", "\t표\n두 줄\r\n", "\u1112\u1161\u11ab\u1100\u1173\u11af 가\u200b나", "<0x0A></s>é漢字🙂"]
    lines = [line for line in raw if line and "▁" not in line]
    if table.model == "llama":
        lines = [tokenizer.normalize(line) for line in lines]
    found = llama_cpp_ids(write(table, tmp_path / "a.gguf"), lines)
    lost = 0
    for line, ids in zip(lines, found, strict=True):
        ours = tokenizer.encode(line).ids
        if any(i < 256 for i in ours) and table.model == "t5":
            lost += 1
            folded = [unknown if i < 256 else i for i in ours]
            ours = [i for at, i in enumerate(folded) if i != unknown or not at or folded[at - 1] != unknown]
        assert ids == ours, line
    assert lost < len(lines) / 10
