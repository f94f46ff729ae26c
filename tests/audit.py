"""axe's audit: what keeps readers who use a screen reader, a keyboard or little contrast from a page."""

from importlib.resources import files
from typing import Any

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
AUDIT = """exclude => axe.run({exclude}, {preload: false, resultTypes: ["violations"]})
  .then(({violations}) => violations)"""


def violations(page, exclude: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """As axe has them; what matches a selector in `exclude` is left out."""
    page.evaluate(AXE)
    return page.evaluate(AUDIT, list(exclude))
