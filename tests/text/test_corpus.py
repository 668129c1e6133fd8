"""Reading: what is written comes back, and what is no text is refused by name."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import random
import re
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import koktok, read_documents, read_lines
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from koktok.errors import InputError
from koktok.files import Product, write_folder
from koktok.files import write as write_module
from koktok.text import records, sources, unpack
from koktok.text.documents import HELD_TOGETHER, held_lines
from koktok.text.sources import ReadReport, Source, name_of

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": unpack.zstd().compress}
LINES = ["나는 학생이다.", "", "ㅋㅋ  둘 ", "가\u2028나\x0b다\x85라", "a\rb"]
in_tmp = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
# What one line can hold: anything but its end. A file's first U+FEFF is a BOM, and a final \r belongs to the line end.
line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), max_size=30).map(
    lambda text: text.lstrip("\ufeff").rstrip("\r")
)


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def read(*paths: Path | str, field: str | None = None, **how: object) -> list[str]:
    return read_lines(Source.of(*paths, field=field), **how)


def text_of(lines: list[str], end: str = "\n") -> str:
    return "".join(one + end for one in lines)


# Laws


@pytest.mark.parametrize("packed", PACK)
@in_tmp
@given(lines=st.lists(line, min_size=1), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans(), bom=st.booleans())
@example(lines=LINES, end="\n", last=True, bom=True)
def test_lines_come_back_through_every_compression(
    tmp_path: Path, packed: str, lines: list[str], end: str, last: bool, bom: bool
) -> None:
    text = text_of(lines, end)
    text = text if last or not lines[-1] else text.removesuffix(end)
    path = write(tmp_path / f"a.txt{packed}", PACK[packed](("\ufeff" * bom + text).encode()))
    report = ReadReport()
    told: list[tuple[int, int | None]] = []
    assert read(path, report=report, on_progress=lambda *step: told.append(step)) == lines
    assert report.lines == len(lines)
    assert report.digests == {"a": hashlib.sha256(text_of(lines).encode()).hexdigest()}
    assert told[-1] == (path.stat().st_size, path.stat().st_size) == (report.bytes, report.bytes)


@in_tmp
@given(lines=st.lists(line, min_size=2), data=st.data())
def test_a_text_split_over_files_is_the_whole(tmp_path: Path, lines: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(lines) - 1))
    whole, parts = ReadReport(), ReadReport()
    path = write(tmp_path / "whole.txt", text_of(lines))
    first = write(tmp_path / "1.txt", text_of(lines[:cut]))
    second = write(tmp_path / "2.txt.gz", gzip.compress(text_of(lines[cut:]).encode()))
    assert read(path, report=whole) == read_lines(Source.of(first, second, name="whole"), report=parts) == lines
    assert whole.digests == parts.digests
    assert (parts.files, parts.lines) == (2, whole.lines)


@in_tmp
@given(lines=st.lists(line, min_size=1), chunk=st.integers(2, 40))
def test_where_blocks_are_cut_does_not_matter(tmp_path: Path, lines: list[str], chunk: int) -> None:
    path = write(tmp_path / "a.txt", text_of(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "CHUNK", chunk)
        patch.setattr(records, "kind_of", lambda *_, **__: "text")
        assert read(path) == lines


@in_tmp
@given(documents=st.lists(st.lists(line, min_size=1).map("\n".join), min_size=1))
@example(documents=["가\n나\n", "\n", "", "\n\n다\n\n"])
def test_every_record_format_gives_the_same_documents(tmp_path: Path, documents: list[str]) -> None:
    """A record's text is its text, with the line breaks at its ends; those of a CSV file are the file's."""
    ends = [*documents, "가\r\n나\r\n", "다\r"]
    write(tmp_path / "b.jsonl", text_of([json.dumps({"text": document}) for document in ends]))
    pl.DataFrame({"text": ends}).write_parquet(tmp_path / "b.parquet")
    for records_of in (tmp_path / "b.jsonl", tmp_path / "b.parquet", ends, [{"text": text} for text in ends]):
        assert read_documents(records_of) == ends
        assert read_lines(records_of)[-3:] == ["나", "", "다"]
    documents = [document.replace("\r", "") for document in documents]
    write(tmp_path / "a.jsonl", text_of([json.dumps({"id": 1, "text": document}) for document in documents]))
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([["id", "text"], *([1, document] for document in documents)])
    pl.DataFrame({"id": [1] * len(documents), "text": documents}).write_parquet(tmp_path / "a.parquet")
    reports = []
    for kind in ("jsonl", "csv", "parquet"):
        reports.append(ReadReport())
        assert read_documents(Source.of(tmp_path / f"a.{kind}"), report=reports[-1]) == documents
        assert read(tmp_path / f"a.{kind}") == "\n".join(documents).split("\n")
        assert reports[-1].digests == reports[0].digests


def test_a_field_may_lie_in_another(tmp_path: Path) -> None:
    rows = [{"meta": {"text": f"{k}째 글"}, "id": k} for k in range(5)]
    write(tmp_path / "a.jsonl", text_of([json.dumps(row) for row in rows]))
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    for source in (
        Source.of(tmp_path / "a.jsonl", field="meta.text"),
        Source.of(tmp_path / "a.parquet", field="meta.text"),
    ):
        assert read_documents(source) == [row["meta"]["text"] for row in rows]
    assert read_lines(rows, field="meta.text")[4] == "4째 글"
    write(tmp_path / "b.jsonl", '{"a.b": "whole", "a": {"b": "inner"}}\n{"a": {"b": "inner"}}\n')
    assert read_documents(Source.of(tmp_path / "b.jsonl", field="a.b")) == ["whole", "inner"]
    with pytest.raises(InputError, match=r'(?s)has no field "text"; it has: "meta", "id".*hint: field=.meta\.text'):
        read(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match='line 1, in "meta", has no field "body"; it has: "text"'):
        read_documents(Source.of(tmp_path / "a.jsonl", field="meta.body"))
    with pytest.raises(InputError, match=r'has no column of text "meta\.body"'):
        read_documents(Source.of(tmp_path / "a.parquet", field="meta.body"))


@given(cuts=st.lists(st.integers(0, 400), max_size=5), shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_held_out_lines_grow_with_the_share_and_need_not_come_at_once(
    cuts: list[int], shares: tuple[float, float]
) -> None:
    small, large = (held_lines(0, 400, share, "k") for share in sorted(shares))
    assert not (small & ~large).any()
    for a, b in pairwise([0, *sorted(cuts), 400]):
        assert held_lines(a, b - a, shares[0], "k").tolist() == held_lines(0, 400, shares[0], "k")[a:b].tolist()


def test_held_out_lines_are_frozen_and_differ_by_key() -> None:
    sides = {key: held_lines(0, 1000, 0.3, key)[::HELD_TOGETHER] for key in ("a", "b")}
    assert (sides["a"] != sides["b"]).any()
    assert sides["a"].nonzero()[0].tolist() == [9, 10, 11, 13, 16, 17]
    assert not held_lines(0, 1000, 0.0, "a").any()
    assert held_lines(0, 1000, 1.0, "a").all()


# What a file is

RECORD, NIKL = '{"url": "x", "text": "가\\n나"}\n', {"id": "NWRW18", "document": [
    {"id": "N.1", "metadata": {"title": "제"}, "paragraph": [{"id": "N.1.1", "form": "비가 온다."}, {"form": "눈이 온다."}]},
    {"id": "N.2", "paragraph": [{"id": "N.2.1", "form": "해가 뜬다."}]}]}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data", "field", "found"),
    [
        *((name, RECORD, field, ["가\n나"]) for field in (None, "text")
          for name in ("c4-ko.00000.json", "a.json.gz", "a.JSON.zst", "wiki_00", "wiki_00.bz2", "a.ndjson.xz", "data.log")),
        ("wiki_00", "나는 학생이다.\n", None, ["나는 학생이다."]),
        ("a.txt", RECORD, "url", ["x"]),
        ("a.md", '{괄호} [{"a": 1\n', None, ['{괄호} [{"a": 1']),
        ("a.txt", "[앵커] 뉴스입니다.\n", None, ["[앵커] 뉴스입니다."]),
        ("a.json", json.dumps(NIKL), "document[].paragraph[].form", ["비가 온다.\n눈이 온다.\n해가 뜬다."]),
        ("a.json.gz", RECORD, "nosuchfield", r'has no field "nosuchfield"; it has: "url", "text"'),
        *((name, f"[{RECORD}]", None, r"is a JSON array; expected JSON lines\nhint: .*jq -c '.\[\]'")
          for name in ("a.json", "a.jsonl", "a.json.bz2", "a.txt", "data")),
        ("a.json", json.dumps(NIKL, indent=1), None, r"is one JSON document.*\nhint: jq -c '.document\[\]' .*a.json > .*a.jsonl"),
        ("a.json", json.dumps(NIKL), None, r"has no field \"text\".*\nhint: field='document\[\].paragraph\[\].form'"),
        ("a.txt", RECORD, None, r"begins with a record of JSON; expected text\nhint: field=.text., or \(echo; cat"),
        *((name, "<html>가", None, r"is (\.html?|marked-up text); expected text.*\nhint: .*pandoc -f html .* > .*\.txt")
          for name in ("a.html", "a.html.gz", "a.htm", "page")),
        ("a.xml.bz2", "<mediawiki>", None, r"is \.xml;.*\nhint: bzcat .* \| pandoc -f mediawiki"),
        ("wiki_00", '<doc id="1" url="x">\n가\n</doc>\n', None, "is marked-up text"),
        *((f"a{end}", "version https://git-lfs.github.com/spec/v1\noid", None, r"is a Git LFS pointer.*\nhint: git lfs pull")
          for end in (".txt", ".jsonl", "", ".json")),
    ],
)  # fmt: skip
def test_what_a_file_is(name: str, data: str, field: str | None, found: list[str] | str, tmp_path: Path) -> None:
    """By its name without the packing and its first bytes."""
    path = write(tmp_path / name, PACK.get(Path(name).suffix.lower(), bytes)(data.encode()))
    source = Source.of(path, field=field)
    if isinstance(found, list):
        assert read_documents(source) == found
        return
    with pytest.raises(InputError, match=f"(?s){found}"):
        read_documents(source)


@pytest.mark.parametrize("name", ["a.parquet", "a.txt.gz", "a.jsonl.zst"])
def test_a_pointer_in_place_of_a_packed_file_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a Git LFS pointer, not the file\nhint: git lfs pull"):
        read(write(tmp_path / name, "version https://git-lfs.github.com/spec/v1\noid sha256:00\n"))


def test_parquet_without_its_ending_is_read(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["가"]}).write_parquet(tmp_path / "0a1b2c")
    assert read(tmp_path / "0a1b2c") == ["가"]
    with pytest.raises(InputError, match=r"is Parquet, which cannot be read as a stream\nhint: zcat .* > .*a\.parquet"):
        read(write(tmp_path / "a.parquet.gz", gzip.compress((tmp_path / "0a1b2c").read_bytes())))


def test_a_field_that_has_no_effect_is_refused(tmp_path: Path) -> None:
    text, table = write(tmp_path / "a.txt", "가\n"), write(tmp_path / "a.csv", "review\n나\n")
    sources.check_field([Source.of(text), Source.of(table, field="review"), Source.of(text, field="review")])
    with pytest.raises(
        InputError, match=r"the field `review` has no effect: `.*a\.txt` is plain text\nhint: leave out"
    ):
        sources.check_field([Source.of(text, field="review")])


def test_a_folder_says_what_it_left_out(tmp_path: Path) -> None:
    """And reads nothing that koktok wrote there, also below a folder that is named by a glob."""
    for name, data in {
        "a.jsonl": RECORD, "b.json": RECORD, "c.json.gz": gzip.compress(RECORD.encode()), "d.json": "[1]", "e.hwp": "x",
        "AA/wiki_00": RECORD, "LICENSE": "x", "f.hwp": "x", "my-tok/README.md": "x", "my-tok/koktok.toml": "", "my-tok/tokenizer.json": "",
        "koktok.toml": "",
        "my-tok/deeper/a.txt": "x", "report.md": "x", "user.md": "글\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        write(tmp_path / name, data)
    for name, product in (("tokens", "tokens.sha256"), ("again", "koktok.sha256")):
        write_folder(tmp_path / name, {"README.md": "가"}, Product(product, "x"))
    (tmp_path / "report.sha256").write_bytes(write_module._list_of([("report.md", "0")]))
    os.mkfifo(tmp_path / "pipe.txt")
    source = Source.of(tmp_path)
    names = ["AA/wiki_00", "a.jsonl", "b.json", "c.json.gz", "user.md"]
    assert [str(path.relative_to(tmp_path)) for path in source.paths] == names
    assert sorted(source.skipped) == [
        f"2 files of `{tmp_path}`, which koktok wrote",
        *(f"`{tmp_path}/{name}`, which koktok wrote" for name in ("again", "my-tok", "tokens")),
        f"of `{tmp_path}`: 2 .hwp, 1 .json, 1 without an ending, 1 .toml, 1 .txt",
    ]
    assert [path.name for path in Source.of(f"{tmp_path}/**/*.md").paths] == ["user.md"]
    assert Source.of(f"{tmp_path}/**/*.md").skipped == (f"4 of the files `{tmp_path}/**/*.md`, which koktok wrote",)
    with pytest.raises(
        InputError, match=r"holds no file that koktok reads .* not read: `.*my-tok`, which koktok wrote"
    ):
        Source.of(tmp_path / "my-tok")


def test_a_place_without_a_name_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.txt", "가\n")
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Source.of(".").name == tmp_path.name
    monkeypatch.chdir(tmp_path / "b")
    assert Source.of("..").name == tmp_path.name
    assert name_of(["/"]) == "text"


# Files and folders


def test_folder_is_sorted_and_skips_hidden_and_unknown(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a.jsonl.gz", ".git/c.txt", ".d.txt", "e.pdf", "A.TXT"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, "x")
    assert [str(path.relative_to(tmp_path)) for path in Source.of(tmp_path).paths] == [
        "A.TXT",
        "a/z.md",
        "a.jsonl.gz",
        "b.txt",
    ]


def test_glob_matches_in_order_and_a_file_is_read_once(tmp_path: Path) -> None:
    for name in ("2.txt", "1.txt", "x[1].txt", "sub/3.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, "x")
    names = [path.name for path in Source.of(f"{tmp_path}/?.txt", tmp_path / "1.txt", f"{tmp_path}/**/3.txt").paths]
    assert names == ["1.txt", "2.txt", "3.txt"]
    assert [path.name for path in Source.of(f"{tmp_path}/x[1].txt").paths] == ["x[1].txt"]


def test_source_is_named_after_its_paths(tmp_path: Path) -> None:
    paths = [write(tmp_path / name, "x") for name in ("a.txt.gz", "b.txt")]
    assert [Source.of(*paths).name, Source.of(paths[0], name="mine").name, Source.of("-").name] == [
        "a+b",
        "mine",
        "stdin",
    ]


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.txt", "가")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"a.txt` cannot be read: Permission denied"):
        read(path)


def test_an_empty_shard_among_others_is_no_error(tmp_path: Path) -> None:
    empty, full = write(tmp_path / "a.txt", ""), write(tmp_path / "b.txt", "가\n")
    report = ReadReport()
    assert read_lines([Source.of(empty), Source.of(full)], report=report) == ["가"]
    assert report.empty_files == [str(empty)]
    assert report.digests["a"] == hashlib.sha256(b"").hexdigest()
    for some in ([Source.of(empty)], [Source.of(empty), Source.of(os.devnull)]):
        with pytest.raises(InputError, match="is empty"):
            read_lines(some)
        assert read_lines(some, may_be_empty=True) == []
    broken = Source.of(write(tmp_path / "c.txt", b"\xff x\n"))
    with pytest.raises(InputError, match=r"c\.txt`\) has no line of valid UTF-8"):
        read_lines([broken, Source.of(full)], may_be_empty=True)


def test_what_cannot_be_read_below_a_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "closed/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, "가\n")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nothing.txt")
    scandir = os.scandir

    def refuse(path: str) -> Any:  # as the system does to everybody but root
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    source, report = Source.of(tmp_path), ReadReport()
    assert read_lines(source, report=report) == ["가"]
    assert list(source.skipped) == report.skipped
    assert sorted(report.skipped) == [
        f"`{tmp_path}/closed`: Permission denied",
        f"`{tmp_path}/gone.txt`: No such file or directory",
    ]
    assert Source.of(f"{tmp_path}/*.txt").skipped == (f"`{tmp_path}/gone.txt`: No such file or directory",)
    with pytest.raises(InputError, match=r"closed` holds no file .* not read: .*closed`: Permission denied"):
        Source.of(tmp_path / "closed")


# Bytes that are no text


def test_bad_lines_are_left_out_and_counted_with_their_place(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "하나하나하나하나\n".encode() + b"\xff\xfe x\n" + "셋셋\n".encode() + b"\xb0\n")
    report = ReadReport()
    assert read(path, report=report) == ["하나하나하나하나", "셋셋"]
    assert (report.bad_bytes, report.bad_lines, report.bad_places) == (3, 2, [f"{path}:2", f"{path}:4"])
    assert report.lines == 2
    assert read(path, errors="replace")[1::2] == ["\ufffd\ufffd x", "\ufffd"]
    broken = write(tmp_path / "b.txt", b"\xff x\n")
    with pytest.raises(InputError, match=r"b\.txt`\) has no line of valid UTF-8 \(1 invalid lines\)"):
        read(broken)
    with pytest.raises(InputError, match=r"a\.txt`, line 2 holds 2 bytes that are not UTF-8"):
        read(path, errors="error")


def test_places_are_true_beyond_the_first_block(tmp_path: Path) -> None:
    report = ReadReport()
    path = write(tmp_path / "a.txt", b"twelve bytes\n" * 70_000 + b"\xff")
    assert len(read(path, report=report)) == 70_000
    assert report.bad_places == [f"{path}:70001"]


def test_bad_text_in_records(tmp_path: Path) -> None:
    good = '{"text": "가나다라마바사"}\n'
    path = write(
        tmp_path / "a.jsonl",
        good.encode() + b'{"text": "\xff"}\n{"other": "\xff", "text": "b"}\n{"text": "\\ud800"}\n{"text": null}\n',
    )
    report = ReadReport()
    assert read(path, report=report) == ["가나다라마바사", "b"]
    assert report.bad_places == [f"{path}:{number}" for number in (2, 4, 5)]
    with pytest.raises(InputError, match="line 2 holds 1 bytes"):
        read(path, errors="error")
    only_null = write(tmp_path / "b.jsonl", good + '{"text": null}\n')
    with pytest.raises(InputError, match="line 2 has no text"):
        read(only_null, errors="error")
    assert read(only_null, errors="replace") == ["가나다라마바사"]


def test_records_without_text_follow_one_rule(tmp_path: Path) -> None:
    """Null, a missing field and a number are left out and counted; before the first text the field is the wrong one."""
    some = [None, "가", None, "나"]
    files = [
        write(
            tmp_path / "a.jsonl",
            '{"text": null}\n{"text": "가"}\n{"other": 1}\n{"text": "나"}\n{"text": 3}\n{"text": ["다"]}\n',
        ),
        tmp_path / "b.parquet",
    ]
    pl.DataFrame({"text": some}).write_parquet(files[1])
    items = [{"text": None}, {"text": "가"}, {"other": "a"}, "나", {"text": 3}]
    for text, places in ((files[0], (1, 3, 5, 6)), (files[1], (1, 3)), (items, (1, 3, 5))):
        report = ReadReport()
        assert read_lines(text, report=report) == ["가", "나"]
        assert report.bad_lines == len(places)
        assert [int(re.findall(r"\d+", place)[-1]) for place in report.bad_places] == [*places]
    for first in ('{"other": "가"}', '{"text": 3}', '{"text": null}\n{"text": 3}'):
        with pytest.raises(InputError, match=r"has no field|is a `int`; expected text"):
            read(write(tmp_path / "c.jsonl", f'{first}\n{{"text": "가"}}\n'))
    with pytest.raises(InputError, match="expected a record with the field"):
        read(write(tmp_path / "c.jsonl", '{"text": "가"}\n3\n'))


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "python"])
def test_texts_of_chats(suffix: str, tmp_path: Path) -> None:
    """Turns without text are left out, and a record is one document."""
    turns = [[("user", "안녕?"), ("tool", None), ("assistant", "네.\n둘째 줄")], [("user", "응")], [], [("tool", None)]]
    for list_, role, content in (("messages", "role", "content"), ("conversations", "from", "value")):
        rows = [{"id": n, list_: [{role: who, content: said} for who, said in some]} for n, some in enumerate(turns)]
        path = tmp_path / f"{list_}.{suffix}"
        if suffix == "jsonl":
            write(path, "".join(f"{json.dumps(row)}\n" for row in rows))
        elif suffix == "parquet":
            pl.DataFrame(rows).write_parquet(path)
        given = rows if suffix == "python" else path
        field = f"{list_}[].{content}"
        found = read_documents(given, field=field)
        assert [one for one in found if one] == ["안녕?\n네.\n둘째 줄", "응"]
        if suffix != "parquet":
            with pytest.raises(InputError, match=re.escape(f"hint: field={field!r}")):
                read_documents(given, field="text")
        with pytest.raises(InputError, match=r'has no (field|column of text) "'):
            read_documents(given, field=f"{list_}[].wrong")
    assert read_documents([{"texts": ["가", None, "나"]}], field="texts[]") == ["가\n나"]


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("나는 학생이다.\n".encode("utf-16"), r"(?s)is UTF-16.*hint: .*iconv -f utf-16 -t utf-8.* > .*utf8\.txt"),
        ("가".encode("utf-16-be").join([b"\xfe\xff", b""]), "is UTF-16"),
        ("나는 학생이다. abc\n".encode("cp949"), r"(?s)looks like EUC-KR or CP949.*hint: .*iconv -f cp949 -t utf-8"),
        ("가나".encode("cp949"), "EUC-KR or CP949"),
        (
            ("동해 물과 백두산이 마르고 닳도록\n" * 40).encode("cp949").replace(b"\n", b"\xff\n", 20)[:-3],
            "EUC-KR or CP949",
        ),
        (b"PK\x03\x04\x00\x00abc", "(?s)is binary; expected text in UTF-8.*hint: file "),
        (b"\x89\xfa\xfb\xfc" * 50 + b"abc", "is binary: 200 of its first 203 bytes are not UTF-8"),
    ],
)
def test_what_is_no_utf8_is_refused_with_the_way_out(tmp_path: Path, packed: str, data: bytes, message: str) -> None:
    path = write(tmp_path / f"a.txt{packed}", PACK[packed](data))
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(path) in caught.value.message
    if packed and "iconv" in caught.value.hint:
        assert caught.value.hint.startswith(f"zcat {path} | iconv")


def test_the_way_out_can_be_typed_whatever_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "한국어 폴더; $(exit 9)"
    folder.mkdir()
    for name, packing in (("글 '1'.txt", ""), ("글 2.txt.gz", ".gz")):
        path = write(folder / name, PACK[packing]("나는 학생이다.\n".encode("cp949")))
        with pytest.raises(InputError, match="CP949") as caught:
            read(path)
        subprocess.run(["bash", "-c", caught.value.hint], check=True)
        assert read(path.with_name(f"{name.split('.')[0]}.utf8.txt")) == ["나는 학생이다."]
    path = write(folder / "a b.jsonl", '{"text": 1, "$(touch x)": "가"}\n')
    with pytest.raises(InputError, match=r"field='\$\(touch x\)'"):
        read(path)
    with pytest.raises(InputError, match="is not JSON") as caught:
        read(write(folder / "c d.jsonl", "x\ny\n"))
    assert subprocess.run(["bash", "-c", caught.value.hint], check=True, capture_output=True).stdout == b"x\n"


@pytest.mark.parametrize("size", [40, 200, 1000, 9000])
def test_random_bytes_are_binary_and_not_korean(tmp_path: Path, size: int) -> None:
    for seed in range(30):
        noise = random.Random(seed).randbytes(size).replace(b"\0", b"\1")
        with pytest.raises(InputError, match=r"is binary: |no line of valid UTF-8") as caught:
            read(write(tmp_path / "a.txt", noise))
        assert "CP949" not in str(caught.value)


def test_a_file_that_turns_bad_later_is_refused_at_its_end(tmp_path: Path) -> None:
    data = b"ascii first\n" * 30_000 + "나는 학생이다.\n".encode("cp949") * 200_000
    with pytest.raises(InputError, match=r"(?s)is not text: \d+ of its \d+ bytes are not UTF-8.*iconv -f cp949"):
        read(write(tmp_path / "a.txt", data))


@pytest.mark.parametrize("packed", [".gz", ".xz", ".bz2", ".zst"])
@pytest.mark.parametrize("broken", ["cut", "foreign"])
def test_damaged_archives(tmp_path: Path, packed: str, broken: str) -> None:
    noise = random.Random(0).choices("가나다라마바사아자차카타파하\n", k=50_000)
    whole = PACK[packed]("".join(noise).encode())
    path = write(
        tmp_path / f"a.txt{packed}", whole[: len(whole) // 2] if broken == "cut" else b"no archive at all\n" * 9
    )
    with pytest.raises(InputError, match=r"a\.txt\.\w+` (is damaged or cut off|cannot be read)"):
        read(path)


@pytest.mark.parametrize("packed", [".gz", ".xz", ".bz2", ".zst"])
def test_archives_of_several_members(tmp_path: Path, packed: str) -> None:
    path = write(tmp_path / f"a.txt{packed}", PACK[packed](b"a\nb") + PACK[packed](b"c\n"))
    assert read(path) == ["a", "bc"]


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_MAX_LINE", 1 << 20)
    with pytest.raises(InputError, match="has a line of more than"):
        read(write(tmp_path / "a.txt", b"a" * (1 << 21)))


# Records


def test_blank_lines_between_records_are_nothing(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.jsonl", '{"text": "가"}\n\n \n{"text": "나"}\n\n')) == ["가", "나"]


def test_tsv_takes_quotes_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "nsmc.tsv", 'id\tdocument\tlabel\r\n1\t"아 진짜\t0\r\n\n2\t좋다\t1\r\n')
    assert read(path, field="document") == ['"아 진짜', "좋다"]


def test_the_hint_names_the_column_of_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,user,review\n9976970000000,a_1,\n9976971000000,b_2,Good.\n")
    with pytest.raises(InputError, match='has no field "text"') as caught:
        read(path)
    assert caught.value.hint == "--field review"


def test_csv_fields_may_be_long_and_hold_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '\ufefftext,id\r\n"가\r\n나, ""다""",1\r\n' + "라" * 200_000 + ",2\r\n")
    assert read(path) == ["가", '나, "다"', "라" * 200_000]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    words = [f"말{number}" for number in range(5000)]
    pl.DataFrame({"id": range(5001), "text": [*words, None]}).write_parquet(path, row_group_size=700)
    told: list[tuple[int, int | None]] = []
    report = ReadReport()
    assert read(path, report=report, on_progress=lambda *step: told.append(step)) == words
    assert told[-1] == (path.stat().st_size,) * 2
    assert report.bad_places == [f"{path}:5001"]
    for field in ("body", "id"):
        with pytest.raises(
            InputError, match=rf'no column of text "{field}"; it has: "id" \(Int64\), "text" \(String\)'
        ):
            read(path, field=field)
    columns = {"text": [["가"], ["나"]], "큰 글": pl.Series(["다", "라"], dtype=pl.Categorical)}
    pl.DataFrame(columns).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(InputError, match=r'(?s)no column of text "text"; it has: "text" \(List\(.*field=\'text\[\]\''):
        read(tmp_path / "c.parquet")
    assert read(tmp_path / "c.parquet", field="큰 글") == ["다", "라"]
    assert read(tmp_path / "c.parquet", field="text[]") == ["가", "나"]
    with pytest.raises(InputError, match="is damaged or no Parquet"):
        read(write(tmp_path / "b.parquet", b"abc" * 100))


