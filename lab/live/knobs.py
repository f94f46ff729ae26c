"""What a reader may set: knobs with a range each, whatever was typed into the address bar."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.core.errors import LabError
from lab.live.words import Both, Lang

Value = int | float | str
Values = Mapping[str, Value]


class BadSetting(LabError, ValueError):
    """A setting that no value can be made of; the message is in the reader's language."""

    def __init__(self, lang: Lang, message: Both) -> None:
        super().__init__(message.of(lang))


@dataclass(frozen=True)
class Slider:
    """A number out of `marks`, which ascend; `default` is one of them."""

    name: str
    label: Both
    marks: Sequence[int | float]
    default: int | float

    def read(self, raw: object, lang: Lang) -> int | float:
        """The mark nearest to `raw`. Raises BadSetting if that is no finite number."""
        try:
            number = float(raw) if isinstance(raw, int | float | str) and not isinstance(raw, bool) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            low, high = self.marks[0], self.marks[-1]
            shown = f"{raw!s:.40}"
            zh = f"{self.name} 是“{shown}”，应为 {low} 到 {high} 之间的数"
            en = f"{self.name} is “{shown}”; it must be a number from {low} to {high}"
            raise BadSetting(lang, Both(zh, en))
        return min(self.marks, key=lambda mark: abs(mark - number))

    def shown(self, value: Value, lang: Lang) -> str:
        return str(value)


@dataclass(frozen=True)
class Choice:
    """One of `options`, each with what the reader sees; `default` is one of them."""

    name: str
    label: Both
    options: Mapping[str, Both]
    default: str

    def read(self, raw: object, lang: Lang) -> str:
        """Raises BadSetting if `raw` is none of the options."""
        if not isinstance(raw, str) or raw not in self.options:
            shown, options = f"{raw!s:.40}", ", ".join(self.options)
            zh = f"{self.name} 没有“{shown}”这一项，可选：{options}"
            en = f"{self.name} has no “{shown}”: choose from {options}"
            raise BadSetting(lang, Both(zh, en))
        return raw

    def shown(self, value: Value, lang: Lang) -> str:
        return self.options[str(value)].of(lang)


Knob = Slider | Choice


def read_settings(knobs: Sequence[Knob], text: str, lang: Lang) -> tuple[Values, list[str]]:
    """A value for each knob from a JSON object, and a note for each number that had to be moved onto its slider.

    What is left out has its default. Raises BadSetting for text that is no such object, and for a name or a value that
    no knob has.
    """
    raw = _parse(text, lang)
    unknown = sorted(raw.keys() - {knob.name for knob in knobs})
    if unknown:
        name, names = f"{unknown[0]:.40}", ", ".join(knob.name for knob in knobs)
        raise BadSetting(lang, Both(f"没有“{name}”这个旋钮，可调的有：{names}", f"no knob “{name}”: there are {names}"))
    values = {knob.name: knob.read(raw.get(knob.name, knob.default), lang) for knob in knobs}
    notes = []
    for name, value in values.items():
        if not isinstance(value, str) and name in raw and float(str(raw[name])) != value:
            asked = f"{raw[name]!s:.40}"
            note = Both(
                f"{name}：滑杆上没有 {asked}，按最接近的 {value} 计算",
                f"{name}: {asked} is not on the slider; this is {value}, the nearest",
            )
            notes.append(note.of(lang))
    return values, notes


def _parse(text: str, lang: Lang) -> dict[str, object]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise BadSetting(lang, Both("设置应是一个 JSON 对象", "settings must be a JSON object"))
    return raw
