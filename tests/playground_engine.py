"""The playground's engine.js in node, a process of its own: a line of JSON for a line of JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from conftest import ROOT

from koktok import Tokenizer
from koktok.report.playground.payload import payload, tables

SCRIPT = """
import { createInterface } from "node:readline";
const { Tokenizer } = await import(process.argv[1]);
let tokenizer;
const asked = {
  load: ([made, tables]) => ((tokenizer = new Tokenizer(made, tables)), tokenizer.size),
  encode: (lines) => lines.map((line) => {
    const { ids, spans } = tokenizer.encode(line), special = tokenizer.encode(line, { allowed: "all" });
    return [ids, spans, special.ids, special.spans, tokenizer.decode(ids), tokenizer.normalize(line)];
  }),
  ids: (lines) => lines.map((line) => tokenizer.encode(line).ids),
  nBest: ([pretoken, n]) => tokenizer.model.nBest(pretoken, n).map(({ ids, spans, score }) => [ids, spans, score]),
  replay: ([pretoken]) => tokenizer.model.replay(pretoken).map(({ rank, at, parts }) => [rank, at, parts]),
  stream: (ids) => {
    const stream = tokenizer.stream();
    return [...ids.map((id) => stream.push(id)), stream.finish()];
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const [what, value] = JSON.parse(line);
  process.stdout.write(JSON.stringify(asked[what](value)) + "\\n");
}
"""


class PlaygroundEngine:
    """The engine with one tokenizer at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[PlaygroundEngine | None]:
        """A running engine; None where node is not installed."""
        if not shutil.which("node"):
            yield None
            return
        engine = (ROOT / "koktok" / "report" / "playground" / "engine.js").as_uri()
        command = ["node", "--input-type=module", "-e", SCRIPT, engine]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
            yield cls(process)

    def ask(self, what: str, value: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([what, value]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def load(self, tokenizer: Tokenizer) -> None:
        assert self.ask("load", [payload(tokenizer), tables()]) == tokenizer.vocab.size

    def same(self, tokenizer: Tokenizer, lines: Sequence[str]) -> None:
        """Ids, offsets, special tokens where they are allowed, the decoded and the normalized text are those of Python."""
        for line, row in zip(lines, self.ask("encode", lines), strict=True):
            plain, special = tokenizer.encode(line), tokenizer.encode(line, allowed_special="all")
            spans = [[list(span) for span in encoding.offsets] for encoding in (plain, special)]
            wanted = [
                plain.ids,
                spans[0],
                special.ids,
                spans[1],
                tokenizer.decode(plain.ids),
                tokenizer.normalize(line),
            ]
            assert row == wanted, line
