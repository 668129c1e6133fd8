"""The audit: each check on a vocabulary made to fail it, and the verb with its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from conftest import MINI, koktok

from koktok.hangul import KS_X_1001
from koktok.model.vocab import Vocab
from koktok.protocol.tokenizer import Tokenizer
from koktok.recipe import Recipe
from koktok.report.doctor import CHECKS, SEVERITIES, diagnose, script_shown
from koktok.text.blocklist import Blocklist
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.open import load

Trained = Callable[..., Path]


def made(tmp_path: Path, pieces: Mapping[str, float]) -> Tokenizer:
    """A unigram vocabulary of ours with these pieces, and the characters that they need."""
    chars = {char: -20.0 for piece in pieces for char in piece}
    tokenizer = TrainedTokenizer(
        Recipe(), Vocab.unigram(chars | {" ": -20.0} | dict(pieces), specials=["<pad>", "</s>"])
    )
    return load(f"koktok:{tokenizer.save(tmp_path / 'made')}")


PIECES = {
    '"그는': -1.0,
    " 학교.에": -1.0,
    "ㅋㅋㅋㅋㅋㅋㅋㅋ": -1.0,
    "하하하하": -1.0,
    "https://": -1.0,
    " 010-0000-0000": -1.0,
    "홍길동77": -1.0,
    "멍청": -1.0,
    "\u200b가": -1.0,
    "\ue000": -1.0,
    "①번": -1.0,
    "1번": -1.0,
    "나라": -1.0,
    "나라말": -99.0,
}


def found(tmp_path: Path, check: str) -> list[str]:
    diagnosis = diagnose(made(tmp_path, PIECES), ["나라"], blocklist=Blocklist(["멍청"]), examples=99)
    return [piece for finding in diagnosis.findings if finding.check == check for _, piece, _ in finding.examples]


@pytest.mark.parametrize(
    ("check", "pieces"),
    [
        ("blocklist", ["멍청"]),
        ("personal", [" 010-0000-0000"]),
        ("name_number", ["홍길동77"]),
        ("glued", [" 학교.에", '"그는']),
        ("repeats", ["ㅋㅋㅋㅋㅋㅋㅋㅋ"]),
        ("address", ["https://"]),
        ("broken", ["\ue000"]),
        ("unreachable", ["나라말", "\u200b가", "홍길동77"]),
    ],
)
def test_each_check_finds_its_pieces_and_no_others(tmp_path: Path, check: str, pieces: list[str]) -> None:
    seen = found(tmp_path, check)
    if check == "unreachable":  # others are shadowed too: digits stand alone under the default pattern
        assert {"나라말", "\u200b가"} <= set(seen)
        assert "나라" not in seen
    else:
        assert sorted(seen) == sorted(pieces)


def test_groups_of_digits_that_are_missing_are_counted(tmp_path: Path) -> None:
    """Where numbers are cut in groups of three; not where longer numbers are pieces."""
    numbers = {f"{number:03}": -1.0 for number in range(1000)}
    digits = {str(digit): -1.0 for digit in range(10)}
    several = made(tmp_path, {**digits, **numbers})
    finding = next(f for f in diagnose(several).findings if f.check == "digit_groups")
    assert (finding.count, finding.total, finding.examples[0]) == (100, 1110, (-1, "00", ""))
    for name, other in {"single": digits, "free": {**digits, **numbers, "2024": -1.0}}.items():
        assert not [f for f in diagnose(made(tmp_path / name, other)).findings if f.check == "digit_groups"]


def test_paradigms_that_are_cut_unlike_are_told(tmp_path: Path) -> None:
    """먹고 먹는 먹지 in one piece and 먹|으니 in two; 경고 and 경지 are no forms of one stem, and no word begins with 에고."""
    forms = dict.fromkeys((" 먹고", " 먹는", " 먹지", " 먹", "으니", "으면", "경고", "경지", "경", "면"), -1.0)
    forms |= dict.fromkeys(("에고", "에는", "에지", "에"), -1.0)
    diagnosis = diagnose(made(tmp_path, forms), examples=9)
    examples = [finding.examples for finding in diagnosis.findings if finding.check == "paradigm"]
    assert [[example[1:] for example in found] for found in examples] == [
        [("먹고 먹는 먹지", "beside 먹|으니 먹|으면")]
    ]
    alike = diagnose(made(tmp_path / "alike", dict.fromkeys((" 먹고", " 먹는", " 먹지"), -1.0)))
    assert not [finding for finding in alike.findings if finding.check == "paradigm"]


def test_compatible_forms_and_unused_pieces(tmp_path: Path) -> None:
    assert {"①번", "1번"} & set(found(tmp_path, "compatible"))
    unused = found(tmp_path, "unused")
    assert "나라" not in unused
    assert "멍청" in unused


def test_unreachable_is_what_encoding_never_gives(trained: Trained) -> None:
    """The law behind the check: a piece that some text of ours is encoded to is never called unreachable."""
    subject = load(f"koktok:{trained()}")
    lines = [line for path in sorted(MINI.glob("*.txt")) for line in path.read_text(encoding="utf-8").splitlines()]
    used = set(subject.encode_lines(lines).ids.tolist())
    listed = [f for f in diagnose(subject, examples=10**6).findings if f.check == "unreachable"]
    assert not used & {i for finding in listed for i, _, _ in finding.examples}


def test_wordpiece_loses_syllables_and_reads_special_tokens(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "가", "##가", "나", "##나", "가나", "a"]),
        encoding="utf-8",
    )
    diagnosis = diagnose(load(f"wordpiece:{path}"))
    by_check = {finding.check: finding for finding in diagnosis.findings}
    assert by_check["unknown_syllables"].count == len(KS_X_1001) - 2
    assert {piece for _, piece, _ in by_check["special_in_text"].examples} == {"[PAD]", "[CLS]", "[SEP]", "[MASK]"}
    assert "unreachable" not in by_check  # ##가 is reached behind 나
    assert "unnormalized" not in by_check  # 가 and ##가 are one text and two roles
    assert diagnosis.gravest() == "warning"
    assert diagnosis.not_checked == ("blocklist", "unused")


def test_byte_level_vocabularies_have_broken_pieces(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Foreign
    from tokenizers import decoders, models, pre_tokenizers, trainers

    foreign = Foreign(models.BPE())
    foreign.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    foreign.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    foreign.train_from_iterator(
        (MINI / "essay.txt").read_text(encoding="utf-8").splitlines(),
        trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False),
    )
    foreign.save(str(tmp_path / "tokenizer.json"))
    diagnosis = diagnose(load(f"hf:{tmp_path / 'tokenizer.json'}"))
    partial = next(finding for finding in diagnosis.findings if finding.check == "partial")
    assert partial.count >= 128  # every byte above ASCII, and merges that stop inside a syllable
    assert partial.severity == "note"
    assert all(re.search("<0x[89A-F][0-9A-F]>", text) for _, text, _ in partial.examples)


def test_scripts_and_severities() -> None:
    assert len(KS_X_1001) == 2350
    assert script_shown("ᄒᆞᆫ") == "jamo"
    assert script_shown("ａ") == "latin"
    assert [severity for severity, _ in CHECKS.values()] == sorted(
        (severity for severity, _ in CHECKS.values()), key=SEVERITIES.index, reverse=True
    )


def test_the_verb_prints_json_and_ends_as_asked(tmp_path: Path, trained: Trained) -> None:
    spec, blocked = trained(), tmp_path / "blocked.txt"
    blocked.write_text("이\n", encoding="utf-8")
    clean = koktok("doctor", spec, "--json", "-q")
    again = koktok("doctor", spec, "--json", "-q")
    assert (clean.returncode, clean.stderr) == (0, "")
    assert clean.stdout == again.stdout
    data = json.loads(clean.stdout)
    assert (data["format"], data["version"], data["size"]) == ("koktok-doctor", 1, 2300)
    refused = koktok("doctor", spec, "--blocklist", blocked, "--text", MINI / "news.txt")
    assert refused.returncode == 1
    assert "error: " in refused.stdout
    assert "(blocked word 이)" in refused.stdout
    assert "pieces that the text never uses" in refused.stdout
    assert koktok("doctor", spec, "--blocklist", blocked, "--fail-on", "never").returncode == 0
    assert koktok("doctor", "nothing").returncode == 2
    assert koktok("doctor", spec, "--blocklist", tmp_path / "nothing").returncode == 2
