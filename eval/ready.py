"""The vocabularies that travel with koktok: trained anew, and measured beside SentencePiece on the same text.

    python -m eval.ready build [NAME...]
    python -m eval.ready table [DATA] [--cap 110000] [--no-peers] [--beside package:llama3 ...]

`build` trains them (all by default) with `koktok train corpus:... --recipe koktok/tokenizer/vocabularies/NAME.toml`, and copies koktok.toml, the
card and the packed tokenizer.json into NAME/. `table` measures on what DATA (corpus:bench-ko by default) holds out, on English that
corpus:open-en holds out, and on Python of corpus:code: tokens per eojeol, F1 at the boundaries of human treebanks, recall before particles
and endings, tokens per English word and per character of code, beside SentencePiece trained on the same text at the same size, and beside
tokenizers that are named.
"""

from __future__ import annotations

import argparse
import io
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

from eval.machine import machine
from eval.texts import CAP, GOLDS, data_of, split
from koktok.corpora.fetch import fetch, texts
from koktok.files import write_file
from koktok.metrics import GoldPage, Material, Settings, Text, score
from koktok.metrics.gold import read_gold
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.folder import CARD, MARK
from koktok.runtimes.sentencepiece.adapter import SentencePiece
from koktok.tokenizer.open import load
from koktok.tokenizer.ready import find, ready_vocabularies


def build(name: str) -> None:
    ready = find(name)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / name
        command = [sys.executable, "-m", "koktok", "train", *ready.text, "--recipe", str(ready.file), "-o", str(folder)]
        subprocess.run([*command, "-q"], check=True, stdout=subprocess.DEVNULL)
        data = lzma.compress((folder / "tokenizer.json").read_bytes(), preset=9 | lzma.PRESET_EXTREME)
        write_file(ready.file.with_suffix("") / "tokenizer.json.xz", data)
        for file in (MARK, CARD):
            write_file(ready.file.with_suffix("") / file, (folder / file).read_bytes())
        assert not find(name).differences(folder)
    print(f"{name}: {find(name).digest}, {len(data):,} bytes", flush=True)


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def table(data: Path, cap: int, *, peers: bool, beside: list[str]) -> None:
    held = Text.of(split(data / "text", cap)[1])
    english = Text.of({"English": _lines(texts("open-en/held-out"))})
    code = _lines(sorted(fetch("code").glob("*.py")))
    golds = [GoldPage(read_gold(data / "gold" / gold)) for gold in GOLDS.split(",")]
    names = [page.gold.name for page in golds]
    print(
        f"{machine()}\n\n| tokenizer | ids | tokens per eojeol | {' | '.join(f'F1 {name}' for name in names)} | josa | eomi",
        end="",
    )
    print(" | bytes of fallback | tokens per English word | per character of code", end="")
    print(f" |\n|{'---|' * (8 + len(names))}")
    done: set[tuple[int, tuple[str, ...]]] = set()
    for ready in ready_vocabularies():
        like = (ready.recipe.train.vocab_size, ready.text)
        if peers and like not in done:
            done.add(like)
            on = " + ".join(text.removeprefix("corpus:") for text in ready.text)
            _row(f"SentencePiece Unigram, its defaults, on {on}", _sentencepiece(*like), held, english, code, golds)
        _row(f"`{ready.name}`", load(f"koktok:{ready.name}"), held, english, code, golds)
    for reference in beside:
        _row(f"`{reference}`", load(reference), held, english, code, golds)


def _row(name: str, subject: Tokenizer, held: Text, english: Text, code: list[str], golds: list[GoldPage]) -> None:
    v = score(subject, Material(held, golds=golds), Settings(resamples=0)).values
    first = golds[0].gold.name
    cells = [name, f"{subject.size:,}", f"{v['fertility'].value:.3f}"]
    cells += [f"{v[f'boundary_f1@{page.gold.name}'].value:.3f}" for page in golds]
    cells += [f"{v[f'recall_{kind}@{first}'].value:.3f}" for kind in ("noun_particle", "verb_ending")]
    cells += [
        f"{v['fallback_bytes'].value:.3%}",
        f"{score(subject, Material(english), Settings(resamples=0)).values['fertility'].value:.3f}",
        f"{len(subject.encode_lines(code).ids) / sum(map(len, code)):.3f}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def _sentencepiece(size: int, corpora: tuple[str, ...]) -> Tokenizer:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_lines([file for name in corpora for file in texts(name.removeprefix("corpus:"))])),
        model_writer=model,
        vocab_size=size,
        byte_fallback=True,
        max_sentence_length=1 << 20,
        num_threads=2,
        minloglevel=2,
    )
    return SentencePiece(model.getvalue(), name="SentencePiece")


def _lines(files: list[Path]) -> list[str]:
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["build", "table"])
    parser.add_argument("rest", nargs="*", help="build: names; table: DATA")
    parser.add_argument(
        "--cap", type=int, default=CAP, help="table: eojeols of each file, of which a tenth is held out"
    )
    parser.add_argument(
        "--beside", nargs="*", default=[], help="table: other tokenizers, as `koktok report` names them"
    )
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="table: SentencePiece too")
    given = parser.parse_args()
    if given.what == "build":
        for name in given.rest or [ready.name for ready in ready_vocabularies()]:
            build(name)
    else:
        table(data_of((given.rest or ["corpus:bench-ko"])[0]), given.cap, peers=given.peers, beside=given.beside)


if __name__ == "__main__":
    main()
