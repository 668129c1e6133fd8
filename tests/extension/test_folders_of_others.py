"""The law of folders of others: `AutoTokenizer` gives a base and what koktok makes of it the same ids, for every class and version.

The folders are as publishers write them: a SentencePiece model, vocab.json with merges.txt, vocab.txt or tokenizer.json, and the class
that reads it. The same tests run with transformers 4.57 in an environment of its own, which is the one of the last test.
"""

from __future__ import annotations

import io
import json
import re
import site
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tokenizers
from conftest import ROOT, works
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from tiny_bases import ENGLISH, LINES, byte_level
from tokenizers import models, pre_tokenizers, processors, trainers

import koktok
from koktok.errors import ArtifactError, MissingExtraError
from koktok.extension.embeddings import apply_extension
from koktok.extension.extend import extend
from koktok.extension.prune import prune, read_pruned
from koktok.runtimes.huggingface.auto_tokenizer import auto_tokenizer
from koktok.runtimes.huggingface.config_files import ROLES
from koktok.runtimes.huggingface.runtime import files_for_transformers
from koktok.verification import verify

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers opens files and warns as it likes

FIVE = int(version("transformers").split(".")[0]) >= 5


@cache
def spm(kind: str, *specials: str, unknown: str = "<unk>", prefix: bool = True) -> bytes:
    import sentencepiece

    written = io.BytesIO()
    at = {"bos_id": -1, "eos_id": -1, "pad_id": -1, "unk_id": specials.index(unknown), "unk_piece": unknown}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*ENGLISH[:1] * 300, *LINES[:30]]),
        model_writer=written,
        model_type=kind,
        vocab_size=620 if kind == "bpe" else 420,
        byte_fallback=kind == "bpe",
        character_coverage=0.98,
        hard_vocab_limit=False,
        control_symbols=[token for token in specials if token != unknown],
        normalization_rule_name="identity" if kind == "bpe" else "nmt_nfkc",
        remove_extra_whitespaces=kind != "bpe",
        add_dummy_prefix=prefix,
        minloglevel=2,
        **at,
    )
    return written.getvalue()


def gpt2_files(*specials: str) -> dict[str, Any]:
    """vocab.json and merges.txt."""
    model = json.loads(byte_level(specials=()).to_str())["model"]
    vocab = {**dict.fromkeys(specials, 0), **model["vocab"]}
    merges = "\n".join(["#version: 0.2", *(" ".join(pair) for pair in model["merges"])])
    return {"vocab.json": {token: i for i, token in enumerate(vocab)}, "merges.txt": merges + "\n"}


def fast(*specials: str, begin: str = "", **content: Any) -> dict[str, Any]:
    """tokenizer.json."""
    made = byte_level(specials=specials or ("<|end|>",))
    if begin:
        made.post_processor = processors.TemplateProcessing(f"{begin} $A", None, [(begin, made.token_to_id(begin))])
    return {"tokenizer.json": json.loads(made.to_str()) | content}


def wordpiece() -> dict[str, Any]:
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        [*ENGLISH * 5, *LINES[:60]],
        trainers.WordPieceTrainer(vocab_size=500, special_tokens=specials, show_progress=False),
    )
    rows = made.get_vocab()
    return {"vocab.txt": "\n".join(sorted(rows, key=rows.__getitem__)) + "\n"}


LLAMA = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "tokenizer_class": "LlamaTokenizer"}
LLAMA_BPE = ("<unk>", "<s>", "</s>")
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
TEMPLATES = {
    "chat_template.jinja": "{{ messages[0].content }}",
    "additional_chat_templates/tool_use.jinja": "{{ tools }}",
}


class Folder(NamedTuple):
    """The files of a folder, what tokenizer_config.json says, and the type of the model in config.json."""

    files: Callable[[], Mapping[str, Any]]
    config: Mapping[str, Any] | None
    model: str = ""


