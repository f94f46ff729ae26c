"""Figures in a notebook: a widget that a real kernel answers, and beside it what any viewer can show."""

import json
import re
import sys

import nbformat
import pytest

from lab.core.errors import ConfigError
from lab.live.page import figure_html
from lab.live.quiz_page import quiz_html
from lab.live.registry import FIGURES, QUIZZES, answer
from lab.show import live as live_module
from tests.live.settings import random_settings
from tools.notebook import WIDGET, run
from tools.settings import LANGUAGES, ROOT, SOURCES

CALL = re.compile(r'^(?:live|quiz)\("([\w-]+)"\)$', re.M)
PAGES = sorted(path.stem for path in SOURCES.glob("*.md") if "from lab.show.live import" in path.read_text("utf-8"))
CELL = "import os\nos.environ['BOOK_LANG'] = '{}'\nfrom lab.show.live import live, quiz\nfigure = {}('{}')\nfigure"


def recorded(name: str, lang: str) -> dict[str, str]:
    if name in QUIZZES:
        text = {"zh": "4 道题，先猜，再看答案。", "en": "4 questions: guess first, then see the answers."}[lang]
        text = text.replace("4", str(len(QUIZZES[name].questions)))
        return {"text/html": quiz_html(QUIZZES[name], lang), "text/plain": text}
    text = json.loads(answer(name, "{}", lang, 680))["text"]
    return {"text/html": figure_html(FIGURES[name], lang), "text/plain": text}


@pytest.mark.parametrize(("kind", "name"), [("live", "gantt"), ("quiz", "chunked-prefill")])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_cell_shows_a_widget_and_its_recording(kernel, lang, kind, name):
    shown = kernel.run(CELL.format(lang, kind, name))
    state = kernel.comms[shown.pop(WIDGET)["model_id"]]
    assert shown == recorded(name, lang)
    assert state["markup"] == shown["text/html"] and state["_model_module"] == "anywidget"
    assert state["_css"] == (ROOT / "lab/live/front/live.css").read_text(encoding="utf-8")
    assert "export default" in state["_esm"] and not re.search("^import|import\\(", state["_esm"], re.M)


@pytest.mark.parametrize("name", FIGURES)
def test_the_kernel_answers_its_questions(kernel, name):
    model = kernel.run(CELL.format("en", "live", name))[WIDGET]["model_id"]
    nonsense = {"budgit": 3}
    for i, settings in enumerate([*random_settings(FIGURES[name], 3), nonsense]):
        lang, width = ("zh", "en")[i % 2], (680, 320)[i // 2 % 2]
        question = {"figure": name, "settings": json.dumps(settings), "lang": lang, "width": width}
        (reply,) = kernel.tell(model, {"method": "custom", "content": {"id": i / 7, "question": question}})
        assert reply == {"id": i / 7, "answer": answer(name, question["settings"], lang, width)}
    assert "error" in json.loads(reply["answer"])


def test_the_notebook_knows_how_the_knobs_were_turned(kernel):
    model = kernel.run(CELL.format("en", "live", "gantt"))[WIDGET]["model_id"]
    turned = {"gantt": {"budget": 128, "policy": "alternate"}}
    kernel.tell(model, {"method": "update", "state": {"settings": turned}, "buffer_paths": []})
    assert kernel.run("print(figure.settings == " + repr(turned) + ")") == {"text/plain": "True"}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_without_anywidget_the_recording_is_there(monkeypatch, lang):
    monkeypatch.setenv("BOOK_LANG", lang)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "lab.show.live_widget", raising=False)
    assert live_module.live("gantt")._repr_mimebundle_() == recorded("gantt", lang)
    assert live_module.quiz("chunked-prefill")._repr_mimebundle_() == recorded("chunked-prefill", lang)


def test_a_name_that_nothing_has():
    with pytest.raises(ConfigError, match="no figure 'gant': choose from gantt, console"):
        live_module.live("gant")
    with pytest.raises(ConfigError, match="no quiz 'gantt': choose from chunked-prefill, "):
        live_module.quiz("gantt")


def test_a_stored_notebook_has_the_recording_and_no_widget():
    cell = nbformat.v4.new_code_cell(CELL.format("zh", "live", "gantt"))
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"book": {}})
    run(notebook, SOURCES)
    assert notebook.cells[0].outputs[0].data == recorded("gantt", "zh")
    assert "widgets" not in notebook.metadata


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("page", PAGES)
def test_the_books_recordings_are_what_the_lab_draws_now(page, lang):
    """So does nbval, which runs the cells before; here a change in lab.live is seen at once."""
    notebook = nbformat.read(SOURCES.parent / lang / f"{page}.ipynb", as_version=4)
    shown = {found[1]: cell.outputs[0].data for cell in notebook.cells if (found := CALL.search(cell.source))}
    assert shown == {name: recorded(name, lang) for name in shown} != {}
