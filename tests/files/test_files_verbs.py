"""Law 12 as a user meets it: no verb deletes or replaces what koktok did not write, none leaves anything half."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest
from conftest import AT_A_STEP, MINI, ROOT
from test_files import fill_with_others, names, state
from typer.testing import CliRunner

from koktok import Recipe, load, token_files
from koktok.cli import app
from koktok.count import count_files
from koktok.count import shards as count_shards
from koktok.errors import InputError, UsageError
from koktok.files import Checkpoint, resumable, workplace
from koktok.model.vocab import Vocab
from koktok.text import sources
from koktok.text.sources import Source
from koktok.token_files import write_token_files
from koktok.tokenizer import TrainedTokenizer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills and limits as Unix has them")

Trained = Callable[..., Path]
NEWS = MINI / "news.txt"
NGRAM = ("--model", "ngram", "--segmenter", "whitespace", "--no-compare", "-q")
VERBS: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "train": (("train", NEWS, *NGRAM, "--vocab-size", 2000, "--log", "{out}.json"), ("--vocab-size", 2010)),
    "train --frontier": (("train", MINI, "--frontier", "--sizes", 2000, "-q"), ()),
    "export hf": (("export", "{uni}", "--to", "hf", "--style", "bert"), ("--style", "roberta")),
    "export tiktoken": (("export", "{bytes}", "--to", "tiktoken"), ("--name", "other")),
    "export spm": (("export", "{uni}", "--to", "spm"), ("--user-defined", "<s>")),
    "export gguf": (("export", "{bytes}", "--to", "gguf", "-q"), ("--name", "other")),
    "import": (("import", "{uni}/tokenizer.json"), ()),
    "report": (("report", "syllables", "--text", NEWS, "--resamples", 0, "-q"), ("--extended",)),
    "encode": (("encode", "{uni}", MINI, "--format", "npy"), ()),
    "count": (("count", MINI, "-q"), ("--min-count", 2)),
    "playground": (("playground", "{uni}", "--words", 1, "-q"), ("--title", "other")),
    "vocabulary get": (("vocabulary", "get", "ko-16k"), ()),
    "extend": (("extend", "{bytes}", NEWS, "--add", 20, "-q"), ("--add", 21)),
    "extend --prune": (("extend", "{bytes}", NEWS, "--prune", 5, "-q"), ("--prune", 6)),
    "instances": (("instances", "{uni}", NEWS, "--segmenter", "whitespace", "-q"), ("--seed", 3)),
}
"""Every verb that writes, and what makes its result another one."""
OTHERS = {
    "import": ("import", "{bytes}/tokenizer.json"),
    "vocabulary get": ("vocabulary", "get", "ko-32k-bytes"),
    "encode": ("encode", "{uni}", NEWS, "--format", "npy"),
}
FILES = {"export spm": "out.model", "export gguf": "out.gguf", "count": "out.parquet", "playground": "out.html"}


def koktok(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def works(*words: object) -> None:
    done = koktok(*words)
    assert done.exit_code == 0, (done.output, done.exception)


def refused(error: str, *words: object) -> Any:
    done = koktok(*words)
    assert isinstance(done.exception, InputError | UsageError), (done.output, done.exception)
    assert error in done.exception.message
    return done.exception


def words_of(verb: str, out: Path, trained: Trained, *, other: bool = False) -> list[str]:
    places = {"uni": trained(), "bytes": trained(train={"model": "bpe-bytes"}), "out": out}
    first, more = VERBS[verb]
    words = OTHERS.get(verb, (*first, *more)) if other else first
    return [*(str(word).format(**places) for word in words), "--out", str(out)]


# ── what others keep survives every verb that writes ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "train --frontier"])  # minutes
def test_a_verb_replaces_its_own_result_alone_and_another_one_with_force(
    verb: str, trained: Trained, tmp_path: Path
) -> None:
    out = tmp_path / FILES.get(verb, "out")
    first, other = words_of(verb, out, trained), words_of(verb, out, trained, other=True)
    works(*first)
    written = state(out) if out.is_dir() else {}
    kept = fill_with_others(out) if out.is_dir() else {}
    before = state(tmp_path)
    assert "--force" in refused("already exists and contains a different", *other).hint
    assert {name: data for name, data in state(tmp_path).items() if ".parts" not in name} == before
    works(*first)
    assert state(tmp_path).keys() == before.keys()
    # A file of koktok's that the user has changed since is the user's.
    ours = next(out / name for name in sorted(written) if name.endswith((".json", ".tiktoken"))) if kept else out
    content = ours.read_bytes()
    ours.write_bytes(b"mine")
    changed = state(tmp_path)
    assert refused(f"{ours}` was not written by koktok", *other, "--force").hint.startswith(f"mv {ours} ELSEWHERE")
    assert state(tmp_path) == changed
    ours.write_bytes(content)
    works(*other, "--force")
    after = state(tmp_path)
    assert after != before
    assert state(out).items() >= kept.items() if kept else True
    assert not [name for name in after if name.startswith(".")]


def test_another_kind_takes_old_files_away_and_no_others(trained: Trained, tmp_path: Path) -> None:
    out = load(trained()).save(tmp_path / "out", extra={"README.md": "card"})
    others = fill_with_others(out)
    works("train", MINI, *NGRAM, "--vocab-size", 2300, "--force", "--out", out)
    ours = {"README.md", "koktok.sha256", "koktok.toml", "probe.json", "vocab.json"}
    assert state(out).keys() == ours | others.keys()
    works("report", "syllables", "--text", NEWS, "--resamples", 0, "-q", "-o", out)  # a guest, also here
    assert state(out).keys() == ours | others.keys() | {f"report.{end}" for end in ("json", "md", "html", "sha256")}
    load(trained()).save(out, force=True)
    assert {"report.json", "tokenizer.json", "model.safetensors"} <= state(out).keys()
    assert "vocab.json" not in state(out)


def test_a_recipe_of_the_users_makes_no_folder_koktoks(tmp_path: Path) -> None:
    recipe = tmp_path / "project"
    recipe.mkdir()
    (recipe / "koktok.toml").write_text("[recipe.train]\nvocab_size = 2300\n")
    (recipe / "README.md").write_text("mine")
    done = koktok("train", MINI, *NGRAM, "--vocab-size", 2300, "--recipe", recipe / "koktok.toml", "--out", recipe)
    assert "holds no koktok tokenizer" in str(done.exception)
    assert (recipe / "README.md").read_text() == "mine"


def test_a_corpus_fetched_again_keeps_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path))
    works("corpus", "fetch", "mini")
    (place,) = (tmp_path / "corpora").iterdir()
    written, others = state(place), fill_with_others(place)
    works("corpus", "fetch", "mini", "--force")
    assert state(place) == written | others
    (place / "mini.txt").write_text("cleaned by hand")
    done = koktok("corpus", "fetch", "mini", "--force")
    assert "mini.txt` was not written by koktok, or was changed since" in str(done.exception)
    assert names(tmp_path / "corpora") == [place.name]


def test_folders_beside_a_result_are_not_taken_for_ours(trained: Trained, tmp_path: Path) -> None:
    for name in ("c.parquet.parts", ".c.parquet.koktok", ".ids.partial", "full"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("mine")
    before = state(tmp_path)
    count = ("count", NEWS, "-q", "-o", tmp_path / "c.parquet")
    for left in (".c.parquet.koktok", "c.parquet.parts"):
        refused(f"{left}` exists and was not made by koktok; koktok needs that name", *count)
        (tmp_path / left).rename(tmp_path / f"mine-{left}")
    for out, error in (("ids", "was not made by koktok"), ("full", "holds no koktok folder of token files")):
        refused(error, "encode", trained(), NEWS, "--format", "npy", "--out", tmp_path / out)
    assert sorted(state(tmp_path).values(), key=str) == sorted(before.values(), key=str)


def test_another_text_or_recipe_replaces_no_tokenizer_and_text_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(NEWS.read_bytes())
    words = ("train", text, *NGRAM, "--vocab-size", 2000, "--out", tmp_path / "out")
    reads: list[object] = []
    read = sources.read_files

    def counted(*what: Any, **how: Any) -> Any:
        reads.append(what)
        return read(*what, **how)

    monkeypatch.setattr(sources, "read_files", counted)
    assert koktok(*words).exit_code == 0
    assert koktok(*words).exit_code == 0
    assert len(reads) == 2, "once each time"
    before = state(tmp_path / "out")
    text.write_bytes(NEWS.read_bytes() + "한 줄 더\n".encode())
    assert "contains a different tokenizer" in str(koktok(*words).exception)
    assert state(tmp_path / "out") == before
    reads.clear()
    other = [2100 if word == 2000 else word for word in words]
    assert "contains a different tokenizer" in str(koktok(*other).exception)
    assert not reads, "another recipe is refused before the work"
    assert koktok(*words, "--force").exit_code == 0
    assert state(tmp_path / "out") != before


# ── a run that goes on proves its data ────────────────────────────────────────────────────────────────────────────────

DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": lambda file: file.unlink(),
    "cut": lambda file: os.truncate(file, 500),
    "emptied": lambda file: os.truncate(file, 0),
    "changed": lambda file: file.write_bytes(file.read_bytes()[:-1] + b"\1"),
}


@pytest.mark.parametrize(("damage", "form"), [*((damage, "npy") for damage in DAMAGE), ("changed", "bin")])
def test_token_files_go_on_only_from_what_is_whole(
    damage: str, form: Any, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, source = load(trained()), Source.of(*sorted(MINI.glob("*.txt")), name="mini")

    def write(out: Path, text: Source = source, **more: Any) -> Path:
        write_token_files(tokenizer, text, out, format=form, shard_tokens=900, threads=1, **more)
        return out

    whole = state(write(tmp_path / "whole"))
    real = token_files._WRITERS[form]

    def stop(stem: Path, tokens: Any) -> None:
        if stem.name == "shard-00005":
            raise KeyboardInterrupt
        real(stem, tokens)

    monkeypatch.setitem(token_files._WRITERS, form, stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out")
    monkeypatch.undo()
    work = tmp_path / ".out.partial"
    noted = [json.loads(line) for line in (work / "progress.jsonl").read_text().splitlines()[1:]]
    assert [part["name"] for part in noted] == [f"shard-0000{i}" for i in range(5)]
    file = work / "shards" / f"shard-00002.{'npy' if form == 'npy' else 'bin'}"
    assert noted[2]["files"][file.name]["bytes"] == file.stat().st_size
    first = (work / "shards" / "shard-00001").with_suffix(file.suffix).stat().st_mtime_ns
    with pytest.raises(UsageError, match="5 shards of another run; what differs: after"):
        write(tmp_path / "out", after=["</s>"])
    with pytest.raises(InputError, match="the text is not the one that shard-00000"):
        write(tmp_path / "out", Source("mini", Source.of(NEWS).paths))
    DAMAGE[damage](file)
    assert state(write(tmp_path / "out")) == whole
    assert (tmp_path / "out" / "shard-00001").with_suffix(file.suffix).stat().st_mtime_ns == first
    assert names(tmp_path) == ["out", "whole"]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_count_goes_on_only_from_what_is_whole(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_shards, "SHARD", 10_000)
    words = ("count", MINI, "--runs", "--threads", 1, "-o")
    works(*words, tmp_path / "whole.parquet", "-q")

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(count_files, "write_counts", stop)
        assert koktok(*words, tmp_path / "c.parquet", "-q").exit_code
    parts = tmp_path / "c.parquet.parts"
    noted = [json.loads(line) for line in (parts / "progress.jsonl").read_text().splitlines()[1:]]
    assert len(noted) > 5
    for part in noted:
        for name, told in part["files"].items():
            assert (parts / name).stat().st_size == told["bytes"]
    for suffix in ("words", "runs"):
        DAMAGE[damage](next(parts.glob(f"*.{suffix}")))
    done = koktok(*words, tmp_path / "c.parquet")
    assert done.exit_code == 0
    told = re.search(r"resumed: (\d+) of (\d+) shards", done.output)
    assert told, done.output
    assert len(noted) - 2 <= int(told[1]) < int(told[2]) == len(noted)
    for end in ("parquet", "runs.parquet"):
        assert (tmp_path / f"c.{end}").read_bytes() == (tmp_path / f"whole.{end}").read_bytes()
    assert names(tmp_path) == ["c.parquet", "c.runs.parquet", "whole.parquet", "whole.runs.parquet"]


def test_what_a_user_put_beside_finished_shards_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(count_files, "write_counts", stop)
        koktok("count", NEWS, "-q", "-o", tmp_path / "c.parquet")
    (tmp_path / "c.parquet.parts" / "notes.txt").write_text("mine")
    works("count", NEWS, "-q", "-o", tmp_path / "c.parquet")
    assert (tmp_path / "c.parquet.parts" / "notes.txt").read_text() == "mine"
    assert not list((tmp_path / "c.parquet.parts").glob("*.words"))


def test_an_error_before_the_first_shard_leaves_nothing(tmp_path: Path) -> None:
    def fails(notes: Checkpoint) -> dict[str, Any]:
        raise InputError("this text cannot be read")

    with pytest.raises(InputError, match="cannot be read"):
        resumable(tmp_path / "out", token_files.TOKENS, {"layout": 1}, fails)
    assert not any(tmp_path.iterdir())


def test_a_second_run_at_the_same_place_is_refused(trained: Trained, tmp_path: Path) -> None:
    for place, words in (
        (".ids.partial", ("encode", trained(), NEWS, "--format", "npy", "--out", tmp_path / "ids")),
        ("c.parquet.parts", ("count", NEWS, "-q", "-o", tmp_path / "c.parquet")),
    ):
        with workplace(tmp_path / place):
            done = koktok(*words)
            assert isinstance(done.exception, InputError), done.output
            assert "in use by another process" in done.exception.message
        works(*words)
    assert names(tmp_path) == ["c.parquet", "ids"]


# ── bad places and full disks ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", ["train", "train --frontier", "export hf", "import", "report", "encode", "count"])
def test_a_bad_place_is_refused_before_the_work(
    verb: str, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    before = state(tmp_path)
    words = words_of(verb, tmp_path / "file" / "out.parquet", trained)

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    for place in ("koktok.text.sources.read", "koktok.count.counting.counting", "koktok.report.measure.measure"):
        monkeypatch.setattr(place, work)
    refused("cannot be written", *words)
    assert state(tmp_path) == before


def test_a_full_disk_leaves_nothing_half(trained: Trained, tmp_path: Path) -> None:
    out = tmp_path / "out"
    works(*words_of("export hf", out, trained))
    before = state(tmp_path)
    limit = len(before["out/tokenizer.json"]) - 10  # type: ignore[arg-type]

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    for place in (out, tmp_path / "new"):
        words = [*words_of("export hf", place, trained, other=True), "--force"]
        done = subprocess.run(
            [sys.executable, "-m", "koktok", *words], cwd=ROOT, preexec_fn=full, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "File too large" in done.stderr
        assert "Traceback" not in done.stderr
        assert state(tmp_path) == before


def test_a_count_on_a_full_disk_leaves_nothing_half(tmp_path: Path) -> None:
    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    (tmp_path / "text").write_text(" ".join(f"낱말{i}" for i in range(3000)), encoding="utf-8")
    (tmp_path / "out").mkdir()
    words = [sys.executable, "-m", "koktok", "count", tmp_path / "text", "-q", "-o", tmp_path / "out" / "c.parquet"]
    done = subprocess.run(words, cwd=ROOT, preexec_fn=full, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert names(tmp_path / "out") == []


def test_finished_parts_that_a_full_disk_leaves_are_named(tmp_path: Path) -> None:
    def make(notes: Checkpoint) -> dict[str, object]:
        (notes.folder / "shard-00000.npy").write_bytes(b"1")
        notes.add({"name": "shard-00000"}, ["shard-00000.npy"])
        raise polars.exceptions.ComputeError("No space left on device (os error 28)")

    with pytest.raises(InputError, match="No space left") as caught:
        resumable(tmp_path / "out", token_files.TOKENS, {"run": 1}, make)
    assert caught.value.hint.endswith(f"what was finished is kept in {tmp_path / '.out.partial'}")


# ── readers and kills ─────────────────────────────────────────────────────────────────────────────────────────────────

LIVING = (
    AT_A_STEP
    + """
