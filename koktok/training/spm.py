"""Training with the sentencepiece library, from counts, under our cuts.

SentencePiece reads `word TAB count` lines, and a delimiter in them keeps seed
pieces (Unigram) and merges (BPE) inside morphemes. Its result is brought into koktok's canonical form.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from koktok.count import Counts
from koktok.errors import InputError, VocabSizeError
from koktok.files import read_bounded
from koktok.model.vocab import BYTE_PIECES, SPACE_MARK, Vocab
from koktok.segment.segmented import SegmentedCounts
from koktok.training.alphabet import check_size
from koktok.training.job import Job, Learnt

DELIMITER = "\x1f"
"""Between morphemes in SentencePiece's input: the unit separator, which no text contains on purpose."""

THREADS = 1
"""SentencePiece's Unigram gives other pieces for another number of threads, so it is part of the algorithm here."""


def train_spm(job: Job) -> Learnt:
    """A vocabulary by SentencePiece.

    Where the text has fewer pieces inside morphemes than are wanted, the words are given uncut a second time, and pieces
    across morphemes fill what is left; a smaller size, or more text, keeps to the morphemes.

    Examples
    --------
    >>> words = SegmentedCounts.from_marked({" 학교|에서": 9, " 학교|는": 8, " 집|에서": 7, " 집|은": 5})
    >>> train_spm(Job(words, 269, "bpe", alphabet=" 학교에서는집은")).vocab.pieces[-3:]
    ('에서', ' 집', '학교')
    """
    letters, reserved, vocab_size, model = job.letters(), tuple(job.specials), job.vocab_size, job.kind
    slots = vocab_size - len(BYTE_PIECES) - len(reserved)
    lines = list(_lines(job.counts, set(letters), (*reserved, *BYTE_PIECES)))

    def pieces(more: int) -> list[tuple[str, float]]:
        try:
            return _run(lines, model, slots + more, letters, job.max_length)
        except _TooFewError:
            uncut = [line.replace(DELIMITER, "") for line in lines]
        try:
            return _run(lines + uncut, model, slots + more, letters, job.max_length)
        except _TooFewError as error:
            check_size(vocab_size, 0, error.most + vocab_size - slots - more, "distinct pieces")
            raise

    rows = pieces(0)
    if job.crosses and (unwanted := sum(job.crosses(piece) for piece, _ in rows)):
        rows = [row for row in pieces(2 * unwanted) if not job.crosses(row[0])]
    if model == "unigram":
        scores = dict(rows)
        worst = min(scores.values())
        scores |= {char: worst for char in letters if char not in scores}
        vocab = Vocab.unigram(_trimmed(scores, slots, letters), specials=reserved)
    else:
        merged = [piece for piece, _ in rows if len(piece) > 1]
        vocab = Vocab.bpe(letters, merged[: slots - len(letters)], specials=reserved)
    return Learnt(vocab, {"model": job.options.model})


class _TooFewError(Exception):
    """SentencePiece has fewer candidates than the requested size."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


def _run(
    lines: Iterable[str], model: str, slots: int, letters: Iterable[str], max_piece_length: int
) -> list[tuple[str, float]]:
    """Pieces and scores as SentencePiece orders them, its <unk> left out."""
    import sentencepiece

    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=written,
            input_format="tsv",
            model_type=model,
            vocab_size=slots + 1,  # its <unk> takes a slot that ours does not
            pretokenization_delimiter=DELIMITER,
            required_chars="".join(char for char in letters if char not in " \t\n"),
            character_coverage=1.0,
            max_sentencepiece_length=max_piece_length,
            max_sentence_length=1 << 20,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            # The words are our pretokens already: any part of them may be a piece.
            split_by_unicode_script=False,
            split_by_number=False,
            byte_fallback=False,
            bos_id=-1,
            eos_id=-1,
            num_threads=THREADS,
            minloglevel=4,
        )
    except (RuntimeError, OSError, ValueError) as error:
        largest = re.search(r"value <= (\d+)", str(error))
        if largest:
            raise _TooFewError(int(largest[1]) - 1) from error
        raise VocabSizeError(f"SentencePiece cannot train {slots:,} pieces: {str(error).strip()[-300:]}") from error
    processor = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    return [
        (processor.id_to_piece(i).replace(SPACE_MARK, " "), processor.get_score(i)) for i in range(1, len(processor))
    ]


def _lines(counts: SegmentedCounts, letters: set[str], unwanted: tuple[str, ...]) -> Iterator[str]:
    """TSV lines; white space other than U+0020 is left out, as it would be read as part of the format."""
    for i, n in enumerate(counts.n.tolist()):
        word = counts.words[i]
        if set(word) <= letters and not (set(word) & {"\t", "\n", SPACE_MARK}) and not any(u in word for u in unwanted):
            yield f"{DELIMITER.join(counts.pieces(i))}\t{n}"


def _trimmed(scores: dict[str, float], slots: int, letters: Iterable[str]) -> dict[str, float]:
    """At most `slots` pieces: letters that SentencePiece did not know push out the pieces with the lowest scores."""
    keep = set(letters)
    spare = sorted((piece for piece in scores if piece not in keep), key=lambda piece: (-scores[piece], piece))
    return {piece: scores[piece] for piece in (*keep, *spare[: max(0, slots - len(keep))])}


def tokens_per_eojeol(model: str | Path, words: Counts) -> float:
    """Tokens that a SentencePiece model makes of counted words, each by itself."""
    import sentencepiece

    hint = "--like FILE.model"
    data = read_bounded(Path(model), what="a SentencePiece model", hint=hint)
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    except RuntimeError as error:
        raise InputError(f"`{model}` cannot be read as a SentencePiece model: {error}", hint=hint) from error
    bare = [word.strip(" ") for word in words.words]
    eojeols = sum(n for word, n in zip(bare, words.n.tolist(), strict=True) if word)
    tokens = sum(n * len(ids) for ids, n in zip(processor.encode(bare), words.n.tolist(), strict=True))
    return float(tokens / max(1, eojeols))
