"""The command line as a user meets it: its streams, its exit code, and where it matters a process of its own."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import MINI, ROOT, exit_code_here, koktok, koktok_process, works
from rich.cells import cell_len

from koktok import Recipe, load
from koktok.cli.training_shown import LINES, print_training
from koktok.model.vocab import BYTE_CHARS
from koktok.pipeline.baseline import compare
from koktok.pipeline.train import train
from koktok.progress import table
from koktok.text.sources import Source
from koktok.tokenizer import TrainedTokenizer

Trained = Callable[..., Path]
unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
TEXT = (MINI / "essay.txt").read_text(encoding="utf-8")


def on_a_terminal(
    *words: object, env: dict[str, str] | None = None, run: Callable[[], None] | None = None
) -> tuple[int, str]:
    """Run the command with all streams but stdin on a terminal; its exit code and what the terminal was sent."""
    import pty

    master, slave = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # Linux says so when the last writer has gone
            while more := os.read(master, 65536):
                shown.append(more)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(slave, "w", encoding="utf-8", newline="") as out, pytest.MonkeyPatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        streams = {"stdin": io.StringIO(), "stdout": out, "stderr": out}
        code = exit_code_here(words, streams, {"TERM": "xterm-256color"} | (env or {}), main=run)
    reader.join()
    os.close(master)
    return code, b"".join(shown).decode(errors="replace")


def test_train_on_mini_prints_the_table_and_writes_the_folder(tmp_path: Path) -> None:
    done = works("train", "corpus:mini", "--vocab-size", "2.3k", "--out", tmp_path / "out")
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("2,300 ids each, measured on"))
    assert "held-out words" in lines[at]
    columns, *rows = [line.split("  ") for line in lines[at + 1 : at + 5]]
    assert "".join(columns).replace(" ", "") == "tokenizertokens/eojeolF1allgapsjosaeomibytes"
    assert [row[0].strip() for row in rows] == ["koktok lm", "SentencePiece Unigram", "one token per syllable"]
    assert max(map(len, lines[at : at + 5])) <= 80
    assert "silver" in done.stdout
    assert "bytes is the share" in done.stdout
    typed = [line.split() for line in lines[lines.index("next:") + 1 :]]
    assert [words[-3:] for words in typed] == [
        [str(tmp_path / "out"), "--as", "pieces"],
        ["koktok", "verify", str(tmp_path / "out")],
    ]
    works(*typed[1][1:], "--limit", 20)
    assert " distinct words with kiwi: about " in done.stderr
    assert "training SentencePiece on the same" in done.stderr
    assert done.stdout.count("|") > 50  # five sentences, segmented twice
    assert "borders" not in done.stdout
    assert "signature" not in done.stderr
    assert "peak" not in done.stderr  # that is the log's
    files = "README.md koktok.sha256 koktok.toml probe.json special_tokens_map.json tokenizer.json tokenizer.model tokenizer_config.json"
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(files.split())
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| mini | 1 | Apache-2.0" in card
    assert "kiwi:" in card
    assert "borders" not in card  # no space changes the tokens before it
    assert " words; SentencePiece was trained on the same words with its own defaults. F1 (silver)" in card
    again = koktok(
        "train", "corpus:mini", "--recipe", tmp_path / "out", "--out", tmp_path / "again", "--no-compare", "-q"
    )
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert "SentencePiece was trained" not in (tmp_path / "again" / "README.md").read_text()  # it was not
    for name in ("tokenizer.json", "koktok.toml", "tokenizer.model"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_the_closing_lines_are_those_that_the_two_cut_differently(
    mini: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is shown as koktok cuts it, and below as SentencePiece does; where both cut alike there is nothing to show."""
    recipe = Recipe().changed(vocab_size=2300, holdout=0.1)
    training = train([Source.of(*sorted(MINI.glob("*.txt")), name="mini")], recipe, measured=True)
    compared = compare(training)
    assert compared.peer is not None
    pairs = {}
    for word in sorted({word for line in mini for word in line.split()}):
        both = training.tokenizer.encode(word).pieces, compared.peer.pieces(word)
        pairs[word] = tuple("|".join(pieces).replace(" ", "▁") for pieces in both)
    alike = [word for word, (ours, theirs) in pairs.items() if ours == theirs]
    different = [word for word, (ours, theirs) in pairs.items() if ours != theirs]
    assert alike
    assert len(different) > LINES

    def shown(samples: list[str]) -> list[str]:
        reading = replace(training.reading, samples=tuple(samples))
        print_training(replace(training, reading=reading), compared, Path("out"))
        before, _, lines = capsys.readouterr().out.partition("is a space:\n\n")
        assert ("Held-out lines" in before) == bool(lines)
        return lines.partition("\n\nout: ")[0].split("\n\n") if lines else []

    assert shown([*alike[:9], *different, *alike[9:]]) == ["\n".join(pairs[word]) for word in different[:LINES]]
    assert shown(alike) == []

    ours, theirs, *others = compared.rows
    for preset, ratio, told in (("lm", 1.099, False), ("lm", 1.15, True), ("encoder", 1.15, False)):
        figures = replace(theirs.figures, tokens_per_eojeol=ours.figures.tokens_per_eojeol / ratio)
        longer = replace(compared, rows=(ours, replace(theirs, figures=figures), *others))
        of_preset = TrainedTokenizer(recipe.changed(preset=preset), training.tokenizer.vocab)
        print_training(replace(training, tokenizer=of_preset), longer, Path("out"))
        assert ("15.0% more tokens than SentencePiece Unigram on this text" in capsys.readouterr().out) == told


