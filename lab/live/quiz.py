"""Questions to be guessed before they are answered. Both the right answer and what leads astray are computed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

from lab.live.knobs import Knob, Values
from lab.live.words import Both, Lang, same


@dataclass(frozen=True)
class Option:
    """`key` names it in every language; `because` is why it is right, or which mistake leads there."""

    key: str
    text: Both
    because: Both


@dataclass(frozen=True)
class Posed:
    """A question with its numbers; `right` is the key of one of the options, which stand in the order shown."""

    text: Both
    options: Sequence[Option]
    right: str


@dataclass(frozen=True)
class Asked:
    """A posed question in one language: what there is to choose from and the answer, as HTML."""

    options: str
    answer: str
    right: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Question:
    """`pose` asks it with the numbers that its knobs are at, and lets the lab answer."""

    name: str
    knobs: Sequence[Knob]
    pose: Callable[[Values], Posed]

    def show(self, values: Values, lang: Lang, width: int) -> Asked:
        """As a `Figure` does; the width makes no difference."""
        posed = self.pose(values)
        return Asked(self._options(posed, lang), self._answer(posed, lang), posed.right)

    def _options(self, posed: Posed, lang: Lang) -> str:
        radio = f'<input type="radio" name="{self.name}" autocomplete="off" value='
        labels = (f'<label>{radio}"{escape(o.key)}"> {escape(o.text.of(lang))}</label>' for o in posed.options)
        return f'<p id="{self.name}-asked">{escape(posed.text.of(lang))}</p>\n' + "\n".join(labels)

    def _answer(self, posed: Posed, lang: Lang) -> str:
        """The right one first, then where the others come from."""
        ranked = sorted(posed.options, key=lambda option: option.key != posed.right)
        colon = Both("：", ": ").of(lang)
        right, *wrong = (escape(option.text.of(lang) + colon + option.because.of(lang)) for option in ranked)
        return f"<p>{right}</p>\n<ul>{''.join(f'<li>{line}</li>' for line in wrong)}</ul>"


@dataclass(frozen=True)
class Quiz:
    """The questions of a chapter."""

    name: str
    questions: Sequence[Question]


class Reason(NamedTuple):
    """A number, and what leads to it."""

    number: float
    zh: str
    en: str

    @property
    def key(self) -> str:
        return f"{self.number:.6g}"


def by_number(text: Both, say: Callable[[float], Both], right: Reason, *wrong: Reason) -> Posed:
    """Numbers in ascending order; one that two reasons lead to is there once, and if it is right, as right."""
    reasons = {reason.key: reason for reason in (*reversed(wrong), right)}
    ascending = sorted(reasons.values(), key=lambda reason: reason.number)
    return Posed(text, [Option(r.key, say(r.number), Both(r.zh, r.en)) for r in ascending], right.key)


def by_name(text: Both, options: Sequence[Option], right: str, because: Both) -> Posed:
    """In the order given, each with the mistake that leads there; the right one has `because` in its place."""
    return Posed(text, [replace(o, because=because) if o.key == right else o for o in options], right)


def ms(seconds: float) -> Both:
    return same(f"{1e3 * seconds:.2f} ms")


def whole(counter: str) -> Callable[[float], Both]:
    """Numbers of things, with the word that Chinese counts them by."""
    return lambda n: Both(f"{n:.0f} {counter}", f"{n:.0f}")
