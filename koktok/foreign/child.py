"""The other end of `koktok.foreign.sandbox`: a library loads an unknown definition, in a process that may crash.

It is run as a script and imports nothing of koktok, so that it starts at once. In comes one marshalled value (both ends are the
same Python), out goes a line of JSON: how far it came, and what was raised.
"""

from __future__ import annotations

import json
import marshal
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def opened(library: str, definition: tuple[Any, ...]) -> Callable[[str], object]:
    """Load a definition, and return everything that koktok ever does with one text."""
    module = import_module(library)
    if library == "tokenizers":
        loaded = module.Tokenizer.from_str(*definition)
        loaded.no_padding()
        loaded.no_truncation()
        loaded.get_vocab(with_added_tokens=True)

        def ask(line: str) -> object:
            for as_text in (False, True):
                loaded.encode_special_tokens = as_text
                encoding = loaded.encode(line, add_special_tokens=not as_text)
            loaded.decode(encoding.ids, skip_special_tokens=False)
            return loaded.normalizer and loaded.normalizer.normalize_str(line)

        return ask
    if library == "sentencepiece":
        module.set_min_log_level(2)
        model = module.SentencePieceProcessor(model_proto=definition[0])

        def ask_model(line: str) -> object:
            model.decode(list(model.encode(line, return_type="offset_mapping")["ids"]))
            return model.normalize(line)

        return ask_model
    pattern, ranks, specials = definition
    encoding = module.Encoding("tried", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)

    def ask_ranks(line: str) -> object:
        encoding.encode(line, allowed_special="all")
        return encoding.decode(encoding.encode_ordinary(line))

    return ask_ranks


def bound(memory: int, seconds: int) -> None:
    """Bound what this process may take, where the system has bounds."""
    try:
        import resource
    except ImportError:  # Windows: there is the clock of the parent
        return
    for kind, wanted in (("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds), ("RLIMIT_CORE", 0)):
        which = getattr(resource, kind, None)
        if which is not None:
            _, hard = resource.getrlimit(which)
            resource.setrlimit(which, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def main() -> None:
    """Load, encode every line, and send the results."""
    library, definition, lines, memory, seconds = marshal.load(sys.stdin.buffer)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    bound(memory, seconds)
    result: dict[str, Any] = {"loaded": False, "grave": False, "error": "", "failed": 0}
    try:
        ask = opened(library, definition)
        result["loaded"] = True
        for line in lines:
            try:
                ask(line)
            except MemoryError:
                raise
            except Exception as error:  # a library may refuse a text
                result["failed"] += 1
                result["error"] = result["error"] or f"{type(error).__name__}: {error}"
    except BaseException as error:  # panics of Rust are no `Exception`
        result["grave"] = isinstance(error, MemoryError) or not isinstance(error, Exception)
        result["error"] = f"{type(error).__name__}: {error}"
    answer.write(json.dumps(result))
    answer.flush()
    os._exit(0)  # what a library does at the end of a process is no part of the check


if __name__ == "__main__":
    main()
