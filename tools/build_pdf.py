"""Print each language to one PDF, _build/pdf/{zh,en}.pdf: `python -m tools.build_pdf`, or `make pdf`.

The whole book as a single page, in Chromium, with everything folded opened and an outline of the headings.
"""

import sys
from pathlib import Path

from playwright.sync_api import Browser, PdfMargins

from tools.browser import BROWSER, chromium
from tools.build_book import BUILD, BuildFailed, build
from tools.settings import load_config

MARGIN = PdfMargins(top="18mm", bottom="18mm", left="16mm", right="16mm")
DRAWN = "document.querySelectorAll('article .math:not(:has(mjx-container))').length === 0"


def print_page(browser: Browser, page_file: Path, target: Path) -> None:
    page = browser.new_page(offline=True, color_scheme="light")
    page.goto(page_file.as_uri())
    page.wait_for_function(DRAWN)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    page.pdf(path=target, format="A4", margin=MARGIN, outline=True, tagged=True)
    page.close()


def print_book(browser: Browser) -> dict[str, Path]:
    """Build and print both languages; raises BuildFailed."""
    folder = BUILD / "pdf"
    folder.mkdir(exist_ok=True)
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
