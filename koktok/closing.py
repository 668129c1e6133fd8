"""The closing table of a training: our tokenizer beside plain SentencePiece, same words, same size.

This file adds: an honest yardstick. Both are measured on the words of the held-out lines; SentencePiece is trained with
its own defaults on the very words that ours was trained on. It solves words one by one, as ours does, so distinct words
weighted by their counts give the same figure as the whole text.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.count import Counts
from koktok.errors import CorpusError, InputError, MissingExtraError, VocabSizeError
from koktok.files import check_file, write_file
from koktok.vocab import WITH_UNKNOWN

if TYPE_CHECKING:
    from koktok.build import Training
    from koktok.progress import Talk
    from koktok.recipe import Recipe
    from koktok.recipe import Source as SourceRecord
    from koktok.text.sources import Source
    from koktok.tokenizer import Tokenizer

__all__ = ["Figures", "PlainSentencePiece", "figures_of"]


THREADS = 4
"""Of SentencePiece's trainer; fixed, because its Unigram gives other pieces for another number."""


@dataclass(frozen=True)
class Figures:
    """One row of the table.

    Parameters
    ----------
    name : str
    size : int
        Ids in the vocabulary.
    tokens_per_eojeol : float
        Fertility, micro: all tokens over all white-space words.
    unknown : float
        Share of tokens that are the unknown token.
    byte_fallback : float
        Share of tokens that are single bytes.
    """

    name: str
    size: int
    tokens_per_eojeol: float
    unknown: float
    byte_fallback: float


def figures_of(
    name: str,
    size: int,
    words: Counts,
    encode: Callable[[list[str]], Iterable[list[int]]],
    *,
    n_bytes: Collection[int],
    unk: int,
) -> Figures:
    """Measure one tokenizer on counted words.

    Parameters
    ----------
    name : str
    size : int
        Ids in the vocabulary.
    words : Counts
        Raw words with their leading spaces.
    encode : callable
        Words to the ids of each.
    n_bytes : collection of int
        Ids of single bytes.
    unk : int
        Id of the unknown token, or -1.

    Examples
    --------
    >>> words = Counts.from_mapping({"가": 1, " 가나": 2})
    >>> figures_of("letters", 9, words, lambda ws: [[3] * len(w.strip()) for w in ws], n_bytes=range(0), unk=-1)
    Figures(name='letters', size=9, tokens_per_eojeol=1.6666666666666667, unknown=0.0, byte_fallback=0.0)
    """
    tokens = unknown = fallback = eojeols = 0
    for ids, (word, n) in zip(encode(list(words.words)), words.items(), strict=True):
        tokens += n * len(ids)
        unknown += n * ids.count(unk)
        fallback += n * sum(i in n_bytes for i in ids)
        eojeols += n * sum(map(bool, word.split(" ")))  # one, or more where words are runs
    return Figures(name, size, tokens / max(1, eojeols), unknown / max(1, tokens), fallback / max(1, tokens))


def our_figures(name: str, tokenizer: Tokenizer, words: Counts) -> Figures:
    """The row of a koktok tokenizer; every word is encoded by itself, as it is inside any text."""
    return figures_of(
        name,
        tokenizer.vocab.size,
        words,
        lambda batch: (tokenizer.encode(word).ids for word in batch),
        n_bytes=tokenizer.vocab.fragment_ids,
        unk=tokenizer.vocab.unknown_id if tokenizer.vocab.kind in WITH_UNKNOWN else -1,
    )


class PlainSentencePiece:
    """SentencePiece with its defaults (nmt_nfkc, dummy prefix, split by white space, script and number), byte fallback on.

    Parameters
    ----------
    words : Counts
        Raw words; their leading spaces are dropped, SentencePiece puts its own prefix.
    model : "unigram" or "bpe"
    vocab_size : int
    character_coverage : float

    Raises
    ------
    VocabSizeError
        When it cannot train that size on these words.
    """

    def __init__(self, words: Counts, *, model: str, vocab_size: int, character_coverage: float) -> None:
        import sentencepiece

        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(f"{w.strip(' ')}\t{n}" for w, n in words.items() if w.strip(" ") and "\t" not in w),
                model_writer=written,
                input_format="tsv",
                model_type=model,
                vocab_size=vocab_size,
                character_coverage=character_coverage,
                byte_fallback=True,
                max_sentence_length=1 << 20,
                num_threads=THREADS,
                minloglevel=4,
            )
        except (RuntimeError, OSError, ValueError) as error:
            raise VocabSizeError(str(error).strip().splitlines()[-1][-200:]) from error
        self.processor: Any = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
        self.name = f"SentencePiece {'BPE' if model == 'bpe' else 'Unigram'}, its defaults"

    def figures(self, words: Counts) -> Figures:
        """Its row of the table."""
        first = self.processor.piece_to_id("<0x00>")
        return figures_of(
            self.name,
            len(self.processor),
            words,
            lambda batch: self.processor.encode([word.strip(" ") for word in batch]),
            n_bytes=range(first, first + 256),
            unk=self.processor.unk_id(),
        )

    def pieces(self, text: str) -> list[str]:
        """The text cut as it cuts it, the prefix shown as a space."""
        return [piece.replace("▁", " ") for piece in self.processor.encode(text, out_type=str)]


