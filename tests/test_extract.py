"""Extraction: marks go, words stay, a paragraph, item or cell a line."""

from __future__ import annotations

import io

import pytest

from koktok.errors import CorpusError
from koktok.extract import prose

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


def test_extraction_of_what_is_something_else() -> None:
    with pytest.raises(CorpusError, match=r"`a\.json` is no json"):
        list(prose(io.BytesIO(b"{"), "json", name="a.json"))
    with pytest.raises(CorpusError, match="`text` is not in nonsense"):
        list(prose(io.BytesIO(b"x"), "txt", encoding="nonsense"))
