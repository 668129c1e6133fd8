"""Everything that wants a tokenizer, done once: a training machine finds flat arrays, and needs numpy and PyTorch alone."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from eval.peers import PEERS, Peer, digest_of, sentencepiece, train_peer
from eval.study.data import Lists, write_arrays
from eval.study.sizes import HOW, PRESETS, Size
from eval.texts import GOLDS, data_of, parts
from koktok.files import write_file
from koktok.foreign import load
from koktok.hangul import is_syllable, letters_of
from koktok.metrics import GoldPage, Text, score
from koktok.metrics.gold import read_gold
from koktok.metrics.language_model import lines_of, unknown_bits
from koktok.metrics.robustness import PERTURBATIONS
from koktok.tokenizer.any_tokenizer import Tokenizer

PIECE: Final = 2_000
"""Bytes of neighbouring lines that stay together when the order of training text is drawn."""

LONGEST: Final = 150
"""Bytes of a line of the probes, at most."""

JOSA: Final = ("은는", "이가", "을를", "과와")
"""Behind a final consonant, behind a vowel."""

EOMI: Final = (("았", "었"), ("아", "어"), ("아서", "어서"), ("아요", "어요"), ("으면", "면"), ("으니", "니"))


def tokenizers() -> dict[str, Peer]:
    """The rows of PLAN.md, by name."""
    kept = {"remove_extra_whitespaces": False, "byte_fallback": True}
    known = {peer.name: peer for peer in PEERS}
    found = {
        f"sp-{kind}": Peer(f"study sp-{kind}", ("sentencepiece",), partial(sentencepiece, model_type=kind, **kept))
        for kind in ("unigram", "bpe")
    }
    found |= {"hf-bpe": known["HF byte-level BPE"], "kiwi-bpe": known["Kiwi bpe_trainer j e vcp xsv"]}
    found |= {f"koktok-{preset}": known[f"koktok {preset}"] for preset in PRESETS}
    found |= {f"koktok-{preset}-superwords": known[f"koktok {preset}, superwords"] for preset in PRESETS}
    characters = partial(sentencepiece, model_type="char", character_coverage=1.0, hard_vocab_limit=False, **kept)
    return found | {"characters": Peer("study characters", ("sentencepiece",), characters)}


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Held:
    """Held-out lines: what is asked for, what chooses a rate, and the unit of each line that is asked for."""

    test: Text
    dev: list[str]


def pieces(train: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Neighbouring lines of a source, so many bytes or more."""
    for lines in train.values():
        piece: list[str] = []
        weight = 0
        for line in lines:
            piece.append(line)
            weight += size_of(line)
            if weight >= PIECE:
                yield piece
                piece, weight = [], 0
        if piece:
            yield piece


def size_of(line: str) -> int:
    """Bytes, the line feed counted."""
    return len(line.encode()) + 1


