"""A folder of Hugging Face as transformers' `AutoTokenizer` opens it.

The class that the folder names may bring a normalizer, a pattern, a template and tokens that no file has, and other ones in each
version. So the installed library is asked, without code of the folder and without a network; what it builds is written as a
tokenizer.json with all tokens, and a tokenizer_config.json from which transformers 4.57 and 5 build the same again.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from koktok.errors import ArtifactError, MissingExtraError, asking
from koktok.files import open_regular, read_bounded, read_utf8, typed
from koktok.model.note import Note
from koktok.model.special import NO_LIMIT
from koktok.runtimes.folder import is_koktoks
from koktok.runtimes.huggingface.adapter import HuggingFace
from koktok.runtimes.huggingface.config_files import (
    OF_MODEL,
    ROLES,
    files_beside,
    is_of_transformers,
    json_of,
    roles_of,
)
from koktok.runtimes.library import LibraryTokenizer

_TYPES: Final = {"vocab.txt": "bert", "vocab.json": "gpt2"}
"""Types of models whose vocabulary is such a file, for one that no file names."""

_IF_SET: Final = ("chat_control_tokens", "response_template", "split_special_tokens")
"""Further settings of every class of transformers that are no part of tokenizer.json."""

_CARRIED: Final = (
    *("added_tokens.json", "special_tokens_map.json", "additional_chat_templates", "additional_special_tokens"),
    *("extra_special_tokens", "model_specific_special_tokens", "added_tokens_decoder", "README.md"),
)
"""Files and settings whose content is elsewhere in what is written, or is written anew."""

_SHOWN: Final = 12


def auto_tokenizer(folder: Path, **options: Any) -> Any:
    """The tokenizer that `AutoTokenizer` opens from a folder, without code from it and without a network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False, **options)


def open_folder(spec: str, folder: Path, **options: Any) -> HuggingFace:
    """The tokenizer of a folder of transformers, as a tokenizer.json."""
    for file in sorted(folder.iterdir()):
        if file.suffix in (".json", ".model", ".txt", ".jinja"):
            open_regular(file).close()  # transformers would wait for a pipe
    beside = files_beside(folder / "tokenizer.json")
    for name in beside:
        if name.endswith(".json"):
            json_of(beside, name, spec)
    auto = _asked(folder, **options)
    files = files_of(auto)
    beside = {name: data for name, data in beside.items() if name in OF_MODEL}
    opened = HuggingFace(files.pop("tokenizer.json").decode(), beside | files, spec=spec, name=folder.resolve().name)
    opened.libraries["transformers"] = version("transformers")
    opened.notes = (
        Note(
            f"as {type(auto).__name__} of transformers {version('transformers')} builds it",
            f"transformers {version('transformers')}의 {type(auto).__name__}가 만든 그대로",
        ),
    )
    return opened


def open_vocabulary(spec: str, path: Path, *, lowercase: bool | None = None) -> HuggingFace:
    """A vocab.txt of BERT, or a vocab.json with the merges.txt beside it of GPT-2, without files that say more."""
    name = "vocab.json" if path.name == "vocab.json" else "vocab.txt"
    with tempfile.TemporaryDirectory() as place:
        for source, copy in ((path, name), (path.parent / "merges.txt", "merges.txt")):
            if copy == name or name == "vocab.json":
                (Path(place) / copy).write_bytes(read_bounded(source))
        options = {"do_lower_case": bool(lowercase)} if name == "vocab.txt" else {}
        auto = _asked(Path(place), shown=path, tokenizer_type=_TYPES[name], **options)
        files = files_of(auto)
    called = path.resolve().parent.name if path.stem == "vocab" else path.stem
    opened = HuggingFace(files.pop("tokenizer.json").decode(), files, spec=spec, name=called)
    opened.libraries["transformers"] = version("transformers")
    return opened


def _asked(folder: Path, shown: Path | None = None, **options: Any) -> Any:
    """A tokenizer of `AutoTokenizer` that the library tokenizers runs."""
    place = shown or folder
    try:
        auto = auto_tokenizer(folder, **options)
    except Exception as error:  # errors of many libraries, also that a package of theirs is missing
        if isinstance(error, ModuleNotFoundError) and error.name == "transformers":
            raise MissingExtraError("transformers", "transformers") from error
        why = (str(error).splitlines() or [""])[0]
        raise ArtifactError(
            f"AutoTokenizer of transformers {version('transformers')} does not open `{place}` without code of its own: "
            f"{type(error).__name__}: {why}",
            hint=_alone(place),
        ) from error
    if not hasattr(auto, "backend_tokenizer"):
        raise ArtifactError(
            f"`{place}` is read by {type(auto).__name__}, which is no tokenizer of the library tokenizers and has no "
            "tokenizer.json",
            hint=_alone(place),
        )
    return auto


