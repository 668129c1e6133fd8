"""`verify` of folders that koktok did not train: tokenizer.json against what transformers builds from the same folder."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import tokenizers
from conftest import koktok
from tiny_bases import byte_level, sentencepiece_model
from tokenizers import processors

from koktok.errors import MissingExtraError
from koktok.extension.base_tokenizer import open_base
from koktok.tokenizer.open import load
from koktok.verification import verify

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers opens files and warns as it likes

PARTING = "def f(x): return x"
"""GPT-2's pattern cuts `(` from `x`; that of Llama 3 does not."""


def folder_of(place: Path, kind: str, made: tokenizers.Tokenizer | None = None, **config: object) -> Path:
    """A folder as a model's publisher writes it: a tokenizer.json, and the class of transformers that is to open it."""
    place.mkdir()
    (made or byte_level()).save(str(place / "tokenizer.json"))
    (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, **config}))
    return place


def outcomes(report: object) -> dict[str, str]:
    return {finding.check: finding.outcome for finding in report.findings}


def test_a_folder_that_transformers_reads_unchanged_passes(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "same", "PreTrainedTokenizerFast")
    report = verify(place, [PARTING])
    assert set(outcomes(report).values()) == {"pass"}
    assert {finding.check: finding.checked for finding in report.findings}["ids: transformers"] > 1000
    assert f"transformers {version('transformers')}" in report.tokenizer


@pytest.mark.skipif(version("transformers") < "5", reason="GPT-2's class keeps the pre-tokenizer of the file")
def test_a_class_with_its_own_pre_tokenizer_fails(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "other", "GPT2TokenizerFast")
    text = tmp_path / "text.txt"
    text.write_text(f"학교\n{PARTING}\n", encoding="utf-8")
    done = koktok("verify", place, text)
    assert done.returncode == 1
    assert "GPT2Tokenizer of transformers" in done.stdout
    rows = done.stderr.splitlines()
    first = rows[rows.index("ids: transformers: AutoTokenizer gives the ids of the file in its own library") + 1]
    assert first.startswith(f"    '{PARTING}': from token 2 on [")
    assert rows[-1] == "FAILED"


def test_other_special_tokens_around_a_text_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = byte_level(specials=("<|begin|>", "<|end|>"))
    made.post_processor = processors.TemplateProcessing("<|begin|> $A", "$A $B", [("<|begin|>", 420)])
    begin = made.token_to_id("<|begin|>")
    made.post_processor = processors.TemplateProcessing("<|begin|> $A", "$A $B", [("<|begin|>", begin)])
    place = folder_of(tmp_path / "template", "PreTrainedTokenizerFast", made)
    assert verify(place).passed
    from koktok.verification import others

    real = others.auto_tokenizer

    def without(folder: Path) -> object:
        library = real(folder)
        library.backend_tokenizer.post_processor = processors.ByteLevel()
        return library

    monkeypatch.setattr(others, "auto_tokenizer", without)
    report = outcomes(verify(place))
    assert (report["ids: transformers"], report["ids with special tokens: transformers"]) == ("pass", "fail")


def test_a_file_that_truncates_and_pads_is_compared_without_that(tmp_path: Path) -> None:
    made = byte_level()
    made.enable_truncation(4)
    made.enable_padding(length=16)
    assert verify(folder_of(tmp_path / "short", "PreTrainedTokenizerFast", made), [PARTING]).passed


def test_code_of_the_folder_is_not_run(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "code", "EvilTokenizer", auto_map={"AutoTokenizer": ["evil.Evil", None]})
    (place / "evil.py").write_text("raise SystemExit('ran')")
    report = verify(place)
    assert (report.passed, outcomes(report)) == (False, {"loads": "fail"})


def test_a_broken_tokenizer_json_is_a_finding(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "broken", "PreTrainedTokenizerFast")
    (place / "tokenizer.json").write_text("{}")
    report = verify(place)
    assert outcomes(report) == {"loads": "fail"}


def test_without_transformers_the_error_has_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder_of(tmp_path / "same", "PreTrainedTokenizerFast")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'koktok\[transformers\]'"):
        verify(place)


def test_an_imported_tokenizer_is_compared_with_what_it_was_imported_from(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "foreign", "PreTrainedTokenizerFast", eos_token="<|end|>")
    saved = load(place).save(tmp_path / "imported")
    assert verify(saved, [PARTING], exports=[place]).passed
    for name, config in (("other", {"bos_token": "<|end|>"}), ("more", {"eos_token": "<|end|>", "pad_token": "f"})):
        other = folder_of(tmp_path / name, "PreTrainedTokenizerFast", **config)
        report = outcomes(verify(saved, [PARTING], exports=[other]))
        assert report[f"special tokens by role: {other} in transformers"] == "fail"
        assert (report[f"ids: {other} in transformers"] == "fail") == (name == "more")  # <|end|> is a token of both
    assert "files" not in outcomes(verify(place))  # nobody has listed them
    (saved / "tokenizer_config.json").write_text("{}")
    assert outcomes(verify(saved))["files"] == "fail"


def test_roles_lie_in_the_matrix_and_agree_with_the_configuration(tmp_path: Path) -> None:
    config = {"eos_token": "<|end|>", "pad_token": "[PAD]"}
    place = folder_of(tmp_path / "roles", "PreTrainedTokenizerFast", **config)
    size = open_base(str(place)).size
    found = {}
    for rows, pad in ((size, size - 1), (size - 1, size - 1), (size, 3)):
        (place / "config.json").write_text(json.dumps({"vocab_size": rows, "pad_token_id": pad}))
        report = verify(place, ["가"])
        found[rows, pad] = (report.passed, [line for finding in report.findings for line in finding.examples])
    assert found[size, size - 1] == (True, [])
    assert found[size - 1, size - 1][1][0] == f"the last id is {size - 1}, and the matrices have {size - 1} rows"
    assert found[size, 3] == (False, [f"'pad_token' '[PAD]' has the id {size - 1}, config.json says [3]"])
    place = folder_of(tmp_path / "eos", "PreTrainedTokenizerFast", eos_token="<|end|>", pad_token="<|end|>")
    report = verify(place, ["가"])
    assert report.passed
    assert any("pad_token is eos_token (<|end|>)" in finding.note for finding in report.findings)


def test_a_folder_with_only_a_sentencepiece_model(tmp_path: Path) -> None:
    place = tmp_path / "model"
    place.mkdir()
    (place / "tokenizer.model").write_bytes(Path(sentencepiece_model(tmp_path, "bpe")).read_bytes())
    report = verify(place, ["가나다"])
    assert (report.passed, outcomes(report)["transformers"]) == (True, "not run")
    (place / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer", "pad_token": "[PAD]"}')
    (place / "config.json").write_text('{"vocab_size": 600, "pad_token_id": 600}')
    report = verify(place, ["가나다"])
    assert outcomes(report)["special tokens by role: transformers"] == "pass"
    assert outcomes(report)["special tokens by role"] == "fail"
