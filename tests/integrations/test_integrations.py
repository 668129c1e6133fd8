"""The analyser at run time: the cuts of Kiwi exactly, with the vocabulary, the ids and the decoder of the folder."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import MODELS

from koktok import Tokenizer
from koktok.errors import ArtifactError, InputError, UsageError
from koktok.formats.styles import restyle
from koktok.integrations import runtime
from koktok.integrations.runtime import Cutter, save_with_kiwi, settings_of
from koktok.segment.policy import Morpheme

transformers = pytest.importorskip("transformers", reason="the extra `transformers` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

RECIPES: dict[str, dict[str, Any]] = {
    **{name: MODELS[name] for name in ("unigram", "bpe-bytes", "wordpiece-bytes")},
    "superwords": {"train": {"superwords": 0.3}},
    "scripts": {"pretokenize": {"split": "scripts", "digits": "single"}},
    "jamo": {"jamo": True, "train": {"vocab_size": 1500}},
    "jamo fallback": {"jamo": "fallback", "train": {"character_coverage": 0.9}},
    "josa only": {"segment": {"policy": "josa"}},
}


@pytest.fixture(scope="module", params=RECIPES)
def ours(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Tokenizer:
    return Tokenizer.load(trained(**RECIPES[request.param]))


@pytest.fixture(scope="module")
def auto(ours: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    import koktok.integrations.transformers  # noqa: F401

    return transformers.AutoTokenizer.from_pretrained(str(saved(ours, tmp_path_factory.mktemp("kiwi"))))


def saved(ours: Tokenizer, folder: Path) -> Path:
    return save_with_kiwi(ours, folder / "tokenizer")


def exact(ours: Tokenizer, text: str, cutter: Cutter) -> list[int]:
    """The same in koktok: every part between two cuts solved by itself."""
    ids = []
    for _, pretoken in ours._read(text).pretokens:
        places = [0, *cutter.cuts(pretoken), len(pretoken)]
        ids += [i for a, b in pairwise(places) for i in ours.model.encode(pretoken[a:b])[0]]
    return ids


@pytest.fixture(scope="module")
def cutter(ours: Tokenizer) -> Cutter:
    settings = settings_of(ours)
    return Cutter(**{name: settings[name] for name in ("policy", "split", "digits", "jamo")})


def test_it_is_the_class_and_the_same_vocabulary(ours: Tokenizer, auto: Any) -> None:
    assert type(auto).__name__ == "KoktokKiwiTokenizer"
    assert auto.is_fast
    assert len(auto) == ours.vocab.size
    assert auto.convert_tokens_to_ids(list(ours.vocab.tokens)) == list(range(ours.vocab.size))


def test_pieces_are_solved_inside_the_cuts(ours: Tokenizer, auto: Any, cutter: Cutter, mini: list[str]) -> None:
    lines = [*mini[::15], "", "  두  칸 ", "ㅋㅋㅋ 뷁\t漢字 😀", "가" * 300, "1234567원"]
    batch = auto(lines)["input_ids"]
    for line, ids in zip(lines, batch, strict=True):
        assert ids == exact(ours, line, cutter)
        assert auto(line)["input_ids"] == ids
        assert auto.decode(ids) == ours.decode(ours.encode(line).ids) == ours.normalize(line)


def test_no_piece_crosses_a_cut(ours: Tokenizer, auto: Any, cutter: Cutter, mini: list[str]) -> None:
    if ours.recipe.jamo:
        pytest.skip("Hugging Face's offsets count syllables; the ids are compared above")
    seen = 0
    for line in mini[::5]:
        got = auto(line, return_offsets_mapping=True)["offset_mapping"]
        at = 0
        for pretoken in ours.pattern.pretokenize(ours.normalize(line)):
            for cut in cutter.cuts(pretoken):
                assert not any(a < at + cut < b for a, b in got), (line, pretoken, cut)
                seen += 1
            at += len(pretoken)
    assert seen > 100


def test_it_pickles_and_copies(auto: Any, mini: list[str]) -> None:
    ids = auto(mini[:40])["input_ids"]
    assert pickle.loads(pickle.dumps(auto))(mini[:40])["input_ids"] == ids
    assert copy.deepcopy(auto)(mini[:40])["input_ids"] == ids
    assert auto(mini[:40])["input_ids"] == ids


def test_saved_again_it_is_the_same_folder(ours: Tokenizer, tmp_path: Path, mini: list[str]) -> None:
    import koktok.integrations.transformers  # noqa: F401

    first = transformers.AutoTokenizer.from_pretrained(str(saved(ours, tmp_path)))
    first.save_pretrained(str(tmp_path / "again"))
    for name in ("tokenizer.json", runtime.STUB_NAME):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "tokenizer" / name).read_bytes()
    configs = [json.loads((tmp_path / f / "tokenizer_config.json").read_text()) for f in ("tokenizer", "again")]
    for key in ("auto_map", "koktok_kiwi", "tokenizer_class"):
        assert configs[0][key] == configs[1][key]
    second = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "again"))
    assert second(mini[:40])["input_ids"] == first(mini[:40])["input_ids"]


def test_the_folder_without_kiwi(ours: Tokenizer, tmp_path: Path, mini: list[str]) -> None:
    folder = saved(ours, tmp_path)
    assert Tokenizer.load(folder).vocab == ours.vocab
    plain = transformers.PreTrainedTokenizerFast.from_pretrained(str(folder))
    assert plain(mini[:20])["input_ids"] == [ours.encode(line).ids for line in mini[:20]]


# --- one folder ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert(trained: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    import koktok.integrations.transformers  # noqa: F401

    folder = saved(restyle(Tokenizer.load(trained()), "bert"), tmp_path_factory.mktemp("bert"))
    return transformers.AutoTokenizer.from_pretrained(str(folder))


def test_what_fast_tokenizers_can_do(bert: Any) -> None:
    got = bert(["학교에서 공부했다", "가"], padding=True, return_tensors="np", return_offsets_mapping=True)
    assert got["input_ids"].shape == got["attention_mask"].shape
    words = [i for i in got.word_ids(0) if i is not None]
    assert max(words) == 4  # 학교 에서 공부 했 다: words are morphemes here
    assert bert.convert_ids_to_tokens(got["input_ids"][0][:1]) == ["[CLS]"]
    assert got["offset_mapping"][0][got.char_to_token(0, 2)][0] == 2
    pair = bert("학교에서", "공부했다")
    assert sorted(set(pair["token_type_ids"])) == [0, 1]
    assert bert("가[MASK]나")["input_ids"][2] == bert.mask_token_id
    assert len(bert("학교에서 공부했다 " * 9, max_length=8, truncation=True)["input_ids"]) == 8


def test_words_are_asked_about_once(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    inner, _ = bert._cutter._analyser()

    class Spy:
        def signature(self) -> str:
            return str(inner.signature())

        def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
            words = list(words)
            asked.extend(words)
            return inner.analyse(words)

    monkeypatch.setattr(bert._cutter, "_given", Spy())
    bert.learn(["고양이가 마루에서 존다", "고양이가 깼다"])
    assert sorted(asked) == sorted(["고양이가", "마루에서", "존다", "깼다"])
    bert(["고양이가 마루에서 깼다"] * 9)
    assert len(asked) == 4


def test_threads(bert: Any, mini: list[str]) -> None:
    wanted = [bert(line)["input_ids"] for line in mini[200:260]]
    other = pickle.loads(pickle.dumps(bert))
    found: dict[int, list[list[int]]] = {}

    def work(i: int) -> None:
        found[i] = [other(line)["input_ids"] for line in mini[200:260]]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i] == wanted for i in range(4))


def test_an_error_of_the_analyser_reaches_the_caller(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def analyse(self, _words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
            raise RuntimeError("no model file")

    monkeypatch.setattr(bert._cutter, "_given", Broken())
    with pytest.raises(Exception, match="no model file"):
        bert("처음듣는말을했다")


def test_its_own_trainer_is_refused(bert: Any) -> None:
    with pytest.raises(UsageError, match="know no morphemes"):
        bert.train_new_from_iterator(["가"], vocab_size=100)


def test_another_kiwi_is_told(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = saved(Tokenizer.load(trained()), tmp_path)
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["koktok_kiwi"]["trained_with"] = "kiwi:0.1"
    file.write_text(json.dumps(config), encoding="utf-8")
    from koktok.integrations.transformers import KoktokKiwiTokenizer

    with pytest.warns(UserWarning, match=r"that of the training was kiwi:0\.1"):
        KoktokKiwiTokenizer.from_pretrained(str(folder))
    del config["koktok_kiwi"]
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ArtifactError, match="does not say how Kiwi shall cut"):
        KoktokKiwiTokenizer.from_pretrained(str(folder))


def test_a_dictionary_travels_with_the_folder(trained: Callable[..., Path], tmp_path: Path) -> None:
    from koktok.integrations.transformers import KoktokKiwiTokenizer

    tsv = tmp_path / "words.tsv"
    tsv.write_text("뷁뷁어\tNNP\t0.0\n", encoding="utf-8")
    ours = Tokenizer.load(trained())
    folder = save_with_kiwi(ours, tmp_path / "with", user_dictionary=tsv)
    auto = KoktokKiwiTokenizer.from_pretrained(str(folder))
    assert auto._cutter.cuts(" 뷁뷁어는") == [4]
    auto.save_pretrained(str(tmp_path / "again"))
    assert (tmp_path / "again" / runtime.DICTIONARY).read_bytes() == tsv.read_bytes()
    auto.save_pretrained(str(tmp_path / "again"))  # onto itself
    assert KoktokKiwiTokenizer.from_pretrained(str(tmp_path / "again"))._cutter.cuts(" 뷁뷁어는") == [4]
    with pytest.raises(InputError, match="the user dictionary"):
        save_with_kiwi(ours, tmp_path / "none", user_dictionary=tmp_path / "none.tsv")


@pytest.mark.parametrize("kind", ["wordpiece", "word", "ngram"])
def test_kinds_that_cannot_be_cut_say_why(kind: str, trained: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no analyser at run time") as caught:
        save_with_kiwi(Tokenizer.load(trained(**MODELS[kind])), tmp_path / "out")
    assert caught.value.hint == "--model unigram, bpe or bpe-bytes"
    assert not (tmp_path / "out").exists()


SCRIPT = """
import json, sys
from transformers import AutoTokenizer
try:
    AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=False)
    print("loaded without trust")