def test_parquet_of_other_types_and_names(tmp_path: Path) -> None:
    """Bytes and categories are text too; a star in a name is a star."""
    path = tmp_path / "a[1]*.parquet"
    texts = pl.Series(["가", "나", "가"])
    pl.DataFrame({"raw": [b"\xea\xb0\x80", b"\xff", b"b"], "text": texts.cast(pl.Categorical)}).write_parquet(path)
    assert read(path) == ["가", "나", "가"]
    report = ReadReport()
    assert read(path, field="raw", report=report) == ["가", "b"]
    assert (report.bad_lines, report.bad_places) == (1, [f"{path}:2"])


# Standard input, pipes, Python objects


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def give(data: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.encode())))

    told: list[tuple[int, int | None]] = []
    give("가\n나")
    assert read("-", on_progress=lambda *step: told.append(step)) == ["가", "나"]
    assert told == [(7, None)]
    assert not sys.stdin.closed
    give('{"body": "가"}\n')
    assert read("-", field="body") == ["가"]
    give("")
    with pytest.raises(InputError, match=r"the source `stdin` .* is empty"):
        read("-")


def test_named_pipe_has_no_total(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=lambda: write(tmp_path / "pipe", "가\n"))
    thread.start()
    told: list[tuple[int, int | None]] = []
    assert read(tmp_path / "pipe", on_progress=lambda *step: told.append(step)) == ["가"]
    thread.join()
    assert told == [(4, None)]


