"""Print each language to one PDF, _build/pdf/{zh,en}.pdf: `python -m tools.build_pdf`, or `make pdf`.

The whole book as a single page, in Chromium, with everything folded opened and an outline of the headings.
"""

import base64
import sys
from pathlib import Path

from playwright.sync_api import Browser, PdfMargins

from lab.show.style import FONT
from tools.browser import BROWSER, chromium
from tools.build_book import BUILD, BuildFailed, build
from tools.settings import load_config

MARGIN = PdfMargins(top="18mm", bottom="18mm", left="16mm", right="16mm")
# The shipped font after the theme's own: where none of these has Chinese, Chromium would print empty boxes.
FONTS = """
@font-face {{ font-family: shipped; src: url(data:font/otf;base64,{}) }}
html[lang] {{
    --pst-font-family-base: var(--pst-font-family-base-system), shipped;
    --pst-font-family-monospace: var(--pst-font-family-monospace-system), shipped;
}}
"""
DRAWN = "document.querySelectorAll('article .math:not(:has(mjx-container))').length === 0"


def print_page(browser: Browser, page_file: Path, target: Path) -> None:
    page = browser.new_page(offline=True, color_scheme="light")
    page.goto(page_file.as_uri())
    page.wait_for_function(DRAWN)
    page.add_style_tag(content=FONTS.format(base64.b64encode(FONT.read_bytes()).decode()))
    page.evaluate("document.fonts.load('16px shipped', '中')")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    page.pdf(path=target, format="A4", margin=MARGIN, outline=True, tagged=True)
    page.close()


def print_book(browser: Browser) -> dict[str, Path]:
    """Build and print both languages; raises BuildFailed."""
    folder = BUILD / "pdf"
    folder.mkdir(parents=True, exist_ok=True)
    printed = {}
    for lang, html in build(load_config(), "singlehtml").items():
        printed[lang] = folder / f"{lang}.pdf"
        print_page(browser, html / "index.html", printed[lang])
    return printed


def main() -> int:
    if BROWSER is None:
        print("printing the PDF needs Chromium (apt-get install chromium)", file=sys.stderr)
        return 2
    try:
        with chromium() as browser:
            print(*print_book(browser).values(), sep="\n")
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
