"""`load`: open a tokenizer by a path or a reference; a library is imported only for its own kind.

Errors that libraries ignore (a piece or an id that occurs twice, an added token that gets another id than in the file) are
raised. A folder with a koktok.toml is koktok's, and one with a tokenizer_config.json is what transformers makes of it; a single
file runs in its library, also if koktok wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from koktok.errors import ArtifactError, InputError, KoktokError, UsageError
from koktok.files import path_of, read_bounded, read_whole, standing
from koktok.runtimes import RUNTIMES
from koktok.runtimes.detect import detect
from koktok.runtimes.folder import IN_A_FOLDER, MARK, TOKENIZER, is_imported, is_koktoks, read_folder, read_mark
from koktok.runtimes.library import FORMAT, LibraryTokenizer, digest_of
from koktok.runtimes.references.analysers import ANALYSERS, open_segmenter
from koktok.runtimes.references.cuts import open_cuts
from koktok.runtimes.references.packages import open_package
from koktok.runtimes.references.trivial import TRIVIAL
from koktok.runtimes.runtime import Detected
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.ready import asked_for, folder_of

REFERENCES: Final[dict[str, str]] = {
    "koktok": "koktok:DIR, a folder that koktok wrote, or koktok:NAME, a ready vocabulary",
    **{kind: text for runtime in RUNTIMES.values() for kind, text in runtime.references.items()},
    "package": "package:NAME, a vocabulary in an installed package (o200k_base, llama3, ...)",
    "cuts": "cuts:FILE.jsonl, offsets of the cuts of any program",
    "dpe": "dpe:DIR, a segmentation that koktok segment --learn wrote",
}
"""Each kind of reference with its help text. References without a colon are analysers, trivial tokenizers, or paths."""


def load(
    reference: str | Path,
    *,
    pattern: str | None = None,
    specials: Mapping[str, int] | None = None,
    lowercase: bool | None = None,
) -> TrainedTokenizer | LibraryTokenizer:
    r"""Open a tokenizer of any kind: of a folder that koktok wrote, or of another library, which runs it.

    Parameters
    ----------
    reference : str or Path
        A folder or a file, `package:NAME`, `koktok:NAME`, `hf:PATH`, `sp:FILE`, an analyser (`kiwi`), or `syllables`.
    pattern : str, optional
        For tiktoken ranks: a name (cl100k, o200k, llama3) or a regular expression.
    specials : mapping of str to int, optional
        For tiktoken ranks: special tokens and their ids.
    lowercase : bool, optional
        For a vocab.txt without a tokenizer_config.json: fold case and strip accents.

    Raises
    ------
    ArtifactError
        When the file is damaged or of an unknown kind.
    MissingExtraError
        When transformers is not installed, and the folder has a tokenizer_config.json or a vocabulary that it alone reads.
    InputError
        When a file or a package is missing.
    UsageError
        When the name is unknown, or ranks have no pattern.

    Examples
    --------
    >>> load("syllables").encode_lines(["한국 말"]).spans.tolist()
    [[0, 1], [1, 2], [3, 4]]
    """
    path_of(reference, "a tokenizer")
    text = str(reference)
    named = is_reference(text)
    if named and (pattern or specials or lowercase is not None):
        raise UsageError(f"`{text}` needs no options; they are for paths")
    kind, rest = parse_spec(text)
    if kind == "koktok":
        return load_folder(text)
    if kind == "analyser":
        return ANALYSERS[rest]()
    if kind == "trivial":
        return TRIVIAL[rest]()
    if kind == "dpe":
        return open_segmenter(text)
    if kind == "cuts":
        return open_cuts(text, Path(rest))
    if kind == "package":
        opened = open_package(text, rest, _open)
    else:
        place, _, option = rest.partition("#") if named and kind == "tiktoken" else (rest, "", "")
        path = standing(Path(place))
        if not path.exists():
            raise InputError(f"`{text}`: there is no file or folder `{place}`")
        source = Detected(kind, path) if named and path.is_file() else detect(path, kind)
        ranks = source.kind == "tiktoken" and source.path.is_file() and not named
        if (pattern or specials) and not ranks:
            raise UsageError(f"`{source.path}` is {source}; a pattern and special tokens are for tiktoken ranks")
        if lowercase is not None and source.kind != "wordpiece":
            raise UsageError(f"`{source.path}` is {source}; lowercase is for a vocab.txt alone")
        options: dict[str, Any] = {} if lowercase is None else {"lowercase": lowercase}
        if ranks:
            source, options = Detected("ranks", source.path), {"pattern": pattern, "specials": specials}
        opened = _open(source, text, option, **options)
        text = text if named else source.path.name
    built = {name: number for name, number in opened.libraries.items() if name == "transformers"}
    opened.signature = {"source": text, **built}
    return opened


def parse_spec(text: str) -> tuple[str, str]:
    """The kind of a reference, and the rest of it; the kind of a path is detected from its content.

    Examples
    --------
    >>> parse_spec("sp:model/tok.model"), parse_spec("kiwi"), parse_spec("syllables")
    (('sp', 'model/tok.model'), ('analyser', 'kiwi'), ('trivial', 'syllables'))
    """
    kind, colon, rest = text.partition(":")
    if colon and kind in REFERENCES:
        if not rest:
            raise UsageError(f"expected {REFERENCES[kind]}, got `{text}`")
        return kind, rest
    if text in ANALYSERS:
        return "analyser", text
    if text in TRIVIAL:
        return "trivial", text
    path = path_of(text, "a tokenizer")
    if standing(path).exists():
        return read_whole(path, TOKENIZER, lambda place: detect(place).kind), text
    known = ", ".join([*REFERENCES, *ANALYSERS, *TRIVIAL])
    problem = (
        f"the kind `{kind}` is not known"
        if colon and "/" not in kind
        else f"there is no file, folder or tokenizer `{text}`"
    )
    hint = asked_for(text) or "hf:path/to/tokenizer.json"
    if _HUB_NAME.fullmatch(text) and path.suffix not in (".json", ".model", ".txt", ".tiktoken", ".gguf"):
        hint = f"hf download {text} --include '*token*' '*vocab*' '*merges*' config.json --local-dir {path.name}"
    raise UsageError(f"{problem}; expected a path or one of {known}", hint=hint)


_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""The name of a model in the Hugging Face Hub, such as klue/bert-base."""


