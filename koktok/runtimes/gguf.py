"""GGUF: a vocabulary for llama.cpp, alone or in the file of a model.

llama.cpp has no general engine, but a few built-in tokenizers (src/llama-vocab.cpp). A unigram vocabulary is its "t5"; BPE over
characters its "llama", which merges by the score of the merged piece, too, and has byte fallback; byte-level BPE its "gpt2",
which has patterns by name only, koktok's own not among them.

"t5" and "llama" write a space as ▁ (U+2581), so pieces get ▁ for every space; no piece holds a ▁ itself, and the flags that add
or drop spaces are off. `notes` lists the differences between llama.cpp and koktok for a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from koktok.errors import ArtifactError, MissingExtraError, asking
from koktok.files import open_regular, typed, write_file
from koktok.model.definition import Definition
from koktok.model.vocab import SPACE_MARK, VocabKind, splits
from koktok.runtimes.limits import first_that_holds, that_hold
from koktok.runtimes.sentencepiece.model_proto import charsmap, differences
from koktok.text.normalize import Normalizer
from koktok.text.patterns import LLAMA_CPP, PUBLISHED
from koktok.text.pretokenize import first_crossing

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of tokens, with SentencePiece's numbers and the names of `gguf.TokenType`."""

PATTERNS_OF_BYTE_LEVEL = PUBLISHED["gpt2"]
"""The pattern of Hugging Face's ByteLevel pre-tokenizer."""


@dataclass(frozen=True)
class GgufVocab:
    """The tokenizer in a GGUF."""

    model: Literal["t5", "llama", "gpt2"]
    pre: str
    tokens: tuple[str, ...]
    scores: tuple[float, ...]
    types: tuple[int, ...]
    roles: dict[str, int]
    merges: tuple[str, ...] = ()
    charsmap: bytes = b""
    add_space_prefix: bool = False
    remove_extra_whitespaces: bool = False
    add_bos: bool = False
    add_eos: bool = False

    def __post_init__(self) -> None:
        if len(self.types) != len(self.tokens) or len(self.scores) not in (0, len(self.tokens)):
            raise ArtifactError(
                f"expected a type and a score for each of {len(self.tokens)} tokens, got {len(self.types)} and {len(self.scores)}"
            )
        if len(set(self.tokens)) != len(self.tokens) or "" in self.tokens:
            twice = next(token for i, token in enumerate(self.tokens) if not token or token in self.tokens[:i])
            raise ArtifactError(f"the token {twice!r} is empty or occurs twice; llama.cpp loads no such file")
        wrong = [role for role, i in self.roles.items() if not 0 <= i < len(self.tokens)]
        if wrong:
            raise ArtifactError(f"the id {self.roles[wrong[0]]} of `{wrong[0]}` is outside the vocabulary")


MODEL_NAMES: Final[Mapping[VocabKind, Literal["t5", "llama", "gpt2"]]] = {
    "unigram": "t5",
    "bpe": "llama",
    "bpe-bytes": "gpt2",
    "syllable": "llama",  # BPE without merges
}
"""llama.cpp's tokenizer for each kind of vocabulary that it can run."""


def refuses(one: Definition) -> str:
    """The reason why llama.cpp cannot run a tokenizer, or '' if it can."""
    return first_that_holds(_obstacles(one), one.vocab.kind)


def _obstacles(one: Definition) -> Iterator[tuple[str, object]]:
    """The cheapest to test first."""
    model = MODEL_NAMES.get(one.vocab.kind)
    yield "gguf-jamo", one.jamo
    yield "gguf-kind", model is None
    if model == "gpt2":
        yield "gguf-pattern", (one.pattern.regex, False) not in LLAMA_CPP
        return
    yield "threes", not one.pattern.bigram
    yield "crossing", first_crossing(one.vocab.pieces, one.pattern)
    yield "gguf-unknown", "unk" not in one.role_ids
    yield "gguf-end", "eos" not in one.role_ids


