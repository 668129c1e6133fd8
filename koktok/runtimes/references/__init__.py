"""What vocabularies are compared with: units that need no training, cuts from a file, analysers, tokenizers of packages."""
