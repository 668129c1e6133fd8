"""The analyser at run time: the cuts of a word while a text is read, and the folder that asks for them.

A trained tokenizer knows morphemes only as far as its scores carry them; here Kiwi
cuts every eojeol as it did in training, and the model solves each part by itself. Vocabulary and ids are the same, so a
model may be trained with the analyser and served without, or the other way round; decode is the same, too.

The price is Kiwi: tens of thousands of new eojeols a second instead of a million, so words are asked about once.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok import hangul
from koktok.errors import ArtifactError, InputError
from koktok.files import write_folder
from koktok.formats.folder import TOKENIZER, files_of, with_extra
from koktok.formats.limits import why_not
from koktok.segment import Segmenter, bare, segmenter_for
from koktok.segment.policy import Morpheme, Policy, codas_of, cuts_of
from koktok.text.pretokenize import Pattern

if TYPE_CHECKING:
    from koktok.tokenizer import Tokenizer


CACHED_WORDS = 1 << 18
"""Analysed words kept; a quarter of a million distinct words cover over .97 of running Korean text."""

STUB_NAME = "koktok_kiwi.py"
DICTIONARY = "kiwi_dictionary.tsv"

STUB = '''"""The tokenizer class of this folder, for `trust_remote_code=True`: it only fetches koktok's own class.

This tokenizer asks the morphological analyser Kiwi while it reads, so two packages are needed:

    pip install koktok kiwipiepy

The same vocabulary without Kiwi is `PreTrainedTokenizerFast.from_pretrained(folder)`: other cuts, same ids, same decode.
"""

try:
    from koktok.integrations.transformers import KoktokKiwiTokenizer
except ImportError as error:
    raise ImportError(
        "this tokenizer runs the morphological analyser Kiwi and needs two packages: pip install koktok kiwipiepy"
    ) from error

__all__ = ["KoktokKiwiTokenizer"]
'''
"""What stands in koktok_kiwi.py; the imports are guarded, so that transformers lets the message through."""


def settings_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the run-time class has to know of the recipe, in plain values for tokenizer_config.json."""
    kind = tokenizer.vocab.kind
    published = not tokenizer.pattern.bigram
    reason = why_not("hf", tokenizer.vocab) or (
        "a published pattern cuts where no analyser is asked" if published else ""
    )
    if kind in ("wordpiece", "word"):
        reason = f"a {kind} vocabulary spells a piece after a cut as the beginning of a new word, and decodes to one"
    if reason:
        raise ArtifactError(f"no analyser at run time: {reason}", hint="--model unigram, bpe or bpe-bytes")
    recipe = tokenizer.recipe
    return {
        "policy": recipe.segment.policy,
        "split": recipe.pretokenize.split,
        "digits": recipe.pretokenize.digits,
        "jamo": recipe.jamo,
        "trained_with": str(tokenizer.signature.get("segmenter", "")),
    }


def save_with_kiwi(
    tokenizer: Tokenizer,
    path: str | Path,
    *,
    user_dictionary: str | Path | None = None,
    extra: Mapping[str, str | bytes] | None = None,
    force: bool = True,
) -> Path:
    """Write a folder whose `AutoTokenizer` asks Kiwi while it reads.

    It loads as `AutoTokenizer.from_pretrained(path)` after `import koktok.integrations.transformers`, or with
    `trust_remote_code=True`; for both, koktok and kiwipiepy must be installed. `Tokenizer.load` and
    `PreTrainedTokenizerFast.from_pretrained` read the same folder and ask nobody.
    """
    settings = settings_of(tokenizer)
    # Kiwi is asked for what the pattern has cut.
    files = files_of(tokenizer.recipe, tokenizer.vocab, tokenizer.signature, earlier=True)
    files["tokenizer_config.json"] = with_class(str(files["tokenizer_config.json"]), settings)
    files[STUB_NAME] = STUB
    if user_dictionary is not None:
        try:
            files[DICTIONARY] = Path(user_dictionary).read_bytes()
        except OSError as error:
            raise InputError(f"the user dictionary `{user_dictionary}` cannot be read: {error}") from error
    return write_folder(path, with_extra(files, extra), TOKENIZER, force=force)


