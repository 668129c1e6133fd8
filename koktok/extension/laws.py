"""Law 13: proven from the merge list for every string, and checked on text.

Every new piece and every added merge contains bytes that only Hangul has, so they never occur in a text without Hangul, and old
merges are unchanged. Added merges come after all old ones or require a new piece, so the segmentation of any text begins with
all merges of the base and then only merges more: no text gets longer. A Unigram has no list of merges: for it the first law
holds, and the second is counted on text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from koktok.extension.base_tokenizer import Base, holds_hangul
from koktok.extension.extension_files import ExtensionRecord, digest_of, restored
from koktok.hangul import SYLLABLES


class Claim(NamedTuple):
    """A checked fact of a law."""

    law: str
    holds: bool
    wrong: str = ""


OLD_IDS = "the ids of the base are unchanged"
SHAPE = "every new piece has bytes that only Hangul has, and no Latin letter or digit"
MERGES = "merges: the base's in their order; added ones make Hangul, after all others or of new pieces"
REACHED = "some text reaches every new piece"
UNCHANGED = "text without Hangul has the same ids"
LONGER = "no text is longer"


def proof(base: Base, new: Base, record: ExtensionRecord) -> Iterator[Claim]:
    """The facts that hold for every string, from the definition alone."""
    yield from _old_ids(base, new, record)
    pieces = {piece.token: piece.id for piece in record.pieces}
    for token in pieces:
        yield _shape(base, token)
    if base.kind != "unigram":
        yield from _merges(base, new, pieces)
    for token, i in pieces.items():
        yield Claim(REACHED, reached(new, token, i), f"{token!r}, id {i}: its own text has other tokens")


def _old_ids(base: Base, new: Base, record: ExtensionRecord) -> Iterator[Claim]:
    digest = digest_of(restored(new.definition, record))
    yield Claim(
        OLD_IDS, digest == record.base.sha256, "tokenizer.json without the new pieces differs from that of the base"
    )
    filled = {piece.id for piece in record.pieces}
    for i, token in enumerate(base.tokens):
        if token and i not in filled:
            now = new.tokens[i] if i < new.size else ""
            yield Claim(OLD_IDS, now == token, f"the id {i} of {token!r} is {now!r}")


def _shape(base: Base, token: str) -> Claim:
    piece = base.piece_bytes(token)
    body = piece.removeprefix(base.space)
    text = body.decode(errors="replace").rstrip("\ufffd")
    clean = not any((char.isalnum() or char.isspace()) and not holds_hangul(char.encode()) for char in text)
    # A piece that begins with a continuation byte would end a character of another piece.
    good = holds_hangul(body) and clean and not 0x80 <= body[0] < 0xC0
    return Claim(SHAPE, good, f"{token!r} has not")


def _merges(base: Base, new: Base, pieces: Mapping[str, int]) -> Iterator[Claim]:
    """Compare both lists: a merge that is not the next old one was added."""
    old = iter(base.merges)
    waiting = next(old, None)
    for left, right in new.merges:
        merged = left + right
        if (left, right) == waiting:
            waiting = next(old, None)
            yield Claim(MERGES, merged not in pieces, f"an old merge makes the new piece {merged!r}")
            continue
        hangul = holds_hangul(new.piece_bytes(merged))
        after = waiting is None if merged in pieces else left in pieces or right in pieces
        yield Claim(MERGES, hangul and after, f"the added merge {left!r} {right!r}")
    yield Claim(MERGES, waiting is None, f"the base's merge {waiting!r} is missing or moved")


def reached(new: Base, token: str, i: int) -> bool:
    """Whether some text becomes this id: the piece's own, or for a piece that ends inside a syllable one that completes it."""
    model = new.runner.model
    if [part.id for part in model.tokenize(token)] != [i]:
        return False
    piece = new.piece_bytes(token)
    whole = piece.decode(errors="ignore").encode()
    tail = piece[len(whole) :]
    ends = (end for code in SYLLABLES if (end := chr(code).encode()).startswith(tail))
    return not tail or any(i in [part.id for part in model.tokenize(new.encode_piece(whole + end))] for end in ends)


def on_bytes(base: Base, new: Base, strings: Iterable[bytes]) -> Iterator[Claim]:
    """The laws on byte strings, also invalid UTF-8, which the models of byte-level bases encode directly."""
    before, after = base.runner.model, new.runner.model
    for string in strings:
        old = [part.id for part in before.tokenize(base.encode_piece(string))]
        now = [part.id for part in after.tokenize(new.encode_piece(string))]
        same = old == now or holds_hangul(string)
        yield Claim(UNCHANGED, same, f"{string!r}: {old[:8]} became {now[:8]}")
        yield Claim(LONGER, len(now) <= len(old), f"{string!r}: {len(old)} tokens became {len(now)}")


def on_text(base: Base, new: Base, lines: Sequence[str]) -> Iterator[Claim]:
    """The laws on lines: the same ids without Hangul, and never more ids."""
    normalizer = base.runner.normalizer
    for line, before, after in zip(lines, base.encode(lines), new.encode(lines), strict=True):
        if before == after:
            same = True
        else:
            normal = normalizer.normalize_str(line) if normalizer else line
            same = holds_hangul(line.encode()) or holds_hangul(normal.encode())
        yield Claim(UNCHANGED, same, f"{line[:60]!r}: {before[:8]} became {after[:8]}")
        if base.unknown in before:
            continue  # a part that the base loses may have pieces in the extension
        yield Claim(LONGER, len(after) <= len(before), f"{line[:60]!r}: {len(before)} tokens became {len(after)}")
