"""Styles: the special tokens of a model family, their roles, and the template around a text.

A style has the special tokens in the spelling of the family, their roles in transformers (`bos_token`, `mask_token`, ...), the
template around a text and a pair of texts, the sides of padding and truncation, and the longest input. Special tokens have the
ids after the pieces, so a trained tokenizer changes its style without a new training.

The families: BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019), GPT-2 with the padding token of GPT-NeoX, Llama 3, T5 with
its sentinels in falling order at the end, as the span-corruption scripts count them. Chat templates: ChatML and Llama 3,
without tools.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from types import MappingProxyType
from typing import Any, Literal, get_args

from koktok.errors import ArtifactError, InputError, RecipeError
from koktok.model.vocab import WITH_UNKNOWN, Vocab

RoleName = Literal["pad", "unk", "bos", "eos", "cls", "sep", "mask"]
StyleName = Literal["plain", "bert", "roberta", "gpt", "llama", "t5"]
TemplateName = Literal["none", "bos", "eos", "bos-eos", "cls-sep", "cls-sep-sep"]
Side = Literal["left", "right"]

DEFAULT_SPECIALS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")

WORDPIECE_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""The default special tokens of WordPiece: the names of BERT."""

NO_LIMIT = int(1e30)
"""The maximum length that transformers writes for a model without one."""

ROLES: Mapping[str, tuple[str, ...]] = {
    "pad_token": ("<pad>", "[PAD]", "<|padding|>", "<|finetune_right_pad_id|>", "<|pad|>", "<|pad_token|>", "<PAD>"),
    "unk_token": ("<unk>", "[UNK]", "<|unk|>", "<UNK>"),
    "bos_token": (
        "<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<|bos|>", "[BOS]", "<BOS>", "<｜begin▁of▁sentence｜>",
    ),
    "eos_token": ("</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eos|>", "[EOS]", "<EOS>", "<｜end▁of▁sentence｜>"),
    "cls_token": ("[CLS]", "<cls>", "<|cls|>", "<CLS>"),
    "sep_token": ("[SEP]", "<sep>", "<|sep|>", "<SEP>"),
    "mask_token": ("<mask>", "[MASK]", "<|mask|>", "<MASK>"),
}  # fmt: skip
"""The usual spellings of the special token of each role, for the style `plain`."""

TEMPLATES: Mapping[TemplateName, tuple[str, str]] = {
    "none": ("A", "A B:1"),
    "bos": ("bos A", "bos A bos:1 B:1"),
    "eos": ("A eos", "A eos B eos"),
    "bos-eos": ("bos A eos", "bos A eos bos:1 B:1 eos:1"),
    "cls-sep": ("cls A sep", "cls A sep B:1 sep:1"),
    "cls-sep-sep": ("cls A sep", "cls A sep sep B sep"),
}
"""The templates of one text and of two; the number after a colon is the `token_type_id`, else 0."""

WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""White space that a special token with `lstrip` removes before it: Unicode's list, as in Rust (Python adds U+001C to U+001F)."""

_NONE: Mapping[str, str] = MappingProxyType({})

_UNKNOWN_IN_SENTENCEPIECE = ("unigram", "unigram-em", "bpe")
# The sentencepiece library requires an unknown token, though texts never get it with byte fallback.


@dataclass(frozen=True)
class Style:
    """The properties of special tokens, without their ids."""

    specials: tuple[str, ...]
    roles: Mapping[str, str]
    template: TemplateName = "none"
    model_max_length: int = NO_LIMIT
    padding_side: Side = "right"
    truncation_side: Side = "right"
    token_types: bool = False
    lstrip: tuple[str, ...] = ()
    trim_offsets: bool = False
    tail: tuple[str, ...] = ()
    chat_template: str = field(default="", repr=False)
    end: str = ""
    """The token after a document: `eos_token`, but where that ends a turn of a chat, the end of a text."""
    named: Mapping[str, str] = field(default_factory=dict)
    """Those of `roles` that a user named."""

    def around(self, *, pair: bool = False) -> list[tuple[str, int]]:
        """The template as (token, type id); the texts are "A" and "B".

        Examples
        --------
        >>> style_for("bert").around()
        [('[CLS]', 0), ('A', 0), ('[SEP]', 0)]
        >>> style_for("bert").around(pair=True)[-2:]
        [('B', 1), ('[SEP]', 1)]
        """
        items = []
        for item in TEMPLATES[self.template][pair].split():
            name, _, kind = item.partition(":")
            if name not in ("A", "B"):
                if f"{name}_token" not in self.roles:
                    raise ArtifactError(
                        f"the template `{self.template}` requires a {name}_token, and no special token has that role",
                        hint=f"train with --specials '{ROLES[f'{name}_token'][0]}', or --template none",
                    )
                name = self.end if name == "eos" else self.roles[f"{name}_token"]
            items.append((name, int(kind or 0)))
        return items

    @property
    def frame(self) -> tuple[list[str], list[str]]:
        """The special tokens before and after one text."""
        tokens = [token for token, _ in self.around()]
        at = tokens.index("A")
        return tokens[:at], tokens[at + 1 :]


