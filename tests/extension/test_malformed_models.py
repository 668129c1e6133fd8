"""Files of models and extensions that do not say what they may: one error that names the file, before memory is taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_extend_models import extension, matrix, model

from koktok.errors import ArtifactError
from koktok.extension.embeddings import apply_extension
from koktok.extension.extension_files import EXTENSION, read_extension

NESTED = "[" * 200_000
NAME = "model.embed_tokens.weight"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return model(tmp_path / "model", {NAME: matrix(12, 1), "lm_head.weight": matrix(12, 2)})


def refused(name: str, place: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as caught:
        apply_extension(extension(tmp_path / "ext"), place, tmp_path / "out")
    assert name in caught.value.message
    assert not (tmp_path / "out").exists()


def rewritten(file: Path, header: str) -> None:
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    head = header.encode()
    file.write_bytes(len(head).to_bytes(8, "little") + head + data[8 + length :])


HEADERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "large": lambda h: h[NAME].update(shape=[1200, 8]),
    "2 ** 70": lambda h: h[NAME].update(shape=[1 << 70, 8]),
    "same bytes": lambda h: h[NAME].update(data_offsets=h["lm_head.weight"]["data_offsets"]),
    "no row": lambda h: h.update({NAME: 5}),
}
"""The safetensors library checks the rest."""


@pytest.mark.parametrize("change", [*HEADERS, NESTED, "garbage"])
def test_header_of_a_shard(change: str, place: Path, tmp_path: Path) -> None:
    file = place / "model.safetensors"
    text = change
    if change in HEADERS:
        data = file.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        HEADERS[change](header)
        text = json.dumps(header)
    rewritten(file, text)
    refused("model.safetensors", place, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        NESTED,
        "[]",
        '{"weight_map": {"a": 5}}',
        '{"weight_map": {"a": "../model.safetensors"}}',
        '{"metadata": "x", "weight_map": {}}',
        "{}",
    ],
)
def test_index(text: str, place: Path, tmp_path: Path) -> None:
    (place / "model.safetensors.index.json").write_text(text)
    refused("index.json", place, tmp_path)


@pytest.mark.parametrize("text", [NESTED, '{"a": ' * 100_000, "[]", "garbage", ""])
def test_configuration(text: str, place: Path, tmp_path: Path) -> None:
    (place / "config.json").write_text(text)
    refused("config.json", place, tmp_path)


TOLD: dict[str, Callable[[dict[str, Any]], object]] = {
    "id -1": lambda t: t["pieces"][0].update(id=-1),
    "id 2300.5": lambda t: t["pieces"][0].update(id=2300.5),
    "id 2 ** 40": lambda t: t["pieces"][-1].update(id=1 << 40),
    "ids and size 2 ** 40": lambda t: (t["pieces"][-1].update(id=1 << 40), t.update(size=(1 << 40) + 1)),
    "filled 2 ** 40": lambda t: (t["pieces"][-1].update(id=1 << 40), t.update(size=(1 << 40) + 1, mode="fill")),
    "size 2 ** 40": lambda t: t.update(size=1 << 40),
    "size x": lambda t: t.update(size="x"),
    "base.size a": lambda t: t["base"].update(size="a"),
    "base of nothing": lambda t: t["pieces"][0].update(base=[]),
    "base 2 ** 40": lambda t: t["pieces"][0].update(base=[1 << 40, 1]),
    "base a": lambda t: t["pieces"][0].update(base="a"),
    "lengths a": lambda t: t["pieces"][0].update(lengths="a"),
    "too few lengths": lambda t: t["pieces"][0].update(lengths=[1.0]),
    "hangul": lambda t: t["base"].update(hangul=[1 << 40]),
    "pieces": lambda t: t.update(pieces={"a": 1}),
    "mode": lambda t: t.update(mode="x"),
}


@pytest.mark.parametrize("change", [*TOLD, NESTED, "[]", "garbage", "{}"])
def test_extension_json(change: str, tmp_path: Path) -> None:
    file = extension(tmp_path / "ext") / EXTENSION
    text = change
    if change in TOLD:
        told = json.loads(file.read_text())
        TOLD[change](told)
        text = json.dumps(told)
    file.write_text(text)
    with pytest.raises(ArtifactError, match=r"extension\.json"):
        read_extension(file.parent)
