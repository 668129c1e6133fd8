"""tiktoken: the same ids as `Tokenizer` on normalized text, the same text back, and no folder that is only half right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from koktok import load as load_tokenizer
from koktok.errors import ArtifactError
from koktok.files import write_folder
from koktok.model.definition import Definition
from koktok.model.models import BpeModel
from koktok.model.vocab import BYTE_CHARS, Vocab
from koktok.runtimes.tiktoken.ranks import EXPORT, Ranks, files, load, ranks_of, refuses

BYTES = {bytes([i]): i for i in range(256)}


def test_ids_are_ranks(trained: Callable[..., Path]) -> None:
    tokenizer = load_tokenizer(trained(train={"model": "bpe-bytes"}))
    ranks = ranks_of(tokenizer.definition)
    assert list(ranks.ranks.values()) == list(range(len(ranks.ranks)))
    assert max(ranks.specials.values()) == tokenizer.vocab.size - 1
    assert ranks.encoding().n_vocab == tokenizer.vocab.size


MERGES = st.lists(st.sampled_from("ab"), min_size=2, max_size=5).map("".join)


@given(merged=st.lists(MERGES, unique=True, max_size=12), text=st.text(st.sampled_from("ab"), max_size=12))
def test_ranks_of_joined_pieces_are_tiktokens_rule(merged: list[str], text: str) -> None:
    """Any list of pieces, in any order, that tiktoken may run at all; the pretoken is the whole text."""
    vocab = Vocab.bpe_bytes(merged)
    ours = BpeModel(vocab).encode(text)[0]
    if refuses(Definition(vocab)):
        return
    ranks = {bytes(BYTE_CHARS.index(char) for char in piece): i for i, piece in enumerate(vocab.pieces)}
    assert Ranks("any", r"(?s:.+)", ranks, {}).encoding().encode(text) == ours


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        ranks = ranks_of(Definition(Vocab.bpe_bytes(["ê°", "ê°Ģ"], specials=["</s>"])), "tiny")
        return write_folder(tmp_path / "out", files(ranks, "nfc"), EXPORT)

    def test_there_and_back(self, folder: Path) -> None:
        ranks = load(folder)
        assert ranks.encoding().encode("가</s>", allowed_special="all") == [257, 258]
        assert files(ranks, "nfc") == {
            file.name: file.read_text() for file in folder.iterdir() if file.suffix != ".sha256"
        }

    def test_tiktokens_own_loader_reads_it(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
        spec = json.loads((folder / "tiktoken.json").read_text())
        from tiktoken.load import load_tiktoken_bpe

        read = load_tiktoken_bpe(str(folder / spec["ranks"]), spec["sha256"])
        assert read == load(folder).ranks
        encoding = tiktoken.Encoding(
            spec["name"], pat_str=spec["pat_str"], mergeable_ranks=read, special_tokens=spec["special_tokens"]
        )
        assert encoding.n_vocab == spec["n_vocab"] == 259

    @pytest.mark.parametrize("name", ["tiny.tiktoken", "tiktoken.json"])
    def test_missing_or_cut_short(self, folder: Path, name: str) -> None:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ArtifactError, match=r"is not a tiktoken export|was changed: its digest"):
            load(folder)
        (folder / name).unlink()
        with pytest.raises(ArtifactError, match="cannot be read") as caught:
            load(folder)
        assert caught.value.hint