def _roles(**tokens: str) -> dict[str, str]:
    return {f"{role}_token": token for role, token in tokens.items()}


STYLES: Mapping[StyleName, Style] = {
    "plain": Style(DEFAULT_SPECIALS, {}),
    "bert": Style(
        WORDPIECE_SPECIALS,
        _roles(pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]"),
        template="cls-sep",
        model_max_length=512,
        token_types=True,
        trim_offsets=True,
    ),
    "roberta": Style(
        ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
        _roles(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>", cls="<s>", sep="</s>", mask="<mask>"),
        template="cls-sep-sep",
        model_max_length=512,
        lstrip=("<mask>",),
        trim_offsets=True,
    ),
    "gpt": Style(
        ("<|endoftext|>", "<|padding|>"),
        # Its own padding token: a collator excludes padding from the loss, and `pad_token = eos_token` would exclude the
        # end of every text, too.
        _roles(bos="<|endoftext|>", eos="<|endoftext|>", unk="<|endoftext|>", pad="<|padding|>"),
        model_max_length=1024,
    ),
    "llama": Style(
        ("<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>"),
        _roles(bos="<|begin_of_text|>", eos="<|end_of_text|>", pad="<|finetune_right_pad_id|>"),
        template="bos",
        padding_side="left",
    ),
    "t5": Style(
        ("<pad>", "</s>", "<unk>"),
        _roles(pad="<pad>", eos="</s>", unk="<unk>"),
        template="eos",
        model_max_length=512,
        tail=tuple(f"<extra_id_{i}>" for i in reversed(range(100))),
    ),
}

CHAT_TEMPLATES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "chatml": (
        ("<|im_start|>", "<|im_end|>"),
        "{%- if tools %}{{- raise_exception('this chat template has no place for tools') }}{%- endif %}"
        "{%- for message in messages %}"
        "{%- if message['tool_calls'] or message['content'] is not string %}"
        "{{- raise_exception('expected the content of a message as text, and no tool_calls') }}{%- endif %}"
        "{{- '<|im_start|>' + message['role'] + '\\n' }}"
        "{%- if message['role'] == 'assistant' %}"
        "{%- generation %}{{- message['content'] | trim + '<|im_end|>' }}{%- endgeneration %}"
        "{%- else %}{{- message['content'] | trim + '<|im_end|>' }}{%- endif %}"
        "{{- '\\n' }}"
        "{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}",
    ),
    "llama-3": (
        ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        "{{- bos_token }}"
        "{%- if tools %}{{- raise_exception('this chat template has no place for tools') }}{%- endif %}"
        "{%- for message in messages %}"
        "{%- if message['tool_calls'] or message['content'] is not string %}"
        "{{- raise_exception('expected the content of a message as text, and no tool_calls') }}{%- endif %}"
        "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
        "{%- if message['role'] == 'assistant' %}"
        "{%- generation %}{{- message['content'] | trim + '<|eot_id|>' }}{%- endgeneration %}"
        "{%- else %}{{- message['content'] | trim + '<|eot_id|>' }}{%- endif %}"
        "{%- endfor %}"
        "{%- if add_generation_prompt %}"
        "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
        "{%- endif %}",
    ),
}
"""Chat templates by name: their special tokens, the last of which ends a turn, and the Jinja source.

White space around a message is left out: a line feed at its beginning would be one token with that of the template.

The text of the assistant with the end of its turn is inside `generation`, so that
`apply_chat_template(return_assistant_tokens_mask=True)` of transformers marks the tokens of the loss.
"""


