"""One look for every figure of the book, with Chinese that renders on a machine that has no Chinese font."""

from importlib.resources import as_file, files
from io import BytesIO

import matplotlib as mpl
from cycler import cycler
from matplotlib import font_manager
from matplotlib.figure import Figure

from lab.show.language import tr
from lab.streams.svg import BLUE, GREEN, ORANGE, PINK, SKY, YELLOW

__all__ = ["COLORS", "tr", "use_style"]

COLORS = (BLUE, ORANGE, GREEN, PINK, SKY, YELLOW)

# The glyphs of GB 2312, Latin-1 and ASCII from Noto Sans CJK SC (fonts/OFL.txt).
FONT = files("lab.show") / "fonts" / "NotoSansCJKsc-Subset.otf"

_PNG_COLORS = 64  # flat colours and the edges of letters: a palette makes the file four times smaller


def use_style() -> None:
    """Set matplotlib's rcParams for the book, and how a notebook keeps its figures; call it before the first figure."""
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
            "figure.figsize": (6.0, 3.4),  # letters of 9 points in 6 inches can be read on a phone
            "figure.dpi": 144,
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.titlesize": 10,
            "axes.titlelocation": "left",
            "legend.fontsize": 9,
            "legend.frameon": False,
        }
    )
    _keep_small_pngs()


def _add_font() -> str:
    """Register the shipped font once per process and return its family name."""
    with as_file(FONT) as path:
        name = font_manager.get_font(path).family_name
        if all(entry.fname != str(path) for entry in font_manager.fontManager.ttflist):
            font_manager.fontManager.addfont(path)
    return name


def small_png(figure: Figure) -> bytes:
    """The figure as a PNG of a few colours."""
    from PIL import Image

    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", bbox_inches="tight")
    Image.open(drawn).convert("RGB").quantize(_PNG_COLORS).save(small, "png", optimize=True)
    return small.getvalue()


def _keep_small_pngs() -> None:
    """In a notebook: figures are kept as small PNGs."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return
    import matplotlib.pyplot as plt

    plt.switch_backend(mpl.get_backend())  # it registers its own way of drawing figures when it is loaded: now
    shell.display_formatter.formatters["image/png"].for_type(Figure, small_png)
