"""`to_page`: one self-contained HTML file that runs tokenizers, English and Korean, and loads nothing from anywhere.

The page may run its one script and show its one style sheet, both known by their hash, and ask
for nothing else (Content Security Policy, level 3): what is typed cannot leave it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from koktok.errors import UsageError
from koktok.report.playground.payload import packed, payload, tables
from koktok.runtimes import LibraryTokenizer
from koktok.tokenizer import TrainedTokenizer

HERE: Final = Path(__file__).parent

_MARK: Final = b'<meta name="generator" content="koktok playground">'


def to_page(
    tokenizers: Mapping[str, TrainedTokenizer | LibraryTokenizer],
    lexicon: Mapping[str, Any] | None = None,
    *,
    title: str = "koktok playground",
    against: str = "",
) -> str:
    """The whole page."""
    if not tokenizers:
        raise UsageError(
            "expected a tokenizer for the playground, got none", hint="koktok playground my-tokenizer -o page.html"
        )
    style = _source("page.css")
    script = _source("engine.js") + _source("page.js")
    data = {
        "catalogue": {
            "catalogue": [{"name": name} for name in tokenizers],
            "against": [*tokenizers].index(against) if against else -1,
            "shared": tables(),
        },
        "lexicon": lexicon or {"words": "", "of": [], "shapes": []},
        **{f"tokenizer-{i}": payload(tokenizer, name) for i, (name, tokenizer) in enumerate(tokenizers.items())},
    }
    parts = {
        "csp": policy(script, style),
        "title": html.escape(title),
        "style": style,
        "script": script,
        "data": "\n".join(
            f'<script type="application/octet-stream" id="{name}">{packed(value)}</script>'
            for name, value in data.items()
        ),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _source("page.html"))


def examples() -> list[str]:
    """The lines of the page's script, with its example sentences, whose words should all have morphemes."""
    return _source("page.js").splitlines()


def is_page(path: Path) -> bool:
    """True for a file that `to_page` made: it may be replaced."""
    with path.open("rb") as file:
        return _MARK in file.read(4096)


def _source(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def policy(script: str, style: str) -> str:
    """The Content Security Policy of a page that has this script and this style, and loads nothing."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode('ascii')}'"