def model(name: str, kind: str, *specials: str, **how: Any) -> Callable[[], Mapping[str, Any]]:
    return lambda: {name: spm(kind, *specials, **how)}


FOLDERS: dict[str, Folder] = {
    "Llama, legacy=false": Folder(
        model("tokenizer.model", "bpe", *LLAMA_BPE),
        LLAMA | {"add_bos_token": True, "add_eos_token": False, "legacy": False},
    ),
    "Llama, legacy=true": Folder(
        model("tokenizer.model", "bpe", *LLAMA_BPE), LLAMA | {"legacy": True, "pad_token": "[PAD]"}
    ),
    "Llama, no legacy, eos": Folder(
        model("tokenizer.model", "bpe", *LLAMA_BPE), LLAMA | {"add_bos_token": True, "add_eos_token": True}, "llama"
    ),
    "Llama, config.json alone": Folder(model("tokenizer.model", "bpe", *LLAMA_BPE), None, "llama"),
    "Gemma": Folder(
        model("tokenizer.model", "bpe", "<pad>", "<eos>", "<bos>", "<unk>", "<mask>", prefix=False),
        {"tokenizer_class": "GemmaTokenizer", "additional_special_tokens": ["<start_of_turn>", "<end_of_turn>"]},
        "gemma",
    ),
    "T5": Folder(
        model("spiece.model", "unigram", "<pad>", "</s>", "<unk>"),
        {"tokenizer_class": "T5Tokenizer", "extra_ids": 4},
        "t5",
    ),
    "XLM-R": Folder(
        model("sentencepiece.bpe.model", "unigram", "<unk>", "<s>", "</s>"), {"tokenizer_class": "XLMRobertaTokenizer"}
    ),
    "CamemBERT": Folder(
        model("sentencepiece.bpe.model", "unigram", "<unk>", "<s>", "</s>"), {"tokenizer_class": "CamembertTokenizer"}
    ),
    "mBART": Folder(
        model("sentencepiece.bpe.model", "unigram", "<unk>", "<s>", "</s>"), {"tokenizer_class": "MBartTokenizer"}
    ),
    "ALBERT": Folder(
        model("spiece.model", "unigram", "<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
        {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True},
    ),
    "DeBERTa": Folder(
        model("spm.model", "unigram", "[PAD]", "[CLS]", "[SEP]", "[UNK]", unknown="[UNK]"),
        {"tokenizer_class": "DebertaV2Tokenizer"},
    ),
    "RoBERTa": Folder(
        lambda: gpt2_files("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
        {"tokenizer_class": "RobertaTokenizer"},
        "roberta",
    ),
    "OPT": Folder(
        lambda: gpt2_files("<s>", "<pad>", "</s>", "<unk>"),
        {
            "tokenizer_class": "GPT2Tokenizer",
            "add_bos_token": True,
            **dict.fromkeys(("bos_token", "eos_token", "unk_token"), "</s>"),
        },
    ),
    "GPT-2": Folder(lambda: gpt2_files("<|endoftext|>"), {"tokenizer_class": "GPT2Tokenizer"}),
    "GPT-2, some tokens listed": Folder(
        lambda: gpt2_files("<|endoftext|>"),
        {
            "tokenizer_class": "GPT2Tokenizer",
            "added_tokens_decoder": {"0": {"content": "<|endoftext|>", "special": True}},
            "pad_token": "</s>",
        },
    ),
    "Qwen2": Folder(
        lambda: gpt2_files("<|endoftext|>"),
        {"tokenizer_class": "Qwen2Tokenizer", "additional_special_tokens": ["<|im_end|>"]},
    ),
    "Qwen2 with its model": Folder(lambda: fast("<|endoftext|>"), {"tokenizer_class": "Qwen2TokenizerFast"}, "qwen2"),
    "BERT": Folder(wordpiece, {"tokenizer_class": "BertTokenizer", "do_lower_case": True}),
    "ELECTRA": Folder(wordpiece, {"tokenizer_class": "ElectraTokenizer", "do_lower_case": False}),
    "DistilBERT": Folder(wordpiece, None, "distilbert"),
    "tokenizer.json": Folder(
        lambda: fast(padding=None) | TEMPLATES,
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|end|>",
            "pad_token": {"content": "[PAD]", "lstrip": True, "__type": "AddedToken"},
            "model_max_length": 512,
            "padding_side": "left",
            "truncation_side": "left",
            "clean_up_tokenization_spaces": True,
            "model_input_names": ["input_ids"],
        },
    ),
    "GPT-NeoX": Folder(lambda: fast("<|endoftext|>"), {"tokenizer_class": "GPTNeoXTokenizer"}, "gpt_neox"),
    "GPT-2 with tokenizer.json": Folder(
        lambda: fast("<|endoftext|>", post_processor=BYTE_LEVEL, pre_tokenizer=BYTE_LEVEL | {"add_prefix_space": True}),
        {"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": True},
    ),
    "Llama of bytes": Folder(
        lambda: fast("<s>", "</s>", post_processor=BYTE_LEVEL),
        {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True},
    ),
    "Llama 3": Folder(
        lambda: fast("<|begin_of_text|>", "<|eot_id|>", begin="<|begin_of_text|>"),
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        "llama",
    ),
    "tokens in two files": Folder(
        lambda: fast() | {"special_tokens_map.json": {"additional_special_tokens": ["<b>"], "eos_token": "<|end|>"}},
        {"tokenizer_class": "PreTrainedTokenizerFast", "additional_special_tokens": ["<a>"]},
    ),
    "tokens with ids": Folder(
        lambda: (
            fast()
            | {"added_tokens.json": {"<one>": 421, "<two>": 422}, "special_tokens_map.json": {"pad_token": "<two>"}}
        ),
        {"tokenizer_class": "PreTrainedTokenizerFast"},
    ),
    "named tokens": Folder(
        fast, {"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": {"image_token": "<image>"}}
    ),
}
if FIVE:
    FOLDERS |= {
        "named tokens of transformers 5": Folder(
            fast,
            {
                "tokenizer_class": "TokenizersBackend",
                "model_specific_special_tokens": {"boi_token": "<boi>"},
                "extra_special_tokens": [
                    "<e>",
                    {"content": "<f>", "lstrip": True, "special": True, "__type": "AddedToken"},
                ],
            },
        ),
        "in two lists": Folder(
            lambda: fast() | {"special_tokens_map.json": {"extra_special_tokens": ["<b>"]}},
            {"tokenizer_class": "TokenizersBackend", "extra_special_tokens": ["<a>"]},
        ),
    }


def write(folder: Path, case: Folder) -> Path:
    """The folder, with a model of random rows for every id of `AutoTokenizer`."""
    files: dict[str, Any] = dict(case.files())
    if case.config is not None:
        files["tokenizer_config.json"] = case.config
    if case.model:
        files["config.json"] = {"model_type": case.model}
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes | str) else json.dumps(content)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