def table_of(one: Definition) -> GgufVocab:
    """The table of a trained tokenizer; a text begins and ends with the special tokens of the style.

    Examples
    --------
    >>> from koktok.model.vocab import Vocab
    >>> vocab = Vocab.bpe(" 가나", [" 가"], specials=["<unk>", "</s>"])
    >>> table = table_of(Definition(vocab))
    >>> table.model, table.tokens[256:], table.scores[256:]
    ('llama', ('▁', '가', '나', '▁가', '<unk>', '</s>'), (0.0, -1.0, -2.0, -3.0, 0.0, 0.0))
    """
    vocab, reason = one.vocab, refuses(one)
    if reason:
        hint = "koktok train TEXT --model bpe --out FOLDER" if vocab.kind == "bpe-bytes" else ""
        raise ArtifactError(f"no GGUF: {reason}", hint=hint)
    roles = dict(one.role_ids)
    # llama.cpp adds one token before a text, that of the role bos, and one after it, eos.
    add_bos, add_eos = (ids == [roles.get(role)] for role, ids in zip(("bos", "eos"), one.frame, strict=True))
    model = MODEL_NAMES[vocab.kind]
    if model == "gpt2":
        return GgufVocab(
            model=model,
            pre=LLAMA_CPP[one.pattern.regex, False],
            tokens=vocab.tokens,
            scores=(),
            types=(NORMAL,) * len(vocab.pieces) + (CONTROL,) * len(vocab.specials),
            roles=dict(sorted(roles.items())),
            merges=tuple(" ".join(pair) for pair in splits(vocab.pieces)),
            add_space_prefix=bool(one.prefix),
            add_bos=add_bos,
            add_eos=add_eos,
        )
    # For a role without a token llama.cpp uses a fixed id, which is a byte here.
    roles.setdefault("bos", roles["eos"])
    roles.setdefault("pad", roles["eos"])
    scores = vocab.scores or tuple(float(-rank) for rank in range(len(vocab.pieces)))
    return GgufVocab(
        model=model,
        pre="default",
        tokens=tuple(token.replace(" ", SPACE_MARK) for token in vocab.tokens),
        scores=(0.0,) * vocab.n_bytes + scores + (0.0,) * len(vocab.specials),
        types=(BYTE,) * vocab.n_bytes
        + (NORMAL,) * len(vocab.pieces)
        + tuple(UNKNOWN if vocab.special_ids[t] == roles["unk"] else CONTROL for t in vocab.specials),
        roles=dict(sorted(roles.items())),
        charsmap=charsmap(one.normalizer) if model == "t5" else b"",
        add_space_prefix=bool(one.prefix),
        add_bos=add_bos,
        add_eos=add_eos,
    )


def notes(table: GgufVocab, normalizer: Normalizer | None = None) -> list[str]:
    """The differences between llama.cpp with this file and koktok, in sentences."""
    raw = differences(normalizer) if table.charsmap and normalizer is not None else ()
    before = (("unknown", table.model == "t5"), ("no-normalizer", not table.charsmap))
    after = (
        ("prefix", table.add_space_prefix and table.model != "gpt2"),
        ("bytes-prefix", table.add_space_prefix and table.model == "gpt2"),
        ("user-defined", USER_DEFINED in table.types),
        ("mark", table.model != "gpt2"),
        ("classes", table.model == "gpt2"),
        ("letters", table.pre == "exaone-moe"),
        ("numbers", table.pre == "superbpe"),
        ("no-frame", not (table.add_bos or table.add_eos)),
        ("begun", table.add_bos),
        ("ended", table.add_eos),
    )
    return [*that_hold("gguf", before), *(f"not normalized: {line}" for line in raw), *that_hold("gguf", after)]


def write(table: GgufVocab, path: str | Path, *, name: str = "koktok", force: bool = False) -> Path:
    """Write a file with the vocabulary alone."""
    return write_file(path, lambda new: _write(table, new, name), ours=may_be_ours, force=force, what="vocabulary")


BY_ID = ("token_embd.weight", "output.weight", "per_layer_token_embd.weight")
"""Tensors with a row for each id, as llama.cpp names them."""

ALONE = (
    "a vocabulary alone: llama.cpp's tools for vocabularies read it (llama-tokenize), but no model can generate with it; "
    "`--into MODEL.gguf` puts the tokenizer into the file of a model"
)


