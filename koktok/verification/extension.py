"""The checks of an extension: law 13 from its definition and on text, and the libraries that read it.

The base is restored from the folder: without the new pieces of extension.json it must have the digest that is stored there.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koktok.errors import ArtifactError, KoktokError, asking
from koktok.extension import laws
from koktok.extension.base_tokenizer import Base, base_of, holds_hangul, open_base
from koktok.extension.extension_files import ExtensionRecord, digest_of, read_extension, restored
from koktok.extension.prune import moved, read_pruned
from koktok.files import read_bounded
from koktok.progress import OnProgress
from koktok.protocol.agree import Ids, agree
from koktok.runtimes.huggingface.config_files import is_of_transformers
from koktok.runtimes.probe import LINES
from koktok.runtimes.sentencepiece.message import UNUSED, ModelProto
from koktok.runtimes.tiktoken.ranks import SPEC, Ranks, load
from koktok.tokenizer.ready import folder_of
from koktok.verification.finding import CheckResult, Verification, loads
from koktok.verification.folders import probe
from koktok.verification.others import compared, opened_in_transformers, same_as_base
from koktok.verification.probes import around_specials, tricky_lines
from koktok.verification.roles import ids_in_transformers, roles, same_roles

RANDOM: Final = 10_000
"""Number of random strings that are checked besides the text, and for a byte-level base of random byte strings."""

_BATCH = 1000


def verify_extension(
    folder: Path,
    lines: Iterable[str],
    *,
    exports: Iterable[str | Path] = (),
    strings: int = RANDOM,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Check an extension, also on a number of random `strings`; `exports` are bases that it must extend."""
    try:
        record = read_extension(folder)
        files = {file.name: read_bounded(file) for file in folder.iterdir() if file.suffix in (".json", ".model")}
        new = base_of(str(folder), files)
        base = base_of(record.base.name, files, restored(new.definition, record))
    except (KoktokError, OSError, KeyError, ValueError) as error:
        why = error.message if isinstance(error, KoktokError) else f"{type(error).__name__}: {error}"
        return Verification(str(folder), findings=(loads(why),))
    results: dict[str, CheckResult] = {}
    _record(results, laws.proof(base, new, record))
    bases: list[Base] = []
    for export in exports:
        result = results.setdefault(
            f"base: {export}", CheckResult(f"base: {export}", message="it is the base that was extended")
        )
        try:
            given = open_base(str(export))
        except KoktokError as error:
            result.record(False, "{}", error.message)
            continue
        result.record(digest_of(given.definition) == record.base.sha256, "{} is another", str(export))
        bases.append(given)
    texts = list(dict.fromkeys(lines))
    tricky = list(tricky_lines())
    waiting, total, done = chain(texts, tricky, _random_strings(strings)), len(texts) + len(tricky) + strings, 0
    libraries = [
        (name, CheckResult(f"ids: {name}", message="the same ids, where the base's are"), old, now)
        for name, old, now in _libraries(folder, record)
    ]
    while batch := list(islice(waiting, _BATCH)):
        _record(results, laws.on_text(base, new, batch))
        for _, result, old, now in libraries:
            rows = zip(batch, base.encode(batch), old(batch), strict=True)
            result.add(agree(now, new.encode, [line for line, ours, theirs in rows if ours == theirs]))
        done += len(batch)
        if on_progress is not None:
            on_progress("verify", done, total)
    if base.kind == "bytes":
        _record(results, laws.on_bytes(base, new, _random_bytes(strings)))
    every = [
        *results.values(),
        *roles(folder, new.tokenizer.roles, new.tokens),
        *_in_transformers(folder, new, record.base.roles, bases, texts),
        probe(folder, new.encode),
        *(result for _, result, _, _ in libraries),
    ]
    findings = [_allow_longer(result, base) for result in every]
    shown = f"{record.base.name} (sha256 {record.base.sha256[:16]}) with {len(record.pieces):,} new pieces"
    return Verification(
        str(folder),
        shown,
        len(texts),
        sum(map(len, texts)),
        (loads(), *findings),
    )


def verify_pruned(folder: Path, lines: Iterable[str], *, exports: Sequence[str | Path] = ()) -> Verification:
    """Check a pruned vocabulary: text has the pieces of its base, one of `exports`."""
    texts = list(dict.fromkeys(lines))
    try:
        record, table = read_pruned(folder)
        new = base_of(str(folder), {file.name: read_bounded(file) for file in folder.glob("token*")})
        bases = [open_base(str(export)) for export in exports]
    except (KoktokError, OSError, KeyError, ValueError) as error:
        why = error.message if isinstance(error, KoktokError) else f"{type(error).__name__}: {error}"
        return Verification(str(folder), findings=(loads(why),))
    findings = [loads()]
    if not bases:
        findings.append(CheckResult("pieces", "not run", note="name the base: koktok verify FOLDER TEXT --with BASE"))
    for base in bases:
        whole, same = (
            CheckResult(f"base: {base.name}", message="it is the base"),
            CheckResult("pieces", message="text has the pieces of the base"),
        )
        whole.record(digest_of(base.definition) == record.base.sha256, "{} is another", base.name)
        if not whole.wrong:
            same.add(agree(new.encode, moved(base, table), texts))
        findings += [whole, same, *_unknown(base, new, texts)]
    recorded = {role: int(table[i]) for role, i in record.base.roles.items()}
    findings += [
        *roles(folder, new.tokenizer.roles, new.tokens),
        *_in_transformers(folder, new, recorded, bases, texts, table),
        probe(folder, new.encode),
    ]
    shown = f"{record.base.name} without {len(record.removed):,} pieces"
    return Verification(str(folder), shown, len(texts), sum(map(len, texts)), tuple(findings))


