"""Files to ids: what the reader gives as strings, without them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import read_documents
from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text

from koktok import load
from koktok.bulk import mapped
from koktok.bulk.texts import Texts
from koktok.errors import InputError
from koktok.text import records
from koktok.text.blocks import Block
from koktok.text.sources import Source

Trained = Callable[..., Path]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("threads", [1, 3])
def test_ids_of_files_are_those_of_their_documents(
    threads: int, trained: Trained, mini: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load(trained())
    text = "\n".join(mini).encode()
    bad = b"\xff\xfe bad \xea\xb0\n".join(line.encode() + b"\n" for line in mini[:40])
    files = [
        write(tmp_path / "a.txt", text),
        write(tmp_path / "b.txt", b"\xef\xbb\xbf" + text[:500] + "\n\n가😀나\n".encode()),
        write(tmp_path / "c.md", text[:900].replace(b"\n", b"\r\n") + b"\n"),
        write(tmp_path / "d.txt", b""),
        write(tmp_path / "e.txt.gz", gzip.compress(text[:2000])),
        write(tmp_path / "f.jsonl", b'{"text": "\\uac00\\n\\ub098"}\n{"text": "a"}\n'),
        write(tmp_path / "g.txt", b"a" * 300 + b"\n" + b"a\xed\x9e\xa3\xee\x80\x80\xf0\x9f\x98\x80\xc3\xa9\n"),
    ]
    for block in (64, 1 << 20):
        monkeypatch.setattr(mapped, "_BLOCK", block)
        for some in ([files[0]], files, [*files, write(tmp_path / "h.txt", bad)]):
            documents = read_documents(Source.of(*some), may_be_empty=True)
            tokens = tokenizer.encode_files(map(str, some), threads=threads, after=["</s>"])
            assert tokens == tokenizer.encode_ids(documents, after=["</s>"])
    assert len(tokenizer.encode_files(files[3])) == 0


def test_what_is_no_text_is_refused_by_the_reader(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load(trained())
    korean = write(tmp_path / "cp949.txt", "나는 학교에 간다. 그는 집에 있다.\n".encode("cp949") * 9)
    with pytest.raises(InputError, match="looks like EUC-KR"):
        tokenizer.encode_files(korean)
    monkeypatch.setattr(mapped, "_LONGEST", 1 << 20)
    monkeypatch.setattr(records, "_MAX_LINE", 1 << 20)
    for end in (b"", b"\n"):
        with pytest.raises(InputError, match="has a line of more than 1 MiB"):
            tokenizer.encode_files(write(tmp_path / "long.txt", b"a\n" + b"a" * (1 << 21) + end))
    with pytest.raises(InputError):
        tokenizer.encode_files(tmp_path / "nowhere.txt")


@given(documents=st.lists(korean_text(), max_size=6), broken=st.binary(max_size=6))
def test_blocks_become_utf_16(documents: list[str], broken: bytes) -> None:
    found = Texts.of_block(Block.of(documents))
    assert [found.text(i) for i in range(len(found))] == documents
    block = Block(broken + b"\n")
    try:
        expected = block.lines()
    except UnicodeDecodeError:
        with pytest.raises(InputError, match="not UTF-8"):
            Texts.of_block(block)
    else:
        found = Texts.of_block(block)
        assert [found.text(i) for i in range(len(found))] == expected
