"""Law 6: kind × engine × texts, and every engine gives the ids of `Tokenizer.encode`; ids give the same text everywhere.

`KOKTOK_EXAMPLES=10000 KOKTOK_RANDOM=1 python -m pytest tests/test_same_ids.py` draws many more texts.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args
from unicodedata import normalize

import numpy as np
import pytest
import sentencepiece
import tokenizers
from conftest import MODELS, koktok
from hypothesis import given, settings
from hypothesis import strategies as st
from playground_engine import PlaygroundEngine
from strategies import korean_text

from koktok import load
from koktok.bulk import Encoder
from koktok.bulk.table import LONGEST
from koktok.files import write_folder
from koktok.model.vocab import Vocab
from koktok.runtimes.huggingface import tokenizer_json
from koktok.runtimes.sentencepiece import model_proto
from koktok.runtimes.tiktoken.ranks import EXPORT, files, ranks_of, refuses
from koktok.text.normalize import Folds, Normalizer
from koktok.text.patterns import Published
from koktok.text.prefix import without_prefix
from koktok.tokenizer import TrainedTokenizer
from koktok.verification.probes import around_specials, tricky_lines

FOLDS = ("fullwidth", "spaces", "quotes", "dashes", "lone_jamo")
RECIPES: dict[str, dict[str, Any]] = {
    **MODELS,
    "scripts": {"pretokenize": {"split": "scripts", "digits": "single"}},
    "free digits": {"pretokenize": {"digits": "free"}},
    "digits by threes": {"pretokenize": {"digits": "three"}},
    "bytes, digits by threes": {**MODELS["bpe-bytes"], "pretokenize": {"digits": "three"}},
    "no prefix": {"pretokenize": {"prefix_space": False}},
    "folds": {"normalize": {**dict.fromkeys(FOLDS, True), "repeats": 2}},
    "superwords": {"train": {"superwords": 0.2}},
    "superwords bpe": {"train": {"superwords": 0.2, "model": "bpe"}},
    "jamo": {"jamo": True, "train": {"vocab_size": 1500}},
    "jamo bpe-bytes": {"jamo": True, "train": {"model": "bpe-bytes", "vocab_size": 1500}},
    "jamo wordpiece": {"jamo": True, "train": {"model": "wordpiece", "vocab_size": 1500}},
    "fallback": {"jamo": "fallback"},
    "fallback bpe": {"jamo": "fallback", "train": {"model": "bpe"}},
    "fallback wordpiece": {"jamo": "fallback", "train": {"model": "wordpiece", "vocab_size": 4000}},
    "fallback syllable": {"jamo": "fallback", "train": {"model": "syllable", "vocab_size": 1800}},
    "prefixed bytes": {**MODELS["bpe-bytes"], "pretokenize": {"prefix_space": True}},
    "published bytes": {**MODELS["bpe-bytes"], "pretokenize": {"pattern": "llama3"}},
    "superbpe": {**MODELS["bpe-bytes"], "pretokenize": {"pattern": "superbpe"}},
    "superbpe, superwords": {
        "train": {"model": "bpe-bytes", "superwords": 0.3},
        "pretokenize": {"pattern": "superbpe"},
    },
    "exaone-moe, superwords": {
        "train": {"model": "bpe-bytes", "superwords": 0.3},
        "pretokenize": {"pattern": "exaone-moe"},
    },
    "scripts bytes": {**MODELS["bpe-bytes"], "pretokenize": {"split": "scripts", "digits": "single"}},
    "superword bytes": {"train": {"superwords": 0.2, "model": "bpe-bytes"}},
    **{
        f"trimmed {model}": {**MODELS[model], "special": {"style": "roberta"}}
        for model in ("unigram", "bpe", "bpe-bytes", "wordpiece-bytes")
    },
    "trimmed, no prefix": {"special": {"style": "roberta"}, "pretokenize": {"prefix_space": False}},
}
"""A recipe for every kind of model and every way to cut."""

PATTERNS = [f"pattern {name}" for name in get_args(Published)]
"""Kinds with a published pattern over the pieces of `bpe-bytes`, which need no training of their own."""

ACROSS = ("'L", "'LL", "I'LL", "'s", "e'", "12", "34", "1234", "./", "Aa", "aB")
"""Pieces that show where a published pattern cuts English and digits, which corpora/mini has too little of."""

HOSTILE = [
    *tricky_lines(),
    "I'm 가's  a\u0301 'LL I'll I'LL we've DON'T it\u017f ABCdef aB e's 'T12'd' a./b",
    "NASA의API들 12345번/\n\n 끝 .\r\n/가 \t가 \x85A  \n \t",
    "½1234567Ⅳ123 1２34５ 12 3456789 12½34567 １２３４",
    "할 수 있다. 그  말이 A는 (나 다).\n/\r\n",
    *(char * n for char in ("가", "a", "ㅋ", "1", "é", "😀") for n in range(LONGEST // 2 - 1, LONGEST + 2)),
    *(
        f"{before}{' ' * n}{char}"
        for before in ("", "가", "\n")
        for n in range(5)
        for char in ("—", "—a", "가", "\u0301")
    ),
]
"""The golden list: what has broken an engine, units on both sides of the longest that bulk keeps, and spaces before bytes."""

FIRST = ["", "", " ", "  ", "\t", "\n", "\u200b", "\u0301", "쀍", "\u1100", "3", ".", "Ġ", "\u3000 "]
TEXT = st.builds("{}{}".format, st.sampled_from(FIRST), korean_text())

Ids = Callable[[list[str]], list[list[int]]]
"""Ids of texts."""


@dataclass
class Kind:
    """A trained folder, a place to write to, and a browser's engine where there is one."""

    folder: Path
    place: Path
    node: PlaygroundEngine | None

    def __post_init__(self) -> None:
        self.ours = load(self.folder)
        self._opened: dict[str, Ids | None] = {}
        self._ids: dict[str, list[int]] = {}

    def open(self, name: str) -> Ids | None:
        """The engine over this folder; None where it cannot run this kind."""
        if name not in self._opened:
            self._opened[name] = ENGINES[name](self)
        return self._opened[name]

    def ids(self, text: str) -> list[int]:
        """The ids that every engine must give, computed once."""
        if text not in self._ids:
            self._ids[text] = self.ours.encode(text).ids
        return self._ids[text]

    def suits(self, texts: Iterable[str]) -> list[str]:
        """The texts as this kind's slowest engine takes them: Hugging Face tries every length at every place of a word."""
        most = {"wordpiece": 500, "wordpiece-bytes": 500 // 3}.get(self.ours.vocab.kind)
        return [text[:most] for text in texts]

    def has(self, file: str) -> Path | None:
        """A file of the folder, where this kind has it."""
        return self.folder / file if (self.folder / file).exists() else None


ENGINES: dict[str, Callable[[Kind], Ids | None]] = {}
"""How each engine opens a kind."""


def engine(opens: Callable[[Kind], Ids | None]) -> Callable[[Kind], Ids | None]:
    ENGINES[opens.__name__] = opens
    return opens


def of_rows(rows: Iterable[Any]) -> list[list[int]]:
    return [row.tolist() for row in rows]


@engine
def bulk(kind: Kind) -> Ids:
    return lambda texts: of_rows(kind.ours.encode_ids(texts))


@engine
def bulk_without_a_table(kind: Kind) -> Ids:
    ours = kind.ours
    encode = Encoder(ours.definition, table_bytes=1)
    return lambda texts: of_rows(encode(iter(texts), threads=2))


@engine
def batch(kind: Kind) -> Ids:
    return lambda texts: [encoding.ids for encoding in kind.ours.encode_batch(texts)]


@engine
def mapped_files(kind: Kind) -> Ids:
    def ids(texts: list[str]) -> list[list[int]]:
        file = kind.place / "texts.jsonl"
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        return of_rows(kind.ours.encode_files(file))

    return ids


@engine
def saved_and_loaded(kind: Kind) -> Ids:
    again = load(kind.ours.save(kind.place / "again"))
    assert again == kind.ours
    for file in (kind.place / "again").iterdir():
        assert (kind.folder / file.name).read_bytes() == file.read_bytes(), file.name
    return lambda texts: [again.encode(text).ids for text in texts]


@engine
def hugging_face(kind: Kind) -> Ids | None:
    if not (file := kind.has("tokenizer.json")):
        return None
    theirs = tokenizers.Tokenizer.from_file(str(file))
    theirs.encode_special_tokens = True  # text that spells a special token is text
    return lambda texts: [row.ids for row in theirs.encode_batch_fast(texts, add_special_tokens=False)]


@engine
def imported(kind: Kind) -> Ids | None:
    if not (file := kind.has("tokenizer.json")):
        return None
    theirs = load(file)
    return lambda texts: of_rows(theirs.encode_ids(texts))


@engine
def version_2(kind: Kind) -> Ids | None:
    if not kind.has("tokenizer.json"):
        return None
    done = koktok("export", kind.folder, "--to", "hf2", "-o", kind.place / "tokenizer.json")
    if done.returncode:
        assert "where no other pre-tokenizer follows" in done.stderr
        return None
    content = json.loads((kind.place / "tokenizer.json").read_text(encoding="utf-8"))
    assert (content["version"], content["role_to_token"]) == ("2.0", kind.ours.style.roles)
    # tokenizers 1.0.0rc3 refuses it inside of a sequence
    assert "Metaspace" not in json.dumps((content["pre_tokenizer"] or {}).get("pretokenizers"))
    theirs = load(kind.place / "tokenizer.json")
    return lambda texts: of_rows(theirs.encode_ids(texts))


@engine
def transformers(kind: Kind) -> Ids | None:
    if not kind.has("tokenizer.json"):
        return None
    from transformers import AutoTokenizer

    auto = AutoTokenizer.from_pretrained(str(kind.folder))
    return lambda texts: auto(texts, split_special_tokens=True, add_special_tokens=False)["input_ids"]


@engine
def sentencepiece_model(kind: Kind) -> Ids | None:
    if not (file := kind.has("tokenizer.model")):
        return None
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(file))
    return lambda texts: [theirs.encode(text) for text in texts]


