"""The kind of tokenizer at a path: the members of `koktok.runtimes` are asked, by the content and then by the name of a file."""

from __future__ import annotations

from pathlib import Path

from koktok.errors import ArtifactError
from koktok.files import read_bounded, typed
from koktok.runtimes.folder import IN_A_FOLDER, MARK
from koktok.runtimes.huggingface.config_files import has_merges
from koktok.runtimes.runtime import RUNTIMES, Detected, kinds_of_file


def detect(path: Path, kind: str = "") -> Detected:
    """The tokenizer at a path; a vocabulary beside files of transformers is one with them, but not a file of ranks."""
    if not path.is_dir():
        found, with_others = _of_file(path)
        whole = _of_folder(path.parent, kind) if with_others and not (path.parent / MARK).is_file() else None
        return whole or found
    if (path / MARK).is_file() and kind in ("", "koktok"):
        return Detected("koktok", path)
    if whole := _of_folder(path, "" if kind == "hf" else kind):
        return whole
    for file in (file for name in IN_A_FOLDER for file in sorted(path.glob(name))):
        if file.is_file() and (file.name != "vocab.json" or has_merges(file)):
            found, _ = _of_file(file)
            if kind in ("", found.kind):
                return found
    if kind:
        raise ArtifactError(
            f"the folder `{path}` does not hold {kinds_of_file()[kind]}", hint=typed(f"{kind}:{path}/FILE")
        )
    names = ", ".join(name for name in IN_A_FOLDER if "*" not in name)
    raise ArtifactError(f"the folder `{path}` holds no tokenizer that koktok reads", hint=f"one of {names}")


def _of_folder(folder: Path, kind: str) -> Detected | None:
    found = next((one for member in RUNTIMES.values() if (one := member.detects_folder(folder))), None)
    return found if found and kind in ("", found.kind) else None


def _of_file(path: Path) -> tuple[Detected, bool]:
    """What a file is, and whether it may be one with the files beside it."""
    data = read_bounded(path, what="the file of a tokenizer", hint="koktok import FILE --out FOLDER")
    if not data.strip():
        raise ArtifactError(f"`{path}` is empty", hint="fetch it again")
    for member in reversed(RUNTIMES.values()):  # Hugging Face last: any JSON may be its
        if found := member.detects(path, data):
            return found, not member.stands_alone
    raise ArtifactError(
        f"`{path}` is none of: {', '.join([*kinds_of_file().values()][1:])}",
        hint="a vocab.txt has one piece in a line, among them [UNK]; a list of pieces alone has no rules of segmentation",
    )
