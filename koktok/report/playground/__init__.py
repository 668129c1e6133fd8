"""A tokenizer as one HTML page that runs it: engine.js gives the ids of Python, without a server or a network.

In: trained tokenizers, and text whose eojeols the page is to know the morphemes of. Out: the page.
"""

from koktok.report.playground.web_page import to_page

__all__ = ["to_page"]
