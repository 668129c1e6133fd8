"""The same ten documents by BERT's own rules, by the collators of transformers, and by koktok: where they agree, and where not.

`berts_instances` and `berts_masks` do what google-research/bert's create_pretraining_data.py says that it does. What follows is told
in docs/guides/instances.md.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import lexicon, styled

from koktok.instances import Instances, KoktokCollator, Masking, Packed, Plan, write_packed
from koktok.instances.masking import IGNORED
from koktok.text.sources import Source

LENGTH, RATE, MOST, TIMES = 64, 0.15, 20, 40
NOUNS = ["학교", "도서관", "바닷가", "시장", "공원", "기차역", "병원", "미술관", "운동장", "산길"]
SENTENCES = (
    "{0}에서는 아침마다 사람들이 모여 이야기를 나누었다.",
    "그 가운데 몇 명은 {0}까지 걸어서 왔습니다!",
    "나는 그들에게 무엇을 하느냐고 물었다.",
    "“{0}을 고치고 있어요.” 하고 누군가 대답했다.",
    "오후에는 비가 내려서 모두 집으로 돌아갔다.",
    "{0}의 하루는 그렇게 저물었다.",
    "이튿날에도 같은 사람들이 같은 자리에 서 있었다.",
)
DOCUMENTS = [[line.format(noun) for line in SENTENCES[: 3 + i % 5]] for i, noun in enumerate(NOUNS)]


def berts_instances(
    documents: list[list[list[int]]], rng: random.Random, short: float = 0.1
) -> list[tuple[list[int], list[int], bool, int]]:
    """(A, B, B is random, document) of all documents; B of another document in half of the cases, cut to the length at either end."""
    found = []
    for number, document in enumerate(documents):
        room = LENGTH - 3
        aim = rng.randint(2, room) if rng.random() < short else room
        chunk: list[list[int]] = []
        i = 0
        while i < len(document):
            chunk.append(document[i])
            if i == len(document) - 1 or sum(map(len, chunk)) >= aim:
                cut = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
                a = [token for sentence in chunk[:cut] for token in sentence]
                unlike = len(chunk) == 1 or rng.random() < 0.5
                if unlike:
                    for _ in range(10):  # and then perhaps the same document
                        other = rng.randint(0, len(documents) - 1)
                        if other != number:
                            break
                    start = rng.randint(0, len(documents[other]) - 1)
                    b: list[int] = []
                    for sentence in documents[other][start:]:
                        b += sentence
                        if len(b) >= aim - len(a):
                            break
                    i -= len(chunk) - cut
                else:
                    b = [token for sentence in chunk[cut:] for token in sentence]
                while len(a) + len(b) > room:
                    longer = a if len(a) > len(b) else b
                    del longer[0 if rng.random() < 0.5 else -1]
                found.append((a, b, unlike, number))
                chunk = []
            i += 1
    return found


def berts_masks(
    ids: list[int], words: list[list[int]], size: int, mask: int, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Words in random order until the budget is spent; what does not fit is passed over; each token is replaced by itself."""
    read, labels = list(ids), [IGNORED] * len(ids)
    budget = min(MOST, max(1, round(len(ids) * RATE)))
    done = 0
    for word in rng.sample(words, len(words)):
        if done >= budget:
            break
        if done + len(word) > budget:
            continue
        for at in word:
            labels[at] = ids[at]
            if rng.random() < 0.8:
                read[at] = mask
            elif rng.random() < 0.5:
                read[at] = rng.randint(0, size - 1)  # of all ids, special ones among them
            done += 1
    return read, labels


@lru_cache
def made(folder: Path) -> Packed:
    text = folder / "ten.txt"
    text.write_text("\n\n".join("\n".join(document) for document in DOCUMENTS), encoding="utf-8")
    return write_packed(styled("wordpiece-bytes"), Source.of(text), folder / "packed", lexicon=lexicon())


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    return made(tmp_path_factory.mktemp("ten"))


