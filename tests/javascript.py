"""Tokenizers in JavaScript, by node: npm's packages are installed into a folder, and a line of it runs each."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("@huggingface/tokenizers@0.2.0", "@huggingface/transformers@4.3.1", "js-tiktoken@1.0.21")

IDS = {
    "tokenizers": """
import { Tokenizer } from "@huggingface/tokenizers";
const tokenizer = new Tokenizer(read(`${folder}/tokenizer.json`), read(`${folder}/tokenizer_config.json`));
const encode = (line) => [...tokenizer.encode(line, { add_special_tokens: false }).ids].map(Number);
const decode = (ids) => tokenizer.decode(ids, { clean_up_tokenization_spaces: false });
""",
    "transformers": """
import { AutoTokenizer, env } from "@huggingface/transformers";
env.allowRemoteModels = false;
env.localModelPath = "";
const tokenizer = await AutoTokenizer.from_pretrained(folder);
const encode = (line) => [...tokenizer.encode(line, { add_special_tokens: false })].map(Number);
const decode = (ids) => tokenizer.decode(ids, { clean_up_tokenization_spaces: false });
""",
    "js-tiktoken": """
import { Tiktoken } from "js-tiktoken/lite";
const described = read(`${folder}/tiktoken.json`);
const table = readFileSync(`${folder}/${described.ranks}`, "utf-8");
const rows = table.split("\\n").filter(Boolean).map((line) => line.split(" "));
const bpe_ranks = rows.map(([token, rank]) => `! ${rank} ${token}`).join("\\n");
const tokenizer = new Tiktoken({ pat_str: described.pat_str_js, special_tokens: described.special_tokens, bpe_ranks });
const encode = (line) => tokenizer.encode(line, [], []);
const decode = (ids) => tokenizer.decode(ids);
""",
}
"""How each library opens a folder, and makes ids of a line and a line of ids."""

_SCRIPT = """
import {{ readFileSync }} from "node:fs";
const [folder, lines] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(path, "utf-8"));
{opened}
const rows_of = (line) => {{
  const ids = encode(line);
  return [ids, ids.length ? decode(ids) : ""];
}};
process.stdout.write(JSON.stringify(read(lines).map(rows_of)));
"""


def install(home: Path) -> Path:
    """A folder with npm's packages and a script a library; skips where that cannot be."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed; on Debian: apt-get install nodejs npm")
    (home / "package.json").write_text('{"type": "module", "private": true}', encoding="utf-8")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    made = subprocess.run(command, cwd=home, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"npm could not install {PACKAGES}: {made.stderr.strip()[-200:]}")
    for name, opened in IDS.items():
        (home / f"{name}.js").write_text(_SCRIPT.format(opened=opened), encoding="utf-8")
    return home


def rows_of(home: Path, name: str, folder: Path, lines: list[str], scratch: Path) -> list[tuple[list[int], Any]]:
    """Ids of each line, and the text of these ids, by the library of that name."""
    file = scratch / "lines.json"
    file.write_text(json.dumps(lines), encoding="utf-8")
    command = ["node", f"{name}.js", str(folder), str(file)]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-1000:]
    return [(ids, text) for ids, text in json.loads(done.stdout)]
