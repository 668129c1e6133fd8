"""Extension of an existing vocabulary (law 13): tiny bases made here, every library, the proof, and rows for embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import conftest
import pytest
import tokenizers
from conftest import MINI
from hypothesis import given
from hypothesis import strategies as st
from tiny_bases import ENGLISH, LINES, Suffixes, byte_level, ranked, saved, sentencepiece_model
from tokenizers import Regex, models, pre_tokenizers

import koktok
from koktok import Recipe
from koktok.cli import app
from koktok.count.counting import read
from koktok.errors import ArtifactError, InputError, UsageError, VocabSizeError
from koktok.extension import extension_files as write
from koktok.extension import laws, learn
from koktok.extension.base_text import BaseText, prepare
from koktok.extension.base_tokenizer import Base, base_of, holds_hangul, open_base
from koktok.model.vocab import Vocab
from koktok.runtimes.sentencepiece.message import ModelProto
from koktok.runtimes.tiktoken.ranks import load
from koktok.segment import Whitespace
from koktok.text.blocklist import Blocklist
from koktok.tokenizer import TrainedTokenizer


def learnt(
    base: Base, add: int, blocklist: Blocklist | None = None, **options: Any
) -> tuple[learn.PieceList, BaseText]:
    text = prepare(base, read(LINES, holdout=0.1), Suffixes())
    return learn.learn(base, text, learn.ExtendOptions(add=add, **options), blocklist), text


def made_of(
    base: Base, add: int = 120, fill: str | None = None, **options: Any
) -> tuple[write.Extension, Base, dict[str, bytes]]:
    extension = write.extended(base, learnt(base, add, **options)[0], add, fill=fill)
    files = write.files_of(extension)
    return extension, base_of("new", files), files


def refuted(base: Base, new: Base, record: write.ExtensionRecord) -> list[laws.Claim]:
    return [said for said in laws.proof(base, new, record) if not said.holds]


def check(base: Base, new: Base, files: dict[str, bytes], lines: list[str]) -> None:
    """The laws hold by definition, and on text."""
    assert refuted(base, new, write.ExtensionRecord.model_validate_json(files["extension.json"])) == []
    assert all(said.holds for said in laws.on_text(base, new, lines))


Tiny = tuple[write.Extension, Base, dict[str, bytes]]


@pytest.fixture(scope="module")
def tiny() -> Tiny:
    return made_of(ranked(), 160)


@pytest.fixture(scope="module")
def encoding(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The extension in tiktoken."""
    folder = tmp_path_factory.mktemp("tiny")
    for name, data in tiny[2].items():
        (folder / name).write_bytes(data)
    return load(folder).encoding()


def test_the_training_state_is_the_segmentation_at_run_time() -> None:
    base = ranked()
    found, text = learnt(base, 150, sizes=(50,))
    reading = read(LINES, holdout=0.1)
    for point in found.points[1:]:
        new = base_of("new", write.files_of(write.extended(base, found, point.size)))
        for counts, tokens, words in (
            (reading.train, point.tokens, text.train.words),
            (reading.held, point.held_tokens, text.held.words),
        ):
            rows = new.encode(counts.words)
            real = sum(len(row) * n for row, n in zip(rows, counts.n.tolist(), strict=True))
            assert real == round(tokens * words)


def test_a_prefix_of_the_list_is_the_list_of_a_smaller_size() -> None:
    base = ranked()
    assert learnt(base, 40)[0].pieces == learnt(base, 90)[0].pieces[:40]


def test_libraries_agree_and_the_laws_hold(tiny: Tiny, encoding: Any) -> None:
    extension, new, files = tiny
    lines = [*LINES, *ENGLISH, "ㅋㅋㅋㅋㅋㅋ 하하하하", "쌘돌이 퉜다 API는 3개"]
    assert new.encode(lines) == encoding.encode_ordinary_batch(lines)
    check(extension.base, new, files, lines)
    assert sum(map(len, new.encode(LINES))) < 0.8 * sum(map(len, extension.base.encode(LINES)))


@given(st.text(alphabet=st.sampled_from("학교에서는대한민국 abc1!ㅋㅠ가쌘\n漢😀"), max_size=40))
def test_no_text_is_longer_and_libraries_agree(tiny: Tiny, encoding: Any, text: str) -> None:
    extension, new, _ = tiny
    before, after = extension.base.encode([text])[0], new.encode([text])[0]
    assert len(after) <= len(before)
    assert after == encoding.encode_ordinary(text)
    if not holds_hangul(text.encode()):
        assert after == before


