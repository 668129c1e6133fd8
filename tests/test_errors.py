"""What an error says: a call, the exception, and its words, a table for each room.

What a test shows beside the words (what is left on the disk, a hint that is run) stands in the room's own tests; what no
call may take is `tests/test_bad_input.py`; the command line's table is in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CORPUS, MODELS, read_lines
from reference.trainers import train_simple, train_unigram_em

from koktok import Recipe, Tokenizer, evaluate, hangul, load, train
from koktok.corpora.fetch import fetch, find
from koktok.count import Counts, count_words
from koktok.count.shards import Shards
from koktok.errors import ArtifactError, CorpusError, InputError, RecipeError, UsageError, VocabSizeError
from koktok.files import write_folder
from koktok.instances import Masking, Packed, Plan, write_packed
from koktok.instances.word_cuts import WordCuts
from koktok.metrics import Material, Parallel, Text, describe, score
from koktok.metrics.gold import GoldCorpus, read_gold
from koktok.metrics.gold.spans import read_spans
from koktok.model.definition import Definition
from koktok.model.special import style_for
from koktok.model.vocab import Vocab
from koktok.pipeline.curve import frontier
from koktok.report.doctor import diagnose
from koktok.report.measure import Entry, measure
from koktok.report.measure import ReportMaterial as Shown
from koktok.runtimes.gguf import GgufVocab
from koktok.runtimes.huggingface.tokenizer_json import in_version_2, tokenizer_json
from koktok.runtimes.sentencepiece.message import ModelProto
from koktok.runtimes.sentencepiece.model_proto import model_proto
from koktok.runtimes.tiktoken.ranks import EXPORT, Ranks, files, ranks_from_text, ranks_of
from koktok.runtimes.tiktoken.ranks import load as load_ranks
from koktok.segment import Policy, Whitespace, segmenter_for
from koktok.segment.segmented import BoundaryKind, Cut, SegmentedCounts
from koktok.text.blocklist import Blocklist
from koktok.text.normalize import Folds, Normalizer
from koktok.text.patterns import PublishedPattern
from koktok.text.pretokenize import Pattern
from koktok.text.sources import Source
from koktok.token_files import write_token_files
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.restyle import chat_template_of, restyle
from koktok.training.job import Job
from koktok.training.lattice import CostWeights
from koktok.training.superwords import segment_runs


@dataclass
class Here:
    """A folder of the test, and trained tokenizers."""

    folder: Path
    trained: Callable[..., Path]

    def file(self, content: str | bytes, name: str = "a.txt") -> Path:
        (self.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return self.folder / name

    def link(self, name: str, to: str) -> Path:
        (self.folder / name).symlink_to(to)
        return self.folder / name

    def tokenizer(self, model: str = "unigram") -> Tokenizer:
        return load(self.trained(**MODELS[model]))


Row = tuple[Callable[[Here], object], type[Exception], str]


def encode(text: Any, **options: Any) -> Callable[[Here], object]:
    return lambda here: here.tokenizer().encode(text, **options)


def encode_ids(texts: Any, **options: Any) -> Callable[[Here], object]:
    return lambda here: here.tokenizer().encode_ids(texts, **options)


def decode_ids(ids: list[Any], indptr: Any) -> Callable[[Here], object]:
    return lambda here: here.tokenizer().decode_ids(np.array(ids), indptr)


def sample(model: str, **options: Any) -> Callable[[Here], object]:
    return lambda here: here.tokenizer(model).sample("학교에서", **options, seed_or_rng=0)


def token_files(**options: Any) -> Callable[[Here], object]:
    return lambda here: write_token_files(
        here.tokenizer(), Source.of(here.file("가\n")), here.folder / "out", **options
    )


def toml(text: str) -> Callable[[Here], object]:
    return lambda _: Recipe.from_toml(text)


def changed(*, first: Any = None, **changes: Any) -> Callable[[Here], object]:
    return lambda _: Recipe().changed(**(first or {})).changed(**changes)


def dictionary(line: str) -> Callable[[Here], object]:
    return lambda here: segmenter_for("kiwi", user_dictionary=str(here.file(f"# 낱말\n{line}\n", "words.tsv")))


def calls(call: Callable[[], object]) -> Callable[[Here], object]:
    return lambda _: call()


def each(values: Iterable[Any], call: Callable[[Any], object], error: type[Exception], words: str) -> list[Row]:
    return [(lambda _, value=value: call(value), error, words) for value in values]  # type: ignore[misc]


def reading(name: str, content: str, **options: Any) -> Callable[[Here], object]:
    """All lines of a file of that name."""
    return lambda here: read_lines(Source.of(here.file(content, name), **options))


def named(given: str, *there: str) -> Callable[[Here], object]:
    """`Source.of` of a path where these files lie."""
    return lambda here: ([here.file("x", name) for name in there], Source.of(f"{here.folder}/{given}"))


def opening(name: str, content: Any, **options: Any) -> Callable[[Here], object]:
    """`load` of a file of that name."""
    data = json.dumps(content) if isinstance(content, dict) else content
    return lambda here: load(here.file(data, name), **options)


def definition(content: Any, **options: Any) -> Callable[[Here], object]:
    return opening("tokenizer.json", content, **options)


def damaged(file: str, damage: Any) -> Callable[[Here], object]:
    """`load` of a trained folder where a file has other content, JSON that a function changed, or is not there."""

    def call(here: Here) -> object:
        folder = shutil.copytree(here.trained(), here.folder / "tokenizer")
        if damage is None:
            (folder / file).unlink()
        elif callable(damage):
            content = json.loads((folder / file).read_text())
            damage(content)
            (folder / file).write_text(json.dumps(content))
        else:
            (folder / file).write_bytes(damage.encode() if isinstance(damage, str) else damage)
        return TrainedTokenizer.load(folder)

    return call


def added(i: int, number: Any) -> Callable[[Here], object]:
    return damaged("tokenizer.json", lambda content: content["added_tokens"][i].update(id=number))


def longest(change: Callable[[list[Any], list[Any]], object]) -> Callable[[Here], object]:
    """A change of the rows of a vocabulary and the one with the longest piece."""

    def damage(content: Any) -> None:
        rows = content["model"]["vocab"]
        change(rows, max(rows, key=lambda row: len(row[0])))

    return damaged("tokenizer.json", damage)


def shorten(_: list[Any], row: list[Any]) -> None:
    """Another piece of the same score."""
    row[0] = row[0][:-1]


def with_b(entry: str) -> Callable[[Here], object]:
    """The good definition with another entry in place of b's."""
    return definition(json.dumps(GOOD).replace('"b": 1', entry))


