"""Which language a figure or a printed line speaks: the notebook's setup cell sets BOOK_LANG."""

import os
from typing import Literal


def language() -> Literal["zh", "en"]:
    """Return "zh" or "en", from the environment variable BOOK_LANG ("en" when it is not set)."""
    return "zh" if os.environ.get("BOOK_LANG", "en").lower().startswith("zh") else "en"


def tr(*, zh: str, en: str) -> str:
    """Return the text in the reader's language. Both must be given, side by side, so that they change together."""
    return zh if language() == "zh" else en
