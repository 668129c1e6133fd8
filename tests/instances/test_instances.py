"""Training instances: borders, the packed layer, masking, law 14, folders, the collator, and the verb."""

from __future__ import annotations

import json
import pickle
import shutil
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from conftest import MINI, koktok
from hypothesis import assume, given
from hypothesis import strategies as st
from samples import KINDS, TEXT, files_of, lexicon, rows_of, styled, text_ids, unpacked

from koktok import Recipe, Tokenizer, load
from koktok.errors import ArtifactError, InputError, UsageError
from koktok.instances import Instances, KoktokCollator, Masking, Packed, Plan, write, write_instances, write_packed
from koktok.instances.bert import pairs_layout
from koktok.instances.borders import MarkedTexts
from koktok.instances.draws import shuffled, uniforms
from koktok.instances.layout import sentences_layout
from koktok.instances.masking import IGNORED
from koktok.instances.packing import PackedShard
from koktok.instances.reading import read
from koktok.instances.token_facts import ENDING, EOJEOL, MORPHEME, SPECIAL, SYMBOL, TokenFacts
from koktok.model.vocab import Vocab
from koktok.segment import Whitespace
from koktok.segment.kiwi import KiwiSegmenter
from koktok.text.blocks import Block
from koktok.text.sources import Source
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.restyle import restyle


@lru_cache
def loaded(folder: Path) -> Tokenizer:
    return load(folder)


def marked(tokenizer: Tokenizer, texts: list[str], segmenter: Any = None) -> list[list[tuple[str, int]]]:
    """Pieces with their marks, a list a text."""
    names, found = tokenizer.vocab.tokens, []
    for _, tokens, marks in MarkedTexts(tokenizer, lexicon(segmenter))(iter([Block.of(texts)]), threads=1):
        for begin, end in pairwise(tokens.indptr.tolist()):
            found.append([(names[i], m) for i, m in zip(tokens.ids[begin:end], marks[begin:end].tolist(), strict=True)])
    return found


# --- Borders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_marks_of_every_kind(kind: str) -> None:
    """Ids are those of `encode`; marks those of the offsets, and as far as ids alone show eojeols, of the collator."""
    tokenizer = loaded(unpacked(kind))
    texts = [*TEXT.split("\n"), "한글\u200b과 \u1112\u1161\u11ab", "</s>[SEP] <0x0A>", "a" * 50, " 가  나\t다 "]
    assert [[piece for piece, _ in row] for row in marked(tokenizer, texts)] == [
        tokenizer.encode(text).pieces for text in texts
    ]
    lines = ["국수 한 그릇이 식었다", "그는  집에 갔다가 돌아왔습니다", "오랫동안 뷁읽는 漢字와", "한글 끝 "]
    bulk = MarkedTexts(tokenizer, lexicon())
    if kind not in ("superwords", "jamo-unigram"):
        by_words = [(tokens, marks.tolist()) for _, tokens, marks in bulk(iter([Block.of(lines)]), threads=1)]
        bulk._bulk = bulk._by_offsets  # type: ignore[method-assign]
        assert by_words == [(tokens, marks.tolist()) for _, tokens, marks in bulk(iter([Block.of(lines)]))]
    lines[2:] = ["한글과 영어"]
    ((_, tokens, marks),) = MarkedTexts(tokenizer, lexicon(Whitespace()))(iter([Block.of(lines)]), threads=1)
    facts = TokenFacts.of(tokenizer)
    plain = ~facts.special[tokens.ids]
    assert (facts.marks(tokens.ids, tokens.indptr)[plain] & EOJEOL).tolist() == (marks[plain] & EOJEOL).tolist()
    import transformers

    theirs = TokenFacts.of_transformers(transformers.AutoTokenizer.from_pretrained(unpacked(kind)))
    assert theirs.marks(tokens.ids, tokens.indptr).tolist() == facts.marks(tokens.ids, tokens.indptr).tolist()


@pytest.mark.parametrize("kind", ["unigram", "superwords", "bpe-bytes"])
@given(text=strategies.korean_text())
def test_eojeols_begin_after_white_space(kind: str, text: str) -> None:
    tokenizer = loaded(unpacked(kind))
    normal = tokenizer.normalize(text)
    # Bytes of a space that is no piece are known for what they are by nobody.
    assume(not any(char.isspace() and ord(char) > 0x7F for char in normal))
    row = marked(tokenizer, [normal], Whitespace())[0]
    before, last = False, 0  # whether nothing but white space of this eojeol has stood so far; how far tokens reach
    for (_, mark), (start, end) in zip(row, tokenizer.encode(normal).offsets, strict=True):
        if start < last:  # the rest of a character
            assert not mark & EOJEOL
            continue
        spaced = not start or normal[start].isspace() or normal[start - 1].isspace()
        assert bool(mark & EOJEOL) == (spaced and not before)
        before, last = not normal[start:end].strip(), end