@given(st.binary(max_size=24))
def test_bytes_without_hangul_keep_their_ids(tiny: Tiny, encoding: Any, data: bytes) -> None:
    if not holds_hangul(data):
        old = tiny[0].base.ranks.encoding()
        assert encoding._encode_bytes(data) == old._encode_bytes(data)


def test_a_higher_penalty_keeps_more_morpheme_boundaries() -> None:
    base = ranked()
    points = {nu: learnt(base, 120, nu=nu)[0].points[-1] for nu in (0.0, 1.0, 4.0)}
    assert points[0.0].recall < points[1.0].recall <= points[4.0].recall
    assert points[0.0].tokens < points[1.0].tokens <= points[4.0].tokens
    text = learnt(base, 1)[1]
    target = (points[0.0].recall + points[1.0].recall) / 2
    kept = learn.learn(base, text, learn.ExtendOptions(add=120, keep=target))
    assert abs(kept.points[-1].recall - target) <= 0.01


def test_llama_3_with_ignore_merges_and_filled_reserved_ids(tmp_path: Path) -> None:
    names = ("<|begin_of_text|>", *(f"<|reserved_special_token_{i}|>" for i in range(100)), "<|eot_id|>")
    content = json.loads(byte_level(specials=names).to_str())
    content["model"]["ignore_merges"] = True
    base = open_base(saved(tokenizers.Tokenizer.from_str(json.dumps(content)), tmp_path))
    assert len(base.free) == 100
    for fill in (None, "reserved"):
        _, new, files = made_of(base, 80, fill)
        check(base, new, files, [*LINES, *ENGLISH, *names])
        assert new.size == (base.size if fill else base.size + 80)
        assert {new.runner.token_to_id(token) for token in ("<|begin_of_text|>", "<|eot_id|>")} == {420, 521}
    with pytest.raises(UsageError, match=r"expected 101 reserved ids for new pieces, got 100"):
        write.extended(base, learnt(base, 101)[0], 101, fill="reserved")


def test_ids_that_only_the_config_knows_stay_free(tmp_path: Path) -> None:
    decoder = {"421": {"content": "<|im_start|>", "special": True}, "422": {"content": "<tool>"}}
    base = open_base(saved(byte_level("qwen2"), tmp_path, tokenizer_config={"added_tokens_decoder": decoder}))
    extension, new, files = made_of(base, 30)
    assert (base.size, extension.ids[0], extension.holes) == (423, 423, 0)
    assert refuted(base, new, write.ExtensionRecord.model_validate_json(files["extension.json"])) == []
    import transformers

    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert [loaded(line)["input_ids"] for line in LINES[:50]] == new.encode(LINES[:50])
    assert loaded.convert_tokens_to_ids(["<|im_start|>", "<tool>"]) == [421, 422]


