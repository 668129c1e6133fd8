"""Where a vocabulary runs, and what to know there: sentences for the card of a folder and the last lines of a training."""

from __future__ import annotations

from koktok.model.definition import Definition
from koktok.model.vocab import KINDS, VocabKind
from koktok.runtimes.huggingface import tokenizer_json
from koktok.runtimes.limits import that_hold
from koktok.runtimes.sentencepiece import model_proto
from koktok.runtimes.tiktoken import ranks
from koktok.text.patterns import ACROSS_SPACES


def runs_in(one: Definition, pattern: str = "koktok", *, superwords: bool = False) -> str:
    """Where a vocabulary runs with the same ids, and what to type for other runtimes, in one sentence."""
    kind = one.vocab.kind
    if tokenizer_json.refuses(one):
        name = "none"
    elif one.spelled:
        name = "jamo"
    elif kind == ranks.KIND:
        name = {"koktok": "own-pattern", **dict.fromkeys(ACROSS_SPACES, "across-spaces")}.get(pattern, "published")
    else:
        name = kind if kind in model_proto.MODEL_TYPES else "words"
    hf2 = ", in tokenizers 1.0 after `koktok export --to hf2`" if one.prefix == "first" else ""
    openvino = "" if pattern == "superbpe" else ", OpenVINO"  # which reads long runs of spaces in another way
    holes = {
        "hf2": hf2,
        "openvino": openvino,
        "named": "superbpe" if superwords else "llama3",
        "known": "" if one.prefix else f" and runtimes that know the pattern {pattern}",
        "behind": "".join(f" {sentence}" for sentence in that_hold("runs", [("behind", one.prefix)])),
        **_of_pattern(pattern, superwords=superwords),
    }
    return that_hold("runs", [(name, True)], **holes)[0]


def _of_pattern(pattern: str, *, superwords: bool) -> dict[str, str]:
    """What sentences say of a pattern: its name, whether llama.cpp knows it, and what else to type for one that cuts at every space."""
    return {
        "pattern": pattern,
        "llama_cpp": "" if pattern == "o200k" else ", llama.cpp (`koktok export --to gguf`)",
        "without": " and without `--superwords`" * superwords,
    }


def limitations(
    kind: VocabKind,
    *,
    superwords: bool,
    jamo: bool,
    pattern: str = "koktok",
    prefix: bool = False,
    trim: bool = False,
    separated: bool = False,
) -> list[str]:
    """Sentences about the limits of other libraries and tasks with a vocabulary of this kind, and their workarounds."""
    spaced = kind != "wordpiece"  # pieces of WordPiece hold no space
    cases = (
        ("superwords", superwords),
        ("trimmed", spaced and trim),
        ("untrimmed", spaced and not trim),
        ("prefix", spaced and prefix and not KINDS[kind].bytewise),
        ("bytes-prefix", spaced and prefix and KINDS[kind].bytewise),
        ("no-prefix", spaced and not prefix),
        ("unigram", kind == "unigram"),
        ("separated", separated),
        ("jamo", jamo),
        ("published", pattern not in ("koktok", *ACROSS_SPACES)),
        ("across-spaces", pattern in ACROSS_SPACES),
        ("own-pattern", pattern == "koktok" and kind == "bpe-bytes"),
    )
    or_syllable = ", or a syllable in jamo," if jamo else ""
    return that_hold("card", cases, or_syllable=or_syllable, **_of_pattern(pattern, superwords=superwords))
