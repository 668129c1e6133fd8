"""Every format in a folder, opened by its library: `koktok.runtimes` says what each reads there.

If a library is missing, there is a reason in place of a reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from koktok.errors import UsageError
from koktok.runtimes import RUNTIMES
from koktok.runtimes.huggingface.auto_tokenizer import CodeOfItsOwnError
from koktok.runtimes.huggingface.tokenizer_json import refuses
from koktok.runtimes.runtime import Opening, Reader, WrittenTable
from koktok.tokenizer import TrainedTokenizer


@dataclass(frozen=True)
class Unopened:
    """A format without a reader, with the reason, and whether that is a fault of the file."""

    why: str
    fault: bool = False


def open_formats(
    tokenizer: TrainedTokenizer, folder: Path, more: Iterable[Path] = ()
) -> Iterator[tuple[str, Reader | WrittenTable | Unopened]]:
    """The readers of the formats in a folder, or the reasons why there is none, by name."""
    for place in (folder, *more):
        at = "" if place == folder else f"{(place.resolve().parent if place.is_file() else place.resolve()).name}/"
        openings = _openings(place)
        if place != folder and not openings:
            raise UsageError(
                f"expected an export of koktok, got `{place}`", hint="koktok export FOLDER --to hf --out NEW-FOLDER"
            )
        for opening in openings:
            yield f"{at}{opening.name}", _opened(opening)
    if not (folder / "tokenizer.json").is_file():
        yield "tokenizer.json", Unopened(refuses(tokenizer.definition) or "not in the folder")


def _openings(place: Path) -> list[Opening]:
    """What every runtime reads in a folder; a file is that of one, and they are asked as `detect` asks them."""
    if place.is_dir():
        return [opening for runtime in RUNTIMES.values() for opening in runtime.readers(place)]
    return next((found for runtime in reversed(RUNTIMES.values()) if (found := [*runtime.readers(place)])), [])


def _opened(opening: Opening) -> Reader | WrittenTable | Unopened:
    """A reader, or the reason why there is none."""
    if find_spec(opening.module) is None:
        hint = f": pip install 'koktok[{opening.extra}]'" if opening.extra else ""
        return Unopened(f"the library `{opening.module}` is not installed{hint}")
    try:
        return opening.open()
    except CodeOfItsOwnError as error:
        return Unopened(str(error))
    except Exception as error:  # each library has its own errors
        return Unopened(f"{opening.module} refuses it: {error}".splitlines()[0], fault=True)