def is_reference(text: str) -> bool:
    """Whether a text is a reference other than a path.

    Examples
    --------
    >>> [is_reference(text) for text in ("package:llama3", "syllables", "my-tokenizer", "C:/my-tokenizer")]
    [True, True, False, False]
    """
    named = text.partition(":")[0] in REFERENCES and ":" in text
    return (named or text in ANALYSERS or text in TRIVIAL) and not path_of(text, "a tokenizer").exists()


def _open(source: Detected, spec: str, option: str = "", **options: Any) -> LibraryTokenizer:
    openers = {kind: opener for runtime in RUNTIMES.values() for kind, opener in runtime.openers.items()}
    if source.kind not in openers:
        raise ArtifactError(f"`{source.path}` is {source}; expected a file of another library")
    if option:
        options["pattern"] = option
    try:
        opened: LibraryTokenizer = openers[source.kind](spec, source.path, **options)
    except KoktokError:
        raise
    except (OSError, UnicodeDecodeError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"`{spec}` cannot be read: {type(error).__name__}: {error}") from error
    return opened


# --- Folders that koktok wrote ----------------------------------------------------------------------------------------


def load_folder(path: str | Path) -> TrainedTokenizer | LibraryTokenizer:
    """The tokenizer of a folder that koktok trained or imported, or of any other folder."""
    folder = folder_of(path_of(path))
    if not is_koktoks(standing(folder)) and any(any(folder.glob(name)) for name in IN_A_FOLDER):
        return load(folder)

    def read(place: Path) -> TrainedTokenizer | LibraryTokenizer:
        return _load_imported(place) if is_imported(place) else TrainedTokenizer(*read_folder(place))

    tokenizer = read_whole(folder, TOKENIZER, read)
    tokenizer.spec, tokenizer.name = str(path), folder.resolve().name
    return tokenizer


def _load_imported(folder: Path) -> LibraryTokenizer:
    again = "koktok import FILE --out FOLDER"
    mark = read_mark(folder)
    imported = mark.imported
    assert imported
    if imported.format != FORMAT:
        raise ArtifactError(f"`{folder}` has format {imported.format!r}; this koktok reads {FORMAT}", hint=again)
    contents = {name: read_bounded(folder / name, hint=again) for name in (Path(file).name for file in imported.files)}
    if digest_of(contents) != imported.sha256:
        raise ArtifactError(
            f"the files of `{folder}` were changed: their digest differs from that in {MARK}", hint=again
        )
    runtime = next((one for one in RUNTIMES.values() if one.library == imported.library), None)
    if runtime is None:
        raise ArtifactError(
            f"`{folder}` requires the library {imported.library!r}, which this koktok does not support", hint=again
        )
    opened: LibraryTokenizer = runtime.imported(folder, contents)
    opened.signature = mark.signature
    return opened
