"""Token files: what is written is what `encode_ids` gives, in every format, also when the run was killed in between."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import MINI, koktok, read_documents

from koktok import load
from koktok.errors import InputError, UsageError
from koktok.model.special import ROLES
from koktok.text.sources import Source
from koktok.token_files import TokenFiles, write_token_files

Trained = Callable[..., Path]
FILES = sorted(MINI.glob("*.txt"))


@pytest.fixture
def source() -> Source:
    return Source.of(*FILES, name="mini")


@pytest.mark.parametrize("form", ["npy", "bin", "arrow"])
@pytest.mark.parametrize("threads", [1, 3])
def test_shards_hold_the_documents(trained: Trained, source: Source, tmp_path: Path, form: str, threads: int) -> None:
    tokenizer = load(trained())
    expected = tokenizer.encode_ids(read_documents(source), after=["</s>"])
    files = write_token_files(
        tokenizer, source, tmp_path / "out", format=form, shard_tokens=500, after=["</s>"], threads=threads
    )
    files = TokenFiles.open(files.folder)
    assert len(files) > 5
    assert [ids.tolist() for shard in files for ids in shard] == [ids.tolist() for ids in expected]
    for shard, told in zip(files, files.manifest["shards"], strict=True):
        assert (len(shard), len(shard.ids)) == (told["documents"], told["tokens"])
        assert len(shard.ids) >= 500 or told is files.manifest["shards"][-1]
        assert len(shard.ids) - len(shard[-1]) < 500
        assert shard.ids.dtype == np.uint16
    assert files.manifest["tokens"] == len(expected.ids)
    assert files.manifest["tokenizer"] == tokenizer.vocab.digest()
    assert not [path for path in tmp_path.iterdir() if path.name != "out"]


def test_bin_is_raw_ids_and_an_index_of_megatron(trained: Trained, source: Source, tmp_path: Path) -> None:
    """Read by the layout that IndexedDataset documents, not by our reader."""
    tokenizer = load(trained())
    files = write_token_files(tokenizer, source, tmp_path / "out", format="bin")
    expected = tokenizer.encode_ids(read_documents(source))
    assert np.fromfile(tmp_path / "out" / "shard-00000.bin", "<u2").tolist() == expected.ids.tolist()
    data = (tmp_path / "out" / "shard-00000.idx").read_bytes()
    magic, layout, kind, sequences, documents = struct.unpack_from("<9sQBQQ", data)
    assert (magic, layout, kind, sequences, documents) == (b"MMIDIDX\0\0", 1, 8, len(expected), len(expected) + 1)
    at = struct.calcsize("<9sQBQQ")
    assert np.frombuffer(data, "<i4", sequences, at).tolist() == np.diff(expected.indptr).tolist()
    pointers = np.frombuffer(data, "<i8", sequences, at + 4 * sequences)
    assert (pointers == 2 * expected.indptr[:-1]).all()
    assert np.frombuffer(data, "<i8", documents, at + 12 * sequences).tolist() == list(range(documents))
    assert len(data) == at + 12 * sequences + 8 * documents
    assert len(files) == 1


def test_a_document_may_be_a_file(trained: Trained, source: Source, tmp_path: Path) -> None:
    tokenizer = load(trained())
    files = write_token_files(tokenizer, source, tmp_path / "out", documents="files")
    assert [tokenizer.decode(ids.tolist()) for ids in files.shard(0)] == [
        tokenizer.normalize(path.read_text(encoding="utf-8").removesuffix("\n")) for path in source.paths
    ]
    records = write_token_files(tokenizer, source, tmp_path / "records")
    assert files.manifest["text_sha256"] == records.manifest["text_sha256"]


SCRIPT = """
import sys
from koktok import load
from koktok.text.sources import Source
from koktok import token_files
from pathlib import Path
folder, out, slow, *paths = sys.argv[1:]
def wait(stem, tokens, real=token_files._write_npy):
    real(stem, tokens)
    if int(slow) and stem.name == "shard-00003":
        (stem.parent / "shard-00004.npy").write_bytes(b"torn")
        print("now", flush=True)
        import time
        time.sleep(60)
token_files._WRITERS["npy"] = wait
token_files.write_token_files(load(folder), Source.of(*paths, name="mini"), out, shard_tokens=900, threads=1)
"""


def test_a_killed_run_goes_on(trained: Trained, source: Source, tmp_path: Path) -> None:
    folder = trained()
    whole = write_token_files(load(folder), source, tmp_path / "whole", shard_tokens=900)
    out, paths = tmp_path / "out", [str(path) for path in source.paths]
    run = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(out), "1", *paths], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "now\n"
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    assert not out.exists()
    work = tmp_path / ".out.partial"
    notes = (work / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line).get("name") for line in notes] == [None, *(f"shard-0000{i}" for i in range(3))]
    # The fourth was on the disk, but not yet noted.
    before = {path.name: path.stat().st_mtime_ns for path in work.glob("shards/shard-0000[012]*")}
    assert before
    time.sleep(0.01)
    with pytest.raises(UsageError, match="3 shards of another run; what differs: after"):
        write_token_files(load(folder), source, out, shard_tokens=900, after=["</s>"])
    changed = tmp_path / "mini.txt"
    changed.write_text("다른 글\n", encoding="utf-8")
    with pytest.raises(InputError, match="the text is not the one that shard-00000"):
        write_token_files(load(folder), Source.of(changed, name="mini"), out, shard_tokens=900)
    subprocess.run([sys.executable, "-c", SCRIPT, str(folder), str(out), "0", *paths], check=True)
    assert before == {path.name: path.stat().st_mtime_ns for path in out.glob("shard-0000[012]*")}
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        path.name: path.read_bytes() for path in whole.folder.iterdir()
    }
    assert not work.exists()


def test_a_folder_of_others_is_not_overwritten(trained: Trained, source: Source, tmp_path: Path) -> None:
    tokenizer = load(trained())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="there is something at"):
        write_token_files(tokenizer, source, tmp_path / "full")


def test_the_verb_writes_token_files(trained: Trained, source: Source, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["encode", trained(), *FILES]
    done = koktok(*command, "--format", "npy", "--out", out, "--bos", "--eos", "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert "documents, 1 file in" in done.stderr
    assert not done.stdout
    tokenizer = load(trained())
    first, last = (
        next(token for token in ROLES[role] if token in tokenizer.vocab.specials) for role in ("bos_token", "eos_token")
    )
    tokens = TokenFiles.open(out).shard(0)
    assert tokens == tokenizer.encode_ids(read_documents(source), before=[first], after=[last])
    for options, message in (
        (["--format", "npy"], "expected both --format and --out for token files"),
        (["--eos"], "are for token files"),
        (["--format", "npy", "--out", "x", "--dropout", "0.1"], "token files hold no samples"),
    ):
        done = koktok(*command, *options)
        assert done.returncode == 2
        assert message in done.stderr