def test_reserved_ids_that_a_role_or_the_model_has_are_not_filled(tmp_path: Path) -> None:
    made = byte_level(specials=("<|reserved_special_token_0|>", "<|reserved_special_token_1|>"))
    beside = {"pad_token": "<|reserved_special_token_0|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    base = open_base(saved(made, tmp_path, tokenizer_config=beside, config={"eos_token_id": [5, 421]}))
    assert base.free == []
    slots = tmp_path / "slots.txt"
    for slot, why in ((420, "pad_token"), (421, "eos_token_id")):
        slots.write_text(f"{slot}\n")
        with pytest.raises(UsageError, match=why):
            write.extended(base, learnt(base, 1)[0], 1, fill=str(slots))


def _broken(files: dict[str, bytes], change: Callable[[dict[str, Any]], None]) -> Base:
    content = json.loads(files["tokenizer.json"])
    change(content["model"])
    return base_of("broken", {**files, "tokenizer.json": json.dumps(content).encode()})


def test_the_proof_refutes(tiny: Tiny) -> None:
    extension, new, files = tiny
    base, record = extension.base, write.ExtensionRecord.model_validate_json(files["extension.json"])

    def laws_of(other: Base, one: write.ExtensionRecord = record) -> set[str]:
        return {claim.law for claim in refuted(base, other, one)}

    def front(model: dict[str, Any]) -> None:
        model["merges"].insert(0, model["merges"].pop())

    def latin(model: dict[str, Any]) -> None:
        model["merges"].append(["q", "z"])
        model["vocab"]["qz"] = 9999

    def swapped(model: dict[str, Any]) -> None:
        model["vocab"]["a"], model["vocab"]["b"] = model["vocab"]["b"], model["vocab"]["a"]

    assert laws.MERGES in laws_of(_broken(files, front))
    assert {laws.MERGES, laws.OLD_IDS} <= laws_of(_broken(files, latin))
    assert laws.OLD_IDS in laws_of(_broken(files, swapped))
    for token in ("ĠAPI", "Ģê°", "°Ģ", "ê°Ģa", "1ê°Ģ"):
        other = record.model_copy(deep=True)
        other.pieces[0].token = token
        assert laws.SHAPE in laws_of(new, other)


def test_no_piece_contains_a_string_of_the_blocklist() -> None:
    base = ranked()
    free = learnt(base, 150)[0].pieces
    word = max((piece.string.decode(errors="ignore").strip() for piece in free), key=len)
    pieces = learnt(base, 150, blocklist=Blocklist([word]))[0].pieces
    assert not any(word.encode() in piece.string for piece in pieces)
    assert any(word.encode() in piece.string for piece in free)
    with pytest.raises(VocabSizeError, match=r"expected 50,000 new pieces, got [\d,]+ that save"):
        learnt(base, 50_000)


@pytest.mark.parametrize("fill", [None, "unused"])
def test_sentencepiece_bpe(tmp_path: Path, fill: str | None) -> None:
    base = open_base(sentencepiece_model(tmp_path, "bpe"))
    assert base.kind == "chars"
    add = 20 if fill else 150
    extension, new, files = made_of(base, add, fill)
    assert any(len(piece.string.decode().strip("▁")) == 1 for piece in extension.pieces) or fill
    check(base, new, files, [*LINES, *ENGLISH])
    check_sentencepiece(base, new, files)


def check_sentencepiece(base: Base, new: Base, files: dict[str, bytes]) -> None:
    """The library agrees on the extension where it agrees on the base."""
    from sentencepiece import SentencePieceProcessor

    library, old = (SentencePieceProcessor(model_proto=some["tokenizer.model"]) for some in (files, base.files))
    agreed = [line for line in LINES if old.encode(line) == base.encode([line])[0]]
    assert len(agreed) > 0.9 * len(LINES)
    assert [library.encode(line) for line in agreed] == new.encode(agreed)


def test_scores_of_32_bits_stay_apart(tmp_path: Path) -> None:
    """The last pieces of Mistral's vocabulary have -10⁹, where the next lower number is 64 away."""
    file = Path(sentencepiece_model(tmp_path, "bpe"))
    proto = ModelProto(file.read_bytes())
    min(proto.pieces, key=lambda row: row.score).score = -1e9
    file.write_bytes(proto.serialized())
    base = open_base(str(file))
    extension, new, files = made_of(base, 150)
    proto = ModelProto(files["tokenizer.model"])
    scores = [proto.pieces[i].score for i in extension.ids]
    assert all(later < before for before, later in pairwise([-1e9, *scores]))
    check_sentencepiece(base, new, files)


@pytest.mark.parametrize("fallback", [True, False])
def test_unigram(tmp_path: Path, fallback: bool) -> None:
    import sentencepiece

    base = open_base(sentencepiece_model(tmp_path, "unigram", fallback=fallback))
    assert base.kind == "unigram"
    _, new, files = made_of(base, 60)
    assert refuted(base, new, write.ExtensionRecord.model_validate_json(files["extension.json"])) == []
    said = list(laws.on_text(base, new, [*LINES, *ENGLISH, "ſ ﬁ 你"]))
    assert all(one.holds for one in said if one.law == laws.UNCHANGED)
    assert sum(not one.holds for one in said) <= len(LINES) // 100
    before, after = base.encode(LINES), new.encode(LINES)
    if fallback:
        assert sum(map(len, after)) < 0.95 * sum(map(len, before))
    else:  # what was lost is found: that takes tokens
        assert sum(row.count(base.unknown) for row in after) < 0.9 * sum(row.count(base.unknown) for row in before)
    library = sentencepiece.SentencePieceProcessor(model_proto=files["tokenizer.model"])
    rows = new.encode(LINES)
    assert sum(library.encode(line) == row for line, row in zip(LINES, rows, strict=True)) > 0.98 * len(LINES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama3", "qwen2", "sentencepiece"])
def test_llama_cpp_cuts_as_hugging_face_does(tmp_path: Path, kind: str) -> None:
    from llama_cpp import llama_cpp_ids

    from koktok.runtimes import LibraryTokenizer, gguf
    from koktok.tokenizer.open import load

    spm = kind == "sentencepiece"
    reference = sentencepiece_model(tmp_path, "bpe") if spm else saved(byte_level(kind), tmp_path / "base")
    base = open_base(reference)
    _, new, files = made_of(base, 150)
    name = "tokenizer.model" if spm else "tokenizer.json"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / name).write_bytes(files[name])
    lines = [line.strip() for line in (*LINES, *ENGLISH)]

    def cut(file: str, out: str) -> list[list[int]]:
        opened = load(file)
        assert isinstance(opened, LibraryTokenizer)
        return llama_cpp_ids(gguf.write(opened.gguf_vocab(), tmp_path / out, name="it"), lines)

    before, after = cut(reference, "old.gguf"), cut(str(tmp_path / "new" / name), "new.gguf")
    alike = [k for k, row in enumerate(base.encode(lines)) if before[k] == row]
    assert len(alike) > 0.95 * len(lines)
    assert [after[k] for k in alike] == [new.encode(lines)[k] for k in alike]


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bases_that_cannot_be_extended(tmp_path: Path) -> None:
    def refused(made: tokenizers.Tokenizer, message: str) -> None:
        with pytest.raises(ArtifactError, match=message):
            open_base(saved(made, tmp_path / "bad"))

    chars = tokenizers.Tokenizer(models.BPE({"a": 0, "<unk>": 1}, [], unk_token="<unk>"))
    refused(chars, "without byte fallback")
    node = json.loads(chars.to_str())
    del node["model"]["type"]  # as older versions of the library wrote it
    (tmp_path / "tokenizer.json").write_text(json.dumps(node))
    with pytest.raises(ArtifactError, match="without byte fallback"):
        open_base(str(tmp_path / "tokenizer.json"))
    refused(tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")), "is a WordPiece model")
    apart = byte_level()
    apart.normalizer = tokenizers.normalizers.NFD()
    refused(apart, "splits syllables")
    single = byte_level()
    single.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("[가-힣]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    refused(single, "cuts between any two syllables")
    lower = byte_level()
    lower.normalizer = tokenizers.normalizers.Lowercase()
    assert "lower-cases" in open_base(saved(lower, tmp_path / "lower")).notes[0]


def test_no_hangul_no_sizes_no_slots(tmp_path: Path) -> None:
    base = ranked()
    with pytest.raises(InputError, match="got no Hangul in the text"):
        prepare(base, read(["only English here"], holdout=0), Whitespace())
    with pytest.raises(UsageError, match="sizes from 1 to 5, got 9"):
        learnt(base, 5, sizes=(9,))
    with pytest.raises(UsageError, match="has no reserved ids"):
        write.slots_of(base, "reserved")
    slots = tmp_path / "slots.txt"
    slots.write_text("<|pad|>\n<nothing>\n")
    with pytest.raises(UsageError, match=r"`<nothing>` of .* is not a token"):
        write.slots_of(base, str(slots))
    slots.write_text("0\n1\n")
    with pytest.raises(ArtifactError, match="in tiktoken an id is a rank"):
        write.extended(base, learnt(base, 2)[0], 2, fill=str(slots))
    with pytest.raises(ArtifactError, match=r"extension\.json` cannot be read"):
        write.read_extension(tmp_path)


def test_the_verb_and_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = saved(byte_level(), tmp_path / "base")
    out = tmp_path / "out"
    words = ["extend", base, *map(str, sorted(MINI.glob("*.txt"))), "--frontier", "20,60", "-o", str(out)]
    app(words, standalone_mode=False)
    shown = capsys.readouterr()
    assert "+60" in shown.out
    assert "checks of the guarantees passed" in shown.err
    record = write.read_extension(out)
    assert [len(record.pieces), record.frontier[1]["size"]] == [60, 20]
    assert "bits per byte" in (out / "README.md").read_text(encoding="utf-8")
    first = {file.name: file.read_bytes() for file in out.iterdir()}
    app([*words, "-q"], standalone_mode=False)
    assert first == {file.name: file.read_bytes() for file in out.iterdir()}
    (out / "tokenizer.json").write_text("mine")
    with pytest.raises(UsageError, match="was not written by koktok"):
        app([*words, "-q"], standalone_mode=False)


def test_verify_passes_an_extension_and_fails_a_damaged_one(tmp_path: Path) -> None:
    from koktok.verification import verify

    _, _, files = made_of(ranked(), 60)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    report = verify(tmp_path, LINES[:200], strings=2_000)
    assert report.passed
    checked = {finding.check: finding.checked for finding in report.findings}
    assert checked["ids: tiktoken"] >= 2_000
    assert checked[laws.UNCHANGED] >= 4_000  # random text, and bytes that need be none
    content = json.loads(files["tokenizer.json"])
    content["model"]["merges"].append(["t", "h"])
    content["model"]["vocab"].setdefault("th", 9999)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    failed = {finding.check for finding in verify(tmp_path, LINES[:20]).findings if finding.outcome == "fail"}
    assert laws.MERGES in failed
    base = ranked()
    plain, harmed = (
        {said.law for said in laws.on_bytes(base, one, [b"th", b"\xff\xea", "가".encode()]) if not said.holds}
        for one in (
            base_of("", {"tokenizer.json": files["tokenizer.json"]}),
            base_of("", {"tokenizer.json": json.dumps(content).encode()}),
        )
    )
    assert not plain
    assert harmed == {laws.UNCHANGED}
    (tmp_path / "extension.json").write_text("{}")
    assert not verify(tmp_path).passed
    TrainedTokenizer(Recipe(), Vocab.unigram({"가": -1.0})).save(tmp_path / "plain")
    with pytest.raises(UsageError, match="for extensions"):
        verify(tmp_path / "plain", strings=1)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_koktoks_own_vocabularies_can_be_extended(tmp_path: Path, kind: str) -> None:
    chars = sorted({char for line in LINES[:100] for char in line})
    recipe = Recipe().changed(train={"model": kind})
    specials = recipe.special_tokens
    made = (
        Vocab.bpe(chars, [], specials=specials)
        if kind == "bpe"
        else Vocab.unigram(dict.fromkeys(chars, -5.0), specials=specials)
    )
    base = open_base(str(TrainedTokenizer(recipe, made).save(tmp_path / "ours")))
    _, new, files = made_of(base, 40)
    check(base, new, files, [*LINES[:300], *ENGLISH])
    assert sum(map(len, new.encode(LINES))) < 0.97 * sum(map(len, base.encode(LINES)))


def test_from_python_by_paths(tmp_path: Path) -> None:
    base = tmp_path / "base"
    saved(byte_level(), base)
    made = koktok.extend(base, MINI / "news.txt", tmp_path / "new", add=24, segmenter="whitespace", cache=False)
    new, old = koktok.load(made.folder), koktok.load(base)
    assert new.vocab_size == old.vocab_size + 24
    assert new.encode("The quick brown fox.").ids == old.encode("The quick brown fox.").ids


def test_another_setting_at_an_existing_folder_is_refused_before_learning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = saved(byte_level(), tmp_path / "base")
    how: dict[str, Any] = {"add": 8, "segmenter": "whitespace", "cache": False}
    koktok.extend(base, LINES[:99], tmp_path / "new", **how, init="weighted", pad_to=64)
    monkeypatch.setattr("koktok.extension.extend.learn", lambda *_: pytest.fail("it learns"))
    for other in ({"nu": 2}, {"init": "mean"}, {"pad_to": 1}, {"min_count": 3}, {"policy": "none"}, {"keep": 0.9}):
        with pytest.raises(UsageError, match="already exists and contains a different extension"):
            koktok.extend(base, LINES[:99], tmp_path / "new", **{**how, "init": "weighted", "pad_to": 64, **other})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *(
            (f"--apply m {words}", "with --apply")
            for words in ("--add 8", "--min-count 2", "--holdout 0.1", "--policy none")
        ),
        *(
            (f"--apply m {words}", "with --apply")
            for words in ("--blocklist b.txt", "--personal-data keep", "--threads 1")
        ),
        *(
            (f"--apply m {words}", "with --apply")
            for words in ("--user-dictionary u.tsv", "--prune 3", "--pattern gpt2")
        ),
        *(
            (f"t.txt --prune 3 {words}", "with --prune")
            for words in ("--min-count 2", "--init mean", "--pad-to-multiple 8")
        ),
        ("t.txt --keep-scripts Latin", "without --prune"),
    ],
)
def test_options_that_do_nothing_are_refused(words: str, said: str, tmp_path: Path) -> None:
    for name in ("b.txt", "u.tsv", "t.txt"):
        (tmp_path / name).write_text("가\n", encoding="utf-8")
    done = conftest.koktok("extend", "base", *words.split(), "-o", "out", cwd=tmp_path)
    option = next(word for word in reversed(words.split()) if word.startswith("--"))
    assert (done.returncode, f"`{option}` does nothing {said}" in done.stderr) == (2, True), done.stderr
