"""Tokens of the benchmark that no vocabulary of today needs: Kiwi's SwTokenizer, lists of units, models behind MeCab, pecab.

`open_row` knows these references and what `koktok report` knows:

    kiwi-sw:FILE    a vocabulary of Kiwi's SwTokenizer
    plain:FILE#UNIT a list of characters, jamo or MeCab morphemes (char, jamo, mecab)
    sp:FILE#mecab   a SentencePiece model that was trained on MeCab's output
    pecab           the analyser
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from eval.peers import library_version
from koktok import hangul
from koktok.errors import ArtifactError, InputError
from koktok.foreign import LibraryTokenizer, load
from koktok.foreign.analysers import mecab_spans
from koktok.foreign.sentencepiece_adapter import SentencePiece
from koktok.foreign.trivial import OpenVocabulary
from koktok.formats.detect import IN_A_FOLDER
from koktok.formats.hf import parsed, utf8
from koktok.text.normalize import normalized
from koktok.tokenizer.tokens import Ints, Tokens, align, running
from koktok.vocab import UNKNOWN

MARK = "▃"
"""How the vocabularies trained on MeCab's output write the spaces of the text."""

SPACES = (MARK, "▁", " ")

Rewrite = Callable[[str], tuple[str, Ints, Ints]]
"""A line to its rewritten form, and where each new character started and ended in the line."""


def marked_morphemes(cut: Callable[[str], list[tuple[int, int]]], mark: str) -> Rewrite:
    """Morphemes joined by spaces, each space of the line as `mark`, as MeCab + SentencePiece vocabularies read text.

    Examples
    --------
    >>> rewrite = marked_morphemes(lambda line: [(0, 1), (1, 2), (3, 5)], "▃")
    >>> text, starts, ends = rewrite("나는 간다")
    >>> text
    '나 는 ▃ 간다'
    >>> starts.tolist()
    [0, 1, 1, 2, 2, 3, 3, 4]
    """

    def rewrite(line: str) -> tuple[str, Ints, Ints]:
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []

        def put(what: str, start: int, end: int) -> None:
            if text:
                text.append(" ")
                starts.append(start)
                ends.append(start)
            text.append(what)
            starts.extend(range(start, start + len(what)) if what != mark else [start])
            ends.extend(range(start + 1, start + len(what) + 1) if what != mark else [end])

        at = 0
        for start, end in cut(line):
            if start > at:
                put(mark, at, start)
            put(line[start:end], start, end)
            at = end
        return "".join(text), np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)

    return rewrite


def remap(tokens: Tokens, starts: Sequence[Ints], ends: Sequence[Ints], lines: Sequence[str]) -> Tokens:
    """Tokens of rewritten lines as tokens of the lines that they came from."""
    line_starts = running([len(line) for line in lines])
    flat_starts = np.concatenate([s + b for s, b in zip(starts, line_starts, strict=False)] or [np.zeros(0, np.int64)])
    flat_ends = np.concatenate([e + b for e, b in zip(ends, line_starts, strict=False)] or [np.zeros(0, np.int64)])
    if not len(flat_starts):
        nothing = np.zeros(len(tokens.ids), dtype=np.int64)
        return Tokens(tokens.ids, tokens.indptr, nothing, nothing, line_starts)
    top = len(flat_starts) - 1
    new_starts = flat_starts[np.minimum(tokens.starts, top)]
    new_ends = np.where(tokens.ends > tokens.starts, flat_ends[np.clip(tokens.ends - 1, 0, top)], new_starts)
    return Tokens(tokens.ids, tokens.indptr, new_starts, np.maximum(new_ends, new_starts), line_starts)


class Adapted(LibraryTokenizer):
    """A tokenizer behind a rewriting of its input."""

    def __init__(
        self,
        inner: LibraryTokenizer,
        rewrite: Rewrite,
        *,
        note: str,
        undo: Callable[[str], str] | None = None,
        libraries: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            inner.spec,
            inner.name,
            size=inner.size,
            digest=inner.digest(),
            libraries=inner.libraries | (libraries or {}),
            notes=(note, *inner.notes),
            unknown_ids=inner.unknown_ids,
            byte_ids=inner.byte_ids,
            special_ids=inner.special_ids,
        )
        self.inner, self._rewrite, self._undo = inner, rewrite, undo

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        made = [self._rewrite(line) for line in lines]
        rows = self.inner.encode_lines([text for text, _, _ in made])
        return remap(rows, [s for _, s, _ in made], [e for _, _, e in made], lines)

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:
        text = self.inner.text_of(ids, skip_special_tokens=skip_special_tokens)
        if text is None or self._undo is None:
            return text if text is None else normalized("NFC", text)
        return self._undo(text)

    def token_bytes(self, i: int) -> bytes | None:
        return self.inner.token_bytes(i)

    def piece(self, i: int) -> str:
        return self.inner.piece(i)


