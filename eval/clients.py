"""The table of clients: what each does with folders of each kind, as its users call it.

    python -m eval.clients [--lines 300] [--javascript]

Small tokenizers of every kind are trained on corpora/mini with `--style roberta`, which puts a space before the first word
and trims offsets; for chat and constrained generation they have `--style gpt --chat-template chatml`, and no such space. A
cell is `yes`, how many of how many went wrong, `refused` (the error goes to stderr), or a dash where koktok writes no such
file. Wanted besides koktok's extras: pip install openvino-tokenizers onnxruntime onnxruntime-extensions onnx cyllama
llguidance xgrammar; with --javascript, node. What is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from koktok import Recipe, Tokenizer
from koktok.corpora.paths import as_source
from koktok.errors import KoktokError
from koktok.formats import gguf, tiktoken
from koktok.formats.styles import restyle
from koktok.pipeline import train
from koktok.progress import counted
from koktok.text.sources import read_lines

ROOT = Path(__file__).resolve().parent.parent
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "superwords": {"superwords": 0.3},
    "bpe": {"model": "bpe"},
    "bpe-bytes": {"model": "bpe-bytes"},
    "wordpiece": {"model": "wordpiece", "vocab_size": 4000},
    "jamo": {"jamo": True},
}
JSON_TEXT = ['{"이름": "홍길동"}', '{"값": ["뷁", 1]}']
SCHEMA = '{"type": "object"}'

Count = tuple[int, int]
"""How many went wrong, of how many."""


class Folder:
    """A folder, the tokenizer in it, and the same as transformers opens it."""

    def __init__(self, tokenizer: Tokenizer, place: Path, lines: list[str]) -> None:
        from transformers import AutoTokenizer

        self.ours, self.place = tokenizer, tokenizer.save(place)
        self.auto: Any = AutoTokenizer.from_pretrained(str(place))
        self.lines = [line for line in map(tokenizer.normalize, lines) if line]
        self.wanted = [tokenizer.encode(line).ids for line in self.lines]

    def differ(self, rows: Iterable[Iterable[int]]) -> Count:
        """Lines with other ids."""
        return sum(list(map(int, row)) != ids for row, ids in zip(rows, self.wanted, strict=True)), len(self.lines)


def ids(folder: Folder) -> Count:
    return folder.differ(folder.auto(folder.lines, add_special_tokens=False, split_special_tokens=True)["input_ids"])


def words_apart(folder: Folder) -> Count:
    words = [line.split() for line in folder.lines]
    rows = folder.auto(words, is_split_into_words=True, add_special_tokens=False)["input_ids"]
    running = folder.auto([" ".join(row) for row in words], add_special_tokens=False)["input_ids"]
    return sum(a != b for a, b in zip(rows, running, strict=True)), len(rows)


def names(folder: Folder) -> Count:
    """Words whose tokens do not cover exactly them, as run_ner.py asks for them."""
    wrong = of = 0
    for line in folder.lines:
        words = line.split()
        found = folder.auto(words, is_split_into_words=True, return_offsets_mapping=True)
        spans: dict[int, list[tuple[int, int]]] = {}
        for word, span in zip(found.word_ids(), found["offset_mapping"], strict=True):
            if word is not None:
                spans.setdefault(word, []).append(span)
        for k, word in enumerate(words):
            begin, end = (min(a for a, _ in spans[k]), max(b for _, b in spans[k])) if k in spans else (-1, -1)
            wrong += (begin, end) != (0, len(word))
            of += 1
    return wrong, of


def answers(folder: Folder) -> Count:
    """Words of a context that the tokens over them do not give back alone, as run_qa.py cuts an answer out."""
    wrong = of = 0
    for line in folder.lines:
        found = folder.auto("누가 무엇을 합니까?", line, return_offsets_mapping=True)
        spans = [s for s, part in zip(found["offset_mapping"], found.sequence_ids(), strict=True) if part == 1]
        at = 0
        for word in line.split():
            begin = line.index(word, at)
            at = begin + len(word)
            over = [span for span in spans if span[0] < at and span[1] > begin]
            wrong += not over or line[over[0][0] : over[-1][1]] != word
            of += 1
    return wrong, of


def whole_words(folder: Folder) -> Count:
    """Eojeols that transformers' own collator does not mask as a whole."""
    import numpy as np
    from transformers import DataCollatorForLanguageModeling as Collator

    wrong = of = 0
    for line in folder.lines:
        text = " ".join(line.split())
        row = folder.auto(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        special = np.array([row["special_tokens_mask"]])
        found, _ = Collator._calc_word_ids_and_prob_mask(np.array([row["offset_mapping"]]), special)
        spans = folder.ours.encode(text).offsets
        word_of = [text[:end].count(" ") for _, end in spans]
        masked = found[0][special[0] == 0].tolist()
        for word in range(text.count(" ") + 1):
            inside = {group for group, k in zip(masked, word_of, strict=True) if k == word}
            beside = {group for group, k in zip(masked, word_of, strict=True) if k != word}
            wrong += len(inside) != 1 or bool(inside & beside)
            of += 1
    return wrong, of


def streaming(folder: Folder) -> Count:
    """Lines that `DecodeStream` of tokenizers, as vLLM and others use it, gives back otherwise."""
    from tokenizers import Tokenizer as Library
    from tokenizers.decoders import DecodeStream

    library, wrong = Library.from_file(str(folder.place / "tokenizer.json")), 0
    for row in folder.wanted:
        stream = DecodeStream(skip_special_tokens=False)
        text = "".join(stream.step(library, i) or "" for i in row)
        wrong += text != library.decode(row, skip_special_tokens=False)
    return wrong, len(folder.wanted)


def speaking(folder: Folder) -> Folder:
    """The same pieces as models that generate have them: chat, and no space before the first word."""
    ours = folder.ours
    recipe = ours.recipe.changed(pretokenize={"prefix_space": False})
    chat = restyle(Tokenizer(recipe, ours.vocab), "gpt", chat_template="chatml")
    return Folder(chat, folder.place.with_name(f"{folder.place.name}-chat"), folder.lines)


def chat(folder: Folder) -> Count:
    """Chat folders whose assistant mask is not the assistant's words, or whose end of a turn is no end of generation."""
    made = speaking(folder)
    auto, place = made.auto, made.place
    talk = [{"role": "user", "content": "안녕?"}, {"role": "assistant", "content": "네, 안녕하세요."}]
    found = auto.apply_chat_template(talk, return_dict=True, return_assistant_tokens_mask=True)
    said = [i for i, mine in zip(found["input_ids"], found["assistant_masks"], strict=True) if mine]
    ends = json.loads((place / "generation_config.json").read_text(encoding="utf-8"))["eos_token_id"]
    good = auto.decode(said).replace(" ", "") == "네,안녕하세요.<|im_end|>" and said[-1] in ends
    return int(not good or said[-1] != auto.eos_token_id), 1


def sentencepiece(folder: Folder) -> Count:
    from sentencepiece import SentencePieceProcessor

    model = (folder.place / "tokenizer.model").read_bytes()
    return folder.differ(SentencePieceProcessor(model_proto=model).encode(folder.lines))


def ranks(folder: Folder) -> Path:
    place = folder.place.with_name(f"{folder.place.name}-ranks")
    place.mkdir(exist_ok=True)
    made = tiktoken.ranks_of(folder.ours.vocab, folder.ours.pattern, "mine")
    for name, text in tiktoken.files(made, javascript=folder.ours.pattern.javascript).items():
        (place / name).write_text(text, encoding="utf-8")
    return place


def spaced(folder: Folder) -> list[str]:
    """Lines for what puts no space before the first word."""
    return [" " * folder.ours.prefix + line for line in folder.lines]


def tiktokens(folder: Folder) -> Count:
    return folder.differ(tiktoken.load(ranks(folder)).encoding().encode_ordinary_batch(spaced(folder)))


def llama_cpp(folder: Folder) -> Count:
    from llama_cpp import llama_cpp_ids

    ours = folder.ours
    table = gguf.table_of(ours.vocab, ours.pattern, ours.normalizer, prefix=ours.prefix)
    return folder.differ(llama_cpp_ids(gguf.write(table, folder.place.with_suffix(".gguf")), folder.lines))


def openvino(folder: Folder) -> Count:
    import openvino
    from openvino_tokenizers import convert_tokenizer

    run = openvino.compile_model(convert_tokenizer(folder.auto, add_special_tokens=False))
    return folder.differ(run([line])["input_ids"][0] for line in folder.lines)


def onnx(folder: Folder) -> Count:
    from onnxruntime_extensions import OrtPyFunction, gen_processing_models

    run = OrtPyFunction(gen_processing_models(folder.auto, pre_kwargs={})[0])
    return folder.differ(run([line])[0][0] for line in folder.lines)


def guidance(folder: Folder) -> Count:
    """Legal JSON that a mask of llguidance refuses."""
    import llguidance

    folder = speaking(folder)
    library = llguidance.LLTokenizer((folder.place / "tokenizer.json").read_text(encoding="utf-8"))
    grammar = llguidance.LLMatcher.grammar_from_json_schema(SCHEMA)
    wrong = 0
    for text in JSON_TEXT:
        matcher = llguidance.LLMatcher(library, grammar)
        row = folder.ours.encode(text).ids
        wrong += matcher.validate_tokens(row) != len(row)
    return wrong, len(JSON_TEXT)


def xgrammar(folder: Folder) -> Count:
    """Legal JSON that a mask of xgrammar refuses."""
    import xgrammar as library

    folder = speaking(folder)
    info = library.TokenizerInfo.from_huggingface(folder.auto, vocab_size=folder.ours.vocab.size)
    grammar = library.GrammarCompiler(info).compile_json_schema(SCHEMA)
    wrong = 0
    for text in JSON_TEXT:
        matcher = library.GrammarMatcher(grammar)
        wrong += not all(matcher.accept_token(i) for i in folder.ours.encode(text).ids)
    return wrong, len(JSON_TEXT)


def javascript(home: Path, name: str) -> Callable[[Folder], Count]:
    def run(folder: Folder) -> Count:
        from javascript import rows_of

        place, given = (ranks(folder), spaced(folder)) if name == "js-tiktoken" else (folder.place, folder.lines)
        return folder.differ(row for row, _ in rows_of(home, name, place, given, home))

    return run


CLIENTS: dict[str, tuple[str, Callable[[Folder], Count]]] = {
    "ids": ("transformers", ids),
    "`is_split_into_words=True`: lines": ("transformers", words_apart),
    "tagging (`word_ids`, offsets): words": ("transformers", names),
    "extraction (offsets): words": ("transformers", answers),
    "`whole_word_mask=True`: eojeols": ("transformers", whole_words),
    "chat: assistant mask, end of a turn": ("transformers", chat),
    "`DecodeStream`: lines": ("tokenizers", streaming),
    "tokenizer.model: ids": ("sentencepiece", sentencepiece),
    "ranks: ids": ("tiktoken", tiktokens),
    "llama.cpp, `--into`: ids": ("cyllama", llama_cpp),
    "OpenVINO: ids": ("openvino-tokenizers", openvino),
    "ONNX: ids": ("onnxruntime-extensions", onnx),
    "legal JSON": ("llguidance", guidance),
    "legal JSON ": ("xgrammar", xgrammar),
}
"""What is asked, the package whose version is shown, and who asks."""


def cell(ask: Callable[[Folder], Count], folder: Folder) -> str:
    """`yes`, how many went wrong, or why there is nothing to count."""
    try:
        wrong, of = ask(folder)
    except (KoktokError, OSError) as error:  # koktok writes no such file, and says why
        print(f"    {error}", file=sys.stderr)
        return "–"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"    {type(error).__name__}: {' '.join(str(error).split())[:300]}", file=sys.stderr)
        return "refused"
    return "yes" if not wrong else f"{wrong:,} of {of:,} wrong"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m eval.clients", description=__doc__.split("\n")[0])
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--javascript", action="store_true", help="npm installs half a gigabyte for it")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))  # how llama.cpp and node are run stands there
    warnings.simplefilter("ignore")
    mini = as_source("corpus:mini")
    lines = list(read_lines(mini))
    lines = lines[:: max(1, len(lines) // given.lines)]
    asked = {name: row for name, row in CLIENTS.items() if find_spec(row[0].replace("-", "_"))}
    with tempfile.TemporaryDirectory() as place:
        if given.javascript:
            from javascript import PACKAGES, install

            (Path(place) / "npm").mkdir()
            home = install(Path(place) / "npm")
            for package, name in zip(PACKAGES, ("tokenizers", "transformers", "js-tiktoken"), strict=True):
                asked[f"{package}: ids"] = ("", javascript(home, name))
        table: dict[str, list[str]] = {name: [] for name in asked}
        for number, (kind, changes) in enumerate(KINDS.items()):
            recipe = Recipe().changed(**{"vocab_size": 2300, "holdout": 0.0, "style": "roberta", **changes})
            folder = Folder(train([mini], recipe).tokenizer, Path(place) / str(number), lines)
            for name, (_, ask) in asked.items():
                table[name].append(cell(ask, folder))
                print(kind, name, table[name][-1], file=sys.stderr, flush=True)
    print(f"| client | {' | '.join(f'`{kind}`' for kind in KINDS)} |\n|{'---|' * (len(KINDS) + 1)}")
    for name, row in table.items():
        package = asked[name][0]
        print(f"| {name}{f' ({package} {version(package)})' if package else ''} | {' | '.join(row)} |")
    print(f"\n{counted(len(lines), 'line')} of corpora/mini, normalized.")


if __name__ == "__main__":
    main()
