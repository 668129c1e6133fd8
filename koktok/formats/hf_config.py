"""tokenizer_config.json and its neighbours: roles, sides, the longest input, the chat template.

Two versions at once. transformers 4.57 and 5 read the same files and write different ones; what stands
here is what both read. `PreTrainedTokenizerFast` without a `backend` key, because 5 writes `TokenizersBackend`, which
4.57 cannot load; `additional_special_tokens`, because 4.57 takes a list called `extra_special_tokens` for a mapping and
fails; the chat template in the file that both prefer *and* under the key that older readers know.
"""

from __future__ import annotations

import json
from typing import Any

from koktok.formats.hf import added_tokens
from koktok.special import ROLES, Style, style_for
from koktok.vocab import Vocab


def config_files(vocab: Vocab, style: Style) -> dict[str, str]:
    """All files beside tokenizer.json, by name; the same bytes for the same vocabulary and style.

    Examples
    --------
    >>> vocab = Vocab.bpe("가", [], specials=("<s>", "</s>"))
    >>> sorted(config_files(vocab, style_for("plain", vocab.specials, chat="chatml")))
    ['chat_template.jinja', 'generation_config.json', 'special_tokens_map.json', 'tokenizer_config.json']
    """
    files = {
        "tokenizer_config.json": config_json(vocab, style),
        "special_tokens_map.json": special_tokens_json(vocab, style),
    }
    if style.chat_template:
        files["chat_template.jinja"] = style.chat_template
        files["generation_config.json"] = generation_json(vocab, style)
    return files


def config_json(vocab: Vocab, style: Style | None = None) -> str:
    """tokenizer_config.json."""
    style = style or style_for("plain", vocab.specials)
    content: dict[str, Any] = {
        "added_tokens_decoder": {str(i): token for i, token in added_tokens(vocab, style).items()},
        **_roles(style),
        **({"chat_template": style.chat_template} if style.chat_template else {}),
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if style.token_types else []), "attention_mask"],
        "model_max_length": style.model_max_length,
        "padding_side": style.padding_side,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "truncation_side": style.truncation_side,
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def generation_json(vocab: Vocab, style: Style) -> str:
    """generation_config.json of a chat folder: `generate` stops at the end of a turn, and at the end of a text.

    Examples
    --------
    >>> specials = ("<|endoftext|>", "<|padding|>", "<|im_start|>", "<|im_end|>")
    >>> vocab = Vocab.bpe("가", [], specials=specials)
    >>> json.loads(generation_json(vocab, style_for("gpt", specials, chat="chatml")))["eos_token_id"]
    [260, 257]
    """
    ids = vocab.special_ids
    # The end of a turn, and what the same tokens would have as their end without a chat.
    ends = [style.roles.get("eos_token"), next((token for token in ROLES["eos_token"] if token in ids), None)]
    content = {
        "bos_token_id": ids.get(style.roles.get("bos_token", "")),
        "eos_token_id": [ids[token] for token in dict.fromkeys(ends) if token in ids],
        "pad_token_id": ids.get(style.roles.get("pad_token", "")),
    }
    return json.dumps({key: value for key, value in content.items() if value not in (None, [])}, indent=2) + "\n"


def special_tokens_json(vocab: Vocab, style: Style | None = None) -> str:
    """special_tokens_map.json: the roles, for transformers 4."""
    return json.dumps(_roles(style or style_for("plain", vocab.specials)), ensure_ascii=False, indent=2) + "\n"


def _roles(style: Style) -> dict[str, Any]:
    """The role of each token; those without one are "additional", but for slots that nobody uses yet."""
    used = set(style.roles.values())
    more = [token for token in style.specials if token not in used and not token.startswith("<|reserved_")]
    return {**style.roles, **({"additional_special_tokens": more} if more else {})}
