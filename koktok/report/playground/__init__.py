"""An HTML page that runs tokenizers: engine.js computes the same ids as Python, without a server or a network.

In: trained tokenizers, and text whose words are shown with their morphemes. Out: the page.
"""

from koktok.report.playground.web_page import to_page

__all__ = ["to_page"]
