"""Every kind of vocabulary is packed, masked and read: koktok's own, and WordPiece vocabularies of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import MINI
from samples import KINDS, lexicon, styled

from koktok.instances import Instances, Masking, Packed, Plan, write_packed
from koktok.instances.masking import IGNORED
from koktok.instances.token_facts import EOJEOL, MORPHEME, SPECIAL
from koktok.text.sources import Source


def sound(made: Packed, text: Path) -> None:
    """What holds of the masks of any vocabulary."""
    specials = set(made.manifest["specials"])
    assert text.exists()
    for unit in ("token", "eojeol", "morpheme", "stem", "span"):
        plan = Plan(length=64, seed=2, masking=Masking(unit=unit, mask_prob=1, random_prob=0), across=True)
        whole = Instances(made, plan)
        some = range(min(len(whole), 400))
        raw, read = Instances(made, plan, masked=False).batch(some), whole.batch(some)
        ids, marks, labels = raw.lists["input_ids"], raw.lists["marks"], read.lists["labels"]
        chosen = labels != IGNORED
        assert set(np.flatnonzero(np.isin(ids, list(specials))).tolist()) >= set(
            np.flatnonzero(marks == SPECIAL).tolist()
        )
        assert not chosen[marks == SPECIAL].any()
        assert (labels[chosen] == ids[chosen]).all()
        assert (read.lists["input_ids"][chosen] == made.manifest["roles"]["mask_token"]).all()
        assert abs(chosen.sum() / (marks != SPECIAL).sum() - 0.15) < 0.02
        if unit in ("eojeol", "morpheme"):
            border = EOJEOL if unit == "eojeol" else EOJEOL | MORPHEME
            inside = (marks & border == 0) & (marks != SPECIAL)
            inside[1:] &= (marks[:-1] != SPECIAL) & ((marks[1:] & 8) == (marks[:-1] & 8))
            inside[0] = False
            at = np.flatnonzero(inside)
            assert len(at) > 20
            assert (chosen[at] == chosen[at - 1]).all()  # as one with the token before


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_koktok(kind: str, tmp_path: Path) -> None:
    tokenizer = styled(kind)
    sound(write_packed(tokenizer, Source.of(MINI), tmp_path / "p", lexicon=lexicon()), MINI)
