"""Kills at random: every verb that writes, again and again in a child that is killed with SIGKILL, and what that leaves.

    python tests/kills.py 100 [--seed 0]

After each kill every folder loads, as it was or as it was to be, and what a user keeps in it is there; the same commands
once more give byte for byte what they give when nobody kills them, and nothing hidden is left.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

from koktok import Tokenizer
from koktok.bulk.shards import TokenFiles
from koktok.cli import app
from koktok.count import counting
from koktok.formats.tiktoken import load as load_ranks

ROOT = Path(__file__).resolve().parent.parent
TEXT = str(ROOT / "corpora" / "mini")
MINE = "what a user keeps here"
runner = CliRunner()


def run(*words: object) -> None:
    """A verb, which must succeed."""
    done = runner.invoke(app, list(map(str, words)))
    if done.exit_code:
        raise RuntimeError(f"koktok {' '.join(map(str, words))}: {done.output}") from done.exception


def encoded(base: Path) -> Path:
    """Token files are written where nothing is, so that the last ones go first, as a user would do it."""
    out = base / "ids"
    if (out / "manifest.json").exists():
        out.rename(base / "ids.old")
    shutil.rmtree(base / "ids.old", ignore_errors=True)
    return out


def verbs(base: Path, turn: int) -> dict[str, Callable[[], None]]:
    """What is run, over and over; with other bytes, and some other files, in the other turn."""
    quick = ("--segmenter", "whitespace", "--no-compare", "-q")
    style, named, sentences = (("bert", "a", 2), ("roberta", "b", 3))[turn]
    kept = base / "kept"
    return {
        "train": lambda: run("train", TEXT, *quick, "--vocab-size", 2000 + turn, "--out", base / "trained"),
        "export hf": lambda: run("export", kept / "uni", "--to", "hf", "--style", style, "--out", base / "hf"),
        "export hf-kiwi": lambda: run(
            "export", kept / ("uni", "bytes")[turn], "--to", "hf-kiwi", "--out", base / "kiwi"
        ),
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
            "encode", kept / "uni", TEXT, "--format", "npy", "--shard-tokens", 2000, "--out", encoded(base)
        ),
        "count": lambda: run("count", TEXT, "--runs", "--min-count", turn + 1, "-q", "-o", base / "c.parquet"),
        "fetch": lambda: run("corpus", "fetch", "mini", "--force"),
    }


FOLDERS = ("trained", "hf", "kiwi", "imported", "tiktoken", "report")


def state(base: Path) -> dict[str, bytes]:
    return {path.relative_to(base).as_posix(): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def check(base: Path) -> None:
    """What holds at any moment."""
    for name in FOLDERS:
        assert (base / name / "mine" / "notes").read_text() == MINE, name
        assert (base / name / "model.safetensors").read_text() == MINE, name
    for name in FOLDERS[:4]:
        tokenizer = Tokenizer.load(base / name)
        assert tokenizer.decode(tokenizer.encode("나는 집에").ids) == "나는 집에", name
    assert len(load_ranks(base / "tiktoken").ranks) > 1000
    assert all(counting.shard_of(base / name).rows for name in ("c.parquet", "c.runs.parquet"))
    if (base / "ids").exists():
        TokenFiles.open(base / "ids")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counting.SHARD = 20_000  # a count of many parts, of little text
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="koktok-kills-") as folder:
        base = Path(folder)
        os.environ["KOKTOK_CACHE"] = str(base / "cache")
        for name, words in {"uni": (), "bytes": ("--model", "bpe-bytes")}.items():
            run("train", TEXT, "--segmenter", "whitespace", "--vocab-size", 2000, *words, "--out", base / "kept" / name)
        for verb in verbs(base, 0).values():
            verb()
        for name in FOLDERS:
            (base / name / "mine").mkdir()
            (base / name / "mine" / "notes").write_text(MINE)
            (base / name / "model.safetensors").write_text(MINE)
        lengths: dict[str, float] = {}
        wanted = []
        for turn in (1, 0):
            for name, verb in verbs(base, turn).items():
                begun = time.monotonic()
                verb()
                lengths[name] = time.monotonic() - begun
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
                path.name for path in base.rglob("*") if path.name in ("koktok.lock", "journal.json", "progress.jsonl")
            ]
            hit[", ".join(sorted(left)) or "nothing"] += 1
            check(base)
            for turn, bytes_wanted in zip((1, 0), wanted, strict=True):
                verbs(base, turn)[name]()
                check(base)
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
