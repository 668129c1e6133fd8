"""The closing table of a training: our tokenizer beside plain SentencePiece, same words, same size.

This file adds: an honest yardstick. All are measured on the words of the held-out lines, cut by the analyser; SentencePiece
is trained with its own defaults on the very words that ours was trained on. It solves words one by one, as ours does, so
distinct words weighted by their counts give the same figure as the whole text.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.count import Counts
from koktok.errors import CorpusError, InputError, MissingExtraError, VocabSizeError
from koktok.estimate import ANALYSED
from koktok.files import check_file, write_file
from koktok.foreign.koktok_adapter import Own
from koktok.foreign.sentencepiece_adapter import SentencePiece
from koktok.foreign.trivial import open_trivial
from koktok.metrics.silver import Silver, SilverFigures

if TYPE_CHECKING:
    from koktok.build import Training
    from koktok.count.counting import Tell
    from koktok.progress import Talk
    from koktok.recipe import Recipe
    from koktok.recipe import Source as SourceRecord
    from koktok.text.sources import Source
    from koktok.tokenizer import Tokenizer

__all__ = ["ClosingRow", "PlainSentencePiece", "our_row"]


MEANING = (
    "Fewer tokens make text shorter. F1 is silver: how well the borders inside words meet the morphemes that the analyser (no "
    "human) finds, between syllables, and over all gaps; josa and eomi are the shares of its borders before particles and "
    "endings that are cut."
)
NO_BORDERS = "Fewer tokens make text shorter. Nobody cut the held-out words, so there is no boundary F1."
"""One sentence under the table."""

BOUND_TO = 0.95
"""From so many boundaries kept on, nobody is told how to keep more."""

PEER_SECONDS = 5e-5
"""Of SentencePiece's Unigram, for each distinct word."""

THREADS = 4
"""Of SentencePiece's trainer; fixed, because its Unigram gives other pieces for another number."""


@dataclass(frozen=True)
class ClosingRow:
    """One row of the table.

    Parameters
    ----------
    name : str
    size : int or None
        Ids in the vocabulary.
    figures : SilverFigures
    """

    name: str
    size: int | None
    figures: SilverFigures