def with_class(config: str, settings: Mapping[str, Any]) -> str:
    """A tokenizer_config.json that names the run-time class and where to find it.

    Examples
    --------
    >>> json.loads(with_class("{}", {"policy": "josa"}))["auto_map"]
    {'AutoTokenizer': [None, 'koktok_kiwi.KoktokKiwiTokenizer']}
    """
    content = json.loads(config)
    content["auto_map"] = {"AutoTokenizer": [None, f"{Path(STUB_NAME).stem}.KoktokKiwiTokenizer"]}
    content["koktok_kiwi"] = dict(settings)
    content["tokenizer_class"] = "KoktokKiwiTokenizer"
    return json.dumps(content, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


@cache
def _kiwi(process: int, user_dictionary: str | None, _changed: int) -> tuple[Segmenter, threading.Lock]:
    """One Kiwi a process and dictionary, whoever asks; the parent's stays alive, for its threads cannot be joined here."""
    del process
    return segmenter_for("kiwi", user_dictionary=user_dictionary), threading.Lock()


class Cutter:
    """Offsets at which a pretoken is cut between its morphemes; each word is analysed once.

    Safe in threads, and in processes that were forked: Kiwi's own threads do not live on in a child, so the child loads
    a Kiwi of its own and keeps what was analysed before.

    Examples
    --------
    >>> cutter = Cutter()
    >>> cutter.cuts(" 학교에서")
    [3]
    """

    def __init__(
        self,
        *,
        policy: str = "morphemes",
        split: Any = "eojeol",
        digits: Any = "single",
        jamo: bool | str = False,
        user_dictionary: str | None = None,
        segmenter: Segmenter | None = None,
    ) -> None:
        self._settings = {"policy": policy, "split": split, "digits": digits, "jamo": jamo}
        self._dictionary = user_dictionary
        self._policy = Policy.parse(policy)
        self.words = Pattern(split=split, digits=digits)
        self._jamo = jamo
        self._given = segmenter
        self._lock = threading.Lock()
        self._found: dict[str, list[int]] = {}

    @property
    def signature(self) -> str:
        """Versions of the analyser and its model, and the digest of the user dictionary."""
        return self._analyser()[0].signature()

    def _analyser(self) -> tuple[Segmenter, threading.Lock]:
        if self._given is not None:
            return self._given, self._lock
        changed = Path(self._dictionary).stat().st_mtime_ns if self._dictionary else 0
        return _kiwi(os.getpid(), self._dictionary, changed)

    def cuts(self, pretoken: str) -> list[int]:
        """Offsets inside `pretoken`, rising; a pretoken that crosses spaces is cut inside each of its words."""
        words = self.words.pretokenize(pretoken)
        known = self.learn(words)
        cuts, at = [], 0
        for word in words:
            text = word.lstrip(" ")
            cuts += [at + len(word) - len(text) + cut for cut in known[text]]
            at += len(word)
        return cuts

    def learn(self, words: Iterable[str]) -> dict[str, list[int]]:
        """The cuts of some words (as the pattern cuts them) without their spaces; new ones are analysed in one go."""
        texts = dict.fromkeys(word.lstrip(" ") for word in words)
        known = {text: cuts for text in texts if (cuts := self._found.get(text)) is not None}
        new = {text: bare(hangul.join(text) if self._jamo else text) for text in texts if text not in known}
        if not new:
            return known
        asked = [text for text in new if new[text]]
        found = {text: list[int]() for text in new}
        if asked:
            segmenter, lock = self._analyser()
            with lock:
                for text, morphemes in zip(asked, segmenter.analyse([new[text] for text in asked]), strict=True):
                    found[text] = self._cuts_of(text, new[text], morphemes)
        if len(self._found) + len(found) > CACHED_WORDS:
            self._found = {}
        self._found.update(found)
        return known | found

    def _cuts_of(self, text: str, word: str, morphemes: tuple[Morpheme, ...]) -> list[int]:
        """Cuts of a word as cuts of its spelling, `text`, where some or all syllables are taken apart."""
        cuts = [cut.offset for cut in cuts_of(word, morphemes, self._policy)]
        if not self._jamo:
            return cuts
        at = [0]
        for char in word:
            n = next(n for n in (1, 2, 3) if hangul.join(text[at[-1] : at[-1] + n]) == char)
            at.append(at[-1] + n)
        codas = [cut.offset for cut in codas_of(word, morphemes, self._policy)]
        inside = [at[i + 1] - 1 for i in codas if at[i + 1] - at[i] > 1]
        return sorted({*(at[cut] for cut in cuts), *inside})

    def __getstate__(self) -> dict[str, Any]:
        return {**self._settings, "user_dictionary": self._dictionary, "segmenter": self._given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Cutter.__init__(self, **state)
