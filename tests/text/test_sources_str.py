"""What a str stands for where text is given."""

from __future__ import annotations

from pathlib import Path

from koktok.text.sources import Source, text_of


def test_a_str_that_names_a_file_is_that_file(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("나는 집에 간다.\n", encoding="utf-8")
    (source,) = text_of(str(file))
    assert isinstance(source, Source)
    for line in ("나는 집에 간다.", "가" * 10_000, "a\0b", str(tmp_path)):
        assert text_of(line) == line
