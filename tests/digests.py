"""Digests of what koktok makes of corpora/mini, to compare before and after a change: `python tests/digests.py`.

One line for each of fourteen recipes (tokenizer.json), an extension, instances, and the JSON of a report.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = "--vocab-size 2300"
RECIPES = {
    "default": SIZE,
    "short": f"{SIZE} --preset short",
    "aligned": f"{SIZE} --preset aligned",
    "superwords": f"{SIZE} --superwords 0.3 --price bits",
    "jamo": f"{SIZE} --jamo",
    "spm": f"{SIZE} --backend spm",
    "bpe": f"{SIZE} --model bpe",
    "bpe-superwords": f"{SIZE} --model bpe --superwords 0.1",
    "bpe-bytes": f"{SIZE} --model bpe-bytes --pattern llama3",
    "wordpiece": f"{SIZE} --model wordpiece",
    "syllable": "--vocab-size 1800 --model syllable",
    "word": f"{SIZE} --model word",
    "morpheme": f"{SIZE} --model morpheme",
    "unigram-em": f"{SIZE} --model unigram-em",
}
MINI = Path(__file__).resolve().parents[1] / "corpora" / "mini"


def run(*args: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "koktok", *map(str, args), "-q"], check=True, stdout=subprocess.DEVNULL)


def digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        for recipe, options in RECIPES.items():
            run("train", "corpus:mini", *options.split(), "-o", home / recipe)
            made = [home / recipe / name for name in ("tokenizer.json", "vocab.json")]
            print(recipe, digest(*(file for file in made if file.exists())), flush=True)
        run("extend", home / "bpe-bytes", "corpus:mini", "--add", "300", "-o", home / "extension")
        print("extension", digest(home / "extension" / "tokenizer.json"))
        run("instances", home / "wordpiece", MINI, "--length", "64", "-o", home / "instances")
        print("instances", digest(*sorted((home / "instances").glob("*.arrow"))), flush=True)
        out = home / "report"
        run("report", home / "default", "syllables", "--text", MINI / "essay.txt", "-o", out)
        found = json.loads((out / "report.json").read_text(encoding="utf-8"))
        print(
            "report",
            hashlib.sha256(json.dumps([row["scores"] for row in found["rows"]], sort_keys=True).encode()).hexdigest()[
                :16
            ],
        )


if __name__ == "__main__":
    main()
