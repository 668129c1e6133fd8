r"""Patterns that other vocabularies made known, letter for letter as they were published, and `PublishedPattern`, which cuts by one.

Fast runtimes (gigatoken, snaptokens, fastokens, llama.cpp) have no general engine for regular
expressions; they know these, and stop at any other. `\p{L}` and its like are those of the engine that runs them, so a letter
younger than its Unicode may be cut elsewhere by another; koktok lets the library `tokenizers` cut, whose ids are the yardstick.

Two of them let pieces cross spaces. `exaone-moe` is that of K-EXAONE's tokenizer.json, which llama.cpp quotes in src/llama-vocab.cpp
(LLAMA_VOCAB_PRE_TYPE_EXAONE_MOE). `superbpe` is that of SuperBPE (Liu et al. 2025), which cuts numbers alone, into groups of three digits
from the right. llama.cpp has it as two expressions, one after the other (LLAMA_VOCAB_PRE_TYPE_SUPERBPE), and so have its training
code, with `Digits` for the first, and tokenizer.json here (`STEPS`). `PUBLISHED` has them as one, for engines that take one. It looks ahead
from every digit, so that a run of n digits takes time in proportion to n² in every engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, Literal, get_args

from koktok.errors import InputError
from koktok.text.pretokenize import Pattern, words

Published = Literal["gpt2", "llama3", "qwen2", "o200k", "cl100k", "superbpe", "exaone-moe"]

ACROSS_SPACES: Final = ("superbpe", "exaone-moe")
"""Those that do not cut at every space."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

PUBLISHED: Final[dict[str, str]] = {
    "gpt2": _GPT2,
    "llama3": _LLAMA3,
    "qwen2": _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),
    "qwen3.5": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
        r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "o200k": _O200K,
    "cl100k": _LLAMA3,  # Meta took it over letter for letter
    "superbpe": r"\p{N}(?:(?!(?:\d{3})+(?!\d))\p{N})*|[^\p{N}]+",
    "exaone-moe": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
}
"""By the vocabulary that made them known, as they were first published."""

STEPS: Final[dict[str, tuple[str, ...]]] = {"superbpe": (r"\p{N}+", r"(?=(\d{3})+(?!\d))")}
"""Patterns that were published as several expressions, each of which cuts the parts that those before it leave."""

TIKTOKEN: Final[dict[str, str]] = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
}
"""As tiktoken spells them today, for less looking back. Only for tiktoken: `$` is the end of a line to Oniguruma."""

LLAMA_CPP: Final = {
    (PUBLISHED["gpt2"], False): "gpt-2",
    (PUBLISHED["llama3"], False): "smaug-bpe",
    (PUBLISHED["llama3"], True): "llama-bpe",
    (PUBLISHED["qwen2"], False): "qwen2",
    (PUBLISHED["superbpe"], False): "superbpe",
    (PUBLISHED["exaone-moe"], False): "exaone-moe",
}
"""Patterns that llama.cpp knows: (regular expression, whether a whole word that is a piece is taken without merging) to name."""

_WHITE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class PublishedPattern(Pattern):
    """A published pattern, by name.

    Law: ``"".join(p.pretokenize(x)) == x`` for every str, and the parts are those of `tokenizers`.

    Examples
    --------
    >>> PublishedPattern(name="llama3").pretokenize("API를 1234번, I'm")
    ['API를', ' ', '123', '4', '번', ',', ' I', "'m"]
    >>> PublishedPattern(name="superbpe").pretokenize("할 수 있다. 1234번")
    ['할 수 있다. ', '1', '234', '번']
    """

    name: str = "llama3"
    inside: bool = False
    """Whether every space cuts, too."""

    def __post_init__(self) -> None:
        if self.name not in get_args(Published):
            raise InputError(
                f"`pattern` is {self.name!r}; expected: koktok, {', '.join(get_args(Published))}",
                hint='pattern = "llama3"',
            )

    @property
    def bigram(self) -> bool:
        """Never: letters on both sides of an apostrophe are read together.

        But in all of them that cut at every space, a space after anything except white space begins a pretoken.
        """
        return False

    @property
    def across_spaces(self) -> bool:
        """True if a pretoken may hold several words."""
        return self.name in ACROSS_SPACES and not self.inside

    @property
    def within_words(self) -> Pattern:
        """The same, with a cut at every space."""
        return replace(self, inside=True) if self.across_spaces else self

    @property
    def regex(self) -> str:
        """The pattern as it was published; several steps are one here."""
        return PUBLISHED[self.name]

    def pretokenize(self, text: str) -> list[str]:
        """Cut `text`; the parts join back to it exactly."""
        splitter = _splitter(self.name)
        return [
            part for some in (words(text) if self.inside else [text]) for part, _ in splitter.pre_tokenize_str(some)
        ]

    def cuts(self, text: str) -> list[int]:
        """Offsets inside `text` where a pretoken ends and the next begins."""
        return list(accumulate(map(len, self.pretokenize(text))))[:-1]

    def crosses(self, piece: str) -> bool:
        """True if `piece` is cut when it is alone."""
        return len(self.pretokenize(piece)) > 1

    def to_hf(self) -> dict[str, Any]:
        """Give the node by which tokenizer.json has this pattern; GPT-2's is a part of ByteLevel."""
        if self.name == "gpt2":
            return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
        nodes = [
            {"type": "Split", "pattern": {"Regex": step}, "behavior": "Isolated", "invert": False}
            for step in STEPS.get(self.name, (self.regex,))
        ]
        return {"type": "Sequence", "pretokenizers": nodes} if nodes[1:] else nodes[0]

    @property
    def javascript(self) -> str:
        """The pattern for JavaScript, see `in_javascript`."""
        return in_javascript(self.regex)

    def rules(self) -> dict[str, Any]:
        """Give the pattern as plain data: the expression for JavaScript."""
        return {"regex": self.javascript}

    def signature(self) -> str:
        """Give its name, as one line."""
        return f"published:{self.name}{'|inside' * self.inside}|v:1"


def in_javascript(regex: str) -> str:
    r"""A published pattern for `new RegExp(…, "ug")`, which has no `(?i:…)` everywhere, another `\s`, and `\d` for ASCII."""
    folded = r"(?:'[sSſ]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
    regex = regex.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)", folded).replace(r"\d", r"\p{Nd}")
    inside = re.sub(r"\[[^]]*]", lambda m: m[0].replace(r"\s", _WHITE), regex)
    return inside.replace(r"\s", f"[{_WHITE}]").replace(r"\S", f"[^{_WHITE}]")


@lru_cache
def _splitter(name: str) -> Any:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Sequence, Split

    return Sequence([Split(Regex(step), "isolated") for step in STEPS.get(name, (PUBLISHED[name],))])