TURN_ENDS = (
    *(tokens[-1] for tokens, _ in CHAT_TEMPLATES.values()),
    "<end_of_turn>", "<turn|>", "[|endofturn|]", "<|endofturn|>", "<|end_of_turn|>", "<|eot|>", "<|end|>", "<|return|>",
)  # fmt: skip
"""Tokens that end a turn of a chat and not a text; models for chats have one of them as their `eos_token`."""


def end_of_document(roles: Mapping[str, str], tokens: Collection[str], own: str = "") -> str:
    """The special token after a document: `own` or a usual end of text, where `eos_token` ends a turn; '' if there is none.

    Examples
    --------
    >>> end_of_document({"eos_token": "<|eot_id|>"}, ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    '<|end_of_text|>'
    """
    eos = roles.get("eos_token", "")
    if eos not in TURN_ENDS:
        return eos
    return next((token for token in (own, *ROLES["eos_token"]) if token in tokens), eos)


def named_roles(specials: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The special tokens, and the roles of those that are written ROLE=TOKEN.

    Examples
    --------
    >>> named_roles(["</s>", "pad=<|blank|>", "<a=b>"])
    (('</s>', '<|blank|>', '<a=b>'), {'pad': '<|blank|>'})
    """
    listed = list(specials)
    parts = {item: item.partition("=") for item in listed}
    named = {item: part for item, part in parts.items() if part[0] in get_args(RoleName) and part[2]}
    tokens = [named[item][2] if item in named else item for item in listed]
    again = [
        item in named and tokens.index(token) < i for i, (item, token) in enumerate(zip(listed, tokens, strict=True))
    ]
    kept = tuple(token for token, twice in zip(tokens, again, strict=True) if not twice)
    return kept, {role: token for role, _, token in named.values()}


def cut_at(
    text: str, allowed: Collection[str] | Literal["all"], known: Collection[str], lstrip: Collection[str] = ()
) -> list[tuple[int, int, str]]:
    """Split a text at the allowed special tokens, before normalization, the longest match first as in Hugging Face.

    Examples
    --------
    >>> cut_at("가 <s>나", ["<s>"], ["<s>", "</s>"])
    [(0, 2, ''), (2, 5, '<s>'), (5, 6, '')]
    """
    whole = isinstance(allowed, str) and allowed == "all"
    names = list(known) if whole else special_tokens(allowed, known, "allowed_special")
    if not names:
        return [(0, len(text), "")]
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    parts, end = [], 0
    for match in pattern.finditer(text):
        before = text[end : match.start()]
        start = end + len(before.rstrip(WHITE_SPACE) if match[0] in lstrip else before)
        if start > end:
            parts.append((end, start, ""))
        parts.append((start, match.end(), match[0]))
        end = match.end()
    if end < len(text):
        parts.append((end, len(text), ""))
    return parts


def special_tokens(value: Any, known: Collection[str], option: str) -> list[str]:
    """The value of an option as a list of special tokens."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        names = list(value)
    except TypeError:
        example = f"[{value!r}]".replace("'", '"') if isinstance(value, str) else '["</s>"]'
        raise InputError(f"expected special tokens as `{option}`, got {value!r}", hint=f"{option}={example}") from None
    wrong = [name for name in names if not isinstance(name, str) or name not in known]
    if wrong:
        raise InputError(f"{wrong[0]!r} is not a special token; there are {', '.join(known) or 'none'}")
    return names


def chat_template(name: str) -> str:
    """The Jinja source of a preset, or the text itself if it is a template."""
    if not name or "{" in name:
        return name
    if name not in CHAT_TEMPLATES:
        raise RecipeError(
            f"the chat template {name[:40]!r} is neither a preset nor a Jinja template",
            hint=f"--chat-template {' | '.join(CHAT_TEMPLATES)} | FILE",
        )
    return CHAT_TEMPLATES[name][1]


def tokens_of(style: StyleName, model: str = "unigram", chat: str = "") -> tuple[str, ...]:
    """The special tokens of a style and a chat template, without the tail."""
    own = STYLES[style].specials
    if style == "plain" and model in ("wordpiece", "wordpiece-bytes"):
        own = WORDPIECE_SPECIALS
    required = style != "plain" and (model in WITH_UNKNOWN or model in _UNKNOWN_IN_SENTENCEPIECE)
    unknown = ("<unk>",) if required and not set(ROLES["unk_token"]) & set(own) else ()
    turns = CHAT_TEMPLATES[chat][0] if chat in CHAT_TEMPLATES else ()
    return tuple(dict.fromkeys((*own, *unknown, *turns)))


def joined(specials: Iterable[str], style: StyleName, model: str, chat: str) -> tuple[str, ...]:
    """The special tokens of a style and a chat template, with those of a user.

    Those of the style come first; with `plain`, those of the user.
    """
    usual = (DEFAULT_SPECIALS, WORDPIECE_SPECIALS)
    first, then = tokens_of(style, model, chat), tuple(specials)
    if then in usual:
        then = ()
    elif style == "plain":
        first, then = then, tuple(token for token in first if not any(token in tokens for tokens in usual))
    return tuple(dict.fromkeys((*first, *then)))


def changed(
    specials: tuple[str, ...], before: tuple[StyleName, str, str], after: tuple[StyleName, str, str]
) -> tuple[str, ...]:
    """The special tokens after a change of style, model or chat template: the old ones are removed, a user's own stay."""
    if before == after or not all(isinstance(part, str) for part in after) or after[0] not in STYLES:
        return specials
    old = tokens_of(*before)
    if before[::2] == after[::2] and set(old) - set(specials):
        return specials  # the list is the user's own
    rest = (token for token in specials if token not in old)
    return tuple(dict.fromkeys((*tokens_of(*after), *rest)))


def style_for(
    name: StyleName,
    specials: Iterable[str] | None = None,
    *,
    template: TemplateName | None = None,
    chat: str = "",
    model_max_length: int | None = None,
    padding_side: Side | None = None,
    truncation_side: Side | None = None,
    trim_offsets: bool | None = None,
    eos: str = "",
    roles: Mapping[str, str] = _NONE,
) -> Style:
    """A style for a list of special tokens, with the values that a user chose.

    Examples
    --------
    >>> style_for("plain", ["<pad>", "</s>"], template="eos").frame
    ([], ['</s>'])
    >>> style = style_for("gpt", tokens_of("gpt", "bpe", "chatml"), chat="chatml")
    >>> style.roles["eos_token"], style.end
    ('<|im_end|>', '<|endoftext|>')
    """
    base = STYLES[name]
    tokens = tokens_of(name) if specials is None else tuple(specials)
    named = _roles(**roles)
    found = {role: next((token for token in known if token in tokens), "") for role, known in ROLES.items()}
    if name != "plain":
        found = {role: base.roles.get(role, "") for role in found}
        if "<unk>" in tokens:
            found["unk_token"] = "<unk>"
    own = found["eos_token"]
    if chat in CHAT_TEMPLATES and CHAT_TEMPLATES[chat][0][-1] in tokens:
        # A chat model ends its turn, not the text, and generation stops at `eos_token`.
        found["eos_token"] = CHAT_TEMPLATES[chat][0][-1]
    found = {role: token for role, token in (found | named).items() if token in tokens}
    changes = {
        "template": template,
        "model_max_length": model_max_length,
        "padding_side": padding_side,
        "truncation_side": truncation_side,
        "trim_offsets": trim_offsets,
    }
    return replace(
        base,
        specials=tokens,
        roles=found,
        named=named,
        end=eos or end_of_document(found, tokens, own),
        chat_template=chat_template(chat),
        **{key: value for key, value in changes.items() if value is not None},  # type: ignore[arg-type]
    )


def reserved_slots(n: int, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of `n` reserved ids, counted from 0 without those that are taken."""
    used = set(taken)
    names = (f"<|reserved_{i}|>" for i in count())
    return tuple(islice((name for name in names if name not in used), n))


def fill(vocab: Vocab, multiple: int, tail: Sequence[str] = ()) -> Vocab:
    """The vocabulary with reserved ids up to the next multiple of a size: matrix products are faster with multiples of 64."""
    missing = -vocab.size % multiple
    if not missing:
        return vocab
    head = tuple(token for token in vocab.specials if token not in tail)
    slots = reserved_slots(missing, {*vocab.specials, *vocab.pieces})
    return replace(vocab, specials=(*head, *slots, *(token for token in vocab.specials if token in tail)))


assert set(STYLES) == set(get_args(StyleName))
