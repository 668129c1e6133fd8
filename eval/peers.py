"""Peers, trained on the same lines at the same size and kept on disk, so that an interrupted run goes on where it was.

Each peer is a function that trains into a folder and returns a spec for `koktok.runtimes`. A folder is found again by the digest
of everything that decides it: the lines, the size, the peer and the versions of the libraries.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from koktok.files import workplace, workplace_of
from koktok.text.patterns import PUBLISHED

__all__ = [
    "CURVE",
    "PEERS",
    "Peer",
    "digest_of",
    "hf_bpe",
    "library_version",
    "sentencepiece",
    "source_of",
    "train_peer",
]

Make = Callable[[Sequence[str], int, Path], str]
"""Lines, vocabulary size and an empty folder to the spec of what was trained into it."""

SPECIALS = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
SUPERWORDS = 0.3
"""At most this share of koktok's pieces crosses spaces in the rows that say so."""


@dataclass(frozen=True)
class Peer:
    """A row that is trained here."""

    name: str  # as the table shows it
    libraries: tuple[str, ...]  # whose versions decide the result
    make: Make
    slow: bool = False  # takes minutes on some megabytes; left out of the quick suite


def digest_of(lines: Sequence[str]) -> str:
    """First 16 hex digits of the SHA-256 of the lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def train_peer(peer: Peer, lines: Sequence[str], size: int, work: Path) -> str:
    """The spec of this peer on these lines; trained when it is not in the work folder.

    The folder is made beside its place and renamed, so that one that is there is whole.
    """
    versions = {name: library_version(name) for name in peer.libraries}
    key = json.dumps([peer.name, size, digest_of(lines), versions, source_of(peer)], sort_keys=True)
    place = work / "peers" / hashlib.sha256(key.encode()).hexdigest()[:16]
    told = place / "peer.json"
    if not told.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(place)) as made:
            fresh = made / "peer"
            shutil.rmtree(fresh, ignore_errors=True)  # of a run that was killed
            fresh.mkdir()
            clock = time.perf_counter()
            spec = peer.make(lines, size, fresh)
            seconds = time.perf_counter() - clock
            kind, _, path = spec.partition(":")
            told_of = {
                "name": peer.name,
                "kind": kind,
                "path": Path(path).relative_to(fresh).as_posix(),
                "seconds": seconds,
            }
            (fresh / "peer.json").write_text(json.dumps(told_of, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
        print(f"trained {peer.name}: {seconds:.1f} s", file=sys.stderr, flush=True)
    found = json.loads(told.read_text(encoding="utf-8"))
    return f"{found['kind']}:{place / found['path']}"


def library_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def source_of(peer: Peer) -> str:
    """A digest of the whole package for our own rows: its version does not change with every edit."""
    if not peer.name.startswith("koktok"):
        return ""
    import koktok

    home = Path(koktok.__file__).parent
    files = sorted(path for path in home.rglob("*") if path.suffix in (".py", ".toml"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


# ── the peers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def sentencepiece(lines: Sequence[str], size: int, folder: Path, **options: object) -> str:
    import sentencepiece as spm

    path = folder / "tokenizer.model"
    with path.open("wb") as file:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=file,
            vocab_size=size,
            normalization_rule_name="identity",  # its NFKC folds characters, which would look like fewer tokens
            max_sentence_length=1 << 20,
            num_threads=2,
            minloglevel=2,
            **options,
        )
    return f"sp:{path}"


def hf_bpe(lines: Sequence[str], size: int, folder: Path, *, pattern: str = "") -> str:
    """Byte-level BPE with the library's own pattern (GPT-2's), or with another one."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)
    if pattern:
        cut = pre_tokenizers.Split(Regex(pattern), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, tokenizer.pre_tokenizer])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
    )
    return _trained(tokenizer, trainer, lines, folder)


def _hf_unigram(lines: Sequence[str], size: int, folder: Path) -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=SPECIALS, unk_token="<unk>", show_progress=False)
    return _trained(tokenizer, trainer, lines, folder)


def _hf_wordpiece(lines: Sequence[str], size: int, folder: Path) -> str:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=False, lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=specials, show_progress=False)
    return _trained(tokenizer, trainer, lines, folder)


def _trained(tokenizer: object, trainer: object, lines: Sequence[str], folder: Path) -> str:
    tokenizer.train_from_iterator(iter(lines), trainer=trainer, length=len(lines))  # type: ignore[attr-defined]
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))  # type: ignore[attr-defined]
    return f"hf:{path}"


def _kiwi_bpe(lines: Sequence[str], size: int, folder: Path, *, morphemes: bool) -> str:
    from kiwipiepy import Kiwi, bpe_trainer

    path = folder / "tokenizer.json"
    on: dict[str, object] = {f"pretokenize_{name}": morphemes for name in ("j", "e", "vcp", "xsv")}
    on["kiwi"] = Kiwi(load_multi_dict=False, num_workers=2) if morphemes else None
    bpe_trainer.train_bpe_tokenizer(str(path), iter(lines), size, num_workers=2, show_progress=False, **on)
    return f"hf:{path}"


