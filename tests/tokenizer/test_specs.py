"""Specs: any library behind one interface, spans that index the line, and reasons where one cannot run."""

from __future__ import annotations

import base64
import io
import json
import shlex
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from conftest import MODELS, ROOT
from hypothesis import given
from hypothesis import strategies as st

from koktok import Tokenizer, load
from koktok.errors import ArtifactError, KoktokError, UsageError
from koktok.metrics import Page, PageTokens
from koktok.metrics.entropy import unigram_of
from koktok.model.tokens import ByteTable, Tokens, tokens_by_bytes
from koktok.runtimes import PACKAGES
from koktok.runtimes.detect import detect
from koktok.runtimes.tiktoken.ranks import ranks_from_tekken
from koktok.text.prefix import without_prefix
from koktok.tokenizer.open import parse_spec


def cuts_of(rows: Tokens, lines: list[str]) -> list[list[int]]:
    """Places inside each line where a token begins or ends, never between two tokens of one character."""
    page = Page(lines)
    cuts = PageTokens(page, rows).cuts
    return [
        [k for k in range(1, len(line)) if cuts[int(at) + k]] for at, line in zip(page.line_starts, lines, strict=False)
    ]


LINES = ["나는  학교에 갔다😀", "ㅋㅋ 漢字 뷁?!", "", " 앞 빈칸", "탭\t글 3,000원"]


def check_spans(subject: Tokenizer, lines: list[str], *, spaces_too: bool = False) -> None:
    """Spans lie in their line, in order, and no solid character is left out."""
    rows = subject.encode_lines(lines)
    assert len(rows) == len(lines)
    for row, line in zip(rows.lines(), lines, strict=True):
        assert row.spans.shape == (len(row.ids), 2)
        assert ((row.spans[:, 0] >= 0) & (row.spans[:, 0] <= row.spans[:, 1]) & (row.spans[:, 1] <= len(line))).all()
        assert (np.diff(row.spans[:, 0]) >= 0).all()
        covered = {p for a, b in row.spans.tolist() for p in range(a, b)}
        assert all(p in covered or (char.isspace() and not spaces_too) for p, char in enumerate(line)), (line, row)


# ── spans ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dummy_space_moves_nothing() -> None:
    rows = tokens_by_bytes(["가 나"], [[0, 1]], ByteTable([" 가".encode(), " 나".encode()]), lambda _: [])
    assert rows.spans.tolist() == [[0, 1], [1, 3]]


def test_lines_whose_bytes_differ_get_the_library_s_spans() -> None:
    asked: list[int] = []

    def fallback(which: list[int]) -> list[list[tuple[int, int]]]:
        asked.extend(which)
        return [[(0, 2)] for _ in which]

    table = ByteTable([b"", "가나".encode()])
    rows = tokens_by_bytes(["가나", "뷁뷁", "가나"], [[1], [0], [1]], table, fallback)
    assert asked == [1]
    assert [row.spans.tolist() for row in rows.lines()] == [[[0, 2]]] * 3


@given(st.lists(st.text(st.sampled_from("가나다라 a😀漢"), max_size=12), max_size=5), st.data())
def test_any_cutting_of_the_bytes_gives_spans_that_cover_the_line(lines: list[str], data: st.DataObject) -> None:
    table: list[bytes] = []
    ids: list[list[int]] = []
    truth: list[list[tuple[int, int]]] = []
    for line in lines:
        raw = line.encode()
        cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1)))) if len(raw) > 1 else []
        edges = [0, *cuts, len(raw)] if raw else [0]
        ids.append([])
        truth.append([])
        for a, b in pairwise(edges):
            table.append(raw[a:b])
            ids[-1].append(len(table) - 1)
            before = [len(raw[:p].decode("utf-8", "ignore")) for p in range(len(raw) + 1)]
            complete = b == len(raw) or raw[b] & 0xC0 != 0x80
            truth[-1].append((before[a], before[b] if complete else before[b] + 1))
    rows = tokens_by_bytes(lines, ids, ByteTable(table), lambda _: pytest.fail("nothing is left"))
    assert [list(map(tuple, row.spans.tolist())) for row in rows.lines()] == truth


# ── kinds ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["syllables", "eojeols", "bytes", "kiwi", "mecab-ko"])
def test_rows_without_a_file(name: str) -> None:
    if name == "mecab-ko":
        pytest.importorskip("mecab")
    check_spans(load(name), LINES)


@pytest.mark.parametrize("model", ["unigram", "wordpiece", "morpheme"])
def test_our_folders_and_their_hf_form_agree(trained: Callable[..., Path], mini: list[str], model: str) -> None:
    folder = trained(**MODELS[model])
    ours = load(str(folder))
    assert ours.spec == str(folder)
    check_spans(ours, LINES[:1] + mini[:100])
    if (folder / "tokenizer.json").exists():
        theirs = load(f"hf:{folder}")
        a, b = ours.encode_lines(mini), theirs.encode_lines(mini)
        assert np.array_equal(a.ids, b.ids)
        assert np.array_equal(a.starts, b.starts)
        assert np.array_equal(a.ends, b.ends)
        assert (ours.size, ours.special_ids, ours.unknown_ids) == (theirs.size, theirs.special_ids, theirs.unknown_ids)


