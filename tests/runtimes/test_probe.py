"""probe.json: in every folder, with the ids of every kind, and checked without koktok."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from koktok import load
from koktok.errors import ArtifactError
from koktok.runtimes.probe import LINES, PROBE, probe_json, read_probe
from koktok.verification import verify

GUIDE = ROOT / "docs" / "guides" / "hand-over.md"


def test_the_lines() -> None:
    assert len(LINES) == len(set(LINES)) == 60
    assert not any("\n" in line or "\x7f" in line for line in LINES)
    assert any(unicodedata.normalize("NFC", line) != line for line in LINES)


def test_the_docs_check_a_folder_without_koktok(trained: Callable[..., Path], tmp_path: Path) -> None:
    """That every kind gives the ids of its probe, `verify` shows (tests/verification)."""
    (tmp_path / "my-tokenizer").symlink_to(trained())
    code = re.search(r"<!-- probe -->\n```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert "koktok" not in code[1].replace("my-tokenizer", "")
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content["ids"][3].append(7),
        lambda content: content["lines"].pop(),
        lambda content: content.pop("sha256"),
        lambda content: content.update(ids=None),
        lambda content: content["lines"].__setitem__(0, 5),
    ],
)
def test_a_changed_probe_is_an_error_and_fails_verify(
    damage: Callable[[Any], None], trained: Callable[..., Path], tmp_path: Path
) -> None:
    folder = load(trained()).save(tmp_path / "a")
    content = json.loads((folder / PROBE).read_text(encoding="utf-8"))
    damage(content)
    (folder / PROBE).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"probe\.json"):
        read_probe(folder)
    assert [finding.check for finding in verify(folder).findings if finding.outcome == "fail"] == ["files", PROBE]


def test_other_ids_fail_verify_and_a_missing_probe_does_not(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = load(trained()).save(tmp_path / "a")
    (folder / PROBE).write_text(probe_json(lambda lines: [[1] for _ in lines]), encoding="utf-8")
    row = next(finding for finding in verify(folder).findings if finding.check == PROBE)
    assert (row.outcome, row.checked, row.wrong) == ("fail", 60, 60)
    (folder / PROBE).unlink()
    row = next(finding for finding in verify(folder).findings if finding.check == PROBE)
    assert row.outcome == "not run"
