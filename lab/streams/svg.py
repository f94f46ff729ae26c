"""The few shapes of SVG that the pictures need, as text."""

import unicodedata
from html import escape

FONT = "system-ui, 'Noto Sans SC', 'Noto Sans CJK SC', sans-serif"
TEXT_SIZE = 12


def rect(x: float, y: float, width: float, height: float, fill: str, *, title: str = "", **style: object) -> str:
    inner = f"<title>{escape(title)}</title>" if title else ""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}"'
    return f'<rect {size} fill="{fill}"{attributes(style)}>{inner}</rect>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, **style: object) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{stroke}"{attributes(style)}/>'


def text(x: float, y: float, content: str, *, anchor: str = "start", fill: str = "#222", **style: object) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{fill}"{attributes(style)}>{escape(content)}</text>'


def label(x: float, y: float, content: str) -> str:
    """Text with a white edge, readable across lines."""
    return text(x, y, content, stroke="white", stroke_width=3, paint_order="stroke")


def attributes(style: dict[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())


def text_width(content: str) -> float:
    """About how wide a line of text will be: nobody can know the reader's font."""
    return sum(TEXT_SIZE if unicodedata.east_asian_width(c) in "WF" else 0.56 * TEXT_SIZE for c in content)


def document(width: float, height: float, label: str, defs: str, parts: list[str]) -> str:
    """A whole picture on white, so that it can be read on a page of any colour."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(label)}" font-family="{FONT}" font-size="{TEXT_SIZE}">'
        f"<title>{escape(label)}</title><defs>{defs}</defs>"
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