def test_marks_of_a_sentence(kiwi: KiwiSegmenter) -> None:
    vocab = Vocab.bpe(
        "학교에서는책을읽습니다. ", ["학교", " 학교", "에서", " 책", "습니", "습니다"], specials=["<pad>"]
    )
    (row,) = marked(TrainedTokenizer(Recipe(), vocab), ["학교에서는 책을 읽습니다."], kiwi)
    assert row == [
        (" 학교", EOJEOL | MORPHEME), ("에서", MORPHEME | ENDING), ("는", MORPHEME | ENDING), (" 책", EOJEOL | MORPHEME),
        ("을", MORPHEME | ENDING), (" ", EOJEOL | MORPHEME), ("읽", 0), ("습니다", MORPHEME | ENDING),
        (".", MORPHEME | SYMBOL),
    ]  # fmt: skip
    # A border inside a token is none: 학교|에서|는 of 학교에 + 서는.
    vocab = Vocab.bpe(" 학교에서는", ["학교", " 학교", " 학교에", "서는"])
    assert [mark & MORPHEME for _, mark in marked(TrainedTokenizer(Recipe(), vocab), ["학교에서는"], kiwi)[0]] == [
        MORPHEME,
        0,
    ]


def test_imported_wordpiece(tmp_path: Path, kiwi: KiwiSegmenter) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "학교", "##에서", "##는", "책", "##을", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    tokenizer = load(tmp_path / "vocab.txt")
    (row,) = marked(tokenizer, ["학교에서는 책을 뷁."], kiwi)
    assert row == [
        ("학교", EOJEOL | MORPHEME), ("##에서", MORPHEME | ENDING), ("##는", MORPHEME | ENDING), ("책", EOJEOL | MORPHEME),
        ("##을", MORPHEME | ENDING), ("[UNK]", EOJEOL | MORPHEME), (".", MORPHEME | SYMBOL),
    ]  # fmt: skip
    text = tmp_path / "a.txt"
    text.write_text("학교에서는 책을.\n" * 3, encoding="utf-8")
    packed = write_packed(tokenizer, Source.of(text), tmp_path / "packed", lexicon=lexicon(kiwi))
    assert packed.ordinary.tolist() == list(range(6, 12))
    row = Instances(packed, Plan(length=16, masking=Masking(unit="eojeol", rate=0.9, mask_prob=1, random_prob=0)))[0]
    assert row["input_ids"][0] == 2
    assert row["input_ids"][-1] == 3
    assert 4 in row["input_ids"]


# --- Documents and the packed layer -----------------------------------------------------------------------------------


def documents_of(sources: list[Source], **options: Any) -> list[tuple[int, list[str]]]:
    """The documents of sources, each with the number of its source."""
    documents: list[tuple[int, list[str]]] = []
    sentences: list[str] = []
    for number, texts in read(sources, between="", **options):
        for text in texts:
            if text:
                sentences.append(text)
            else:
                documents.append((number, sentences))
                sentences = []
    return documents


def test_where_documents_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"\n\n{TEXT}\n \n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "하나\\n\\n둘"}\n{"text": ""}\n{"text": "셋"}\n', encoding="utf-8")
    source = [Source.of(tmp_path / name) for name in ("a.txt", "b.jsonl")]

    def sizes(**options: Any) -> list[tuple[int, int]]:
        return [(number, len(sentences)) for number, sentences in documents_of(source, **options)]

    assert sizes() == [(0, 2), (0, 2), (1, 2), (1, 1)]
    assert sizes(by="blank") == [(0, 2), (0, 2), (1, 1), (1, 1), (1, 1)]
    assert sizes(by="file") == [(0, 4), (1, 3)]
    assert sizes(by="field") == [(0, 1), (0, 1), (0, 1), (0, 1), (1, 2), (1, 1)]
    assert sizes(by="lines") == [(0, 1), (0, 1), (0, 1), (0, 1), (1, 1), (1, 1), (1, 1)]
    assert sizes(sentences="kiwi")[0] == (0, 3)
    (tmp_path / "a.txt").write_text("\n하나\n둘\n셋\n\n\n", encoding="utf-8")  # empty lines part nothing here
    assert sizes()[:3] == [(0, 1), (0, 1), (0, 1)]


@pytest.fixture(scope="module")
def bert() -> Tokenizer:
    return styled("unigram")


