"""Folders in JavaScript: `@huggingface/tokenizers`, which transformers.js runs on, gives the ids that Python gives.

Two differences are that library's own, and the card of a folder names them: Unigram has no byte fallback there, and jamo is
not for it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import MODELS

from koktok import Tokenizer
from koktok.verify.probes import TRICKY

PACKAGE = "@huggingface/tokenizers@0.2.0"

SCRIPT = """
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
const [folder, lines] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(path, "utf-8"));
const tokenizer = new Tokenizer(read(`${folder}/tokenizer.json`), read(`${folder}/tokenizer_config.json`));
const rows = read(lines).map((line) => {
  const ids = [...tokenizer.encode(line, { add_special_tokens: false }).ids].map(Number);
  return [ids, ids.length ? tokenizer.decode(ids, { clean_up_tokenization_spaces: false }) : ""];
});
process.stdout.write(JSON.stringify(rows));
"""


@pytest.fixture(scope="session")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with node's package in it."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed; on Debian: apt-get install nodejs npm")
    home = tmp_path_factory.mktemp("javascript")
    (home / "package.json").write_text('{"type": "module", "private": true}', encoding="utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    made = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300)
    if made.returncode:
        pytest.skip(f"npm could not install {PACKAGE}: {made.stderr.strip()[-200:]}")
    (home / "ids.js").write_text(SCRIPT, encoding="utf-8")
    return home


KINDS = ["unigram", "bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes", "word", "syllable"]


@pytest.mark.network
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_ids_in_javascript(
    kind: str, javascript: Path, trained: Callable[..., Path], mini: list[str], tmp_path: Path
) -> None:
    folder = trained(**MODELS[kind])
    tokenizer = Tokenizer.load(folder)
    lines = [line for line in (*TRICKY, *mini) if "\x00" not in line]
    if kind == "unigram":  # there is no byte fallback for it in JavaScript
        lines = [line for line in lines if not set(tokenizer.encode(line).ids) & set(tokenizer.vocab.fragment_ids)]
        assert len(lines) > len(mini) // 2
    (tmp_path / "lines.json").write_text(json.dumps(lines), encoding="utf-8")
    command = ["node", "ids.js", str(folder), str(tmp_path / "lines.json")]
    done = subprocess.run(command, cwd=javascript, capture_output=True, text=True, timeout=300, check=True)
    rows: list[tuple[list[int], Any]] = json.loads(done.stdout)
    other = [line for line, (ids, _) in zip(lines, rows, strict=True) if ids != tokenizer.encode(line).ids]
    assert not other, other[:5]
    if tokenizer.lossless:
        assert [text for _, text in rows] == [tokenizer.normalize(line) for line in lines]
