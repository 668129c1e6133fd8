"""Ready vocabularies, trained on open text, which are part of koktok.

For a name (`ko-32k`): the folder of its training, bit for bit, and the recipe that trains it again. A vocabulary is two files:
`NAME.toml`, its recipe, and `NAME.xz`, the packed folder.
"""

from koktok.formats.vocabularies.ready import ReadyVocabulary, find, folder_of, packed, ready_vocabularies

__all__ = ["ReadyVocabulary", "find", "folder_of", "packed", "ready_vocabularies"]
