"""Law 10: a folder that was saved once loads for ever, with the same ids. The folders are tests/folders/*/.

They are never written anew: where this test fails, users' folders fail.
"""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import tokenizers
from conftest import ROOT, WITHOUT_HF, works

from koktok import Tokenizer, load
from koktok.errors import ArtifactError
from koktok.model.vocab import VocabKind
from koktok.recipe import FORMAT
from koktok.runtimes.folder import MARK

FOLDERS = sorted(file.parent for file in (ROOT / "tests" / "folders").glob("*/golden.json"))


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda path: path.name)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder as a user has it, and what it must give."""
    folder = tmp_path_factory.mktemp("saved") / request.param.name
    shutil.copytree(request.param, folder)
    for packed in folder.glob("*.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    golden = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    (folder / "golden.json").unlink()
    return folder, golden


def check(tokenizer: Tokenizer, golden: dict[str, Any]) -> None:
    vocab = tokenizer.vocab
    assert (vocab.kind, vocab.size, vocab.digest()) == (golden["kind"], golden["size"], golden["digest"])
    assert tokenizer.lossless == golden["lossless"]
    for row in golden["texts"]:
        encoding = tokenizer.encode(row["text"])
        assert encoding.ids == row["ids"]
        assert [list(span) for span in encoding.offsets] == row["offsets"]
        assert tokenizer.decode(row["ids"]) == row["decoded"]
        assert tokenizer.encode(row["text"], allowed_special="all").ids == row["special"]
        assert tokenizer.encode(row["text"], add_special_tokens=True).ids == row["around"]


def test_it_loads_with_the_same_ids(saved: tuple[Path, dict[str, Any]]) -> None:
    folder, golden = saved
    check(load(folder), golden)


def test_saved_or_exported_it_gives_the_same_ids_and_notes_both_digests(
    saved: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, golden = saved
    if golden["kind"] in WITHOUT_HF:
        check(load(load(folder).save(tmp_path / "again")), golden)
        return
    before = load(folder).digest()
    for options in ((), ("--style", "llama"))[: 1 + (folder.name == "bpe")]:
        new = tmp_path / f"new{len(options)}"
        done = works("export", folder, "--to", "hf", *options, "-o", new)
        changed = f"the digest was {before} and is {load(new).digest()}"
        assert (changed in done.stderr) == (load(new).digest() != before) == bool(options)
    check(load(tmp_path / "new0"), golden)


def test_its_tokenizer_json_gives_the_same_ids(saved: tuple[Path, dict[str, Any]]) -> None:
    folder, golden = saved
    if not (folder / "tokenizer.json").exists():
        assert golden["kind"] in WITHOUT_HF
        return
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for row in golden["texts"]:
        theirs.encode_special_tokens = True
        assert theirs.encode(row["text"], add_special_tokens=False).ids == row["ids"]
        assert theirs.decode(row["ids"], skip_special_tokens=False) == row["decoded"]
        theirs.encode_special_tokens = False
        assert theirs.encode(row["text"], add_special_tokens=False).ids == row["special"]


def test_there_is_a_folder_of_every_kind() -> None:
    kinds = {json.loads((folder / "golden.json").read_text())["kind"] for folder in FOLDERS}
    assert kinds == set(get_args(VocabKind))
    assert sum(file.stat().st_size for folder in FOLDERS for file in folder.iterdir()) < 500_000


@pytest.mark.parametrize("form", [1, 3, "x"])
def test_a_folder_of_another_format_is_refused(form: object, trained: Callable[..., Path], tmp_path: Path) -> None:
    """Also where its recipe has keys that nobody knows yet."""
    folder = shutil.copytree(trained(), tmp_path / "other")
    text = (folder / MARK).read_text(encoding="utf-8")
    other = text.replace(f"format = {FORMAT}", f'format = {form!r}\nlater = "key"', 1)
    (folder / MARK).write_text(other, encoding="utf-8")
    with pytest.raises(ArtifactError, match=f"has format {form!r}, and this koktok reads format {FORMAT}"):
        load(folder)


def test_the_unknown_id_that_hugging_face_requires_is_never_given(
    trained: Callable[..., Path], mini: list[str]
) -> None:
    folder = trained()
    model = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    library.encode_special_tokens = True
    assert library.decode([model["unk_id"]]) == "\ufffd"
    texts = [*mini, "\0\x7f 뷁😀", "<unk>", "<0xFF>", *map(chr, range(0x1F300, 0x1F340))]
    assert not any(model["unk_id"] in row.ids for row in library.encode_batch(texts, add_special_tokens=False))