def test_reading_is_streaming(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "가나다라\n" * 400_000)
    told: list[int] = []
    blocks = sources.read(Source.of(path), on_progress=lambda done, _: told.append(done))
    assert next(blocks).lines()[0] == "가나다라"
    assert not told or told[-1] < 1_000_000


def test_lines_of_python_objects(tmp_path: Path) -> None:
    report = ReadReport()
    assert read_lines((text for text in ["가\r\n나", "다"]), report=report) == ["가", "나", "다"]
    assert report.digests == {"lines": hashlib.sha256("가\r\n나\n다\n".encode()).hexdigest()}
    assert read_documents([{"body": "가\n나\n"}, "가\r\n나"], field="body") == ["가\n나\n", "가\r\n나"]
    path = write(tmp_path / "a.txt", "가\n")
    assert read_lines(path) == read_lines(Source.of(path)) == ["가"]


def test_holes_batches_and_bytes_of_python_follow_the_rule_of_files(tmp_path: Path) -> None:
    """A hole and what is no UTF-8 are left out and counted, lists are their items."""
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    some = ["가", None, "나"]
    holes: list[Any] = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan"), b"\xff", "\ud800"]
    write(tmp_path / "a.jsonl", "".join(f"{json.dumps({'text': text})}\n" for text in [*some, float("nan"), "\ud800"]))
    for shape, bad in (
        (tmp_path / "a.jsonl", 3),
        (["가", *holes, "나"], len(holes)),
        ([*holes, {"text": float("nan")}, {"text": pd.NA}, "가", {"text": "나".encode()}], len(holes) + 2),
        (pd.Series(some), 1),
        (pd.Series(["가", None, "나"], dtype="string"), 1),
        (pl.Series(some), 1),
        (pa.array(some), 1),
        (pa.chunked_array([some, []]), 1),
        (np.array(["가", "나"]), 0),
        ((batch for batch in ([], ["가", None], ("나",))), 1),
        ([np.array(["가", "나"]), pa.array([], pa.string()), pl.Series([], dtype=pl.String)], 0),
        ([["가"], [["나".encode(), None]]], 1),
    ):
        report = ReadReport()
        assert read_documents(shape, report=report) == ["가", "나"], shape
        assert report.bad_lines == bad, shape


def test_what_is_left_out_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever uses the library hears of it through `logging`; the command line says it by itself, once."""
    write(tmp_path / "a.txt", "가\n".encode() + b"\xff\n")
    (tmp_path / "gone.txt").symlink_to("nowhere")
    assert read_lines(Source.of(tmp_path)) == ["가"]
    said = [(record.levelname, record.name, record.getMessage()) for record in caplog.records]
    assert [(level, name) for level, name, _ in said] == [("WARNING", "koktok.text.sources")] * 2
    assert "gone.txt" in said[0][2]
    assert f"1 lines without readable text in `{tmp_path.name}`, the first at {tmp_path}/a.txt:2" == said[1][2]
    assert koktok("normalize", tmp_path / "a.txt").stderr.count("a.txt:2") == 1
