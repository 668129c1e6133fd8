"""Styles: special tokens, roles and templates, the same in koktok and in transformers, before and after a training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from conftest import MODELS
from hypothesis import given
from strategies import korean_text

from koktok import Recipe, Tokenizer, load
from koktok.errors import RecipeError
from koktok.model.special import (
    CHAT_TEMPLATES,
    NO_LIMIT,
    ROLES,
    STYLES,
    TEMPLATES,
    end_of_document,
    style_for,
    tokens_of,
)
from koktok.model.vocab import UNKNOWN, Vocab, VocabKind
from koktok.runtimes.folder import files_of
from koktok.runtimes.gguf import table_of
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.restyle import chat_template_of, restyle

KINDS = ("unigram", "bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes", "word")
CHATS = {"gpt": "chatml", "llama": "llama-3"}


STYLED = [
    *(("unigram", style) for style in STYLES),
    *((kind, "bert") for kind in KINDS[1:]),
    ("bpe-bytes", "gpt"),
    ("word", "t5"),
]
"""Every style, every kind, and sentinels at the end of another one."""


@pytest.fixture(scope="module", params=STYLED, ids="-".join)
def styled(
    request: pytest.FixtureRequest, trained: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, Path]:
    """A tokenizer of every kind that was restyled after its training, and its folder."""
    kind, style = request.param
    tokenizer = restyle(load(trained(**MODELS[kind])), style, chat_template=CHATS.get(style), pad_to_multiple=64)
    return tokenizer, tokenizer.save(tmp_path_factory.mktemp("styled") / "tokenizer")


@pytest.fixture(scope="module")
def auto(styled: tuple[Tokenizer, Path]) -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(str(styled[1]))


# --- the tables ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("model", [*get_args(VocabKind), "unigram-em"])
def test_every_style_has_the_tokens_of_its_template_and_its_model(style: Any, model: Any) -> None:
    for chat in ("", *CHAT_TEMPLATES):
        tokens = tokens_of(style, model, chat)
        assert len(set(tokens)) == len(tokens)
        found = style_for(style, tokens, chat=chat)
        found.around(), found.around(pair=True)
        assert "pad_token" in found.roles
        assert "eos_token" in found.roles or "sep_token" in found.roles
        if model in ("wordpiece", "wordpiece-bytes", "word", "unigram", "bpe"):
            assert set(tokens) & set(UNKNOWN)


@pytest.mark.parametrize(
    ("settings", "turn", "end"),
    [
        ({"style": "llama", "chat_template": "llama-3"}, "<|eot_id|>", "<|end_of_text|>"),
        ({"style": "gpt", "chat_template": "chatml"}, "<|im_end|>", "<|endoftext|>"),
        ({"specials": ["<|endoftext|>"], "chat_template": "chatml"}, "<|im_end|>", "<|endoftext|>"),
        ({"specials": ["</s>"], "style": "gpt", "chat_template": "chatml"}, "<|im_end|>", "<|endoftext|>"),
        ({"specials": ["eos=<|im_end|>", "<|endoftext|>"]}, "<|im_end|>", "<|endoftext|>"),
        ({"specials": ["<stop>", "</s>"], "chat_template": "chatml", "eos": "<stop>"}, "<|im_end|>", "<stop>"),
        ({"specials": ["<pad>"], "chat_template": "chatml"}, "<|im_end|>", "<|im_end|>"),
        ({"specials": ["</s>", "eos=<stop>"]}, "<stop>", "<stop>"),
        ({}, "</s>", "</s>"),
        ({"specials": ["<pad>"]}, None, ""),
    ],
)
def test_the_end_of_a_document_is_no_end_of_a_turn(settings: Any, turn: str | None, end: str, tmp_path: Path) -> None:
    """In encode, templates, SentencePiece, GGUF and the folder; transformers gets the end of a turn."""
    recipe = Recipe().changed(model="bpe", **settings)
    recipe = (
        recipe.changed(specials=["<unk>", *recipe.train.specials]) if "<unk>" not in recipe.train.specials else recipe
    )
    made = TrainedTokenizer(recipe, Vocab.bpe(" 가나", [" 가"], specials=recipe.special_tokens))
    kept = load(made.save(tmp_path / "kept"))
    for one in (made, kept):
        assert (one.roles.get("eos_token"), one.end_of_document) == (turn, end)
        assert one.edge("eos", token=bool(end)) == [end] * bool(end)
    assert made.digest() == kept.digest()
    if end:
        ended = restyle(made, template="eos")
        assert ended.encode("가", add_special_tokens=True).ids[-1] == made.vocab.special_ids[end]
        assert ended.definition.role_ids["eos"] == made.vocab.special_ids[end]
        table = table_of(ended.definition)
        assert (table.roles["eos"], table.add_eos) == (made.vocab.special_ids[end], True)


@pytest.mark.parametrize("folder", [{"eos_token": "<|im_end|>"}, {"eos_token": "<|endoftext|>"}])
def test_the_end_of_a_document_of_an_imported_tokenizer(folder: dict[str, str]) -> None:
    assert end_of_document(folder, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]) == "<|endoftext|>"


def test_roles_are_named() -> None:
    """A name is kept through a change of other settings, and goes with its token."""
    specials = ("<|endoftext|>", "<|im_start|>", "pad=<|blank|>", "mask=<|blank|>", "<a=b>")
    recipe = Recipe().changed(model="bpe-bytes", specials=specials)
    assert recipe.train.specials == ("<|endoftext|>", "<|im_start|>", "<|blank|>", "<a=b>")
    assert recipe.special.roles == {"pad": "<|blank|>", "mask": "<|blank|>"}
    assert Recipe.from_toml(recipe.to_toml()) == recipe == recipe.changed(vocab_size=32_000)
    style = recipe.style_for(recipe.special_tokens)
    assert style.roles == {"eos_token": "<|endoftext|>", "pad_token": "<|blank|>", "mask_token": "<|blank|>"}
    assert recipe.changed(specials=("<s>", "</s>")).special.roles == {}
    assert Recipe().changed(specials=("<|endoftext|>", "<|pad|>")).style_for(("<|pad|>",)).roles == {
        "pad_token": "<|pad|>"
    }
    for wrong in ({"roles": {"pad": "<none>"}}, {"eos": "<none>"}):
        with pytest.raises(
            RecipeError, match=r"`<none>` has a role, and is no special token; there are <pad>.*\nhint: specials="
        ):
            Recipe().changed(**wrong)


@pytest.mark.parametrize(
    ("style", "single", "pair", "kinds"),
    [
        ("plain", "A", "A B", [0, 1]),
        ("bert", "[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]", [0, 0, 0, 1, 1]),
        ("roberta", "<s> A </s>", "<s> A </s> </s> B </s>", [0, 0, 0, 0, 0, 0]),
        ("gpt", "A", "A B", [0, 1]),
        ("llama", "<|begin_of_text|> A", "<|begin_of_text|> A <|begin_of_text|> B", [0, 0, 1, 1]),
        ("t5", "A </s>", "A </s> B </s>", [0, 0, 0, 0]),
    ],
)
def test_templates(style: Any, single: str, pair: str, kinds: list[int]) -> None:
    found = style_for(style)
    assert " ".join(token for token, _ in found.around()) == single
    assert " ".join(token for token, _ in found.around(pair=True)) == pair
    assert [kind for _, kind in found.around(pair=True)] == kinds


def test_every_template_of_a_style_is_known() -> None:
    assert set(TEMPLATES) >= {style.template for style in STYLES.values()}


# --- the recipe ---------------------------------------------------------------------------------------------------


def test_the_recipe_shows_the_special_tokens_that_there_are() -> None:
    recipe = Recipe().changed(special={"style": "bert"})
    assert recipe.special_tokens == recipe.train.specials == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    chat = recipe.changed(special={"style": "gpt", "chat_template": "chatml"}, train={"model": "bpe-bytes"})
    assert chat.special_tokens == ("<|endoftext|>", "<|padding|>", "<|im_start|>", "<|im_end|>")
    assert chat.changed(special={"style": "plain", "chat_template": ""}, train={"model": "unigram"}) == Recipe()


def test_tokens_of_the_user_stay_and_sentinels_are_last() -> None:
    recipe = Recipe().changed(special={"style": "llama"}, train={"specials": ("<tool>",), "reserved": 2})
    assert recipe.train.specials == (*tokens_of("llama"), "<tool>")
    t5 = recipe.changed(special={"style": "t5"})
    assert t5.special_tokens[:6] == ("<pad>", "</s>", "<unk>", "<tool>", "<|reserved_0|>", "<|reserved_1|>")
    assert t5.special_tokens[-1] == "<extra_id_0>"
    mine = Recipe().changed(special={"chat_template": "chatml"}, train={"specials": ("<unk>", "<x>")})
    assert mine.train.specials == ("<unk>", "<x>", "<|im_start|>", "<|im_end|>")


def test_a_chat_template_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ messages[0]['content'] }}", encoding="utf-8")
    assert chat_template_of(str(tmp_path / "mine.jinja")) == "{{ messages[0]['content'] }}"
    assert chat_template_of("llama-3") == "llama-3"


# --- restyling ----------------------------------------------------------------------------------------------------


@given(text=korean_text())
def test_pieces_do_not_depend_on_the_style(text: str) -> None:
    plain = TrainedTokenizer(Recipe(), Vocab.bpe("가나다 ", ["가나"], specials=Recipe().special_tokens))
    for style in STYLES:
        other = restyle(plain, style)
        assert other.encode(text).ids == plain.encode(text).ids
        before, after = other.style.frame
        framed = other.encode(text, add_special_tokens=True)
        assert framed.pieces == [*before, *other.encode(text).pieces, *after]
        assert framed.offsets[: len(before)] == [(0, 0)] * len(before)
        assert other.decode(framed.ids, skip_special_tokens=True) == plain.normalize(text)


def test_a_style_chosen_before_or_after_the_training_is_the_same(trained: Callable[..., Path]) -> None:
    special = {"style": "bert", "pad_to_multiple": 64}
    before = load(trained(special=special))
    after = restyle(load(trained()), **special)
    assert before.recipe == after.recipe
    assert before.vocab == after.vocab
    assert before.vocab.size % 64 == 0
    one, two = (files_of(made.recipe, made.vocab, made.signature) for made in (before, after))
    assert one | {"koktok.toml": ""} == two | {"koktok.toml": ""}


def test_restyle_keeps_other_options_and_drops_the_old_style() -> None:
    plain = TrainedTokenizer(Recipe(), Vocab.bpe("가", [], specials=Recipe().special_tokens))
    bert = restyle(plain, "bert", model_max_length=128, truncation_side="left")
    again = restyle(bert, chat_template="chatml")
    assert (again.style.model_max_length, again.style.truncation_side) == (128, "left")
    assert again.vocab.specials == (*bert.vocab.specials, "<|im_start|>", "<|im_end|>")
    llama = restyle(again, "llama", chat_template="")
    assert (llama.style.model_max_length, llama.style.padding_side, llama.style.chat_template) == (NO_LIMIT, "left", "")
    assert llama.vocab.specials == tokens_of("llama", "unigram")
    assert restyle(llama, "plain").vocab == plain.vocab


# --- transformers -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
class TestTransformers:
    """Every kind in every style, in `AutoTokenizer` without code of ours; 4.57 is tested by test_transformers4.py."""

    def test_the_same_ids_with_and_without_specials(self, styled: Any, auto: Any, mini: list[str]) -> None:
        ours, _ = styled
        names = ours.vocab.specials
        texts = [*mini[::60], "", "  두 칸  ", f"나는   {names[4 % len(names)]} 간다", f"{names[0]}가\t{names[-1]}"]
        texts += [f"나는 \x1c\u3000 {token} 간다" for token in ours.style.roles.values()]
        for text in texts:
            got = auto(text, return_offsets_mapping=True)
            wanted = ours.encode(text, add_special_tokens=True, allowed_special="all")
            assert got["input_ids"] == wanted.ids
            if ours.vocab.kind in ("unigram", "bpe"):  # of bytes and unknown words, Hugging Face's spans are wider
                spans = zip(wanted.ids, got["offset_mapping"], wanted.offsets, strict=True)
                assert all(theirs == mine for i, theirs, mine in spans if i >= ours.vocab.n_bytes and theirs[1])
            assert auto(text, add_special_tokens=False)["input_ids"] == ours.encode(text, allowed_special="all").ids
            plain = auto(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
            assert plain == ours.encode(text).ids

    def test_roles_sides_and_sizes(self, styled: Any, auto: Any) -> None:
        ours, style = styled[0], styled[0].style
        assert len(auto) == ours.vocab.size == max(auto.get_vocab().values()) + 1
        assert ours.vocab.size % 64 == 0
        assert {role: getattr(auto, role) for role in ROLES if getattr(auto, role)} == dict(style.roles)
        assert auto.convert_tokens_to_ids(list(ours.vocab.tokens)) == list(range(ours.vocab.size))
        assert (auto.padding_side, auto.truncation_side) == (style.padding_side, style.truncation_side)
        assert auto.model_max_length == style.model_max_length
        assert auto.clean_up_tokenization_spaces is False
        assert set(auto.all_special_tokens) == {t for t in ours.vocab.specials if "reserved_" not in t}

    def test_pairs_padding_and_masks(self, styled: Any, auto: Any) -> None:
        style = styled[0].style
        got = auto("가 나", "다", return_token_type_ids=True, return_special_tokens_mask=True)
        lengths = {"A": len(auto.tokenize("가 나")), "B": len(auto.tokenize("다"))}
        parts = [(name in "AB", kind, lengths.get(name, 1)) for name, kind in style.around(pair=True)]
        assert got["token_type_ids"] == [kind for _, kind, n in parts for _ in range(n)]
        assert got["special_tokens_mask"] == [int(not text) for text, _, n in parts for _ in range(n)]
        assert ("token_type_ids" in auto("가")) is style.token_types
        batch = auto(["가 나 다 라", "가"], padding=True, return_tensors="np")
        where = 0 if style.padding_side == "left" else -1
        assert batch["input_ids"][1][where] == auto.pad_token_id
        assert batch["attention_mask"][1][where] == 0

    def test_saved_again_it_is_the_same_file(self, styled: Any, auto: Any, tmp_path: Path) -> None:
        # Loaded anew: truncation and padding of the last call are part of what the library saves.
        auto = type(auto).from_pretrained(str(styled[1]))
        auto.save_pretrained(str(tmp_path))
        assert (tmp_path / "tokenizer.json").read_bytes() == (styled[1] / "tokenizer.json").read_bytes()
        again = type(auto).from_pretrained(str(tmp_path))
        assert again("가 나", "다") == auto("가 나", "다")
        assert again.chat_template == auto.chat_template

    def test_chat(self, styled: Any, auto: Any) -> None:
        ours = styled[0]
        if not ours.style.chat_template:
            assert auto.chat_template is None
            return
        talk = [{"role": "user", "content": "안녕"}, {"role": "assistant", "content": "반가워"}]
        text = auto.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        spaced = [{**turn, "content": f"\n {turn['content']}\n"} for turn in talk]
        assert auto.apply_chat_template(spaced, tokenize=False, add_generation_prompt=True) == text
        wanted = {
            "chatml": "<|im_start|>user\n안녕<|im_end|>\n<|im_start|>assistant\n반가워<|im_end|>\n<|im_start|>assistant\n",
            "llama-3": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n안녕<|eot_id|><|start_header_id|>"
            "assistant<|end_header_id|>\n\n반가워<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        }
        assert text == wanted[ours.recipe.special.chat_template]
        ids = auto.apply_chat_template(talk, add_generation_prompt=True, return_dict=True)["input_ids"]
        assert ids == ours.encode(text, allowed_special="all").ids
        # The mask of the assistant's text includes the end of its turn, and no other special token.
        masked = auto.apply_chat_template(talk, return_dict=True, return_assistant_tokens_mask=True)
        assistant = [i for i, mine in zip(masked["input_ids"], masked["assistant_masks"], strict=True) if mine]
        end = CHAT_TEMPLATES[ours.recipe.special.chat_template][0][-1]
        turn = ours.encode(f"{end}반가워{end}", allowed_special="all").ids  # not the first word of the text
        assert assistant == turn[1:]
        assert auto.eos_token == end
        generation = json.loads((styled[1] / "generation_config.json").read_text(encoding="utf-8"))
        assert generation["eos_token_id"][0] == auto.eos_token_id == assistant[-1]
        assert len(generation["eos_token_id"]) == 2, "the end of the text ends a generation as well"
        assert generation["pad_token_id"] == auto.pad_token_id
        config = json.loads((styled[1] / "tokenizer_config.json").read_text(encoding="utf-8"))
        assert config["chat_template"] == (styled[1] / "chat_template.jinja").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore")
def test_a_config_of_a_model_does_not_change_ids(trained: Callable[..., Path], tmp_path: Path) -> None:
    """transformers 5 maps a config.json's model type to a tokenizer class, some of which rebuild tokenizer.json."""
    import transformers

    tokenizer = restyle(load(trained()), "bert")
    folder, text = tokenizer.save(tmp_path / "tokenizer"), "  나는 (어제) 2번 갔다가▁ 왔다"
    for model in ("bert", "electra", "roberta", "gpt2", "gpt_neox", "llama", "t5", "modernbert", "gemma3", "exaone4"):
        (folder / "config.json").write_text(json.dumps({"model_type": model}), encoding="utf-8")
        auto = transformers.AutoTokenizer.from_pretrained(str(folder))
        assert auto(text)["input_ids"] == tokenizer.encode(text, add_special_tokens=True).ids, model