def documents_of(packed: Packed) -> list[list[list[int]]]:
    shard = packed.shard(0)
    found = []
    for d in range(len(shard.documents) - 1):
        ends = shard.ends[shard.sentences[d] : shard.sentences[d + 1]].tolist()
        begins = [int(shard.documents[d]), *ends[:-1]]
        found.append([shard.ids[a:b].tolist() for a, b in zip(begins, ends, strict=True)])
    return found


def berts_rows(packed: Packed) -> list[dict[str, Any]]:
    """All passes over the documents, with masks of whole words by `##`."""
    rng, roles = random.Random(12345), packed.manifest["roles"]
    tokens = styled("wordpiece-bytes").vocab.tokens
    found = []
    for _ in range(TIMES):
        for a, b, unlike, number in berts_instances(documents_of(packed), rng):
            ids = [roles["cls_token"], *a, roles["sep_token"], *b, roles["sep_token"]]
            words: list[list[int]] = []
            for at, i in enumerate(ids):
                if i in (roles["cls_token"], roles["sep_token"]):
                    continue
                if words and tokens[i].startswith("##"):
                    words[-1].append(at)
                else:
                    words.append([at])
            read, labels = berts_masks(ids, words, packed.manifest["vocab_size"], roles["mask_token"], rng)
            kinds = [0] * (len(a) + 2) + [1] * (len(b) + 1)
            found.append({
                "ids": ids, "input_ids": read, "labels": labels, "token_type_ids": kinds, "next_sentence_label": int(unlike),
                "document": number, "a": a, "b": b,
            })  # fmt: skip
    return found


def koktoks_rows(packed: Packed) -> list[dict[str, Any]]:
    made = Instances(
        packed, Plan(kind="bert", length=LENGTH, seed=12345, masking=Masking(rate=RATE, max_predictions_per_seq=MOST))
    )
    found = []
    for epoch in range(TIMES):
        made.set_epoch(epoch)
        for row in made.batch(range(len(made))):
            row = {name: getattr(value, "tolist", lambda v=value: v)() for name, value in row.items()}
            row["ids"] = [
                i if label == IGNORED else label for i, label in zip(row["input_ids"], row["labels"], strict=True)
            ]
            sep = packed.manifest["roles"]["sep_token"]
            first = row["ids"].index(sep)
            found.append({**row, "a": row["ids"][1:first], "b": row["ids"][first + 1 : -1]})
    return found


def figures(rows: list[dict[str, Any]], packed: Packed) -> dict[str, float]:
    specials = set(packed.manifest["specials"])
    mask = packed.manifest["roles"]["mask_token"]
    pairs = [
        (i, r, label) for row in rows for i, r, label in zip(row["ids"], row["input_ids"], row["labels"], strict=True)
    ]
    chosen = [(i, r) for i, r, label in pairs if label != IGNORED]
    plain = sum(i not in specials for i, _, _ in pairs)
    return {
        "instances of an epoch": len(rows) / TIMES,
        "tokens of an instance": len(pairs) / len(rows),
        "second text random": sum(row["next_sentence_label"] for row in rows) / len(rows),
        "tokens masked": len(chosen) / plain,
        "of these the mask": sum(r == mask for _, r in chosen) / len(chosen),
        "of these another": sum(r not in (i, mask) for i, r in chosen) / len(chosen),
        "special tokens put in by chance": float(sum(r in specials and r != mask for _, r in chosen)),
    }


