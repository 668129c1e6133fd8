"""The child process of `koktok.adapters.sandbox`: a library loads an unknown definition, and may crash.

It runs as a script and imports nothing of koktok, so that it starts fast. Its input is one marshalled value (both processes
are the same Python), its output a line of JSON: whether the definition was loaded, and which errors were raised.
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
    """Load a definition; return a function that does everything koktok does with a text."""
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
    """Limit the memory and time of this process, if the system has limits."""
    try:
        import resource
    except ImportError:  # Windows: the parent has a timeout
        return
    for kind, limit in (("RLIMIT_AS", memory), ("RLIMIT_CPU", seconds), ("RLIMIT_CORE", 0)):
        which = getattr(resource, kind, None)
        if which is not None:
            _, hard = resource.getrlimit(which)
            resource.setrlimit(which, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def main() -> None:
    """Load, encode every line, and send the results."""
    library, definition, lines, memory, seconds = marshal.load(sys.stdin.buffer)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of the library is no answer
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
    except BaseException as error:  # a panic of Rust is no `Exception`
        result["grave"] = isinstance(error, MemoryError) or not isinstance(error, Exception)
        result["error"] = f"{type(error).__name__}: {error}"
    answer.write(json.dumps(result))
    answer.flush()
    os._exit(0)  # without the library's own exit handlers


if __name__ == "__main__":
    main()