def run(
    sources: Sequence[Source],
    recipe: Recipe,
    out: Path,
    *,
    talk: Talk,
    user_dictionary: str | None = None,
    threads: int | None = None,
    cache: bool = True,
    compare: bool = True,
    log: str | None = None,
) -> None:
    """Train, measure, save, and print the closing table: what `koktok train` does behind its options.

    The trainer's log goes as JSON to the file `log`, or to stderr where `log` is "json"; a few lines of it go to stderr.

    Raises
    ------
    KoktokError
        As `koktok.build.train_tokenizer`; the folder is written last, so a failure leaves none.
    """
    from koktok.build import train_tokenizer
    from koktok.formats.card import model_card
    from koktok.train.summary import summary
    from koktok.waist import PEER_WORDS

    if log is not None and log != "json":  # what is wrong with its place is better told now than behind the training
        if not Path(log).absolute().parent.is_dir():
            raise InputError(f"there is no folder for the log `{log}`", hint="--log json")
        check_file(log, _is_log)
    made = train_tokenizer(
        sources, recipe, user_dictionary=user_dictionary, cache=None if cache else False, threads=threads, tell=talk
    )
    measured = made.reading.held if made.reading.held.total else made.reading.train
    talk("measure", 0, None)
    figures = [our_figures("koktok", made.tokenizer, measured)]
    plain: PlainSentencePiece | None = None
    refused = ""
    if compare and made.reading.pruned:
        refused = f"the text has more than {PEER_WORDS:,} distinct words, which take it too long"
    elif compare:
        options = recipe.train
        try:
            plain = PlainSentencePiece(
                made.reading.train,
                model="bpe" if options.model in ("bpe", "bpe-bytes") else "unigram",
                vocab_size=options.vocab_size,
                character_coverage=options.character_coverage,
            )
            figures.append(plain.figures(measured))
        except VocabSizeError as error:
            refused = error.message
    card = model_card(made, figures, licences_of(recipe_sources=made.tokenizer.recipe.sources))
    made.tokenizer.save(out, extra={"README.md": card})
    talk.__exit__(None, None, None)
    _print(made, figures, plain, refused, out)
    for line in summary(made.log):
        talk.note(line)
    if log is not None:
        write_log(log, {**made.log, "stages_seconds": made.seconds, "digest": made.tokenizer.vocab.digest()})


def run_frontier(
    sources: Sequence[Source],
    recipe: Recipe,
    out: Path,
    *,
    vocab_sizes: Sequence[int],
    talk: Talk,
    user_dictionary: str | None = None,
    threads: int | None = None,
    cache: bool = True,
) -> None:
    """What `koktok train --frontier` does: the curve as a table and a plot on stdout, and in files in the folder `out`.

    The folder gets frontier.md, frontier.json, the recipe, and frontier.png where the extra `plot` is installed.

    Raises
    ------
    KoktokError
        As `koktok.build.train_frontier`.
    """
    import json
    import tempfile

    from koktok.build import train_frontier
    from koktok.files import write_folder
    from koktok.formats.folder import MARK, TOKENIZER
    from koktok.frontier import draw, plot, to_dict, to_markdown
    from koktok.progress import stdout

    rows, against = train_frontier(
        sources,
        recipe,
        vocab_sizes=vocab_sizes,
        user_dictionary=user_dictionary,
        cache=None if cache else False,
        threads=threads,
        tell=talk,
    )
    files: dict[str, str | bytes] = {
        "frontier.md": to_markdown(rows, against),
        "frontier.json": json.dumps(to_dict(rows, against), ensure_ascii=False, indent=2) + "\n",
        MARK: recipe.to_toml(),
    }
    try:
        with tempfile.TemporaryDirectory() as folder:
            files["frontier.png"] = draw(rows, Path(folder) / "frontier.png", against).read_bytes()
    except MissingExtraError as error:
        talk.note(f"no frontier.png: {error}")
    write_folder(out, files, TOKENIZER)
    talk.__exit__(None, None, None)
    print(to_markdown(rows, against))
    stdout().print(plot(rows, against))


