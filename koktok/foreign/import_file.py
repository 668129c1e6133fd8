"""`load` and `import_tokenizer`: a path or a reference, as a tokenizer that encodes and decodes.

What the libraries pass over in silence (a piece that stands there twice, an id that is given
twice, an added token that gets another id than the file says) is an error. A folder is koktok's where it holds a koktok.toml;
a loose file is run by its library, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, UsageError
from koktok.files import path_of
from koktok.foreign.base import ForeignTokenizer
from koktok.foreign.huggingface_adapter import HuggingFace, open_hf, open_wordpiece
from koktok.foreign.imported import ImportedTokenizer, load_folder
from koktok.foreign.open import is_reference, open_definition, open_spec, parse_spec
from koktok.foreign.tiktoken_adapter import Tiktoken, ranks_at
from koktok.formats.detect import Detected, detect
from koktok.formats.hf import checked_json, utf8
from koktok.formats.published import VOCABULARIES, RanksPattern, published
from koktok.tokenizer import Tokenizer


def load(path: str | Path) -> Tokenizer | ImportedTokenizer:
    """A tokenizer of any kind: of a folder that koktok wrote, or of another library, which then runs it.

    Parameters
    ----------
    path : str or Path
        A folder, or a file or reference as `import_tokenizer` takes it, which has options besides.

    Raises
    ------
    ArtifactError
        When nothing is there, or what is there is damaged or of no kind that koktok reads.
    UsageError
        When ranks come without a pattern, or what is named has no vocabulary.

    Examples
    --------
    >>> import tempfile
    >>> from koktok import Recipe, load
    >>> from koktok.vocab import Vocab
    >>> folder = Tokenizer(Recipe(), Vocab.bpe("한국", [], specials=Recipe().special_tokens)).save(tempfile.mkdtemp() + "/t")
    >>> load(folder).encode("한국").pieces, load(folder / "tokenizer.model").encode("한국").pieces
    (['한', '국'], ['한', '국'])
    """
    return import_tokenizer(path)


def import_tokenizer(
    path: str | Path,
    *,
    pattern: str | None = None,
    specials: Mapping[str, int] | None = None,
    lowercase: bool | None = None,
) -> Tokenizer | ImportedTokenizer:
    r"""Read a foreign tokenizer.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "vocab.txt").write_text("[UNK]\n학교\n##에\n")
    ...     import_tokenizer(folder).encode("학교에 간다").pieces
    ['학교', '##에', '[UNK]']
    """
    place = path_of(path, "a tokenizer")
    if is_reference(str(path)):
        if pattern or specials or lowercase is not None:
            raise UsageError(f"`{path}` says itself what it is; options are for paths")
        if parse_spec(str(path))[0] == "koktok":
            return load_folder(place)
        return _wrapped(open_spec(str(path)), str(path))
    found = detect(place)
    if found.kind == "koktok":
        return load_folder(found.path)
    ranks = found.kind == "tiktoken" and found.path.is_file()
    if (pattern or specials) and not ranks:
        raise UsageError(f"`{found.path}` is {found}; a pattern and special tokens are for tiktoken ranks")
    if lowercase is not None and found.kind != "wordpiece":
        raise UsageError(f"`{found.path}` is {found}; lowercase is for vocab.txt")
    if found.kind == "hf":
        return _json(found)
    if ranks:
        adapter: ForeignTokenizer = _ranks(found.path, pattern, specials)
    elif found.kind == "wordpiece":
        adapter = open_wordpiece(str(found.path), found.path, lowercase=lowercase)
    else:
        adapter = open_definition(found, str(found.path))
    return _wrapped(adapter, found.path.name)


def _wrapped(adapter: ForeignTokenizer, source: str) -> ImportedTokenizer:
    return ImportedTokenizer(adapter, {"source": source})


def _json(found: Detected) -> ImportedTokenizer:
    """A tokenizer.json, looked through."""
    content = checked_json(utf8(found.path), str(found.path))
    adapter = open_hf(str(found.path), found.path)
    _check_added(adapter, content, found.path)
    return _wrapped(adapter, found.path.name)


def _check_added(adapter: HuggingFace, content: Mapping[str, Any], place: Path) -> None:
    """The library numbers added tokens as it likes; then ids would not be the file's."""
    for token in content.get("added_tokens") or ():
        given, got = token["id"], adapter.id_of(token["content"])
        if got != given:
            raise ArtifactError(
                f"`{place}` gives {token['content']!r} the id {given}, and the tokenizers library {got}",
                hint="ids of added tokens follow the vocabulary without a gap",
            )


def _ranks(path: Path, pattern: str | None, specials: Mapping[str, int] | None) -> Tiktoken:
    known = published(pattern or path.stem)
    if known is None and pattern is None:
        raise UsageError(
            f"`{path}` holds ranks alone; which pattern cuts the text is not in it",
            hint=f"--pattern with one of {', '.join(VOCABULARIES)}, or a regular expression",
        )
    return Tiktoken(ranks_at(path, known or RanksPattern(pattern or ""), specials), spec=str(path))