@engine
def tiktoken(kind: Kind) -> Ids | None:
    ours = kind.ours
    if ours.prefix or refuses(ours.definition):
        return None
    theirs = ranks_of(ours.definition).encoding()
    return lambda texts: [theirs.encode_ordinary(text) for text in texts]


@engine
def imported_ranks(kind: Kind) -> Ids | None:
    if not kind.open("tiktoken"):
        return None
    export = write_folder(kind.place / "ranks", files(ranks_of(kind.ours.definition)), EXPORT)
    theirs = load(f"tiktoken:{export}")
    return lambda texts: of_rows(theirs.encode_ids(texts))


@engine
def playground(kind: Kind) -> Ids | None:
    if not kind.node:
        return None
    kind.node.load(kind.ours)
    return lambda texts: kind.node.ask("ids", texts)


NORMALIZED = ("sentencepiece_model", "tiktoken", "imported_ranks")
"""Engines that are promised the ids of normalized text: other tests say how far their own normalizers go."""


def differs(kind: Kind, name: str, texts: list[str]) -> list[str]:
    """The texts whose ids are others in this engine."""
    ours, ids_of = kind.ours, kind.open(name)
    if ids_of is None:
        return []
    texts = kind.suits(texts)
    if name in NORMALIZED:
        texts = [ours.normalize(text) for text in texts]
    if name == "mapped_files":  # where a record is lines, and lines end in one way
        texts = [text for text in texts if text and not {"\n", "\r"} & set(text)]
    if name == "sentencepiece_model":  # it has no mark for such a space, and reads no NUL
        texts = [text for text in texts if "\0" not in text and not text.startswith(" ")]
    if name == "version_2" and ours.prefix == "first":
        texts = [text for text in texts if not ours.normalize(text).startswith(" ")]
    return [text for text, ids in zip(texts, ids_of(texts) if texts else [], strict=True) if ids != kind.ids(text)]


