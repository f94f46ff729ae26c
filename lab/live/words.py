"""Text in both languages, side by side."""

from typing import NamedTuple

from lab.streams.words import Lang

__all__ = ["Both", "Lang", "same"]


class Both(NamedTuple):
    zh: str
    en: str

    def of(self, lang: Lang) -> str:
        return self.zh if lang == "zh" else self.en


def same(name: str) -> Both:
    """A name that is not translated."""
    return Both(name, name)


def counted(n: int, noun: str) -> str:
    """In English: 1 step, 2 steps."""
    return f"{n} {noun}{'s' * (n != 1)}"