def test_token_bytes_join_to_the_line(trained: Callable[..., Path], mini: list[str]) -> None:
    subject = load(f"koktok:{trained()}")
    for row, line in zip(subject.encode_lines(mini), mini, strict=True):
        joined = b"".join(subject.token_bytes(int(i)) or b"" for i in row)
        assert without_prefix(joined.decode(), "first") == line
    assert subject.decode(subject.encode_lines([mini[0]]).ids.tolist()) == mini[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:

    lines = [
        line
        for path in sorted((ROOT / "corpora" / "mini").glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=made, vocab_size=1200, character_coverage=0.98, minloglevel=2
    )
    path = tmp_path_factory.mktemp("sp") / "tok.model"
    path.write_bytes(made.getvalue())
    return path


def test_sentencepiece_with_its_dummy_space_and_unknown_characters(model: Path, mini: list[str]) -> None:
    subject = load(f"sp:{model}")
    assert any("nmt_nfkc" in note for note in subject.notes)
    check_spans(subject, [line for line in mini if unicodedata.is_normalized("NFKC", line)])
    row = subject.encode_lines(["쀍 나"])
    assert any(int(i) in subject.unknown_ids for i in row.ids)
    assert subject.token_bytes(next(iter(subject.unknown_ids))) is None
    assert unigram_of(subject)
    assert load(str(model.parent)).digest() == subject.digest()


def test_wordpiece_counts_its_unknowns(tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "나", "##는", "학교", "##에", "!"]), "utf-8"
    )
    subject = load(str(vocab))
    row = subject.encode_lines(["나는 학교에 갔다!"])
    assert row.spans.tolist() == [[0, 1], [1, 2], [3, 5], [5, 6], [7, 9], [9, 10]]
    assert [int(i) in subject.unknown_ids for i in row.ids] == [False] * 4 + [True, False]
    assert subject.token_bytes(6) == "는".encode()
    assert len(subject.special_ids) == 4


def test_tiktoken_files_need_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "own.tiktoken"
    ranks = [bytes([b]) for b in range(256)] + ["가".encode()[:2], "가".encode()]
    path.write_text("\n".join(f"{base64.b64encode(t).decode()} {i}" for i, t in enumerate(ranks)), "ascii")
    subject = load(f"tiktoken:{path}#cl100k")
    assert load(f"tiktoken:{path}#cl100k_base").digest() == subject.digest()
    assert subject.encode_lines(["가 가"]).ids.tolist() == [257, 32, 257]
    assert subject.decode([257, 32]) == "가 "
    check_spans(subject, LINES, spaces_too=True)
    other = tmp_path / "pattern.txt"
    other.write_text(r"\s|\S" + "\n", "utf-8")
    assert load(f"tiktoken:{path}#{other}").digest() != subject.digest()
    with pytest.raises(UsageError, match="`nothing` is not known"):
        load(f"tiktoken:{path}#nothing")


def test_a_hint_with_a_path_can_be_typed(tmp_path: Path) -> None:
    path = tmp_path / "두 말" / "it's.tiktoken"
    path.parent.mkdir()
    path.write_text("IQ== 0\n", "ascii")
    with pytest.raises(UsageError, match="and no pattern") as caught:
        load(str(path))
    assert shlex.split(caught.value.hint) == [f"tiktoken:{path}#cl100k"]
    with pytest.raises(ArtifactError, match="does not hold a SentencePiece model") as told:
        load(f"sp:{path.parent}")
    assert shlex.split(told.value.hint) == [f"sp:{path.parent}/FILE"]


def test_tekken_without_names_has_those_of_mistral(tmp_path: Path) -> None:
    vocab = [{"rank": b, "token_bytes": base64.b64encode(bytes([b])).decode()} for b in range(256)]
    config = {"pattern": r"\s|\S", "default_vocab_size": 281, "default_num_special_tokens": 25}
    specials = ranks_from_tekken(json.dumps({"vocab": vocab, "config": config})).specials
    assert [name for name, i in specials.items() if i in (1, 2, 3, 11, 19, 20)] == [
        "<s>", "</s>", "[INST]", "<pad>", "[TOOL_CONTENT]", "<SPECIAL_20>",
    ]  # fmt: skip


# ── guesses and refusals ──────────────────────────────────────────────────────────────────────────────────────────────


def test_paths_are_guessed(tmp_path: Path) -> None:
    for name, content, kind in (
        ("tokenizer.json", "{}", "hf"),
        ("x.model", "\n\x0e\n\x05<unk>", "sp"),
        ("y.model", "IQ== 0\nIg== 1\n", "tiktoken"),  # as Llama 3 calls its ranks
        ("vocab.txt", "[UNK]\n학교\n##에\n", "wordpiece"),
        ("x.tiktoken", "no ranks here", "tiktoken"),
        ("tekken.json", '{"vocab": [{"rank": 0, "token_bytes": "AA=="}]}', "tekken"),
    ):
        (tmp_path / name).write_text(content, "utf-8")
        assert parse_spec(str(tmp_path / name))[0] == kind
    assert parse_spec(str(tmp_path))[0] == "hf"
    (tmp_path / "koktok.toml").write_text("", "utf-8")
    assert parse_spec(str(tmp_path))[0] == "koktok"
    for name in ("tokenizer.json", "vocab.json"):
        (tmp_path / name).write_text("{}", "utf-8")
    (tmp_path / "merges.txt").write_text("a b\n", "utf-8")
    assert (detect(tmp_path / "vocab.json").kind, detect(tmp_path, "gpt2").path.name) == ("gpt2", "vocab.json")
    for name, content in (("chars.txt", "[UNK]\n학\n교\n"), ("x.vocab", "<unk>\t0\n▁학교\t-3.2\n")):
        (tmp_path / name).write_text(content, "utf-8")
        with pytest.raises(ArtifactError, match="is none of"):
            parse_spec(str(tmp_path / name))


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_installed_packages_open(name: str, mini: list[str]) -> None:
    try:
        subject = load(f"package:{name}")
    except KoktokError as error:
        pytest.skip(error.message)
    assert subject.size > 30_000
    check_spans(subject, LINES + mini[:50] if name != "claude-old" else mini[:5])
