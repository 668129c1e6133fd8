"""Files that the user did not type: pipes, devices and pointers of Git LFS in their place are errors, and nothing waits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from conftest import koktok

import koktok as api
from koktok.cli.option_schema import TYPED
from koktok.count import Counts
from koktok.errors import ArtifactError, KoktokError
from koktok.extension.embeddings import _shards
from koktok.extension.extension_files import slots_of
from koktok.extension.prune import read_pruned
from koktok.files import LFS_POINTER
from koktok.files.checked import FETCH_LFS
from koktok.runtimes.gguf import read as gguf_read
from koktok.runtimes.probe import read_probe
from koktok.segment.dpe.learnt import Dpe
from koktok.tokenizer.restyle import chat_template_of
from koktok.training.spm import tokens_per_eojeol

if TYPE_CHECKING:
    from koktok.extension.base_tokenizer import Base

IN_THE_WAY: dict[str, Callable[[Path], None]] = {
    "device": lambda file: file.symlink_to("/dev/zero"),
    "pipe": lambda file: os.mkfifo(file),
    "pointer": lambda file: void(file.write_bytes(LFS_POINTER + b"v1\noid sha256:0\nsize 9\n")),
}


def void(_: object) -> None:
    """For a lambda that returns nothing."""


@pytest.fixture
def folders(trained: Callable[..., Path], tmp_path: Path) -> dict[str, Path]:
    shutil.copytree(trained(), tmp_path / "trained")
    others = tmp_path / "others"
    others.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tmp_path / "trained" / name, others)
    api.load(others).save(tmp_path / "imported")
    api.load(tmp_path / "trained" / "tokenizer.model").save(tmp_path / "sp")
    return {name: tmp_path / name for name in ("trained", "imported", "sp", "others")}


@pytest.mark.parametrize("what", IN_THE_WAY)
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("trained", "koktok.toml"),
        ("trained", "tokenizer.json"),
        ("imported", "koktok.toml"),
        ("imported", "tokenizer.json"),
        ("imported", "tokenizer_config.json"),
        ("sp", "tokenizer.model"),
        ("others", "tokenizer_config.json"),
    ],
)
def test_a_file_of_a_folder(name: str, file: str, what: str, folders: dict[str, Path]) -> None:
    place = folders[name] / file
    place.unlink(missing_ok=True)
    IN_THE_WAY[what](place)
    message = "Git LFS pointer" if what == "pointer" else "device, a pipe or a folder|no koktok.toml|files of|holds no"
    with pytest.raises(KoktokError, match=message):
        api.load(folders[name] if file != "koktok.toml" else f"koktok:{folders[name]}")
    assert not api.verify(folders[name]).passed or file != "tokenizer.json"


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_a_file_beside_the_text(what: str, tmp_path: Path) -> None:
    IN_THE_WAY[what](tmp_path / "a.json")
    (tmp_path / "t.txt").write_text("나는 집에 간다.\n", encoding="utf-8")
    for words in (
        ("--spans", tmp_path / "a.json"),
        ("--gold", tmp_path / "a.json"),
        (f"cuts:{tmp_path}/a.json",),
    ):
        done = koktok("report", "syllables", "--text", tmp_path / "t.txt", *words, "-o", tmp_path / "out", "-q")
        assert done.returncode == 1
        assert "is a Git LFS pointer" in done.stderr or "is a device, a pipe or a folder" in done.stderr


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_a_file_of_an_option(what: str, tmp_path: Path) -> None:
    place = tmp_path / "dpe.json"
    IN_THE_WAY[what](place)
    for name in ("dpe.safetensors", "ids.tsv"):
        (tmp_path / name).touch()
    for name in ("model.safetensors", "pruned.json", "probe.json"):
        IN_THE_WAY[what](tmp_path / name)
    opened: list[Callable[[], object]] = [
        lambda: Dpe.load(tmp_path),
        lambda: _shards(tmp_path),
        lambda: read_pruned(tmp_path),
        lambda: read_probe(tmp_path),
        lambda: gguf_read(place),
        lambda: tokens_per_eojeol(place, Counts.from_mapping({"a": 1})),
        lambda: slots_of(cast("Base", None), str(place)),
        lambda: chat_template_of(str(place)),
        lambda: TYPED["required"].value(str(place)),
    ]
    for opening in opened:
        with pytest.raises(
            ArtifactError, match=r"^`[^`]*` is a (Git LFS pointer|device, a pipe or a folder)"
        ) as caught:
            opening()
        assert (caught.value.hint == FETCH_LFS) == (what == "pointer")


def test_errors_of_libraries_are_errors_of_koktok(folders: dict[str, Path], tmp_path: Path) -> None:
    """A Unigram without an unknown token raises at the first character that it lacks."""
    import json

    place = tmp_path / "null"
    place.mkdir()
    made = json.loads((folders["trained"] / "tokenizer.json").read_text("utf-8"))
    made["model"] |= {"unk_id": None, "byte_fallback": False}
    (place / "tokenizer.json").write_text(json.dumps(made), encoding="utf-8")
    shutil.copy(folders["trained"] / "tokenizer_config.json", place)
    text = tmp_path / "t.txt"
    text.write_text("나는 집에 간다 😀뷁\n", encoding="utf-8")
    for words in (
        ("verify", place, text),
        ("extend", place, text, "--add", 3, "-o", tmp_path / "x"),
        ("extend", place, text, "--prune", 3, "-o", tmp_path / "x"),
        ("report", place, "--text", text, "-o", tmp_path / "r"),
        ("diff", place, "syllables", "--text", text),
        ("doctor", place),
    ):
        done = koktok(*words)
        assert done.returncode in (1, 2), words
        assert "Traceback" not in done.stderr
        assert "`unk_id` is missing" in done.stderr + done.stdout, words
    for squad in ({"context": 5}, {"context": "\ud800"}):
        (tmp_path / "s.json").write_text(json.dumps({"data": [{"paragraphs": [squad | {"qas": []}]}]}))
        done = koktok("report", "syllables", "--spans", tmp_path / "s.json", "-o", tmp_path / "r", "-q")
        assert (done.returncode, done.stderr.startswith("error: expected SQuAD's JSON")) == (1, True)


def test_verify_names_the_library_that_a_folder_lacks(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folders["trained"]
    for name in ("koktok.toml", "koktok.sha256", "tokenizer.model"):
        (place / name).unlink()

    def missing(_: Path) -> None:
        raise ModuleNotFoundError("No module named 'fugashi'", name="fugashi")

    monkeypatch.setattr("koktok.verification.others.auto_tokenizer", missing)
    found = api.verify(place)
    assert not found.passed
    assert "fugashi" in str(found)
