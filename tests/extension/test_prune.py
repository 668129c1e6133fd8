"""A vocabulary without pieces that a text never uses: the text's pieces stay, in every library; and the model's rows follow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_extend_models import bits, matrix, model, read_tensors
from tiny_bases import ENGLISH, LINES, byte_level, ranked, saved, sentencepiece_model

from koktok.cli import app
from koktok.errors import ArtifactError, UsageError
from koktok.extension.base_tokenizer import Base, base_of, open_base
from koktok.extension.prune import leaves, prune, read_pruned
from koktok.runtimes.tiktoken.ranks import load
from koktok.verification import verify

TEXT = [*ENGLISH, *LINES[:8]]


def opened(folder: Path) -> Base:
    return base_of(str(folder), {file.name: file.read_bytes() for file in folder.glob("token*")})


def pieces(base: Base, ids: list[int]) -> list[str]:
    return [base.tokens[i] for i in ids]


def test_text_has_the_pieces_it_had_in_every_library(tmp_path: Path) -> None:
    base = ranked(900)
    made = prune(base, TEXT, tmp_path / "out", drop=60)
    record, table = read_pruned(made.folder)
    new = opened(made.folder)
    assert (made.size, len(record.removed), new.size) == (base.size - 60, 60, base.size - 60)
    before, after = base.encode(TEXT), new.encode(TEXT)
    assert [pieces(base, row) for row in before] == [pieces(new, row) for row in after]
    assert [table[row].tolist() for row in before] == after
    assert load(made.folder).encoding().encode_ordinary_batch(TEXT) == after
    # Ids move by one order, special tokens with them.
    kept = table[table >= 0]
    assert kept.tolist() == list(range(made.size - new.tokens.count(""))) or (np.diff(kept) > 0).all()
    assert new.runner.token_to_id("<|end|>") == table[base.runner.token_to_id("<|end|>")]
    # What went can still be written, by what it was made of.
    lost = base.strings[record.removed[0].id].decode(errors="ignore")
    assert new.runner.decode(new.encode([lost])[0]) == lost


def test_pieces_are_removed_after_all_longer_ones(tmp_path: Path) -> None:
    base = ranked(900)
    used = np.zeros(base.size, bool)
    used[[i for row in base.encode(TEXT) for i in row]] = True
    removed = [base.strings[i] for i in leaves(base, used, 80)]
    left = {string for string in base.strings if string} - set(removed)
    for string in left:
        ways = [(string[:k], string[k:]) for k in range(1, len(string))]
        before = [way for way in ways if {*way} <= {*base.strings}]
        assert all({*way} <= left for way in before)


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Base, Base]:
    base = ranked(900)
    return base, opened(prune(base, TEXT, tmp_path_factory.mktemp("pruned") / "out", drop=60).folder)


@given(text=st.lists(st.sampled_from(TEXT), min_size=1, max_size=3).map(" ".join))
def test_lines_of_the_text_in_any_order_have_the_pieces_they_had(pruned: tuple[Base, Base], text: str) -> None:
    base, new = pruned
    assert pieces(base, base.encode([text])[0]) == pieces(new, new.encode([text])[0])


def test_scripts_that_are_named_stay(tmp_path: Path) -> None:
    base = ranked(900)
    for script, letter in (("Latin", "a"), ("Hangul", "가")):
        gone = prune(base, TEXT, tmp_path / script, drop=10, keep_scripts=[script]).removed
        texts = [base.strings[i].decode(errors="ignore") for i in gone]
        low, high = ("A", "z") if letter == "a" else ("가", "힣")
        assert not any(low <= char <= high for text in texts for char in text)
    with pytest.raises(UsageError, match="`Koreanish` is not a script of Unicode"):
        prune(base, TEXT, tmp_path / "out", drop=10, keep_scripts=["Koreanish"])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece_models(tmp_path: Path, kind: str) -> None:
    import sentencepiece

    base = open_base(sentencepiece_model(tmp_path, kind))
    made = prune(base, TEXT, tmp_path / "out", drop=30)
    new = opened(made.folder)
    _, table = read_pruned(made.folder)
    library = sentencepiece.SentencePieceProcessor(model_file=str(made.folder / "tokenizer.model"))
    old = sentencepiece.SentencePieceProcessor(model_proto=base.files["tokenizer.model"])
    assert library.get_piece_size() == old.get_piece_size() - 30
    for line in TEXT:
        assert library.encode(line) == table[old.encode(line)].tolist()
        assert new.encode([line])[0] == table[base.encode([line])[0]].tolist()


def test_without_byte_fallback_no_character_becomes_unknown(tmp_path: Path) -> None:
    """Longest pieces first, and never the last piece of a character; `all` is what the text never uses."""
    reference = sentencepiece_model(tmp_path, "unigram", fallback=False)
    base = open_base(reference)
    made = prune(base, TEXT, tmp_path / "out", drop="all")
    new = opened(made.folder)
    before, after = base.encode(LINES), new.encode(LINES)
    assert any(base.unknown in row for row in before)
    assert [row.count(base.unknown) for row in before] == [row.count(new.unknown) for row in after]
    alone = {string for string in base.strings if len(string.decode()) == 1}
    assert alone <= {*new.strings}
    few = prune(base, TEXT, tmp_path / "few", drop=5).removed
    lengths = sorted((len(base.strings[i].decode()) for i in made.removed), reverse=True)
    assert sorted((len(base.strings[i].decode()) for i in few), reverse=True) == lengths[:5]
    assert any("only characters that the base did not know are unknown" in note for note in made.notes)
    report = verify(made.folder, TEXT, exports=[reference])
    assert report.passed
    assert next(found for found in report.findings if found.check == "unknown tokens").checked == len(set(TEXT))
    lost = json.loads((made.folder / "tokenizer.json").read_text())
    rows = [row for row in lost["model"]["vocab"] if row[0] != "e"]
    text = json.dumps({**lost, "model": {**lost["model"], "vocab": [*rows, ["\ue000", -99.0]]}})
    (made.folder / "tokenizer.json").write_text(text)
    found = {finding.check: finding.outcome for finding in verify(made.folder, TEXT, exports=[reference]).findings}
    assert found["unknown tokens"] == found["files"] == "fail"
    with pytest.raises(UsageError, match="expected all pieces that are unused"):
        leaves(base, np.ones(base.size, bool), "all")


def test_too_many_and_too_few(tmp_path: Path) -> None:
    base = ranked(900)
    with pytest.raises(UsageError, match=r"expected 5,000 pieces that are unused .*, got \d+"):
        prune(base, TEXT, tmp_path / "out", drop=5000)
    with pytest.raises(UsageError, match="`drop`: expected greater than or equal to 1, got 0"):
        prune(base, TEXT, tmp_path / "out", drop=0)
    assert not (tmp_path / "out").exists()


def test_the_verb_and_the_rows_that_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = byte_level(size=900, specials=("<|end|>", "<|pad|>"))
    base = saved(made, tmp_path / "base")
    text = tmp_path / "text.txt"
    text.write_text("\n".join(TEXT), encoding="utf-8")
    out = tmp_path / "pruned"
    app(["extend", base, str(text), "--prune", "60", "--keep-scripts", "Latin", "-o", str(out)], standalone_mode=False)
    assert "have the pieces they had" in capsys.readouterr().err
    record, table = read_pruned(out)
    assert verify(out, TEXT, exports=[base]).passed
    assert not verify(out, TEXT, exports=[saved(byte_level(size=410), tmp_path / "other")]).passed
    rows = record.base.size
    tensors = {"model.embed_tokens.weight": matrix(rows + 6, 1), "lm_head.weight": matrix(rows + 6, 2)}
    place = model(
        tmp_path / "model",
        tensors,
        dtype="BF16",
        shards=2,
        eos_token_id=[rows - 2, rows - 1],
        bos_token_id=None,
        vocab_size=rows,
    )
    (place / "generation_config.json").write_text(json.dumps({"pad_token_id": rows - 1, "top_k": 50}))
    app(
        ["extend", str(out), "--apply", str(place), "--pad-to-multiple", "64", "-o", str(tmp_path / "new"), "-q"],
        standalone_mode=False,
    )
    found = {
        name: array for file in (tmp_path / "new").glob("*.safetensors") for name, array in read_tensors(file).items()
    }
    kept = np.flatnonzero(table >= 0)
    for name, old in tensors.items():
        stored = (np.frombuffer(bits(old, "BF16"), "<u2").astype("<u4") << 16).view("<f4").reshape(old.shape)
        assert len(found[name]) % 64 == 0
        assert np.array_equal(found[name][: len(kept)], stored[kept])
    config = json.loads((tmp_path / "new" / "config.json").read_text())
    assert config["eos_token_id"] == table[[rows - 2, rows - 1]].tolist()
    assert config["vocab_size"] == len(found["lm_head.weight"])
    assert json.loads((tmp_path / "new" / "generation_config.json").read_text()) == {
        "pad_token_id": int(table[rows - 1]),
        "top_k": 50,
    }
    with pytest.raises(UsageError, match="`--add` does nothing with --prune"):
        app(["extend", base, str(text), "--prune", "9", "--add", "9", "-o", str(tmp_path / "x")], standalone_mode=False)
    (out / "pruned.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"pruned\.json` is damaged"):
        read_pruned(out)
