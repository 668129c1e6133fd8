"""Training instances: documents in, the training data of BERT and of masked models out.

Reading order: `reading` (lines to documents of sentences), `word_cuts` (the morphemes of words), `token_facts` (one table of
the ids), `borders` (the tokens that begin eojeols and morphemes), `packing` (ids and borders on a disk), `draws` (random
numbers by seed, epoch and document), `masking`, `layout` with `bert` (the places of an instance), `plan` (the
instances of an epoch), `write`, `collator`, `instance_statistics`.
"""

from __future__ import annotations

from koktok.instances.collator import KoktokCollator
from koktok.instances.masking import Masking
from koktok.instances.packing import Packed, write_packed
from koktok.instances.plan import Instances, Plan
from koktok.instances.write import write_instances

__all__ = ["Instances", "KoktokCollator", "Masking", "Packed", "Plan", "write_instances", "write_packed"]