class Plain(LibraryTokenizer):
    """Units looked up in a list."""

    def __init__(
        self,
        spec: str,
        name: str,
        pieces: Sequence[str],
        cut: Callable[[str], list[tuple[int, int, str]]],
        *,
        digest: str,
        libraries: dict[str, str],
        notes: Sequence[str],
    ) -> None:
        self._pieces = list(pieces)
        self._ids = {piece: i for i, piece in enumerate(pieces)}
        unknown = next((self._ids[p] for p in ("[UNK]", "<unk>") if p in self._ids), None)
        if unknown is None:
            raise ArtifactError(f"`{spec}` has neither [UNK] nor <unk> in its list")
        control = {i for i, p in enumerate(pieces) if p.startswith("[") and p.endswith("]") and len(p) > 2}
        super().__init__(
            spec,
            name,
            size=len(pieces),
            digest=digest,
            libraries=libraries,
            notes=notes,
            unknown_ids={unknown},
            special_ids=control - {unknown},
        )
        self._unknown, self._cut = unknown, cut

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        units = [self._cut(line) for line in lines]
        ids = [[self._ids.get(unit, self._unknown) for _, _, unit in row] for row in units]
        return Tokens.of(ids, [[(a, b) for a, b, _ in row] for row in units], lines)

    def token_bytes(self, i: int) -> bytes | None:
        if i == self._unknown or i in self.special_ids:
            return None
        return b" " if self._pieces[i] in SPACES else self._pieces[i].encode()

    def piece(self, i: int) -> str:
        return self._pieces[i]


def open_plain(spec: str, path: Path, unit: str) -> LibraryTokenizer:
    """A file with one piece a line (what stands after a tab is ignored); `unit` is char, jamo or mecab, or guessed."""
    raw = path.read_bytes()
    pieces = [line.split("\t")[0] for line in raw.decode("utf-8").splitlines() if line.split("\t")[0]]
    words = [p for p in pieces if not (p.startswith("[") and p.endswith("]"))]
    if not unit:
        jamos = sum(hangul.is_conjoining(p[0]) for p in words)
        unit = "jamo" if jamos > len(words) / 5 else "char" if max(map(len, words), default=0) == 1 else "mecab"
    space = next((s for s in SPACES if s in words), "")
    libraries: dict[str, str] = {}

    def characters(line: str) -> list[tuple[int, int, str]]:
        return [
            (k, k + 1, space if char.isspace() else char) for k, char in enumerate(line) if space or not char.isspace()
        ]

    if unit == "mecab":
        morphemes = mecab_spans()
        libraries = {"python-mecab-ko": library_version("python-mecab-ko")}

        def cut(line: str) -> list[tuple[int, int, str]]:
            found, at = [], 0
            for a, b in morphemes(line):
                if space and a > at:
                    found.append((at, a, space))
                found.append((a, b, line[a:b]))
                at = b
            return found

        note = f"input segmented by MeCab-ko {library_version('python-mecab-ko')}; a morpheme that is not in the list is unknown"
    elif unit == "jamo":

        def cut(line: str) -> list[tuple[int, int, str]]:
            return [(a, b, letter) for a, b, char in characters(line) for letter in hangul.split(char)]

        note = "one token a jamo"
    elif unit == "char":
        cut, note = characters, "one token a character"
    else:
        raise InputError(f"expected the unit char, jamo or mecab, got `{unit}`")
    name = path.resolve().parent.name if path.stem in ("tok", "vocab") else path.stem
    notes = [note, f"spaces are tokens ({space.replace(' ', '▁')})" if space else "spaces are no tokens"]
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return Plain(spec, name, pieces, cut, digest=digest, libraries=libraries, notes=notes)


def _within(spans: Any, length: int) -> list[tuple[int, int]]:
    """Spans inside the line: kiwipiepy 0.24.1 leaves the end of the last token of some words (노라고) undefined."""
    return [
        (min(start, length), end if start <= end <= length else min(start, length)) for start, end in spans.tolist()
    ]


class KiwiSubwords(LibraryTokenizer):
    """A vocabulary of Kiwi's SwTokenizer."""

    library: ClassVar[str] = "kiwipiepy"

    def __init__(self, spec: str, name: str, path: Path) -> None:
        from kiwipiepy.sw_tokenizer import SwTokenizer

        try:
            self.tokenizer: Any = SwTokenizer(str(path))
        except Exception as error:
            raise ArtifactError(f"`{path}` is no SwTokenizer vocabulary: {error}") from error
        vocab: dict[str, int] = self.tokenizer.vocab
        self._pieces = [""] * (max(vocab.values()) + 1)
        for piece, i in vocab.items():
            self._pieces[i] = piece
        controls = {i for i in self.tokenizer.all_special_ids if i is not None}
        unknown = self.tokenizer.unk_token_id
        self._unknown = {unknown} if unknown is not None else set()
        byte_ids = {i for i, p in enumerate(self._pieces) if len(p) == 6 and p.startswith("<0x") and p.endswith(">")}
        super().__init__(
            spec,
            name,
            size=len(self._pieces),
            digest=hashlib.sha256(path.read_bytes()).hexdigest()[:16],
            libraries={name: version(name) for name in ("kiwipiepy", "kiwipiepy_model")},
            notes=["Kiwi at run time; morphemes are restored forms, spaces are no tokens"],
            unknown_ids=self._unknown,
            byte_ids=byte_ids,
            special_ids=controls - self._unknown,
        )

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        found = list(self.tokenizer.encode(iter(lines), return_offsets=True))
        spans = [_within(spans, len(line)) for (_, spans), line in zip(found, lines, strict=True)]
        return Tokens.of([ids.tolist() for ids, _ in found], spans, lines)

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:
        left_out = self.special_ids if skip_special_tokens else frozenset()
        return str(self.tokenizer.decode([int(i) for i in ids if i not in left_out]))

    def token_bytes(self, i: int) -> bytes | None:
        if i in self.byte_ids:
            return bytes([int(self._pieces[i][3:5], 16)])
        if i in self.special_ids or i in self._unknown or not self._pieces[i]:
            return None
        form, slash, tag = self._pieces[i].rpartition("/")
        return (
            (form if slash and form and tag.replace("-", "").isupper() else self._pieces[i]).removeprefix("##").encode()
        )

    def piece(self, i: int) -> str:
        return self._pieces[i]


