"""transformers 4.57 in a virtual environment of its own: the folder loads there without any code of ours."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import MODELS

from koktok import Tokenizer

CHECK = """
import json, sys
from transformers import AutoTokenizer, __version__
auto = AutoTokenizer.from_pretrained(sys.argv[1])
lines = json.load(open(sys.argv[2], encoding="utf-8"))
ids = [auto(line, split_special_tokens=True)["input_ids"] for line in lines]
texts = [auto.decode(row) for row in ids]
print(json.dumps([__version__, len(auto), auto.pad_token_id, ids, texts]))
"""


@pytest.mark.network
@pytest.mark.parametrize("model", ["unigram", "bpe", "bpe-bytes", "wordpiece", "word"])
def test_the_folder_loads_in_version_4(
    model: str, trained: Callable[..., Path], mini: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.getbasetemp() / "transformers4"
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        made = subprocess.run(
            [python, "-m", "pip", "install", "-q", "transformers==4.57.6"], capture_output=True, text=True
        )
        if made.returncode:
            pytest.skip(f"pip could not install transformers 4.57.6: {made.stderr.strip()[-200:]}")
    folder = trained(**MODELS[model])
    (tmp := tmp_path_factory.mktemp("lines") / "lines.json").write_text(json.dumps(mini), encoding="utf-8")
    done = subprocess.run([python, "-c", CHECK, folder, tmp], capture_output=True, text=True, check=True)
    version, size, pad, ids, texts = json.loads(done.stdout)
    ours = Tokenizer.load(folder)
    assert version.startswith("4.57")
    assert (size, pad) == (ours.vocab.size, ours.vocab.special_ids[ours.vocab.specials[0]])
    assert ids == [ours.encode(line).ids for line in mini]
    assert texts == [ours.decode(row) for row in ids]