@pytest.fixture(scope="module")
def node() -> Iterator[PlaygroundEngine | None]:
    with PlaygroundEngine.opened() as engine:
        yield engine


@pytest.fixture(scope="module")
def made(
    trained: Callable[..., Path], node: PlaygroundEngine | None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Kind]:
    """A kind by its name."""

    def make(name: str) -> Kind:
        place = tmp_path_factory.mktemp("kind")
        if name in RECIPES:
            return Kind(trained(**RECIPES[name]), place, node)
        learnt = load(trained(**MODELS["bpe-bytes"]))
        recipe = learnt.recipe.changed(pretokenize={"pattern": name.removeprefix("pattern ")})
        pieces = dict.fromkeys([*learnt.vocab.pieces[256:], *ACROSS])
        vocab = Vocab.bpe_bytes(pieces, specials=learnt.vocab.specials)
        return Kind(TrainedTokenizer(recipe, vocab).save(place / "tokenizer"), place, node)

    return make


@pytest.fixture(scope="module", params=[*RECIPES, *PATTERNS])
def kind(request: pytest.FixtureRequest, made: Callable[[str], Kind]) -> Kind:
    return made(request.param)


def test_every_engine_runs_the_kinds_that_it_has(kind: Kind) -> None:
    ours = kind.ours
    without = (
        set()
        if ours.vocab.kind in tokenizer_json.MODEL_TYPES
        else {"hugging_face", "imported", "version_2", "transformers"}
    )
    if ours.vocab.kind not in model_proto.MODEL_TYPES:
        without |= {"sentencepiece_model"}
    if ours.recipe.pretokenize.digits == "three" and ours.prefix:
        without |= {"sentencepiece_model", "version_2"}
    if ours.vocab.kind != "bpe-bytes" or ours.prefix or ours.recipe.jamo:
        without |= {"tiktoken", "imported_ranks"}
    if kind.node is None:
        without |= {"playground"}
    assert {name for name in ENGINES if not kind.open(name)} == without


