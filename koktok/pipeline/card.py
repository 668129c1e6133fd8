"""README.md of a trained folder: kind and size, training text and licences, figures. card.template.md has the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import isnan
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final, NamedTuple

from koktok.model.special import NO_LIMIT
from koktok.model.vocab import KINDS
from koktok.recipe import TARGETS, Recipe
from koktok.runtimes.huggingface import tokenizer_json
from koktok.runtimes.huggingface.pre_tokenizer import cutting
from koktok.runtimes.sentencepiece import model_proto
from koktok.runtimes.sentencepiece.model_proto import differences
from koktok.runtimes.where import limitations, runs_in

if TYPE_CHECKING:
    from koktok.metrics.coverage import Coverage
    from koktok.metrics.silver import SilverRow
    from koktok.model.special import Style
    from koktok.tokenizer import TrainedTokenizer


COMPARED: Final = {
    "SentencePiece Unigram": "SentencePiece was trained on the same words with its own defaults",
    "SentencePiece BPE": "SentencePiece was trained on the same words with its own defaults",
    "Hugging Face BPE": "Hugging Face's BpeTrainer was trained on the same words with the same normalizer and pattern",
}
"""What a vocabulary for comparison was trained on, by its name in a table."""
STUDIED: Final = 32_000
"""The number of ids whose bits were measured; others have other bits."""


class Credit(NamedTuple):
    """A text of a corpus, its source, and its licence as stated there."""

    name: str
    place: str
    licence: str


@cache
def _sections() -> dict[str, Template]:
    text = Path(__file__).with_name("card.template.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^=== (\w+)\n", text, flags=re.MULTILINE)
    return {name: Template(part.removesuffix("\n")) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def _filled(section: str, **values: object) -> str:
    return _sections()[section].substitute(values)


SIGNS: Final = re.compile(r"[\\`*\[\]<>~&]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that Markdown interprets inside a line; an underscore inside a word is none."""


BAR: Final = "\\|"
"""A bar that ends no cell of a table."""


def plain(text: str) -> str:
    r"""Escape what Markdown would interpret: no link, no HTML, no emphasis, one line.

    Examples
    --------
    >>> print(plain("a_b <img> [x](y) *z*\n# `"))
    a_b \<img\> \[x\](y) \*z\* # \`
    """
    return SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def _rows(rows: Iterable[Iterable[str]]) -> str:
    return "\n".join(f"| {' | '.join(cell.replace('|', BAR) for cell in row)} |" for row in rows)


def model_card(
    tokenizer: TrainedTokenizer,
    figures: Sequence[SilverRow],
    licences: Mapping[str, str],
    *,
    words: int,
    held_out: bool,
    covered: Coverage | None = None,
    credited: Sequence[Credit] = (),
    languages: Sequence[str] = ("ko",),
) -> str:
    """The model card: Markdown with the front matter of model hubs."""
    recipe, signature, vocab = tokenizer.recipe, tokenizer.signature, tokenizer.vocab
    reason = tokenizer_json.refuses(tokenizer.definition)
    borders = any(row.figures.borders > 0 for row in figures)
    limits = [] if reason else limits_of(tokenizer)
    return _filled(
        "card",
        languages="\n".join(f"- {language}" for language in languages),
        library="koktok" if reason else "transformers",
        kind=vocab.kind,
        size=f"{vocab.size:,}",
        version=signature["koktok"],
        runs=runs_of(tokenizer),
        loading=_filled("koktok", reason=reason) if reason else _filled("transformers"),
        decoded=KINDS[vocab.kind].loses or _filled("lossless"),
        good_to_know=_filled("good_to_know", limits="\n".join(f"* {line}" for line in limits)) if limits else "",
        **_special_tokens(tokenizer.style),
        lines=f"{signature['lines']:,}",
        eojeols=f"{signature['eojeols']:,}",
        sources=_rows(
            (
                plain(source.name),
                f"{source.weight:g}",
                plain(licences.get(source.name, "not stated; text of the user")),
                f"`{source.digest[:16]}`",
            )
            for source in recipe.sources
        ),
        segmenter=signature["segmenter"],
        policy=recipe.segment.policy,
        figures=_filled(
            "figures",
            where="held-out lines" if held_out else "the training text itself (nothing was held out)",
            words=f"{words:,}",
            compared="".join(f"; {COMPARED[row.name]}" for row in figures if row.name in COMPARED),
            borders=_filled("borders") if borders else "",
            column=" borders |" if borders else "",
            rule="---|" if borders else "",
            rows=_rows(
                (
                    plain(row.name),
                    "" if row.size is None else f"{row.size:,}",
                    *(f"{x:.3f}" for x in (row.figures.tokens_per_eojeol, row.figures.f1, row.figures.f1_all)),
                    *(["" if isnan(row.figures.borders) else f"{row.figures.borders:.1%}"] if borders else []),
                    *(f"{x:.4%}" for x in (row.figures.unknown, row.figures.byte_fallback)),
                )
                for row in figures
            ),
        )
        + bits_of(recipe)
        if figures
        else "",
        coverage=_filled(
            "coverage",
            syllables=f"{covered.syllables:.1%}",
            eojeols=f"{covered.eojeols:,}",
            characters=f"{covered.characters:.2%}",
            bytes=f"{covered.bytes:.2%}",
            unknown=f"{covered.unknown:.2%}",
        )
        if covered
        else "",
        credits=_filled("credits", lines=_rows(map(plain, credit) for credit in credited)) if credited else "",
    )


