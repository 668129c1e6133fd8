"""tiktoken: files of ranks, and the library that runs them."""
