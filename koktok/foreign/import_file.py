"""What a file is, and which library runs it.

This file adds: suspicion. A format is told by content, not by name; and what the libraries pass over in silence (a piece
that stands there twice, an id that is given twice, an added token that gets another id than the file says) is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from koktok.errors import ArtifactError, UsageError
from koktok.files import path_of
from koktok.foreign.engines import Engine, HfEngine, SentencePieceEngine, TiktokenEngine, parsed
from koktok.foreign.imported import ImportedTokenizer, load_folder
from koktok.foreign.ours import own_json, own_model
from koktok.formats.folder import MARK
from koktok.formats.tiktoken import SPEC, Ranks, ranks_from_text
from koktok.formats.tiktoken import load as load_ranks
from koktok.text.patterns import PUBLISHED, TIKTOKEN
from koktok.tokenizer import Tokenizer
from koktok.vocab import check_sparse

__all__ = ["PATTERNS", "import_tokenizer", "load"]

PATTERNS: Final[Mapping[str, tuple[str, Mapping[str, int]]]] = {
    "gpt2": (TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}),
    "p50k_base": (TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}),
    "cl100k_base": (
        TIKTOKEN["cl100k"],
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": (PUBLISHED["o200k"], {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    "llama3": (PUBLISHED["llama3"], {}),
    "qwen2": (PUBLISHED["qwen2"], {}),
}
"""By name, what a ranks file does not hold: its pattern and special tokens, as tiktoken and the models' authors give them."""

BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
"""What is kept with a tokenizer.json for other readers."""

IN_A_FOLDER = ("tokenizer.json", "tokenizer.model", SPEC, "vocab.txt", "vocab.json")
"""Files looked for in a folder, best first."""


def load(path: str | Path) -> Tokenizer:
    """A tokenizer of any kind: of a folder that koktok wrote, or of another library, which then runs it.

    Parameters
    ----------
    path : str or Path
        A folder, or a file as `import_tokenizer` takes it, which has options besides.

    Raises
    ------
    ArtifactError
        When nothing is there, or what is there is damaged or of no kind that koktok reads.

    Examples
    --------
    >>> import tempfile
    >>> from koktok import Recipe, load
    >>> from koktok.vocab import Vocab
    >>> folder = Tokenizer(Recipe(), Vocab.bpe("한국", [], specials=Recipe().special_tokens)).save(tempfile.mkdtemp() + "/t")
    >>> load(folder).encode("한국").pieces, load(folder / "tokenizer.model").encode("한국").pieces
    (['한', '국'], ['한', '국'])
    """
    return import_tokenizer(path)


def import_tokenizer(
    path: str | Path,
    *,
    pattern: str | None = None,
    specials: Mapping[str, int] | None = None,
    lowercase: bool | None = None,
) -> Tokenizer:
    r"""Read a foreign tokenizer.

    Parameters
    ----------
    path : str or Path
        A SentencePiece model, a tokenizer.json, a vocab.txt of WordPiece, a vocab.json beside its merges.txt (GPT-2), a
        tiktoken ranks file, or a folder with one of them.
    pattern : str, optional
        For ranks: a name of `PATTERNS`, or a regular expression.
    specials : mapping of str to int, optional
        For ranks: special tokens with their ids; by default those that belong to the name of the pattern.
    lowercase : bool, optional
        For vocab.txt: fold case and strip accents, as "uncased" BERTs do (all Hangul then becomes jamo). By default
        what a tokenizer_config.json beside it says, else False.

    Returns
    -------
    Tokenizer
        koktok's own where koktok could have written the file; else an `ImportedTokenizer`.

    Raises
    ------
    ArtifactError
        When the file is missing, damaged, of another kind, or gives a piece or an id twice.
    UsageError
        When ranks come without a pattern, or a pattern with something else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "vocab.txt").write_text("[UNK]\n학교\n##에\n")
    ...     import_tokenizer(folder).encode("학교에 간다").pieces
    ['학교', '##에', '[UNK]']
    """
    place = path_of(path, "a tokenizer")
    if place.is_dir():
        if (place / MARK).is_file():
            return load_folder(place)
        found = [
            *(place / name for name in IN_A_FOLDER),
            *sorted(place.glob("*.model")),
            *sorted(place.glob("*.tiktoken")),
        ]
        file = next((file for file in found if file.is_file()), None)
        if file is None:
            raise ArtifactError(
                f"the folder `{place}` holds no tokenizer that koktok reads", hint=f"one of {', '.join(IN_A_FOLDER)}"
            )
        place = file
    try:
        data = place.read_bytes()
    except OSError as error:
        raise ArtifactError(f"`{place}` cannot be read: {error}", hint="koktok import FILE --out FOLDER") from error
    kind = _kind(place, data)
    if (pattern or specials) and kind != "ranks":
        raise UsageError(f"`{place}` is {_NAMES[kind]}; a pattern and special tokens are for tiktoken ranks")
    if lowercase is not None and kind != "wordpiece":
        raise UsageError(f"`{place}` is {_NAMES[kind]}; lowercase is for vocab.txt")
    engine: Engine
    match kind:
        case "json":
            text = _utf8(data, place)
            content = _checked_json(text, place)
            engine = HfEngine(text, _beside(place), where=str(place))
            own = own_json(text, content)  # behind the library, which refuses what is laid out as nothing
            if own is not None:
                return own
            _check_added(engine, content, place)
        case "model":
            engine = SentencePieceEngine(data, where=str(place))
            own = own_model(engine.proto, data)
            if own is not None:
                return own
        case "spec":
            engine = TiktokenEngine(load_ranks(place.parent), where=str(place))
        case "ranks":
            engine = TiktokenEngine(_ranks(place, data, pattern, specials), where=str(place))
        case "gpt2":
            engine = HfEngine(_gpt2_json(place), _beside(place), where=str(place))
        case _:
            text = _wordpiece_json(place, _utf8(data, place), lowercase=lowercase)
            engine = HfEngine(text, _beside(place), where=str(place))
    return ImportedTokenizer(engine, {"source": place.name})