def test_text_in_two_scripts_is_told_by_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens per byte of each script add up to all tokens; text in one script has no such table, if it is not weighed."""
    english = "The tokenizer reads this line from left to right, and every word of it is counted once.\n"
    (tmp_path / "a.txt").write_text(TEXT + english * 60, encoding="utf-8")
    for text, weight, told in (
        (tmp_path / "a.txt", 1, True),
        (MINI / "essay.txt", 1, False),
        (MINI / "essay.txt", 2, True),
    ):
        recipe = Recipe().changed(train={"vocab_size": 1000, "required": "none"}, segment={"segmenter": "whitespace"})
        training = train([Source.of(text, weight=weight)], recipe, measured=True)
        compared = compare(training, peer=False)
        print_training(training, compared, Path("out"))
        assert ("by script" in capsys.readouterr().out) == told
        silver = compared.silver
        for row in compared.rows:
            tokens = sum(silver.bytes_by_script[script] * value for script, value in row.figures.per_byte.items())
            assert tokens == pytest.approx(row.figures.tokens_per_eojeol * silver.eojeols)


def test_the_user_dictionary_is_in_the_recipe(tmp_path: Path) -> None:
    """A recipe says all that changes the result: the dictionary is asked for, and no other one is taken."""
    (tmp_path / "words.tsv").write_text("밝은세상\tNNP\t0\n", encoding="utf-8")
    (tmp_path / "others.tsv").write_text("밝은\tNNP\t0\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("밝은세상에서 산다.\n밝은세상은 넓다.\n" * 20, encoding="utf-8")

    def train(out: str, *words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        fixed = ("--vocab-size", 380, "--holdout", 0, "--no-compare", "-q")
        return koktok("train", tmp_path / "a.txt", "--out", tmp_path / out, *fixed, *words, cwd=cwd)

    taught = train("taught", "--user-dictionary", tmp_path / "words.tsv")
    assert taught.returncode == 0, taught.stderr
    segment = Recipe.load(tmp_path / "taught").segment
    assert segment.user_dictionary == "words.tsv"
    assert segment.user_dictionary_sha256 == hashlib.sha256((tmp_path / "words.tsv").read_bytes()).hexdigest()
    recipe = ("--recipe", tmp_path / "taught")
    missing = train("other", *recipe)
    assert missing.returncode == 2
    assert "needs the user dictionary `words.tsv` of SHA-256" in missing.stderr
    assert "hint: --user-dictionary FILE" in missing.stderr
    another = train("other", *recipe, "--user-dictionary", tmp_path / "others.tsv")
    assert another.returncode == 2
    assert "others.tsv` is a different file" in another.stderr
    assert not (tmp_path / "other").exists()
    (tmp_path / "words.tsv").rename(tmp_path / "renamed.tsv")
    assert train("again", *recipe, "--user-dictionary", tmp_path / "renamed.tsv").returncode == 0
    (tmp_path / "renamed.tsv").rename(tmp_path / "words.tsv")
    assert train("here", *recipe, cwd=tmp_path).returncode == 0
    for name in ("tokenizer.json", "koktok.toml"):
        same = (tmp_path / "taught" / name).read_bytes()
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "here" / name).read_bytes() == same
    assert train("without", *recipe, "--user-dictionary", "").returncode == 0
    assert Recipe.load(tmp_path / "without").segment.user_dictionary == ""


def test_encode_and_decode_are_inverse_on_lines(trained: Trained) -> None:
    ids = works("encode", trained(), stdin=TEXT)
    assert koktok("decode", trained(), stdin=ids.stdout).stdout == TEXT
    pieces = koktok("encode", trained(), "--as", "pieces", stdin="나는 집에\n").stdout
    assert pieces.replace(" ", "").replace("▁", " ") == " 나는 집에\n"  # a space before the first word, too
    row = json.loads(koktok("encode", trained(), "--as", "json", stdin="나는 집에\n").stdout)
    assert row["ids"] == load(trained()).encode("나는 집에").ids
    assert row["offsets"][-1][1] == 5


def test_pieces_of_bytes_are_shown_as_text_where_they_make_characters(trained: Trained) -> None:
    folder = trained(train={"model": "bpe-bytes"})
    shown = koktok("encode", folder, "--as", "pieces", stdin="나는 집에 뷁.\n").stdout
    assert re.sub("<0x(..)>", lambda byte: byte[1], shown.replace(" ", "")) == "나는▁집에▁EBB781.\n"
    row = json.loads(koktok("encode", folder, "--as", "json", stdin="나는\n").stdout)
    assert {*"".join(row["pieces"])} <= {*BYTE_CHARS}  # data is as the vocabulary spells it


def test_samples_are_seeded_and_decode_to_the_text(trained: Trained) -> None:
    bpe = trained(train={"model": "bpe"})
    for folder, words in ((trained(), ("--sample-alpha", 0.2)), (bpe, ("--dropout", 0.3))):
        one, two = (koktok("encode", folder, *words, "--seed", 5, stdin=TEXT).stdout for _ in range(2))
        assert one == two != koktok("encode", folder, *words, "--seed", 6, stdin=TEXT).stdout
        assert one != koktok("encode", folder, stdin=TEXT).stdout
        assert koktok("decode", folder, stdin=one).stdout == TEXT


def test_a_model_for_koktok_alone_and_its_log(tmp_path: Path) -> None:
    out, log = tmp_path / "out", tmp_path / "log.json"
    fixed = "corpus:mini --segmenter whitespace --vocab-size 2300 --no-compare --force"
    words = ("train", *fixed.split(), "--out", out)
    works(*words, "--model", "ngram", "--log", log)
    assert json.loads(log.read_text())["pieces_by_length"]["1"] > 0
    files = "README.md koktok.sha256 koktok.toml probe.json vocab.json"
    assert {path.name for path in out.iterdir()} == {*files.split()}
    card = (out / "README.md").read_text()
    assert "Only koktok loads this folder" in card
    assert "AutoTokenizer" not in card
    told = json.loads(log.read_text())
    assert told["digest"] == load(out).vocab.digest()
    assert told["words_analysed"] > 1000
    assert (told["words_from_cache"], told["peak_bytes_of_analysers"]) == (0, 0)
    assert 50e6 < told["peak_bytes"] < 50e9
    done = koktok(*words, "--model", "bpe-bytes", "--log", "json", "-q")
    assert "AutoTokenizer" in (out / "README.md").read_text()
    assert [stage["stage"] for stage in json.loads(done.stderr.splitlines()[-1])["stages"]] == ["eojeol"]


def test_normalize_and_its_report() -> None:
    assert koktok("normalize", stdin="한글\u200b ＡＢ ㅋㅋㅋㅋ\n").stdout == "한글 ＡＢ ㅋㅋㅋㅋ\n"
    folded = koktok("normalize", "--fullwidth", "--repeats", "2", "--no-zero-width", stdin="ＡＢ\u200bㅋㅋㅋㅋ\n")
    assert folded.stdout == "AB\u200bㅋㅋ\n"
    report = koktok("normalize", "--report", stdin="\uf90a\u200b\n").stdout  # a CJK compatibility ideograph of 金
    assert any(line.startswith("nfc\t") and "金" in line for line in report.splitlines())
    assert any(line.startswith("zero_width\t") for line in report.splitlines())
    assert "2 characters in private use" in koktok("normalize", "--report", stdin="\ue5d9 가\ue0bc\n").stderr


def test_segment_shows_cuts_and_tsv() -> None:
    assert koktok("segment", stdin="학교에서는 갔다.\n").stdout == "학교|에서|는|▁갔|다|.\n"
    rows = koktok("segment", "--tsv", "--policy", "josa", stdin="학교에서는 갔다.\n").stdout.splitlines()
    assert rows == ["학교에서는\t학교|에서는\tjosa", "갔다.\t갔다|.\tpunctuation"]


def test_corpus_verbs() -> None:
    listed = koktok("corpus", "list").stdout
    assert {line.split("\t")[0] for line in listed.splitlines()} >= {"demo", "mini", "open-ko"}
    assert "korean-rnd-regs-mcp" in koktok("corpus", "show", "demo").stdout
    folder = koktok("corpus", "fetch", "mini").stdout.strip()
    assert Path(folder).is_dir()


def test_dry_run_trains_nothing(tmp_path: Path) -> None:
    done = works("train", "corpus:mini", "--out", tmp_path / "out", "--dry-run")
    assert "Nothing was trained" in done.stdout
    assert not (tmp_path / "out").exists()


BAD = [
    ("train no-such.txt", 1, "there is no file or folder `no-such.txt`"),
    ("train {empty}", 1, "is empty"),
    ("train {binary}", 1, "binary"),
    ("train {folder}", 1, "holds no file that koktok reads"),
    ("train {jsonl} --field body", 1, "body"),
    ("train {text} --vocab-size many", 2, "expected a number of ids, such as 32000 or 32k, got `many`"),
    ("train {text} --vocab-size 300", 1, "--vocab-size"),
    ("train {text} --vocab-size 90000", 1, "too few candidates for 90,000 ids\nhint: --vocab-size 1392, or more"),
    ("train {text} --model lstm", 2, "`train.model` is 'lstm'"),
    ("train {text} --model word --backend spm", 2, "--backend koktok"),
    ("train {text} --log {folder}/none/log", 1, "--log json"),
    ("count {text} --engine ray -o {folder}/c.parquet", 2, "'ray' is not one of 'polars', 'spark'"),
    ("count {text} --holdout-by lines -o {folder}/c.parquet", 2, "'lines' is not one of 'blocks', 'documents'"),
    ("encode {tokenizer} {text} --dropout 0.1", 2, "alpha=0.1"),
    ("encode {tokenizer} {text} --documents files", 2, "--documents, --bos"),
    ("encode {tokenizer} {text} --format npy --as json -o {folder}/e", 2, "`--as` is for lines"),
    ("train {text} --sizes 100", 2, "hint: --vocab-size 100, or --frontier"),
    ("doctor {tokenizer} --field a", 2, "`--field` is for the records of --text"),
    (
        "instances {tokenizer} {text} -o {folder}/i --kind packed --rate 0.3",
        2,
        "`--rate` has no effect with `--kind packed`",
    ),
    ("encode {tokenizer} {text} --seed 1", 2, "--sample-alpha 0.1"),
    ("train {text} --policy jossa", 2, "expected a boundary policy"),
    ("train {text} --recipe {toml}", 2, "unknown key `train.vocab_sise`"),
    ("train corpus:demmo", 1, "demo"),
    ("train {text} --vocabsize 3", 2, "vocabsize"),
    ("train {text} --weight x=2", 2, "expected `--weight` with NAME=W"),
    ("train {text} --weight text=0", 2, "a number above 0"),
    ("train {text} --out {text}", 2, "expected a folder, got the file"),
    ("train {text} --out {folder}", 2, "holds no koktok tokenizer"),
    ("train {text} --user-dictionary none.tsv", 1, "none.tsv` cannot be read"),
    ("encode {folder}", 1, "not a readable koktok tokenizer"),
    ("decode {tokenizer} {text}", 1, "expected ids separated by spaces, got `"),
    ("decode {tokenizer} {text}", 1, "` in line 1\n"),
    ("normalize --fullwith {text}", 2, "--fullwidth"),
    ("normalize --repeats x {text}", 2, "valid integer"),
    ("normalize --repeats 1001 {text}", 2, "expected a whole number of 0 to 1000"),
    ("train {text} --reserve-script latin:0.3", 2, "expected `--reserve-script` with SCRIPT=SHARE with"),
    ("train {text} --reserve-script klingon=0.3", 2, "one of hangul, latin, other"),
    ("train {text} --weight text:2", 2, "expected `--weight` with NAME=W"),
    ("train {text} --weight text=1e300", 2, "at most 1,000,000"),
    ("import {text} --out {folder}/x --special <x>:5", 2, "expected `--special` with TOKEN=ID, got `<x>:5`"),
    ("train {text} --lam inf", 2, "`train.lam` is inf: input should be a finite number"),
    ("train {text} --frontier --sizes 2300;2600", 2, "expected a number of ids"),
    ("train {text} --frontier --model bpe", 2, "expected --model unigram for a curve, got bpe"),
    ("train {text} --frontier --holdout 0", 2, "nothing was held out"),
    ("train {text} --frontier --sizes 8000,99999999", 2, "`train.vocab_size` is 99999999"),
    ("train {text} --holdout nan", 2, "`holdout` is nan"),
    ("count {text} -o {folder}/c.parquet --holdout nan", 2, "share of the lines"),
    ("train {text} --specials <unk>,<0x00>", 2, "<0x00> is spelled like the byte piece"),
    ("train {text} --threads 0", 2, "--threads"),
    ("train {text} --recipe {words}", 2, "needs the user dictionary `no-such.tsv`"),
    ("train {text} --segmenter whitespace --user-dictionary {text}", 2, "a user dictionary works with Kiwi only"),
    ("verify {tokenizer} none.txt", 1, "there is no file or folder `none.txt`"),
    ("export {tokenizer} --to hf --out {tokenizer}", 2, "is the tokenizer itself"),
    ("export {tokenizer} --to hf --out {folder}", 2, "is not empty"),
    ("export {tokenizer} --to tiktoken --out {mine}", 2, "which would be lost"),
    ("export {tokenizer} --to spm --style bert --out {folder}/x", 2, "`--style` does nothing with `--to spm`"),
    ("export {tokenizer} --to tiktoken --name ../x --out {folder}/x", 2, "`--name ../x` is not a name of a file"),
    ("export {tokenizer} --to hf --name x --out {folder}/x", 2, "`--name` does nothing with `--to hf`"),
    (
        "export {tokenizer} --to gguf --user-defined <s> --out {folder}/x",
        2,
        "`--user-defined` does nothing with `--to gguf`",
    ),
    ("export {tokenizer} --to spm --user-defined <x> --out {folder}/x", 1, "'<x>' is not a special token"),
    ("export {tokenizer} --to hf --style no --out {folder}/x", 2, "style"),
    ("export {tokenizer} --to no --out {folder}/x", 2, "Invalid value"),
    ("import {tokenizer}/tokenizer.json --out {folder}", 2, "is not empty"),
    ("import none.model --out {folder}/x", 2, "there is no file, folder or tokenizer"),
    ("import {vocab} --pattern gpt2 --out {folder}/x", 2, "a pattern and special tokens are for tiktoken ranks"),
    ("import {cut} --out {folder}/x", 1, "is not JSON"),
]


@pytest.mark.parametrize(("command", "code", "message"), BAD)
def test_bad_input_has_a_message_and_an_exit_code(
    command: str, code: int, message: str, tmp_path: Path, trained: Trained
) -> None:
    for name in ("folder", "mine"):
        (tmp_path / name).mkdir()
    files = {
        "empty": (tmp_path / "empty.txt", b""),
        "binary": (tmp_path / "image.txt", bytes(range(256)) * 40),
        "jsonl": (tmp_path / "a.jsonl", '{"text": "나는 집에"}\n'.encode()),
        "text": (tmp_path / "text.txt", TEXT.encode()),
        "toml": (tmp_path / "a.toml", b"[recipe.train]\nvocab_sise = 3\n"),
        "words": (tmp_path / "words.toml", b'[recipe.segment]\nuser_dictionary = "no-such.tsv"\n'),
        "other": (tmp_path / "folder" / "thesis.doc", b"mine"),
        "vocab": (tmp_path / "vocab.txt", "[UNK]\n학교\n".encode()),
        "cut": (tmp_path / "cut.json", b'{"model": {"vocab'),
        "recipe": (tmp_path / "mine" / "koktok.toml", b"[recipe]\n"),
    }
    for path, content in files.values():
        path.write_bytes(content)
    places = {name: str(path) for name, (path, _) in files.items()}
    places |= {"folder": str(tmp_path / "folder"), "mine": str(tmp_path / "mine"), "tokenizer": str(trained())}
    before = sorted(tmp_path.rglob("*"))
    words = [word.format(**places) for word in command.split()]
    if words[0] == "train" and "--out" not in words:
        words += ["--out", str(tmp_path / "out")]
    done = koktok(*words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


KILLED = """
import os, signal
from koktok.cli import main
from koktok.segment.cache import CachedSegmenter
keep = CachedSegmenter._keep
CachedSegmenter._keep = lambda *what: (keep(*what), os.kill(os.getpid(), signal.SIGKILL))
main()
"""


def test_a_killed_training_leaves_nothing_and_resumes(tmp_path: Path) -> None:
    """The cache of analyses outlives a kill; the folder appears whole or not at all."""
    words = ["train", str(MINI / "essay.txt"), *f"--vocab-size 1200 --no-compare --out {tmp_path}/out".split()]
    cache = {"KOKTOK_CACHE": str(tmp_path / "cache")}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *words], env=os.environ | cache, cwd=ROOT, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    done = koktok(*words, "--log", "json", env=cache)
    assert (done.returncode, '"words_analysed": 0,' in done.stderr) == (0, True), done.stderr
    assert (tmp_path / "out" / "tokenizer.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "out"]


def test_undecodable_lines_are_warned_about_and_line_numbers_stay(trained: Trained, tmp_path: Path) -> None:
    good = b"\xeb\x82\x98\xeb\x8a\x94\n"
    text = good * 2 + b"\xff\n" + good * 50
    told = "warning: 1 line without readable text read as empty, so that line numbers stay: -:3\n"
    for words in (("encode", trained()), ("normalize",)):
        done = koktok(*words, stdin=text)
        assert (done.returncode, done.stderr) == (0, told)
        lines = done.stdout.split("\n")
        assert [i for i, line in enumerate(lines, start=1) if not line] == [3, 54], words
    rows = koktok("encode", trained(), "--as", "json", stdin=text).stdout.splitlines()
    assert json.loads(rows[2]) == {"record": 3, "ids": [], "pieces": [], "offsets": []}
    ids = koktok("encode", trained(), stdin=text).stdout
    broken = koktok("decode", trained(), stdin=ids.encode().replace(b"\n\n", b"\n\xff\n"))
    assert (broken.stdout, broken.stderr) == ("나는\n" * 2 + "\n" + "나는\n" * 50, told)
    whole = koktok("encode", trained(), "--format", "npy", "--out", tmp_path / "out", stdin=text)
    assert "52 documents, 1 file in" in whole.stderr  # token files have no lines: documents are left out
    assert "warning: 1 line without readable text left out: -:3\n" in whole.stderr


def test_a_record_is_one_line_of_output(trained: Trained, tmp_path: Path) -> None:
    """Whatever line breaks it has; what is joined by line does not shift."""
    texts = ["나는 집에\n간다.", "", "\n", "너는\r\n\r\n온다.\n", None, "끝"]
    write = tmp_path / "a.jsonl"
    write.write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts), encoding="utf-8")
    tokenizer = load(trained())
    wanted = [tokenizer.encode(text or "").ids for text in texts]
    ids = works("encode", trained(), write).stdout
    assert [[*map(int, line.split())] for line in ids.split("\n")[:-1]] == wanted
    assert len(works("encode", trained(), write, "--as", "pieces").stdout.split("\n")) == len(texts) + 1
    rows = [json.loads(line) for line in works("encode", trained(), write, "--as", "json").stdout.splitlines()]
    assert [(row["record"], row["ids"]) for row in rows] == [*enumerate(wanted, 1)]
    done = works("normalize", write)
    assert done.stdout.split("\n")[:4] == ["나는 집에\\n간다.", "", "\\n", "너는\\r\\n\\r\\n온다.\\n"]
    assert done.stderr == f"warning: 1 line without readable text read as empty, so that line numbers stay: {write}:5\n"
    cut = works("segment", write, "--segmenter", "whitespace").stdout.split("\n")
    assert cut[:4] == ["나는|▁집에|\\n|간다.", "", "\\n", "너는|\\r\\n\\r\\n|온다.|\\n"]
    labels = [json.loads(line) for line in works("segment", write, "--labels", "characters").stdout.splitlines()]
    assert [row["text"] for row in labels] == [text or "" for text in texts]
    assert all(len(row["labels"]) == len(row["text"]) for row in labels)


def test_a_field_that_has_no_effect_is_an_error(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("나는 집에 간다.\n", encoding="utf-8")
    for words in (("train", tmp_path / "a.txt"), ("encode", trained(), tmp_path / "a.txt"),
                  ("count", "corpus:mini", "-o", tmp_path / "c.parquet"), ("report", trained(), "--text", tmp_path, "-o", tmp_path / "r"),
    ):  # fmt: skip
        done = koktok(*words, "--field", "text")
        assert (done.returncode, "has no effect" in done.stderr) == (1, True), done.stderr


def test_a_folder_is_trained_on_again_as_before(tmp_path: Path) -> None:
    """What the first run wrote into it is no text of the second; that is said, and `.` has a name."""
    (tmp_path / "a.txt").write_text("나는 집에 간다.\n너는 집에 온다.\n" * 20, encoding="utf-8")
    (tmp_path / "b.hwp").write_bytes(b"x")
    command = ["train", ".", "--segmenter", "whitespace", "--vocab-size", 380, "--no-compare", "--out", "my-tok"]
    first = works(*command, cwd=tmp_path)
    assert "warning: not read: of `.`: 1 .hwp" in first.stderr
    files = {file.name: file.read_bytes() for file in (tmp_path / "my-tok").iterdir()}
    again = works(*command, cwd=tmp_path)
    assert "warning: not read: `./my-tok`, which koktok wrote" in again.stderr
    assert {file.name: file.read_bytes() for file in (tmp_path / "my-tok").iterdir()} == files


def test_what_is_written_is_not_read(tmp_path: Path) -> None:
    """The output of a shell may lie in the folder that is read; it would grow for ever."""
    (tmp_path / "a.txt").write_text("나는 집에\n", encoding="utf-8")
    for words, code, told in (
        (["normalize", "."], 0, "warning: not read: `out.txt`, where the output goes"),
        (["normalize", "*.txt"], 0, ""),
        (["normalize", "out.txt"], 1, "the output goes to `out.txt`, which is to be read"),
    ):
        with (tmp_path / "out.txt").open("w") as out:
            command = [sys.executable, "-m", "koktok", *words]
            done = subprocess.run(command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60)
        assert (done.returncode, told in done.stderr) == (code, True), done.stderr
        assert (tmp_path / "out.txt").read_text(encoding="utf-8") == ("" if code else "나는 집에\n")


def test_a_folder_with_its_own_count_is_read_again(tmp_path: Path, trained: Trained) -> None:
    """The count is no text; a folder of counts alone is what is trained on."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("나는 집에\n", encoding="utf-8")
    works("count", "d", "-o", "d/counts.parquet", cwd=tmp_path)
    done = works("encode", trained(), "d", "--as", "pieces", cwd=tmp_path)
    assert "warning: not read: 1 count files of `d`, which koktok wrote" in done.stderr
    assert len(done.stdout.splitlines()) == 1
    works("count", "d", "-o", "o.parquet", cwd=tmp_path)
    assert (tmp_path / "o.parquet").read_bytes() == (tmp_path / "d" / "counts.parquet").read_bytes()
    (tmp_path / "d" / "a.txt").unlink()
    works("count", "d", "-o", "p.parquet", cwd=tmp_path)


