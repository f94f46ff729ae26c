"""Figures in Chinese on a machine without a Chinese font."""

import re
import warnings
from io import BytesIO

import matplotlib
import pytest
from fontTools.ttLib import TTFont
from PIL import Image

from lab.show.style import small_png, tr, use_style
from tools.settings import ROOT, SOURCES


@pytest.mark.parametrize(("lang", "text"), [("zh", "显存"), ("zh_CN", "显存"), ("en", "memory"), ("", "memory")])
def test_tr_speaks_the_language_of_the_notebook(monkeypatch, lang, text):
    monkeypatch.setenv("BOOK_LANG", lang)
    assert tr(zh="显存", en="memory") == text


def test_chinese_mixed_with_mathematics_draws_no_boxes(tmp_path):
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns for each glyph it lacks
        use_style()
        use_style()
        assert matplotlib.rcParams["font.family"][0] == "Noto Sans CJK SC", "mathtext looks at the first family only"
        figure, axes = plt.subplots()
        axes.plot([-1, 1], [-2, 2], label="块长 $C$ 的阈值，−3 µs")
        axes.set_title("抖动与吞吐：$\\lceil L/C \\rceil$")
        axes.legend()
        figure.savefig(tmp_path / "figure.png")
        figure.savefig(tmp_path / "figure.svg")
        plt.close(figure)


def test_the_shipped_font_has_every_character_the_book_draws():
    (font,) = (ROOT / "lab/show/fonts").glob("*.otf")
    glyphs = set(map(chr, TTFont(font).getBestCmap()))
    sources = [*SOURCES.glob("*.md"), *(ROOT / "lab").rglob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    han = set(re.findall("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]", text))
    assert han and han <= glyphs, f"not in the font: {''.join(sorted(han - glyphs))}"


def test_a_figure_is_kept_small_and_looks_the_same():
    import matplotlib.pyplot as plt

    with matplotlib.rc_context():
        use_style()
        figure, axes = plt.subplots()
        axes.barh([0, 1], [1, 2], color=["#0072B2", "#D55E00"])
        axes.set_title("显存")
        large = BytesIO()
        figure.savefig(large, format="png", bbox_inches="tight")
        small = small_png(figure)
        plt.close(figure)
    assert len(small) < len(large.getvalue()) / 2
    before, after = (Image.open(BytesIO(png)).convert("RGB") for png in (large.getvalue(), small))
    assert before.size == after.size
    colors = {color for _, color in after.getcolors()}
    assert (0, 0x72, 0xB2) in colors and (0xD5, 0x5E, 0) in colors and (255, 255, 255) in colors