def _kiwi_sw(lines: Sequence[str], size: int, folder: Path) -> str:
    from kiwipiepy import Kiwi
    from kiwipiepy.sw_tokenizer import SwTokenizer, SwTokenizerConfig

    path = folder / "tokenizer.json"
    kiwi = Kiwi(load_multi_dict=False, num_workers=2)
    SwTokenizer.train(str(path), iter(lines), SwTokenizerConfig(), size, kiwi=kiwi, show_progress=False)
    return f"kiwi-sw:{path}"


def _koktok(lines: Sequence[str], size: int, folder: Path, *, other: dict[str, object], **train: object) -> str:
    from koktok import Recipe
    from koktok.pipeline.train import train as train_tokenizer

    recipe = Recipe().changed(holdout=0.0, train={"vocab_size": size, **train}, **other)
    train_tokenizer(lines, recipe).tokenizer.save(folder / "tokenizer")
    return f"koktok:{folder / 'tokenizer'}"


def koktok_peer(name: str, *, slow: bool = False, other: dict[str, object] | None = None, **train: object) -> Peer:
    """A row of koktok's: its name, settings of its training, and `other` parts of its recipe."""
    return Peer(name, ("koktok", "kiwipiepy", "kiwipiepy_model"), partial(_koktok, other=other or {}, **train), slow)


def _peers() -> Iterator[Peer]:
    spaces = {"split_by_unicode_script": False, "split_by_number": False}
    for kind, label in (("unigram", "Unigram"), ("bpe", "BPE")):
        make = partial(sentencepiece, model_type=kind)
        yield Peer(f"SentencePiece {label}, spaces only", ("sentencepiece",), partial(make, **spaces))
        yield Peer(f"SentencePiece {label}, defaults", ("sentencepiece",), make)
    across = partial(sentencepiece, model_type="unigram", split_by_whitespace=False)
    yield Peer("SentencePiece Unigram, across spaces", ("sentencepiece",), across, slow=True)
    yield Peer("HF byte-level BPE", ("tokenizers",), hf_bpe)
    llama = partial(hf_bpe, pattern=PUBLISHED["llama3"])
    yield Peer("HF byte-level BPE, Llama 3's pattern", ("tokenizers",), llama)
    yield Peer("HF Unigram", ("tokenizers",), _hf_unigram)
    yield Peer("HF WordPiece", ("tokenizers",), _hf_wordpiece)
    kiwi = ("kiwipiepy", "kiwipiepy_model")
    yield Peer("Kiwi bpe_trainer", kiwi, partial(_kiwi_bpe, morphemes=False))
    yield Peer("Kiwi bpe_trainer j e vcp xsv", kiwi, partial(_kiwi_bpe, morphemes=True))
    yield Peer("Kiwi SwTokenizer", kiwi, _kiwi_sw, slow=True)
    for preset in ("lm", "encoder", "aligned", "short"):
        yield koktok_peer(f"koktok {preset}", preset=preset)
    for kind, label in (("unigram", "Unigram"), ("bpe", "BPE")):  # what koktok's own trainers add to its cuts
        peer = koktok_peer(f"koktok's cuts, SentencePiece {label}", model=kind, backend="spm")
        yield replace(peer, libraries=(*peer.libraries, "sentencepiece"))
    yield koktok_peer("koktok lm, superwords", slow=True, superwords=SUPERWORDS)
    for preset in ("lm", "encoder", "aligned"):
        yield koktok_peer(f"koktok bpe-bytes {preset}", slow=True, model="bpe-bytes", preset=preset)
    yield koktok_peer("koktok bpe-bytes short", slow=True, model="bpe-bytes", preset="short")
    yield koktok_peer("koktok bpe", slow=True, model="bpe")
    exaone: dict[str, object] = {"pretokenize": {"pattern": "exaone-moe"}}
    yield koktok_peer("koktok bpe-bytes lm, exaone-moe", slow=True, model="bpe-bytes", other=exaone)
    spaces_in_runs: dict[str, object] = {"pretokenize": {"pattern": "superbpe"}}
    yield koktok_peer("koktok bpe-bytes lm, superbpe", slow=True, model="bpe-bytes", other=spaces_in_runs)
    runs: dict[str, object] = {"model": "bpe-bytes", "superwords": SUPERWORDS}
    yield koktok_peer("koktok bpe-bytes, superwords", slow=True, other=spaces_in_runs, **runs)
    free: dict[str, object] = {"pretokenize": {"digits": "free"}}  # as the peers cut them; so does `encoder`
    yield koktok_peer("koktok lm, digits free", slow=True, other=free)
    yield koktok_peer("koktok lm, digits three", slow=True, other={"pretokenize": {"digits": "three"}})
    single: dict[str, object] = {"pretokenize": {"digits": "single"}}
    yield koktok_peer("koktok encoder, digits single", slow=True, preset="encoder", other=single)


PEERS = tuple(_peers())
"""In the order of the table; the first is the reference of paired comparisons."""


CURVE = tuple(
    koktok_peer(f"koktok {kind}, {tokens:.2f} asked", model=kind, tokens_per_eojeol=tokens)
    for kind, targets in (
        ("unigram", (1.7, 1.75, 1.8, 1.85, 1.9, 2.0, 2.1, 2.2)),
        ("bpe-bytes", (1.85, 1.9, 1.95, 2.0, 2.05, 2.1, 2.15, 2.2)),
    )
    for tokens in targets
)
"""Tokens per eojeol against everything else: points of one kind of model, trained only where `--rows` asks for them."""
