"""The worst text there is, at its full size: time, memory and linear growth of every stage.

    python -m eval.worst [--stages count,segment] [--cases ...] [--share 1.0] [--report FILE]

A case is a function from a size to bytes (`CASES`); a stage is a function from bytes to whatever it makes (`STAGES`).
Every pair of them runs twice in a process of its own, at an eighth of the size and at the size. Times are of processor, the
analyser's processes among it, so that a busy machine changes little; linear is a ratio of about 8. Memory is the peak of the
process, less what it had before the stage. A case that a stage
refuses is told with its message. Another stage adds itself to `STAGES`.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eval.machine import Told, machine

if TYPE_CHECKING:
    from koktok.tokenizer import TrainedTokenizer

WARM = "나는 학교에 간다.\n".encode()


def hanja(size: int) -> bytes:
    """Distinct words of two to four hanja, ten a line: 1,000,000 of them at the full size."""
    chance = random.Random(0)
    words: set[str] = set()
    length = 0
    while length < size:
        word = "".join(chr(chance.randint(0x4E00, 0x9FA5)) for _ in range(chance.choice((2, 3, 4))))
        if word not in words:
            words.add(word)
            length += 3 * len(word) + 1
    ordered = sorted(words)
    return "\n".join(" ".join(ordered[i : i + 10]) for i in range(0, len(ordered), 10)).encode()


def filled(unit: str, size: int, line: int | None = None) -> bytes:
    """A unit again and again; a newline every `line` bytes."""
    data = unit.encode()
    whole = data * (size // len(data))
    if line is None:
        return whole
    step = line // len(data) * len(data)
    return b"\n".join(whole[i : i + step] for i in range(0, len(whole), step))


CASES: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "a 10 MB line without spaces": (10_000_000, lambda size: filled("가나다라마바사아자차카타파하", size)),
    "a million distinct hanja words": (10_000_000, hanja),
    "100 MB of ㅋ, lines of 1 MB": (100_000_000, lambda size: filled("ㅋ", size, 1_000_000)),
    "100 MB of ㅋ, one line": (100_000_000, lambda size: filled("ㅋ", size)),
    "10 MB of random bytes": (10_000_000, lambda size: random.Random(0).randbytes(size)),
    "10 MB of emoji joined": (
        10_000_000,
        lambda size: filled("\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d", size, 100_000),
    ),
    "10 MB of spaces": (10_000_000, lambda size: filled(" ", size)),
    "10 MB of one word": (10_000_000, lambda size: filled("학교에서는 ", size, 1000)),
}


def count(file: Path) -> Callable[[], str]:
    from koktok.count.counting import read
    from koktok.text.sources import Source

    def go() -> str:
        found = read([Source.of(file)], holdout=0.0).train
        return f"{len(found):,} distinct words of {found.total:,}"

    return go


def segment(file: Path) -> Callable[[], str]:
    from koktok.count.counting import read
    from koktok.count.prepared import prepare
    from koktok.segment import Policy, segment_counts
    from koktok.segment.workers import Workers, in_subprocess
    from koktok.text.normalize import Normalizer
    from koktok.text.pretokenize import Pattern
    from koktok.text.sources import Source

    workers = in_subprocess("kiwi")
    assert isinstance(workers, Workers)
    list(workers.serialized(["학교에"]))  # loaded before the clock starts

    def go() -> str:
        counts = prepare(read([Source.of(file)], holdout=0.0).train, Normalizer(), Pattern(digits="single"))
        found = segment_counts(counts, workers, Policy.parse("morphemes"))
        return f"{len(found):,} words, {len(found.offset):,} cuts, {len(workers.quarantined)} quarantined"

    return go


def tokenizer_of(kind: str) -> TrainedTokenizer:
    """A tokenizer whose pieces come from corpora/mini without any training: what is measured is the model, not the choice."""
    from koktok.recipe import Recipe
    from koktok.tokenizer import TrainedTokenizer
    from koktok.vocab import Vocab, spell

    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(Path("corpora/mini").glob("*.txt")))
    words = Counter(f" {word}" for word in text.split())
    parts = Counter(word[a:b] for word in words for a in range(len(word)) for b in range(a + 2, min(len(word), a + 6)))
    often = [part for part, n in sorted(parts.items(), key=lambda item: (-item[1], item[0])) if n > 1]
    often += ["ㅋㅋ", "ㅋㅋㅋㅋ", "ㅋ" * 8]
    pieces = list(dict.fromkeys([*often, *sorted(set("".join(often) + text))]))
    if kind == "unigram":
        return TrainedTokenizer(Recipe(), Vocab.unigram({piece: -1 - 0.001 * i for i, piece in enumerate(pieces)}))
    merged = dict.fromkeys(spell(piece)[:n] for piece in pieces for n in range(2, len(spell(piece)) + 1))
    return TrainedTokenizer(Recipe(train={"model": "bpe-bytes"}), Vocab.bpe_bytes(sorted(merged, key=len)))


def encode(kind: str, file: Path) -> Callable[[], str]:
    """Every line, in bulk."""
    from koktok.text.sources import Source, read

    encoder = tokenizer_of(kind).bulk_encoder

    def go() -> str:
        tokens = sum(len(tokens.ids) for _, tokens in encoder.stream(read(Source.of(file)), threads=1))
        return f"{tokens:,} tokens"

    return go


def encode_one(kind: str, file: Path) -> Callable[[], str]:
    """The whole file as one text, with pieces and offsets; bytes that are no UTF-8 become U+FFFD."""
    tokenizer = tokenizer_of(kind)
    text = file.read_bytes().decode("utf-8", "replace")
    return lambda: f"{len(tokenizer.encode(text)):,} tokens"


def decode(kind: str, file: Path) -> Callable[[], str]:
    """The ids of the whole file as one text."""
    tokenizer = tokenizer_of(kind)
    text = file.read_bytes().decode("utf-8", "replace")
    tokens = tokenizer.encode_ids([text])
    wanted = tokenizer.normalize(text)

    def go() -> str:
        (found,) = tokenizer.decode_ids(tokens, threads=1)
        return "the same text" if found == wanted else "ANOTHER TEXT"

    return go


STAGES: dict[str, Callable[[Path], Callable[[], str]]] = {
    "count": count,
    "segment": segment,
    "encode": partial(encode, "unigram"),
    "encode-bpe": partial(encode, "bpe-bytes"),
    "encode-one": partial(encode_one, "unigram"),
    "decode": partial(decode, "unigram"),
}


def child(stage: str, file: Path) -> None:
    """One measurement: seconds of processor, those on the clock, megabytes and what came out, with tabs between."""
    import gc

    from koktok.errors import KoktokError

    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.txt"
        warm.write_bytes(WARM)
        STAGES[stage](warm)()  # compiles, imports
    go = STAGES[stage](file)
    gc.collect()
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    begun, used = time.perf_counter(), _processor()
    try:
        said = go()
    except KoktokError as error:
        said = f"refused: {error.message}"
    print(f"{_processor() - used}\t{time.perf_counter() - begun}\t{_resident('VmHWM') - before}\t{said}")


def _processor() -> float:
    """Seconds that this process and its children were given, those that have ended among them."""
    ended = os.times()
    found = ended.user + ended.system + ended.children_user + ended.children_system
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = stat.read_text().rsplit(")", 1)[1].split()
            if int(words[1]) == os.getpid():
                found += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return found


def _resident(key: str) -> float:
    return next(
        int(line.split()[1]) / 1000 for line in Path("/proc/self/status").read_text().splitlines() if key in line
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--cases", default="", help="only cases with this in their name")
    parser.add_argument("--share", type=float, default=1.0, help="of the full sizes")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    if given.child:
        child(given.child[0], Path(given.child[1]))
        return
    tell = Told(given.report)
    tell(
        f"{machine()}\n\n| stage | case | CPU s at 1/8 | CPU s | ratio | s | peak MB | |\n|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, (full, make) in CASES.items():
            if given.cases not in name:
                continue
            for stage in given.stages.split(","):
                rows = []
                for size in (int(full * given.share) // 8, int(full * given.share)):
                    file = Path(folder) / "text.txt"
                    file.write_bytes(make(size))
                    words = [sys.executable, "-m", "eval.worst", "--child", stage, str(file)]
                    done = subprocess.run(words, capture_output=True, text=True, check=False)
                    last = done.stdout.strip().split("\n")[-1].split("\t")
                    rows.append(
                        last if len(last) == 4 else ["nan", "nan", "nan", f"failed: {done.stderr.strip()[-200:]}"]
                    )
                (small, _, _, _), (large, clock, peak, said) = rows
                ratio = float(large) / max(float(small), 1e-2)
                tell(
                    f"| {stage} | {name} | {float(small):.2f} | {float(large):.2f} | {ratio:.1f} | {float(clock):.2f} "
                    f"| {float(peak):,.0f} | {said} |"
                )


if __name__ == "__main__":
    main()