import os, signal, sys, threading
from koktok import Recipe, load
from koktok.files import write
from koktok.model.vocab import Vocab
from koktok.tokenizer import TrainedTokenizer

out, stride = sys.argv[1], int(sys.argv[2])
old, new = (TrainedTokenizer(Recipe(), Vocab.bpe("가나", [piece])) for piece in ("가나", "나가"))
write._MOVING = 1 << 30
tried, half, steps = threading.Event(), write.Product.is_half_written, 0
write.Product.is_half_written = lambda *what: (half(*what), tried.set())[0]

def read():
    try:
        found.append(load(out))
    finally:
        tried.set()

while True:
    old.save(out, force=True)
    pid = os.fork()
    if not pid:
        signal_at(steps, signal.SIGSTOP)
        new.save(out, force=True)
        os._exit(0)
    stopped = os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    found = []
    tried.clear()
    reader = threading.Thread(target=read)
    reader.start()
    tried.wait()  # what the writer has left so far was looked at, and may not do
    if stopped:
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
    reader.join()
    assert found and found[0] in (old, new), steps
    if not stopped:
        break
    steps += stride
print(steps)
"""
)


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("others", [False, True])
def test_a_reader_waits_for_a_writer_at_any_step(others: bool, stride: int, tmp_path: Path) -> None:
    """The writer is stopped before each thing (by default every third) that it asks of the system, and goes on when a reader has come."""
    out = TrainedTokenizer(Recipe(), Vocab.bpe("가", [])).save(tmp_path / "out")
    if others:
        (out / "model.safetensors").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-c", LIVING, str(out), str(stride)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
    assert not others or (out / "model.safetensors").read_text() == "mine"
    assert names(tmp_path) == ["out"]


SPILLING = """
import os, sys
from koktok.count import shards
from koktok.text.blocks import Block
shards.KEPT = 0
with shards.Shards() as count:
    count.count([Block.of(["나는 집에 간다"])], name="x")
    assert count.spilled and count.words[0].frame.collect()["word"].to_list() == [" 간다", " 집에", "나는"]
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), 9)
"""


def test_what_a_killed_count_spilled_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".koktok-count-mine.koktok" / "new").mkdir(parents=True)
    (tmp_path / ".koktok-count-mine.koktok" / "new" / "thesis").write_text("mine")
    before = state(tmp_path)
    for how, code, left in (("killed", -9, 1), ("killed", -9, 1), ("not", 0, 0)):
        done = subprocess.run(
            [sys.executable, "-c", SPILLING, how], cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)}
        )
        assert done.returncode == code
        assert len(names(tmp_path)) == 1 + left
    assert state(tmp_path) == before
