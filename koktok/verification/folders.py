"""The checks of the folder: special tokens that a text spells, and saving.

The loaded tokenizer is saved, and loaded and saved again; all files must have the same bytes, and so must the folder's own.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.errors import ArtifactError
from koktok.files import read_bounded
from koktok.files.sentencepiece_model import ModelProto
from koktok.formats.probe import PROBE, read_probe
from koktok.tokenizer.agree import Ids, agreement
from koktok.verification.finding import CheckResult
from koktok.verification.probes import around_specials

if TYPE_CHECKING:
    from koktok.tokenizer import TrainedTokenizer
    from koktok.verification.formats import Reader


OWN = ("tokenizer.json", "tokenizer.model", "vocab.json")
"""Files that determine ids or text; the owner of a folder may edit the others."""


def specials(tokenizer: TrainedTokenizer) -> CheckResult:
    """Check: text that spells a special token or a byte piece stays text, unless the caller allows the token."""
    result = CheckResult("special tokens", message="text that spells one is text, unless it is allowed")
    vocab = tokenizer.vocab
    reserved = set(vocab.special_ids.values())
    if not tokenizer.lossless:
        reserved.discard(vocab.unknown_id)
    for text in around_specials(vocab.specials):
        ids = tokenizer.encode(text).ids
        reached = [vocab.tokens[i] for i in ids if i in reserved]
        decoded, normal = tokenizer.decode(ids), tokenizer.normalize(text)
        good = not reached and (decoded == normal or not tokenizer.lossless)
        result.record(good, "{} gives {}", text, reached or decoded)
    for token, i in vocab.special_ids.items():
        ids = tokenizer.encode(f"가{token}", allowed_special=[token]).ids
        result.record(ids[-1:] == [i], "{} is not read where it is allowed", token)
    return result


def specials_of_format(tokenizer: TrainedTokenizer, name: str, reader: Reader) -> CheckResult:
    """Check: a format, too, reads such text as text or as the token, depending on the call."""
    result = CheckResult(f"special tokens: {name}", message="text that spells one is text")
    texts = [
        text
        for text in map(tokenizer.normalize, around_specials(tokenizer.vocab.specials))
        if reader.reads(text, prefix=tokenizer.prefix)
    ]
    plain = reader.encode(reader.with_space(texts, prefix=tokenizer.prefix))
    # Only a format's own normalizer adds a space before the parts of a text between special tokens.
    allowed = None if tokenizer.prefix and not reader.puts_space else reader.encode_specials(texts)
    if allowed is not None:
        result.message += " when the call says so, and the token otherwise"
    result.add(agreement(zip(texts, plain, (tokenizer.encode(text).ids for text in texts), strict=True)))
    if allowed is not None:
        read = (tokenizer.encode(text, allowed_special="all").ids for text in texts)
        result.add(agreement(zip((f"{text}, allowed" for text in texts), allowed, read, strict=True)))
    return result


def saving(tokenizer: TrainedTokenizer, folder: Path) -> CheckResult:
    """Check: saving, saving twice, and loading and saving again give the bytes of the folder."""
    result = CheckResult(
        "saving", message="saved twice, and loaded and saved again: the same bytes, and those of the folder"
    )
    with tempfile.TemporaryDirectory() as temporary:
        first = _files(tokenizer.save(Path(temporary, "first")))
        twice = _files(tokenizer.save(Path(temporary, "second")))
        again = _files(type(tokenizer).load(Path(temporary, "first")).save(Path(temporary, "third")))
    for name in sorted(first.keys() | twice.keys() | again.keys()):
        result.record(first.get(name) == twice.get(name), "{} is another when it is saved a second time", name)
        result.record(first.get(name) == again.get(name), "{} is another when it is loaded and saved again", name)
    made_by = tokenizer.signature.get("koktok")
    if made_by not in (None, version("koktok")):
        result.note = f"the folder was written by koktok {made_by}, so its own bytes are not compared"
        return result
    for name in OWN:
        if name in first:
            file = folder / name
            same = file.is_file() and _alike(name, read_bounded(file), first[name])
            result.record(same, "{} differs from the file that koktok writes: it was changed, or is missing", name)
    return result


def probe(folder: Path, encode: Ids) -> CheckResult:
    """Check: probe.json has the ids of the folder's tokenizer."""
    result = CheckResult(PROBE, message="its ids are those of the tokenizer")
    if not (folder / PROBE).is_file():
        return result.skip(f"there is no {PROBE}; save the tokenizer again")
    try:
        lines, rows = read_probe(folder)
    except ArtifactError as error:
        result.record(False, "{}", error.message)
        return result
    result.add(agreement(zip(lines, rows, encode(lines), strict=True)))
    return result


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def _alike(name: str, actual: bytes, expected: bytes) -> bool:
    """Whether two files have the same content; other libraries, and other versions of them, write other layouts."""
    if actual == expected:
        return True
    try:
        if name.endswith(".model"):
            return _without_charsmaps(actual) == _without_charsmaps(expected)
        return bool(_decisive(json.loads(actual)) == _decisive(json.loads(expected)))
    except ValueError:
        return False


def _without_charsmaps(model: bytes) -> bytes:
    """A model without its compiled rules: other versions of SentencePiece compile the same rules to other bytes."""
    try:
        proto = ModelProto(model)
    except ValueError:
        return model
    for spec in (proto.normalizer_spec, proto.denormalizer_spec):
        del spec.precompiled_charsmap
    return proto.serialized()


def _decisive(content: Any) -> Any:
    """The keys that determine ids and text; programs that use the folder may change padding and truncation."""
    if isinstance(content, Mapping):
        return {key: value for key, value in content.items() if key not in ("padding", "truncation", "version")}
    return content
