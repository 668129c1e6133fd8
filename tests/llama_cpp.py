"""llama.cpp itself, where a binding is installed: `pip install cyllama` brings it as a wheel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN_LLAMA_CPP = """
import json, sys
from pathlib import Path
import gguf, numpy as np
from cyllama.llama import llama_cpp
from koktok.formats.gguf import add_table, read
source, model, lines = map(Path, sys.argv[1:])
table = read(source)
# The binding reads sizes of layers as it loads, so the smallest of models is put around the vocabulary.
writer = gguf.GGUFWriter(model, "llama")
writer.add_context_length(8); writer.add_embedding_length(8); writer.add_block_count(1); writer.add_head_count(1)
writer.add_feed_forward_length(8); writer.add_layer_norm_rms_eps(1e-5); writer.add_rope_dimension_count(8)
writer.add_vocab_size(len(table.tokens))
add_table(writer, table)
square, row = np.zeros((8, 8), np.float32), np.zeros(8, np.float32)
for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
    writer.add_tensor(f"blk.0.{name}.weight", square)
for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
    writer.add_tensor(f"{name}.weight", row)
writer.add_tensor("token_embd.weight", np.zeros((len(table.tokens), 8), np.float32))
writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()
llama_cpp.disable_logging()
loaded = llama_cpp.LlamaModel(str(model), llama_cpp.LlamaModelParams())
vocab = loaded.get_vocab()
for line in json.loads(lines.read_text()):
    print(json.dumps(vocab.tokenize(line, False, False)))
"""


def llama_cpp_ids(vocabulary: Path, lines: list[str]) -> list[list[int]]:
    """Ids of each line, by llama.cpp in a process of its own, for it ends in `abort` where it fails; skips without it."""
    pytest.importorskip("cyllama", reason="no binding of llama.cpp is installed")
    model, text = vocabulary.with_suffix(".model.gguf"), vocabulary.with_suffix(".lines.json")
    text.write_text(json.dumps(lines))
    words = [sys.executable, "-c", RUN_LLAMA_CPP, str(vocabulary), str(model), str(text)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]
