"""The gallery of the documentation: one page that runs ready vocabularies side by side, and a table of them.

    python -m eval.gallery [VOCABULARY...] [--out docs/gallery] [--text corpus:mini]

Writes OUT/playground.html, which is what `koktok playground` makes of them, and OUT/index.md. A VOCABULARY is a folder that koktok
wrote, or `koktok:NAME`; the default is `VOCABULARIES`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from koktok.cli.playground import name_of, page_of
from koktok.corpora.paths import as_source
from koktok.text.sources import read
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.ready import folder_of

VOCABULARIES = (
    "koktok:ko-32k",
    "koktok:ko-32k-aligned",
    "koktok:ko-16k",
    "koktok:ko-32k-bytes",
)

INDEX = """# Gallery

{count} vocabularies, to try and to compare. [Open the page that runs them](playground.html) ({size} kB; it needs no server and
sends nothing), choose two, and type.

| vocabulary | kind | ids | tokens per eojeol |
|---|---|---|---|
{rows}

Tokens are of {text}. `python -m eval.gallery` writes this page; with folders of your own it writes one for them.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval.gallery", description=__doc__.split("\n")[0])
    parser.add_argument("vocabularies", nargs="*", default=VOCABULARIES, help="folders, or koktok:NAME")
    parser.add_argument("--out", type=Path, default=Path("docs/gallery"))
    parser.add_argument("--text", default="corpus:mini", help="what tokens are counted in")
    given = parser.parse_args()
    tokenizers = {name_of(spec): TrainedTokenizer.load(folder_of(Path(spec))) for spec in given.vocabularies}
    lines = [line for block in read(as_source(given.text)) for line in block.lines()]
    page = page_of(tokenizers, lines, title="koktok: gallery")
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "playground.html").write_text(page, encoding="utf-8")
    (given.out / "index.md").write_text(index(tokenizers, lines, given.text, len(page.encode())), encoding="utf-8")


def index(tokenizers: dict[str, TrainedTokenizer], lines: list[str], text: str, size: int) -> str:
    """The page of the documentation."""
    eojeols = sum(len(line.split()) for line in lines)
    rows = [
        f"| {name} | {made.vocab.kind} | {made.vocab.size:,} | {len(made.encode_ids(lines).ids) / eojeols:.3f} |"
        for name, made in tokenizers.items()
    ]
    return INDEX.format(count=len(rows), size=f"{size / 1000:,.0f}", rows="\n".join(rows), text=f"`{text}`")


if __name__ == "__main__":
    main()