@pytest.mark.filterwarnings("ignore")
def test_what_train_new_from_iterator_loses(trained: Callable[..., Path], mini: list[str]) -> None:
    """As the docstring of koktok/runtimes/huggingface/tokenizer_json.py describes it."""
    import transformers

    found = {}
    for kind in ("unigram", "bpe", "bpe-bytes"):
        auto = transformers.AutoTokenizer.from_pretrained(str(trained(**MODELS[kind])))
        other = auto.train_new_from_iterator(mini, vocab_size=2300, show_progress=False)
        found[kind] = other.decode(other("가😀나")["input_ids"])
        before, after = (json.loads(one.backend_tokenizer.to_str()) for one in (auto, other))
        assert all(before[key] == after[key] for key in ("normalizer", "pre_tokenizer", "decoder"))
    assert found == {"unigram": "가\ufffd나", "bpe": "가나", "bpe-bytes": "가😀나"}


@pytest.mark.parametrize("name", list(CHAT_TEMPLATES))
@pytest.mark.parametrize(
    ("message", "more"),
    [
        ({"role": "user", "content": "가"}, {"tools": [{"type": "function"}]}),
        ({"role": "assistant", "tool_calls": [{"type": "function"}]}, {}),
        ({"role": "assistant", "content": "가", "tool_calls": [{"type": "function"}]}, {}),
        ({"role": "assistant", "content": None}, {}),
    ],
)
def test_a_chat_template_loses_nothing_in_silence(name: str, message: dict[str, Any], more: dict[str, Any]) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    with pytest.raises(Exception, match=r"no place for tools|expected the content"):
        render_jinja_template([[message]], chat_template=CHAT_TEMPLATES[name][1], bos_token="<s>", **more)
