"""What touches text of others takes time in proportion to it, whatever stands there."""

from __future__ import annotations

import gc
import io
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from koktok import Recipe, hangul
from koktok.corpora.extract import _ROLE, prose
from koktok.count.shards import Shards, parts
from koktok.metrics.gold.readers import _conllu, _sejong
from koktok.model.special import cut_at
from koktok.model.vocab import Vocab
from koktok.pipeline.card import SIGNS as _SIGNS
from koktok.text.blocklist import JUNK, PERSONAL, Blocklist
from koktok.text.blocks import Block
from koktok.text.normalize import Folds, Normalizer
from koktok.text.pretokenize import Pattern
from koktok.tokenizer import TrainedTokenizer

UNITS = (
    "a", "1", " ", "가", "ㅋ", ".", "-", "_", "/", "+", ":", ":a", "a@", "1-", "82-", "> ", "<", "<a ", "[", "[[", "](", "`", "|", "- ",
    "가 > ", "\u0301\u0316", "\u1dfa\u0301", "\u0f73", "\u1100", "\u1161", "\u11a8\u1160", "\u200b", "\u200d", "</s", "\t", "&amp", "a/N",
    "__1", "!--", "=\"",
)  # fmt: skip
"""What a hostile text is made of, again and again."""

MARKS = {
    "markdown": (
        "![", "[a](", "[a](()", "[a](b(c)", "![a](", "[[a|", "[a][", "[a]: ", "<!--", "<http://", "<br ", "**", "* ", "# ", "---\n",
        "--- \n", "\\|", "&#", "&", "\r", "\n", "\n---x", "[ ] ",
    ),
    "html": (
        "<!--", "<!", "<?", "</", "</a", "<a", '<a b="', "<a b='", "<a b=", '<a b="" ', "<script>", "<script>'</", "<p>", "<![CDATA[", "&",
        "&#", "<nav>", "<pre>\n", "=", '<a "', "<!-->",
    ),
    "count": ("가나다라", "\U0001f468\u200d"),
}  # fmt: skip
"""And what only some of them read."""

END = "가!"
"""And what no pattern wants there."""


def tokenizer(vocab: Vocab) -> Callable[[str], Any]:
    made = TrainedTokenizer(Recipe(), vocab)
    return lambda text: (made.decode(made.encode(text).ids), made.encode_ids([text], threads=1))


def read(reader: Callable[[list[str]], Iterable[Any]], line: str) -> Callable[[str], Any]:
    def run(text: str) -> Any:
        try:
            return [*reader([line.format(text.replace("\n", " "))])]
        except (ValueError, IndexError):
            return None

    return run


def count(text: str) -> Any:
    with Shards(runs=True, threads=1) as shards:
        shards.count([Block.of([text])], name="text")
        return list(parts(shards.runs))


CASES: dict[str, Callable[[str], Any]] = {
    "normalize": Normalizer(),
    "normalize, all folds": Normalizer(
        Folds(True, True, True, True, True, True, 3, compatibility=True, lone_jamo=True)
    ),
    "align": lambda text: Normalizer().align(text),
    "changes": lambda text: Normalizer().changes(text),
    "jamo": lambda text: hangul.join(hangul.split(text)),
    "pretokenize": Pattern().pretokenize,
    "pretokenize, scripts": Pattern(split="scripts", digits="single", superwords=True).pretokenize,
    "unigram": tokenizer(Vocab.unigram({"가": -1.0, "a": -1.0, " ": -2.0, "aa": -1.5, "  ": -3.0}, specials=("</s>",))),
    "bpe": tokenizer(Vocab.bpe("a 가", ["aa", "  ", "aaaa"], specials=("</s>",))),
    "wordpiece": tokenizer(Vocab.plain("wordpiece", ["a", "##a", "aa", "##aa"], specials=("[UNK]", "</s>"))),
    "specials": lambda text: cut_at(text, ["</s>"], ["</s>"], ["</s>"]),
    "blocklist": lambda text: Blocklist(["가나", "=x"], personal=PERSONAL, junk=JUNK).refuses(text),
    "markdown": lambda text: [*prose(io.BytesIO(text.encode()), "md", name="x")],
    "html": lambda text: [*prose(io.BytesIO(text.encode()), "html", name="x")],
    "count": count,
    "po": lambda text: _ROLE.sub(r"\1", text),
    "report": lambda text: _SIGNS.sub("", text),
    "conllu": read(_conllu, "# sent_id = {}"),
    "sejong": read(_sejong, "가\t{}"),
}


def seconds(run: Callable[[str], Any], unit: str, size: int) -> float:
    text = (unit * (size // len(unit) + 1))[:size] + END
    begun = time.process_time()
    run(text)
    return time.process_time() - begun


@pytest.fixture
def _no_collection() -> Iterator[None]:
    """What other tests have left takes the collector time by its own size."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("size", [5_000, pytest.param(250_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("_no_collection")
def test_time_is_linear(case: str, size: int) -> None:
    """Four times the text takes no eight times the time; what is over in 50 ms (a megabyte in .5 s) proves nothing."""
    run = CASES[case]
    run("가a")
    for unit in (*UNITS, *MARKS.get(case, ())):
        for _ in range(4):  # a noisy machine
            longer = seconds(run, unit, 4 * size)
            if longer < max(0.05, 2e-6 * size) or longer < 8 * seconds(run, unit, size):
                break
        else:
            pytest.fail(f"{unit!r} again and again: {longer:.2f} s")
