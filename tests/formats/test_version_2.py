"""tokenizer.json of version 2.0, which tokenizers 1.x reads: the ids of the folder that it was written from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import MODELS, WITHOUT_HF
from typer.testing import CliRunner

import koktok
from koktok.cli import app
from koktok.errors import ArtifactError
from koktok.formats.hf import in_version_2, tokenizer_json
from koktok.model.vocab import Vocab
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.verification.probes import TRICKY


@pytest.mark.parametrize("kind", sorted(MODELS.keys() - set(WITHOUT_HF)))
def test_the_same_ids_from_version_2(kind: str, trained: Callable[..., Path], tmp_path: Path) -> None:
    folder, file = trained(**MODELS[kind]), tmp_path / "tokenizer.json"
    result = CliRunner().invoke(app, ["export", str(folder), "--to", "hf2", "-o", str(file)])
    assert result.exit_code == 0, result.output
    content, own = json.loads(file.read_text(encoding="utf-8")), koktok.load(folder)
    assert content["version"] == "2.0"
    assert content["role_to_token"] == own.style.roles
    read = koktok.load(file)
    lines = [line for line in TRICKY if not (own.prefix == "first" and own.normalize(line).startswith(" "))]
    assert len(lines) > len(TRICKY) / 2
    assert [read.encode(line).ids for line in lines] == [own.encode(line).ids for line in lines]
    # tokenizers 1.0.0rc3 refuses it inside of a sequence
    assert "Metaspace" not in json.dumps((content["pre_tokenizer"] or {}).get("pretokenizers"))


def test_a_further_pre_tokenizer_beside_the_first_space_is_refused() -> None:
    """tokenizers 1.0.0rc3 refuses `Metaspace` inside of a sequence."""
    text = tokenizer_json(Vocab.bpe(" 12", ["12"]), Normalizer(), Pattern(digits="single"), prefix="first")
    with pytest.raises(ArtifactError, match="where no other pre-tokenizer follows"):
        in_version_2(text, {})
