"""The few shapes of SVG that the pictures need, as text.

Colours are plain, since not every viewer knows CSS variables. On a dark page a style sheet puts others in their place:
the page's own, or for a picture that stands alone the one it carries.
"""

import unicodedata
from collections.abc import Sequence
from html import escape

INK = "currentColor"  # of the text around it
PAPER, GRID, RED = "#ffffff", "#d8d8d8", "#c0392b"
# Okabe and Ito's palette, which all eyes can tell apart.
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALE_BLUE, PALE_ORANGE = "#8fc8ec", "#f2c572"
ON_DARK = {
    PAPER: "#14181e",
    GRID: "#3f4751",
    RED: "#ff7b72",
    BLUE: "#4ba3e3",
    ORANGE: "#f0803c",
    SKY: "#b5def7",
    PALE_BLUE: "#2f6d96",
    PALE_ORANGE: "#8a6420",
}

FONT = "system-ui, 'Noto Sans SC', 'Noto Sans CJK SC', sans-serif"
TEXT_SIZE = 12


def rect(x: float, y: float, width: float, height: float, fill: str, *, title: str = "", **style: object) -> str:
    inner = f"<title>{escape(title)}</title>" if title else ""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}"'
    return f'<rect {size} fill="{fill}"{attributes(style)}>{inner}</rect>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, **style: object) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{stroke}"{attributes(style)}/>'


def text(x: float, y: float, content: str, *, anchor: str = "start", **style: object) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}{attributes(style)}>{escape(content)}</text>"


def label(x: float, y: float, content: str) -> str:
    """Text with an edge of paper, readable across lines."""
    return text(x, y, content, stroke=PAPER, stroke_width=3, paint_order="stroke")


def attributes(style: dict[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())


def text_width(content: str) -> float:
    """About how wide a line of text will be: nobody can know the reader's font."""
    return sum(TEXT_SIZE if unicodedata.east_asian_width(c) in "WF" else 0.56 * TEXT_SIZE for c in content)


def document(width: float, height: float, title: str, description: str, parts: Sequence[str], defs: str = "") -> str:
    """A whole picture for the inside of a page: transparent, in the colour of the text around it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" fill="{INK}" font-family="{FONT}" font-size="{TEXT_SIZE}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc><defs>{defs}</defs>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def dark_rules() -> list[str]:
    """CSS that puts the dark page's colours in the place of the others."""
    return [f'[{what}="{old}"] {{ {what}: {new}; }}' for old, new in ON_DARK.items() for what in ("fill", "stroke")]


def stand_alone(picture: str) -> str:
    """The picture for a file: on paper of its own, light or dark as the page that shows it or the reader's system."""
    dark = " ".join(["svg { color: #ced6dd; }", *dark_rules()])
    styles = f"svg {{ color: #222; }} @media (prefers-color-scheme: dark) {{ {dark} }}"
    paper = f'<style>{styles}</style><rect width="100%" height="100%" fill="{PAPER}"/>'
    return picture.replace("</defs>", f"</defs>{paper}", 1)