def test_pairs_are_of_the_same_law(packed: Packed) -> None:
    """Framing and truncation are equal, and so are the sets that pairs are drawn from; numbers are drawn from another generator."""
    theirs, ours = berts_rows(packed), koktoks_rows(packed)
    a, b = figures(theirs, packed), figures(ours, packed)
    for name, within in (("instances of an epoch", 0.06), ("tokens of an instance", 0.06), ("second text random", 0.1)):
        assert b[name] == pytest.approx(a[name], rel=within)
    roles = packed.manifest["roles"]
    for row in (*theirs, *ours):
        ids, first = row["ids"], row["ids"].index(roles["sep_token"])
        assert (ids[0], ids[-1], ids.count(roles["sep_token"])) == (roles["cls_token"], roles["sep_token"], 2)
        assert row["token_type_ids"] == [0] * (first + 1) + [1] * (len(ids) - first - 1)
        assert len(ids) <= LENGTH
    # Texts that follow one another do so in both, and short runs of sentences come from both.
    texts = [" ".join(str(i) for sentence in document for i in sentence) for document in documents_of(packed)]
    for row in (*theirs, *ours):
        joined = " ".join(map(str, [*row["a"], *row["b"]]))
        if not row["next_sentence_label"] and len(row["ids"]) < LENGTH:
            assert any(joined in text for text in texts)
    same = Counter(tuple(row["a"]) for row in theirs).keys() & Counter(tuple(row["a"]) for row in ours).keys()
    assert len(same) > 10


def test_masks_differ_where_they_should(packed: Packed) -> None:
    theirs, ours = berts_rows(packed), koktoks_rows(packed)
    a, b = figures(theirs, packed), figures(ours, packed)
    assert a["tokens masked"] > 0.155  # special tokens count for the budget, and at least one token is masked
    assert b["tokens masked"] == pytest.approx(0.15, abs=0.004)
    for found in (a, b):
        assert found["of these the mask"] == pytest.approx(0.8, abs=0.02)
        assert found["of these another"] == pytest.approx(0.1, abs=0.02)
    assert b["special tokens put in by chance"] == 0

    # A word is replaced as one, punctuation apart: in BERT's code its tokens are replaced each by itself.
    def torn(rows: list[dict[str, Any]]) -> int:
        mask = packed.manifest["roles"]["mask_token"]
        tokens = styled("wordpiece-bytes").vocab.tokens
        return sum(
            (row["input_ids"][at] == mask) != (row["input_ids"][at - 1] == mask)
            for row in rows
            for at, label in enumerate(row["labels"])
            if label != IGNORED
            and tokens[label].startswith("##")
            and row["labels"][at - 1] != IGNORED
            and tokens[label][2:].isalnum()
            and tokens[row["labels"][at - 1]].removeprefix("##").isalnum()
        )

    assert torn(theirs) > 50
    assert torn(ours) == 0


def test_tokens_one_by_one_are_masked_as_transformers_does(packed: Packed) -> None:
    """`DataCollatorForLanguageModeling`: each token by itself, at the rate on average; koktok's `token` keeps the rate in each row."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    rows = [
        {"input_ids": row["input_ids"].tolist()}
        for row in Instances(packed, Plan(length=LENGTH, across=True), masked=False).batch(range(8))
    ]
    import tempfile

    folder = styled("wordpiece-bytes").save(Path(tempfile.mkdtemp()) / "t")
    stock = transformers.DataCollatorForLanguageModeling(
        transformers.AutoTokenizer.from_pretrained(folder), mlm_probability=RATE, seed=1
    )
    specials = packed.manifest["specials"]

    def shares(collate: Any) -> np.ndarray:
        found = []
        for epoch in range(TIMES):
            batch = collate(rows, epoch)
            labels, ids = batch["labels"].numpy(), batch["input_ids"].numpy()
            original = np.where(labels == IGNORED, ids, labels)
            assert not np.isin(original[labels != IGNORED], specials).any()
            plain = ~np.isin(original, specials)
            found.append((labels != IGNORED).sum(1) / plain.sum(1))
        return np.concatenate(found)

    ours = KoktokCollator(styled("wordpiece-bytes"), Masking(unit="token", rate=RATE))

    def collated(some: list[dict[str, Any]], epoch: int) -> Any:
        ours.epoch = epoch
        return ours(some)

    theirs, mine = shares(lambda some, _: stock(some)), shares(collated)
    assert theirs.mean() == pytest.approx(RATE, abs=0.02)
    assert mine.mean() == pytest.approx(RATE, abs=0.005)
    assert theirs.std() > 3 * mine.std()  # a binomial number of tokens against the budget, or one more