def write_log(target: str, content: dict[str, Any]) -> None:
    """A log as one line of JSON on stderr where `target` is "json", else into that file.

    Raises
    ------
    UsageError, InputError
        When there is a file that is no such log, or it cannot be written.
    """
    import json

    text = json.dumps(content, ensure_ascii=False)
    if target == "json":
        print(text, file=sys.stderr)
        return
    write_file(target, f"{text}\n".encode(), ours=_is_log)


def _is_log(file: Path) -> bool:
    """Whether a file is one that `write_log` wrote."""
    import json

    try:
        return bool({"stages_seconds", "digest"} <= json.loads(file.read_text(encoding="utf-8")).keys())
    except (OSError, ValueError, AttributeError):
        return False


def licences_of(recipe_sources: Iterable[SourceRecord]) -> dict[str, str]:
    """Licences of the sources that are known corpora."""
    from koktok.text.corpora import find

    known = {}
    for source in recipe_sources:
        with suppress(CorpusError):  # most sources are no corpora, and a broken recipe must not cost a training
            known[source.name] = find(source.name).licence
    return known


def _print(
    made: Training, figures: Sequence[Figures], plain: PlainSentencePiece | None, refused: str, out: Path
) -> None:
    """Table, sentences and signature on stdout, notes on stderr."""
    from koktok.progress import print_pieces, stderr, stdout, table

    held = made.reading.held.total
    unit = "words" if made.reading.runs is None else "sentences"
    where = f"{held:,} held-out {unit}" if held else "the training words: nothing was held out"
    rows = [
        (f.name, f"{f.size:,}", f"{f.tokens_per_eojeol:.3f}", f"{f.unknown:.3%}", f"{f.byte_fallback:.3%}")
        for f in figures
    ]
    console = stdout()
    console.print()
    table(f"Measured on {where}", ("tokenizer", "ids", "tokens/eojeol", "unknown", "byte fallback"), rows)
    if refused:
        console.print(f"SentencePiece, its defaults: not run: {refused}", markup=False)
    for line in made.reading.samples:
        console.print()
        print_pieces(_shown(made.tokenizer, line))
        if plain:
            print_pieces(plain.pieces(line))
    console.print()
    console.print(f"{out}: {made.tokenizer.vocab.kind}, {made.tokenizer.vocab.size:,} ids", markup=False)
    talk = stderr()
    for note in made.notes:
        talk.print(note, markup=False)
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in made.seconds.items())
    talk.print(
        f"{stages}; analysed {made.asked:,} words, {made.known:,} from the cache; peak memory {_peak(made.analyser_peak)}"
    )
    talk.print(f"signature: {made.tokenizer.vocab.digest()}", markup=False)


def _shown(tokenizer: Tokenizer, line: str) -> list[str]:
    """The pieces of a line as people read them: spelled bytes as the text they stand for."""
    encoding = tokenizer.encode(line)
    spelled = tokenizer.vocab.kind in ("bpe-bytes", "wordpiece-bytes")
    return [tokenizer.decode([i]) for i in encoding.ids] if spelled else encoding.pieces


def _peak(analysers: int) -> str:
    """Peak resident memory of this process, and of the analyser's beside it."""
    try:
        import resource
    except ImportError:  # Windows
        return "not known"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    own = f"{peak / (1 << 30 if sys.platform == 'darwin' else 1 << 20):.2f} GiB"
    return f"{own}, analyser processes {analysers / (1 << 30):.2f} GiB" if analysers else own


def print_estimate(sources: Sequence[Source], recipe: Recipe, threads: int | None = None) -> None:
    """What a training would do and cost, see `koktok.estimate`."""
    from koktok.estimate import estimate
    from koktok.progress import table

    found = estimate(sources, recipe, threads=threads)
    how = "counted" if found.counted == 1 else f"from {found.counted:.1%} of the text, by Heaps' law"
    files = [(source.name, sum(file.stat().st_size for file in source.paths if file.is_file())) for source in sources]
    rows = [(name, f"{size:,} bytes") for name, size in files]
    rows += [
        (f"eojeols ({how})", f"{found.eojeols:,}"),
        ("distinct words", f"{found.distinct:,}"),
        ("distinct words to train on", f"{found.trained:,}"),
        ("analysis, nothing cached, about", f"{found.seconds:,.0f} s in {found.analysers} processes"),
        ("memory, about", f"{found.memory / (1 << 30):.1f} GiB, and 0.35 GiB for each process of the analyser"),
        ("model, ids", f"{recipe.train.model}, {recipe.train.vocab_size:,}"),
        ("segmenter, policy", f"{recipe.segment.segmenter}, {recipe.segment.policy}"),
    ]
    table("Nothing was trained (--dry-run)", ("what", "how much"), rows)
