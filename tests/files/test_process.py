"""Child processes never import what lies in the folder where the user stands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MINI, ROOT

from koktok.files.process import environment

TRAPS = ("kiwipiepy", "typing", "queue", "struct", "numpy", "koktok", "sitecustomize", "pip", "datasets")


def set_traps(folder: Path) -> Path:
    """Modules that tell when they run, under names that a child of koktok imports."""
    for name in TRAPS:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'sprung')!r}, 'a').write({name!r} + ' ')")
    return folder / "sprung"


def test_training_in_a_folder_with_modules_runs_none_of_them(tmp_path: Path) -> None:
    sprung = set_traps(tmp_path)
    (tmp_path / "text.txt").write_text((MINI / "essay.txt").read_text(encoding="utf-8"), encoding="utf-8")
    # -P: the installed command has its own folder on the path, not the working directory, which `-m` would put there.
    words = [sys.executable, "-P", "-m", "koktok", "train", "text.txt", "--vocab-size", "1200", "--no-compare"]
    env = os.environ | {"PYTHONPATH": str(ROOT), "KOKTOK_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [*words, "--out", "out", "--log", "json"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert not sprung.exists(), sprung.read_text()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr.splitlines()[-1])["words_analysed"] > 0


@pytest.mark.parametrize("entry", ["", ".", "folder", "{here}", "{here}/../{name}", "/no/such:folder"])
def test_a_child_sees_no_entry_that_is_the_working_directory(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprung = set_traps(tmp_path)
    (tmp_path / "folder").mkdir()
    set_traps(tmp_path / "folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(entry.format(here=tmp_path, name=tmp_path.name))
    code = "import typing, queue, struct, koktok.segment.workers, sys; print(sys.path)"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert str(tmp_path) not in done.stdout
    assert not sprung.exists()


def test_a_checkout_stays_importable_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert environment()["PYTHONPATH"].split(os.pathsep)[-1] == str(ROOT)
