"""Ready vocabularies, trained on open text, which travel with koktok.

In: a name (`ko-32k`), or the path of a folder. Out: the folder that its training wrote, bit for bit, and the recipe that
trains it again. A vocabulary is two files here: `NAME.toml`, its recipe, and `NAME.xz`, what the training made of it.
"""

from koktok.formats.vocabularies.ready import ReadyVocabulary, find, folder_of, packed, ready_vocabularies

__all__ = ["ReadyVocabulary", "find", "folder_of", "packed", "ready_vocabularies"]
