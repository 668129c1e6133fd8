"""Shared by all tests: how many examples Hypothesis tries, one Kiwi, the mini corpus, and where shared data may lie."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from koktok.count import sample
from koktok.files import workplace
from koktok.model.vocab import KINDS
from koktok.pipeline.train import train
from koktok.recipe import Recipe
from koktok.runtimes.huggingface.tokenizer_json import MODEL_TYPES
from koktok.segment import workers
from koktok.segment.kiwi import KiwiSegmenter
from koktok.text.sources import Source, read

gc.set_threshold(100_000, 20, 20)  # a tenth of the time went into walks over libraries, syntax trees and decoded JSON

MODELS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "unigram-em": {"train": {"model": "unigram-em"}},
    "bpe": {"train": {"model": "bpe"}},
    "bpe-bytes": {"train": {"model": "bpe-bytes"}},
    "wordpiece": {"train": {"model": "wordpiece", "vocab_size": 4000}},
    "wordpiece-bytes": {"train": {"model": "wordpiece-bytes"}},
    "word": {"train": {"model": "word"}},
    "syllable": {"train": {"model": "syllable", "vocab_size": 1800}},
    "jamo model": {"train": {"model": "jamo", "vocab_size": 760}},
    "ngram": {"train": {"model": "ngram"}},
    "morpheme": {"train": {"model": "morpheme"}},
}
"""A recipe a model, for the fixture `trained`."""

WITHOUT_HF = tuple(name for name in KINDS if name not in MODEL_TYPES)
"""Kinds that no tokenizer.json can hold."""

ROOT = Path(__file__).resolve().parent.parent
MINI = ROOT / "corpora" / "mini"

CORPUS = """name = "test"
title = "t"
description = "d"
languages = ["ko"]
domain = "test"
licence = "CC0-1.0"
licence_stated = "here"
eojeols = 3
"""
"""The beginning of a recipe of a corpus; its sources follow."""

PATIENCE = 600_000
"""Milliseconds that a browser or a kernel may take: however busy the machine is, only what hangs takes so long."""


def koktok(
    *words: object, stdin: str | bytes = b"", env: dict[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run the command as another process would, but in this one, which has everything loaded; both streams as text."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(given), "utf-8"),
        "stdout": io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""),
        "stderr": io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", errors="backslashreplace"),
    }
    code = exit_code_here(words, streams, {"NO_COLOR": "1"} | (env or {}), cwd)
    shown = []
    for name in ("stdout", "stderr"):
        streams[name].flush()
        shown.append(streams[name].buffer.getvalue().decode())
    return subprocess.CompletedProcess(words, code, *shown)


def works(*words: object, **how: Any) -> subprocess.CompletedProcess[str]:
    """`koktok` where it must not fail."""
    done = koktok(*words, **how)
    assert done.returncode == 0, done.stderr
    return done


def exit_code_here(
    words: Iterable[object],
    streams: dict[str, Any],
    env: dict[str, str],
    cwd: Path = ROOT,
    main: Callable[[], None] | None = None,
) -> int:
    """Run the command in this process with other streams, variables and working directory."""
    from koktok import cli

    with pytest.MonkeyPatch.context() as patch:
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["koktok", *map(str, words)])
        patch.chdir(cwd)
        try:
            (main or cli.main)()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def koktok_process(
    *words: object, stdin: str | bytes = b"", env: dict[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own, for what a process alone shows: encodings, kills, pipes."""
    done = subprocess.run(
        [sys.executable, "-m", "koktok", *map(str, words)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env=os.environ | {"NO_COLOR": "1", "PYTHONWARNINGS": "error"} | (env or {}),
        cwd=cwd,
    )
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


AT_A_STEP = """
import os, signal, sys

def signal_at(step, sent):
    seen = 0
    def hook(event, args):
        nonlocal seen
        if event != "os.kill" and event.split(".")[0] in ("open", "os", "shutil", "fcntl"):
            seen += 1
            if seen == step + 1:
                os.kill(os.getpid(), sent)
    sys.addaudithook(hook)
"""
"""For a process of its own: it gets a signal before what it asks of the system after so many other things."""

settings.register_profile(
    "koktok",
    max_examples=int(os.environ.get("KOKTOK_EXAMPLES", "60")),
    deadline=None,  # the first call compiles or loads something
    derandomize=os.environ.get("KOKTOK_RANDOM") is None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("koktok")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOKTOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


KIWI = KiwiSegmenter()
ONE_BY_ONE = threading.Lock()


class KiwiHere(workers._Child):
    """In place of a process of its own: Kiwi of this one, unless it is to read a user's dictionary."""

    def ask(self, words: list[str], timeout: float) -> list[str]:
        if self._analyser[1].get("name") != "kiwi" or self._analyser[1]["user_dictionary"] is not None:
            return super().ask(words, timeout)
        with ONE_BY_ONE:
            return list(KIWI.serialized(words))


@pytest.fixture(autouse=True, scope="session")
def _kiwi_once() -> Iterator[None]:
    """Loading it takes a second or two, and a hundred trainings and reports would each do so."""
    load = KiwiSegmenter._load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KiwiSegmenter, "_load", lambda asked: load(KIWI if asked._dictionary is None else asked))
        patch.setattr(workers, "_Child", KiwiHere)
        yield


@pytest.fixture(scope="session")
def kiwi() -> KiwiSegmenter:
    """One Kiwi for the whole run: loading it takes seconds."""
    return KIWI


def sample_above(monkeypatch: pytest.MonkeyPatch, words: int) -> None:
    """Draw a sample of more than so many distinct words, for a vocabulary of any size."""
    monkeypatch.setattr(sample, "WHOLE", words)
    monkeypatch.setattr(sample, "PER_ID", 0)


def read_lines(text: Any, **how: Any) -> list[str]:
    """All lines of what koktok reads."""
    return [line for block in read(text, **how) for line in block.lines()]


def read_documents(text: Any, **how: Any) -> list[str]:
    """All documents of what koktok reads."""
    return [document for block in read(text, **how) for document in block.documents()]


@pytest.fixture(scope="session")
def mini() -> list[str]:
    """All lines of corpora/mini."""
    return read_lines(Source.of(*sorted(MINI.glob("*.txt")), name="mini"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's browser, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    if found is None:
        pytest.skip("no chromium or google-chrome on the path")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=options)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Folders trained on corpora/mini, made once per recipe and run: `trained(train={"model": "bpe"})`."""
    made: dict[str, Path] = {}
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "trained"

    def make(**changes: Any) -> Path:
        changes = {"holdout": 0.1} | changes
        changes["train"] = {"vocab_size": 2300} | changes.get("train", {})
        key = json.dumps(changes, sort_keys=True)
        if key not in made:
            out = shared / hashlib.sha256(key.encode()).hexdigest()[:16] / "tokenizer"
            out.parent.mkdir(parents=True, exist_ok=True)
            with workplace(out.parent / "turn", wait=600):  # another worker of xdist may be training the same
                if not out.exists():
                    recipe = Recipe().changed(**changes)
                    text = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
                    train([text], recipe, cache=shared).tokenizer.save(out)
            made[key] = out
        return made[key]

    return make


@pytest.fixture(scope="session")
def python4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with transformers 4.57.6."""
    home = tmp_path_factory.getbasetemp() / "transformers4"
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    venv.create(home, with_pip=True)
    made = subprocess.run(
        [python, "-m", "pip", "install", "-q", "transformers==4.57.6", "jinja2", "sentencepiece", "protobuf"],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"pip could not install transformers 4.57.6: {made.stderr.strip()[-200:]}")
    return python
