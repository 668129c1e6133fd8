"""README.md of a trained folder: what it is, what it was trained on, under which licences, and how it measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from koktok.formats import sentencepiece
from koktok.formats.hf import why_not
from koktok.formats.pre_tokenizer import cutting
from koktok.special import NO_LIMIT

if TYPE_CHECKING:
    from koktok.metrics.coverage import Coverage
    from koktok.metrics.silver import SilverRow
    from koktok.special import Style
    from koktok.tokenizer import Tokenizer


class Credit(NamedTuple):
    """A text that a corpus holds, where it comes from, and its licence as stated there."""

    name: str
    place: str
    licence: str


LOSSLESS = """`decode(encode(x))` gives back the normalized text: spaces are part of the
pieces, and characters without a piece of their own become bytes."""

LOSES = {
    "wordpiece": """`decode(encode(x))` gives back words with one space between them: runs of spaces
and words with an unknown part (`[UNK]`) are lost.""",
    "wordpiece-bytes": """`decode(encode(x))` gives back the normalized text, but for a `##` that begins a
word; nothing is unknown.""",
    "word": "`decode(encode(x))` gives back known words; all others are the unknown token.",
}
"""What kinds that are not lossless lose."""


def elsewhere(
    kind: str,
    *,
    superwords: bool,
    jamo: bool,
    pattern: str = "koktok",
    prefix: bool = False,
    trim: bool = False,
    separated: bool = False,
) -> list[str]:
    """What other libraries and tasks do not do with a vocabulary of this kind, and the way round; a sentence each.

    Examples
    --------
    >>> elsewhere("bpe-bytes", superwords=False, jamo=False)[0][:47]
    'transformers: whole-word masking sees a sentenc'
    >>> len(elsewhere("unigram", superwords=True, jamo=True))
    5
    """
    found = []
    if superwords:
        found.append(
            "Superwords are not for question answering and named entities: one token may hold the end of a span and the "
            "word behind it. Train without `--superwords` for these, or use `encode(text, superwords=False)` of koktok."
        )
    if kind != "wordpiece":  # whose pieces hold no space
        if trim:
            found.append(
                "transformers: `DataCollatorForLanguageModeling(whole_word_mask=True)` of version 5 masks whole eojeols, for "
                "offsets leave out the space before a word. Inside a character that is spelled in bytes"
                f"{', or a syllable in jamo,' * jamo} it begins a word, too; `KoktokCollator` of koktok does not."
            )
        else:
            found.append(
                "transformers: whole-word masking sees a sentence as one word (`whole_word_mask=True` looks for gaps between "
                "offsets, and these hold the space before a word); `koktok export --to hf --trim-offsets` gives it gaps, and "
                "`KoktokCollator` of koktok masks whole eojeols either way."
            )
        if prefix:
            found.append(
                "A space goes before the first word and comes off when ids are decoded, so that it is spelled like any other "
                "word, and `is_split_into_words=True` gives the ids of the running text. SentencePiece, llama.cpp and "
                "tiktoken do not take it off; tiktoken does not put it there."
            )
        else:
            found.append(
                "transformers: **do not use `is_split_into_words=True`** with this tokenizer: it drops the spaces between "
                "words. Give the running text, put a space before each word but the first, or train with `--prefix-space`."
            )
    if kind == "unigram":
        found.append(
            "JavaScript (transformers.js), llama.cpp and OpenVINO have no byte fallback for Unigram: a character without "
            "a piece is unknown there. `--model bpe` and `bpe-bytes` keep it."
        )
    if separated:
        found.append("JavaScript (transformers.js) refuses this folder: it has no `CharDelimiterSplit`.")
    if jamo:
        found.append(
            "Pieces of conjoining jamo are not for JavaScript and not for constrained generation (llguidance, xgrammar), "
            "which see jamo where the text has syllables; `DecodeStream` of tokenizers stops with an error, "
            "`Tokenizer.stream` of koktok does not."
        )
    if pattern != "koktok":
        cpp = "" if pattern == "o200k" else ", llama.cpp (`koktok export --to gguf`)"
        found.append(
            f"The pattern is that of {pattern}, letter for letter: gigatoken, snaptokens, fastokens{cpp} and other runtimes "
            "that know patterns by name load this folder."
        )
    elif kind == "bpe-bytes":
        found.append(
            "gigatoken, snaptokens and llama.cpp know published patterns only, and refuse koktok's own: train with "
            "`--pattern llama3` for these; fastokens and kitoken take both."
        )
    return found


def _loading(foreign: str) -> str:
    """How to load the folder; `foreign` says why other libraries cannot."""
    if foreign:
        return f"""```python
from koktok import Tokenizer

tokenizer = Tokenizer.load("this-folder")
```

Only koktok loads this folder: {foreign}."""
    return """```python
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("this-folder")
```

Beside a config.json of model type qwen2, qwen3_5 or siglip2, `AutoTokenizer` of transformers 5 builds a tokenizer of its
own in place of this one; `PreTrainedTokenizerFast.from_pretrained` never does. Named classes of transformers 5
(`BertTokenizerFast`, `LlamaTokenizerFast`, ...) give other ids. A model has `len(tokenizer)` rows: `tokenizer.vocab_size`
leaves out special tokens."""


def _special_tokens(style: Style) -> str:
    """The part of each special token, and what stands around a text."""
    roles = "\n".join(f"| `{role}` | `{token}` |" for role, token in style.roles.items())
    single, pair = (" ".join(token for token, _ in style.around(pair=two)) for two in (False, True))
    longest = "no limit" if style.model_max_length == NO_LIMIT else f"{style.model_max_length:,} tokens"
    return f"""| role | token |