def with_model(folder: Path) -> Path:
    rows = len(auto_tokenizer(folder))
    config = folder / "config.json"
    content = json.loads(config.read_text()) if config.is_file() else {}
    save_file({"embed_tokens.weight": np.zeros((rows, 2), np.float32)}, folder / "model.safetensors")
    config.write_text(json.dumps({**content, "vocab_size": rows}))
    return folder


def texts(auto: Any) -> list[str]:
    """Texts without Hangul: words, spaces at the start, and special tokens at every place."""
    tokens = [token.content for token in auto.added_tokens_decoder.values()]
    around = [
        text.replace("{}", token) for token in tokens for text in ("{}", "{}hello", "x {} y", " {}  Hello {}x", "a{}{}")
    ]
    return [
        *ENGLISH,
        "Hello",
        " Hello",
        "  two spaces",
        "\n\nlines\n",
        "a 1234 b",
        "e\u0301 Café ﬁ",
        "".join(tokens),
        *around,
    ]


def asked(auto: Any) -> dict[str, Any]:
    """What a tokenizer of transformers is beside its ids."""
    roles = {role: token for role, token in auto.special_tokens_map.items() if isinstance(token, str)}
    settings = ("model_max_length", "padding_side", "truncation_side", "chat_template", "clean_up_tokenization_spaces")
    return {"roles": roles, "specials": {*auto.all_special_tokens}, **{name: getattr(auto, name) for name in settings}}


