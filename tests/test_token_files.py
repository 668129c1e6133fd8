"""Token files: what is written is what `encode_ids` gives, in every format, also when the run was killed in between."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import MINI, koktok, read_documents, works

from koktok import load
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


def test_the_verb_writes_token_files(trained: Trained, source: Source, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["encode", trained(), *FILES]
    done = works(*command, "--format", "npy", "--out", out, "--bos", "--eos", "--threads", 1)
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
