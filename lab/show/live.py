"""Figures of lab.live in a notebook: recorded where it is only looked at; where it runs, the kernel turns them."""

import json
from collections.abc import Mapping
from typing import Any

from lab.live.figure import WIDE
from lab.live.page import figure_html
from lab.live.quiz_page import quiz_html
from lab.live.registry import answer, find, find_quiz
from lab.show.language import language, tr


class Recorded:
    """A figure or a quiz at its defaults, as every viewer of notebooks can show it."""

    def __init__(self, bundle: Mapping[str, str]) -> None:
        self.bundle = bundle  # by MIME type

    def _repr_mimebundle_(self, **kwargs: object) -> Mapping[str, str]:
        return self.bundle


def live(name: str) -> Any:
    """The figure of that name in the notebook's language: a widget, or where anywidget isn't installed its recording.

    Raises ConfigError if there is no figure of that name.
    """
    figure, lang = find(name), language()
    text = json.loads(answer(name, "{}", lang, WIDE))["text"]
    return _shown(figure_html(figure, lang), text)


def quiz(name: str) -> Any:
    """The quiz of the chapter of that name, likewise. Raises ConfigError if it has none."""
    found = find_quiz(name)
    n = len(found.questions)
    text = tr(zh=f"{n} 道题，先猜，再看答案。", en=f"{n} questions: guess first, then see the answers.")
    return _shown(quiz_html(found, language()), text)


def _shown(html: str, text: str) -> Any:
    bundle = {"text/html": html, "text/plain": text}
    try:
        from lab.show.live_widget import LiveFigure
    except ImportError:
        return Recorded(bundle)
    return LiveFigure(bundle)
