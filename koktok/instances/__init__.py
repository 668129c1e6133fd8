"""Training instances: documents in, what BERT, masked, causal and span-corruption models are trained on out.

The reading order: `reading` (lines to documents of sentences), `word_cuts` (where the
morphemes of a word begin), `borders` (which tokens begin eojeols and morphemes), `packing` (ids and borders, once), `philox`
(chance as a function of seed, epoch and document), `masking`, `layout` (what goes into one instance), `plan` (all of it for
an epoch), `write` and `collator` (the same on a disk and while reading), `exporting` (for other trainers), `instance_statistics`, `display`.
"""

from __future__ import annotations

from koktok.instances.collator import KoktokCollator
from koktok.instances.masking import Masking
from koktok.instances.packing import Packed, write_packed
from koktok.instances.plan import Instances, Plan
from koktok.instances.write import write_instances

__all__ = ["Instances", "KoktokCollator", "Masking", "Packed", "Plan", "write_instances", "write_packed"]
