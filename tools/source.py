"""Read a bilingual chapter: chapters/src/NAME.md, MyST text as jupytext reads it.

Prose stands in blocks that start with a line `+++ {"lang": "zh"}` or `+++ {"lang": "en"}`, the two languages of one
passage next to each other; `+++ {"lang": "both"}` marks a passage that needs no translation, a formula for example.
Code stands once, in fenced `{code-cell}` blocks.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
from markdown_it import MarkdownIt

from tools.settings import LANGUAGES


class SourceError(ValueError):
    """A chapter source that cannot become two notebooks; the message names the file and the passage."""


@dataclass(frozen=True)
class Prose:
    """One passage in both languages."""

    id: str
    zh: str
    en: str

    def text(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en


@dataclass(frozen=True)
class Code:
    """One code cell, the same in both languages; `alt_zh` and `alt_en` in its metadata describe the figure it draws."""

    id: str
    source: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Chapter:
    name: str
    parts: tuple[Prose | Code, ...]
    anchors: tuple[str, ...]  # one per heading, from the English headings; both languages use them

    @property
    def has_code(self) -> bool:
        return any(isinstance(part, Code) for part in self.parts)

    def title(self, anchor: str, lang: str) -> str:
        """The heading that has this anchor; ValueError if the chapter has no such anchor."""
        found = [title for part in self.parts if isinstance(part, Prose) for _, title in headings(part.text(lang))]
        return found[self.anchors.index(anchor)]


def headings(markdown: str) -> list[tuple[int, str]]:
    """The (level, plain text) of every heading in a passage, in order."""
    tokens = MarkdownIt("commonmark").parse(markdown)
    return [
        (int(token.tag[1]), "".join(child.content for child in after.children or []))
        for token, after in zip(tokens, tokens[1:], strict=False)
        if token.type == "heading_open"
    ]


def read_chapter(path: Path) -> Chapter:
    """Parse one source file; SourceError if a passage lacks a language or the headings differ in level."""
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    ids = _Ids()
    parts: list[Prose | Code] = []
    zh: str | None = None  # a Chinese passage waiting for its English twin
    for cell in notebook.cells:
        metadata = dict(cell.metadata)
        lang = metadata.pop("lang", None)
        if zh is not None and lang != "en":
            raise SourceError(f"{path.name}: no English beside {_start(zh)}")
        if cell.cell_type == "code":
            parts.append(Code(metadata.pop("id", None) or ids.make("c", cell.source), cell.source, metadata))
        elif lang == "zh":
            zh = cell.source
        elif lang == "en":
            if zh is None:
                raise SourceError(f"{path.name}: no Chinese before {_start(cell.source)}")
            parts.append(_pair(path.name, ids.make("p", cell.source), zh, cell.source))
            zh = None
        elif lang == "both":
            parts.append(Prose(ids.make("p", cell.source), cell.source, cell.source))
        else:
            raise SourceError(f"{path.name}: put +++ with lang zh, en or both before {_start(cell.source)}")
    if zh is not None:
        raise SourceError(f"{path.name}: no English beside {_start(zh)}")
    return Chapter(path.stem, tuple(parts), _anchors(path.name, parts))


def as_source(note: str, passages: Sequence[Mapping[str, str]]) -> str:
    """The source of a page without code: a comment, then each passage in both languages."""
    blocks = [("both", note), *((lang, passage[lang]) for passage in passages for lang in LANGUAGES)]
    return "\n".join(f'+++ {{"lang": "{lang}"}}\n\n{text}\n' for lang, text in blocks)


def _anchors(name: str, parts: list[Prose | Code]) -> tuple[str, ...]:
    anchors: list[str] = []
    for _, title in [heading for part in parts if isinstance(part, Prose) for heading in headings(part.en)]:
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        if not slug or slug in anchors:
            raise SourceError(f"{name}: no anchor of its own can be made from the heading {title!r}: reword it")
        anchors.append(slug)
    return tuple(anchors)


def _pair(name: str, id: str, zh: str, en: str) -> Prose:
    levels_zh, levels_en = ([level for level, _ in headings(text)] for text in (zh, en))
    if levels_zh != levels_en:
        raise SourceError(f"{name}: headings of level {levels_zh} in Chinese, {levels_en} in English at {_start(en)}")
    return Prose(id, zh, en)


class _Ids:
    """Cell ids from what a cell says, not from where it stands: a cell put in between changes no other cell's id."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def make(self, kind: str, text: str) -> str:
        id = f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        self._seen[id] += 1
        return id if self._seen[id] == 1 else f"{id}-{self._seen[id]}"


def _start(text: str) -> str:
    return repr(text.strip().splitlines()[0][:60] if text.strip() else "")
