"""Kills at random: every verb that writes, again and again in a child that is killed with SIGKILL, and what that leaves.

    python tests/kills.py 100 [--seed 0] [--verbs train,extend]

After each kill every folder loads, as it was or as it was to be, and what a user keeps in it is there; the same commands
once more give byte for byte what they give when nobody kills them, and nothing hidden is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

import koktok
from koktok import load
from koktok.cli import app
from koktok.count import shards
from koktok.count.count_files import CountFile
from koktok.formats import gguf
from koktok.formats.tiktoken import load as load_ranks
from koktok.token_files import TokenFiles

ROOT = Path(__file__).resolve().parent.parent
TEXT = str(ROOT / "corpora" / "mini")
MINE = "what a user keeps here"
runner = CliRunner()


def run(*words: object) -> None:
    """A verb, which must succeed."""
    force = [] if words[:2] == ("corpus", "fetch") else ["--force"]  # where that is another thing
    done = runner.invoke(app, [*map(str, words), *force])
    if done.exit_code:
        raise RuntimeError(f"koktok {' '.join(map(str, words))}: {done.output}") from done.exception


def model_for(tokenizer: Path, out: Path) -> None:
    """A model of two matrices, with a row for every id."""
    size = load(tokenizer).vocab.size
    rows = np.random.default_rng(0).normal(size=(size, 8)).astype(np.float32)
    out.mkdir()
    save_file({"model.embed_tokens.weight": rows, "lm_head.weight": rows[::-1].copy()}, out / "model.safetensors")
    (out / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": size}))


def verbs(base: Path, turn: int) -> dict[str, Callable[[], None]]:
    """What is run, over and over; with other bytes, and some other files, in the other turn."""
    quick = ("--segmenter", "whitespace", "--no-compare", "-q")
    style, named, sentences = (("bert", "a", 2), ("roberta", "b", 3))[turn]
    kept = base / "kept"
    return {
        "train": lambda: run("train", TEXT, *quick, "--vocab-size", 2000 + turn, "--out", base / "trained"),
        "export hf": lambda: run("export", kept / "uni", "--to", "hf", "--style", style, "--out", base / "hf"),
        "export tiktoken": lambda: run(
            "export", kept / "bytes", "--to", "tiktoken", "--name", named, "--out", base / "tiktoken"
        ),
        "export spm": lambda: run(
            "export",
            kept / "uni",
            "--to",
            "spm",
            *(["--user-defined", "<s>"] if turn else []),
            "--out",
            base / "ko.model",
        ),
        "import": lambda: run("import", kept / ("uni", "bytes")[turn] / "tokenizer.json", "--out", base / "imported"),
        "report": lambda: run(
            "report",
            kept / "uni",
            "--text",
            TEXT,
            "--resamples",
            0,
            "--sentences",
            sentences,
            "-q",
            "-o",
            base / "report",
        ),
        "encode": lambda: run(
            "encode", kept / "uni", TEXT, "--format", "npy", "--shard-tokens", 2000, "--out", base / "ids"
        ),
        "count": lambda: run("count", TEXT, "--runs", "--min-count", turn + 1, "-q", "-o", base / "c.parquet"),
        "extend": lambda: run("extend", kept / "bytes", TEXT, "--add", 40 + turn, "-q", "-o", base / "extended"),
        "extend --apply": lambda: run(
            "extend",
            kept / "extension",
            "--apply",
            kept / "model",
            "--init",
            ("mean", "eeve")[turn],
            "-q",
            "-o",
            base / "model",
        ),
        "instances": lambda: run(
            "instances",
            kept / "uni",
            TEXT,
            "--segmenter",
            "whitespace",
            "--shard-tokens",
            5000,
            "--shard-instances",
            20,
            "-q",
            "--packed",
            base / "packed",
            "-o",
            base / "instances",
        ),
        "playground": lambda: run("playground", kept / "uni", "--words", turn, "-q", "-o", base / "page.html"),
        "export gguf": lambda: run(
            "export", kept / "uni", "--to", "gguf", "--name", named, "-q", "-o", base / "ko.gguf"
        ),
        "extend --prune": lambda: run(
            "extend", kept / "bytes", f"{TEXT}/news.txt", "--prune", 5 + turn, "-q", "-o", base / "pruned"
        ),
        "fetch": lambda: run("corpus", "fetch", "mini", "--force"),
    }


FOLDERS = {
    "train": "trained",
    "export hf": "hf",
    "import": "imported",
    "export tiktoken": "tiktoken",
    "report": "report",
    "extend": "extended",
    "extend --apply": "model",
}
"""Folders that a user may keep something in, by the verb that writes them."""

TOKENIZERS = ("trained", "hf", "imported")


def state(base: Path) -> dict[str, bytes]:
    return {path.relative_to(base).as_posix(): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def check(base: Path, chosen: list[str]) -> None:
    """What holds at any moment, of what the chosen verbs write."""
    for name in (FOLDERS[verb] for verb in chosen if verb in FOLDERS):
        assert (base / name / "mine" / "notes").read_text() == MINE, name
        assert (base / name / "weights.pt").read_text() == MINE, name
        if name in TOKENIZERS:
            tokenizer = koktok.load(base / name)
            assert tokenizer.decode(tokenizer.encode("나는 집에").ids) == "나는 집에", name
    looks: dict[str, Callable[[], bool]] = {
        "export tiktoken": lambda: len(load_ranks(base / "tiktoken").ranks) > 1000,
        "count": lambda: all(CountFile.open(base / name).every(1)[0] for name in ("c.parquet", "c.runs.parquet")),
        "extend": lambda: bool(koktok.load(base / "extended" / "tokenizer.json").encode("나는 집에").ids),
        "extend --apply": lambda: len(load_file(base / "model" / "model.safetensors")["lm_head.weight"]) > 2000,
        "playground": lambda: (base / "page.html").read_text(encoding="utf-8").rstrip().endswith("</html>"),
        "export gguf": lambda: len(gguf.read(base / "ko.gguf").tokens) > 1000,
        "instances": lambda: not (base / "instances").exists() or (base / "instances" / "manifest.json").exists(),
        "encode": lambda: not (base / "ids").exists() or bool(TokenFiles.open(base / "ids")),
    }
    for verb in chosen:
        assert looks.get(verb, lambda: True)(), verb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbs", help=f"some of {', '.join(verbs(Path(), 0))}; all without it")
    given = parser.parse_args()
    chosen = given.verbs.split(",") if given.verbs else [*verbs(Path(), 0)]
    shards.SHARD = 20_000  # a count of many parts, of little text
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="koktok-kills-") as folder:
        base = Path(folder)
        os.environ["KOKTOK_CACHE"] = str(base / "cache")
        for name, words in {"uni": (), "bytes": ("--model", "bpe-bytes")}.items():
            run("train", TEXT, "--segmenter", "whitespace", "--vocab-size", 2000, *words, "--out", base / "kept" / name)
        if "extend --apply" in chosen:
            run("extend", base / "kept" / "bytes", TEXT, "--add", 40, "-q", "-o", base / "kept" / "extension")
            model_for(base / "kept" / "bytes", base / "kept" / "model")
        for verb in chosen:
            verbs(base, 0)[verb]()
        for name in (FOLDERS[verb] for verb in chosen if verb in FOLDERS):
            (base / name / "mine").mkdir()
            (base / name / "mine" / "notes").write_text(MINE)
            (base / name / "weights.pt").write_text(MINE)
        lengths: dict[str, float] = {}
        wanted = []
        for turn in (1, 0):
            for name in chosen:
                begun = time.monotonic()
                verbs(base, turn)[name]()
                lengths[name] = time.monotonic() - begun
            check(base, chosen)  # which leaves notes of what it loaded in the cache
            wanted.append(state(base))
        hit: Counter[str] = Counter()
        for kill in range(given.kills):
            name = list(lengths)[kill % len(lengths)]
            pid = os.fork()
            if not pid:
                try:
                    while True:
                        for turn in (1, 0):
                            verbs(base, turn)[name]()
                finally:
                    os._exit(1)  # an error, and no kill
            time.sleep(chance.uniform(0, 2 * lengths[name]))
            os.kill(pid, signal.SIGKILL)
            assert os.WIFSIGNALED(os.waitpid(pid, 0)[1]), f"{name} failed by itself"
            left = [
                path.name for path in base.rglob("*") if path.name in ("koktok.lock", ".decision", "progress.jsonl")
            ]
            hit[", ".join(sorted(left)) or "nothing"] += 1
            check(base, chosen)
            for turn, bytes_wanted in zip((1, 0), wanted, strict=True):
                verbs(base, turn)[name]()
                check(base, chosen)
                found = state(base)
                for file in found.keys() | wanted[1].keys():
                    of_this_turn = found.get(file) in (bytes_wanted.get(file), wanted[1].get(file))
                    assert of_this_turn, f"{file} after a kill of {name}"
            assert found == wanted[1], f"not as before a kill of {name}"
        print(f"{given.kills} kills of {len(lengths)} verbs, every one survived; what they left:")
        for what, times in sorted(hit.items()):
            print(f"    {times:4}  {what}")


if __name__ == "__main__":
    if not hasattr(os, "fork"):
        sys.exit("this script forks")
    main()
