"""A figure as HTML: what was recorded when the page was built, and the knobs, which sleep until the page's script wakes
them. The book's pages and the tests have it from here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from lab.live.figure import NARROW, WIDE, Figure
from lab.live.knobs import Knob, Slider
from lab.live.registry import answer
from lab.live.words import Both, Lang

RUN = Both("在这里运行（加载 Python，约 5\u00a0MB）", "Run it here (loads Python once, about 5\u00a0MB)")
RESET = Both("恢复原样", "Start over")
# What the script says while it works; {} is the reason.
WORDS = {
    "loading": Both("正在加载 Python……", "Loading Python..."),
    "ready": Both("可以拧旋钮了。", "Ready: turn the knobs."),
    "failed": Both("没能运行：{}。图还是原来的。", "It did not run: {}. The picture is as it was."),
    "slow": Both("等了两分钟没有回音", "two minutes without an answer"),
    "asked": Both("网址里带着另一组设置，点按钮运行后显示。", "The address asks for another setting: run it to see."),
}


def figure_html(figure: Figure, lang: Lang) -> str:
    """The figure at its defaults, in both widths, for a page of that language."""
    shown = {width: json.loads(answer(figure.name, "{}", lang, width)) for width in (WIDE, NARROW)}
    reply = shown[WIDE]
    rows = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in reply["rows"])
    notes = "".join(f"<li>{escape(note)}</li>" for note in reply["notes"])
    return f"""<div class="live" data-figure="{figure.name}" data-lang="{lang}" data-words="{words_html(WORDS, lang)}">
{form_html(figure.title, figure.knobs, lang)}
<p class="live-status" role="status"></p>
<div class="live-picture"><div class="live-wide">{reply["svg"]}</div>
<div class="live-narrow" hidden>{shown[NARROW]["svg"]}</div></div>
<p class="live-text" aria-live="polite">{escape(reply["text"])}</p>
<dl class="live-rows">{rows}</dl>
<ul class="live-notes">{notes}</ul>
</div>
"""


def words_html(words: Mapping[str, Both], lang: Lang) -> str:
    """JSON for an attribute."""
    return escape(json.dumps({name: both.of(lang) for name, both in words.items()}, ensure_ascii=False))


def form_html(title: Both, knobs: Sequence[Knob], lang: Lang) -> str:
    """The knobs, and the buttons that wake them and put them back."""
    controls = "\n".join(knob_html(knob, lang) for knob in knobs)
    return f"""<form autocomplete="off"><fieldset disabled><legend>{escape(title.of(lang))}</legend>
{controls}
</fieldset>
<p><button type="button" class="live-run" hidden>{RUN.of(lang)}</button>
<button type="reset" class="live-reset" hidden>{RESET.of(lang)}</button></p></form>"""


def knob_html(knob: Knob, lang: Lang) -> str:
    """A native slider over the places of the marks, or a native list; the label is its name for everybody.

    The label is around it: a notebook may show a figure twice, and an id would then be there twice.
    """
    if isinstance(knob, Slider):
        marks, value = json.dumps(knob.marks), knob.shown(knob.default, lang)
        last, place = len(knob.marks) - 1, list(knob.marks).index(knob.default)
        control = (
            f'<input type="range" name="{knob.name}" min="0" max="{last}" value="{place}" data-marks="{marks}" '
            f'aria-valuetext="{value}"><span class="live-value" aria-hidden="true">{value}</span>'
        )
    else:
        control = f'<select name="{knob.name}">{"".join(options_html(knob.options, knob.default, lang))}</select>'
    return f'<label class="live-knob"><span>{escape(knob.label.of(lang))}</span>{control}</label>'


def options_html(options: Mapping[str, Both], default: str, lang: Lang) -> Iterator[str]:
    for value, word in options.items():
        selected = " selected" if value == default else ""
        yield f'<option value="{value}"{selected}>{escape(word.of(lang))}</option>'
