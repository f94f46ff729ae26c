"""A cell for each setting, with what it comes to in colour, by a mark and, where there is room, in a word."""

from collections.abc import Iterator, Mapping

from lab.live import draw
from lab.live.words import Both, Lang
from lab.sim.stability import Verdict
from lab.streams.svg import GREEN, PINK, SKY

Cell = tuple[int, int]  # max_num_seqs, max_num_batched_tokens

LEFT, RIGHT, TOP, ROW = 44, 10, 28, 44
VERDICTS = {  # colour, mark, word
    Verdict.STABLE: (GREEN, "✓", Both("稳定", "stable")),
    Verdict.UNDER_USED: (draw.GRID, "–", Both("浪费", "under-used")),
    Verdict.QUEUE_BOUND: (SKY, "≡", Both("排队", "queue")),
    Verdict.THRASH: (draw.ORANGE, "×", Both("颠簸", "thrash")),
    Verdict.SLO_MISS: (PINK, "!", Both("未达标", "SLO miss")),
}
HERE = Both("框：你在这里", "frame: you are here")


def draw_region(
    verdicts: Mapping[Cell, Verdict], here: Cell, title: str, description: str, lang: Lang, width: int
) -> str:
    """max_num_seqs upwards and max_num_batched_tokens to the right."""
    seqs, budgets = (sorted({cell[i] for cell in verdicts}) for i in (0, 1))
    size = (width - LEFT - RIGHT) / len(budgets)
    bottom = TOP + ROW * len(seqs)
    corners = {(s, b): (LEFT + size * budgets.index(b), bottom - ROW * (seqs.index(s) + 1)) for s, b in verdicts}
    items = [(color, f"{mark} {word.of(lang)}") for color, mark, word in VERDICTS.values()]
    key, height = draw.legend([*items, (draw.INK, HERE.of(lang))], LEFT, width - RIGHT, bottom + 44)
    x, y = corners[here]
    parts = [
        draw.text(LEFT, TOP - 10, "max_num_seqs"),
        *(draw.text(LEFT - 6, corners[s, budgets[0]][1] + ROW / 2 + 4, str(s), anchor="end") for s in seqs),
        *(part for cell, corner in corners.items() for part in draw_cell(verdicts[cell], *corner, size, lang)),
        draw.rect(x + 3, y + 3, size - 6, ROW - 6, "none", stroke=draw.INK, stroke_width=3),
        *(draw.text(corners[seqs[0], b][0] + size / 2, bottom + 16, str(b), anchor="middle") for b in budgets),
        draw.text(width - RIGHT, bottom + 34, "max_num_batched_tokens", anchor="end"),
        *key,
    ]
    return draw.document(width, height, title, description, parts)


def draw_cell(verdict: Verdict, x: float, y: float, size: float, lang: Lang) -> Iterator[str]:
    """With the word only where there is room for every word."""
    color, mark, word = VERDICTS[verdict]
    has_room = size > 30 + max(draw.text_width(other.of(lang)) for _, _, other in VERDICTS.values())
    label = f"{mark} {word.of(lang)}" if has_room else mark
    yield draw.rect(x + 1, y + 1, size - 2, ROW - 2, color, fill_opacity=0.45)
    yield draw.text(x + size / 2, y + ROW / 2 + 5, label, anchor="middle", font_size=14)