@pytest.fixture(scope="module")
def packed(bert: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """Mini, with a cut after every second syllable, in several shards."""
    return pack_mini(bert, tmp_path_factory.mktemp("packed") / "packed", threads=1)


def pack_mini(tokenizer: Tokenizer, out: Path, **options: Any) -> Packed:
    options = {"lexicon": lexicon(), "documents": "file", "shard_tokens": 4500} | options
    return write_packed(tokenizer, Source.of(MINI, name="mini"), out, **options)


def test_the_packed_layer_is_the_text(packed: Packed, bert: Tokenizer) -> None:
    documents = [sentences for _, sentences in documents_of([Source.of(MINI)], by="file")]
    assert len(packed) > 3
    found = []
    for i in range(len(packed)):
        shard = packed.shard(i)
        for k, (begin, end) in enumerate(pairwise(shard.documents.tolist())):
            ends = shard.ends[shard.sentences[k] : shard.sentences[k + 1]].tolist()
            assert ends[-1] == end
            parts = [bert.decode(shard.ids[a:b].tolist()) for a, b in pairwise([begin, *ends])]
            found.append(parts)
            assert shard.ids[begin:end].tolist() == bert.encode(" ".join(documents[len(found) - 1])).ids
            assert shard.marks[begin] & EOJEOL
    normal = [[bert.normalize(sentence) for sentence in document] for document in documents]
    assert [[part.removeprefix(" ") for part in parts] for parts in found] == normal
    assert packed.manifest["n_documents"] == len(documents)


def test_threads_change_no_byte_of_it(packed: Packed, bert: Tokenizer, tmp_path: Path) -> None:
    assert files_of(pack_mini(bert, tmp_path / "p", threads=8).folder) == files_of(packed.folder)


def test_an_interrupted_run_leaves_the_old_folder_or_none(packed: Packed, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def run(seed: int, *, force: bool = False) -> None:
        write_instances(packed, Plan(length=64, seed=seed), out, epochs=2, shard_instances=100, workers=2, force=force)

    def interrupted(path: Path, *what: Any, real: Any = write._write_shard) -> None:
        if path.stem == "shard-00003":
            raise KeyboardInterrupt
        real(path, *what)

    def interrupt(seed: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(write, "_write_shard", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(seed, force=True)

    interrupt(3)
    assert not [*tmp_path.iterdir()]
    run(3)
    before, inode = files_of(out), out.stat().st_ino
    interrupt(4)
    with pytest.raises(UsageError, match="already exists and contains a different folder of instances"):
        run(4)
    run(3)  # the same again changes nothing
    assert (files_of(out), out.stat().st_ino) == (before, inode)
    run(4, force=True)
    assert files_of(out) != before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_damaged_or_another_packed_folder_is_refused(packed: Packed, bert: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already exists and contains a different"):
        pack_mini(bert, packed.folder, lexicon=lexicon(Whitespace()))
    torn = shutil.copytree(packed.folder, tmp_path / "torn") / "shard-00000.arrow"
    torn.write_bytes(torn.read_bytes()[:500])
    with pytest.raises(ArtifactError, match="is damaged"):
        Packed.open(torn.parent).shard(0)


def test_another_text_of_the_same_size_is_another_result(bert: Tokenizer, tmp_path: Path) -> None:
    packed = packed_of(bert, "국수가 식었다\n", tmp_path)
    assert packed_of(bert, "국수가 식었다\n", tmp_path) == packed
    with pytest.raises(UsageError, match="already exists and contains a different packed folder"):
        packed_of(bert, "국수는 식었다\n", tmp_path)
    assert ids_of(packed_of(bert, "국수는 식었다\n", tmp_path, force=True)) == bert.encode("국수는 식었다").ids


# --- Documents longer than everything, and empty ones -------------------------------------------------------------------


def packed_of(tokenizer: Tokenizer, text: str, folder: Path, **options: Any) -> Packed:
    (folder / "a.txt").write_text(text, encoding="utf-8")
    return write_packed(tokenizer, Source.of(folder / "a.txt"), folder / "packed", lexicon=lexicon(), **options)


def ids_of(packed: Packed) -> list[int]:
    return [int(i) for k in range(len(packed)) for i in packed.shard(k).ids]


@pytest.mark.parametrize("prefix", [False, True])
def test_sentences_have_one_space_between(tmp_path: Path, prefix: bool) -> None:
    """Also where the tokenizer itself puts one before every text, as those trained with `--style bert` do."""
    plain = loaded(unpacked("unigram"))
    tokenizer = TrainedTokenizer(Recipe(pretokenize={"prefix_space": prefix}), plain.vocab)  # type: ignore[arg-type]
    packed = packed_of(tokenizer, TEXT, tmp_path)
    documents = [document.split("\n") for document in TEXT.strip().split("\n\n")]
    assert ids_of(packed) == [i for lines in documents for i in tokenizer.encode(" ".join(lines)).ids]
    other = write_packed(
        tokenizer, Source.of(tmp_path / "a.txt"), tmp_path / "kiwi", lexicon=lexicon(), sentences="kiwi"
    )
    assert ids_of(other) == ids_of(packed)


LONG = " ".join(["국수", "한", "그릇이", "식었다"] * 100)
DOCUMENT = "\n".join([LONG, *(f"그는 {i}번 집에 갔다." for i in range(200))])


def test_no_document_has_to_fit_in_memory(tmp_path: Path) -> None:
    """One that is longer than two shards is cut between sentences; sources and ids are the same."""
    tokenizer = loaded(unpacked("unigram"))
    for name, text in (("a", DOCUMENT), ("b", f"가\n\n{DOCUMENT}\n\n나\n\n다")):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    sources = [Source.of(tmp_path / f"{name}.txt") for name in "ab"]
    options: dict[str, Any] = {"lexicon": lexicon(), "documents": "blank", "shard_tokens": 300, "threads": 8}
    packed = write_packed(tokenizer, sources, tmp_path / "packed", **options)
    whole = [tokenizer.encode(text.replace("\n", " ")).ids for text in (DOCUMENT, "가", DOCUMENT, "나", "다")]
    assert ids_of(packed) == [*chain(*whole)]
    longest = len(tokenizer.encode(LONG).ids)
    shards = [packed.shard(k) for k in range(len(packed))]
    assert len(shards) > 4
    assert max(len(shard.ids) for shard in shards) < 600 + longest
    owners = [*chain(*(shard.sources.tolist() for shard in shards))]
    assert owners == sorted(owners)
    assert packed.manifest["n_documents"] == sum(len(shard.documents) - 1 for shard in shards) >= 5 + 2
    assert all((np.diff(shard.documents) > 0).all() for shard in shards)
    assert shards[0].ends[0] == longest  # a sentence is never cut


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("mlm", {}),
        ("mlm", {"across": True}),
        ("bert", {}),
        ("bert", {"pairs": "order"}),
    ],
)
@pytest.mark.parametrize("text", [f"{DOCUMENT}\n\n가 나.\n다 라.\n", f"\n\n{DOCUMENT}\n\n \n\u200b\n\n\u200b\n\n가.\n"])
def test_documents_longer_than_everything_and_empty_ones(
    tmp_path: Path, kind: Any, options: dict[str, Any], text: str
) -> None:
    packed = packed_of(styled("unigram"), text, tmp_path)
    made = Instances(packed, Plan(kind=kind, length=16, seed=2, **options))
    written = write_instances(packed, made.plan, tmp_path / "out")
    assert written["n_instances"] == [len(made)]
    rows = columns(made)
    assert all(0 < len(row["input_ids"]) <= 16 for row in rows)
    found = Counter(i for row in rows for i in text_ids(row) if i not in packed.manifest["specials"])
    if kind == "bert":  # what is too long for a pair loses tokens
        assert {*found} <= {*ids_of(packed)}
        assert all(sum(i == packed.manifest["roles"]["sep_token"] for i in row["input_ids"]) == 2 for row in rows)
    else:
        assert found == Counter(ids_of(packed))


@pytest.mark.parametrize(
    ("text", "plan", "message"),
    [
        (f"{DOCUMENT}\n\n가.\n나.\n", {"kind": "bert", "length": 16}, r"(?s)fills a shard.*shard_tokens"),
        ("한 문장.\n", {"kind": "bert"}, r"(?s)requires a document of two sentences.*sentences='kiwi'.*kind='mlm'"),
        ("한 문장.\n", {"kind": "bert", "pairs": "order"}, "requires a document of two sentences"),
        ("\u200b\n\n\u200b\n", {}, "nothing to make an instance of"),
    ],
)
def test_a_text_without_instances_is_an_error(
    bert: Tokenizer, tmp_path: Path, text: str, plan: dict[str, Any], message: str
) -> None:
    packed = packed_of(bert, text, tmp_path, shard_tokens=300)
    with pytest.raises(InputError, match=message):
        write_instances(packed, Plan(**plan), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "\u200b" in text or len(Instances(packed, Plan(kind="mlm"))) >= 1


# --- Chance and masking -----------------------------------------------------------------------------------------------


def test_random_numbers_are_those_of_numpys_philox() -> None:
    keys = np.array([3, 9, 3], np.uint64)
    drawn, offsets = uniforms(7, 1, keys, 2, np.array([5, 0, 3]))
    raw = np.random.Philox(key=[7, 1], counter=[0, 3, 2, 0]).random_raw(5)
    assert drawn.tolist() == [*((raw >> 11) / 2**53), *((raw[:3] >> 11) / 2**53)]
    assert offsets.tolist() == [0, 5, 5, 8]
    assert sorted(shuffled(300, 2**64 - 1, 1).tolist()) == [*range(300)]
    assert shuffled(300, 1, 1).tolist() != shuffled(300, 1, 2).tolist()


def text_of(lengths: list[int], *, width: int, rows: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Instances of that many tokens, special ones at both ends, of eojeols of these lengths."""
    marks: list[int] = []
    chance = np.random.default_rng(0)
    for _ in range(rows):
        row: list[int] = []
        while len(row) < width - 2:
            length = min(int(chance.choice(lengths)), width - 2 - len(row))
            row += [EOJEOL | MORPHEME, *[0] * (length - 1)]
        marks += [SPECIAL, *row, SPECIAL]
    flat = np.array(marks, np.uint8)
    return chance.integers(300, 4000, len(flat)).astype(np.int32), flat, np.arange(0, len(flat) + 1, width)


def chi_square(marks: np.ndarray, chosen: np.ndarray) -> float:
    """Of "units of every length are chosen alike", a degree of freedom for each length but one; 1 is as chance has it."""
    firsts = np.flatnonzero(marks & EOJEOL)
    ends = np.append(firsts[1:], len(marks))
    lengths = [int(e - f - (marks[f:e] == SPECIAL).sum()) for f, e in zip(firsts, ends, strict=True)]
    all_, taken = Counter(lengths), Counter(n for n, f in zip(lengths, firsts, strict=True) if chosen[f])
    p = sum(taken.values()) / len(firsts)
    terms = [(taken[n] - p * all_[n]) ** 2 / (p * (1 - p) * all_[n]) for n in all_ if all_[n] > 100]
    return sum(terms) / (len(terms) - 1)


def test_no_length_of_a_unit_is_preferred() -> None:
    ids, marks, offsets = text_of([1, 1, 1, 2, 2, 3, 4, 6], width=66)
    chosen = [Masking(unit="eojeol").choose(ids, marks, offsets, seed=5, epoch=e) > 0 for e in range(4)]
    assert max(chi_square(marks, one) for one in chosen) < 2.5
    assert abs(np.sum(chosen) / (4 * (marks != SPECIAL).sum()) - 0.15) < 0.002


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_the_rate_is_met(rate: float) -> None:
    ids, marks, offsets = text_of([1, 1, 1, 2, 2, 3, 4, 6], width=66)
    chosen = Masking(unit="eojeol", rate=rate).choose(ids, marks, offsets, seed=1, epoch=0) > 0
    assert abs(chosen.sum() / (64 * 2000) - rate) < 0.003
    tokens = Masking(unit="token", rate=rate).choose(ids, marks, offsets, seed=1, epoch=0) > 0
    assert np.abs(tokens.reshape(2000, 66).sum(1) - rate * 64).max() < 1


def test_units_are_masked_whole_and_as_the_shares_say() -> None:
    ids, marks, offsets = text_of([1, 2, 3], width=66)
    ordinary = np.arange(10, 200)
    masking = Masking(unit="eojeol", rate=0.2)
    read, labels = masking.apply(ids, marks, offsets, mask_id=4, ordinary=ordinary, seed=2, epoch=0)
    chosen = labels != IGNORED
    assert not chosen[marks == SPECIAL].any()
    assert (read[~chosen] == ids[~chosen]).all()
    assert (labels[chosen] == ids[chosen]).all()
    ways = []
    firsts = np.flatnonzero(marks & EOJEOL)
    for first, last in zip(firsts, np.append(firsts[1:], len(marks)), strict=True):
        unit = [i for i in range(first, last) if marks[i] != SPECIAL]
        assert len({bool(chosen[i]) for i in unit}) == 1
        if chosen[first]:
            way = {"mask" if read[i] == 4 else "kept" if read[i] == ids[i] else "random" for i in unit}
            assert len(way) == 1
            assert way != {"random"} or set(read[unit]) <= set(ordinary.tolist())
            ways += way
    shares = Counter(ways)
    for way, share in (("mask", 0.8), ("kept", 0.1), ("random", 0.1)):
        assert shares[way] / len(ways) == pytest.approx(share, abs=0.01)
    other, _ = masking.apply(ids, marks, offsets, mask_id=4, ordinary=ordinary, seed=2, epoch=1)
    assert (other != read).mean() > 0.1


def test_stems_and_the_maximum_of_predictions() -> None:
    chance = np.random.default_rng(3)
    marks = np.array([SPECIAL, *[EOJEOL | MORPHEME, MORPHEME | ENDING] * 32] * 1000, np.uint8)
    ids, offsets = chance.integers(300, 4000, len(marks)), np.arange(0, len(marks) + 1, 65)
    stems = marks == EOJEOL | MORPHEME
    found = Masking(unit="stem", rate=0.15).choose(ids, marks, offsets, seed=0, epoch=0) > 0
    assert not found[~stems].any()
    assert abs(found.sum() / (64 * 1000) - 0.15) < 0.001
    masking = Masking(unit="morpheme", rate=0.5, max_predictions_per_seq=5)
    found = masking.choose(ids, marks, offsets, seed=0, epoch=0) > 0
    assert found.reshape(1000, 65).sum(1).max() == 5
    assert Masking(rate=(0.3, 0.1), epochs=3).rate_of(1) == pytest.approx(0.2)


def test_spans_are_spanberts() -> None:
    ids, marks, offsets = text_of([1], width=500, rows=500)
    spans: Counter[int] = Counter()
    chosen = Masking(unit="span", rate=0.15).choose(ids, marks, offsets, seed=0, epoch=0)
    for begin, end in pairwise(offsets[:501].tolist()):
        spans.update(Counter(chosen[begin:end][chosen[begin:end] > 0].tolist()).values())
    assert max(spans) == 10
    mean = sum(n * times for n, times in spans.items()) / sum(spans.values())
    assert abs(mean - sum(n * 0.2 * 0.8 ** (n - 1) for n in range(1, 10)) - 10 * 0.8**9) < 0.2
    assert abs((chosen > 0).sum() / (498 * 500) - 0.15) < 0.002


@given(marks=st.lists(st.sampled_from([0, 1, 3, 2, 6, 4, 8, 10, SPECIAL]), max_size=60), data=st.data())
def test_any_marks_are_masked_soundly(marks: list[int], data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(["token", "eojeol", "morpheme", "stem", "span"]))
    rate = data.draw(st.floats(0.01, 0.99))
    flat = np.array(marks, np.uint8)
    masking = Masking(unit=unit, rate=rate, max_predictions_per_seq=data.draw(st.sampled_from([None, 1, 4])))
    cut = data.draw(st.integers(0, len(flat)))
    ids = np.arange(len(flat))
    both = masking.choose(ids, flat, np.array([0, cut, len(flat)]), seed=1, epoch=1)
    assert not both[flat == SPECIAL].any()
    alone = masking.choose(ids[cut:], flat[cut:], np.array([0, len(flat) - cut]), seed=1, epoch=1)
    assert both[cut:].tolist() == alone.tolist()  # an instance is masked alike wherever it stands
    assert masking.max_predictions_per_seq is None or (both[:cut] > 0).sum() <= masking.max_predictions_per_seq


# --- Law 14 -----------------------------------------------------------------------------------------------------------


@given(
    documents=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=5), min_size=1, max_size=8),
    room=st.integers(3, 20),
    across=st.booleans(),
)
def test_every_token_is_in_one_instance(documents: list[list[int]], room: int, across: bool) -> None:
    sizes = np.array([sum(sentences) for sentences in documents])
    ends = np.cumsum([n for sentences in documents for n in sentences])
    starts = np.concatenate([[0], np.cumsum([len(sentences) for sentences in documents])])
    total = int(sizes.sum())
    borders = np.concatenate([[0], np.cumsum(sizes)])
    shard = PackedShard(
        np.arange(total), np.zeros(total, np.uint8), borders, ends, starts, np.zeros(len(documents), np.uint16)
    )
    layout = sentences_layout(shard, room, across=across, between=1)
    tokens = [i for b, e in zip(layout.begins, layout.ends, strict=True) for i in range(b, e)]
    assert tokens == list(range(total))
    for first, last in pairwise(layout.starts.tolist()):
        assert 1 <= last - first <= (room if across else 1)
        assert sum(layout.ends[first:last] - layout.begins[first:last]) + last - first - 1 <= room
    for begin, end in zip(layout.begins, layout.ends, strict=True):
        assert np.searchsorted(borders, begin, side="right") == np.searchsorted(borders, end)
        whole = begin in (0, *ends) and end in ends
        assert whole or end - begin == room or {int(begin), int(end)} & set(ends.tolist()) or end - begin < room


def columns(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: getattr(value, "tolist", lambda v=value: v)() for name, value in row.items()} for row in rows]


@pytest.mark.parametrize(
    "plan", [Plan(length=64, seed=9), Plan(length=64, across=True, masking=Masking(unit="morpheme"))]
)
def test_an_instance_is_the_same_alone_and_in_a_batch(packed: Packed, plan: Plan) -> None:
    made = Instances(packed, plan, epoch=2)
    whole = columns(made.batch(range(len(made))))
    assert columns([made[i] for i in (0, 7, len(made) - 1)]) == [whole[0], whole[7], whole[-1]]
    assert columns(pickle.loads(pickle.dumps(made)).__getitems__([5, 3])) == [whole[5], whole[3]]
    other = Instances(packed, plan)
    assert columns(other.batch(range(20))) != whole[:20]
    other.set_epoch(2)
    assert columns(other) == whole
    with pytest.raises(IndexError):
        made[len(made)]
    # Every token of the text is there once, in any order.
    specials = packed.manifest["specials"]
    assert Counter(i for row in whole for i in text_ids(row) if i not in specials) == Counter(ids_of(packed))


def test_workers_change_no_byte_and_files_have_the_same_rows(packed: Packed, tmp_path: Path) -> None:
    plan = Plan(length=64, seed=1, masking=Masking(unit="morpheme", rate=0.2))
    for workers in (1, 8):
        write_instances(packed, plan, tmp_path / str(workers), epochs=2, shard_instances=100, workers=workers)
    assert files_of(tmp_path / "1") == files_of(tmp_path / "8")
    rows = rows_of(tmp_path / "1")
    assert rows == columns([*Instances(packed, plan), *Instances(packed, plan, 1)])
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset(str(tmp_path / "1"), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == rows


# --- Readers ----------------------------------------------------------------------------------------------------------


def test_masked_while_reading_is_masked_on_the_disk(packed: Packed, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    plan = Plan(length=64, seed=4, masking=Masking(unit="morpheme"))
    write_instances(packed, plan, tmp_path / "out", masked=False)
    rows = rows_of(tmp_path / "out")
    static = Instances(packed, plan)
    assert len(rows) == len(static)
    collator = KoktokCollator(tmp_path / "out")
    dynamic, fixed = collator(rows[:50]), collator([static[i] for i in range(50)])
    assert sorted(dynamic) == ["attention_mask", "input_ids", "labels"]
    for name in dynamic:
        assert (dynamic[name] == fixed[name]).all()
    pad = packed.manifest["roles"]["pad_token"]
    assert ((dynamic["input_ids"] == pad) == (dynamic["attention_mask"] == 0)).all()
    collator.epoch = 1
    assert (collator(rows[:50])["labels"] != dynamic["labels"]).any()
    wide = KoktokCollator(packed, plan.masking, pad_to_multiple_of=48)(rows[:3])
    assert wide["input_ids"].shape == (3, 96)
    with pytest.raises(InputError, match="at most 10 tokens"):
        KoktokCollator(packed, length=10)(rows[:3])
    with pytest.raises(InputError, match="rows with `input_ids`"):
        collator([{"text": "가"}])


@pytest.mark.parametrize("kind", ["unigram", "prefixed", "wordpiece"])
def test_rows_of_transformers_are_masked_by_eojeol(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import transformers

    tokenizer = loaded(unpacked("unigram" if kind == "prefixed" else kind))
    if kind == "prefixed":  # a space before every text, which the decoder takes away
        tokenizer = TrainedTokenizer(Recipe(pretokenize={"prefix_space": True}), tokenizer.vocab)  # type: ignore[arg-type]
    folder = restyle(tokenizer, "bert").save(tmp_path / "t")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    lines = [line for line in TEXT.split("\n") if line] * 8
    rows = [{"input_ids": theirs(f"{line} {i}")["input_ids"]} for i, line in enumerate(lines)]
    masking = Masking(unit="eojeol", rate=0.3)
    batches = [KoktokCollator(source, masking, seed=1)(rows) for source in (theirs, folder, load(folder))]
    for batch in batches[1:]:
        assert all((batch[name] == batches[0][name]).all() for name in batch)
    labels = batches[0]["labels"].numpy()
    assert 0.2 < (labels != IGNORED).sum() / sum(len(row["input_ids"]) - 2 for row in rows) < 0.4
    with pytest.raises(UsageError, match="--mask morpheme requires rows with `marks`"):
        KoktokCollator(folder, Masking(unit="morpheme"))(rows)


def test_a_tokenizer_without_a_mask_token_is_refused_with_a_hint(tmp_path: Path) -> None:
    gpt = styled("unigram", "gpt")
    packed = packed_of(gpt, TEXT, tmp_path)
    with pytest.raises(UsageError, match=r"(?s)requires the mask_token.*--style bert"):
        Instances(packed, Plan())
    with pytest.raises(UsageError, match=r"(?s)requires the mask_token.*--style bert"):
        KoktokCollator(gpt)


# --- The verb ---------------------------------------------------------------------------------------------------------


def test_the_verb(tmp_path: Path) -> None:
    bert = styled("unigram").save(tmp_path / "bert")
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    words = ["instances", bert, tmp_path / "a.txt", "-o", tmp_path / "out", "--segmenter", "whitespace"]
    done = koktok(*words, "--length", 32, "--rate", 0.3)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "instances in" in done.stderr
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["plan"]["masking"]["rate"] == 0.3
    again = koktok(*words, "--length", 32, "--rate", 0.3, "-q")
    assert (again.returncode, again.stderr) == (0, "")
    other = ["--rate", "0.4:0.2", "--epochs", 2]
    assert koktok("instances", bert, tmp_path / "out-packed", "-o", tmp_path / "two", *other).returncode == 0
    for wrong in (["--rate", "x"], ["--mask", "word"], ["--length", "3"]):
        assert koktok(*words, *wrong, "-o", tmp_path / "three").returncode


def test_only_morphemes_ask_the_analyser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bert = styled("unigram").save(tmp_path / "bert")
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    asked: list[str] = []

    def serialized(self: KiwiSegmenter, words: Iterable[str], real: Any = KiwiSegmenter.serialized) -> Any:
        return real(self, (asked.append(word) or word for word in words))  # type: ignore[func-returns-value]

    def made(*more: str) -> Any:
        out = tmp_path / str(len([*tmp_path.iterdir()]))
        return koktok("instances", bert, tmp_path / "a.txt", "-o", out, "--length", "32", *more)

    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(KiwiSegmenter, "serialized", serialized)
    here = {"kiwi": KiwiSegmenter(threads=1), "whitespace": Whitespace()}
    monkeypatch.setattr("koktok.segment.workers.in_subprocess", lambda name, **_: here[name])
    for options in (["--mask", "token"], ["--mask", "eojeol"], []):
        assert made(*options).returncode == 0
    assert asked == []
    assert made("--mask", "morpheme").returncode == 0
    assert asked
    assert made("--dynamic").returncode == 0
    with pytest.raises(UsageError, match="requires morphemes"):
        KoktokCollator(max(tmp_path.glob("*[0-9]"), key=lambda path: int(path.name)), Masking(unit="morpheme"))
    wrong = made("--mask", "stem", "--segmenter", "whitespace")
    assert wrong.returncode
    assert "requires morphemes" in wrong.stderr


# --- Pairs and streams ------------------------------------------------------------------------------------------------


def document_of(shard: PackedShard, begin: int, end: int) -> int:
    k = int(np.searchsorted(shard.documents, begin, side="right")) - 1
    assert end <= shard.documents[k + 1]
    return k


@pytest.mark.parametrize("order", [False, True])
def test_pairs_are_berts(packed: Packed, order: bool) -> None:
    labels, wide = [], 0
    for k in range(len(packed)):
        shard = packed.shard(k)
        if (np.diff(shard.sentences) > 1).sum() < 2:
            continue
        for epoch in range(3):
            layout = pairs_layout(shard, 61, seed=1, epoch=epoch, order=order, short_seq_prob=0.1)
            for i, (a0, a1, b0, b1) in enumerate(
                zip(layout.begins[::2], layout.ends[::2], layout.begins[1::2], layout.ends[1::2], strict=True)
            ):
                assert a0 < a1
                assert b0 < b1
                assert a1 - a0 + b1 - b0 <= 61
                wide += a1 - a0 + b1 - b0 == 61
                a, b = document_of(shard, a0, a1), document_of(shard, b0, b1)
                if order:
                    assert a == b
                    assert (b0 < a0) == layout.labels[i]
                else:
                    assert (a != b) == layout.labels[i]  # never from the same document
                    assert a != b or a1 <= b0
            labels += layout.labels.tolist()
            again = pairs_layout(shard, 61, seed=1, epoch=epoch, order=order, short_seq_prob=0.1)
            assert again.begins.tolist() == layout.begins.tolist()
    assert len(labels) > 300
    assert wide > 50
    # As in BERT's own code a chunk of one sentence always gets another document's.
    assert abs(np.mean(labels) - 0.5) < 0.12 if order else 0.4 < np.mean(labels) < 0.75


def test_pairs_in_their_frame(packed: Packed) -> None:
    cls, sep = (packed.manifest["roles"][f"{role}_token"] for role in ("cls", "sep"))
    made = Instances(packed, Plan(kind="bert", length=48, masking=Masking(unit="token", rate=0.01)))
    for row in made.batch(range(40)):
        ids, kinds = row["input_ids"].tolist(), row["token_type_ids"].tolist()
        assert (ids[0], ids[-1], ids.count(sep)) == (cls, sep, 2)
        assert kinds == [0] * (ids.index(sep) + 1) + [1] * (len(ids) - ids.index(sep) - 1)
        assert len(ids) <= 48
        assert row["next_sentence_label"] in (0, 1)