def _alone(folder: Path) -> str:
    """How to name the vocabulary of a folder without the files beside it."""
    for kind, pattern in (("hf", "tokenizer.json"), ("sp", "*.model"), ("wordpiece", "vocab.txt")):
        for file in sorted(folder.glob(pattern)) if folder.is_dir() else ():
            return f"koktok import {typed(f'{kind}:{file}')} --out FOLDER, for the file alone"
    return "fetch all files of the tokenizer again"


def files_of(auto: Any) -> dict[str, bytes]:
    """What a tokenizer of transformers is, as tokenizer.json, tokenizer_config.json and chat_template.jinja."""
    definition: str = auto.backend_tokenizer.to_str()
    added = {str(i): token.__getstate__() for i, token in sorted(auto.added_tokens_decoder.items())}
    named = {name: token for name, token in auto.special_tokens_map.items() if isinstance(token, str)}
    more = [token for token in map(str, auto.all_special_tokens) if token not in named.values()]
    content: dict[str, Any] = {
        "added_tokens_decoder": added,
        "additional_special_tokens": [_with_flags(token, added.values()) for token in more],
        "clean_up_tokenization_spaces": auto.clean_up_tokenization_spaces,
        "extra_special_tokens": {name: token for name, token in named.items() if name not in ROLES},  # 4.57 has no list
        "model_input_names": auto.model_input_names,
        "model_max_length": min(int(auto.model_max_length), NO_LIMIT),
        "padding_side": auto.padding_side,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "truncation_side": auto.truncation_side,
        **{role: token for role, token in named.items() if role in ROLES},
        **{name: value for name in _IF_SET if (value := getattr(auto, name, None))},
    }
    step = json.loads(definition).get("pre_tokenizer") or {}
    if "add_prefix_space" in step:  # 4.57 changes the step to what the configuration says, which is False without it
        content["add_prefix_space"] = step["add_prefix_space"]
    files = {"tokenizer.json": definition.encode()}
    if isinstance(template := auto.chat_template, dict):
        content["chat_template"] = [{"name": name, "template": text} for name, text in template.items()]
    elif template:
        content["chat_template"] = template
        files["chat_template.jinja"] = template.encode()
    content = {name: value for name, value in sorted(content.items()) if value not in ([], {})}
    return files | {"tokenizer_config.json": (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()}


def _with_flags(token: str, added: Iterable[Mapping[str, Any]]) -> str | dict[str, Any]:
    """A special token without a role; a string stands for one that is read as it is written."""
    flags = next((dict(row) for row in added if row["content"] == token), {})
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"__type": "AddedToken", **flags} if flags and flags != {"content": token, **usual} else token


def not_carried(folder: Path, written: Mapping[str, str | bytes]) -> list[str]:
    """What of a folder of others is not in the files that were written from it, in sentences."""
    folder = folder if folder.is_dir() else folder.parent
    if is_koktoks(folder) or not is_of_transformers(folder):
        return []
    there = json_of(files_beside(folder / "tokenizer.json"), "tokenizer_config.json", str(folder))
    now = json.loads(written["tokenizer_config.json"])
    carried = {*written, *_CARRIED, *(["chat_template.jinja"] if "chat_template" in now else [])}
    names = [file.name for file in sorted(folder.iterdir())]
    gone = [name for name in names if name not in carried and not name.startswith(".")]
    held = {*now, *ROLES, *now.get("extra_special_tokens", ()), *_CARRIED}
    settings = [name for name in there if name not in held]
    return [
        *([f"not carried over from `{folder}`: {_listed(gone)}"] if gone else []),
        *(
            [f"settings not carried over, because tokenizer.json has their effect: {_listed(settings)}"]
            if settings
            else []
        ),
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


# --- For `verify` -----------------------------------------------------------------------------------------------------


class CodeOfItsOwnError(Exception):
    """A folder requires code of its own, which `verify` does not run."""


class Transformers(LibraryTokenizer):
    """A folder that `AutoTokenizer` opens without code from the folder."""

    library: ClassVar[str] = "transformers"
    cuts_specials = True

    def __init__(self, folder: Path) -> None:
        with suppress(ValueError):  # transformers itself raises an error for a malformed file
            if "auto_map" in json.loads(read_utf8(folder / "tokenizer_config.json")):
                raise CodeOfItsOwnError("the folder requires code of its own (`auto_map`), which is not run here")
        self._auto = auto_tokenizer(folder)
        super().__init__(str(folder), "transformers", size=len(self._auto), digest="", libraries={})

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:
        """The ids of lines; `specials`: of a call without options."""
        split = {} if specials else {"split_special_tokens": True}
        with asking(self.library):
            return list(self._auto(list(lines), add_special_tokens=False, **split)["input_ids"])

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of ids."""
        return str(self._auto.decode(ids, skip_special_tokens=skip_special_tokens))

    @cached_property
    def roles(self) -> Mapping[str, str]:  # type: ignore[override]
        """The special token of each role."""
        return roles_of(self._auto.special_tokens_map)

    @cached_property
    def tokens(self) -> Sequence[str]:
        """The string of every id."""
        return self._auto.convert_ids_to_tokens(list(range(len(self._auto)))) or ()
