"""Do the two languages of a chapter say the same? What can be counted is: `differences(chapter)` names what is not.

Compared passage by passage: headings, formulas, tables (rows x columns), list items, figures, links, code and option
names in backticks, and numbers. Where one language writes a digit the other may write a word: "6" is answered by "six"
and by 六. A digit with no answer of its value is a difference; words alone are not compared. 3 万 is 30,000, 2x is 2,
"326-token" is 326, and a name with a digit in it (float32, T4) counts as a name.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.numbers import digits, words
from tools.source import Chapter, Code, Prose, read_chapter

Facts = dict[str, Counter[str]]

MATH = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.S)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.S | re.M)
PARSER = MarkdownIt("commonmark").enable("table")


def differences(chapter: Chapter) -> list[str]:
    """One line for every fact that only one language has, with the passage it is missing from."""
    found = []
    for part in chapter.parts:
        for zh, en in _texts(part):
            place = en.strip().partition("\n")[0][:60]
            facts_zh, facts_en = facts(zh), facts(en)
            for kind in facts_zh:
                only_zh, only_en = facts_zh[kind] - facts_en[kind], facts_en[kind] - facts_zh[kind]
                if kind == "number":
                    only_zh, only_en = only_zh - words(en), only_en - words(zh)
                found += [f"{place!r}: {kind} {item} in Chinese only" for item in only_zh.elements()]
                found += [f"{place!r}: {kind} {item} in English only" for item in only_en.elements()]
    return found


def report(folder: Path) -> list[str]:
    """The differences of every source in a folder, each line with its file."""
    chapters = map(read_chapter, sorted(folder.glob("*.md")))
    return [f"{chapter.name}.md: {line}" for chapter in chapters for line in differences(chapter)]


def _texts(part: Prose | Code) -> Iterator[tuple[str, str]]:
    if isinstance(part, Prose):
        yield part.zh, part.en
    elif "alt_zh" in part.metadata or "alt_en" in part.metadata:
        yield part.metadata.get("alt_zh", ""), part.metadata.get("alt_en", "")


def facts(markdown: str) -> Facts:
    """What a passage holds of each kind, with how many times."""
    without_code = CODE.sub(" ", markdown)
    formulas = Counter(re.sub(r"\s+", " ", (block or inline).strip()) for block, inline in MATH.findall(without_code))
    tokens = PARSER.parse(_blank(MATH, markdown))
    inline = [child for token in tokens for child in token.children or []]
    text = " ".join(child.content for child in inline if child.type in ("text", "html_inline"))
    return {
        "heading": Counter(f"of level {token.tag[1]}" for token in tokens if token.type == "heading_open"),
        "formula": formulas,
        "table": Counter(_tables(tokens)),
        "list item": Counter("-" for token in tokens if token.type == "list_item_open"),
        "code block": Counter(token.info or "plain" for token in tokens if token.type == "fence"),
        "figure": Counter(str(child.attrs["src"]) for child in inline if child.type == "image"),
        "link": Counter(str(child.attrs["href"]) for child in inline if child.type == "link_open"),
        "name": Counter(child.content for child in inline if child.type == "code_inline"),
        "number": digits(text),
    }


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Take the matches out, and keep the lines, so that Markdown's blocks stay what they are."""
    return pattern.sub(lambda match: "x" + "\n" * match[0].count("\n"), text)


def _tables(tokens: list[Token]) -> Iterator[str]:
    """Every table as "rows x columns", the head counted."""
    rows = cells = 0
    for token in tokens:
        rows += token.type == "tr_open"
        cells += token.type in ("th_open", "td_open")
        if token.type == "table_close":
            yield f"of {rows} x {cells // rows}"
            rows = cells = 0