def fitted(table: GgufVocab, model: str | Path) -> GgufVocab:
    """The table with as many tokens as the model has rows, as llama.cpp requires.

    A model often has some more rows than its tokenizer has ids, for speed; they get names that no text reaches.
    """
    return _fitted(table, _model(model), model)


def _fitted(table: GgufVocab, reader: Any, model: str | Path) -> GgufVocab:
    shapes = {tensor.name: tuple(map(int, tensor.shape)) for tensor in reader.tensors}
    if wrong := next((name for name in BY_ID if len(shapes.get(name, (0, 0))) != 2), ""):
        raise ArtifactError(f"`{model}`: expected a row for each id in `{wrong}`, got the shape {shapes[wrong]}")
    sizes = {name: shapes[name][1] for name in BY_ID if name in shapes}
    if BY_ID[0] not in sizes:
        raise ArtifactError(f"`{model}` holds no model: it has no tensor `{BY_ID[0]}`")
    rows, tokens = min(sizes.values()), len(table.tokens)
    if rows < tokens or rows != max(sizes.values()):
        actual = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise ArtifactError(
            f"`{model}` has embeddings for other ids ({actual}) than the tokenizer ({tokens:,})",
            hint="model.resize_token_embeddings(len(tokenizer)) before it is converted, and train it with this tokenizer",
        )
    more = tuple(f"[PAD{i}]" for i in range(tokens, rows))
    return replace(
        table,
        tokens=(*table.tokens, *more),
        scores=(*table.scores, *(0.0 for _ in more)) if table.scores else (),
        types=(*table.types, *(CONTROL for _ in more)),
    )


def write_into(table: GgufVocab, model: str | Path, path: str | Path, *, chat_template: str = "") -> Path:
    """Write a copy of a model's file with this tokenizer; its tensors stay the same, byte for byte.

    The keys of the old tokenizer are removed, a chat template included; every other key stays.
    """
    reader = _model(model)
    table = _fitted(table, reader, model)
    return write_file(path, lambda new: _write_into(table, reader, new, chat_template), ours=lambda _: False)


def _reader(path: str | Path, hint: str) -> Any:
    """The library's reader of a GGUF."""
    with open_regular(Path(path), "a GGUF", hint) as file:
        if file.read(4) != b"GGUF":
            raise ArtifactError(f"`{path}` is not GGUF, which begins with these letters", hint=hint)
    library = _library()
    with asking("gguf", str(path), hint):
        return library.GGUFReader(path)


def _model(path: str | Path) -> Any:
    """A reader of a whole model."""
    hint = "python convert_hf_to_gguf.py FOLDER-OF-THE-MODEL --outfile MODEL.gguf (of llama.cpp)"
    reader = _reader(path, hint)
    with asking("gguf", str(path), hint):
        architecture, count = reader.get_field("general.architecture"), reader.get_field("split.count")
        name, parts = architecture and architecture.contents(), int(count.contents()) if count else 1
    if not isinstance(name, str):
        raise ArtifactError(f"`{path}`: expected a string as `general.architecture`, got {name!r}", hint=hint)
    if parts > 1:
        raise ArtifactError(f"`{path}` is a part of a model", hint=f"llama-gguf-split --merge {typed(path)} WHOLE.gguf")
    if max((tensor.data_offset + tensor.n_bytes for tensor in reader.tensors), default=0) > Path(path).stat().st_size:
        raise ArtifactError(f"`{path}` is cut short", hint="fetch or convert it again")
    return reader


