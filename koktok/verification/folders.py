"""The checks that look at the folder: special tokens that a text spells, and what saving writes.

A copy to compare with. A tokenizer that was loaded is saved, and loaded and saved again; all of it must be
the same bytes, and what lies in the folder must be what is written now.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.errors import ArtifactError
from koktok.files.sentencepiece_model import ModelProto
from koktok.formats.probe import PROBE, read_probe
from koktok.tokenizer.agree import Ids, agreement
from koktok.verification.finding import CheckResult
from koktok.verification.probes import around_specials

if TYPE_CHECKING:
    from koktok.tokenizer import TrainedTokenizer
    from koktok.verification.formats import Reader


OWN = ("tokenizer.json", "tokenizer.model", "vocab.json")
"""Files that decide ids or text; others of a folder may be edited by its owner."""


def specials(tokenizer: TrainedTokenizer) -> CheckResult:
    """Check: text that spells a special token or a byte piece is text, unless the caller allows the token."""
    tally = CheckResult("special tokens", said="text that spells one is text, unless it is allowed")
    vocab = tokenizer.vocab
    reserved = set(vocab.special_ids.values())
    if not tokenizer.lossless:
        reserved.discard(vocab.unknown_id)
    for text in around_specials(vocab.specials):
        ids = tokenizer.encode(text).ids
        reached = [vocab.tokens[i] for i in ids if i in reserved]
        decoded, normal = tokenizer.decode(ids), tokenizer.normalize(text)
        good = not reached and (decoded == normal or not tokenizer.lossless)
        tally.record(good, "{} gives {}", text, reached or decoded)
    for token, i in vocab.special_ids.items():
        ids = tokenizer.encode(f"가{token}", allowed_special=[token]).ids
        tally.record(ids[-1:] == [i], "{} is not read where it is allowed", token)
    return tally


def specials_of_format(tokenizer: TrainedTokenizer, name: str, reader: Reader) -> CheckResult:
    """Check: in a format, too, such text is text when asked for, and the token when not."""
    tally = CheckResult(f"special tokens: {name}", said="text that spells one is text")
    texts = [
        text
        for text in map(tokenizer.normalize, around_specials(tokenizer.vocab.specials))
        if reader.reads(text, prefix=tokenizer.prefix)
    ]
    plain = reader.encode(reader.with_space(texts, prefix=tokenizer.prefix))
    # A space before each part of a text between special tokens is put by nobody but a format's own normalizer.
    allowed = None if tokenizer.prefix and not reader.puts_space else reader.encode_specials(texts)
    if allowed is not None:
        tally.said += " when the call says so, and the token otherwise"
    tally.add(agreement(zip(texts, plain, (tokenizer.encode(text).ids for text in texts), strict=True)))
    if allowed is not None:
        read = (tokenizer.encode(text, allowed_special="all").ids for text in texts)
        tally.add(agreement(zip((f"{text}, allowed" for text in texts), allowed, read, strict=True)))
    return tally


def saving(tokenizer: TrainedTokenizer, folder: Path) -> CheckResult:
    """Check: saving twice, and loading what was saved and saving it again, gives the same bytes as the folder has."""
    tally = CheckResult(
        "saving", said="saved twice, and loaded and saved again: the same bytes, and those of the folder"
    )
    with tempfile.TemporaryDirectory() as temporary:
        first = _files(tokenizer.save(Path(temporary, "first")))
        twice = _files(tokenizer.save(Path(temporary, "second")))
        again = _files(type(tokenizer).load(Path(temporary, "first")).save(Path(temporary, "third")))
    for name in sorted(first.keys() | twice.keys() | again.keys()):
        tally.record(first.get(name) == twice.get(name), "{} is another when it is saved a second time", name)
        tally.record(first.get(name) == again.get(name), "{} is another when it is loaded and saved again", name)
    made_by = tokenizer.signature.get("koktok")
    if made_by not in (None, version("koktok")):
        tally.note = f"the folder was written by koktok {made_by}, so its own bytes are not compared"
        return tally
    for name in OWN:
        if name in first:
            there = folder / name
            found = there.read_bytes() if there.is_file() else b""
            tally.record(
                _alike(name, found, first[name]), "{} is not what koktok writes: it was changed, or is missing", name
            )
    return tally


def probe(folder: Path, encode: Ids) -> CheckResult:
    """Check: probe.json holds the ids that the folder's tokenizer gives."""
    tally = CheckResult(PROBE, said="its ids are those of the tokenizer")
    if not (folder / PROBE).is_file():
        return tally.skip(f"there is no {PROBE}; save the tokenizer again")
    try:
        lines, rows = read_probe(folder)
    except ArtifactError as error:
        tally.record(False, "{}", error.message)
        return tally
    tally.add(agreement(zip(lines, rows, encode(lines), strict=True)))
    return tally


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def _alike(name: str, there: bytes, written: bytes) -> bool:
    """True for the same bytes, or the same content: other libraries, and other versions of them, lay it out otherwise."""
    if there == written:
        return True
    try:
        if name.endswith(".model"):
            return _without_charsmaps(there) == _without_charsmaps(written)
        return bool(_decisive(json.loads(there)) == _decisive(json.loads(written)))
    except ValueError:
        return False


def _without_charsmaps(model: bytes) -> bytes:
    """A model without its compiled rules: another version of SentencePiece may compile the same rules to other bytes."""
    try:
        proto = ModelProto(model)
    except ValueError:
        return model
    for spec in (proto.normalizer_spec, proto.denormalizer_spec):
        del spec.precompiled_charsmap
    return proto.serialized()


def _decisive(content: Any) -> Any:
    """What decides ids and text; padding and truncation are switched by whoever used the folder last."""
    if isinstance(content, Mapping):
        return {key: value for key, value in content.items() if key not in ("padding", "truncation", "version")}
    return content
