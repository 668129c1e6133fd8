"""`diagnose`: an audit of any vocabulary: pieces that nothing can reach, junk, personal data, and which Korean it covers.

Findings with a severity, so that a build can fail on them. Sources: the checks of magikarp (Land and Bartolo
2024: undecodable and unreachable tokens), and checks that Korean needs (`"그는` glued to its quotation mark,
the 11,172 syllables, the 2,350 of KS X 1001).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

import numpy as np

from koktok import hangul
from koktok.errors import UsageError
from koktok.files import typed
from koktok.metrics.coverage import coverage
from koktok.model.vocab import readable_bytes, whole_text
from koktok.progress import OnProgress
from koktok.protocol.tokenizer import Tokenizer
from koktok.text.blocklist import PERSONAL, PERSONAL_DEFAULT, Blocklist

Severity = Literal["note", "warning", "error"]
SEVERITIES: Final[tuple[Severity, ...]] = ("note", "warning", "error")
"""From harmless to what should stop a release."""

ALL: Final = tuple(map(chr, hangul.SYLLABLES))
"""All 11,172 modern syllables."""

CHECKS: Final[dict[str, tuple[Severity, str]]] = {
    "blocklist": ("error", "pieces on the blocklist"),
    "personal": ("error", "pieces that look like personal data"),
    "unknown_syllables": ("warning", "syllables of KS X 1001 that become unknown"),
    "special_in_text": ("warning", "special tokens that plain text can spell"),
    "unreachable": ("warning", "unreachable pieces: no text that was tried is encoded to them"),
    "unnormalized": ("warning", "pieces that are the same text after NFC"),
    "broken": ("warning", "pieces with control characters, private use or U+FFFD"),
    "address": ("warning", "pieces of web addresses"),
    "entity": ("warning", "pieces of HTML entities"),
    "repeats": ("warning", "long repetitions"),
    "glued": ("note", "words with punctuation attached"),
    "glued_run": ("note", "runs of three signs or jamo attached to other text"),
    "name_number": ("note", "pieces that may be a name with a number"),
    "compatible": ("note", "pieces that are the same text after NFKC"),
    "partial": ("note", "pieces that are not valid UTF-8"),
    "digit_groups": (
        "note",
        "groups of one to three digits that are no piece, where numbers are cut in groups of three",
    ),
    "unused": ("note", "pieces that the text never uses"),
    "paradigm": ("note", "stems that are one piece with some endings and cut from others"),
}
"""Each check with its severity and its title, gravest first."""

ENDINGS: Final = ("고", "는", "지", "게", "던", "거나", "도록")
"""Endings that every verb stem takes in this spelling."""

BEHIND_FINAL: Final = ("으니", "으면", "으며")
BEHIND_VOWEL: Final = ("니", "면", "며")
"""Endings that are written otherwise behind a final consonant."""

A_STEM: Final = 3
"""With so many of `ENDINGS` a string is taken for a stem; 경고 and 경지 have two in common, and are none."""

GLUED: Final = re.compile(
    rf"^ ?[\"'“”‘’「『(\[<《〈.,!?~…·:;-]+[{hangul.SYLLABLE}]|[{hangul.SYLLABLE}][\"'“”‘’」』)\]>》〉.,!?~…·:;]+[{hangul.SYLLABLE}]"
)
GROUPS: Final = tuple(f"{number:0{size}}" for size in (1, 2, 3) for number in range(10**size))
"""All groups of one to three digits."""

NOT_TEXT: Final = ("Cc", "Co", "Cs", "Cn")
WHITE: Final = "\t\n\r"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found."""

    check: str
    severity: Severity
    title: str
    count: int
    total: int
    examples: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings about a vocabulary, gravest first, and what it is made of."""

    spec: str
    name: str
    digest: str
    size: int
    findings: tuple[Finding, ...]
    facts: Mapping[str, float]
    scripts: Mapping[str, int]
    longest: tuple[str, ...]
    not_checked: tuple[str, ...]

    def gravest(self) -> Severity | None:
        """The highest severity found, or None for a clean vocabulary."""
        return max((finding.severity for finding in self.findings), key=SEVERITIES.index, default=None)

    def to_json(self) -> str:
        """Deterministic JSON, versioned, with a final newline."""
        return json.dumps({"format": "koktok-doctor", "version": 1} | asdict(self), ensure_ascii=False, indent=1) + "\n"


def diagnose(
    tokenizer: Tokenizer,
    lines: Sequence[str] | None = None,
    *,
    blocklist: Blocklist | None = None,
    examples: int = 10,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """Examine a vocabulary."""
    if tokenizer.size is None:
        raise UsageError(
            f"`{tokenizer.spec}` has no closed vocabulary that could be examined",
            hint=f"koktok report {typed(tokenizer.spec)} --text FILE --out FOLDER",
        )
    pieces = _Pieces(tokenizer, on_progress or (lambda *_: None))
    personal = Blocklist(personal=PERSONAL_DEFAULT)
    named = Blocklist(personal=sorted(set(PERSONAL) - set(PERSONAL_DEFAULT)))
    findings: dict[str, list[tuple[int, str, str]]] = {
        "personal": _refused(pieces, personal),
        "name_number": _refused(pieces, named),
        "unknown_syllables": [(-1, char, "") for char in hangul.KS_X_1001 if char in pieces.unknown_syllables],
        "special_in_text": pieces.specials_in_text(),
        "unreachable": pieces.unreachable(),
        "unnormalized": _same(pieces, "NFC"),
        "compatible": _same(pieces, "NFKC"),
        "broken": [(i, text, why) for i, text in pieces.texts.items() if (why := _not_text(text))],
        **{name: _refused(pieces, Blocklist(junk=[name])) for name in ("address", "entity", "glued_run")},
        "repeats": _refused(pieces, Blocklist(junk=["run", "repeats"])),
        "glued": [(i, text, "") for i, text in pieces.texts.items() if GLUED.search(text)],
        "partial": [(i, readable_bytes(raw), "") for i, raw in pieces.partial.items()],
        "paradigm": pieces.paradigms(),
        "digit_groups": pieces.missing_groups(),
    }
    same = {i for i, _, _ in findings["unnormalized"]}
    findings["compatible"] = [item for item in findings["compatible"] if item[0] not in same]
    if blocklist:
        findings["blocklist"] = _refused(pieces, blocklist)
    if lines is not None:
        findings["unused"] = pieces.unused(lines)
    listed = [
        Finding(
            check,
            severity,
            title,
            len(findings[check]),
            {"unknown_syllables": len(hangul.KS_X_1001), "digit_groups": len(GROUPS)}.get(check, tokenizer.size),
            tuple(findings[check][:examples]),
        )
        for check, (severity, title) in CHECKS.items()
        if findings.get(check)
    ]
    general = coverage(tokenizer)
    composed = [unicodedata.normalize("NFC", text) for text in pieces.texts.values()]  # some vocabularies hold NFD
    whole = {text.removeprefix(" ") for text in composed}
    long = sorted(composed, key=lambda text: (-len(text), text))
    return Diagnosis(
        spec=tokenizer.spec,
        name=tokenizer.name,
        digest=tokenizer.digest(),
        size=tokenizer.size,
        findings=tuple(listed),
        facts={
            "byte pieces": float(len(tokenizer.byte_ids)),
            "special tokens": float(len(tokenizer.special_ids)),
            "syllables of KS X 1001 that are pieces": general.syllables,
            "modern syllables that are pieces": sum(char in whole for char in ALL) / len(ALL),
            "modern syllables that are unknown": len(pieces.unknown_syllables) / len(ALL),
            "characters of corpora/mini that are pieces": general.characters,
            "tokens of corpora/mini that are bytes": general.bytes,
            "tokens of corpora/mini that are unknown": general.unknown,
        },
        scripts=dict(sorted(Counter(map(script_shown, composed)).items(), key=lambda kv: (-kv[1], kv[0]))),
        longest=tuple(long[:examples]),
        not_checked=tuple(name for name in ("blocklist", "unused") if name not in findings),
    )


class _Pieces:
    """The vocabulary as text: what each id stands for, and what the tokenizer does with that text."""

    def __init__(self, tokenizer: Tokenizer, on_progress: OnProgress) -> None:
        self.tokenizer, self.on_progress = tokenizer, on_progress
        self.texts: dict[int, str] = {}
        self.partial: dict[int, bytes] = {}
        aside = tokenizer.special_ids | tokenizer.unknown_ids | tokenizer.byte_ids
        for i in range(tokenizer.size or 0):
            if i % 8192 == 0:
                on_progress("reading the vocabulary", i, tokenizer.size)
            raw = None if i in aside else tokenizer.token_bytes(i)
            if raw and (text := whole_text(raw)) is not None:
                self.texts[i] = text
            elif raw:
                self.partial[i] = raw
        unknown = tokenizer.unknown_ids
        rows = tokenizer.encode_lines(ALL)
        self.unknown_syllables = frozenset(
            char for k, char in enumerate(ALL) if unknown and not unknown.isdisjoint(rows[k].tolist())
        )

    def unreachable(self) -> list[tuple[int, str, str]]:
        """Ids that no tried text is encoded to, with what their own text becomes."""
        from koktok.metrics.vocabulary import reachable, surface

        self.on_progress("trying every piece", 0, 1)
        states = reachable(self.tokenizer)
        lost = [i for i in self.texts if states[i] == 0]
        rows = self.tokenizer.encode_lines([self.texts[i] for i in lost])
        self.on_progress("trying every piece", 1, 1)
        becomes = [" + ".join(surface(self.tokenizer, int(j)) for j in rows[k][:6]) for k in range(len(lost))]
        return [(i, self.texts[i], f"becomes {text}") for i, text in zip(lost, becomes, strict=True)]

    def missing_groups(self) -> list[tuple[int, str, str]]:
        """Groups of digits without a piece; none where a piece has more than three digits, or none has three."""
        found = {text for text in self.texts.values() if text.isascii() and text.isdigit()}
        return (
            [(-1, group, "") for group in GROUPS if group not in found] if max(map(len, found), default=0) == 3 else []
        )

    def paradigms(self) -> list[tuple[int, str, str]]:
        """Stems that are one piece with an ending, and a piece of their own before another (먹고 beside 먹|으니)."""
        spaced = any(text.startswith(" ") for text in self.texts.values())  # 에게, 에고 and 에지 begin no word
        ids = {text: i for i, text in self.texts.items() if text.startswith(" ") or not spaced}
        whole: defaultdict[str, list[str]] = defaultdict(list)
        for text in ids:
            for ending in ENDINGS:
                stem = text.removesuffix(ending)
                if stem != text and hangul.has_syllable(stem[-1:]):
                    whole[stem].append(text)
        stems = sorted(stem for stem, forms in whole.items() if len(forms) >= A_STEM)
        asked = []
        for stem in stems:
            other = BEHIND_FINAL if hangul.split(stem[-1])[2:] else BEHIND_VOWEL
            asked += [(stem, ending) for ending in (*ENDINGS, *other)]
        before = [
            "가" if stem.startswith(" ") else "" for stem, _ in asked
        ]  # in the midst of a text there is one space
        rows = self.tokenizer.encode_lines(
            [first + stem + ending for first, (stem, ending) in zip(before, asked, strict=True)]
        )
        apart: defaultdict[str, list[str]] = defaultdict(list)
        for k, (stem, ending) in enumerate(asked):
            begins = rows.line(k).spans[:, 0] - len(before[k])
            if begins[begins > 0].tolist() == [len(stem)]:
                apart[stem].append(f"{stem.strip()}|{ending}")
        return [
            (ids[whole[stem][0]], " ".join(form.strip() for form in whole[stem]), f"beside {' '.join(forms)}")
            for stem, forms in apart.items()
        ]

    def specials_in_text(self) -> list[tuple[int, str, str]]:
        specials = sorted(self.tokenizer.special_ids - self.tokenizer.unknown_ids)
        from koktok.metrics.vocabulary import ids_by_default

        spelled = [self.tokenizer.vocab.tokens[i] for i in specials]
        rows = ids_by_default(self.tokenizer, spelled)
        return [(i, spelled[k], "") for k, i in enumerate(specials) if i in rows[k]]

    def unused(self, lines: Sequence[str]) -> list[tuple[int, str, str]]:
        used = np.zeros(self.tokenizer.size or 0, dtype=bool)
        for at in range(0, len(lines), 2048):
            self.on_progress("encoding the text", at, len(lines))
            ids = self.tokenizer.encode_lines(lines[at : at + 2048]).ids
            used[ids[(ids >= 0) & (ids < len(used))]] = True
        self.on_progress("encoding the text", len(lines), len(lines))
        return [(i, text, "") for i, text in self.texts.items() if not used[i]]


def script_shown(text: str) -> str:
    """The script of a piece: hangul, jamo, hanja, latin, digit, kana, other letters, symbol, space, or mixed.

    Examples
    --------
    >>> [script_shown(text) for text in (" 학교", "ㅋㅋ", "學", "the", "2024", "가a", "!?", "  ", "あ", "мир")]
    ['hangul', 'jamo', 'hanja', 'latin', 'digit', 'mixed', 'symbol', 'space', 'kana', 'other letters']
    """
    scripts = {kind for char in text if (kind := _script(char)) not in ("space", "symbol")}
    if not scripts:
        return "symbol" if text.strip() else "space"
    return scripts.pop() if len(scripts) == 1 else "mixed"


def _script(char: str) -> str:
    if hangul.is_syllable(char):
        return "hangul"
    if char.isspace():
        return "space"
    if not char.isalnum():
        return "symbol"
    if char.isdecimal():
        return "digit"
    words = unicodedata.name(char, "?").split()
    known = {"HANGUL": "jamo", "CJK": "hanja", "LATIN": "latin", "HIRAGANA": "kana", "KATAKANA": "kana"}
    return known.get(words[1] if words[0] in ("FULLWIDTH", "HALFWIDTH") else words[0], "other letters")


def _refused(pieces: _Pieces, blocklist: Blocklist) -> list[tuple[int, str, str]]:
    return [(i, text, why) for i, text in pieces.texts.items() if (why := blocklist.refuses(text))]


def _same(pieces: _Pieces, form: Literal["NFC", "NFKC"]) -> list[tuple[int, str, str]]:
    """Ids whose text another id has, too, after normalization; the first of each group stays."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for i, text in pieces.texts.items():
        groups[unicodedata.normalize(form, text)].append(i)
    pairs = ((i, group[0]) for group in groups.values() for i in group[1:])
    # `##가` and `가` are one text and two roles.
    texts = ((i, pieces.texts[i], first, pieces.texts[first]) for i, first in sorted(pairs))
    return [(i, text, f"as {other!r} ({first})") for i, text, first, other in texts if text != other]


def _not_text(text: str) -> str:
    for char in text:
        if char == "\ufffd" or (unicodedata.category(char) in NOT_TEXT and char not in WHITE):
            return f"U+{ord(char):04X}"
    return ""