def _write_into(table: GgufVocab, reader: Any, path: Path, chat_template: str) -> None:
    architecture = reader.get_field("general.architecture").contents()
    size = f"{architecture}.vocab_size"
    writer = _library().GGUFWriter(path, architecture, endianess=reader.endianess)
    try:
        for name, field in reader.fields.items():
            if name not in ("general.architecture", size) and not name.startswith(("GGUF.", "tokenizer.")):
                kind, inner = field.types[0], field.types[-1] if len(field.types) > 1 else None
                writer.add_key_value(name, field.contents(), kind, sub_type=inner)
        writer.add_vocab_size(len(table.tokens))
        add_table(writer, table)
        if chat_template:
            writer.add_chat_template(chat_template)
        for tensor in reader.tensors:
            data = tensor.data
            writer.add_tensor_info(tensor.name, data.shape, data.dtype, data.nbytes, tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for tensor in reader.tensors:
            writer.write_tensor_data(tensor.data, tensor_endianess=reader.endianess)
    finally:
        writer.close()


def may_be_ours(file: Path) -> bool:
    """Whether a GGUF begins like those of `write`: no tensors, and no keys of a model before the vocabulary."""
    begin = ("general.architecture", "general.name", "llama.vocab_size", "tokenizer.ggml.model")
    try:
        reader = _reader(file, "")
    except ArtifactError:
        return False
    names = [name for name in reader.fields if not name.startswith("GGUF.")]
    return not reader.tensors and tuple(names[: len(begin)]) == begin


def _write(table: GgufVocab, path: Path, name: str) -> None:
    writer = _library().GGUFWriter(path, "llama")  # required by the format; the tokenizer does not depend on it
    try:
        writer.add_name(name)
        writer.add_vocab_size(len(table.tokens))
        add_table(writer, table)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
    finally:
        writer.close()


def add_table(writer: Any, table: GgufVocab) -> None:
    """Write the keys of a tokenizer with a `gguf.GGUFWriter`."""
    writer.add_tokenizer_model(table.model)
    writer.add_tokenizer_pre(table.pre)
    writer.add_token_list(list(table.tokens))
    if table.scores:
        writer.add_token_scores(list(table.scores))
    writer.add_token_types(list(table.types))
    if table.model == "gpt2":
        writer.add_token_merges(list(table.merges))
    for role, i in table.roles.items():
        getattr(writer, f"add_{role}_token_id", lambda i: writer.add_uint32("tokenizer.ggml.cls_token_id", i))(i)
    writer.add_add_bos_token(table.add_bos)
    writer.add_add_eos_token(table.add_eos)
    writer.add_add_space_prefix(table.add_space_prefix)
    if table.model != "gpt2":
        writer.add_remove_extra_whitespaces(table.remove_extra_whitespaces)
    if table.charsmap:
        writer.add_precompiled_charsmap(table.charsmap)


def read(path: str | Path) -> GgufVocab:
    """Read the vocabulary of a GGUF."""
    hint = "koktok export FOLDER --to gguf --out FILE.gguf"
    reader = _reader(path, hint)
    with asking("gguf", str(path), hint):
        get = {}
        for key, field in reader.fields.items():
            if key.startswith("tokenizer.ggml."):
                get[key.removeprefix("tokenizer.ggml.")] = value = field.contents()
                if isinstance(value, list) and len(value) < len(field.data):  # the library reads what there is
                    raise ArtifactError(f"`{path}` is cut short: `{key}` is incomplete", hint=hint)
        roles = {
            role: int(get[key])
            for role in ("bos", "cls", "eos", "mask", "pad", "unk")
            if (key := f"{'unknown' if role == 'unk' else 'padding' if role == 'pad' else role}_token_id") in get
        }
        if "seperator_token_id" in get:  # so spelled in the format
            roles["sep"] = int(get["seperator_token_id"])
        return GgufVocab(
            model=get["model"],
            pre=get.get("pre", "default"),
            tokens=tuple(get["tokens"]),
            scores=tuple(get.get("scores", ())),
            types=tuple(get["token_type"]),
            roles=dict(sorted(roles.items())),
            merges=tuple(get.get("merges", ())),
            charsmap=bytes(x & 0xFF for x in get.get("precompiled_charsmap", ())),
            add_space_prefix=bool(get.get("add_space_prefix", False)),
            remove_extra_whitespaces=bool(get.get("remove_extra_whitespaces", False)),
            add_bos=bool(get.get("add_bos_token", False)),
            add_eos=bool(get.get("add_eos_token", False)),
        )


def is_gguf(file: Path) -> bool:
    """Whether a file is a GGUF, by its name or its first bytes."""
    with file.open("rb") as opened:
        return file.suffix == ".gguf" or opened.read(4) == b"GGUF"


def _library() -> Any:
    try:
        import gguf
    except ImportError as error:
        raise MissingExtraError("gguf", "gguf") from error
    return gguf
