"""The two languages of every source say the same, and a difference of each kind is reported with its place."""

import pytest

from tools.numbers import digits, words
from tools.parity import differences, report
from tools.settings import SOURCES
from tools.source import read_chapter

ZH = """# 题目

预算 `max_num_batched_tokens` 是 4,096，3 万个词元要 8 步，见[这里](01-x.md)。每步 $C$ 个。

$$n = 8$$

| 甲 | 乙 |
|---|---|
| 1 | 2 |

- 一条

![图](a.png)
"""
EN = """# The title

The budget `max_num_batched_tokens` is 4096, so 30,000 tokens take eight steps: [here](01-x.md). $C$ per step.

$$n = 8$$

| A | B |
|---|---|
| 1 | 2 |

- One item

![A figure](a.png)
"""
FIGURE = """```{code-cell}
:alt_zh: "%s"
:alt_en: "%s"

x = 1
```
"""


def compare(tmp_path, zh: str, en: str, cell: str = "") -> list[str]:
    path = tmp_path / "01-try.md"
    path.write_text(f'+++ {{"lang": "zh"}}\n\n{zh}\n+++ {{"lang": "en"}}\n\n{en}\n{cell}', encoding="utf-8")
    return differences(read_chapter(path))


def test_the_books_languages_agree():
    assert report(SOURCES) == []


def test_the_same_in_two_languages_is_no_difference(tmp_path):
    assert compare(tmp_path, ZH, EN, FIGURE % ("横轴 16 到 326", "from 16 to 326")) == []


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("4096", "4906", ["number 4096 in Chinese only", "number 4906 in English only"]),
        ("30,000", "3,000", ["number 30000 in Chinese only", "number 3000 in English only"]),
        ("eight", "seven", ["number 8 in Chinese only"]),
        (
            "max_num_batched_tokens",
            "max_num_seqs",
            ["name max_num_batched_tokens in Ch", "name max_num_seqs in En"],
        ),
        ("$C$ per", "$L$ per", ["formula C in Chinese only", "formula L in English only"]),
        ("n = 8", "n = 9", ["formula n = 8 in Chinese only", "formula n = 9 in English only"]),
        ("| 1 | 2 |\n", "", ["table of 2 x 2 in Chinese only", "table of 1 x 2 in English only"]),
        ("| A | B |\n|---|---|\n| 1 | 2 |", "| A |\n|---|\n| 1 |", ["table of 2 x 2", "table of 2 x 1", "number 2"]),
        ("a.png", "b.png", ["figure a.png in Chinese only", "figure b.png in English only"]),
        ("01-x.md", "02-x.md", ["link 01-x.md in Chinese only", "link 02-x.md in English only"]),
        ("- One item", "- One item\n- Another item", ["list item - in English only"]),
        ("- One item", "```sh\nls\n```", ["list item - in Chinese only", "code block sh in English only"]),
    ],
)
def test_planted_drift_of_each_kind_is_reported_with_its_place(tmp_path, old, new, reported):
    assert old in EN
    found = compare(tmp_path, ZH, EN.replace(old, new))
    assert all(line.startswith("'# The title': ") for line in found)
    for expected in reported:
        assert any(expected in line for line in found), found


def test_alt_texts_are_compared_too(tmp_path):
    found = compare(tmp_path, ZH, EN, FIGURE % ("横轴 16 到 326", "from 16 to 362"))
    assert found == ["'from 16 to 362': number 326 in Chinese only", "'from 16 to 362': number 362 in English only"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2,000 and 2000", {"2000": 2}),
        ("1.5 million", {"1500000": 1}),
        ("310 万，3万，2 亿", {"3100000": 1, "30000": 1, "200000000": 1}),
        ("chunks of 16,64,128 and 4/8", {"16": 1, "64": 1, "128": 1, "4": 1, "8": 1}),
        ("a 326-token prompt, 2x, the 1st, 1.0", {"326": 1, "2": 1, "1": 2}),
        ("vLLM 0.33.0 and float32 on a T4", {"0.33.0": 1, "float32": 1, "T4": 1}),
        ("在 64 个里面取 10%。", {"64": 1, "10": 1}),
        ("16–326", {"16": 1, "326": 1}),
    ],
)
def test_numbers_in_digits(text, numbers):
    assert digits(text) == numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [("十二", "12"), ("三百二十六", "326"), ("两", "2"), ("twelve", "12"), ("一半", "50")],
)
def test_numbers_in_words(text, value):
    assert words(text)[value] == 1
