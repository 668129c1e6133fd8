"""vocab.txt of BERT, and vocab.json with merges.txt of GPT-2, as the tokenizer.json that reads them so.

These files do not define how text is segmented; the classes of transformers do (`BertTokenizer`, `GPT2Tokenizer`), whose
rules are built here from the nodes of the tokenizers library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, UsageError, asking
from koktok.files import read_utf8
from koktok.hangul import has_syllable, is_conjoining
from koktok.runtimes.huggingface.tokenizer_json import checked_json

ROLES = ("unk", "cls", "sep", "pad", "mask")
USUAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
OTHERS = ("<unk>", "<s>", "</s>", "<pad>", "<mask>")
"""The spelling of these tokens in some Korean models."""


def tokenizers_library() -> Any:
    """The library `tokenizers` in a version that loads, saves and has offsets, which 1.0 has not yet."""
    import tokenizers

    if not hasattr(tokenizers.Tokenizer, "from_str"):
        raise UsageError(
            f"expected tokenizers 0.21 to 0.x, got {tokenizers.__version__}, which has no `Tokenizer.from_str`",
            hint="pip install 'tokenizers<1'",
        )
    return tokenizers


def reads_jamo(pieces: Iterable[str]) -> bool:
    """Whether more pieces are spelled in conjoining jamo than in syllables, so that text must be decomposed first."""
    return sum(any(map(is_conjoining, piece)) - has_syllable(piece) for piece in pieces) > 0


def gpt2_json(vocab: Path) -> str:
    """A tokenizer.json for a vocab.json with the merges.txt beside it, as GPT-2's tokenizer reads them."""
    tokenizers = tokenizers_library()
    rows = checked_json(f'{{"model": {{"vocab": {read_utf8(vocab)}}}}}', str(vocab))["model"]["vocab"]
    file = vocab.parent / "merges.txt"
    lines = [line for line in read_utf8(file).split("\n") if line and not line.startswith("#version")]
    merges = []
    for line in lines:
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise ArtifactError(
                f"`{file}`: expected a pair of byte-level pieces in a line, got {line!r}",
                hint="koktok import the tokenizer.json of the same tokenizer",
            )
        merges.append((left, right))
    with asking("tokenizers", str(file), "it does not fit the vocab.json beside it: fetch both again"):
        built = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=rows, merges=merges))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens([token for token in ("<|endoftext|>",) if token in rows])
    return str(built.to_str(pretty=True)) + "\n"


def wordpiece_json(
    vocab: Path, config: Mapping[str, Any], roles: Mapping[str, str], *, lowercase: bool | None = None
) -> str:
    """A tokenizer.json for a vocab.txt, as BERT's tokenizer reads it with tokenizer_config.json and the roles of its folder.

    Text for a vocabulary of jamo is normalized by NFKD.
    """
    tokenizers = tokenizers_library()
    steps = tokenizers.normalizers
    pieces = read_utf8(vocab).replace("\r\n", "\n").removesuffix("\n").split("\n")
    counts = Counter(pieces)
    if len(counts) < len(pieces):
        twice, times = counts.most_common(1)[0]
        lines = [str(i) for i, piece in enumerate(pieces, start=1) if piece == twice]
        raise ArtifactError(f"`{vocab}` has the piece {twice!r} {times} times, on lines {', '.join(lines[:5])}")
    names = [roles.get(f"{role}_token") for role in ROLES]
    tokens = [
        name or (usual if usual in counts else other) for name, usual, other in zip(names, USUAL, OTHERS, strict=True)
    ]
    unknown, cls, sep = tokens[:3]
    if unknown not in counts:
        raise ArtifactError(f"`{vocab}`: expected the piece {unknown} of a WordPiece vocabulary, got none")
    lower = bool(config.get("do_lower_case", False)) if lowercase is None else lowercase
    built = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            vocab={piece: i for i, piece in enumerate(pieces)}, unk_token=unknown, max_input_chars_per_word=100
        )
    )
    accents = config.get("strip_accents")
    usual = steps.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
        strip_accents=None if accents is None else bool(accents),
        lowercase=lower,
    )
    built.normalizer = steps.Sequence([steps.NFKD(), usual]) if reads_jamo(pieces) else usual
    built.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    built.decoder = tokenizers.decoders.WordPiece(prefix="##", cleanup=False)
    built.add_special_tokens([token for token in tokens if token in counts])
    if {cls, sep} <= set(counts):
        built.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{cls} $A {sep}",
            pair=f"{cls} $A {sep} $B:1 {sep}:1",
            special_tokens=[(token, pieces.index(token)) for token in (cls, sep)],
        )
    return str(built.to_str(pretty=True)) + "\n"
