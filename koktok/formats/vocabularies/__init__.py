"""Ready vocabularies, trained on open text, which are part of koktok.

For a name (`ko-32k`): the folder of its training, bit for bit, and the recipe that trains it again. A vocabulary is `NAME.toml`, its recipe, and
of the folder `NAME/` koktok.toml, the card and tokenizer.json.xz.
"""

from koktok.formats.vocabularies.ready import ReadyVocabulary, find, folder_of, ready_vocabularies

__all__ = ["ReadyVocabulary", "find", "folder_of", "ready_vocabularies"]
