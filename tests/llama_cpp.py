"""llama.cpp itself, where a binding is installed: `pip install cyllama` brings it as a wheel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from koktok.runtimes.gguf import read, write_into

RUN_LLAMA_CPP = """
import json, sys
from pathlib import Path
from cyllama.llama import llama_cpp
llama_cpp.disable_logging()
loaded = llama_cpp.LlamaModel(sys.argv[1], llama_cpp.LlamaModelParams())  # the vocabulary lives as long as it
vocab = loaded.get_vocab()
for line in json.loads(Path(sys.argv[2]).read_text()):
    print(json.dumps(vocab.tokenize(line, False, False)))
"""


def tiny_model(path: Path, rows: int) -> Path:
    """The smallest of models, around a tokenizer of another language: a GGUF with `rows` embeddings."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(8)
    writer.add_embedding_length(8)
    writer.add_block_count(1)
    writer.add_head_count(1)
    writer.add_feed_forward_length(8)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(8)
    writer.add_vocab_size(rows)
    writer.add_array("tiny.languages", ["en", "fr"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"t{i}" for i in range(rows)])
    writer.add_chat_template("{{ old }}")
    draw = np.random.default_rng(0)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", draw.random((8, 8), np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", draw.random(8, np.float32))
    writer.add_tensor("token_embd.weight", draw.random((rows, 8), np.float32).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def llama_cpp_ids(model: Path, lines: list[str]) -> list[list[int]]:
    """Ids of each line, by llama.cpp in a process of its own, for it ends in `abort` where it fails; skips without it.

    A vocabulary alone is put into a tiny model first: the binding reads sizes of layers as it loads.
    """
    pytest.importorskip("cyllama", reason="no binding of llama.cpp is installed")
    import gguf

    table = read(model)
    if not gguf.GGUFReader(model).tensors:
        whole = tiny_model(model.with_suffix(".model.gguf"), len(table.tokens))
        model = write_into(table, whole, model.with_suffix(".whole.gguf"))
    text = model.with_suffix(".lines.json")
    text.write_text(json.dumps(lines))
    words = [sys.executable, "-c", RUN_LLAMA_CPP, str(model), str(text)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