_NAMES = {
    "json": "a tokenizer.json",
    "model": "a SentencePiece model",
    "spec": "a tiktoken export",
    "ranks": "a tiktoken ranks file",
    "gpt2": "a vocab.json with its merges.txt",
    "wordpiece": "a vocab.txt",
}


def _kind(place: Path, data: bytes) -> str:
    """What a file is, by its content."""
    if not data.strip():
        raise ArtifactError(f"`{place}` is empty", hint="fetch it again")
    if data[:4] == b"GGUF":
        raise ArtifactError(
            f"`{place}` is a GGUF; koktok writes those, and reads the files that they are made from",
            hint="koktok import tokenizer.json or tokenizer.model",
        )
    head = data.lstrip()[:1]
    if head == b"{":
        if place.name == SPEC:
            return "spec"
        return "gpt2" if place.name == "vocab.json" and (place.parent / "merges.txt").is_file() else "json"
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return "model"
    try:
        ranks_from_text(next(line for line in lines if line.strip()))
    except ArtifactError:
        pass
    else:
        return "ranks"  # Llama 3 calls its ranks tokenizer.model
    if place.suffix == ".model":
        return "model"
    if place.suffix == ".tiktoken":
        return "ranks"
    if "[UNK]" in lines:
        return "wordpiece"
    raise ArtifactError(
        f"`{place}` is none of: {', '.join(_NAMES.values())}",
        hint="a vocab.txt has a piece a line, [UNK] among them; a list of pieces alone does not say how text is cut",
    )


