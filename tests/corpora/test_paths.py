"""Corpora among paths, and what a str stands for where text is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import read_lines

from koktok.corpora.paths import as_source, as_text
from koktok.errors import InputError
from koktok.text.sources import Source


def test_a_str_that_names_a_file_is_that_file(tmp_path: Path) -> None:
    """As one that names a folder, files by a pattern, or a corpus."""
    file = tmp_path / "a.txt"
    file.write_text("나는 집에 간다.\n", encoding="utf-8")
    for given in (file, tmp_path, tmp_path / "*.txt"):
        (source,) = as_text(str(given))
        assert isinstance(source, Source)
        assert source.paths == (file,)
    assert [source.name for source in as_text("corpus:mini")] == ["mini"]
    for line in ("나는 집에 간다.", "가" * 10_000, "a\0b", "[가]*", "파일은 a.txt", "/none/*"):
        assert as_text(line) == line
    for name in ("none.txt", "none/*.jsonl", "말뭉치.parquet"):
        with pytest.raises(InputError, match=r"there is no file or folder|no file matches"):
            as_text(name)


def test_corpus_names_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path))
    source = as_source("corpus:mini")
    assert (source.name, [path.name for path in source.paths]) == ("mini", ["mini.txt"])
    assert sum(len(text.split()) for text in read_lines(source)) > 5000


def test_corpora_and_files_are_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path))
    (tmp_path / "a.txt").write_text("가\n", encoding="utf-8")
    source = as_source("corpus:mini", tmp_path / "a.txt", field="body", weight=2)
    assert (source.name, source.weight, source.field) == ("mini+a", 2, "body")
    assert [path.name for path in source.paths] == ["mini.txt", "a.txt"]
