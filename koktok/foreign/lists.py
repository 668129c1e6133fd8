"""`plain:`, a list of units: characters, jamo, or MeCab's morphemes, each either in the list or unknown."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from koktok import hangul
from koktok.errors import ArtifactError, InputError
from koktok.files import typed
from koktok.foreign.base import ForeignTokenizer, Rows

SPACES = ("▃", "▁", " ")


class Plain(ForeignTokenizer):
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

    def encode(self, lines: Sequence[str]) -> Rows:
        """As `ForeignTokenizer.encode`."""
        units = [self._cut(line) for line in lines]
        ids = [[self._ids.get(unit, self._unknown) for _, _, unit in row] for row in units]
        return Rows.of(ids, [[(a, b) for a, b, _ in row] for row in units], lines)

    def token_bytes(self, i: int) -> bytes | None:
        """As `ForeignTokenizer.token_bytes`."""
        if i == self._unknown or i in self.special_ids:
            return None
        return b" " if self._pieces[i] in SPACES else self._pieces[i].encode()

    def piece(self, i: int) -> str:
        """As `ForeignTokenizer.piece`."""
        return self._pieces[i]


def open_plain(spec: str, path: Path, unit: str) -> ForeignTokenizer:
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
        from koktok.foreign.analysers import mecab_spans, mecab_version

        morphemes = mecab_spans()
        libraries = {"python-mecab-ko": mecab_version()}

        def cut(line: str) -> list[tuple[int, int, str]]:
            found, at = [], 0
            for a, b in morphemes(line):
                if space and a > at:
                    found.append((at, a, space))
                found.append((a, b, line[a:b]))
                at = b
            return found

        note = f"input segmented by MeCab-ko {mecab_version()}; a morpheme that is not in the list is unknown"
    elif unit == "jamo":

        def cut(line: str) -> list[tuple[int, int, str]]:
            return [(a, b, letter) for a, b, char in characters(line) for letter in hangul.split(char)]

        note = "one token a jamo"
    elif unit == "char":
        cut, note = characters, "one token a character"
    else:
        raise InputError(
            f"`{unit}` is no unit of a plain list; wanted char, jamo or mecab", hint=typed(f"plain:{path}#char")
        )
    name = path.resolve().parent.name if path.stem in ("tok", "vocab") else path.stem
    notes = [note, f"spaces are tokens ({space.replace(' ', '▁')})" if space else "spaces are no tokens"]
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return Plain(spec, name, pieces, cut, digest=digest, libraries=libraries, notes=notes)