def _utf8(data: bytes, place: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArtifactError(f"`{place}` is no UTF-8: {error}", hint="fetch it again") from error


def _beside(place: Path) -> dict[str, bytes]:
    return {name: (place.parent / name).read_bytes() for name in BESIDE if (place.parent / name).is_file()}


def _checked_json(text: str, place: Path) -> dict[str, Any]:
    """The JSON, if it can be a tokenizer's; every key and every id once."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ArtifactError(f"`{place}` gives {twice!r} twice", hint="a piece has one id")
        return found

    content = parsed(text, str(place), distinct)
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or "vocab" not in model:
        raise ArtifactError(
            f"`{place}` is no tokenizer.json: it has no model with a vocab",
            hint="tokenizer.json of a Hugging Face folder",
        )
    decoder = content.get("decoder")
    if (decoder.get("type") if isinstance(decoder, dict) else decoder) == "Kiwi":
        raise ArtifactError(
            f"`{place}` is Kiwi's own format, which the tokenizers library does not read",
            hint=f"koktok report kiwi-sw:{place} reads it, and kiwipiepy.sw_tokenizer.SwTokenizer",
        )
    rows = model["vocab"]
    if isinstance(rows, dict):
        wrong = next(
            (piece for piece, i in rows.items() if not isinstance(i, int) or isinstance(i, bool) or i < 0), None
        )
        if wrong is not None:
            raise ArtifactError(f"`{place}` gives {wrong!r} the id {rows[wrong]!r}; ids are whole numbers from 0")
        taken: dict[int, str] = {}
        for piece, i in rows.items():
            if taken.setdefault(i, piece) != piece:
                raise ArtifactError(f"`{place}` gives the id {i} to {taken[i]!r} and to {piece!r}")
        check_sparse(taken, str(place))
    elif isinstance(rows, list):
        wrong = next((row for row in rows if not (isinstance(row, list) and row and isinstance(row[0], str))), None)
        if wrong is not None:
            raise ArtifactError(
                f"`{place}` has the row {str(wrong)[:60]} in its vocabulary; wanted a piece and its score"
            )
        pieces = Counter(row[0] for row in rows)
        if pieces and pieces.most_common(1)[0][1] > 1:
            raise ArtifactError(f"`{place}` gives the piece {pieces.most_common(1)[0][0]!r} twice")
        unknown = model.get("unk_id")
        if isinstance(unknown, int) and not 0 <= unknown < len(rows):
            raise ArtifactError(f"`{place}` has the unknown id {unknown}, and {len(rows)} pieces")
    return dict(content)


def _check_added(engine: HfEngine, content: Mapping[str, Any], place: Path) -> None:
    """The library numbers added tokens as it likes; then ids would not be the file's."""
    for token in content.get("added_tokens") or ():
        given, got = token["id"], engine.id_of(token["content"])
        if got != given:
            raise ArtifactError(
                f"`{place}` gives {token['content']!r} the id {given}, and the tokenizers library {got}",
                hint="ids of added tokens follow the vocabulary without a gap",
            )


def _ranks(place: Path, data: bytes, pattern: str | None, specials: Mapping[str, int] | None) -> Ranks:
    pattern = pattern or (place.stem if place.stem in PATTERNS else None)
    if pattern is None:
        raise UsageError(
            f"`{place}` holds ranks alone; which pattern cuts the text is not in it",
            hint=f"--pattern with one of {', '.join(PATTERNS)}, or a regular expression",
        )
    regex, known = PATTERNS.get(pattern, (pattern, {}))
    return Ranks(place.stem, regex, ranks_from_text(_utf8(data, place), str(place)), dict(specials or known))


def _gpt2_json(place: Path) -> str:
    """A tokenizer.json for vocab.json and merges.txt, as GPT-2's tokenizer reads them."""
    import tokenizers

    rows = _checked_json(f'{{"model": {{"vocab": {_utf8(place.read_bytes(), place)}}}}}', place)["model"]["vocab"]
    file = place.parent / "merges.txt"
    lines = [line for line in _utf8(file.read_bytes(), file).split("\n") if line and not line.startswith("#version")]
    merges = []
    for line in lines:
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise ArtifactError(
                f"`{file}` holds the line {line!r}, which is no pair of byte-level pieces",
                hint="koktok import the tokenizer.json of the same tokenizer",
            )
        merges.append((left, right))
    try:
        built = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=rows, merges=merges))
    except Exception as error:  # the library raises nothing narrower
        raise ArtifactError(f"`{file}` does not fit `{place}`: {error}", hint="fetch both again") from error
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens([token for token in ("<|endoftext|>",) if token in rows])
    return str(built.to_str(pretty=True)) + "\n"


def _wordpiece_json(place: Path, text: str, *, lowercase: bool | None) -> str:
    """A tokenizer.json for a vocab.txt, as BERT's tokenizer reads it."""
    import tokenizers
    from tokenizers.normalizers import BertNormalizer

    pieces = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    counts = Counter(pieces)
    if len(counts) < len(pieces):
        twice, times = counts.most_common(1)[0]
        lines = [str(i) for i, piece in enumerate(pieces, start=1) if piece == twice]
        raise ArtifactError(f"`{place}` has the piece {twice!r} {times} times, on lines {', '.join(lines[:5])}")
    config: dict[str, Any] = {}
    beside = place.parent / "tokenizer_config.json"
    if beside.is_file():
        try:
            config = dict(parsed(beside.read_text(encoding="utf-8"), str(beside)))
        except (ValueError, TypeError) as error:
            if isinstance(error, ArtifactError):
                raise
            raise ArtifactError(
                f"`{beside}` is no table in JSON: {error}", hint="remove it, or fetch it again"
            ) from error
    lower = bool(config.get("do_lower_case", False)) if lowercase is None else lowercase
    built = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            vocab={piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]", max_input_chars_per_word=100
        )
    )
    accents = config.get("strip_accents")
    built.normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
        strip_accents=None if accents is None else bool(accents),
        lowercase=lower,
    )
    built.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    built.decoder = tokenizers.decoders.WordPiece(prefix="##", cleanup=False)
    named = [config.get(f"{role}_token") for role in ("unk", "cls", "sep", "pad", "mask")]
    usual = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    wanted = [token if isinstance(token, str) else other for token, other in zip(named, usual, strict=True)]
    built.add_special_tokens([token for token in wanted if token in counts])
    if {"[CLS]", "[SEP]"} <= set(counts):
        built.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(token, pieces.index(token)) for token in ("[CLS]", "[SEP]")],
        )
    return str(built.to_str(pretty=True)) + "\n"
