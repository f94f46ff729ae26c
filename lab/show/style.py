"""One look for every figure of the book, with Chinese that renders on a machine that has no Chinese font."""

from importlib.resources import as_file, files

import matplotlib as mpl
from cycler import cycler
from matplotlib import font_manager

from lab.show.language import tr

__all__ = ["COLORS", "tr", "use_style"]

# Okabe and Ito's palette, which readers with any common colour blindness can tell apart, without its yellow.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")

# The glyphs of GB 2312, Latin-1 and ASCII from Noto Sans CJK SC (fonts/OFL.txt).
_FONT_FILE = "NotoSansCJKsc-Subset.otf"


def use_style() -> None:
    """Set matplotlib's rcParams for the book; call it once, before the first figure."""
    mpl.rcParams.update(
        {
            # The Chinese font comes first: mathtext looks at the first family only, and would draw boxes otherwise.
            "font.family": [_add_font(), "DejaVu Sans"],
            "axes.prop_cycle": cycler(color=COLORS),
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.alpha": 0.3,
            "figure.figsize": (7.0, 3.6),
            "figure.dpi": 120,
            "figure.constrained_layout.use": True,
            "legend.frameon": False,
        }
    )


def _add_font() -> str:
    """Register the shipped font once per process and return its family name."""
    with as_file(files("lab.show") / "fonts" / _FONT_FILE) as path:
        name = font_manager.get_font(path).family_name
        if all(entry.fname != str(path) for entry in font_manager.fontManager.ttflist):
            font_manager.fontManager.addfont(path)
    return name
