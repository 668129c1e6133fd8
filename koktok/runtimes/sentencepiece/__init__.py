"""SentencePiece: its model file, written and read without protobuf, and the library that runs it."""