def held_out(held: Mapping[str, Sequence[str]], most: int) -> Held:
    """From the front of each source what is asked for, from its end half as much that chooses rates."""
    test, dev = {}, []
    for name, lines in held.items():
        share = min(most // max(1, len(held)), sum(map(size_of, lines)) // 2)
        test[name] = lines[: fitting(lines, share)]
        rest = lines[len(test[name]) :][::-1]
        dev += rest[: fitting(rest, share // 2)]
    return Held(Text.of({name: lines for name, lines in test.items() if lines}), dev)


def fitting(lines: Sequence[str], most: int) -> int:
    """How many lines fit into so many bytes."""
    return int(np.searchsorted(np.cumsum([size_of(line) for line in lines]), most, side="right"))


# ── probes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def allomorphs(line: str, tokens: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Kind of morpheme, and the line with the allomorph that does not go there."""
    for token in tokens:
        form, start = token.form, token.start
        if not start or not line.startswith(form, start) or not is_syllable(line[start - 1]):
            continue
        closed = letters_of(line[start - 1])[2] > 0
        rest = line[start + len(form) :]
        if token.tag in ("JX", "JKS", "JKO", "JC", "JKB"):
            for behind_final, behind_vowel in JOSA:
                right, wrong = (behind_final, behind_vowel) if closed else (behind_vowel, behind_final)
                if form == right:
                    yield "josa", line[:start] + wrong + rest
        elif token.tag in ("EP", "EC", "EF"):
            for a, b in EOMI:
                # With 으 behind a final consonant alone: 있었니, which asks, has 있었으니 beside it, and that is Korean.
                fits = len(a) == len(b) or (token.tag == "EC" and form == (a if closed else b))
                if form in (a, b) and fits:
                    yield "eomi", line[:start] + (b if form == a else a) + rest


def minimal_pairs(lines: Sequence[str], most: int) -> dict[str, list[tuple[str, str]]]:
    """Lines as they are beside lines with the other allomorph, one pair a line and kind."""
    from kiwipiepy import Kiwi

    kiwi = Kiwi(num_workers=1)
    found: dict[str, list[tuple[str, str]]] = {"josa": [], "eomi": []}
    for line in lines:
        if all(len(pairs) >= most for pairs in found.values()):
            break
        wrong = dict(allomorphs(line, kiwi.tokenize(line)))
        for kind, pairs in found.items():
            if kind in wrong and len(pairs) < most:
                pairs.append((line, wrong[kind]))
    return found


def prompts(lines: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Lines up to a place between two syllables of an eojeol, and the character that follows."""
    rng, found = np.random.default_rng(0), []
    for line in lines:
        places = [m.start() + 1 for m in re.finditer(r"(?=[가-힣]{2})", line) if m.start() >= 8]
        if places and len(found) < most:
            at = places[int(rng.integers(len(places)))]
            found.append((line[:at], line[at]))
    return found


def reviews(folder: Path) -> list[tuple[str, int]]:
    """Return reviews of NSMC with 1 for rating 9 and 10 and 0 for 1 to 4, as many of each, in a fixed order.

    The folder is `raw/` of github.com/e9t/nsmc; films of corpus:bench-ko are left out.
    """
    found: dict[int, dict[str, None]] = {0: {}, 1: {}}
    for path in sorted(folder.glob("*.json")):
        if not "15" <= path.name[:2] <= "29":
            continue
        for item in json.loads(path.read_text(encoding="utf-8")):
            text, rating = " ".join(item["review"].split()), int(item["rating"])
            if 10 <= len(text) <= 140 and not 4 < rating < 9:
                found[int(rating > 8)][text] = None
    n = min(map(len, found.values()))
    pairs = [(text, label) for label, texts in found.items() for text in [*texts][:n]]
    return [pairs[i] for i in np.random.default_rng(0).permutation(len(pairs))]


def topics(path: Path) -> list[tuple[str, int]]:
    """Titles with the number of their topic, from KLUE's ynat JSON."""
    return numbered([(row["label"], row["title"]) for row in json.loads(path.read_text(encoding="utf-8"))])


def labelled(path: Path) -> list[tuple[str, int]]:
    """Texts with the number of their label, from lines of `label TAB text`, or of `label TAB text TAB text` for pairs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return numbered(
        [(label, text.replace("\t", "\n")) for label, _, text in (line.partition("\t") for line in lines) if text]
    )


def numbered(rows: Sequence[tuple[str, str]]) -> list[tuple[str, int]]:
    """In an order of their own, labels by the alphabet."""
    names = sorted({label for label, _ in rows})
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    return [(unicodedata.normalize("NFC", rows[i][1]), names.index(rows[i][0])) for i in order]


def noisy(texts: Sequence[str], how: str) -> list[str]:
    """Texts changed as koktok's metrics change them."""
    rng = np.random.default_rng(0)
    return ["\n".join(PERTURBATIONS[how](part, rng)[0] for part in text.split("\n")) for text in texts]


class Probes:
    """Texts of the second endpoints, by name, and what is right."""

    def __init__(self, lines: Sequence[str], size: Size, classes: Mapping[str, list[tuple[str, int]]]) -> None:
        self.texts: dict[str, list[str]] = {}
        self.answers: dict[str, Any] = {}
        for kind, pairs in minimal_pairs(lines, size.pairs).items():
            self.texts[f"{kind}-right"] = [right for right, _ in pairs]
            self.texts[f"{kind}-wrong"] = [wrong for _, wrong in pairs]
        asked = prompts(lines, size.prompts)
        self.texts["prompts"] = [prompt for prompt, _ in asked]
        self.answers["prompts"] = [answer for _, answer in asked]
        for kind, given in classes.items():
            rows = given[: size.texts + size.texts // 3]
            texts = [text for text, _ in rows]
            asked_of = texts[size.texts :]
            self.answers[kind] = [label for _, label in rows]
            self.texts |= {f"{kind}-train": texts[: size.texts], f"{kind}-clean": asked_of}
            self.texts |= {f"{kind}-{how}": noisy(asked_of, how) for how in HOW[1:]}


# ── the folder ────────────────────────────────────────────────────────────────────────────────────────────────────────


def prepare(
    name: str,
    size: Size,
    work: Path,
    wanted: Sequence[str],
    given: str | None,
    classes: Mapping[str, list[tuple[str, int]]],
) -> None:
    """Write `data/`: what all tokenizers share, and a folder for each; what is there stays."""
    data = data_of(given or f"corpus:{size.corpus}")
    train, held = parts(data / "text", size.cap)
    lines = [line for part in train.values() for line in part]
    found = held_out(held, size.held)
    cut = list(pieces(train))
    place = work / "data"
    key = [name, given or size.corpus, digest_of(lines), found.test.digest, digest_of([repr(classes)])]
    told = place / "shared.json"
    if not told.exists() or json.loads(told.read_text(encoding="utf-8"))["key"] != key:
        order = np.random.default_rng(0).permutation(len(found.test))
        asked = [line for line in (found.test.lines[i] for i in order) if len(line.encode()) <= LONGEST]
        probes = Probes(asked, size, classes)
        shared = {
            "key": key,
            "lines": len(lines),
            "probes": probes.texts,
            "answers": probes.answers,
            "missing": {
                kind: f"no {how} was given"
                for kind, how in {"sentiment": "--reviews FOLDER", "topic": "--topics FILE"}.items()
                if kind not in classes
            },
            "units": found.test.blocks.tolist(),
            "domains": found.test.domains.tolist(),
            "test_bytes": [size_of(line) for line in found.test.lines],
            "dev_bytes": sum(map(size_of, found.dev)),
            "piece_bytes": [sum(map(size_of, piece)) for piece in cut],
        }
        write_file(told, json.dumps(shared, ensure_ascii=False).encode())
    shared = json.loads(told.read_text(encoding="utf-8"))
    golds = [GoldPage(read_gold(data / "gold" / gold)) for gold in GOLDS.split(",")]
    for slug in wanted:
        try:
            spec = train_peer(tokenizers()[slug], lines, size.ids, work)
            pack(slug, load(spec), cut, found, shared, golds, place / slug)
        except Exception as error:  # a row that cannot be made is one that says why
            write_file(place / slug / "failed.json", json.dumps(f"{type(error).__name__}: {error}").encode())
            print(f"{slug}: not made: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def pack(
    slug: str,
    subject: Tokenizer,
    cut: Sequence[Sequence[str]],
    held: Held,
    shared: Mapping[str, Any],
    golds: Sequence[GoldPage],
    place: Path,
) -> None:
    """The ids of all texts for one tokenizer, and what is to be known of it."""
    told = place / "about.json"
    key = [subject.digest(), *shared["key"]]
    if told.exists() and json.loads(told.read_text(encoding="utf-8"))["key"] == key:
        return
    size = int(subject.size or 0)

    def ended(texts: Sequence[str]) -> list[list[int]]:
        return [[*row, size] for row in subject.ids(list(texts))]

    def open_ended(text: str) -> list[int]:
        """Of a prompt and of a labelled text no end is known; between the two of a pair is one."""
        return [i for row in ended(text.split("\n")) for i in row][:-1]

    rows_of = iter(ended([line for piece in cut for line in piece]))
    train = Lists.of([[i for _ in piece for i in next(rows_of)] for piece in cut])
    rows = subject.encode(held.test.lines)
    arrays = {"train": train, "test": Lists.of(ended(held.test.lines)), "dev": Lists.of(ended(held.dev))}
    for probe, texts in shared["probes"].items():
        whole = probe.endswith(("-right", "-wrong"))
        arrays[probe] = Lists.of(ended(texts) if whole else [open_ended(text) for text in texts])
    written = [(subject.token_bytes(i) or b"") for i in range(size)] + [b"\n"]
    back = [b"".join(written[i] for i in row.tolist()) for row in lines_of(rows)]
    same = [
        found.removeprefix(b" ") == line.encode().removeprefix(b" ")
        for found, line in zip(back, held.test.lines, strict=True)
    ]
    scores = score(subject, held.test, gold=golds, reference=subject)
    about = {
        "key": key,
        "name": slug,
        "digest": subject.digest(),
        "vocabulary": size + 1,
        "bytes_per_token": sum(shared["piece_bytes"]) / len(train.flat),
        "unknown_bits": unknown_bits(subject, rows).tolist(),
        "lossless": float(np.mean(same)),
        "fertility": asdict(scores.values["fertility"]),
        "f1": asdict(scores.values["boundary_f1_macro"]),
        "written": [text.decode("latin-1") for text in written],
    }
    write_arrays(place / "ids.npz", arrays)
    write_file(told, json.dumps(about, ensure_ascii=False).encode())
    (place / "failed.json").unlink(missing_ok=True)
    print(f"{slug}: {len(train.flat):,} tokens, {about['bytes_per_token']:.2f} bytes each", file=sys.stderr, flush=True)
