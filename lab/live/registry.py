"""All figures and questions, and the one call that the page makes: JSON in, JSON out."""

import json
from typing import get_args

from lab.core.errors import ConfigError, LabError
from lab.live import console, gantt, quiz_admission, quiz_chunks, quiz_streams, region, streams
from lab.live.figure import NARROW, NEEDED, WIDE, Figure
from lab.live.knobs import read_settings
from lab.live.quiz import Question, Quiz
from lab.live.words import Lang

ALL = (gantt.FIGURE, console.FIGURE, region.FIGURE, *streams.FIGURES)
FIGURES: dict[str, Figure] = {figure.name: figure for figure in ALL}
QUIZZES: dict[str, Quiz] = {part.QUIZ.name: part.QUIZ for part in (quiz_chunks, quiz_admission, quiz_streams)}
QUESTIONS: dict[str, Question] = {question.name: question for quiz in QUIZZES.values() for question in quiz.questions}


def find(name: str) -> Figure:
    """Raises ConfigError if there is no figure of that name."""
    if name not in FIGURES:
        raise ConfigError(f"no figure {name!r}: choose from {', '.join(FIGURES)}")
    return FIGURES[name]


def find_quiz(name: str) -> Quiz:
    """Raises ConfigError if there is no quiz of that name."""
    if name not in QUIZZES:
        raise ConfigError(f"no quiz {name!r}: choose from {', '.join(QUIZZES)}")
    return QUIZZES[name]


def answer(name: str, settings: str, lang: Lang, width: float) -> str:
    """What a figure, or a question, shows for `settings`, a JSON object, in a space of `width` pixels.

    A JSON object: the settings as they were understood, and the fields of `Shown`, or of `Asked`; where the settings
    make no sense, only `error`, a line for the reader.
    """
    try:
        if lang not in get_args(Lang):
            raise ConfigError(f"no language {lang!r}: choose from {', '.join(get_args(Lang))}")
        figure = QUESTIONS.get(name) or find(name)
        values, notes = read_settings(figure.knobs, settings, lang)
        shown = figure.show(values, lang, WIDE if width >= NEEDED else NARROW)
        reply = {"settings": values, **vars(shown), "notes": [*notes, *shown.notes]}
    except LabError as error:
        reply = {"error": str(error)}
    return json.dumps(reply, ensure_ascii=False, allow_nan=False)