def bits_of(recipe: Recipe) -> str:
    """What the study says of the recipe's model and preset; empty where it says nothing, or the recipe has other ids, targets or cuts."""
    train, plain_recipe = recipe.train, Recipe().changed(model=recipe.train.model, preset=recipe.train.preset)
    same = (
        train.vocab_size == STUDIED
        and recipe.pretokenize == plain_recipe.pretokenize
        and not train.superwords
        and not {*TARGETS} & recipe.given.keys()
    )
    figure = _sections().get(f"bits_{train.model}_{train.preset}".replace("-", "_"))
    return _filled("bits", bits=figure.template.strip()) if same and figure else ""


def runs_of(tokenizer: TrainedTokenizer) -> str:
    """Where a tokenizer runs, see `koktok.runtimes.where.runs_in`."""
    recipe = tokenizer.recipe
    return runs_in(tokenizer.definition, recipe.pretokenize.pattern, superwords=bool(recipe.train.superwords))


def limits_of(tokenizer: TrainedTokenizer) -> list[str]:
    """The limitations in the model card: what other libraries do differently with this tokenizer."""
    recipe, vocab = tokenizer.recipe, tokenizer.vocab
    limits = limitations(
        vocab.kind,
        superwords=bool(recipe.train.superwords),
        jamo=recipe.spelled,
        pattern=recipe.pretokenize.pattern,
        prefix=recipe.pretokenize.prefix_space,
        trim=recipe.special.trim_offsets,
        separated="CharDelimiterSplit" in str(cutting(vocab, tokenizer.pattern, tokenizer.prefix)),
    )
    if not model_proto.refuses(tokenizer.definition):
        raw = "; ".join(differences(tokenizer.normalizer))
        spaces = " that does not begin with a space" * (tokenizer.prefix == "first")
        limits.append(
            f"`tokenizer.model` gives SentencePiece the same ids on normalized text{spaces}. Its normalizer does less with raw text: {raw}."
        )
    return limits


def _special_tokens(style: Style) -> dict[str, str]:
    single, pair = (" ".join(token for token, _ in style.around(pair=two)) for two in (False, True))
    return {
        "roles": "\n".join(
            f"| {role} | `{token}` |"
            for role, token in (
                *((f"`{role}`", token) for role, token in style.roles.items()),
                *[("end of a document", style.end)] * (style.end != style.roles.get("eos_token", "")),
            )
        ),
        "single": single,
        "pair": pair,
        "longest": "no limit" if style.model_max_length == NO_LIMIT else f"{style.model_max_length:,} tokens",
        "padding_side": style.padding_side,
        "truncation_side": style.truncation_side,
        "chat": " There is a chat template." if style.chat_template else "",
    }
