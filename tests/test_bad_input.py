"""Whatever comes in wrong is named: one error of our tree, never a traceback of something else, never a wrong answer."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import MODELS

from koktok import KoktokError, Recipe
from koktok.errors import ArtifactError, InputError, UsageError
from koktok.model.vocab import Vocab
from koktok.pipeline.train import train
from koktok.text.sources import Source
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.open import load

Trained = Callable[..., Path]

NO_TEXT = [
    None,
    3,
    float("nan"),
    b"a",
    bytearray(b"a"),
    ["a"],
    [["a"]],
    ("a",),
    {"a": 1},
    object(),
    "\ud800",
    "가\udfff나",
]
NO_TEXTS = [None, 3, "가나다", b"a", {"a": 1}, object(), [None], [3], [b"a"], [["a"]], ["가", "\ud800"], np.array(3)]
NO_TOKENS = [None, 3, 2.5, "some", "</s>", b"</s>", [None], ["<eos>"], [["</s>"]], np.array(3), object()]
NO_THREADS = ["2", 0, -1, 2.5, True, np.array([1, 2]), "all"]
NO_FILES = [3, "text", ["a"], {"a": 3}, {3: "a"}, {"../x": "a"}, {"a/b": "a"}, {"": "a"}, {"..": "a"}, {"a\\b": "a"}]
NO_IDS = [
    None, 3, "가", "12", b"\x01", bytearray(b"\x01"), object(), {"a": 1}, [None], [1.5], ["1"], [b"1"], [[1, 2]], [-1],
    [10**9], [2**70], np.array([[1]]), np.array([1.0]), np.array(["1"]), np.array(300),
]  # fmt: skip
NO_ID = [None, "가", b"1", 1.5, [1], -1, 10**9, 2**70, np.array([1]), np.float64(1)]
NO_PATH = [None, 3, b"folder", ["folder"], "", "\ud800", "a\0b"]
VALUES = {
    "encode": (lambda t, bad: t.encode(bad), NO_TEXT),
    "normalize": (lambda t, bad: t.normalize(bad), NO_TEXT),
    "sample": (lambda t, bad: t.sample(bad, alpha=0.1, seed_or_rng=0), NO_TEXT),
    "n_best": (lambda t, bad: t.n_best(bad, 2), NO_TEXT),
    "encode_batch": (lambda t, bad: t.encode_batch(bad), NO_TEXTS),
    "encode_ids": (lambda t, bad: t.encode_ids(bad), NO_TEXTS),
    "decode": (lambda t, bad: t.decode(bad), NO_IDS),
    "decode_ids": (lambda t, bad: t.decode_ids(bad), NO_IDS),
    "decode_batch": (lambda t, bad: t.decode_batch(bad), [None, 3, "가", b"1", [3], ["가"], [[None]], [["1"]], [[-1]], [[10**9]]]),
    "stream": (lambda t, bad: t.stream().push(bad), NO_ID),
    "allowed_special": (lambda t, bad: t.encode("가", allowed_special=bad), NO_TOKENS),
    "allowed_special of many": (lambda t, bad: t.encode_ids(["가"], allowed_special=bad), [t for t in NO_TOKENS if t is not None]),
    "before": (lambda t, bad: t.encode_ids(["가"], before=bad), NO_TOKENS),
    "after": (lambda t, bad: t.encode_ids(["가"], after=bad), NO_TOKENS),
    "threads": (lambda t, bad: t.encode_ids(["가"], threads=bad), NO_THREADS),
    "threads of decode_ids": (lambda t, bad: t.decode_ids([1], threads=bad), NO_THREADS),
    "dtype": (lambda t, bad: t.encode_ids(["가"], dtype=bad), ["uint8", "float32", "\ud800", 3.5]),
    "n_best of sample": (lambda t, bad: t.sample("가", alpha=1, seed_or_rng=0, n_best=bad), [0, -1, 2.5, True, "2"]),
    "extra": (lambda t, bad: t.save("nowhere", extra=bad), NO_FILES),
    "koktok.load": (lambda _, bad: load(bad), NO_PATH),
    "n": (lambda t, bad: t.n_best("가", bad), [None, 0, -1, 1.5, "2"]),
    "alpha": (lambda t, bad: t.sample("가", alpha=bad, seed_or_rng=0), [None, -1, "a", True, float("nan"), float("inf"), 1e308]),
    "seed": (lambda t, bad: t.sample("가", alpha=0.1, seed_or_rng=bad), ["a", -1, 1.5]),
    "save": (lambda t, bad: t.save(bad), NO_PATH),
    "load": (lambda t, bad: type(t).load(bad), [*NO_PATH, "/none/such"]),
    "Tokenizer": (lambda t, bad: type(t)(*bad), [(None, None), (Recipe(), None), (Recipe(), "가"), ({}, Vocab.bpe("가", []))]),
    "Source.of": (lambda _, bad: Source.of(bad), [*NO_PATH[:-1], "/none/such"]),
    "train": (lambda _, bad: train(bad, SMALL), [*NO_TEXTS, [], [""]]),
    "recipe": (lambda _, bad: train(["가나다"], bad), [3, "recipe", {"train": 1}]),
    "Recipe.build": (
        lambda _, bad: Recipe.build(bad),
        [None, 3, "a", [1], {"x": 1}, {1: 2}, {"format": 3}, {"train": 3}, {"train": None}, {"special": 3},
         {"train": {"vocab_size": "x"}}, {"train": {"vocab_size": -1}}, {"train": {"vocab_size": float("nan")}}],
    ),
    "Recipe.from_toml": (lambda _, bad: Recipe.from_toml(bad), [None, 3, b"a", "a", "[x]", "[recipe]\nx = 1", "recipe = 3"]),
    "Recipe.load": (lambda _, bad: Recipe.load(bad), [None, 3, b"x", "/none/such"]),
    "Recipe.changed": (lambda _, bad: Recipe().changed(**bad), [
        {"x": 1}, {"train": 3}, {"train": {"x": 1}}, {"holdout": 2}, {"holdout": {"a": 1}}, {"jamo": {}}, {"special": {"style": []}},
        {"special": {"style": {"a": 1}}}, {"special": {"style": np.array([1])}}, {"segment": {"policy": "\ud800"}},
    ]),
    "Source": (lambda _, bad: Source("a", (), weight=bad), [0, -1, 1e308, float("inf"), float("nan")]),
    "Vocab": (
        lambda _, bad: Vocab.bpe("가", bad[0], specials=bad[1]),
        [([3], []), ([""], []), (["\ud800"], []), ([], [3]), ([], [""]), ([], ["\ud800"]), ([], ["a", "a"]), (["나다"], [])],
    ),
    "Vocab.unigram": (lambda _, bad: Vocab.unigram(bad), [{"가": float("nan")}, {"가": float("inf")}, {"": -1.0}, {"\ud800": -1.0}]),
}  # fmt: skip
"""By name: a call, and what must not come in."""

SMALL = Recipe().changed(train={"vocab_size": 300})
CASES = [(name, i) for name, (_, bad) in VALUES.items() for i in range(len(bad))]


@pytest.mark.parametrize(
    ("name", "i"), CASES, ids=[f"{name}-{type(VALUES[name][1][i]).__name__}-{i}" for name, i in CASES]
)
def test_every_call_names_what_came(name: str, i: int, trained: Trained) -> None:
    call, bad = VALUES[name]
    with pytest.raises(KoktokError) as caught:
        call(load(trained()), bad[i])
    assert len(caught.value.message) > 15
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("model", ["bpe", "bpe-bytes", "wordpiece", "word", "syllable", "ngram", "jamo model"])
def test_every_kind_refuses_the_same(model: str, trained: Trained) -> None:
    tokenizer = load(trained(**MODELS[model]))
    for bad in NO_TEXT:
        with pytest.raises(InputError):
            tokenizer.encode(bad)  # type: ignore[arg-type]
    for bad in NO_IDS:
        with pytest.raises(InputError):
            tokenizer.decode(bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        tokenizer.sample("가", alpha=1.0, seed_or_rng=0)


def test_one_bad_text_in_a_batch_costs_nothing_else(trained: Trained) -> None:
    """The tokenizer is as it was: nothing of the failed call stays in its tables."""
    tokenizer = load(trained())
    expected = [encoding.ids for encoding in tokenizer.encode_batch(["가나다", "라마"])]
    for call in (tokenizer.encode_batch, tokenizer.encode_ids):
        with pytest.raises(InputError):
            call(["가나다", "\ud800", "라마"])
    assert [encoding.ids for encoding in tokenizer.encode_batch(["가나다", "라마"])] == expected
    assert [row.tolist() for row in tokenizer.encode_ids(["가나다", "라마"])] == expected


@pytest.fixture
def folder(trained: Trained, tmp_path: Path) -> Callable[..., Path]:
    def copy(model: str) -> Path:
        return Path(shutil.copytree(trained(**MODELS[model]), tmp_path / model.replace(" ", "-"), dirs_exist_ok=True))

    return copy


DECISIVE = ("koktok.toml", "tokenizer.json", "vocab.json")


@pytest.mark.parametrize("model", ["unigram", "bpe", "wordpiece", "word", "morpheme"])
def test_a_torn_file_is_refused(model: str, folder: Callable[..., Path], mini: list[str]) -> None:
    """But for notes of the training that are gone by whole lines, which stand last in koktok.toml and decide nothing."""
    place = folder(model)
    expected = [load(place).encode(line).ids for line in mini[:20]]
    for name in DECISIVE:
        if not (place / name).exists():
            continue
        whole = (place / name).read_bytes()
        for share in (0.0, 0.1, 0.5, 0.9, 0.999):
            left = whole[: int(len(whole) * share)]
            (place / name).write_bytes(left)
            if b"[signature.outcome]" in left and left.endswith(b"\n"):
                assert [load(place).encode(line).ids for line in mini[:20]] == expected
                continue
            with pytest.raises(ArtifactError):
                TrainedTokenizer.load(place)
        (place / name).unlink()
        with pytest.raises(ArtifactError):
            TrainedTokenizer.load(place)
        (place / name).write_bytes(whole)
    load(place)


@pytest.mark.parametrize("model", ["unigram", "bpe", "wordpiece", "morpheme"])
def test_a_flipped_bit_is_refused_or_changes_no_id(model: str, folder: Callable[..., Path], mini: list[str]) -> None:
    """What `load` reads is held by the digest; the rest of the file (a description, a decoder) is for others to read."""
    place = folder(model)
    tokenizer = load(place)
    expected = [tokenizer.encode(line).ids for line in mini[:20]]
    drawn = random.Random(0)
    refused = 0
    for name in DECISIVE:
        if not (place / name).exists():
            continue
        whole = (place / name).read_bytes()
        for _ in range(40):
            at, bit = drawn.randrange(len(whole)), 1 << drawn.randrange(8)
            (place / name).write_bytes(whole[:at] + bytes((whole[at] ^ bit,)) + whole[at + 1 :])
            try:
                broken = load(place)
            except ArtifactError:
                refused += 1
                continue
            assert broken.vocab == tokenizer.vocab
            if broken.recipe == tokenizer.recipe:
                assert [broken.encode(line).ids for line in mini[:20]] == expected
        (place / name).write_bytes(whole)
    assert refused > 20


WATCH = """
import sys
folders = tuple(sys.argv[1:])
def watch(event, args):
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "pickle.find_class", "marshal.loads.user"):
        raise SystemExit(f"ran {event} {args}")
    if event == "exec" and getattr(args[0], "co_filename", "").startswith(folders):
        raise SystemExit(f"ran {args[0].co_filename}")
    if event == "open" and isinstance(args[0], str) and args[0].startswith(folders) and args[0].endswith((".py", ".pkl")):
        raise SystemExit(f"opened {args[0]}")
