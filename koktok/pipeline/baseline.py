"""The baselines of a training: a plain vocabulary of the same size on the same words, and one token for each syllable.

All are measured by `koktok.metrics.silver` on held-out words, cut by the analyser. Byte-level BPE is compared with that of the library
`tokenizers` with the same normalizer and pattern, all other models with SentencePiece and its defaults, which segments words one by
one, so distinct words weighted by their counts give the same figure as the whole text.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from koktok.count import Counts
from koktok.errors import VocabSizeError
from koktok.metrics.silver import Silver, SilverRow
from koktok.model.vocab import SPACE_MARK
from koktok.pipeline.training import Training
from koktok.pipeline.words import PEER_WORDS
from koktok.recipe import Group, Recipe
from koktok.runtimes.huggingface.adapter import HuggingFace
from koktok.runtimes.huggingface.tokenizer_json import tokenizer_json
from koktok.runtimes.references.trivial import TRIVIAL
from koktok.runtimes.sentencepiece.adapter import SentencePiece
from koktok.tokenizer import TrainedTokenizer
from koktok.training.unigram_point import GROUPS

SECONDS_A_WORD: Final = 5e-5
"""Seconds of SentencePiece's Unigram training for each distinct word."""

OCCURRENCES: Final = 5_000_000
"""Words that the library `tokenizers` is given at most; it takes no counts, so that a word is given as often as it occurs."""

THREADS: Final = 4
"""Threads of SentencePiece's trainer; fixed, because its Unigram pieces depend on the number."""


def plain_of(model: str) -> str:
    """Return what a kind of model is compared with.

    Examples
    --------
    >>> plain_of("unigram"), plain_of("bpe-bytes")
    ('SentencePiece', 'plain byte-level BPE')
    """
    return "plain byte-level BPE" if model == "bpe-bytes" else "SentencePiece"


@dataclass(frozen=True)
class Comparison:
    """The table at the end of a training."""

    rows: tuple[SilverRow, ...]
    silver: Silver
    peer: Plain | None = None
    refused: str = ""


def compare(training: Training, *, peer: bool = True) -> Comparison:
    """Measure a training on its held-out text, and its baselines."""
    assert training.silver is not None, "the held-out text was not cut"
    silver, recipe = Silver(training.silver), training.tokenizer.recipe
    ours = our_row(name_of(recipe), training.tokenizer, silver)
    syllables = SilverRow("one token per syllable", None, silver.figures(TRIVIAL["syllables"]()))
    if not peer:
        return Comparison((ours, syllables), silver)
    if not training.reading.complete:
        return Comparison(
            (ours, syllables),
            silver,
            refused=f"the text has more than {PEER_WORDS:,} distinct words, which take it too long",
        )
    options = recipe.train
    if options.model == "bpe-bytes":
        byte_level = PlainByteLevel(training.reading.train, training.tokenizer)
        return Comparison((ours, byte_level.row(silver), syllables), silver, byte_level)
    try:
        plain = PlainSentencePiece(
            training.reading.train,
            model="bpe" if options.model == "bpe" else "unigram",
            vocab_size=options.vocab_size,
            character_coverage=options.character_coverage,
        )
    except VocabSizeError as error:
        return Comparison((ours, syllables), silver, refused=error.message)
    return Comparison((ours, plain.row(silver), syllables), silver, plain)


def our_row(name: str, tokenizer: TrainedTokenizer, silver: Silver) -> SilverRow:
    """The row of a koktok tokenizer; pieces that end inside a character count as bytes."""
    fragments = frozenset(tokenizer.vocab.fragment_ids)
    return SilverRow(name, tokenizer.vocab.size, silver.figures(tokenizer, fragments))


class Plain:
    """A vocabulary without morphemes, trained for comparison."""

    name: str
    tokenizer: SentencePiece | HuggingFace

    def row(self, silver: Silver) -> SilverRow:
        """Its row of the table."""
        return SilverRow(self.name, self.tokenizer.size, silver.figures(self.tokenizer))

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text."""
        raise NotImplementedError


class PlainByteLevel(Plain):
    """Byte-level BPE of the library `tokenizers`, with the normalizer, the pattern and the special tokens of a koktok tokenizer."""

    def __init__(self, words: Counts, like: TrainedTokenizer) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        self.name = "Hugging Face BPE"
        definition = json.loads(tokenizer_json(like.definition))
        specials = [row["content"] for row in definition["added_tokens"]]
        trained = Tokenizer.from_str(json.dumps(definition | {"added_tokens": [], "post_processor": None}))
        trained.model = models.BPE()
        trainer = trainers.BpeTrainer(
            vocab_size=like.vocab.size,
            special_tokens=specials,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        trained.train_from_iterator(_repeated(words), trainer)
        self.tokenizer = HuggingFace(trained.to_str(), name=self.name)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, decoded."""
        return [self.tokenizer.decode([int(i)]) for i in self.tokenizer.encode_lines([text]).ids]


def _repeated(words: Counts) -> Iterator[list[str]]:
    """Words as often as they occur; in a text of more than `OCCURRENCES`, all counts in proportion, and at least 1."""
    least = max(1.0, words.total / OCCURRENCES)
    yield from ([word] * max(1, round(n / least)) for word, n in words.items())


class PlainSentencePiece(Plain):
    """SentencePiece with its defaults (nmt_nfkc, dummy prefix, split by white space, script and number), byte fallback on."""

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
            # After the file, the line and the condition of its source: "Vocabulary size too high (32000). ..."
            raise VocabSizeError(str(error).strip().splitlines()[-1].rpartition("] ")[2]) from error
        self.name = f"SentencePiece {'BPE' if model == 'bpe' else 'Unigram'}"
        self.tokenizer: SentencePiece = SentencePiece(written.getvalue(), name=self.name)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, the prefix shown as a space."""
        return [self.tokenizer.tokens[i].replace(SPACE_MARK, " ") for i in self.tokenizer.ids([text])[0]]


def shown(keep: float | Mapping[Group, float]) -> str:
    """A target as it is typed.

    Examples
    --------
    >>> shown(0.8), shown(dict.fromkeys(GROUPS, 0.9)), shown({"josa": 0.9, "eomi": 0.8})
    ('0.8', '0.9', 'josa=0.9,eomi=0.8')
    """
    if not isinstance(keep, Mapping):
        return f"{keep:g}"
    same = len(keep) == len(GROUPS) and len({*keep.values()}) == 1
    return f"{next(iter(keep.values())):g}" if same else ",".join(f"{name}={share:g}" for name, share in keep.items())


def name_of(recipe: Recipe) -> str:
    """The name of a training in the table: its model and target.

    Examples
    --------
    >>> from koktok import Recipe
    >>> [name_of(Recipe().changed(train=train)) for train in ({}, {"keep": 0.8}, {"model": "bpe"})]
    ['koktok lm', 'koktok keep 0.8', 'koktok bpe']
    """
    options = recipe.train
    if options.model != "unigram" or options.backend != "koktok":
        return f"koktok {options.model}"
    if options.keep is not None:
        return f"koktok keep {shown(options.keep)}"
    return f"koktok {options.preset}" if options.tokens_per_eojeol is None and options.nu is None else "koktok"
