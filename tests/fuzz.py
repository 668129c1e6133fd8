"""Random strings over all kinds, styles and formats, held against `koktok verify`; not collected by pytest.

    python tests/fuzz.py 100000 [--seed 0] [--models unigram,bpe] [--javascript]

Each model is trained on corpora/mini, and gets its share of the strings: words of it, random syllables, and what has broken
tokenizers (tests/strategies.py). `verify` compares ids, texts and offsets with tokenizers, transformers,
sentencepiece and tiktoken; llama.cpp (`pip install cyllama`) and JavaScript (`--javascript`, which asks npm) get the first
strings of each. The end is 1 where anything differed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import javascript
import strategies as alphabets
from conftest import MINI
from llama_cpp import llama_cpp_ids

from koktok import Recipe, Tokenizer
from koktok.formats import gguf, tiktoken
from koktok.formats.limits import unsupported_reason
from koktok.pipeline.train import train
from koktok.text.sources import Source
from koktok.verification import Verification, verify
from koktok.verification.finding import CheckResult

FEW = 2_000
"""Strings for what runs in a process of its own."""

FOLDS = ("fullwidth", "spaces", "quotes", "dashes", "halfwidth_jamo", "compatibility", "lone_jamo")

MODELS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "unigram-em": {"model": "unigram-em"},
    "bpe": {"model": "bpe"},
    "bpe-bytes": {"model": "bpe-bytes"},
    "wordpiece": {"model": "wordpiece", "vocab_size": 4000},
    "wordpiece-bytes": {"model": "wordpiece-bytes"},
    "word": {"model": "word"},
    "syllable": {"model": "syllable", "vocab_size": 1800},
    "jamo": {"model": "jamo", "vocab_size": 760},
    "ngram": {"model": "ngram"},
    "morpheme": {"model": "morpheme"},
    "unigram in jamo": {"jamo": True},
    "unigram, jamo fallback": {"jamo": "fallback"},
    "bpe in jamo": {"jamo": True, "model": "bpe"},
    "unigram, superwords": {"superwords": 0.3},
    "bpe, superwords": {"model": "bpe", "superwords": 0.3},
    "bpe-bytes, superwords": {"model": "bpe-bytes", "superwords": 0.3},
    "unigram, folds": {"repeats": 2, **dict.fromkeys(FOLDS, True)},
    "unigram, scripts": {"digits": "single", "split": "scripts"},
    "bpe-bytes, free digits": {"model": "bpe-bytes", "digits": "free"},
    "bpe-bytes, llama3": {"model": "bpe-bytes", "pattern": "llama3"},
    "unigram, roberta": {"style": "roberta"},
    "unigram, bert, no prefix": {"style": "bert", "prefix_space": False},
    "unigram, t5": {"style": "t5"},
    "unigram, superwords, roberta": {"superwords": 0.3, "style": "roberta"},
    "bpe, bert": {"model": "bpe", "style": "bert"},
    "bpe-bytes, roberta": {"model": "bpe-bytes", "style": "roberta"},
    "bpe-bytes, gpt, prefix": {"model": "bpe-bytes", "style": "gpt", "prefix_space": True},
    "wordpiece, bert": {"model": "wordpiece", "vocab_size": 4000, "style": "bert"},
    "wordpiece-bytes, bert": {"model": "wordpiece-bytes", "style": "bert"},
    "unigram in jamo, bert": {"jamo": True, "style": "bert"},
    "bpe, llama": {"model": "bpe", "style": "llama", "chat_template": "llama-3"},
}
"""What is trained, by fields of the recipe."""


def strings(chance: random.Random, words: list[str], n: int) -> Iterator[str]:
    """Random strings, the nasty kinds more often than Unicode has them."""
    nasty = [
        alphabets.NASTY,
        alphabets.SPACES,
        alphabets.ZERO_WIDTH,
        alphabets.SINGLETONS,
        alphabets.MARKS,
        alphabets.OLD_LEADS + alphabets.OLD_VOWELS + alphabets.OLD_FINALS,
        alphabets.LEADS + alphabets.VOWELS + alphabets.FINALS,
        "0123456789,.-",
        "abcdefghijklmnopqrstuvwxyz ABC_",
        "ㅋㅎㅠㅜㅏㅣㄱㄴ!?~…^.",
    ]
    parts: list[Callable[[], str]] = [
        lambda: chance.choice(words),
        lambda: "".join(chr(chance.randint(0xAC00, 0xD7A3)) for _ in range(chance.randint(1, 5))),
        lambda: chance.choice(alphabets.EMOJI),
        lambda: chance.choice(alphabets.SPECIALS),
        lambda: "".join(chance.choice(chance.choice(nasty)) for _ in range(chance.randint(1, 6))),
        lambda: "".join(_any(chance) for _ in range(chance.randint(1, 4))),
    ]
    for _ in range(n):
        found = ""
        for part in chance.choices(parts, weights=(30, 20, 5, 7, 23, 15), k=chance.randint(1, 8)):
            found += part() + " " * (chance.random() < 0.6)
        yield found


def _any(chance: random.Random) -> str:
    """A character of any plane, the first ones more often; no surrogate."""
    code = chance.randint(0, chance.choice((0x2FF, 0xFFFF, 0x10FFFF)))
    return "" if 0xD800 <= code < 0xE000 else chr(code)


def exported(tokenizer: Tokenizer, out: Path) -> list[Path]:
    """A tiktoken export, where there is one."""
    if unsupported_reason("tiktoken", tokenizer.vocab, jamo=bool(tokenizer.recipe.jamo)):
        return []
    out.mkdir()
    ranks = tiktoken.ranks_of(tokenizer.vocab, tokenizer.pattern, "fuzz")
    for name, text in tiktoken.files(ranks, javascript=tokenizer.pattern.javascript).items():
        (out / name).write_text(text, encoding="utf-8")
    return [out]


def elsewhere(
    tokenizer: Tokenizer, folder: Path, exports: list[Path], texts: list[str], npm: Path | None
) -> list[CheckResult]:
    """llama.cpp and JavaScript, on the texts that cards and guides promise the same ids for."""
    normal = [text for text in map(tokenizer.normalize, texts) if "\0" not in text]
    if tokenizer.vocab.kind == "unigram":  # no byte fallback there
        fragments = set(tokenizer.vocab.fragment_ids)
        normal = [text for text in normal if not set(tokenizer.encode(text).ids) & fragments]
    found = []

    def see(name: str, given: list[str], rows: list[list[int]]) -> None:
        result = CheckResult(f"ids: {name}", message="the ids of Tokenizer")
        for text, ids in zip(given, rows, strict=True):
            ours = tokenizer.encode(text).ids
            result.record(ids == ours, "{}: {} in place of {}", text, ids, ours)
        found.append(result)

    if find_spec("cyllama") and not unsupported_reason(
        "gguf", tokenizer.vocab, tokenizer.pattern, jamo=bool(tokenizer.recipe.jamo)
    ):
        table = gguf.table_of(tokenizer.vocab, tokenizer.pattern, tokenizer.normalizer, prefix=tokenizer.prefix)
        file = gguf.write(table, folder.with_suffix(".gguf"))
        given = [text for text in normal if text.strip() or not tokenizer.prefix]
        see("llama.cpp", given, llama_cpp_ids(file, given))
    if npm and (folder / "tokenizer.json").exists() and not tokenizer.recipe.jamo:
        for name in ("tokenizers", "transformers"):
            see(f"{name}.js", normal, [ids for ids, _ in javascript.rows_of(npm, name, folder, normal, folder.parent)])
        for place in exports:
            given = [text and " " * tokenizer.prefix + text for text in normal]
            rows = [ids for ids, _ in javascript.rows_of(npm, "js-tiktoken", place, given, folder.parent)]
            see("js-tiktoken", normal, rows)
    return found


def told(name: str, report: Verification, more: list[CheckResult], seconds: float) -> bool:
    """Print what was found of a model; whether all of it was as it must be."""
    findings = [*report.findings, *more]
    wrong = [finding for finding in findings if finding.outcome == "fail"]
    looks = sum(finding.checked for finding in findings)
    formats = ", ".join(
        f"{f.check.removeprefix('ids: ')} {f.checked:,}" for f in findings if f.check.startswith("ids: ")
    )
    print(
        f"{name}: {'FAIL' if wrong else 'pass'}; {report.lines:,} strings, {looks:,} looks, {seconds:.0f} s; {formats}"
    )
    for finding in wrong:
        print(f"    {finding.check}: {finding.wrong:,} of {finding.checked:,}; {' | '.join(finding.examples)}")
    sys.stdout.flush()
    return not wrong


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("strings", type=int, help="over all models together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--models", default=";".join(MODELS), help="names between semicolons; some of them: " + "; ".join(MODELS)
    )
    parser.add_argument("--javascript", action="store_true", help="npm installs half a gigabyte for it")
    given = parser.parse_args()
    names = [name.strip() for name in given.models.split(";")]
    mini = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    words = [word for file in sorted(MINI.glob("*.txt")) for word in file.read_text(encoding="utf-8").split()]
    share, good = -(-given.strings // len(names)), True
    with tempfile.TemporaryDirectory(prefix="koktok-fuzz-") as place:
        base = Path(place)
        if given.javascript:
            (base / "npm").mkdir()
        npm = javascript.install(base / "npm") if given.javascript else None
        for k, name in enumerate(names):
            begun = time.monotonic()
            recipe = Recipe().changed(**{"vocab_size": 2300, "segmenter": "whitespace", "holdout": 0.0, **MODELS[name]})
            tokenizer = train([mini], recipe).tokenizer
            folder = tokenizer.save(base / f"{k}")
            exports = exported(tokenizer, base / f"{k}-ranks")
            texts = list(strings(random.Random(f"{given.seed}:{name}"), words, share))
            report = verify(folder, texts, exports=exports, sample=FEW)
            more = elsewhere(tokenizer, folder, exports, texts[:FEW], npm)
            good &= told(name, report, more, time.monotonic() - begun)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