from koktok import load
import koktok.runtimes.huggingface.tokenizer_json, koktok.bulk
sys.addaudithook(watch)
for folder in folders:
    tokenizer = load(folder)
    print(tokenizer.decode(tokenizer.encode("가나다").ids))
"""


def test_loading_runs_no_code_of_the_folder(folder: Callable[..., Path], tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w').close()"
    places = [folder(model) for model in ("unigram", "wordpiece", "ngram")]
    for place in places:
        for name in ("tokenizer.py", "__init__.py", "tokenization_koktok.py", "koktok.py", "sitecustomize.py"):
            (place / name).write_text(trap)
        (place / "tokenizer.pkl").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
        (place / "chat_template.jinja").write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}")
        if (place / "tokenizer_config.json").exists():
            config = json.loads((place / "tokenizer_config.json").read_text())
            config["auto_map"] = {"AutoTokenizer": ["tokenizer.Trap", "tokenizer.Trap"]}
            (place / "tokenizer_config.json").write_text(json.dumps(config))
    done = subprocess.run([sys.executable, "-c", WATCH, *places], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["가나다"] * 3, done.stderr
    assert not (tmp_path / "sprung").exists()


def test_errors_are_caught_by_their_root_and_by_pythons_own_kind() -> None:
    for kind in (InputError, UsageError, ArtifactError):
        assert issubclass(kind, KoktokError)
        assert issubclass(kind, ValueError)