def same(before: Any, after: Any, lines: Sequence[str], table: Any = None) -> None:
    """The law; with the new ids of a pruned vocabulary where no piece of a text is gone."""
    for added in (False, True):
        for line in lines:
            ids = before(line, add_special_tokens=added)["input_ids"]
            ids = ids if table is None else [int(table[i]) for i in ids]
            assert -1 in ids or after(line, add_special_tokens=added)["input_ids"] == ids, line
            assert -1 in ids or after.decode(ids) == before.decode(before(line, add_special_tokens=added)["input_ids"])
    assert asked(before) == asked(after)


OFTEN = ("Llama, legacy=false", "XLM-R", "RoBERTa", "tokenizer.json", "BERT", "named tokens of transformers 5")
"""A folder of every form of files; all others with `-m slow`."""

EACH = [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in FOLDERS]


@pytest.fixture(params=EACH)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "base", FOLDERS[request.param])


def exported(tokenizer: Any, folder: Path) -> Path:
    """What `koktok export --to hf` writes."""
    folder.mkdir()
    for name, content in files_for_transformers(tokenizer).items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def is_wordpiece(base: Path) -> bool:
    return (base / "vocab.txt").is_file()


def test_extended_and_applied(base: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"segmenter": "whitespace", "cache": False, "add": 8}
    if is_wordpiece(base):
        with pytest.raises(ArtifactError, match="is a WordPiece model"):
            extend(base, LINES[::8], tmp_path / "new", **how)
        return
    before = auto_tokenizer(base)
    new = extend(base, LINES[::8], tmp_path / "new", **how)
    after = auto_tokenizer(new.folder)
    same(before, after, texts(before))
    assert len(after) >= len(before) + 8
    assert verify(new.folder, LINES[:9], exports=[base], strings=50).passed
    apply_extension(new.folder, with_model(base), tmp_path / "model")
    same(auto_tokenizer(base), auto_tokenizer(tmp_path / "model"), texts(before))


def test_pruned(base: Path, tmp_path: Path) -> None:
    if is_wordpiece(base):
        return
    before = auto_tokenizer(base)
    made = prune(base, ["Hello quick brown fox"], tmp_path / "new", drop=5)
    same(before, auto_tokenizer(made.folder), texts(before), read_pruned(made.folder)[1])
    assert verify(made.folder, ["Hello quick"], exports=[base]).passed


def test_imported_and_exported(base: Path, tmp_path: Path) -> None:
    before, imported = auto_tokenizer(base), koktok.load(base)
    lines = [*texts(before), *LINES[:20]]
    imported.save(tmp_path / "kept")
    exported(koktok.load(tmp_path / "kept"), tmp_path / "new")
    for folder in ("kept", "new"):
        same(before, auto_tokenizer(tmp_path / folder), lines)
    for line in lines:
        for added in (False, True):
            ours = imported.encode(line, add_special_tokens=added, allowed_special="all").ids
            assert ours == before(line, add_special_tokens=added)["input_ids"]
    assert {token: i for i, token in enumerate(imported.vocab.tokens) if token} == before.get_vocab()
    assert imported.roles == {role: token for role, token in asked(before)["roles"].items() if role in ROLES}


