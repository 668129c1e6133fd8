"""The guide's recipe for Kiwi at run time, run as it stands there: its pieces never cross a boundary that Kiwi finds."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import MODELS, ROOT

from koktok import load
from koktok.segment.kiwi import KiwiSegmenter
from koktok.text.prefix import CUT_MARK, with_prefix

GUIDE = (ROOT / "docs" / "guides" / "hand-over.md").read_text("utf-8")
(CODE,) = (block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.S) if "class MorphemeCuts" in block)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["unigram", "bpe-bytes"])
def test_the_recipe(
    model: str,
    trained: Callable[..., Path],
    mini: list[str],
    kiwi: KiwiSegmenter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "my-tokenizer").symlink_to(trained(**MODELS[model]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("koktok.segment.segmenter_for", lambda _: kiwi)
    names: dict[str, Any] = {}
    exec(CODE, names)
    ours, theirs = load("my-tokenizer"), names["tokenizer"]
    cutter = names["MorphemeCuts"](ours)
    seen = 0
    for line in [*mini[::60], "", "  두  칸 ", "ㅋㅋㅋ 뷁\t漢字 😀", "1234567원"]:
        got = theirs(line, add_special_tokens=False, return_offsets_mapping=True)
        assert ours.decode(got["input_ids"]) == ours.normalize(line)
        normal = ours.normalize(line)
        read = with_prefix(normal, ours.prefix)
        at, ids = len(normal) - len(read), []
        for pretoken in ours.pattern.pretokenize(read):
            if pretoken == CUT_MARK:
                at += 1
                continue
            places = [0, *cutter.cuts(pretoken), len(pretoken)]
            assert not any(a < at + cut < b for a, b in got["offset_mapping"] for cut in places), (line, pretoken)
            for a, b in pairwise(places):  # each part between two cuts by itself
                ids += ours.model.encode(pretoken[a:b])[0]
            at += len(pretoken)
            seen += len(places) - 2
        assert ids == got["input_ids"]
    assert seen > 25
