"""Rows of embeddings for new ids: against the definitions, in every layout of a model, and in PyTorch where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_bases import LINES, byte_level, saved, sentencepiece_model

import koktok
from koktok.errors import ArtifactError, UsageError
from koktok.extension import embeddings
from koktok.extension.base_tokenizer import open_base
from koktok.extension.embeddings import apply_extension, npz
from koktok.extension.extension_files import EXTENSION, read_extension

NUMPY = {"F32": "<f4", "F16": "<f2"}
PIECES = [
    {"id": 12, "token": "a", "base": [3, 4], "lengths": [1.0, 2.0]},
    {"id": 13, "token": "b", "base": [5, 6, 7], "lengths": [0.333, 0.667, 3.0]},
    {"id": 14, "token": "c", "base": [3, 3, 9, 1], "lengths": [1.0, 1.0, 1.0, 1.0]},
]


def extension(folder: Path, *, base_size: int = 12, pieces: Any = PIECES, mode: str = "append") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "format": 1,
        "base": {"name": "tiny", "size": base_size, "sha256": "0" * 64, "hangul": [3, 4, 9]},
        "mode": mode,
        "size": max(base_size, *(row["id"] + 1 for row in pieces)),
        "pieces": pieces,
    }
    (folder / EXTENSION).write_text(json.dumps(told))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def bits(array: np.ndarray, dtype: str) -> bytes:
    if dtype == "BF16":
        return (array.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return array.astype(NUMPY[dtype]).tobytes()


def write_tensors(file: Path, tensors: dict[str, np.ndarray], dtype: str = "F32") -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in tensors.items():
        blob = bits(array, dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    head = json.dumps(header).encode()
    file.write_bytes(len(head).to_bytes(8, "little") + head + data)


def read_tensors(file: Path) -> dict[str, np.ndarray]:
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    found = {}
    for name, row in header.items():
        if name == "__metadata__":
            continue
        begin, end = row["data_offsets"]
        part = raw[8 + length + begin : 8 + length + end]
        if row["dtype"] == "BF16":
            array = (np.frombuffer(part, "<u2").astype("<u4") << 16).view("<f4")
        else:
            array = np.frombuffer(part, NUMPY[row["dtype"]])
        found[name] = array.reshape(row["shape"])
    return found


def matrix(rows: int, seed: int, width: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)


def model(folder: Path, tensors: dict[str, np.ndarray], *, dtype: str = "F32", shards: int = 1, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 12, **config}))
    (folder / "generation_config.json").write_text('{"eos_token_id": 1}')
    (folder / "special_tokens_map.json").write_text("{}")
    if shards == 1:
        write_tensors(folder / "model.safetensors", tensors, dtype)
        return folder
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    where = {name: names[i % shards] for i, name in enumerate(tensors)}
    for shard in names:
        write_tensors(folder / shard, {name: array for name, array in tensors.items() if where[name] == shard}, dtype)
    index = {"metadata": {"total_size": 0}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def reference(old: np.ndarray, method: str, side: str, *, scaled: bool = False) -> np.ndarray:
    """The definitions, row by row."""
    rows = []
    for piece in PIECES:
        parts = old[piece["base"]].astype(np.float64)
        if method == "eeve" and side == "output":
            row = parts[0]
        elif method == "weighted" and side == "output":
            row = np.average(parts, axis=0, weights=piece["lengths"])
        else:
            row = parts.mean(axis=0)
        if scaled:
            row = row / np.linalg.norm(row) * np.median(np.linalg.norm(old[[3, 4, 9]].astype(np.float64), axis=1))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("method", list(embeddings.METHODS))
@pytest.mark.parametrize(("dtype", "exact"), [("F32", 1e-6), ("F16", 2e-3), ("BF16", 1.6e-2)])
@pytest.mark.parametrize("shards", [1, 3])
def test_rows_are_what_their_definition_says(
    tmp_path: Path, method: str, dtype: str, exact: float, shards: int
) -> None:
    tensors = {
        "model.embed_tokens.weight": matrix(12, 1),
        "model.layers.0.mlp.weight": matrix(5, 2),
        "lm_head.weight": matrix(12, 3),
    }
    place = model(tmp_path / "model", tensors, dtype=dtype, shards=shards, tie_word_embeddings=False)
    notes = apply_extension(extension(tmp_path / "ext"), place, tmp_path / "out", method=method)
    assert "rows: 12 before, 15 now" in notes
    files = sorted((tmp_path / "out").glob("*.safetensors"))
    assert [file.name for file in files] == [file.name for file in sorted(place.glob("*.safetensors"))]
    found = {name: array for file in files for name, array in read_tensors(file).items()}
    stored = {name: array for file in sorted(place.glob("*.safetensors")) for name, array in read_tensors(file).items()}
    assert np.array_equal(found["model.layers.0.mlp.weight"], stored["model.layers.0.mlp.weight"])
    for name, side in (("model.embed_tokens.weight", "input"), ("lm_head.weight", "output")):
        assert np.array_equal(found[name][:12], stored[name])
        wanted = reference(stored[name], method, side, scaled=method == "weighted" and side == "input")
        assert np.allclose(found[name][12:], wanted, rtol=exact, atol=exact)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["vocab_size"] == 15
    assert (tmp_path / "out" / "tokenizer.json").read_text() == "{}"
    assert not (tmp_path / "out" / "special_tokens_map.json").exists()
    if shards > 1:
        index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
        assert index["metadata"]["total_size"] == sum(bits(a, dtype).__len__() for a in found.values())


def test_a_link_that_leads_out_of_a_model_is_not_followed(tmp_path: Path) -> None:
    """What a downloaded folder points at may be anybody's file; links among the model's own files are followed."""
    secret = tmp_path / "secret.txt"
    secret.write_text("somebody else's", encoding="utf-8")
    place = model(tmp_path / "model", {"model.embed_tokens.weight": matrix(12, 1)})
    (place / "notes.txt").symlink_to(secret)
    (place / "licence.txt").write_text("own", encoding="utf-8")
    (place / "copy.txt").symlink_to("licence.txt")
    notes = apply_extension(extension(tmp_path / "ext"), place, tmp_path / "out")
    assert "links that lead elsewhere were not followed: notes.txt" in notes
    assert not (tmp_path / "out" / "notes.txt").exists()
    assert (tmp_path / "out" / "copy.txt").read_text(encoding="utf-8") == "own"
    (place / "config.json").rename(tmp_path / "config.json")
    (place / "config.json").symlink_to(tmp_path / "config.json")
    with pytest.raises(ArtifactError, match="is a link that leads out of the folder"):
        apply_extension(extension(tmp_path / "ext"), place, tmp_path / "other")


def test_padded_and_tied_and_filled(tmp_path: Path) -> None:
    old = matrix(20, 4)
    place = model(tmp_path / "padded", {"transformer.wte.weight": old}, model_type="gpt2", vocab_size=20)
    notes = apply_extension(extension(tmp_path / "ext"), place, tmp_path / "out1", method="weighted")
    found = read_tensors(tmp_path / "out1" / "model.safetensors")["transformer.wte.weight"]
    assert found.shape == (20, 8)
    assert np.allclose(found[12:15], reference(old, "mean", "input"), atol=1e-6)
    assert np.array_equal(np.delete(found, [12, 13, 14], 0), np.delete(old, [12, 13, 14], 0))
    assert any("8 rows without a token" in note for note in notes)
    assert any("one matrix" in note for note in notes)
    filled = [{**row, "id": i} for row, i in zip(PIECES, (2, 8, 10), strict=True)]
    small = model(tmp_path / "small", {"model.embed_tokens.weight": old[:12]}, tie_word_embeddings=True)
    apply_extension(extension(tmp_path / "fill", pieces=filled, mode="fill"), small, tmp_path / "out2")
    found = read_tensors(tmp_path / "out2" / "model.safetensors")["model.embed_tokens.weight"]
    assert found.shape == (12, 8)
    assert np.allclose(found[[2, 8, 10]], reference(old, "mean", "input"), atol=1e-6)
    apply_extension(extension(tmp_path / "ext"), small, tmp_path / "out3", pad_to=16)
    found = read_tensors(tmp_path / "out3" / "model.safetensors")["model.embed_tokens.weight"]
    assert np.allclose(found[15], old[:12].mean(axis=0), atol=1e-6)


def test_what_was_given_at_learning_is_applied(tmp_path: Path) -> None:
    tensors = {"model.embed_tokens.weight": matrix(12, 4), "lm_head.weight": matrix(12, 5)}
    place = model(tmp_path / "model", tensors, tie_word_embeddings=False)
    told = extension(tmp_path / "ext")
    apply_extension(told, place, tmp_path / "given", method="weighted", pad_to=32)
    record = json.loads((told / EXTENSION).read_text())
    (told / EXTENSION).write_text(json.dumps({**record, "init": "weighted", "pad_to": 32}))
    apply_extension(told, place, tmp_path / "kept")
    file = "model.safetensors"
    assert (tmp_path / "kept" / file).read_bytes() == (tmp_path / "given" / file).read_bytes()
    apply_extension(told, place, tmp_path / "other", method="mean", pad_to=1)
    assert read_tensors(tmp_path / "other" / file)["lm_head.weight"].shape == (15, 8)


def test_a_row_that_a_token_of_the_model_owns_is_not_given_away(tmp_path: Path) -> None:
    base = saved(byte_level(), tmp_path / "base")
    koktok.extend(base, LINES, tmp_path / "ext", add=4, segmenter="whitespace", cache=False, holdout=0.0)
    tensors = {"model.embed_tokens.weight": matrix(423, 1)}
    place = model(tmp_path / "model", tensors, vocab_size=423)
    saved(byte_level(), place, tokenizer_config={"pad_token": "[PAD]", "tokenizer_class": "PreTrainedTokenizerFast"})
    with pytest.raises(ArtifactError, match=r"the id 421 of '\[PAD\]' in `.*` would be that of '.*'"):
        apply_extension(tmp_path / "ext", place, tmp_path / "out")
    saved(byte_level(), place, tokenizer_config={"tokenizer_class": "PreTrainedTokenizerFast"})
    assert embeddings.rows_of(place) == 423
    for named, why in (({"pad_token_id": 422}, "422 is the pad_token_id"), ({"eos_token_id": [3, 5]}, "")):
        (place / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 423, **named}))
        if why:
            with pytest.raises(ArtifactError, match=why):
                apply_extension(tmp_path / "ext", place, tmp_path / "out")
        else:
            apply_extension(tmp_path / "ext", place, tmp_path / "out")


def test_weights_in_init_npz(tmp_path: Path) -> None:
    record = read_extension(extension(tmp_path))
    (tmp_path / "init.npz").write_bytes(npz(record, "weighted"))
    held = np.load(tmp_path / "init.npz")
    assert held["ids"].tolist() == [12, 13, 14]
    dense = np.zeros((3, 12))
    for k in range(3):
        part = slice(held["output_start"][k], held["output_start"][k + 1])
        np.add.at(dense[k], held["output_rows"][part], held["output_weight"][part])
    old = matrix(12, 5)
    assert np.allclose(dense @ old, reference(old, "weighted", "output"), atol=1e-6)
    assert npz(record, "weighted") == npz(record, "weighted")
    with pytest.raises(UsageError, match="`init`: expected 'mean', 'eeve' or 'weighted', got 'best'"):
        apply_extension(tmp_path, tmp_path, tmp_path, method="best")


def test_models_that_cannot_be_extended(tmp_path: Path) -> None:
    ext = extension(tmp_path / "ext")
    good = {"model.embed_tokens.weight": matrix(12, 1), "lm_head.weight": matrix(12, 2)}

    def refused(place: Path, message: str) -> None:
        with pytest.raises(ArtifactError, match=message):
            apply_extension(ext, place, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".") and list(entry.glob("new*"))]

    small = {name: array[:11] for name, array in good.items()}
    refused(model(tmp_path / "a", small), r"have 11 rows, and the base's vocabulary has ids up to 11")
    refused(
        model(tmp_path / "b", {"x.weight": matrix(12, 1)}),
        "has no embedding matrix; expected a tensor whose name ends with embed_tokens",
    )
    lost = model(tmp_path / "c", good, shards=2)
    (lost / "model-00002-of-00002.safetensors").unlink()
    refused(lost, "shard .*00002-of-00002.* is missing")
    short = model(tmp_path / "d", good)
    data = (short / "model.safetensors").read_bytes()
    (short / "model.safetensors").write_bytes(data[:-10])
    refused(short, "cut short")
    (short / "model.safetensors").write_bytes(b"\xff" * 40)
    refused(short, "is not a safetensors file")
    (short / "model.safetensors").unlink()
    refused(short, "holds no model.safetensors")
    refused(tmp_path / "nothing", "config.json` cannot be read")
    odd = model(tmp_path / "e", {**good, "model.embed_tokens_per_layer.weight": matrix(12, 3)})
    refused(odd, "embed_tokens_per_layer.weight` has a row for each id")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        apply_extension(ext, model(tmp_path / "f", good), tmp_path / "theirs")


KINDS = {
    "LlamaForCausalLM": ("LlamaConfig", {"tie_word_embeddings": False}),
    "Qwen2ForCausalLM": ("Qwen2Config", {"tie_word_embeddings": True}),
    "Qwen3ForCausalLM": ("Qwen3Config", {"head_dim": 8, "tie_word_embeddings": False}),
    "MistralForCausalLM": ("MistralConfig", {"head_dim": 8}),
    "GemmaForCausalLM": ("GemmaConfig", {"head_dim": 8}),
    "Gemma3ForCausalLM": ("Gemma3TextConfig", {"head_dim": 8}),
    "GPT2LMHeadModel": ("GPT2Config", {}),
}


LANGUAGES = ("The quick brown fox jumps.", "def f(x): return x", "你好, 世界 😀", "3.14 % of <|x|>")


@pytest.mark.parametrize(
    ("kind", "dtype", "fill", "shard", "pad", "method"),
    [
        ("MistralForCausalLM", "float32", None, "100KB", 64, "weighted"),
        ("MistralForCausalLM", "bfloat16", None, "5GB", 1, "eeve"),
        ("GemmaForCausalLM", "float32", "unused", "50KB", 1, "weighted"),
        ("GemmaForCausalLM", "bfloat16", None, "50KB", 64, "eeve"),
        ("LlamaForCausalLM", "float16", "reserved", "5GB", 1, "weighted"),
        ("Qwen3ForCausalLM", "float32", None, "50KB", 1, "eeve"),
        ("GptOssForCausalLM", "bfloat16", "reserved", "5GB", 1, "weighted"),
    ],
)
def test_a_tokenizer_and_its_model_from_end_to_end(
    tmp_path: Path, kind: str, dtype: str, fill: str | None, shard: str, pad: int, method: str
) -> None:
    torch = pytest.importorskip("torch")
    import transformers

    if kind in ("MistralForCausalLM", "GemmaForCausalLM"):
        base = sentencepiece_model(tmp_path, "bpe")
    else:
        names = tuple(f"<|reserved_special_token_{i}|>" for i in range(30))
        base = saved(
            byte_level("qwen2" if kind.startswith("Qwen") else "llama3", specials=("<|end|>", *names)), tmp_path / "b"
        )
    opened = open_base(base)
    name, more = KINDS.get(kind, ("GptOssConfig", {"head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1}))
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    sizes |= {"intermediate_size": 32, "vocab_size": opened.size + (7 if kind.startswith("Qwen") else 0)}
    torch.manual_seed(0)
    kept = {"dtype": getattr(torch, dtype)}
    config = getattr(transformers, name)(**sizes, **more, pad_token_id=None, bos_token_id=None, eos_token_id=None)
    old = getattr(transformers, kind)(config).to(**kept).eval()
    old.save_pretrained(tmp_path / "model", max_shard_size=shard)
    old = getattr(transformers, kind).from_pretrained(tmp_path / "model", **kept).eval()
    koktok.extend(
        opened,
        LINES,
        tmp_path / "ext",
        add=20 if fill else 50,
        fill=fill,
        segmenter="whitespace",
        cache=False,
        holdout=0.0,
    )
    apply_extension(tmp_path / "ext", tmp_path / "model", tmp_path / "new", method=method, pad_to=pad)
    new = getattr(transformers, kind).from_pretrained(tmp_path / "new", **kept).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "new")
    for text in LANGUAGES:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids == opened.encode([text])[0]
        with torch.no_grad():
            before, after = (m(torch.tensor([ids]), output_hidden_states=True) for m in (old, new))
        assert all(torch.equal(a, b) for a, b in zip(before.hidden_states, after.hidden_states, strict=True))
        taken = [piece.id for piece in read_extension(tmp_path / "ext").pieces]
        rest = [i for i in range(opened.size) if i not in taken]
        assert torch.allclose(before.logits[..., rest].float(), after.logits[..., rest].float(), atol=1e-6, rtol=1e-5)
    # The rows, by PyTorch.
    record = read_extension(tmp_path / "ext")
    tied = config.tie_word_embeddings
    exact = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    rows, made = old.get_input_embeddings().weight.float(), new.get_input_embeddings().weight.float()
    heads, made_heads = old.get_output_embeddings().weight.float(), new.get_output_embeddings().weight.float()
    norm = rows[record.base.hangul].norm(dim=1).quantile(0.5)
    for row in record.pieces:
        wanted = rows[row.base].mean(dim=0)
        if method == "weighted" and not tied:
            wanted = wanted * norm / wanted.norm()
        assert torch.allclose(made[row.id], wanted, atol=exact, rtol=exact)
        if not tied:
            share = torch.tensor(row.lengths)
            parts = heads[row.base]
            wanted = parts[0] if method == "eeve" else (parts * (share / share.sum())[:, None]).sum(dim=0)
            assert torch.allclose(made_heads[row.id], wanted, atol=exact, rtol=exact)
    assert (new.config.vocab_size == old.config.vocab_size) == bool(fill)
