"""What the two sites need beyond Jupyter Book: shared anchors, links between the languages, Chinese search."""

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search import SearchLanguage
from sphinx.transforms import SphinxTransform

from tools.source import read_chapter

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"


class SharedAnchors(SphinxTransform):
    """Give the n-th section of a page the n-th anchor of its source, whatever its language.

    Runs before MyST resolves links to headings, so that `[text](#anchor)` works in both languages too.
    """

    default_priority = 300

    def apply(self, **kwargs: Any) -> None:
        source = Path(self.app.srcdir).parent / "src" / f"{self.env.docname}.md"
        sections = list(self.document.findall(nodes.section))
        anchors = read_chapter(source).anchors
        if len(anchors) != len(sections):
            raise ValueError(f"{source.name}: {len(anchors)} headings in the source, {len(sections)} on the page")
        slugs: dict[str, tuple[Any, str, str]] = {}
        for section, anchor in zip(sections, anchors, strict=True):
            for old in section["ids"]:
                self.document.ids.pop(old, None)
            section["ids"] = [anchor]
            section["slug"] = anchor
            self.document.ids[anchor] = section
            for name in section["names"]:
                self.document.nameids[name] = anchor
            slugs[anchor] = (section.line, anchor, section.next_node(nodes.title).astext())
        self.document.myst_slugs = slugs
        self.env.metadata[self.env.docname]["myst_slugs"] = slugs


class SearchHanBigrams(SearchLanguage):
    """Index single Han characters and pairs, and split the query alike in the browser.

    A dictionary splits only the text and not the query, so that a query of two words would find nothing.
    """

    lang = "zh"
    language_name = "Chinese"
    stopwords: set[str] = set()
    js_splitter_code = """
function splitQuery(query) {
  const terms = [];
  for (const run of query.match(/[HAN]+|[^\\s\\p{P}\\p{S}HAN]+/gu) || []) {
    if (!/^[HAN]/u.test(run) || run.length === 1) terms.push(run);
    else for (let i = 0; i + 1 < run.length; i++) terms.push(run.slice(i, i + 2));
  }
  return terms;
}
""".replace("HAN", HAN)

    def split(self, input: str) -> list[str]:
        terms: list[str] = []
        for run in re.findall(rf"[{HAN}]+|[^\W{HAN}]+", input):
            terms.append(run)
            if re.match(rf"[{HAN}]", run):
                terms[-1:] = [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
        return terms


def add_language_links(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The switch's link, relative so that it works from a file too, and the absolute ones for search engines."""
    up = "../" * (pagename.count("/") + 1)
    other = context["other_language"]
    context["other_language"] = {**other, "url": f"{up}{other['name']}/{pagename}.html"}
    links = {code: f"{context['book_site']}{name}/{pagename}.html" for name, code in context["book_codes"].items()}
    context["alternates"] = {**links, "x-default": context["book_site"]}


def add_last_run(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Where and when a notebook's outputs were made; tools/notebook.py asked the kernel that made them."""
    notebook = Path(app.srcdir) / f"{pagename}.ipynb"
    if notebook.exists():
        context["last_run"] = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["book"]["run"]


def add_live_figures(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """What a page with figures that run, or a quiz, needs; where Python is, if the build could get it; its licences."""
    if "body" not in context:
        return
    live = "../" * (pagename.count("/") + 1) + "live/"
    if 'class="live' in context["body"]:
        app.add_css_file("live.css")
        app.add_js_file("live.js", loading_method="defer")
        if context["live_notices"]:
            context["metatags"] += f'<meta name="live-python" content="{live}"/>\n'
    for address, name in context["live_notices"].items():
        context["body"] = context["body"].replace(f'href="{address}"', f'href="{live}{name}"')


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(SharedAnchors)
    app.add_search_language(SearchHanBigrams)
    app.connect("html-page-context", add_language_links)
    app.connect("html-page-context", add_last_run)
    app.connect("html-page-context", add_live_figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
