"""`Definition`: what turns text into ids and back, without what it was trained from; every runtime holds one, or says why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from koktok.model.special import ROLES, Style, style_for
from koktok.model.vocab import Vocab
from koktok.text.normalize import JamoNormalizer, Normalizer
from koktok.text.prefix import Prefix
from koktok.text.pretokenize import Pattern

_PLAIN = Style((), {})


@dataclass(frozen=True)
class Definition:
    """A vocabulary, and how a text comes to it.

    Examples
    --------
    >>> Definition(Vocab.bpe(" 가나", [" 가"], specials=["</s>"])).style.roles
    {'eos_token': '</s>'}
    """

    vocab: Vocab
    normalizer: Normalizer = field(default_factory=Normalizer)
    pattern: Pattern = field(default_factory=Pattern)
    prefix: Prefix = ""
    style: Style = _PLAIN

    def __post_init__(self) -> None:
        if self.style is _PLAIN:
            object.__setattr__(self, "style", style_for("plain", self.vocab.specials))

    @property
    def jamo(self) -> bool:
        """Whether pieces hold conjoining jamo, which decoding joins to syllables."""
        return isinstance(self.normalizer, JamoNormalizer)

    @property
    def spelled(self) -> bool:
        """Whether all syllables are spelled in jamo."""
        return isinstance(self.normalizer, JamoNormalizer) and self.normalizer.splits_all

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The ids before and after one text."""
        before, after = ([self.vocab.special_ids[token] for token in tokens] for tokens in self.style.frame)
        return before, after

    @cached_property
    def role_ids(self) -> dict[str, int]:
        """The ids of roles for a library without chats, as it names them: `eos` is the end of a document."""
        ids, named = self.vocab.special_ids, {**self.style.named, "eos_token": self.style.end}
        found = {role: next((t for t in (named.get(role), *usual) if t in ids), "") for role, usual in ROLES.items()}
        return {role.removesuffix("_token"): ids[token] for role, token in found.items() if token}
