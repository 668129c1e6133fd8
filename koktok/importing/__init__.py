"""Foreign tokenizers with the interface of ours: SentencePiece models, tokenizer.json, vocab.txt, tiktoken ranks.

This folder adds: the way in. A file that koktok could have written becomes koktok's own tokenizer again; any other is
kept as it is and run by the library that it was written for, so that its ids are that library's.
"""

from koktok.importing.conversion import gguf_table, hf_files
from koktok.importing.imported import ForeignVocab, ImportedTokenizer, load_imported
from koktok.importing.reading import PATTERNS, import_tokenizer

__all__ = [
    "PATTERNS",
    "ForeignVocab",
    "ImportedTokenizer",
    "gguf_table",
    "hf_files",
    "import_tokenizer",
    "load_imported",
]
