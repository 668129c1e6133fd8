"""A linear probe: how well a bag of tokens tells the class of a text (extra `probe`, scikit-learn)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from koktok.errors import InputError, MissingExtraError
from koktok.foreign.base import ForeignTokenizer
from koktok.metrics.registry import metric, ratio
from koktok.metrics.robustness import PERTURBATIONS
from koktok.metrics.statistics import Table

HELD: Final = 5
NOISE: Final = ("no_spaces", "some_spaces", "typo")


@dataclass(frozen=True)
class Labelled:
    """Texts with a class each.

    Parameters
    ----------
    texts, labels : list of str
    """

    texts: list[str]
    labels: list[str]

    @classmethod
    def read(cls, path: str) -> Labelled:
        """Lines of `label TAB text`.

        Raises
        ------
        InputError
            When a line has no tab, or there are fewer than two classes.
        """
        from pathlib import Path

        pairs = [line.split("\t", 1) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
        if any(len(pair) < 2 for pair in pairs) or len({pair[0] for pair in pairs}) < 2:
            raise InputError(f"`{path}` wants lines of `label TAB text` with two labels or more")
        return cls([text for _, text in pairs], [label for label, _ in pairs])


def probe(tokenizer: ForeignTokenizer, data: Labelled, *, seed: int = 0) -> Table:
    """Whether each held-out text is classified right: clean, and under three kinds of noise.

    Logistic regression on hashed token 1-grams and 2-grams, trained on the clean texts; every fifth text, by hash, is
    held out.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "probe") from error
    held = np.array([int(hashlib.sha256(t.encode()).hexdigest(), 16) % HELD == 0 for t in data.texts])
    labels = np.array(data.labels)
    model = LogisticRegression(C=1.0, max_iter=200, random_state=seed)
    model.fit(_features(tokenizer, data.texts)[~held], labels[~held])
    texts, truth = [t for t, out in zip(data.texts, held, strict=True) if out], labels[held]
    columns: dict[str, Any] = {"texts": np.ones(len(texts), dtype=np.int64)}
    guessed = model.predict(_features(tokenizer, texts))
    columns["right"] = (guessed == truth).astype(np.int64)
    for label in sorted(set(data.labels)):
        columns[f"both:{label}"] = ((guessed == label) & (truth == label)).astype(np.int64)
        columns[f"either:{label}"] = (guessed == label).astype(np.int64) + (truth == label)
    for number, name in enumerate(NOISE):
        rng = np.random.default_rng([seed, number])
        noisy = [PERTURBATIONS[name](text, rng)[0] for text in texts]
        columns[f"right_{name}"] = (model.predict(_features(tokenizer, noisy)) == truth).astype(np.int64)
    return Table(columns, np.arange(len(texts), dtype=np.int64))


def _features(tokenizer: ForeignTokenizer, texts: list[str], width: int = 1 << 18) -> Any:
    from scipy.sparse import csr_matrix

    rows = tokenizer.encode(texts)
    line = np.repeat(np.arange(len(texts)), np.diff(rows.indptr))
    pairs = (rows.ids[:-1] * 1_000_003 + rows.ids[1:] + 17) % width
    same = line[:-1] == line[1:]
    cells = np.concatenate([rows.ids * 2_654_435_761 % width, pairs[same]])
    lines = np.concatenate([line, line[:-1][same]])
    table = csr_matrix((np.ones(len(cells)), (lines, cells)), shape=(len(texts), width))
    table.sum_duplicates()
    table.data = np.log1p(table.data)
    norm = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    return table.multiply(1 / np.maximum(norm, 1e-9)[:, None]).tocsr()


@metric("X3a", ko="선형 분류기 정확도", unit="share", better="higher", needs="labelled", table="probe")
def probe_accuracy(s: Any) -> Any:
    """Accuracy of a linear probe.

    Definition: held-out texts (every fifth, by hash) classified right by logistic regression on hashed token 1-grams and
    2-grams / held-out texts.
    Source: fastText-style baselines.
    Pitfalls: blind to order; differences below the interval are noise.
    """
    return ratio(s["right"], s["texts"])


@metric("X3b", ko="선형 분류기 macro-F1", unit="share", better="higher", needs="labelled", table="probe")
def probe_macro_f1(s: Any) -> Any:
    """Macro F1 of a linear probe.

    Definition: mean over classes of 2·both / (guessed + true) of the probe of X3a.
    Source: as X3a.
    Pitfalls: as X3a.
    """
    names = [name.removeprefix("both:") for name in s if name.startswith("both:")]
    return np.mean([ratio(2 * s[f"both:{n}"], s[f"either:{n}"]) for n in names], axis=0)


@metric("X3c", ko="선형 분류기 정확도 (띄어쓰기 없음)", unit="share", better="higher", needs="labelled", table="probe")
def probe_no_spaces(s: Any) -> Any:
    """Accuracy of the probe on text without spaces.

    Definition: as X3a, trained on clean text, asked about the held-out texts without spaces.
    Source: kiwi-farm.
    Pitfalls: as X3a.
    """
    return ratio(s["right_no_spaces"], s["texts"])


@metric("X3d", ko="선형 분류기 정확도 (띄어쓰기 오류)", unit="share", better="higher", needs="labelled", table="probe")
def probe_some_spaces(s: Any) -> Any:
    """Accuracy of the probe on text with wrong spaces.

    Definition: as X3c with a fifth of the spaces lost and some put in.
    Source: kiwi-farm.
    Pitfalls: as X3a.
    """
    return ratio(s["right_some_spaces"], s["texts"])


@metric("X3e", ko="선형 분류기 정확도 (오타)", unit="share", better="higher", needs="labelled", table="probe")
def probe_typo(s: Any) -> Any:
    """Accuracy of the probe on text with typing errors.

    Definition: as X3c with a neighbouring key in a tenth of the syllables.
    Source: kiwi-farm.
    Pitfalls: as X3a.
    """
    return ratio(s["right_typo"], s["texts"])
