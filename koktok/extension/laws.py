"""Law 13, proven: from the merge list for every string there is, and on text besides.

Bytes that only Hangul has stand in every new piece and in every merge that was added, so in a text
without Hangul none of them can ever be joined, and old ones are as they were. Added merges come behind all old ones or
need a piece that does, so what happens in any text begins with exactly what the base does, and then only joins more:
no text gets longer. What a Unigram's Viterbi search does is no list of merges: there the first of the two holds, and the
second is counted on text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from koktok.extension.base_tokenizer import Base, holds_hangul
from koktok.extension.extension_files import ExtensionRecord, digest_of, restored
from koktok.hangul import SYLLABLES


class Claim(NamedTuple):
    """One thing that was looked at."""

    law: str
    holds: bool
    wrong: str = ""


OLD_IDS = "the base is there, id by id"
SHAPE = "every new piece holds bytes that only Hangul has, and no Latin letter or digit"
MERGES = "merges: the base's in their order; added ones make Hangul, behind all others or of new pieces"
REACHED = "every new piece is reached by a text"
UNCHANGED = "text without Hangul has the ids it had"
LONGER = "no text is longer"


def proof(base: Base, new: Base, record: ExtensionRecord) -> Iterator[Claim]:
    """What the definition alone tells, of every string."""
    yield from _old_ids(base, new, record)
    pieces = {piece.token: piece.id for piece in record.pieces}
    for token in pieces:
        yield _shape(base, token)
    if base.kind != "unigram":
        yield from _merges(base, new, pieces)
    for token, i in pieces.items():
        yield Claim(REACHED, reached(new, token, i), f"{token!r}, id {i}: its own text is cut otherwise")


def _old_ids(base: Base, new: Base, record: ExtensionRecord) -> Iterator[Claim]:
    digest = digest_of(restored(new.definition, record))
    yield Claim(OLD_IDS, digest == record.base.sha256, "without what is new, tokenizer.json is not that of the base")
    filled = {piece.id for piece in record.pieces}
    for i, token in enumerate(base.tokens):
        if token and i not in filled:
            now = new.tokens[i] if i < new.size else ""
            yield Claim(OLD_IDS, now == token, f"the id {i} was {token!r} and is {now!r}")


def _shape(base: Base, token: str) -> Claim:
    piece = base.piece_bytes(token)
    body = piece.removeprefix(base.space)
    text = body.decode(errors="replace").rstrip("\ufffd")
    clean = not any((char.isalnum() or char.isspace()) and not holds_hangul(char.encode()) for char in text)
    # What begins with a continuation byte ends a character that another piece begins.
    good = holds_hangul(body) and clean and not 0x80 <= body[0] < 0xC0
    return Claim(SHAPE, good, f"{token!r} does not")


def _merges(base: Base, new: Base, pieces: Mapping[str, int]) -> Iterator[Claim]:
    """Walk both lists: what is not the next old merge was added."""
    old = iter(base.merges)
    waiting = next(old, None)
    for left, right in new.merges:
        made = left + right
        if (left, right) == waiting:
            waiting = next(old, None)
            yield Claim(MERGES, made not in pieces, f"an old merge makes the new piece {made!r}")
            continue
        hangul = holds_hangul(new.piece_bytes(made))
        behind = waiting is None if made in pieces else left in pieces or right in pieces
        yield Claim(MERGES, hangul and behind, f"the added merge {left!r} {right!r}")
    yield Claim(MERGES, waiting is None, f"the base's merge {waiting!r} is gone or moved")


def reached(new: Base, token: str, i: int) -> bool:
    """Whether some text becomes this id: the piece's own, or where it ends inside a syllable that of one that goes on so."""
    model = new.runner.model
    if [found.id for found in model.tokenize(token)] != [i]:
        return False
    piece = new.piece_bytes(token)
    try:
        piece.decode()
    except UnicodeDecodeError:
        whole = piece.decode(errors="ignore").encode()
        tail = piece[len(whole) :]
        ends = (chr(code).encode() for code in SYLLABLES)
        return any(
            i in [found.id for found in model.tokenize(new.encode_piece(whole + end))]
            for end in ends
            if end.startswith(tail)
        )
    return True


def on_bytes(base: Base, new: Base, strings: Iterable[bytes]) -> Iterator[Claim]:
    """The same of byte strings that need be no text, given to the models as they are: for byte-level bases."""
    before, after = base.runner.model, new.runner.model
    for string in strings:
        old = [found.id for found in before.tokenize(base.encode_piece(string))]
        now = [found.id for found in after.tokenize(new.encode_piece(string))]
        same = old == now or holds_hangul(string)
        yield Claim(UNCHANGED, same, f"{string!r}: {old[:8]} became {now[:8]}")
        yield Claim(LONGER, len(now) <= len(old), f"{string!r}: {len(old)} tokens became {len(now)}")


def on_text(base: Base, new: Base, lines: Sequence[str]) -> Iterator[Claim]:
    """What both make of lines: the same ids where there is no Hangul, and never more of them."""
    normalizer = base.runner.normalizer
    for line, before, after in zip(lines, base.encode(lines), new.encode(lines), strict=True):
        if before == after:
            same = True
        else:
            normal = normalizer.normalize_str(line) if normalizer else line
            same = holds_hangul(line.encode()) or holds_hangul(normal.encode())
        yield Claim(UNCHANGED, same, f"{line[:60]!r}: {before[:8]} became {after[:8]}")
        if base.unknown in before:
            continue  # the base has lost a part of this text, and the extension may have found it
        yield Claim(LONGER, len(after) <= len(before), f"{line[:60]!r}: {len(before)} tokens became {len(after)}")
