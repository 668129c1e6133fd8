"""The sandbox: a library loads and runs a foreign definition in a child process, before it is loaded in this one.

Libraries in Rust and C++ abort, panic or never return on malformed definitions (a garbled table of characters, a pattern that
takes exponential time, rules that turn one letter into a gigabyte), and an abort ends the calling program. In a child with
limits of time and memory, each of these becomes an `ArtifactError`. The digest of a definition that passed is stored in the
cache folder, and it is not checked again.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from koktok.errors import ArtifactError
from koktok.files import cache_dir
from koktok.files.process import environment

PROBES: Final = (
    "한국어는 교착어다.", " 앞에 빈칸", "뒤에 빈칸 ", "두  칸,   세 칸", "첫 줄\n둘째 줄", "표\t안의\t글", "\r\n",
    "ㅋㅋㅋ ㅠㅠ ㄳ", "값이 12,345원, 1234567개(VAT 별도)", "Hello, World! Don't", "naïve façade", "漢字와 かな", "전각 ＡＢＣ １２３",
    "😀 👨‍👩‍👧 🇰🇷", "뷁쀍 똠방각하", "\u1112\u1161\u11ab\u1100\u1173\u11af", "ᄒᆞᆫ글 나랏말〯ᄊᆞ미", "밑줄▁글자", "<0x0A> [UNK] </s>",
    "㈜회사 ① ½ ㎏", "“따옴표” — 줄표…", "가\u200b나\u00a0다", "def f(x):\n    return x", "\x00\x7f", "ㆍ·•", "नमस्ते שלום",
)  # fmt: skip
"""Hard texts; the round trip of imported tokenizers is measured on them, too."""

_LONG: Final = (
    "",
    *(f"{unit * 40}!" for unit in ("a", "가", " ", "1", "\n", "!", "a ", "가 ", "a1", "A")),
    "가나 " * 400,
)
"""Texts on which backtracking patterns take exponential time, and rules that lengthen text take memory."""

_VERSION: Final = 1
"""Version of the check; a new number checks everything again."""

MEMORY: Final = 2 << 30
"""Bytes of address space for the library itself."""

PER_BYTE: Final = 64
"""Further bytes of memory for a byte of definition: tokenizers takes 16 (262,144 pieces of BPE, 17.7 MB, 283 MB)."""

SECONDS: Final = 30
"""Seconds of processor time: those 262,144 pieces load in one."""

PER_SECOND: Final = 2_000_000
"""Bytes of definition for each further second."""

CLOCK_FACTOR: Final = 4
"""Seconds of wall time for each second of processor time; the machine may be busy."""

_STRINGS: Final = 200
"""Largest number, and length, of the strings of the definition itself that are probes."""


def check(library: str, *definition: Any, where: str, content: Mapping[str, Any] | None = None) -> None:
    """Check that a library loads a definition and encodes texts with it, or refuses it with an ordinary error."""
    data = marshal.dumps((library, definition), 2)  # the bytes of version 2 depend on the values alone
    try:
        installed = version(library)
    except PackageNotFoundError:
        installed = ""
    key = hashlib.sha256(f"{_VERSION}\0{installed}\0".encode() + data).hexdigest()
    note = cache_dir() / "proven" / key
    if note.is_file():
        return
    lines = (*PROBES, *_LONG, *_own_strings(content or {}))
    seconds = SECONDS + len(data) // PER_SECOND
    question = marshal.dumps((library, definition, lines, MEMORY + PER_BYTE * len(data), seconds), 2)
    try:
        done = _run_child(question, CLOCK_FACTOR * seconds)
        why = "" if done.stdout else _failure(done, seconds)
    except subprocess.TimeoutExpired:
        why = f"does not finish in {CLOCK_FACTOR * seconds} s"
    except OSError as error:
        raise ArtifactError(f"`{where}` could not be checked in a child process: {error}") from error
    loaded = False
    if not why:
        answer = json.loads(done.stdout)
        loaded = answer["loaded"]
        if answer["grave"] or (loaded and answer["failed"] == len(lines)):
            why = f"{'fails' if loaded else 'cannot load it'}: {answer['error']}"
    if why:
        pattern = "use a pattern that matches every character of every text, or " if library == "tiktoken" else ""
        raise ArtifactError(
            f"`{where}` is no usable tokenizer: {library} {why}",
            hint=f"{pattern}fetch it from a source that you trust",
        )
    if loaded:  # else loading it here raises the library's error
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()


def _run_child(question: bytes, timeout: int) -> subprocess.CompletedProcess[bytes]:
    limited = environment() | {
        "MALLOC_ARENA_MAX": "1",  # one for each thread would count as memory
        "RAYON_NUM_THREADS": "1",
        "RUST_BACKTRACE": "0",
        "TOKENIZERS_PARALLELISM": "false",
    }
    command = [sys.executable, "-P", str(Path(__file__).with_name("child.py"))]
    return subprocess.run(command, input=question, capture_output=True, timeout=timeout, env=limited, check=False)


def _failure(done: subprocess.CompletedProcess[bytes], seconds: int) -> str:
    """The end of a process that did not answer, with the last line that it printed."""
    code, how = done.returncode, ""
    if code == -getattr(signal, "SIGXCPU", 0):
        how = f"does not finish in {seconds} s"
    elif code < 0:
        with suppress(ValueError):
            how = f"ends the whole process ({signal.Signals(-code).name})"
    noise = ("note:", "thread ", "stack backtrace", "skipping ")
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines()]
    last = [line for line in lines if line and not line.startswith(noise)][-1:]
    return "".join([how or f"ends the whole process (exit code {code})", *(f": {line[:200]}" for line in last)])


def _own_strings(content: Mapping[str, Any]) -> list[str]:
    """The strings that the rules of a tokenizer.json search and insert."""
    strings: dict[str, None] = {}
    waiting: list[Any] = [content.get(name) for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder")]
    while waiting and len(strings) < _STRINGS:
        node = waiting.pop()
        if isinstance(node, str) and len(node) <= _STRINGS:
            strings[node] = None
        elif isinstance(node, Mapping | list):
            waiting += node.values() if isinstance(node, Mapping) else node
    return [*strings]