def scored(unknown: int, *rows: list[Any]) -> Callable[[Here], object]:
    return definition(GOOD | {"model": {"type": "Unigram", "unk_id": unknown, "vocab": rows}})


def cut_file(line: str) -> Callable[[Here], Any]:
    return lambda here: load(f"cuts:{here.file(line, 'cuts.jsonl')}")


def merges(line: str) -> Callable[[Here], object]:
    return lambda here: (
        here.file(f"#version: 0.2\n{line}\n", "merges.txt"),
        opening("vocab.json", {"a": 0, "b": 1})(here),
    )


def piece_twice(here: Here) -> object:
    proto = ModelProto((here.trained() / "tokenizer.model").read_bytes())
    proto.pieces[400].piece = proto.pieces[401].piece
    return load(here.file(proto.serialized(), "tokenizer.model"))


def torn_model(here: Here) -> object:
    data = (here.trained() / "tokenizer.model").read_bytes()
    return load(here.file(data[: len(data) // 2], "tokenizer.model"))


def pack(here: Here, text: str) -> object:
    cuts = WordCuts(Whitespace(), Policy.parse("morphemes"))
    return write_packed(here.tokenizer(), Source.of(here.file(text)), here.folder / "out", lexicon=cuts)


def curve(held: dict[str, int], eojeols: int) -> Callable[[Here], object]:
    """Told before any training."""
    job = Job(SegmentedCounts.from_marked({"집|에": 9}), 10**9)
    return lambda _: frontier([job], SegmentedCounts.from_marked(held), held_eojeols=eojeols)


def recipe_of(*sources: str, beside: str = "") -> Callable[[Here], object]:
    """A corpus of these sources."""
    text = "".join([CORPUS, beside, *(f"\n[[source]]\n{source}\n" for source in sources)])
    return lambda here: find(str(here.file(text, "test.toml")))


def export(**change: Any) -> Callable[[Here], object]:
    """`load` of an export for tiktoken whose description says something else."""

    def call(here: Here) -> object:
        folder = write_folder(here.folder / "out", files(ranks_of(Definition(TINY), "tiny"), "nfc"), EXPORT)
        told = json.loads((folder / "tiktoken.json").read_text())
        (folder / "tiktoken.json").write_text(json.dumps(told | change))
        return load_ranks(folder)

    return call


def gguf(**change: Any) -> Callable[[Here], object]:
    good = {"model": "llama", "pre": "default", "tokens": ("a", "b"), "scores": (), "types": (1, 1), "roles": {}}
    return lambda _: GgufVocab(**good | change)  # type: ignore[arg-type]


def plain(letters: str, pieces: list[str]) -> TrainedTokenizer:
    return TrainedTokenizer(Recipe(), Vocab.bpe(letters, pieces, specials=Recipe().special_tokens))


LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
NORMALIZERS = (Normalizer(), Normalizer().align, Normalizer().changes)
NO_CUT_LINES = (
    "가나",
    "[1]",
    '{"text": "가나"}',
    '{"text": "가나", "cuts": [2]}',
    '{"text": "가나", "cuts": [0]}',
    '{"text": "가나", "spans": [[1, 2], [0, 1]]}',
    '{"text": "가나", "spans": [[0, 3]]}',
    '{"text": 5, "cuts": []}',
    "[" * 100_000,
)
NO_CUTS = (-1, 4, (1, "coda"), (3, "coda"), (0, "onset"), (9, "coda"))
WITHOUT_EOMI = {kind.label: 1.0 for kind in BoundaryKind if kind is not BoundaryKind.EOMI}
BYTES = {bytes([i]): i for i in range(256)}
WORDS = SegmentedCounts.from_marked({" 학교|에서": 4})
RANKS = "".join(f"{base64.b64encode(piece).decode()} {i}\n" for piece, i in BYTES.items())
BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
TINY = Vocab.bpe_bytes(["ê°", "ê°Ģ"], specials=["</s>"])
MISPLACED = (
    '{"data": [{"paragraphs": [{"context": "학교", "qas": [{"answers": [{"answer_start": 3, "text": "학교"}]}]}]}]}'
)
GOLD = GoldCorpus.of("tiny", [[("집에", ["집", "에"], ["NNG", "JKB"], False)]], human=True)
KIWI = "집에 왔다\t집/NNG 에/JKB 오/VV 았/EP 다/EF\n"
SYLLABLES = [Entry("syllables")]
GOOD = {
    "version": "1.0",
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
    "model": BPE,
}
ADDED = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
SPACED = tokenizer_json(Definition(Vocab.bpe(" 12", ["12"]), pattern=Pattern(digits="single"), prefix="first"))
FAR = {"type": "WordLevel", "vocab": {"a": 0, "b": 4_000_000_000}, "unk_token": "a"}
WITHOUT_OTHERS = r"superwords. (is for koktok's own trainers|are for pieces of syllables)"

ERRORS: dict[str, list[Row]] = {
    "tokenizer": [
        (encode(b"a"), InputError, r"expected one `str` in `encode`, got bytes\nhint: text\.decode\('utf-8'\)"),
        (encode(["a"]), InputError, r"got list.*\nhint: tokenizer.encode_batch"),
        (encode("가\ud800"), InputError, "surrogate"),
        (encode("끝", allowed_special=["<eos>"]), InputError, r"'<eos>' is not a special token; there are <pad>, <unk>"),
        (lambda here: here.tokenizer().encode_batch("가나다"), InputError, "expected texts, got one `str`"),
        (lambda here: here.tokenizer().decode([-1]), InputError, r"id -1 is outside the vocabulary \(0 to 2299\)"),
        (lambda here: here.tokenizer().decode(["1"]), InputError, "expected an integer as id in .decode., got '1'"),
        (sample("unigram", dropout=0.1), UsageError, r"`dropout` is not for a unigram.*\nhint: tokenizer.sample\(text, alpha=0.1"),
        (sample("bpe", alpha=0.1), UsageError, r"`alpha` is not for a bpe tokenizer.*\nhint: tokenizer.sample\(text, dropout=0.1"),
        (sample("wordpiece", dropout=0.1, n_best=3), UsageError, "`n_best` is not for a wordpiece"),
        (sample("unigram"), UsageError, "samples of a unigram tokenizer require `alpha`"),
        (sample("bpe-bytes"), UsageError, "samples of a bpe-bytes tokenizer require `dropout`"),
        (sample("word", dropout=0.1), UsageError, r"a word tokenizer has one segmentation.*\nhint: tokenizer.encode"),
        (sample("bpe", dropout=1.5), UsageError, "expected a probability from 0 to 1 as `dropout`, got 1.5"),
        (sample("unigram", alpha=-1.0), UsageError, "expected a number from 0 to .* as `alpha`, got -1.0"),
        (lambda here: here.tokenizer("bpe").n_best("가", 2), UsageError, r"a bpe tokenizer has no scores of segmentations.*\nhint: .*unigram"),
        (lambda here: here.tokenizer().n_best("", 0), UsageError, "expected at least 1 as `n`, got 0"),
        (calls(lambda: restyle(plain("가", []), "brt")), UsageError, "the style `brt` is not known"),  # type: ignore[arg-type]
        (calls(lambda: restyle(plain("가[]CLS", ["[CLS]"]), "bert")), ArtifactError, r"the piece '\[CLS\]' spells a special token"),
    ],
    "bulk": [
        (encode_ids("가나다"), InputError, r"expected texts, got one `str`\nhint: tokenizer.encode_ids\(\[text\]\)"),
        (encode_ids(b"abc"), InputError, "expected texts, got one `bytes`"),
        (encode_ids(["가", 3]), InputError, "expected a text .*, got a `int`"),
        (encode_ids(["가", "\ud800"]), InputError, r"a lone surrogate U\+D800"),
        (encode_ids(["\0", "\ud800"]), InputError, r"a lone surrogate U\+D800"),
        (encode_ids(3), InputError, "expected texts, got a `int`"),
        (encode_ids(["가"], after=["<x>"]), InputError, "'<x>' is not a special token"),
        (encode_ids([], allowed_special=["<x>"]), InputError, "'<x>' is not a special token"),
        (encode_ids(["가"], dtype="uint8"), UsageError, "dtype = 'uint8' cannot hold the ids 0 to 2299"),
        (encode_ids(["가"], dtype="float"), UsageError, "dtype = 'float' cannot hold"),
        (encode_ids(["가"], threads=0), UsageError, "threads = 0"),
        (decode_ids([2300], [0, 1]), InputError, r"the id 2300 is outside the vocabulary \(0 to 2299\)"),
        (decode_ids([-1], [0, 1]), InputError, "the id -1 is outside"),
        (decode_ids([0.5], [0, 1]), InputError, "expected integers as ids, got an array of float64"),
        (decode_ids([1, 2], [0, 3]), InputError, "an indptr that rises and lies inside them"),
        (decode_ids([1, 2], [0, 2, 1]), InputError, "an indptr that rises and lies inside them"),
        (decode_ids([[1]], [0, 1]), InputError, "an indptr that rises and lies inside them"),
        (decode_ids([1, 2], []), InputError, "an indptr that rises and lies inside them"),
        (decode_ids([1, 2], "a"), InputError, "expected integers as indptr"),
    ],
    "token files": [
        (token_files(format="csv"), UsageError, "`csv` is not a format"),
        (token_files(shard_tokens=0), UsageError, "shard_tokens = 0"),
        (token_files(before=["<x>"]), InputError, "'<x>' is not a special token"),
    ],
    "adapters": [
        (definition(""), ArtifactError, "is empty"),
        (definition(json.dumps(GOOD)[:-9]), ArtifactError, "is not JSON: .*"),
        (definition(b'{"model": \xff}'), ArtifactError, "is not UTF-8"),
        (definition({"a": 1}), ArtifactError, "has no model with a vocab"),
        (definition({"model": {"vocab": {}}, "decoder": {"type": "Kiwi"}}), ArtifactError, "has Kiwi's own format"),
        (definition(GOOD | {"decoder": "Kiwi"}), ArtifactError, "has Kiwi's own format"),
        (definition(GOOD | {"model": {"type": "New", "vocab": {}}}), ArtifactError, "the library tokenizers cannot read"),
        (definition(GOOD | {"normalizer": {"type": "Mine"}}), ArtifactError, "the library tokenizers cannot read"),
        (definition(GOOD | {"normalizer": "NFC"}), ArtifactError, "the library tokenizers cannot read"),
        (definition(GOOD | {"added_tokens": [{"id": 2**31, "content": "<x>", "special": False}]}), ArtifactError, "2147483648|cannot read"),
        (definition(GOOD | {"added_tokens": [{"id": 9, "content": "<s>", **ADDED}]}), ArtifactError, "gives '<s>' the id 9, and the .* 3"),
        (definition(GOOD | {"model": FAR}), ArtifactError, "gives the id 4000000000 in a vocabulary of 2 pieces"),
        (with_b('"a": 1'), ArtifactError, "has the key 'a' twice"),
        (with_b('"b": 0'), ArtifactError, "gives the id 0 to 'a' and to 'b'"),
        (with_b('"b": -1'), ArtifactError, "expected a whole number from 0 as id of 'b', got -1"),
        (with_b('"b": 1.5'), ArtifactError, "expected a whole number from 0 as id of 'b', got 1.5"),
        (with_b('"b": 4000000000'), ArtifactError, "gives the id 4000000000 in a"),
        (scored(7, ["a", 0.0]), ArtifactError, "has the unknown id 7, and 1 pieces"),
        (scored(0, ["a", 0.0], ["a", -1.0]), ArtifactError, "has the piece 'a' twice"),
        (scored(0, [["a"], 1]), ArtifactError, "expected a piece and its score in each row of the vocabulary"),
        (definition(GOOD, pattern="gpt2"), UsageError, "a pattern and special tokens are for tiktoken ranks"),
        (definition(GOOD, lowercase=True), UsageError, r"lowercase is for a vocab\.txt"),
        (opening("tokenizer.model", b"\x00\xff garbage"), ArtifactError, "not a SentencePiece model"),
        (opening("tokenizer.model", b"\n\x07\n\x01a\x15\x00\x00"), ArtifactError, "not a SentencePiece model"),
        (torn_model, ArtifactError, "not a SentencePiece model"),
        (piece_twice, ArtifactError, "the library sentencepiece cannot read"),
        (opening("m.gguf", b"GGUF\x03\x00"), ArtifactError, "is a GGUF"),
        (opening("vocab.txt", "가\n나\n"), ArtifactError, "is none of: a tokenizer.json"),
        (merges("a c"), ArtifactError, "Token `c` out of vocabulary"),
        (merges("a b c"), ArtifactError, "does not open .*: Error while initializing BPE: Merges text file invalid at line 1"),
        (opening("a.tiktoken", "IQ== 0\n가\n", pattern="gpt2"), ArtifactError, "line 2 of"),
        (opening("a.tiktoken", "IQ== 0\n", pattern="gpt2"), ArtifactError, "got none for 255"),
        (opening("a.tiktoken", RANKS), UsageError, r"(?s)has ranks, and no pattern.*#cl100k"),
        (opening("a.tiktoken", RANKS, pattern="gpt2", specials={"<x>": 10**9}), ArtifactError, "gives the id 1000000000"),
        *((opening("a.tiktoken", f"{RANKS}YWI= {rank}\n", pattern="gpt2"), ArtifactError, f"gives the id {rank} in a vocabulary of 25")
          for rank in (3 * 10**8, 2**63)),
        *((cut_file(line), InputError, "line 1: expected") for line in NO_CUT_LINES),
        (lambda here: cut_file('{"text": "가나", "cuts": [1]}')(here).encode_lines(["다라"]), InputError, "no cuts for the text '다라'"),
        (lambda here: load(here.folder / "none.json"), UsageError, "there is no file, folder or tokenizer"),
        (lambda here: load(here.folder), ArtifactError, "holds no tokenizer that koktok reads"),
        (calls(lambda: load("hf:")), UsageError, "expected hf:PATH"),
        (calls(lambda: load("nothing:here")), UsageError, "the kind `nothing` is not known"),
        (calls(lambda: load("sp:nowhere.model")), InputError, "there is no file"),
        (calls(lambda: load("syllables").vocab), UsageError, "has no vocabulary"),
        (lambda here: load("bytes").save(here.folder / "bytes"), UsageError, "cannot be saved in a folder"),
        (calls(lambda: load("bytes", pattern="gpt2")), UsageError, "needs no options; they are for paths"),
        (calls(lambda: load("package:unheard-of")), UsageError, "no package is known"),
    ],
    "folders": [
        (damaged("tokenizer.json", "{"), ArtifactError, "damaged or not koktok's"),
        (damaged("tokenizer.json", '{"model": {"type": "Unigram"}}'), ArtifactError, "damaged or not koktok's"),
        (damaged("tokenizer.json", "[]"), ArtifactError, "damaged or not koktok's"),
        (damaged("tokenizer.json", "null"), ArtifactError, "damaged or not koktok's"),
        (damaged("tokenizer.json", '{"model": null, "added_tokens": []}'), ArtifactError, "damaged or not koktok's"),
        (damaged("tokenizer.json", '{"model": {"type": "Unigram", "vocab": 3}, "added_tokens": []}'), ArtifactError, "damaged"),
        (damaged("tokenizer.json", '{"model": {"type": ["Unigram"], "vocab": []}, "added_tokens": []}'), ArtifactError, "has a model of type"),
        *((damaged("tokenizer.json", json.dumps({"model": {"type": "Unigram", "vocab": [row]}, "added_tokens": []})), ArtifactError, words)
          for row, words in ((["a", "b"], "damaged"), (["\ud800", -1.0], "a lone surrogate"), (["a", float("nan")], "rounded scores"))),
        (damaged("tokenizer.json", "[" * 100_000), ArtifactError, "damaged"),
        (damaged("tokenizer.json", None), ArtifactError, "tokenizer.json` cannot be read"),
        (longest(lambda rows, row: rows.remove(row)), ArtifactError, "expected the id 2294 of '<pad>', got 2295"),
        (longest(lambda rows, _: rows.pop(0)), ArtifactError, "expected a tokenizer.json with the 256 byte pieces first"),
        (longest(shorten), ArtifactError, "was changed: its digest differs from that in koktok.toml"),
        *((damaged("tokenizer.json", lambda c, part=part: c.update({part: None})), ArtifactError, rf"the {part} in `.*` was changed")
          for part in ("normalizer", "pre_tokenizer", "post_processor")),
        (added(-1, 2**31), ArtifactError, "of '<mask>', got 2147483648"),
        (added(1, -5), ArtifactError, "expected the id 2295 of '<unk>', got -5"),
        (added(1, True), ArtifactError, "of '<unk>', got True"),
        (damaged("tokenizer.json", lambda c: c["model"].update(type="LSTM")), ArtifactError, "'LSTM', which koktok does not write"),
        (damaged("tokenizer.json", lambda c: c["model"].update(type="WordLevel")), ArtifactError, "'WordLevel', which runs no unigram"),
        (damaged("koktok.toml", None), ArtifactError, "not a readable koktok tokenizer"),
        (damaged("koktok.toml", b"\xff\xfe"), ArtifactError, "koktok.toml` is not UTF-8"),
        (damaged("koktok.toml", "[recipe]\nformat = 99"), ArtifactError, "format"),
        (damaged("koktok.toml", "[recipe]"), ArtifactError, "ends without a line break"),
        (damaged("koktok.toml", "[recipe\n"), ArtifactError, "koktok.toml is not TOML"),
        (damaged("koktok.toml", "\0\n"), ArtifactError, "koktok.toml is not TOML"),
        (damaged("koktok.toml", "recipe = 3\n"), ArtifactError, "damaged: recipe: expected a valid dict.*got 3"),
        (damaged("koktok.toml", "signature = 3\n"), ArtifactError, "damaged: signature: expected a valid dict.*got 3"),
        (damaged("koktok.toml", "[signature]\nkind = 3\n"), ArtifactError, "'Unigram', which runs no 3"),
        (damaged("koktok.toml", "[recipe.train]\nvocab_size = 'many'\n"), ArtifactError, "many"),
        (damaged("koktok.toml", "[strange]\n"), ArtifactError, "damaged: strange: Extra inputs are not permitted"),
    ],
    "formats": [
        (calls(lambda: in_version_2(SPACED, {})), ArtifactError, "where no other pre-tokenizer follows"),
        (lambda here: here.tokenizer().save(here.folder, extra={"tokenizer.json": ""}), UsageError, "is a file of the tokenizer itself"),
        (calls(lambda: ranks_from_text("IQ== 0\nIg==\n", "x")), ArtifactError, "line 2 of `x`: expected a piece in base64, .*, got 'Ig=='"),
        (calls(lambda: ranks_from_text("IQ== 0\n\nI!== 1\n", "x")), ArtifactError, "line 3 of `x`"),
        (calls(lambda: ranks_from_text("IQ== zero\n", "x")), ArtifactError, "line 1 of `x`"),
        (calls(lambda: ranks_from_text("IQ== 0\nIQ== 1\n", "x")), ArtifactError, r"has the piece b'!' a second time"),
        (calls(lambda: ranks_from_text("", "x")), ArtifactError, "holds no ranks"),
        (calls(lambda: Ranks("x", ".", {b"\0": 0}, {})), ArtifactError, "got none for 255, first 0x01"),
        (calls(lambda: Ranks("x", ".", BYTES | {b"ab": -1}, {})), ArtifactError, "expected a whole number from 0 as id of b'ab', got -1"),
        (calls(lambda: Ranks("x", "(", BYTES, {}).encoding()), ArtifactError, "the library tiktoken cannot read `x`"),
        (export(format=2), ArtifactError, "has format 2; this koktok reads 1"),
        (export(special_tokens={"</s>": 0}), ArtifactError, r"the id 0 of '</s>' is that of b'!', too"),
        (calls(lambda: model_proto(plain("가", []).definition, ["<x>"])), ArtifactError, "'<x>' is not a special token"),
        (calls(lambda: style_for("plain", ["<pad>"], template="eos").around()), ArtifactError, "the template `eos` requires a eos_token"),
        (lambda here: chat_template_of(str(here.folder / "none")), ArtifactError, r"cannot be read.*\nhint: chat_template='chatml' \| "),
        (lambda here: plain("가", []).export("spn", here.folder / "x"), UsageError, r"got 'spn'\nhint: did you mean `spm`"),
        (lambda here: plain("가", []).export("gguf", here.folder / "x", style="bert"), UsageError, "`--style` does nothing with `--to gguf`"),
        (lambda here: plain("가", []).export("hf", here.folder / "x", into="y"), UsageError, "`--into` does nothing with `--to hf`"),
        (lambda here: plain("가", []).export("gguf", here.folder / "x", name="a/b"), UsageError, "`--name a/b` is not a name of a file"),
        (gguf(tokens=("a", "a")), ArtifactError, "the token 'a' is empty or occurs twice"),
        (gguf(tokens=("a", "")), ArtifactError, "the token '' is empty"),
        (gguf(types=(1,)), ArtifactError, "expected a type and a score for each of 2 tokens, got 1 and 0"),
        (gguf(roles={"eos": 2}), ArtifactError, "the id 2 of `eos` is outside the vocabulary"),
    ],
    "vocab": [
        (calls(lambda: Vocab("bpe", ("가", "가"))), ArtifactError, "distinct"),
        (calls(lambda: Vocab("bpe", ("가", "가나"))), ArtifactError, r"missing: \['나'\]"),
        (calls(lambda: Vocab("unigram", ("가",), ())), ArtifactError, "expected 1 scores, one for each piece, got 0"),
        (calls(lambda: Vocab("unigram", ("가",), (1.0,))), ArtifactError, "at most 0"),
        (calls(lambda: Vocab("unigram", ("가", "나"), (-2.0, -1.0))), ArtifactError, "in descending order"),
        (calls(lambda: Vocab("unigram", ("가",), (-0.001,))), ArtifactError, "rounded"),
        (calls(lambda: Vocab("bpe", ("가",), (-1.0,))), ArtifactError, "has no scores"),
        (calls(lambda: Vocab("bpe", ("가",), specials=("</s>", "</s>"))), ArtifactError, "special tokens must be distinct"),
        (calls(lambda: Vocab("bpe", (*"<0x1>", "<0x10>"))), ArtifactError, "byte piece"),
        (calls(lambda: Vocab("bpe", (*"</s>", "</s>"), specials=("</s>",))), ArtifactError, "special token"),
        (calls(lambda: Vocab("bpe", ("▁",))), ArtifactError, "U\\+2581"),
        (calls(lambda: Vocab.plain("syllable", ["가", "나", "가나"])), ArtifactError, "single characters, got the piece .가나."),
    ],
    "recipe": [
        (toml("[recipe.train]\nvocab_sise = 1"), RecipeError, r"unknown key `train.vocab_sise`\nhint: did you mean `vocab_size`\?"),
        (toml("[recipe]\nwhatever = 1"), RecipeError, r"unknown key `whatever`\nhint: the keys are "),
        (toml("[recipes]\n"), RecipeError, r"unknown table `recipes`"),
        (toml("[recipe.train]\nvocab_size = 0"), RecipeError, r"`train.vocab_size` is 0: .*greater than or equal to 1"),
        (toml("[recipe.train]\nvocab_size = -5"), RecipeError, r"`train.vocab_size` is -5"),
        (toml('[recipe.train]\nvocab_size = "many"'), RecipeError, r"`train.vocab_size` is 'many'"),
        (toml('[recipe.train]\nmodel = "lstm"'), RecipeError, r"`train.model` is 'lstm': .*'unigram'"),
        (toml('[recipe.train]\nspecials = ["<s>", "<s>"]'), RecipeError, r"special tokens must be distinct"),
        (toml('[recipe.segment]\npolicy = "nonsense"'), RecipeError, r"expected a boundary policy"),
        (toml("[recipe.train.reserve_script]\nlatin = 1.5"), RecipeError, r"`train.reserve_script.latin` is 1.5: "),
        (toml("[recipe.train.reserve_script]\nklingon = 0.5"), RecipeError, r"klingon"),
        (toml("[recipe]\nholdout = 1.5"), RecipeError, r"`holdout` is 1.5"),
        (toml("[recipe]\nformat = 3"), RecipeError, r"the recipe's `format` is 3, and this koktok reads format 2\nhint: format = 2"),
        (toml("[recipe"), RecipeError, r"the recipe is not TOML"),
        (toml(f"a = {'[' * 5000}"), RecipeError, r"the recipe is not TOML: it is nested too deep"),
        (toml(f"[recipe]\nx = {'[' * 5000}{']' * 5000}"), RecipeError, r"the recipe is not TOML: it is nested too deep"),
        (toml("[recipe.train]\nlam = 1e308"), RecipeError, r"`train.lam` is 1e\+308: input should be less than or equal to 1000000"),
        (toml("[recipe.train]\nlam = 0.0"), RecipeError, r"`train.lam` is 0.0"),
        (toml("[recipe.train]\nmu = inf"), RecipeError, r"`train.mu` is inf: input should be a finite number"),
        (toml("[recipe.train]\nmu = 1e308"), RecipeError, r"`train.mu` is 1e\+308"),
        (toml("[recipe.train]\nnu = nan"), RecipeError, r"`train.nu` is nan: input should be a finite number"),
        (toml("[recipe.train.nu]\nrest = 0.3\njosa = inf"), RecipeError, r"`train.nu.josa` is inf: input should be a finite number"),
        (toml("[recipe.train]\nsuperwords = nan"), RecipeError, r"`train.superwords` is nan"),
        (toml("[recipe.train]\ncharacter_coverage = inf"), RecipeError, r"`train.character_coverage` is inf"),
        (toml("[recipe.train.reserve_script]\nlatin = nan"), RecipeError, r"`train.reserve_script.latin` is nan"),
        (toml("[recipe]\nholdout = nan"), RecipeError, r"`holdout` is nan"),
        (toml("[recipe.train]\nvocab_size = 10_000_001"), RecipeError, r"`train.vocab_size` is 10000001"),
        (toml("[recipe.train]\nreserved = 100_000_000"), RecipeError, r"`train.reserved` is 100000000"),
        (toml("[recipe.train]\nreserved = 1_000_000"), RecipeError, r"1,000,005 special tokens and reserved slots leave no id"),
        (toml(f"[recipe.train]\nmin_count = {10**30}"), RecipeError, r"`train.min_count`"),
        (toml(f"[recipe.train]\nngram = {10**9}"), RecipeError, r"`train.ngram`"),
        (toml("[recipe.train]\nmax_piece_length = 65"), RecipeError, r"`train.max_piece_length`"),
        (toml("[recipe.normalize]\nrepeats = 1001"), RecipeError, "`repeats`: expected a whole number of 0 to 1000, got 1001"),
        (toml(f"[recipe.special]\nmodel_max_length = {10**40}"), RecipeError, r"`special.model_max_length`"),
        (toml("[recipe.special]\npad_to_multiple = 4097"), RecipeError, r"`special.pad_to_multiple`"),
        (toml('[[recipe.sources]]\nname = "a"\nweight = inf'), RecipeError, r"`sources.0.weight` is inf"),
        (toml('[recipe.train]\nspecials = ["<unk>", "\\u0000"]'), RecipeError, r"holds the control character U\+0000"),
        (toml('[recipe.train]\nspecials = ["<unk>", "a\\nb"]'), RecipeError, r"holds the control character U\+000A"),
        (toml(f'[recipe.train]\nspecials = ["<unk>", "{"x" * 100_000}"]'), RecipeError, r"at most 256 characters, got one of 100,000"),
        (toml('[recipe.train]\nspecials = ["<unk>", "<0x00>"]'), RecipeError, r"<0x00> is spelled like the byte piece"),
        *((toml(f'[recipe.train]\nmodel = "{model}"\nspecials = ["[UNK]", "<한>", "<é>"]'), RecipeError, "<é> is spelled with GPT-2's letters")
          for model in ("bpe-bytes", "wordpiece-bytes")),
        (toml('[recipe.segment]\nsegmenter = "dpe:"'), RecipeError, r"`segment.segmenter` is 'dpe:': input should be 'kiwi'"),
        (toml('[recipe.segment]\nuser_dictionary_sha256 = "no digest"'), RecipeError, r"`segment.user_dictionary_sha256`"),
        (lambda here: Recipe.load(here.folder / "none.toml"), RecipeError, r"none\.toml` cannot be read"),
        (changed(model="word", backend="spm"), RecipeError, r"`backend = spm` is for unigram, bpe, not for word\nhint: backend='koktok'"),
        (changed(model="wordpiece", specials=("<s>",)), RecipeError, r"one of .*\[UNK\], <unk>\nhint: specials=\['\[UNK\]', '<s>'\]"),
        (changed(model="ngram", ngram=1), RecipeError, r"`train.ngram` is 1"),
        (changed(special={"style": "brt"}), RecipeError, "`special.style` is 'brt'"),
        (changed(special={"chat_template": "chatlm"}), RecipeError, "neither a preset nor a Jinja template"),
        (changed(special={"model_max_length": 0}), RecipeError, "`special.model_max_length` is 0"),
        (changed(special={"padding_side": "up"}), RecipeError, "`special.padding_side` is 'up'"),
        (changed(special={"pad_to_multiple": 0}), RecipeError, "`special.pad_to_multiple` is 0"),
        (changed(special={"styel": "bert"}), RecipeError, "unknown key `special.styel`"),
        (changed(first={"superwords": 0.2}, jamo=True), RecipeError, WITHOUT_OTHERS),
        (changed(first={"superwords": 0.2}, model="wordpiece"), RecipeError, WITHOUT_OTHERS),
        (changed(first={"superwords": 0.2}, backend="spm"), RecipeError, WITHOUT_OTHERS),
        (changed(inner_superwords=True, superwords=0.0), RecipeError, "`inner_superwords` requires `superwords`"),
        (changed(price="bits", model="wordpiece"), RecipeError, "`price = bits` is for koktok's own trainers of unigram, bpe"),
        (changed(pattern="llama3", model="unigram"), RecipeError, "`pattern = .*` is for bpe-bytes, not for unigram"),
        (changed(pattern="llama3", model="bpe-bytes", superwords=0.2), RecipeError, "no superwords"),
        (changed(pattern="llama3", model="bpe-bytes", digits="free"), RecipeError, "itself decides where words"),
        (changed(blocklist=["/(/"]), RecipeError, "regular expression"),
        (changed(personal_data="x"), RecipeError, "personal_data"),
        (changed(keep=0.8, nu=0.4), RecipeError, "same option"),
        (changed(keep=0.8, model="wordpiece"), RecipeError, "not for wordpiece"),
        (changed(keep=1.2), RecipeError, "keep"),
        (changed(keep={"compound": 0.5}), RecipeError, "keep"),
        (changed(required="ksx1001"), RecipeError, "required"),
        (changed(required=["가\n"]), RecipeError, "cannot be a piece"),
        (changed(required_pieces=["가\n"]), RecipeError, "cannot be a piece"),
        (changed(required_pieces=["가나"], model="wordpiece"), RecipeError, "`required_pieces` is for koktok's own trainers of unigram"),
        (changed(model="wordpiece", prefix_space=True), RecipeError, "`prefix_space` is for"),
        (changed(lam=3.0, model="wordpiece"), RecipeError, "`lam` is for koktok's own trainers of unigram"),
        (changed(preset="aligned", model="wordpiece"), RecipeError, "`preset = aligned` is for koktok's own trainers of unigram"),
        (changed(preset="aligned", model="bpe", backend="spm"), RecipeError, "`preset = aligned` is for koktok's own trainers of unigram"),
        (changed(template="bos", specials=("<unk>",)), RecipeError, r"the template `bos` requires a bos_token.*\nhint: .*specials="),
        (changed(jamo="sometimes"), RecipeError, "`jamo` is 'sometimes': expected true, false"),
    ],
    "text": [
        (calls(lambda: read_lines("나는")), InputError, r"(?s)expected lines, got one `str`.*hint: \[text\]"),
        (calls(lambda: read_lines(b"x")), InputError, "got one `bytes`"),
        (calls(lambda: read_lines({"train": ["a"]})), InputError, 'got a mapping with the keys "train"'),
        (calls(lambda: read_lines(3)), InputError, "expected lines, got a `int`"),
        (calls(lambda: read_lines(["a", 3])), InputError, "item 2 is a `int`; expected a record with the field"),
        (calls(lambda: read_lines([{"body": "a"}])), InputError, 'item 1 has no field "text"; it has: "body"'),
        *((reading(name, LFS), InputError, r"is a Git LFS pointer, not the file\nhint: git lfs pull")
          for name in ("a.txt", "b.jsonl", "c.csv")),
        (reading("a.jsonl", '{"text": null}\n{"id": 1, "body": "b"}\n'), InputError, r'line 2 has no field "text"; it has: "id", "body"'),
        (reading("a.jsonl", '{"text": 3, "body": "b"}\n'), InputError, r'(?s)line 1: the field "text" is a `int`.*field=.body.'),
        (reading("a.jsonl", '{"text": "a"}\n', field="body"), InputError, r'(?s)no field "body"; it has: "text".*hint: field=.text.'),
        (reading("a.jsonl", '"a"\n'), InputError, r"line 1 is a `str`; expected a record"),
        (reading("a.jsonl", '{"text": \n'), InputError, r"a\.jsonl`, line 1 is not JSON"),
        (reading("a.csv", "id,body\n1,글\n"), InputError, r'the header, has no field "text"; it has: "id", "body"\nhint: field=.body.'),
        (reading("a.csv", "id,body\n"), InputError, r'the header, has no field "text"; it has: "id", "body"'),
        (reading("a.csv", "id,text\n1\n"), InputError, "line 2 has 1 columns; the header has 2"),
        (reading("a.csv", 'id,text\n1,"a"b\n'), InputError, r"a\.csv`, line 2 is not CSV"),
        (reading("a.tsv", "id\ttext\n1\ta\tb\n"), InputError, "line 2 has 3 columns; the header has 2"),
        (named("no.txt"), InputError, r"(?s)there is no file or folder .*no.txt.*\nhint: "),
        (named("newz.txt", "news.txt"), InputError, r"did you mean `.*news\.txt`"),
        (named("", "x.pdf"), InputError, r"(?s)the folder .* holds no file that koktok reads .*\.jsonl.*\nhint: "),
        (named("*.md", "a.txt"), InputError, r"(?s)no file matches .*\*\.md.*\nhint: "),
        (lambda here: read_lines([Source.of(here.file("가"))] * 2), InputError, "two sources are named `a`"),
        (calls(lambda: count_words("나는 집에")), InputError, "expected lines, got one `str`"),
        (calls(lambda: Shards(holdout=-0.1)), UsageError, "expected a share of 0 to 1, got -0.1"),
        (calls(lambda: Shards(holdout=1.5)), UsageError, "expected a share of 0 to 1, got 1.5"),
        (calls(lambda: Blocklist(personal=["phone"])), UsageError, "'phone'; expected one of email, telephone, registration, name_number"),
        (calls(lambda: Blocklist(["/(/"])), InputError, r"pattern `/\(/` is not a regular expression"),
        (calls(lambda: Blocklist("바보")), InputError, "expected lines, got one `str`"),
        (lambda here: Blocklist.load(here.folder / "nothing"), InputError, "cannot be read as UTF-8"),
        *each(NORMALIZERS, lambda call: call("가\ud83d나"), InputError, r"lone surrogate U\+D83D at character 1"),
        *each(NORMALIZERS, lambda call: call(b"abc"), InputError, r"expected text \(str\), got a bytes"),
        *each([None, 3, ["가"]], Normalizer(), InputError, r"expected text \(str\), got a "),
        *each([-1, 1001, True, 2.5, "3"], lambda bad: Folds(repeats=bad), InputError, "`repeats`"),
        *each([{"split": "word"}, {"digits": "four"}, {"split": None}], lambda bad: Pattern(**bad), InputError, "expected: one of"),
        (calls(lambda: PublishedPattern(name="llama4")), InputError, "expected: koktok, gpt2"),
        *each(NO_CUTS, lambda cut: hangul.split_cuts("갔다a", [cut]), InputError, "expected"),
    ],
    "corpora": [
        (recipe_of(beside="x = "), CorpusError, r"test\.toml.* cannot be read: "),
        (recipe_of(beside="source = []"), CorpusError, "one of the two"),
        (recipe_of('kind = "local"\npath = "a"', beside='licnce = "x"'), CorpusError, "`licnce`; did you mean `licence`.*Allowed: name, title"),
        (recipe_of('kind = "local"\npaht = "a"'), CorpusError, "`source 1 paht`; did you mean `path`.*Allowed: name, format"),
        (recipe_of('kind = "ftp"'), CorpusError, "source 1: .*'ftp'.*'pypi', 'git', 'local'"),
        (recipe_of('kind = "local"'), CorpusError, r"test\.toml.*source 1 path: Field required"),
        (recipe_of('kind = "git"\nrepository = "ftp://x"\ncommit = "0"'), CorpusError, r"repository: String should match pattern '\^\(https://"),
        (recipe_of(*['kind = "local"\npath = "a"'] * 2), CorpusError, "two sources are called `a`"),
        (lambda here: find(str(here.link("zero.toml", "/dev/zero"))), CorpusError, r"zero\.toml` cannot be read: it has more than 1024 KiB"),
        (calls(lambda: fetch("dmo")), CorpusError, r"(?s)no corpus `dmo`; there are: bench-ko, .*demo, .*did you mean `corpus:demo`"),
        (calls(lambda: find("../demo")), CorpusError, r"no corpus `\.\./demo`"),
        (calls(lambda: find("no.toml")), CorpusError, r"`no\.toml` cannot be read"),
        (calls(lambda: Source.of("corpus:mini")), InputError, "got the corpus `corpus:mini`"),
    ],
    "segment": [
        (calls(lambda: Policy.parse("jossa")), UsageError, r"got `jossa`.*\nhint: policy='none', josa"),
        (calls(lambda: segmenter_for("pecab")), UsageError, r"`pecab` is not known\nhint: segmenter='kiwi' \| mecab \| okt"),
        (dictionary("쿠쿠\tNNP\tnan"), InputError, "line 2, has the score `nan`; expected a number from -1000 to 1000"),
        (dictionary("쿠쿠\tNNP\t-inf"), InputError, "has the score `-inf`"),
        (dictionary("쿠쿠\tNNP\t1e39"), InputError, "has the score `1e39`"),
        (dictionary("쿠쿠\tNNP\tmany"), InputError, "has the score `many`"),
        (dictionary("쿠\0쿠\tNNP\t0"), InputError, "line 2, holds a control character"),
        (dictionary("쿠\x1b쿠\tNNP\t0"), InputError, "holds a control character"),
        (dictionary("함박 스테이크\tNNP\t0"), InputError, "line 2, has the form `함박 스테이크` with a space"),
        (dictionary("쿠" * 100_000 + "\tNNP\t0"), InputError, "has a form of 100,000 characters; 100 at most"),
        (lambda here: segmenter_for("kiwi", user_dictionary=str(here.folder / "none.tsv")), ArtifactError, r"none\.tsv` cannot be read"),
        (calls(lambda: SegmentedCounts.from_items([("가나", [], 1), ("가나", [], 2)])), InputError, "expected every word once"),
        (calls(lambda: SegmentedCounts.from_items([("가나", [Cut(2)], 1)])), InputError, "do not lie inside"),
    ],
    "training": [
        (calls(lambda: train_simple(WORDS, "ngram", vocab_size=300, n=1)), UsageError, "expected n-grams of at least 2"),
        (calls(lambda: train_simple(WORDS, "word", vocab_size=3)), ArtifactError, r"a word vocabulary requires one of .* \[UNK\], <unk>"),
        (calls(lambda: segment_runs(Counts.from_mapping({"그는 사람은": 1}), WORDS)), InputError, "'그는', which was not segmented"),
        (calls(lambda: train_unigram_em(WORDS, vocab_size=250)), VocabSizeError, "expected at least"),
        (lambda here: train([here.file("가\n"), "나는 집에 간다."]), InputError, "expected a path"),
        (calls(lambda: train(["가"], 3000)), UsageError, r"got a int\nhint: koktok.train\(text, vocab_size=3000\)"),  # type: ignore[arg-type]
        (calls(lambda: train([""], Recipe().changed(segmenter="whitespace"))), InputError, r"(?s)no word to train on.*with words in"),
        (lambda here: train(here.file("\n\n"), holdout=0.5), InputError, r"(?s)no word to train on.*with words in"),
        (curve({}, 5), InputError, "nothing to measure on"),
        (curve({"집|에": 1}, 0), InputError, "nothing to measure on"),
        (curve({"집에": 1}, 9), UsageError, r"no cut between two Hangul syllables.*\nhint: segmenter='kiwi'"),
        (calls(lambda: CostWeights.of(1, 1, {"jossa": 1, "rest": 0})), UsageError, "`jossa`"),
        (calls(lambda: CostWeights.of(1, 1, WITHOUT_EOMI)), UsageError, "expected a weight for `eomi`"),
    ],
    "instances": [
        (lambda here: Packed.open(here.folder), ArtifactError, "is not a packed folder"),
        (lambda here: pack(here, "\n \n\n"), InputError, "holds no document"),
        (calls(lambda: Masking(unit="syllable")), UsageError, "`unit`: expected"),  # type: ignore[arg-type]
        (calls(lambda: Masking(rate=1.0)), UsageError, "got 1.0"),
        (calls(lambda: Masking(mask_prob=0.9, random_prob=0.2)), UsageError, "at most 1 together"),
        (calls(lambda: Masking(max_predictions_per_seq=0)), UsageError, "greater than or equal to 1, got 0"),
        (calls(lambda: Plan(kind="ner")), UsageError, r"`kind`: expected .* got 'ner'"),  # type: ignore[arg-type]
        (calls(lambda: Plan(kind="bert", pairs="both")), UsageError, r"`pairs`: expected .* got 'both'"),  # type: ignore[arg-type]
    ],
    "metrics": [
        (lambda here: read_gold(here.folder / "none"), ArtifactError, "cannot be read"),
        (lambda here: read_gold(here.file("just text\n")), InputError, "no sentence"),
        (lambda here: read_gold(here.file("just text\n"), kind="xml"), UsageError, "expected a kind of gold"),
        (lambda here: read_spans(here.file("나는 학생이다.\n")), InputError, "expected SQuAD's JSON or lines of character TAB tag"),
        (lambda here: read_spans(here.file('{"data": 5}')), InputError, "expected SQuAD's JSON"),
        (lambda here: read_spans(here.file(MISPLACED)), InputError, "is not at 3"),
        (lambda here: read_spans(here.file("가\tO\n")), InputError, "holds no span"),
        (lambda here: read_gold(here.file("집에서 갔습니다.\t물/NNG\n", "web.tsv")), InputError, "no morphemes"),
        (lambda here: read_gold(here.file(f"{KIWI}한 줄\n"), kind="kiwi"), InputError, "line 2 is not a sentence, a tab and morphemes"),
        (lambda here: read_gold(here.file(f"집에\t집/NNG+에/JKB\n{KIWI}", "a.pos")), InputError, "line 2 has a text of several words"),
        (calls(lambda: Text.of({"a": "가"})), InputError, "one `str`"),
        (calls(lambda: describe("M99")), UsageError, "not a metric"),
        (calls(lambda: diagnose(load("syllables"))), UsageError, "`syllables` has no closed vocabulary"),
        (calls(lambda: evaluate([], ["가"])), UsageError, "no tokenizer"),
        (calls(lambda: evaluate(lambda text: [(1, len(text) + 1)], ["가"])), UsageError, "places in order inside the text from `<lambda>`"),
        (calls(lambda: evaluate(str.split, ["가"])), UsageError, "expected pairs of numbers from `split`"),
        (calls(lambda: measure([], Shown())), UsageError, "at least one tokenizer"),
        (calls(lambda: measure(SYLLABLES, Shown())), UsageError, "expected text, gold"),
        (calls(lambda: measure(SYLLABLES, Shown(golds=[GOLD, GOLD]))), UsageError, "two gold corpora are called `tiny`"),
        (calls(lambda: measure(SYLLABLES, Shown(golds=[GOLD]), reference="package:nothing")), UsageError, "`package:nothing` cannot run"),
        (calls(lambda: score(load("bytes"), Material())), UsageError, "expected text, gold or spans"),
        (calls(lambda: Parallel(["가"], [])), UsageError, "as many lines"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [pytest.param(*row, id=f"{room}-{i}") for room, rows in ERRORS.items() for i, row in enumerate(rows)],
)
def test_an_error_says(
    call: Callable[[Here], object],
    error: type[Exception],
    words: str,
    trained: Callable[..., Path],
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=words) as caught:
        call(Here(tmp_path, trained))
    assert type(caught.value) is error
    assert len(str(caught.value)) < 2500
