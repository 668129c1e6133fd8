"""The other end of `koktok.foreign.sandbox`: a library loads an unknown definition, in a process that may crash.

Nothing of koktok is imported here, so that the process is there in no time: it is this file, run as a script, the standard
library and the one library that it tries. In comes one marshalled value (both ends are the same Python), out goes a line
of JSON: how far it came, and what was raised.
"""

from __future__ import annotations

import json
import marshal
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

Ask = Callable[[str], None]
"""Everything that is ever done with one text."""


def _tokenizers(text: str) -> Ask:
    loaded = import_module("tokenizers").Tokenizer.from_str(text)
    loaded.no_padding()
    loaded.no_truncation()
    loaded.get_vocab(with_added_tokens=True)

    def ask(line: str) -> None:
        for as_text in (False, True):
            loaded.encode_special_tokens = as_text
            found = loaded.encode(line, add_special_tokens=not as_text)
        loaded.decode(found.ids, skip_special_tokens=False)
        if loaded.normalizer:
            loaded.normalizer.normalize_str(line)

    return ask


def _sentencepiece(model: bytes) -> Ask:
    library = import_module("sentencepiece")
    library.set_min_log_level(2)
    loaded = library.SentencePieceProcessor(model_proto=model)

    def ask(line: str) -> None:
        found = loaded.encode(line, return_type="offset_mapping")
        loaded.decode(list(found["ids"]))
        loaded.normalize(line)

    return ask


def _tiktoken(pattern: str, ranks: dict[bytes, int], specials: dict[str, int]) -> Ask:
    loaded = import_module("tiktoken").Encoding(
        "tried", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
    )

    def ask(line: str) -> None:
        loaded.encode(line, allowed_special="all")
        loaded.decode(loaded.encode_ordinary(line))

    return ask


LIBRARIES: dict[str, Callable[..., Ask]] = {
    "tokenizers": _tokenizers,
    "sentencepiece": _sentencepiece,
    "tiktoken": _tiktoken,
}


def _bound(memory: int, seconds: int) -> None:
    """Bounds on what this process may take, where the system has them."""
    try:
        import resource
    except ImportError:  # Windows: there is the clock of the parent
        return
    for kind, wanted in (("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds), ("RLIMIT_CORE", 0)):
        which = getattr(resource, kind, None)
        if which is not None:
            _, hard = resource.getrlimit(which)
            bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(which, (bound, hard))


def main() -> None:
    """Load, encode every line, and send the results."""
    library, definition, lines, memory, seconds = marshal.load(sys.stdin.buffer)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    _bound(memory, seconds)
    told: dict[str, Any] = {"loaded": False, "grave": False, "error": "", "failed": 0}
    try:
        ask = LIBRARIES[library](*definition)
        told["loaded"] = True
        for line in lines:
            try:
                ask(line)
            except MemoryError:
                raise
            except Exception as error:  # a library may refuse a text; that it says so is all that is wanted
                told["failed"] += 1
                told["error"] = told["error"] or f"{type(error).__name__}: {error}"
    except BaseException as error:  # panics of Rust are no `Exception`
        told["grave"] = isinstance(error, MemoryError) or not isinstance(error, Exception)
        told["error"] = f"{type(error).__name__}: {error}"
    answer.write(json.dumps(told))
    answer.flush()
    os._exit(0)  # what a library does at the end of a process is no part of the check


if __name__ == "__main__":
    main()
