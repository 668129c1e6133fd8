"""Token files: what is written is what `encode_ids` gives, in every format, also when the run was killed in between."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import MINI, koktok, read_documents, works

from koktok import load
from koktok.model.special import ROLES
from koktok.model.tokens import Tokens, running
from koktok.text.sources import Source
from koktok.token_files import write_token_files

Trained = Callable[..., Path]
FILES = sorted(MINI.glob("*.txt"))


@pytest.fixture
def source() -> Source:
    return Source.of(*FILES, name="mini")


def shards_of(folder: Path) -> list[Tokens]:
    """The shards, read as the documentation of each format says, not by koktok."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] in ("npy", "bin", "arrow")
    shards = []
    for shard in manifest["shards"]:
        stem = folder / shard["name"]
        if manifest["format"] == "npy":
            shards.append(Tokens(np.load(stem.with_suffix(".npy")), np.load(stem.with_suffix(".offsets.npy"))))
        elif manifest["format"] == "bin":
            lengths = np.fromfile(stem.with_suffix(".idx"), "<i4", shard["documents"], offset=9 + 25)
            shards.append(Tokens(np.fromfile(stem.with_suffix(".bin"), manifest["dtype"]), running(lengths)))
        else:
            pyarrow = pytest.importorskip("pyarrow")
            column = pyarrow.ipc.open_file(stem.with_suffix(".arrow")).get_batch(0).column("ids")
            shards.append(Tokens(column.values.to_numpy(), column.offsets.to_numpy()))
    return shards


@pytest.mark.parametrize("form", ["npy", "bin", "arrow"])
@pytest.mark.parametrize("threads", [1, 3])
def test_shards_hold_the_documents(trained: Trained, source: Source, tmp_path: Path, form: str, threads: int) -> None:
    tokenizer = load(trained())
    expected = tokenizer.encode_ids(read_documents(source), after=["</s>"])
    manifest = write_token_files(
        tokenizer, source, tmp_path / "out", format=form, shard_tokens=500, after=["</s>"], threads=threads
    )
    shards = shards_of(tmp_path / "out")
    assert len(shards) > 5
    assert [ids.tolist() for shard in shards for ids in shard] == [ids.tolist() for ids in expected]
    for shard, told in zip(shards, manifest["shards"], strict=True):
        assert (len(shard), len(shard.ids)) == (told["documents"], told["tokens"])
        assert len(shard.ids) >= 500 or told is manifest["shards"][-1]
        assert len(shard.ids) - len(shard[-1]) < 500
        assert shard.ids.dtype == np.uint16
    assert manifest["tokens"] == len(expected.ids)
    assert manifest["tokenizer"] == tokenizer.vocab.digest()
    assert not [path for path in tmp_path.iterdir() if path.name != "out"]


def test_bin_is_raw_ids_and_an_index_of_megatron(trained: Trained, source: Source, tmp_path: Path) -> None:
    """Read by the layout that IndexedDataset documents, not by our reader."""
    tokenizer = load(trained())
    manifest = write_token_files(tokenizer, source, tmp_path / "out", format="bin")
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
    assert len(manifest["shards"]) == 1


def test_a_document_may_be_a_file(trained: Trained, source: Source, tmp_path: Path) -> None:
    """With the line break at its end, if it has one; a record's text is its text, too."""
    tokenizer = load(trained())
    (tmp_path / "open.txt").write_bytes("하나\r\n둘".encode())
    files = (*source.paths, tmp_path / "open.txt")
    write_token_files(tokenizer, Source.of(*files), tmp_path / "out", documents="files")
    (shard,) = shards_of(tmp_path / "out")
    texts = [path.read_text(encoding="utf-8") for path in files]
    assert [tokenizer.decode(ids.tolist()) for ids in shard] == [tokenizer.normalize(text) for text in texts]
    texts += ["하나\r\n둘\r\n", "\n\n"]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts), encoding="utf-8")
    write_token_files(tokenizer, Source.of(tmp_path / "a.jsonl"), tmp_path / "records")
    (shard,) = shards_of(tmp_path / "records")
    assert [ids.tolist() for ids in shard] == [tokenizer.encode(text).ids for text in texts]


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
    (tokens,) = shards_of(out)
    assert tokens == tokenizer.encode_ids(read_documents(source), before=[first], after=[last])
    works(*command, "--format", "bin", "--out", tmp_path / "named", "--eos-token", "<mask>")
    assert np.fromfile(tmp_path / "named" / "shard-00000.bin", "<u2")[-1] == tokenizer.vocab.special_ids["<mask>"]
    for options, message in (
        (
            ["--format", "npy", "--out", "x", "--eos-token", "x"],
            "`x` is not a special token of the tokenizer; it has: <pad>",
        ),
        (["--format", "npy"], "expected both --format and --out for token files"),
        (["--eos"], "are for token files"),
        (["--format", "npy", "--out", "x", "--dropout", "0.1"], "token files hold no samples"),
    ):
        done = koktok(*command, *options)
        assert done.returncode == 2
        assert message in done.stderr