@settings(max_examples=25)
@given(data=st.data())
def test_any_saying_beside_a_tokenizer_json(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tokens of any file and order, among them pieces and added tokens."""
    tokens = st.sampled_from(["[PAD]", "<s>", "</s>", "<|end|>", "a", "<x>", "<y>"])
    lists = st.lists(tokens, max_size=3, unique=True)
    config = data.draw(st.dictionaries(st.sampled_from(ROLES), st.none() | tokens, max_size=4))
    if data.draw(st.booleans()):
        config["additional_special_tokens"] = data.draw(lists)  # type: ignore[assignment]
    if data.draw(st.booleans()):
        ids = data.draw(st.lists(st.integers(419, 423), max_size=3, unique=True))
        rows = zip(ids, data.draw(lists), strict=False)
        flags = data.draw(st.booleans())
        config["added_tokens_decoder"] = {str(i): {"content": token, "special": flags} for i, token in rows}  # type: ignore[assignment]
    more: dict[str, Any] = {}
    if data.draw(st.booleans()):
        more["special_tokens_map.json"] = data.draw(st.dictionaries(st.sampled_from(ROLES), tokens, max_size=3))
    if data.draw(st.booleans()):
        more["added_tokens.json"] = dict(
            zip(data.draw(lists), data.draw(st.permutations(range(420, 424))), strict=False)
        )
    place = tmp_path_factory.mktemp("any")
    case = Folder(lambda: fast() | more, {"tokenizer_class": "PreTrainedTokenizerFast", **config})
    base = write(place / "base", case)
    before = auto_tokenizer(base)
    same(before, auto_tokenizer(exported(koktok.load(base), place / "new")), texts(before))


def test_code_of_a_folder_is_not_run(tmp_path: Path) -> None:
    case = Folder(fast, {"tokenizer_class": "EvilTokenizer", "auto_map": {"AutoTokenizer": ["evil.Evil", None]}})
    base = write(tmp_path / "base", case)
    (base / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ArtifactError, match=r"does not open .* without code of its own") as refused:
        koktok.load(base)
    assert refused.value.hint == f"koktok import hf:{base}/tokenizer.json --out FOLDER, for the file alone"
    assert koktok.load(f"hf:{base}/tokenizer.json").vocab.size == 421


def test_without_transformers_the_error_has_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write(tmp_path / "base", FOLDERS["tokenizer.json"])
    monkeypatch.setitem(sys.modules, "transformers", None)
    for opened in (base, base / "tokenizer.json"):
        with pytest.raises(MissingExtraError, match=r"pip install 'koktok\[transformers\]'"):
            koktok.load(opened)
    (tmp_path / "tokenizer.json").write_bytes((base / "tokenizer.json").read_bytes())
    assert koktok.load(tmp_path / "tokenizer.json").vocab.size == 421


def test_what_is_not_carried_over_is_named(tmp_path: Path) -> None:
    base = write(tmp_path / "base", FOLDERS["Llama, no legacy, eos"])
    (base / "preprocessor_config.json").write_text("{}")
    done = works("import", base, "-o", tmp_path / "kept")
    assert re.search(r"as LlamaTokenizer(Fast)? of transformers", done.stderr)
    new = extend(base, LINES[::8], tmp_path / "new", segmenter="whitespace", cache=False, add=8)
    for said in (done.stderr, "\n".join(new.notes)):
        assert f"not carried over from `{base}`: config.json, preprocessor_config.json" in said
        assert "because tokenizer.json has their effect: add_bos_token, add_eos_token" in said


@pytest.mark.network
@pytest.mark.skipif(not FIVE, reason="this is that version")
def test_the_same_law_in_version_4(python4: Path) -> None:
    """These tests, in an environment with transformers 4.57 before the packages of this one."""
    packages = subprocess.run(
        [python4, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (Path(packages) / "others.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    words = [python4, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not network", __file__]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-4000:]
