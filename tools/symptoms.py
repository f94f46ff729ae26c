"""The page of symptoms, made of data/symptoms.toml; its commands are run by tests/book/test_symptoms.py."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.claims_page import link_to_section, link_to_test
from tools.settings import LANGUAGES, ROOT
from tools.source import as_source, read_chapter

HEAD = {
    "zh": "# 症状速查\n\n"
    "公开的问题报告里反复出现的症状：原因、办法，以及能把它坐实的一次运行。命令在克隆下来的目录里敲，先装好实验代码"
    "（`pip install -e .`；用 `make book` 装的，把 `python` 换成 `.venv/bin/python`），不需要 "
    "GPU；“看到”后面是输出里的几段，空格并成一个，测试每次都重跑核对。"
    "`simulate` 的时间是虚构的：一步 5 ms，每个词元 0.02 ms；"
    "`streams` 的一行，名字后面依次是读到的值、该读到的值、对不对，再往后见它的表头。",
    "en": "# Symptoms\n\n"
    "What public problem reports tell of again and again: why it happens, what to do, and the run that settles it. "
    "Type the commands in a clone that has the lab installed (`pip install -e .`; after `make book`, write "
    "`.venv/bin/python` for `python`); none needs a GPU. What follows “Shows” are parts of the output, runs of "
    "blanks as one, which the tests look for each time they run. The times of `simulate` are made up: 5 ms a step, and "
    "0.02 ms for each token in it. In a row of `streams`, after its name: the value that was read, the one it should "
    "be, whether they are the same; the table's heads name the rest.",
}
ITEMS = {
    "zh": ("原因：", "办法：", "运行：", "改过之后：", "看到：", "测试：", "在书里：", "出处："),
    "en": ("Why: ", "What to do: ", "Run: ", "Mended: ", "Shows: ", "Test: ", "In the book: ", "Reports: "),
}
MADE = "<!-- Made by tools/symptoms.py from data/symptoms.toml: run `make sync`. -->"


@dataclass(frozen=True)
class Symptom:
    """A row of data/symptoms.toml. What settles it is a command and what it prints, or a test.

    `mended` is the command with the cure, where that is another one.
    """

    id: str
    title_zh: str
    title_en: str
    why_zh: str
    why_en: str
    do_zh: str
    do_en: str
    section: str
    sources: Sequence[str]
    run: str = ""
    prints: Sequence[str] = ()
    mended: str = ""
    mended_prints: Sequence[str] = ()
    test: str = ""

    def of(self, field: str, lang: str) -> str:
        return str(getattr(self, f"{field}_{lang}"))

    @property
    def commands(self) -> list[tuple[str, Sequence[str]]]:
        """Each command and the lines it must print."""
        both = ((self.run, self.prints), (self.mended, self.mended_prints))
        return [(command, lines) for command, lines in both if command]


def read_symptoms(root: Path = ROOT) -> list[Symptom]:
    rows = tomllib.loads((root / "data/symptoms.toml").read_text(encoding="utf-8"))["symptom"]
    return [Symptom(**row) for row in rows]


def as_page(symptoms: list[Symptom]) -> str:
    return as_source(MADE, [HEAD, *({lang: _passage(symptom, lang) for lang in LANGUAGES} for symptom in symptoms)])


def _passage(symptom: Symptom, lang: str) -> str:
    why, do, run, mended, shows, test, where, reports = ITEMS[lang]
    page, _, anchor = symptom.section.partition("#")
    title = read_chapter(ROOT / f"chapters/src/{page}.md").title(anchor, lang)
    stop = "，" if lang == "zh" else ", "
    settled = [f"- {test}{link_to_test(symptom.test)}"] if symptom.test else []
    for label, (command, printed) in zip((run, mended), symptom.commands):
        settled += [f"- {label}`python -m lab {command}`", f"- {shows}{stop.join(f'`{line}`' for line in printed)}"]
    lines = [
        f"## {symptom.of('title', lang)}\n",
        f"- {why}{symptom.of('why', lang)}",
        f"- {do}{symptom.of('do', lang)}",
        *settled,
        f"- {where}{link_to_section(title, symptom.section)}",
        f"- {reports}{stop.join(map(_report, symptom.sources))}",
    ]
    return "\n".join(lines)


def _report(source: str) -> str:
    repository, _, number = source.partition("#")
    return f"[{repository.split('/')[1]} {number}](https://github.com/{repository}/issues/{number})"
