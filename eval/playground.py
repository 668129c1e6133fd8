"""A page of `koktok playground` in Chromium: its size, the time to its first tokens, the time a keystroke takes, and axe.

    python -m eval.playground PAGE.html [--text FILE] [--axe axe.min.js] [--picture docs/images/playground.webp]

The keystrokes fall into the middle of 10 kB of text, in both panes; each is measured until the new layout stands. `--axe` is
the script of the npm package axe-core, which looks for faults that shut people out; both languages and shades are looked at.
`--picture` is the one of README: the page with `SENTENCE`, and a token of it chosen.
Playwright drives the system's Chromium: pip install playwright, apt-get install chromium.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import statistics
from pathlib import Path
from typing import Any

from koktok.text.sources import Source, read_lines

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]

SENTENCE, CHOSEN = "연구자는 신청서를 제출하고 결과를 확인할 수 있습니다. 학교에서는 책을 읽습니다.", "학교"

WEBP = """
async (png) => {
  const image = new Image(), canvas = document.createElement("canvas");
  image.src = png;
  await image.decode();
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.8);
}
"""

KEYSTROKES = """
([text, times]) => {
  const box = document.getElementById("text"), found = [];
  const key = (value) => {
    box.value = value;
    const begun = performance.now();
    box.dispatchEvent(new Event("input"));
    document.body.offsetHeight;
    return performance.now() - begun;
  };
  const pasted = key(text), middle = text.length / 2;
  let more = "";
  for (let i = 0; i < times; i++) {
    more += "가나 다라는"[i % 6];
    found.push(key(text.slice(0, middle) + more + text.slice(middle)));
  }
  return [pasted, ...found];
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval.playground", description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--text", default="corpus:mini", help="where the 10 kB come from")
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("--picture", type=Path, help="picture of the page, WebP; nothing is measured then")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    print(f"{given.page.name}: {given.page.stat().st_size / 1000:.0f} kB")
    text = "\n".join(read_lines(Source.of(given.text))).encode()[:10_000].decode(errors="ignore")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        if given.picture:
            given.picture.write_bytes(_picture(browser, given.page))
            return
        print(browser.version, "first tokens, ms:", *sorted(_first(browser, given.page) for _ in range(given.rounds)))
        page = _open(browser, given.page)
        pasted, *keys = page.evaluate(KEYSTROKES, [text, 30])
        panes = page.locator(".pane:visible").count()
        print(
            f"10 kB in {panes} panes, {page.locator('.pane:visible .chip').count()} tokens: pasted {pasted:.0f} ms, "
            f"a keystroke {statistics.median(keys):.0f} ms (median of 30), {max(keys):.0f} ms (longest)"
        )
        if given.axe:
            for language in ("en", "ko"):
                for shade in ("light", "dark"):
                    _axe(browser, given, language, shade)
        browser.close()


def _picture(browser: Any, page: Path) -> bytes:
    opened = _open(browser, page, width=1200, height=980, locale="en")
    opened.fill("#text", SENTENCE)
    opened.locator(".pane").first.locator(".chip", has_text=CHOSEN).first.click()
    opened.evaluate("scrollTo(0, 0)")
    png = base64.b64encode(opened.screenshot()).decode()
    blank = browser.new_page()
    return base64.b64decode(blank.evaluate(WEBP, f"data:image/png;base64,{png}").partition(",")[2])


def _open(browser: Any, page: Path, *, width: int = 1400, height: int = 900, **options: Any) -> Any:
    opened = browser.new_context(viewport={"width": width, "height": height}, **options).new_page()
    opened.goto(page.resolve().as_uri())
    opened.wait_for_selector("html[data-ready]")
    return opened


def _first(browser: Any, page: Path) -> int:
    opened = _open(browser, page)
    milliseconds = int(opened.locator("html").get_attribute("data-first"))
    opened.context.close()
    return milliseconds


def _axe(browser: Any, given: argparse.Namespace, language: str, shade: str) -> None:
    page = _open(browser, given.page, locale=language, color_scheme=shade, bypass_csp=True)
    page.locator(".chip").nth(12).click()
    page.locator(".flow button").nth(1).click()
    page.evaluate(given.axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    for fault in found:
        where = fault["nodes"][0]
        print(f"{fault['impact']}: {fault['id']}: {fault['help']}; {where['target']} {where['failureSummary'][:300]}")
    print(f"axe, {language}, {shade}: {len(found)} findings")
    page.context.close()


if __name__ == "__main__":
    main()