def _unknown(base: Base, new: Base, texts: Sequence[str]) -> Iterator[CheckResult]:
    """Check: no text has more unknown tokens than in the base; with byte fallback nothing is unknown."""
    if base.lossless or not texts:
        return
    result = CheckResult("unknown tokens", message="no more than in the base")
    for text, before, after in zip(texts, base.encode(texts), new.encode(texts), strict=True):
        counts = before.count(base.unknown), after.count(new.unknown)
        result.record(counts[1] <= counts[0], "{}: {} became {}", text, *counts)
    yield result


def _in_transformers(
    folder: Path,
    new: Base,
    recorded: Mapping[str, int],
    bases: Sequence[Base],
    lines: Sequence[str],
    table: NDArray[np.int64] | None = None,
) -> Iterator[CheckResult]:
    """Check: `AutoTokenizer` gives the folder the ids of its tokenizer.json, and those and the roles of its bases."""
    if find_spec("transformers") is None:
        yield CheckResult("transformers").skip("pip install 'koktok[transformers]'")
        return
    library, opens = opened_in_transformers(folder)
    yield opens
    if library is None:
        return
    yield from same_roles(
        "recorded", recorded, {role: i for role, i in ids_in_transformers(library).items() if recorded}
    )
    every = [*LINES, *tricky_lines(), *around_specials(new.tokenizer.specials)]
    for added in (False, True):
        yield compared(new.tokenizer, library, every, added=added)
    plain = [text for text in (*lines, *every, *_with_spaces(new)) if table is not None or not _is_hangul(new, text)]
    for base in bases:
        place = folder_of(Path(base.name))
        if is_of_transformers(place):
            yield from same_as_base(base.name, place, library, plain, table)


def _with_spaces(new: Base) -> Iterator[str]:
    """Texts without Hangul around special tokens, and with spaces at the start."""
    yield from (" Hello", "  Hello world", "Hello\n\n x")
    for token in new.tokenizer.specials:
        yield from (f"{token}hello", f"Hello {token} world", f" {token}  hello {token}x")


def _is_hangul(base: Base, text: str) -> bool:
    normalizer = base.runner.normalizer
    return holds_hangul(text.encode()) or holds_hangul(
        (normalizer.normalize_str(text) if normalizer else text).encode()
    )


def _record(results: dict[str, CheckResult], claims: Iterable[laws.Claim]) -> None:
    for claim in claims:
        results.setdefault(claim.law, CheckResult(claim.law)).record(claim.holds, "{}", claim.wrong)


def _allow_longer(result: CheckResult, base: Base) -> CheckResult:
    """Turn longer lines of a Unigram, for which lengths are no law, into a note."""
    if base.kind == "unigram" and result.check == laws.LONGER and result.wrong:
        result.outcome, result.note = "pass", f"{result.wrong:,} lines have more tokens, which can happen with Unigram"
    return result


def _libraries(folder: Path, record: ExtensionRecord) -> Iterator[tuple[str, Ids, Ids]]:
    """The libraries besides Hugging Face's, with the vocabulary before and after the extension."""
    added = {piece.id for piece in record.pieces}
    if (folder / SPEC).is_file():
        try:
            ranks = load(folder)
            old_ranks = {piece: i for piece, i in ranks.ranks.items() if i not in added}
            old, now = Ranks("base", ranks.pattern, old_ranks, {}).encoding(), ranks.encoding()
        except (ArtifactError, ImportError):
            return
        yield (
            "tiktoken",
            lambda batch: old.encode_ordinary_batch(list(batch)),
            lambda batch: now.encode_ordinary_batch(list(batch)),
        )
    file = folder / "tokenizer.model"
    if file.is_file():
        import sentencepiece

        proto = ModelProto(read_bounded(file))
        with asking("sentencepiece", str(file)):
            after = sentencepiece.SentencePieceProcessor(model_proto=proto.serialized())
        for i in added:
            proto.pieces[i].piece, proto.pieces[i].type = f"<koktok_{i}>", UNUSED
        before = sentencepiece.SentencePieceProcessor(model_proto=proto.serialized())
        yield "sentencepiece", lambda batch: before.encode(list(batch)), lambda batch: after.encode(list(batch))


def _random_strings(n: int) -> Iterator[str]:
    """Random strings without Hangul, the same every time."""
    chance = random.Random(13)
    blocks = [
        (0x20, 0x7F),
        (0xA0, 0x250),
        (0x370, 0x530),
        (0x900, 0xE00),
        (0x3000, 0x3131),
        (0x4E00, 0xA000),
        (0x1F300, 0x1FA00),
    ]
    blocks += [(0xD7B0, 0xD7FC), (0xA000, 0xAC00), (0xE000, 0xF900), (0x10000, 0x10200)]
    while n:
        low, high = chance.choice(blocks)
        text = "".join(chr(chance.randrange(low, high)) for _ in range(chance.randint(1, 12)))
        if not holds_hangul(text.encode()):
            yield text
            n -= 1


def _random_bytes(n: int) -> Iterator[bytes]:
    """Random byte strings, the same every time: half of any bytes, half of those that begin or continue characters."""
    chance = random.Random(14)
    some = bytes(range(0x80, 0x100))
    for k in range(n):
        size = chance.randint(1, 16)
        yield chance.randbytes(size) if k % 2 else bytes(chance.choices(some, k=size))
