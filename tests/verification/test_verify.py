"""`verify`: it passes what is right, and each way to break a folder is seen by the check that is there for it."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import MINI, MODELS, WITHOUT_HF, koktok, works
from sentencepiece import SentencePieceProcessor

from koktok import Recipe, load
from koktok.errors import UsageError
from koktok.model.vocab import SCORE_STEP, Vocab
from koktok.runtimes.huggingface import tokenizer_json
from koktok.runtimes.huggingface.adapter import HuggingFace
from koktok.runtimes.sentencepiece.message import NORMAL, ModelProto
from koktok.runtimes.tiktoken import ranks as tiktoken
from koktok.tokenizer import TrainedTokenizer
from koktok.verification import Verification, formats, verify
from koktok.verification.finding import CheckResult

Trained = Callable[..., Path]

RECIPES: dict[str, dict[str, Any]] = {
    **{name: MODELS[name] for name in ("unigram", "bpe", "bpe-bytes", "wordpiece", "morpheme", "jamo model")},
    "fallback": {"jamo": "fallback"},
    "bert": {"train": {"model": "wordpiece", "vocab_size": 4000}, "special": {"style": "bert"}},
    "llama": {"train": {"model": "bpe-bytes"}, "special": {"style": "llama", "chat_template": "llama-3"}},
    "folds": {"normalize": {"fullwidth": True, "spaces": True, "quotes": True, "repeats": 2, "lone_jamo": True}},
}


@pytest.fixture(autouse=True)
def _quiet_libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """transformers opens files and warns as it likes; these are not its tests."""
    monkeypatch.setenv("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    return None


@pytest.fixture
def folder(trained: Trained, tmp_path: Path) -> Callable[..., Path]:
    """A copy of a trained folder, to be broken."""

    def copy(model: str = "unigram") -> Path:
        return Path(shutil.copytree(trained(**RECIPES[model]), tmp_path / model.replace(" ", "-")))

    return copy


def failed(report: Verification) -> set[str]:
    return {finding.check for finding in report.findings if finding.outcome == "fail"}


def of(report: Verification, check: str) -> CheckResult:
    return next(finding for finding in report.findings if finding.check == check)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RECIPES)
def test_trained_folders_pass(name: str, trained: Trained, mini: list[str]) -> None:
    report = verify(trained(**RECIPES[name]), mini[::40])
    assert report.passed, [finding for finding in report.findings if finding.outcome == "fail"]
    assert report.lines == len(set(mini[::40]))
    checks = {finding.check for finding in report.findings if finding.outcome == "pass"}
    assert checks >= {"loads", "round trip", "offsets", "special tokens"}
    if name in WITHOUT_HF:
        assert "longest match" in of(report, "ids: tokenizer.json").message
        assert of(report, "ids: tokenizer.json").outcome == "not run"
        return
    assert checks >= {f"{what}: tokenizer.json" for what in ("ids", "decode", "pieces", "special tokens")}
    assert ("ids: tokenizer.model" in checks) == (trained(**RECIPES[name]) / "tokenizer.model").exists()
    assert all(finding.checked > 50 for finding in report.findings if finding.check.startswith(("ids", "pieces")))


def edit_json(change: Callable[[dict[str, Any]], object], name: str = "tokenizer.json") -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content, ensure_ascii=False))

    return edit


def edit_proto(change: Callable[[Any], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        model = ModelProto((folder / "tokenizer.model").read_bytes())
        change(model)
        (folder / "tokenizer.model").write_bytes(model.serialized())

    return edit


def without_guard(content: dict[str, Any]) -> None:
    pattern = next(node["pattern"] for node in content["normalizer"]["normalizers"] if "PAD" in str(node))
    pattern["Regex"] = pattern["Regex"].split(r"|(?<=[\s\S])")[0]


def one_space(spec: Any) -> None:
    spec.remove_extra_whitespaces = True


SPM_IDS, SPM_PIECES = {"ids: tokenizer.model"}, {"pieces: tokenizer.model"}
NFKC = {"type": "NFKC"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}

BROKEN: list[tuple[str, str, Callable[[Path], object], set[str]]] = [
    # what, model, how to break it, the checks that must see it
    ("a score of tokenizer.json", "unigram", edit_json(lambda c: c["model"]["vocab"][300].__setitem__(1, -1.0)), {"loads"}),
    ("two pieces of tokenizer.json", "bpe", edit_json(lambda c: c["model"]["vocab"].update({"가": 300, "나": 301})), {"loads"}),
    ("a byte piece gone", "unigram", edit_json(lambda c: c["model"]["vocab"].pop(10)), {"loads"}),
    ("a torn file", "unigram", lambda d: os.truncate(d / "tokenizer.json", 5000), {"loads"}),
    ("no koktok.toml", "unigram", lambda d: (d / "koktok.toml").unlink(), {"loads"}),
    ("merges gone", "bpe", edit_json(lambda c: c["model"]["merges"].clear()), {"loads"}),
    ("another normalizer", "unigram", edit_json(lambda c: c.update(normalizer=NFKC)), {"loads"}),
    ("no pre-tokenizer", "wordpiece", edit_json(lambda c: c.update(pre_tokenizer=None)), {"loads"}),
    ("another decoder", "unigram", edit_json(lambda c: c["decoder"]["decoders"].append(STRIP)), {"decode: tokenizer.json"}),
    ("no decoder", "bpe-bytes", edit_json(lambda c: c.update(decoder=None)), {"decode: tokenizer.json"}),
    ("no normalizer", "bpe-bytes", edit_json(lambda c: c.update(normalizer=None)), {"loads"}),
    ("a merge gone", "bpe-bytes", edit_json(lambda c: c["model"]["merges"].pop()), {"loads"}),
    ("no template", "bert", edit_json(lambda c: c.update(post_processor=None)), {"loads"}),
    ("no guard of special tokens", "wordpiece", edit_json(without_guard), {"loads"}),
    ("a config that is no JSON", "unigram", lambda d: (d / "tokenizer_config.json").write_text("{"), {"ids: transformers"}),
    ("a score of tokenizer.model", "unigram", lambda d: spoil_a_score(d), SPM_IDS),
    ("two pieces of tokenizer.model", "unigram", lambda d: swap_pieces(d, 1), SPM_IDS | SPM_PIECES),
    ("two ranks of tokenizer.model", "bpe", lambda d: swap_pieces(d, 1), SPM_IDS | SPM_PIECES),
    ("a piece more", "bpe", edit_proto(lambda m: m.add("새것", -9.0, NORMAL)), {"pieces: tokenizer.model"}),
    ("a byte dropped", "unigram", lambda d: drop_byte(d / "tokenizer.model"), {"ids: tokenizer.model"}),
    ("another normalizer of tokenizer.model", "unigram", edit_proto(lambda m: one_space(m.normalizer_spec)), SPM_IDS),
]  # fmt: skip


def often(folder: Path) -> int:
    """The id of the most frequent piece of some characters: what is wrong with it must show."""
    ours = load(folder)
    used = Counter(i for text in MINI.glob("*.txt") for i in ours.encode(text.read_text(encoding="utf-8")).ids)
    return next(i for i, _ in used.most_common() if i >= 256 and len(ours.vocab.tokens[i].strip()) > 1)


def spoil_a_score(folder: Path) -> None:
    i = often(folder)
    edit_proto(lambda m: setattr(m.pieces[i], "score", -99.0))(folder)


def swap_pieces(folder: Path, apart: int) -> None:
    i = often(folder)

    def swap(model: Any) -> None:
        one, two = model.pieces[i], model.pieces[i + apart]
        one.piece, two.piece = two.piece, one.piece

    edit_proto(swap)(folder)


def drop_byte(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 1 :])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "break_it", "seen"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_the_right_check_fails_on_a_broken_folder(
    model: str, break_it: Callable[[Path], object], seen: set[str], folder: Callable[..., Path], mini: list[str]
) -> None:
    place = folder(model)
    break_it(place)
    report = verify(place, mini[::40])
    assert not report.passed
    assert report.findings[0].check == "files"
    assert failed(report) >= seen | {"files"}
    ours = {"round trip", "offsets", "special tokens"}
    assert not failed(report) & ours, "the fault is not there"
    if "tokenizer.model" in str(seen):
        assert not any(check.endswith("tokenizer.json") for check in failed(report))


def worse(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    real = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args, **kwargs: change(real(*args, **kwargs)))


FAULTS: list[tuple[Any, str, Callable[[Any], Any], str]] = [
    (TrainedTokenizer, "decode", lambda text: text.rstrip(" "), "round trip"),
    (TrainedTokenizer, "encode", lambda e: replace(e, offsets=[(a, b + (b == 3)) for a, b in e.offsets]), "offsets"),
    (TrainedTokenizer, "encode", lambda e: replace(e, offsets=e.offsets[::-1]), "offsets"),
    (
        TrainedTokenizer,
        "encode",
        lambda e: replace(e, offsets=[(0, b) for a, b in e.offsets]),
        "offsets: tokenizer.json",
    ),
    (tokenizer_json, "normalizer_node", lambda node: node["normalizers"][-1], "ids: tokenizer.json"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("owner", "name", "change", "seen"), FAULTS, ids=[f"{row[1]}-{row[3]}" for row in FAULTS])
def test_the_right_check_fails_on_a_fault_of_koktok(
    owner: Any, name: str, change: Callable[[Any], Any], seen: str, trained: Trained, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, mini: list[str],
) -> None:  # fmt: skip
    loaded = load(trained())
    worse(monkeypatch, owner, name, change)
    place = loaded.save(tmp_path / "tokenizer") if owner is tokenizer_json else trained()
    assert seen in failed(verify(place, mini[::40]))


def test_text_that_reaches_a_special_token_fails(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TrainedTokenizer.encode
    monkeypatch.setattr(TrainedTokenizer, "encode", lambda self, text, **_: real(self, text, allowed_special="all"))
    report = verify(trained(), ["가나다"])
    assert "special tokens" in failed(report)
    assert "gives ['</s>']" in str(of(report, "special tokens").examples) or of(report, "special tokens").wrong > 10


def test_a_missing_library_is_no_failure(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "find_spec", {}.get)
    report = verify(trained(), ["가나다"])
    assert report.passed
    assert of(report, "ids: tokenizer.model").message == "the library `sentencepiece` is not installed"
    assert "pip install 'koktok[transformers]'" in of(report, "ids: transformers").message
    assert of(report, "ids: transformers").outcome == "not run"


def test_an_export_is_compared_with_the_folder(trained: Trained, tmp_path: Path, mini: list[str]) -> None:
    ours = load(trained(**MODELS["bpe-bytes"]))
    ranks = tiktoken.ranks_of(ours.definition, "mine")
    target = tmp_path / "export"
    target.mkdir()
    for change, seen in (
        (ranks, set()),
        (replace(ranks, pattern=".+"), {"ids: export/mine.tiktoken"}),
        (replace(ranks, ranks=shifted(ranks.ranks)), {"pieces: export/mine.tiktoken"}),
    ):
        for name, text in tiktoken.files(change).items():
            (target / name).write_text(text, encoding="utf-8")
        report = verify(trained(**MODELS["bpe-bytes"]), mini[::12], exports=[target])
        assert failed(report) >= seen
        assert bool(failed(report)) == bool(seen)
        assert of(report, "ids: export/mine.tiktoken").checked > 100


def shifted(ranks: Any) -> dict[bytes, int]:
    """Two ranks the other way round."""
    swapped = {1500: 1501, 1501: 1500}
    return {piece: swapped.get(rank, rank) for piece, rank in ranks.items()}


def test_lines_are_checked_once_and_slow_checks_take_a_sample(trained: Trained) -> None:
    steps: list[tuple[str, int, int]] = []
    lines = [f"{i}번째 줄" for i in range(1000)] * 2
    report = verify(trained(), lines, sample=100, on_progress=lambda *step: steps.append(step))
    tricky = of(report, "round trip").checked - 1000
    assert report.lines == 1000
    assert of(report, "ids: tokenizer.json").checked == 1000 + tricky
    assert of(report, "ids: transformers").checked == 100 + tricky
    assert steps[-1] == ("verify", 1000 + tricky, 1000 + tricky)


def test_a_batch_without_a_line_of_the_sample(trained: Trained) -> None:
    """transformers fails over a list of no texts; 1,001 lines end in a batch of one that is not the eleventh."""
    assert verify(trained(), [f"{i}번째 줄" for i in range(1001)], sample=90).passed


def test_the_command_prints_a_table_and_exits_with_0_or_1(
    trained: Trained, folder: Callable[..., Path], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("가\u200b나\n나는 간다\n셋째 줄\n", encoding="utf-8")
    done = works("verify", trained(), text)
    assert "3 lines" in done.stdout
    assert "PASS" in done.stdout
    assert "FAIL" not in done.stdout
    assert "verify: " in done.stderr  # progress
    assert done.stderr.endswith("all checks passed\n")
    place = folder()
    drop_byte(place / "tokenizer.model")
    done = koktok("verify", place, text, "--json", "--limit", 2, "-q")
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["lines"]) == (1, False, 2)
    assert {row["check"] for row in report["findings"] if row["outcome"] == "fail"} >= {"ids: tokenizer.model"}


def test_without_text_the_command_uses_the_mini_corpus(trained: Trained, mini: list[str]) -> None:
    done = works("verify", trained(), "--json", "-q", "--sample", 10)
    assert json.loads(done.stdout)["lines"] == len(set(mini))


def test_a_gguf_is_compared_with_the_folder(trained: Trained, tmp_path: Path) -> None:
    from koktok.runtimes import gguf

    ours = load(trained(**MODELS["bpe"]))
    table = gguf.table_of(ours.definition)
    file = gguf.write(table, tmp_path / "mine.gguf")
    finding = of(verify(trained(**MODELS["bpe"]), ["가나다"], exports=[file]), f"pieces: {tmp_path.name}/mine.gguf")
    assert (finding.outcome, finding.wrong) == ("pass", 0)
    assert finding.checked > 2300
    for change in (
        {"add_bos": True},
        {"add_eos": True},
        {"roles": {**table.roles, "bos": 3}},
        {"scores": table.scores[::-1]},
    ):
        gguf.write(replace(table, **change), tmp_path / "other.gguf", force=True)
        report = verify(trained(**MODELS["bpe"]), ["가나다"], exports=[tmp_path])
        assert failed(report) == {f"pieces: {tmp_path.name}/other.gguf"}, change
    tokens = (*table.tokens[:300], table.tokens[301], table.tokens[300], *table.tokens[302:])
    gguf.write(replace(table, tokens=tokens), tmp_path / "other.gguf", force=True)
    report = verify(trained(**MODELS["bpe"]), ["가나다"], exports=[tmp_path])
    assert failed(report) == {f"pieces: {tmp_path.name}/other.gguf"}
    os.truncate(file, 1000)
    assert f"ids: {tmp_path.name}/mine.gguf" in failed(verify(trained(**MODELS["bpe"]), ["가나다"], exports=[file]))


def test_differences_of_sentencepieces_normalizer_are_a_note(trained: Trained) -> None:
    """Marks out of order: its rules are strings and know no order."""
    report = verify(trained(), ["e\u0301\u0323 a\u0301\u0323", "가\u200b나"])
    finding = of(report, "ids: tokenizer.model")
    assert finding.outcome == "pass"
    assert "normalize first" in finding.note or "cannot read" in finding.note


_NOTED = re.compile(r"other ids for (\d+) of the (\d+) lines that begin with a space")


def test_spaces_at_the_beginning_are_a_note(tmp_path: Path) -> None:
    """SentencePiece may join them with the space that both put before a text: it is asked, and the others are compared."""
    scores = {"  가": -1.0, " 가": -2.0, " 나": -2.0, " ": -2.0, "가": -3.0, "나": -3.0, "#": -9.0}
    made = TrainedTokenizer(Recipe(), Vocab.unigram(scores, specials=Recipe().special_tokens))
    folder = made.save(tmp_path / "spaces")
    ours, theirs = load(folder), SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    lines = ["  가", " 가", " 나", " 나 가"]
    differ = [line for line in lines if theirs.encode(line) != ours.encode(line).ids]
    assert 0 < len(differ) < len(lines)

    def counted(*lines: str) -> list[int]:
        finding = of(verify(folder, lines), "ids: tokenizer.model")
        assert finding.outcome == "pass"
        return [finding.checked, *(int(one) for found in _NOTED.findall(finding.note) for one in found)]

    more = [b - a for a, b in zip(counted(differ[0]), counted(*lines), strict=True)]
    assert more == [len(lines) - len(differ), len(differ) - 1, len(lines) - 1]


def test_code_of_a_folder_is_not_run(folder: Callable[..., Path]) -> None:
    place = folder()
    edit_json(lambda c: c.update(auto_map={"AutoTokenizer": ["evil.Evil", None]}), "tokenizer_config.json")(place)
    (place / "evil.py").write_text("raise SystemExit('ran')")
    finding = of(verify(place, ["가나다"]), "ids: transformers")
    assert (finding.outcome, "auto_map" in finding.message) == ("not run", True)


def test_an_imported_tokenizer_without_a_tokenizer_json_has_no_other_side(tmp_path: Path) -> None:
    from koktok.tokenizer.open import load

    ranks = "".join(f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
    (tmp_path / "a.tiktoken").write_text(ranks, encoding="utf-8")
    saved = load(tmp_path / "a.tiktoken", pattern="gpt2").save(tmp_path / "imported")
    report = verify(saved, ["가나다"])
    assert (report.passed, of(report, "transformers").outcome) == (True, "not run")


def test_exports_may_be_files_and_must_be_there(trained: Trained, tmp_path: Path) -> None:
    from koktok.runtimes import gguf

    folder = trained(**MODELS["bpe"])
    ours = load(folder)
    model = tmp_path / "spm"
    model.write_bytes((folder / "tokenizer.model").read_bytes())
    table = gguf.write(gguf.table_of(ours.definition), tmp_path / "table")
    report = verify(folder, ["가나다"], exports=[model, table, folder / "tokenizer.json"])
    assert report.passed
    assert {"spm", "table", "tokenizer.json"} <= {finding.check.rpartition("/")[2] for finding in report.findings}
    text = tmp_path / "vocab.txt"
    text.write_text("나라\n", encoding="utf-8")
    for wrong in (tmp_path / "nothing", tmp_path, text):
        with pytest.raises(UsageError, match="expected an export of koktok"):
            verify(folder, ["가나다"], exports=[wrong])


def test_rounded_sums_of_sentencepiece_are_a_note(tmp_path: Path) -> None:
    hyphens = {"-" * n: n * (-20 - SCORE_STEP) for n in (1, 2, 3)}  # every way to cut them costs the same
    place = TrainedTokenizer(Recipe(), Vocab.unigram(hyphens, specials=Recipe().special_tokens)).save(
        tmp_path / "hyphens"
    )
    short, long = verify(place, ["-" * 3_000]), verify(place, ["-" * 20_001])
    assert (failed(short), failed(long)) == (set(), set())
    assert "32-bit" not in of(short, "ids: tokenizer.model").note
    assert "its 32-bit sums of scores are rounded" in of(long, "ids: tokenizer.model").note


def test_examples_show_ids_from_the_first_difference(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    found = HuggingFace.ids
    monkeypatch.setattr(
        HuggingFace,
        "ids",
        lambda self, texts, **how: [row[:3] + [0] * (len(row) > 3) for row in found(self, texts, **how)],
    )
    line = "나는 학교에 간다. " * 40
    ids = load(trained()).encode(line).ids
    examples = of(verify(trained(), [line]), "ids: tokenizer.json").examples
    assert f"from token 3 on [0] in place of {str(ids[3:])[:40]}" in examples[0]


def test_another_role_in_the_configuration_is_found(trained: Trained, tmp_path: Path) -> None:
    folder = shutil.copytree(trained(), tmp_path / "edited")
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**config, "unk_token": "<pad>"}), encoding="utf-8")
    report = verify(folder, ["가"])
    found = {finding.check: finding for finding in report.findings}
    assert found["special tokens by role: transformers"].examples[0].startswith("'unk_token': ")
    assert not report.passed


def swap_merges(content: dict[str, Any]) -> None:
    merges = content["model"]["merges"]
    merges[-1], merges[-2] = merges[-2], merges[-1]


EDITS: list[tuple[str, Callable[[Path], object]]] = [
    ("two merges", edit_json(swap_merges)),
    ("a chat template", lambda d: (d / "chat_template.jinja").write_text("{{ messages }}")),
    ("a limit", edit_json(lambda c: c.update(model_max_length=9), "tokenizer_config.json")),
    ("a file gone", lambda d: (d / "special_tokens_map.json").unlink()),
    ("the list itself", lambda d: (d / "koktok.sha256").write_text((d / "koktok.sha256").read_text() + "0  more\n")),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("edit", [row[1] for row in EDITS], ids=[row[0] for row in EDITS])
def test_an_edited_file_is_told_first(edit: Callable[[Path], object], folder: Callable[..., Path]) -> None:
    place = folder("llama")
    (place / "README.md").write_text("the owner's own words")
    assert verify(place, ["가"]).passed
    edit(place)
    first = verify(place, ["가"]).findings[0]
    assert (first.check, first.outcome, first.wrong) == ("files", "fail", 1)
