"""Okt, Komoran, Kkma and Hannanum as segmenters, by konlpy (extra `konlpy`, and Java).

The tags of each analyser are mapped to Sejong tags, so that boundaries have the same
kinds for all analysers; restored forms (하+았+다 for 했다) are laid on the word by `koktok.segment.align`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any, Final

from koktok.errors import AnalyserError, MissingExtraError
from koktok.segment.align import laid
from koktok.segment.policy import Morpheme

HEAP: Final = 1024
"""Megabytes of Java memory a process: Komoran's and Kkma's dictionaries take some 500."""


def _table(text: str) -> dict[str, str]:
    return {old: new for pair in text.split() for old, _, new in [pair.partition(">")]}


TAGS: Final[dict[str, dict[str, str]]] = {
    "okt": _table(
        "Noun>NNG ProperNoun>NNP Josa>JX Verb>VV Adjective>VA PreEomi>EP Eomi>EC Suffix>XSN VerbPrefix>XPN Determiner>MM "
        "Modifier>MM Adverb>MAG Conjunction>MAJ Exclamation>IC KoreanParticle>IC Punctuation>SW Number>SN Alpha>SL "
        "Foreign>SW Hashtag>W_HASHTAG ScreenName>W_MENTION Email>W_EMAIL URL>W_URL CashTag>SW Unknown>UN"
    ),
    "komoran": _table("NA>UN NF>UN NV>UN"),
    "kkma": _table(
        "NNM>NNB VXV>VX VXA>VX MDT>MM MDN>MM MAC>MAJ JKM>JKB JKI>JKV EPH>EP EPT>EP EPP>EP EFN>EF EFQ>EF EFO>EF EFA>EF EFI>EF "
        "EFR>EF ECE>EC ECD>EC ECS>EC ETD>ETM XPV>XPN OL>SL OH>SH ON>SN EMO>SW UV>UN UE>UN"
    ),
    "hannanum": _table(
        "NC>NNG NQ>NNP NB>NNB NN>NR PV>VV PA>VA PX>VX MA>MAG II>IC JC>JKB JP>VCP ET>ETM XP>XPN XS>XSN S>SW F>SL"
    ),
}
"""Tags of an analyser to Sejong's; a tag that is not here is Sejong's already. Hannanum has XS for every suffix, which is
read as that of a verb before an ending (공부|하|는)."""

KONLPY: Final = tuple(TAGS)

_MORE: Final = {"hannanum": {"ntags": 22}}
"""Arguments of an analyser besides the word."""

_BEYOND: Final = r"[\U00010000-\U0010ffff]"
"""Emoji and rare ideographs, which Java has in two halves: Komoran and Kkma hand out the halves, and those are no text."""

HIDDEN: Final = {"komoran": re.compile(_BEYOND), "kkma": re.compile(_BEYOND + r"|([가-힣]{1,4}?)\1{3,}")}
"""Text that is hidden from an analyser. Of repeated syllables Kkma tries every reading: for 는 twelve times it never ends."""

STAND_IN: Final = "※"
"""Shown in place of each hidden character; both call it a symbol."""


class KonlpySegmenter:
    """Morphemes by an analyser of konlpy, a word at a time."""

    def __init__(self, name: str) -> None:
        try:
            import konlpy
        except ImportError as error:
            raise MissingExtraError("konlpy", "konlpy") from error
        if shutil.which("java") is None:
            raise AnalyserError(
                f"`{name}` requires Java, which is not installed", hint="apt-get install openjdk-17-jre-headless"
            )
        self.name = name
        self._signature = f"{name}:konlpy-{konlpy.__version__}|jpype:{version('jpype1')}"
        if name in HIDDEN:
            self._signature += f"|hidden:{HIDDEN[name].pattern}"
        self._analyser: Any = None

    def signature(self) -> str:
        """Versions of konlpy, which carries the analysers and their dictionaries, of its bridge to Java; and what is hidden."""
        return self._signature

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word, in order; none where they cannot be laid on the word."""
        tags, more, hidden = TAGS[self.name], _MORE.get(self.name, {}), HIDDEN.get(self.name)
        analyser = self._load()
        for word in words:
            shown = hidden.sub(lambda found: STAND_IN * len(found[0]), word) if hidden else word
            pairs = [(form, tags.get(tag, tag)) for form, tag in analyser.pos(shown, **more)]
            if self.name == "hannanum":
                pairs = [
                    (form, "XSV" if tag == "XSN" and k + 1 < len(pairs) and pairs[k + 1][1][0] == "E" else tag)
                    for k, (form, tag) in enumerate(pairs)
                ]
            yield laid(shown, pairs)

    def _load(self) -> Any:
        """The analyser, in a Java of its own memory; loaded at the first question."""
        if self._analyser is None:
            import jpype
            import konlpy.jvm
            import konlpy.tag

            try:
                if not jpype.isJVMStarted():  # konlpy warns of a second start
                    konlpy.jvm.init_jvm(max_heap_size=HEAP)
                self._analyser = getattr(konlpy.tag, self.name.title())()
            except Exception as error:
                raise AnalyserError(f"`{self.name}` could not be loaded: {error}") from error
        return self._analyser