except ValueError as error:
    print("trust_remote_code" in str(error))
if sys.argv[2] == "hide":
    sys.modules["koktok"] = None
try:
    auto = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
    print(json.dumps([type(auto).__module__, auto("학교에서 공부했다")["input_ids"]]))
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("koktok", ["show", "hide"])
def test_remote_code(koktok: str, bert: Any, trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = saved(restyle(Tokenizer.load(trained()), "bert"), tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), koktok],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
    )
    refused, loaded = done.stdout.strip().splitlines()
    assert refused == "True"
    if koktok == "show":
        ids = bert("학교에서 공부했다")["input_ids"]
        assert json.loads(loaded) == ["koktok.integrations.transformers", ids]
    else:
        assert "pip install koktok kiwipiepy" in loaded


def test_a_child_process_has_a_kiwi_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cutter = Cutter()
    assert cutter._analyser() is Cutter()._analyser()
    ours, _ = cutter._analyser()
    monkeypatch.setattr(runtime.os, "getpid", lambda: -1)
    assert cutter._analyser()[0] is not ours


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cuts:
        def signature(self) -> str:
            return "test"

        def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
            return ((Morpheme(0, 1, "NNG", word[0]), Morpheme(1, len(word), "JKB", word[1:])) for word in words)

    monkeypatch.setattr(runtime, "CACHED_WORDS", 4)
    cutter = Cutter(segmenter=Cuts())
    for i in range(9):
        assert cutter.cuts(f" 집에{'서' * (i + 1)}") == [2]
    assert len(cutter._found) <= 4


def test_a_run_of_words_is_cut_inside_each() -> None:
    assert Cutter().cuts(" 학교에서 집에서") == [3, 7]
