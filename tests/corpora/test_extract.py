"""Extraction: marks go, words stay, a paragraph, item or cell a line."""

from __future__ import annotations

import io

import pytest

from koktok.corpora.extract import prose
from koktok.errors import CorpusError

MARKDOWN = """---
title: 앞글
---
# 제목 `코드` #
> - **굵은** [글](https://a.b/c(d)) ![그림](x.png) [[쪽|보이는 말]] [[쪽]] &amp; <b>태그</b>
1. 하나<br>둘 <!-- 주석
여러 줄 --> 셋
| 이름 | 값 \\| 둘 |
|------|:---:|
| 가 | 나 |
```python
x = 1  # 주석
```
---
[id]: http://a.b
"""


@pytest.mark.parametrize(
    ("form", "text", "lines"),
    [
        (
            "md",
            MARKDOWN,
            [
                "제목 코드 #",
                "굵은 글 그림 보이는 말 쪽 & 태그",
                "1. 하나",
                "둘  셋",
                "이름",
                "값 \\| 둘",
                "가",
                "나",
                "x = 1  # 주석",
            ],
        ),
        ("json", '{"a": ["하나\\n둘", 3, "x"], "키": {"b": " 셋 "}}', ["하나", "둘", "셋"]),
        (
            "html",
            "<html><head><title>x</title><body><nav>y</nav><h1>제 <b>목</b></h1><p>한\n 문단<br>둘&amp;"
            "<table><td>가<td>나</table><script>z</script><pre>한 줄\n두 줄</pre>끝",
            ["제 목", "한 문단", "둘&", "가", "나", "한 줄", "두 줄", "끝"],
        ),
        ("txt", " 가\r\n\n나\u2028다\r라\n", ["가", "나\u2028다", "라"]),
    ],
)
def test_extraction(form: str, text: str, lines: list[str]) -> None:
    assert list(prose(io.BytesIO(text.encode()), form)) == lines


def test_code_keeps_its_indentation() -> None:
    data = "\ufeffdef f():\n    return 1  \n\n\t\tx\n".encode()
    assert list(prose(io.BytesIO(data), "code")) == ["def f():", "    return 1", "\t\tx"]
    assert list(prose(io.BytesIO(data), "txt")) == ["def f():", "return 1", "x"]


def test_extraction_of_what_is_something_else() -> None:
    with pytest.raises(CorpusError, match=r"`a\.json` is not json"):
        list(prose(io.BytesIO(b"{"), "json", name="a.json"))
    with pytest.raises(CorpusError, match="`text` is not in nonsense"):
        list(prose(io.BytesIO(b"x"), "txt", encoding="nonsense"))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("<p>가<!-- <p>나 --><b>다</b>", ["가다"]),
        ("<p>가<!--><p>나", ["가", "나"]),
        ("<p>가<!-- 나", ["가"]),
        ("<!-- 가", []),
        ("<p title='>'>가<p title=\">\" lang=ko>나", ["가", "나"]),
        ("<P>가</P><SCRIPT>'</p>'+1<2</SCRIPT >나", ["가", "나"]),
        ("<p>3 < 4 &lt; 5<br/>가</ p>나<![CDATA[다]]>라", ["3 < 4 < 5", "가나라"]),
        ("<!DOCTYPE html><?xml version='1'?><p>가<style/>나", ["가", "나"]),
        ("<p>가<p lang=", ["가"]),
    ],
)
def test_html_as_the_standard_reads_it(text: str, lines: list[str]) -> None:
    assert list(prose(io.BytesIO(text.encode()), "html")) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("---\n---\n가", ["가"]),
        ("---\ntitle: 가\n...\n나", ["나"]),
        ("---\n가\n나", ["가", "나"]),
        ("가 <!-- 나 <!-- 다 --> 라 <!-- 마", ["가  라 <!-- 마"]),
        ("[가[나](x) [다](y(z)w)", ["[가나 다"]),
    ],
)
def test_marks_that_stand_in_others_or_never_close(text: str, lines: list[str]) -> None:
    assert list(prose(io.BytesIO(text.encode()), "md")) == lines


def test_json_that_is_nested_deep() -> None:
    with pytest.raises(CorpusError, match=r"(?s)`a\.json` is not json: .*recursion.*hint: see the key `format`"):
        list(prose(io.BytesIO(b"[" * 200_000 + b"]" * 200_000), "json", name="a.json"))
    data = b'{"a":' * 900 + '["둘", ["셋"]]'.encode() + b"}" * 900
    assert list(prose(io.BytesIO(b'["\xed\x95\x98", ' + data + b"]"), "json")) == ["하", "둘", "셋"]


TABLE = 'ID\tText\tQuestion\n1\t그는 "엄마\t누구?\n2\t둘\n'
RECORDS = '{"title": "제목", "body": {"text": ["하나", "둘"]}, "text": "셋"}\n\n{"text": "넷", "n": 1}\n'
NOTEBOOK = '{"cells": [{"cell_type": "markdown", "source": ["# 머리\\n", "글"]}, {"cell_type": "code", "source": ["x = \'코드\'"]}]}'
TRANSLATION = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "a"
msgstr ":class:`~io.TextIO` 객체와 ``코드``, `연결 <http://a.b>`_"

#, fuzzy
msgid "b"
msgstr "짐작"

msgid "c"
msgstr ""
"""


@pytest.mark.parametrize(
    ("form", "text", "fields", "lines"),
    [
        ("tsv", TABLE, ("Question", "Text"), ["누구?", '그는 "엄마', "둘"]),
        ("tsv", TABLE, ("2",), ["Text", '그는 "엄마', "둘"]),
        ("tsv", "가\t나\n다\n", (), ["가", "나", "다"]),
        ("csv", 'Q,A\n"가, ""나""","다\n라"\n', ("A", "Q"), ["다", "라", '가, "나"']),
        ("json", RECORDS.split("\n")[0], ("text",), ["하나", "둘", "셋"]),
        ("jsonl", RECORDS, ("text",), ["하나", "둘", "셋", "넷"]),
        ("jsonl", RECORDS, (), ["제목", "하나", "둘", "셋", "넷"]),
        ("ipynb", NOTEBOOK, (), ["머리", "글"]),
        ("po", TRANSLATION, (), ["io.TextIO 객체와 코드, 연결"]),
    ],
)
def test_tables_records_notebooks_and_translations(
    form: str, text: str, fields: tuple[str, ...], lines: list[str]
) -> None:
    assert list(prose(io.BytesIO(text.encode()), form, fields=fields)) == lines


@pytest.mark.parametrize(
    ("form", "text", "fields", "why"),
    [
        ("tsv", TABLE, ("text",), "it has no column 'text', but ID, Text, Question"),
        ("csv", "", ("Q",), "it has no column 'Q'"),
        ("jsonl", "{", (), "is not jsonl"),
        ("ipynb", "[1]", (), "is not ipynb"),
        ("ipynb", "{", (), "is not ipynb"),
    ],
)
def test_what_is_none_of_them_is_told(form: str, text: str, fields: tuple[str, ...], why: str) -> None:
    with pytest.raises(CorpusError, match=why):
        list(prose(io.BytesIO(text.encode()), form, fields=fields))