@pytest.mark.parametrize("name", ENGINES)
def test_hostile_and_real_lines(kind: Kind, name: str, mini: list[str]) -> None:
    lines = [*HOSTILE, *around_specials(kind.ours.vocab.specials[:4])[::5]]
    assert not differs(kind, name, [*lines, *mini[:: 18 if kind.ours.recipe.jamo else 6]])


@settings(max_examples=max(1, settings.default.max_examples // 5))
@given(texts=st.lists(TEXT, min_size=1, max_size=12))
def test_any_texts(kind: Kind, texts: list[str]) -> None:
    assert not {name: wrong for name in ENGINES if (wrong := differs(kind, name, ["", *texts]))}


UNLIKE = (
    "unigram",
    "bpe",
    "wordpiece",
    "no prefix",
    "folds",
    "jamo",
    "fallback wordpiece",
    "prefixed bytes",
    "superbpe",
    "pattern o200k",
)
"""A kind for each way from a text's first characters to its first token: by normalizer, space before the text, and pieces."""


@pytest.mark.parametrize("name", UNLIKE)
def test_texts_that_begin_with_what_normalization_changes(name: str, made: Callable[[str], Kind]) -> None:
    """Every character that is dropped, composed or moved, and up to four spaces behind it."""
    kind = made(name)
    n = 2 if kind.ours.recipe.jamo else 5  # a decoder of jamo has ten thousand nodes
    some = changed()[:: 1 if name == "unigram" else 4]  # of the other kinds a quarter, as a whole run has few minutes
    texts = [f"{char}{' ' * k}{rest}" for char in some for k in range(n) for rest in ("가", "")]
    assert not {name: wrong for name in ("bulk", "hugging_face") if (wrong := differs(kind, name, texts))}


@cache
def changed() -> list[str]:
    dropped = [char for char in Normalizer(Folds(**dict.fromkeys(FOLDS, True))).sources if len(char) == 1]
    composed = [
        char
        for char in map(chr, range(0x300, 0x30000))
        if unicodedata.combining(char) or (unicodedata.decomposition(char) and normalize("NFC", char) != char)
    ]
    return [*dropped, *composed, *map(chr, range(0x1100, 0x1200)), "\u200b\u200b", "\ufeff\u200b", "\u200b\u0301"]


def test_special_tokens_are_read_when_asked(kind: Kind) -> None:
    ours = kind.ours
    ids, (one, two) = ours.vocab.special_ids, ours.vocab.specials[-2:]
    texts = [f"가{one}나 {two}", one, f"{one}{two} ", "", "끝"]
    expected = [ours.encode(text, allowed_special="all").ids for text in texts]
    assert {ids[one], ids[two]} <= {*expected[0]}
    assert not {ids[one], ids[two]} & {*ours.encode(texts[0]).ids}
    first = ours.encode(texts[0], allowed_special=[one])
    assert first.offsets[first.ids.index(ids[one])] == (1, 1 + len(one))
    assert one not in ours.decode(first.ids, skip_special_tokens=True)
    rows = ours.encode_ids(texts, allowed_special="all", before=[one], after=[two, one])
    assert of_rows(rows) == [[ids[one], *row, ids[two], ids[one]] for row in expected]
    if file := kind.has("tokenizer.json"):
        theirs = tokenizers.Tokenizer.from_file(str(file))
        assert [row.ids for row in theirs.encode_batch(texts, add_special_tokens=False)] == expected
    if kind.open("tiktoken"):
        theirs = ranks_of(ours.definition).encoding()
        assert [theirs.encode(text, allowed_special="all") for text in texts] == expected
    if kind.open("playground"):
        assert [row[2] for row in kind.node.ask("encode", texts)] == expected


@pytest.mark.parametrize("kind", RECIPES, indirect=True)
@settings(max_examples=max(1, settings.default.max_examples // 2))
@given(data=st.data())
def test_any_ids_give_the_same_text(kind: Kind, data: st.DataObject) -> None:
    """Ids that no text has, broken bytes among them; a stream holds back as little as it can."""
    ours, vocab = kind.ours, kind.ours.vocab
    jamo = [i for i, token in enumerate(vocab.tokens) if len(token) == 1 and "\u1100" <= token <= "\u11ff"]
    often = (sorted(vocab.fragment_ids), jamo, list(vocab.special_ids.values()))
    some = st.one_of(st.integers(0, vocab.size - 1), *(st.sampled_from(ids) for ids in often if ids))
    rows = data.draw(st.lists(st.lists(some, max_size=14), min_size=1, max_size=3))
    flat, indptr = np.array([i for row in rows for i in row], np.uint32), np.cumsum([0, *map(len, rows)])
    theirs = _theirs(kind)
    for skip in (False, True):
        texts = [ours.decode(row, skip_special_tokens=skip) for row in rows]
        stream = ours.stream(skip_special_tokens=skip)
        for row, text in zip(rows, texts, strict=True):  # after the first it is as new
            assert "".join([*map(stream.push, row), stream.finish()]) == text
        assert ours.decode_batch(rows, skip_special_tokens=skip) == texts
        assert ours.decode_ids(flat, indptr, skip_special_tokens=skip) == texts
        if "hugging_face" in theirs:
            assert theirs["hugging_face"].decode_batch(rows, skip_special_tokens=skip) == texts
    texts = [ours.decode(row) for row in rows]
    if "tiktoken" in theirs:
        assert [theirs["tiktoken"].decode(row) for row in rows] == texts
    if kind.open("playground"):
        assert ["".join(kind.node.ask("stream", row)) for row in rows] == texts
    if "sentencepiece" in theirs:
        for text in texts:
            normal = ours.normalize(text)
            if "\0" not in normal and not normal.startswith(" "):
                assert without_prefix(theirs["sentencepiece"].decode(ours.encode(normal).ids), ours.prefix) == normal
    for row in rows:
        stream, out = ours.stream(), ""
        for n, i in enumerate(row, start=1):
            out += stream.push(i)
            run = next((k for k, j in enumerate(reversed(row[:n])) if j >= vocab.n_bytes), n)
            assert len(out) >= len(ours.decode(row[: n - run])) - 2  # the two or three jamo of an open syllable


@cache
def _libraries(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (folder / "tokenizer.json").exists():
        found["hugging_face"] = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    if (folder / "tokenizer.model").exists():
        found["sentencepiece"] = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    return found


def _theirs(kind: Kind) -> dict[str, Any]:
    """The libraries that decode this kind."""
    found = dict(_libraries(kind.folder))
    if kind.open("tiktoken"):
        found["tiktoken"] = ranks_of(kind.ours.definition).encoding()
    return found