def open_kiwi_sw(spec: str, path: Path) -> KiwiSubwords:
    """The file of a SwTokenizer."""
    parsed(utf8(path), str(path))  # Kiwi ends the whole process on what is no JSON
    name = path.resolve().parent.name if path.stem == "tokenizer" else path.stem
    return KiwiSubwords(spec, name, path)


def _open_pecab() -> LibraryTokenizer:
    try:
        from pecab import PeCab
    except ImportError as error:
        raise InputError(
            f"the analyser pecab does not run here: {error}", hint="pip install pecab emoji==1.2.0"
        ) from error
    if int(np.__version__.split(".")[0]) >= 2:  # its costs are int16 scalars, which numpy 1 widened
        found = f"pecab {version('pecab')} with numpy {np.__version__}"
        raise InputError(
            f"{found}: its sums of costs overflow, so its morphemes are wrong", hint="pip install 'numpy<2'"
        )
    analyser = PeCab()

    def cut(lines: Sequence[str]) -> list[list[tuple[int, int, str]]]:
        found = []
        for line in lines:
            forms = analyser.morphs(line) if line.strip() else []
            found.append([(a, b, form) for (a, b), form in zip(align(line, forms), forms, strict=True)])
        return found

    libraries = {"pecab": version("pecab")}
    return OpenVocabulary(
        "pecab",
        "pecab",
        cut,
        digest=hashlib.sha256(repr(libraries).encode()).hexdigest()[:16],
        libraries=libraries,
        notes=["analyser at run time, pure Python; spans are looked up in the text, spaces are no tokens"],
    )


def _open_behind_mecab(spec: str, path: Path) -> LibraryTokenizer:
    """A model that was trained on MeCab's output, with it as its input."""
    return Adapted(
        SentencePiece(path.read_bytes(), spec=spec, name=path.resolve().parent.name),
        marked_morphemes(mecab_spans(), MARK),
        note=f"input segmented by MeCab-ko {library_version('python-mecab-ko')}, spaces as {MARK}, which are tokens",
        undo=lambda text: text.replace(" ", "").replace(MARK, " "),
        libraries={"python-mecab-ko": library_version("python-mecab-ko")},
    )


def open_row(spec: str) -> LibraryTokenizer:
    """The tokenizer of a row."""
    kind, _, rest = spec.partition(":")
    place, _, option = rest.partition("#")
    if spec == "pecab":
        return _open_pecab()
    if kind == "kiwi-sw":
        return open_kiwi_sw(spec, Path(place))
    if kind == "plain":
        return open_plain(spec, Path(place), option)
    if kind == "sp" and option == "mecab":
        return _open_behind_mecab(spec, Path(place))
    file = _first_file(Path(spec))
    if file is not None and _is_kiwi(file):
        return open_kiwi_sw(spec, file)
    if file is not None and _is_list(file):
        return open_plain(spec, file, "")
    return load(spec)


def _first_file(path: Path) -> Path | None:
    """The file that a path names, or the best of a folder."""
    if path.is_dir():
        return next((file for name in (*IN_A_FOLDER, "tok.vocab") for file in sorted(path.glob(name))), None)
    return path if path.is_file() else None


def _is_kiwi(file: Path) -> bool:
    kiwi = rb'"simple_tag"|"integrate_allomorph"|"type"\s*:\s*"Kiwi"'
    return file.suffix == ".json" and re.search(kiwi, file.read_bytes()[:4096]) is not None


def _is_list(file: Path) -> bool:
    """Whether a file is a list of characters, or of pieces with something behind a tab, and no WordPiece."""
    if file.suffix not in (".txt", ".vocab"):
        return False
    lines = utf8(file).splitlines()
    pieces = [line.split("\t")[0] for line in lines]
    words = [piece for piece in pieces if piece and not (piece[0] in "[<" and piece[-1] in "]>")]
    listed = any("\t" in line for line in lines) or max(map(len, words), default=0) == 1
    return any(name in pieces for name in UNKNOWN) and (listed or file.suffix == ".vocab")