def test_words_of_a_dictionary_that_are_cut_before_are_named(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("코로나19\tNNP\t0\n밝은세상\tNNP\t0\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("밝은세상에서 산다.\n" * 40, encoding="utf-8")
    command = ("train", "a.txt", "--vocab-size", 380, "--holdout", 0, "--no-compare", "--user-dictionary", "words.tsv")
    for digits, told in (("single", True), ("free", False)):
        done = works(*command, "--digits", digits, "--out", digits, cwd=tmp_path)
        assert ("that the pattern cuts apart: 코로나19 (" in done.stderr) == told


def test_nothing_gives_nothing(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    for verb in (("encode", trained()), ("decode", trained()), ("normalize",), ("segment",)):
        for words in (verb, (*verb, "-"), (*verb, os.devnull), (*verb, tmp_path / "empty.txt", os.devnull)):
            done = koktok(*words)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words
    for unit in ("records", "files"):
        out = tmp_path / unit
        done = koktok("encode", trained(), tmp_path / "empty.txt", "--format", "npy", "--documents", unit, "--out", out)
        assert (done.returncode, json.loads((out / "manifest.json").read_text())["tokens"]) == (0, 0), done.stderr
    works("count", tmp_path / "empty.txt", "-o", tmp_path / "c.parquet")
    for words in (("verify", trained(), "-"), ("doctor", trained(), "--text", "-")):  # nothing proves nothing
        assert "is empty" in koktok(*words).stderr
    assert koktok("encode", trained(), stdin=b"\xff\n").returncode == 1


def test_a_reader_that_leaves_is_no_error(trained: Trained) -> None:
    command = f"yes 나는 집에 | {sys.executable} -m koktok encode {trained()} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, cwd=ROOT)
    assert done.stdout.count(b"\n") == 1
    assert b"Traceback" not in done.stderr


def test_help_and_version() -> None:
    assert "Korean tokenizers" in koktok("--help").stdout
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert koktok("--version").stdout == f"{project['version']}\n"
    assert koktok().returncode == 2


def test_frontier_draws_the_curve_and_writes_it(tmp_path: Path) -> None:
    done = works("train", "corpus:mini", "--frontier", "--sizes", "2300", "--out", tmp_path / "out", "-q")
    assert done.stdout.count("| 2,300 |") == 8  # and SentencePiece
    assert {"frontier.md", "frontier.json", "koktok.toml"} <= {path.name for path in (tmp_path / "out").iterdir()}
    rows = json.loads((tmp_path / "out" / "frontier.json").read_text())["rows"]
    assert (tmp_path / "out" / "frontier.md").read_text() in done.stdout
    assert {row["name"] for row in rows} >= {"short", "lm", "encoder", "aligned"}
    other = koktok("train", "corpus:mini", "--frontier", "--sizes", "2200", "--out", tmp_path / "out", "-q")
    assert other.returncode == 2
    assert "already exists" in other.stderr


@unix
def test_on_a_terminal_the_curve_fits_80_columns(tmp_path: Path) -> None:
    words = ("train", "corpus:mini", "--frontier", "--sizes", "2200,2300", "-q", "--out", tmp_path / "out")
    code, text = on_a_terminal(*words, env={"COLUMNS": "80"})
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).split("\r\n")
    assert code == 0, text
    assert max(map(cell_len, lines)) <= 80
    assert next(line for line in lines if line.startswith("point")).split()[:2] == ["point", "ids"]
    assert "--preset aligned" in text


@unix
def test_on_a_terminal_there_are_bars_and_colours(tmp_path: Path) -> None:
    words = ("train", MINI, "--vocab-size", 2300, "--no-compare", "--out", tmp_path / "out")
    code, text = on_a_terminal(*words)
    assert code == 0, text
    assert "read" in text
    assert "100%" in text
    assert "\x1b[" in text  # colours
    assert "▁" in text


VERBS = ["train", "encode", "decode", "normalize", "segment", "export", "import", "count", "report", "diff", "doctor"]


@pytest.mark.parametrize("verb", [*VERBS, "verify", "corpus fetch"])
def test_every_verb_has_the_short_options(verb: str) -> None:
    done = works(*verb.split(), "-h")
    assert "--quiet" in done.stdout
    assert "-q" in done.stdout
    assert ("--out " in done.stdout) == ("-o, --out" in done.stdout or "--out  -o" in done.stdout)


EVIL = "학교에 \x1b]0;title\x07갔다 \x1b[2J\x9b2J\u202e나는\r\x08 [/b] [bold]집에"
"""What a terminal would obey: a title, a cleared screen, another direction; and what the library that prints would."""


@unix
def test_a_terminal_does_not_obey_the_text(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_text(EVIL + "\n", encoding="utf-8")
    other = trained(train={"model": "syllable", "vocab_size": 1800})
    ids = " ".join(map(str, load(trained()).encode(EVIL).ids))
    (tmp_path / "ids.txt").write_text(ids + "\n")
    for words in (
        ("segment", tmp_path / "evil.txt"),
        ("segment", "--tsv", tmp_path / "evil.txt"),
        ("diff", trained(), other, "--text", tmp_path / "evil.txt", "-q"),
        ("diff", trained(), other, "--text", tmp_path / "evil.txt", "-q", "--json"),
        ("encode", trained(), tmp_path / "evil.txt", "--as", "pieces"),
        ("encode", trained(), tmp_path / "evil.txt", "--as", "json"),
        ("decode", trained(), tmp_path / "ids.txt"),
        ("normalize", tmp_path / "evil.txt"),
    ):
        code, text = on_a_terminal(*words)
        assert code == (words[0] == "diff"), text
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)  # our own colours
        assert not {"\x1b", "\x07", "\x08", "\x9b", "\u202e"} & set(plain), words
        assert "\\u001b" in plain or "<0x1B>" in plain, words


def test_into_a_pipe_data_goes_as_it_is(trained: Trained) -> None:
    evil = EVIL.replace("\u202e", "")  # the normalizer takes it out
    assert koktok("segment", stdin=f"{evil}\n").stdout.replace("|", "").replace("▁", " ") == f"{evil}\n"
    assert koktok("normalize", stdin=f"{evil}\n").stdout == f"{evil}\n"
    ids = koktok("encode", trained(), stdin=f"{evil}\n").stdout
    assert koktok("decode", trained(), stdin=ids).stdout == f"{evil}\n"


@unix
def test_cuts_are_characters_and_colours_come_on_top(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("학교에서는 갔다.\n", encoding="utf-8")
    coloured = on_a_terminal("segment", tmp_path / "a.txt")[1]
    plain = on_a_terminal("segment", tmp_path / "a.txt", env={"NO_COLOR": "1"})[1]
    assert "\x1b[" in coloured
    assert "\x1b[3" not in plain
    assert "\x1b[4" not in plain
    for text in (coloured, plain):
        assert re.sub(r"\x1b\[[0-9;]*m", "", text) == "학교|에서|는|▁갔|다|.\r\n"


@unix
@pytest.mark.parametrize("columns", [80, 60, 40])
def test_no_heading_and_no_cell_of_a_table_is_cut_off(columns: int) -> None:
    heads = ["tokenizer", "ids", "tokens/eojeol", "mean F1 of golds", "unknown eojeols", "byte fallback", "options"]
    cells = [
        "a-name-that-is-long-이름이-깁니다",
        "1,000,000",
        "1.234",
        "0.567",
        "0.890",
        "0.123",
        "--preset lm --mu 0.66",
    ]
    code, text = on_a_terminal(run=lambda: table("t", heads, [cells]), env={"COLUMNS": str(columns)})
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\n")
    assert code == 0, text
    assert max(map(cell_len, lines)) <= columns
    assert "…" not in text
    for words in (" ".join(heads).replace("/", "/ ").split(), cells[1:6]):
        assert all(word in " ".join(lines) for word in words)
    shown = "".join("".join(lines).split())
    assert all(syllable in shown for syllable in cells[0])


def test_into_a_file_a_table_is_as_wide_as_it_wants_to_be(tmp_path: Path) -> None:
    script = "from koktok.progress import table; table('t', ['name', 'what it is'], [['n' * 150, 'v' * 150]])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[2].split() == ["n" * 150, "v" * 150]


def test_the_list_of_metrics_fits_80_columns() -> None:
    lines = koktok("metrics").stdout.splitlines()
    assert lines[0].split() == ["M1", "fertility", "lower", "tokens/eojeol", "text"]
    assert lines[1].strip() == "Tokens per eojeol"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("encoding", ["ascii", "cp949"])
def test_an_encoding_that_was_asked_for_lacks_characters(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "koktok", "normalize"],
        input="학교 ᄒᆞᆫ글 😀\n".encode(),
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        cwd=ROOT,
    )
    lacking = "\\u1112\\u119e\\u11ab" if encoding == "cp949" else "\\ud559\\uad50 \\u1112\\u119e\\u11ab\\uae00"
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.decode(encoding)
        == ("학교 " * (encoding == "cp949") + lacking + "글" * (encoding == "cp949")) + " \\U0001f600\n"
    )
    assert done.stderr.decode().count("note: standard output is in") == 1
    assert "PYTHONIOENCODING=utf-8" in done.stderr.decode()


def test_into_a_pipe_it_is_utf8_whatever_the_system_has(trained: Trained) -> None:
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    probe = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.stdout.encoding)"], env=os.environ | locale, capture_output=True
    )
    if b"utf" in probe.stdout.lower():
        pytest.skip("this Python has no other encoding")
    done = koktok_process("segment", stdin="학교에 😀\n", env=locale)
    assert (done.returncode, done.stdout) == (0, "학교|에|▁😀\n")
    done = koktok_process("diff", trained(), trained(), "--text", MINI / "essay.txt", "-q", env=locale)
    assert done.returncode == 0, done.stderr