|---|---|
{roles}

Around one text: `{single}`; around two: `{pair}`. Longest input: {longest}. Padding on the {style.padding_side},
truncation on the {style.truncation_side}.{" There is a chat template." if style.chat_template else ""}

Text that spells a special token is read as that token by transformers, unless `split_special_tokens=True` is passed;
koktok reads it as text."""


def model_card(
    tokenizer: Tokenizer,
    figures: Sequence[SilverRow],
    licences: Mapping[str, str],
    *,
    words: int,
    held_out: bool,
    covered: Coverage | None = None,
    credited: Sequence[Credit] = (),
    languages: Sequence[str] = ("ko",),
) -> str:
    """The model card, Markdown with the front matter that model hubs read."""
    recipe, signature = tokenizer.recipe, tokenizer.signature
    sources = "\n".join(
        f"| {source.name} | {source.weight:g} | {licences.get(source.name, 'not stated; text of the user')} "
        f"| `{source.digest[:16]}` |"
        for source in recipe.sources
    )
    rows = "\n".join(
        f"| {row.name} | {'' if row.size is None else f'{row.size:,}'} | {row.figures.tokens_per_eojeol:.3f} "
        f"| {row.figures.f1:.3f} | {row.figures.f1_all:.3f} | {row.figures.unknown:.4%} | {row.figures.byte_fallback:.4%} |"
        for row in figures
    )
    shown_coverage = shown_credits = ""
    if credited:
        lines = "\n".join(f"| {credit.name} | {credit.place} | {credit.licence} |" for credit in credited)
        shown_credits = f"""
## Sources and their licences

| text | from | licence as stated |
|---|---|---|
{lines}
"""
    if covered:
        shown_coverage = f"""
## Coverage

{covered.syllables:.1%} of the 2,350 common syllables (KS X 1001) are pieces. Of the general text that travels with koktok
(corpora/mini, {covered.eojeols:,} eojeols of many kinds), {covered.characters:.2%} of the characters are pieces;
{covered.bytes:.2%} of the tokens are bytes, and {covered.unknown:.2%} are unknown.
"""
    foreign = why_not(tokenizer.vocab)
    limits = elsewhere(
        tokenizer.vocab.kind,
        superwords=bool(recipe.train.superwords),
        jamo=recipe.spelled,
        pattern=recipe.pretokenize.pattern,
        prefix=recipe.pretokenize.prefix_space,
        trim=recipe.special.trim_offsets,
        separated=not foreign
        and "CharDelimiterSplit" in str(cutting(tokenizer.vocab, tokenizer.pattern, tokenizer.prefix)),
    )
    if not sentencepiece.why_not(tokenizer.vocab, tokenizer.pattern):
        less = "; ".join(sentencepiece.differences(tokenizer.normalizer))
        limits.append(
            f"`tokenizer.model` gives SentencePiece the same ids on normalized text. Of raw text it leaves: {less}."
        )
    beside = "" if foreign or not limits else "## Good to know\n\n" + "".join(f"* {line}\n" for line in limits) + "\n"
    compared = (
        "; SentencePiece was trained on the same words with its own defaults"
        if any("SentencePiece" in row.name for row in figures)
        else ""
    )
    where = "held-out lines" if held_out else "the training text itself (nothing was held out)"
    shown = (
        f"""
## Figures

Measured on {where}, {words:,} words{compared}. F1 is silver: how
well the borders inside words meet the analyser's, between two syllables, and over all gaps.

| tokenizer | ids | tokens per eojeol | F1 | F1, all gaps | unknown | byte fallback |
|---|---|---|---|---|---|---|
{rows}
"""
        if figures
        else ""
    )
    return f"""---
language:
{chr(10).join(f"- {language}" for language in languages)}
library_name: {"koktok" if foreign else "transformers"}
tags:
- tokenizer
- korean
- morpheme
- koktok
---

# A Korean {tokenizer.vocab.kind} tokenizer with {tokenizer.vocab.size:,} ids

Made by koktok {signature["koktok"]}. The file `koktok.toml` holds the recipe and the
signature; the same text and recipe give the same bytes.

{_loading(foreign)}

No morphological analyser runs at this point. {LOSSLESS if tokenizer.lossless else LOSES[tokenizer.vocab.kind]}

{beside}## Special tokens

{_special_tokens(tokenizer.style)}

## Trained on

{signature["lines"]:,} lines, {signature["eojeols"]:,} eojeols (어절).

| source | weight | licence as stated | SHA-256 of the lines |
|---|---|---|---|
{sources}

Boundaries between morphemes: `{signature["segmenter"]}`, policy `{recipe.segment.policy}`. Kiwi and its model are LGPL
software by bab2min, trained on the Sejong and Modu corpora among others; they taught where words are cut and are not part of
this folder.
{shown}{shown_coverage}{shown_credits}"""