def our_row(name: str, tokenizer: Tokenizer, silver: Silver) -> ClosingRow:
    """The row of a koktok tokenizer; bytes are pieces of characters, whatever they are spelled with."""
    subject = Own("", name, tokenizer)
    rows = subject.encode(silver.texts)
    fragments = frozenset(tokenizer.vocab.fragment_ids)
    return ClosingRow(name, tokenizer.vocab.size, silver.score(rows, unknown=subject.unknown_ids, bytes_=fragments))


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
        self.name = f"SentencePiece {'BPE' if model == 'bpe' else 'Unigram'}"
        self.subject = SentencePiece("", self.name, written.getvalue())
        self.processor: Any = self.subject.processor

    def row(self, silver: Silver) -> ClosingRow:
        """Its row of the table."""
        return ClosingRow(self.name, len(self.processor), silver.figures(self.subject))

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
    like: Path | None = None,
    threads: int | None = None,
    cache: bool = True,
    lexicon: Path | None = None,
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
        sources,
        recipe,
        user_dictionary=user_dictionary,
        like=like,
        cache=None if cache else False,
        lexicon=lexicon,
        threads=threads,
        tell=_announced(talk, recipe),
        silver=True,
    )
    talk("measure", 0, None)
    assert made.silver is not None, "it was asked for"
    silver = Silver(made.silver)
    rows = [our_row(name_of(recipe), made.tokenizer, silver)]
    plain: PlainSentencePiece | None = None
    refused = ""
    if compare and made.reading.pruned:
        refused = f"the text has more than {PEER_WORDS:,} distinct words, which take it too long"
    elif compare:
        options = recipe.train
        words = made.reading.train
        talk.note(
            f"training SentencePiece on the same {len(words):,} distinct words, to compare with: about "
            f"{max(1, round(len(words) * PEER_SECONDS))} s (--no-compare leaves it out)"
        )
        talk("compare", 0, None)
        try:
            plain = PlainSentencePiece(
                words,
                model="bpe" if options.model in ("bpe", "bpe-bytes") else "unigram",
                vocab_size=options.vocab_size,
                character_coverage=options.character_coverage,
            )
            rows.append(plain.row(silver))
        except VocabSizeError as error:
            refused = error.message
    rows.append(ClosingRow("one token a syllable", None, silver.figures(open_trivial("syllables"))))
    card = model_card(made, rows, licences_of(recipe_sources=made.tokenizer.recipe.sources))
    made.tokenizer.save(out, extra={"README.md": card})
    talk.__exit__(None, None, None)
    _print(made, rows, silver, plain, refused, out)
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
    lexicon: Path | None = None,
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
    from koktok.frontier.show import COLUMNS, TITLE, cells
    from koktok.progress import stdout, table

    rows, against = train_frontier(
        sources,
        recipe,
        vocab_sizes=vocab_sizes,
        user_dictionary=user_dictionary,
        cache=None if cache else False,
        lexicon=lexicon,
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
    if sys.stdout.isatty():
        table(TITLE, COLUMNS, cells(rows, against))
        print("★ no other point has both fewer tokens and a higher F1\n")
    else:
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


def _announced(talk: Talk, recipe: Recipe) -> Tell:
    """Progress that says of a long stage what it will be before it begins."""
    announced: set[str] = set()

    def tell(stage: str, done: int, total: int | None) -> None:
        what = ""
        if stage == "segment" and total and recipe.segment.segmenter != "whitespace":
            what = (
                f"asking {recipe.segment.segmenter} where {total:,} distinct words are cut: about "
                f"{max(1, round(total / ANALYSED))} s for one process, less where some were analysed before"
            )
        elif stage == "train":
            what = (
                f"training {recipe.train.model} with {recipe.train.vocab_size:,} ids (once after an installation some 20 s "
                "more, for code is compiled)"
            )
        talk(stage, done, total)
        if what and stage not in announced:
            announced.add(stage)
            talk.note(what)

    return tell


def name_of(recipe: Recipe) -> str:
    """What our row is called: the model, and what was asked of it.

    Examples
    --------
    >>> from koktok import Recipe
    >>> [name_of(Recipe().changed(train=train)) for train in ({}, {"keep": 0.8}, {"model": "bpe"})]
    ['koktok balanced', 'koktok keep 0.8', 'koktok bpe']
    """
    options = recipe.train
    if options.model != "unigram" or options.backend != "koktok":
        return f"koktok {options.model}"
    if options.keep is not None:
        return f"koktok keep {options.keep:g}"
    return f"koktok {options.preset}" if options.tokens_per_eojeol is None and options.nu is None else "koktok"


def _print(
    made: Training,
    rows: Sequence[ClosingRow],
    silver: Silver,
    plain: PlainSentencePiece | None,
    refused: str,
    out: Path,
) -> None:
    """Table, sentences and signature on stdout, notes on stderr."""
    from koktok.progress import SPACE, print_pieces, print_text, stderr, stdout, table

    held = made.reading.held.total
    unit = "words" if made.reading.runs is None else "sentences"
    where = f"{held:,} held-out {unit}" if held else "the training words: nothing was held out"
    unknown = any(row.figures.unknown for row in rows)
    columns = ("tokenizer", "tokens/eojeol", "F1", "F1 all", "josa", "eomi", "bytes", *(["unk"] if unknown else []))
    cells = []
    for row in rows:
        found = row.figures
        recalls = [found.recalls.get(kind) for kind in ("josa", "eomi")]
        scores = (found.f1 if silver.borders else None, found.f1_all if silver.borders else None, *recalls)
        shares = [
            f"{share:.2%}" for share in ([found.byte_fallback, found.unknown] if unknown else [found.byte_fallback])
        ]
        shown = ["–" if score is None else f"{score:.3f}" for score in scores]
        cells.append((row.name, f"{found.tokens_per_eojeol:.3f}", *shown, *shares))
    console = stdout()
    console.print()
    table(f"{made.tokenizer.vocab.size:,} ids each, measured on {where}", columns, cells)
    console.print()
    beside = "" if plain is None else f" {plain.name}: on the same words, with its own defaults."
    print_text((MEANING if silver.borders else NO_BORDERS) + beside)
    if refused:
        print_text(f"SentencePiece, its defaults: not run: {refused}")
    if made.reading.samples:
        console.print()
        print_text(f"Held-out lines{', with SentencePiece below' if plain else ''}; {SPACE} is a space:")
    for line in made.reading.samples:
        console.print()
        print_pieces(_shown(made.tokenizer, line))
        if plain:
            print_pieces(plain.pieces(line))
    console.print()
    for line in (f"{out}: {made.tokenizer.vocab.kind}, {made.tokenizer.vocab.size:,} ids", *_next(made, out)):
        print_text(line)
    talk = stderr()
    for note in made.notes:
        talk.print(note, markup=False)
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in made.seconds.items())
    talk.print(
        f"{stages}; analysed {made.asked:,} words, {made.known:,} from the cache; peak memory {_peak(made.analyser_peak)}"
    )
    talk.print(f"signature: {made.tokenizer.vocab.digest()}", markup=False)


def _next(made: Training, out: Path) -> Iterator[str]:
    """What was asked for and given, and what a user may type next."""
    import shlex

    folder, options = shlex.quote(str(out)), made.tokenizer.recipe.train
    dials = made.log.get("dials")
    if dials:
        yield f"kept {dials['kept']:.1%} of the morpheme boundaries in the training text"
        if not dials.get("met", True):
            yield (
                f"{dials['asked']:g} was asked for: this is as near as this text comes to it with "
                f"{options.vocab_size:,} ids"
            )
    if dials and dials["kept"] < BOUND_TO:
        more = min(0.95, round(dials["kept"] + 0.15, 2))
        yield f"for truer cuts and more tokens: --keep {more:g}, or --preset aligned; --frontier draws the curve"
    yield "next:"
    yield f"  koktok encode {folder} FILE --as pieces"
    yield f"  koktok verify {folder} FILE"


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
