"""The checks without the user's text: changed files, special tokens that a text spells, and probe.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from koktok.errors import ArtifactError
from koktok.files import Product, sha256_of
from koktok.protocol.agree import Ids, agreement
from koktok.runtimes.folder import CARD, is_koktoks
from koktok.runtimes.probe import PROBE, read_probe
from koktok.runtimes.runtime import Reader
from koktok.tokenizer import TrainedTokenizer
from koktok.verification.finding import CheckResult
from koktok.verification.probes import around_specials


def unchanged(folder: Path) -> Iterator[CheckResult]:
    """Check: the files of a folder are as koktok wrote them, its owner's README.md and the weights of a model apart."""
    result = CheckResult("files", message=f"as they were written, {CARD} apart")
    for file in sorted(folder.glob("*.sha256")):
        rows = Product(file.name, "").rows(folder)
        if rows == []:
            result.record(False, "{} was changed after it was written", file.name)
        for name, sha in rows or ():
            if name != CARD and not name.endswith(".safetensors"):
                result.record(sha256_of(folder / name) == sha, "{} was changed or removed after it was written", name)
    if result.checked:
        yield result
    elif is_koktoks(folder):
        yield result.skip("there is no list of checksums of koktok")


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
        if reader.reads(text) and not reader.joins(text, prefix=tokenizer.prefix)
    ]
    plain = reader.tokenizer.ids(reader.with_space(texts, prefix=tokenizer.prefix))
    # Only a format's own normalizer adds a space before the parts of a text between special tokens.
    allowed = None
    if reader.tokenizer.cuts_specials and (reader.puts_space or not tokenizer.prefix):
        allowed = reader.tokenizer.ids(texts, specials=True)
    if allowed is not None:
        result.message += " when the call says so, and the token otherwise"
    result.add(agreement(zip(texts, plain, (tokenizer.encode(text).ids for text in texts), strict=True)))
    if allowed is not None:
        read = (tokenizer.encode(text, allowed_special="all").ids for text in texts)
        result.add(agreement(zip((f"{text}, allowed" for text in texts), allowed, read, strict=True)))
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
