"""What `AutoTokenizer` of the installed transformers makes of a folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import asking
from koktok.files import read_utf8
from koktok.runtimes.library import LibraryTokenizer


def auto_tokenizer(folder: Path) -> Any:
    """The tokenizer that `AutoTokenizer` opens from a folder, without code from it and without a network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


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
    def tokens(self) -> Sequence[str]:
        """The string of every id."""
        return self._auto.convert_ids_to_tokens(list(range(len(self._auto)))) or ()
