"""The widget's script in Chromium, as anywidget runs it, over a real kernel: only the model between the two is ours."""

import json

import pytest
from playwright.sync_api import expect

from lab.live.page import RUN, WORDS
from lab.live.quiz_page import ANSWER, FORGET, GUESS
from lab.live.registry import QUESTIONS, answer
from tools.notebook import WIDGET

CELL = "import os\nos.environ['BOOK_LANG'] = 'en'\nfrom lab.show.live import live, quiz\nfigure = {}\nfigure"
# What a widget has of ipywidgets' model, and what anywidget does with its script: a blob, and calls of `render`.
SHOW = """async ({id, state}) => {
  const listeners = new Set();
  const model = {
    get: (key) => state[key],
    set: (key, value) => { state[key] = value; },
    save_changes: () => tell(id, {method: "update", state: {settings: state.settings}, buffer_paths: []}),
    on: (event, listener) => listeners.add(listener),
    off: (event, listener) => listeners.delete(listener),
    send: async (content) => {
      await window.gate;
      const replies = await tell(id, {method: "custom", content});
      for (const reply of replies) for (const listener of [...listeners]) listener(reply);
    },
  };
  document.head.append(Object.assign(document.createElement("style"), {textContent: state._css}));
  const script = URL.createObjectURL(new Blob([state._esm], {type: "text/javascript"}));
  const widget = (await import(script)).default;
  window.view = () => widget.render({model, el: document.body.appendChild(document.createElement("section"))});
  window.awaited = () => listeners.size;
}"""
FULL = json.loads(answer("gantt", '{"budget": 8192}', "en", 680))["text"]
ALONE = json.loads(answer("gantt", '{"decoders": 8}', "en", 680))["text"]


@pytest.fixture(scope="module")
def address(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "index.html").write_text('<!doctype html><title>Notebook</title><link rel="icon" href="data:,">')
    return serve(folder)


@pytest.fixture
def notebook(visit, kernel):
    """A page with a view of the figure that a cell made; `window.view()` adds another. `hold` keeps messages back."""

    def notebook(call="live('gantt')"):
        notebook.hold = False
        id = kernel.run(CELL.format(call))[WIDGET]["model_id"]
        page = visit("index.html")
        page.clock.install()
        page.expose_function("tell", lambda id, data: [] if notebook.hold else kernel.tell(id, data))
        page.evaluate(SHOW, {"id": id, "state": kernel.comms[id]})
        page.evaluate("view()")
        return page

    return notebook


def turn(view, label, key):
    view.get_by_role("slider", name=label).press(key)


def test_the_kernel_answers_the_knobs(notebook, kernel):
    page = notebook()
    view, before = page.locator(".live"), page.url
    expect(view.get_by_role("status")).to_have_text(WORDS["ready"].en)
    assert view.locator("svg:visible").count() == 1 and view.get_by_role("button", name=RUN.en).count() == 0
    turn(view, "token budget of a step", "End")
    expect(view.locator(".live-text")).to_have_text(FULL)
    assert view.locator("svg").count() == 1
    assert page.url == before, "the notebook's address is not the figure's"
    assert kernel.run("print(figure.settings)") == {"text/plain": "{'gantt': {'budget': 8192}}"}
    assert page.evaluate("awaited()") == 0


def test_a_notebook_that_goes_by_arrow_keys_leaves_them_to_the_knobs(notebook):
    """JupyterLab 4.6 takes them on their way up, to move among its cells; what has Ctrl in it stays its own."""
    page = notebook()
    page.evaluate("""() => {
      window.seen = [];
      document.addEventListener("keydown", (event) => { window.seen.push(event.key); event.preventDefault(); });
    }""")
    turn(page.locator(".live"), "token budget of a step", "End")
    expect(page.locator(".live-text")).to_have_text(FULL)
    turn(page.locator(".live"), "token budget of a step", "Control+s")
    assert page.evaluate("seen") == ["Control", "s"]


def test_views_of_one_figure_do_not_take_each_others_answers(notebook):
    page = notebook()
    page.evaluate("() => { view(); window.gate = new Promise((open) => { window.open = open; }); }")
    first, second = page.locator(".live").all()
    turn(first, "token budget of a step", "End")
    turn(second, "requests that decode", "End")
    page.wait_for_function("awaited() === 2")
    page.evaluate("open()")
    expect(first.locator(".live-text")).to_have_text(FULL)
    expect(second.locator(".live-text")).to_have_text(ALONE)


def test_a_view_that_is_drawn_again_has_the_settings(notebook):
    page = notebook()
    turn(page.locator(".live"), "token budget of a step", "End")
    expect(page.locator(".live-text")).to_have_text(FULL)
    page.evaluate("view()")
    again = page.locator(".live").nth(1)
    expect(again.locator(".live-text")).to_have_text(FULL)
    assert again.get_by_role("slider", name="token budget").get_attribute("aria-valuetext") == "8192"


def test_a_kernel_that_says_nothing_is_asked_again_at_the_next_turn(notebook):
    page = notebook()
    view = page.locator(".live")
    notebook.hold = True
    turn(view, "requests that decode", "End")
    expect(view.locator(".live-picture")).to_have_attribute("aria-busy", "true")
    page.clock.fast_forward(121_000)
    expect(view.get_by_role("status")).to_have_text(WORDS["failed"].en.format(WORDS["slow"].en))
    assert view.locator("svg:visible").count() == 1
    notebook.hold = False
    turn(view, "requests that decode", "Home")
    turn(view, "token budget of a step", "End")
    expect(view.locator(".live-text")).to_have_text(FULL)
    expect(view.get_by_role("status")).to_have_text("")


def test_a_quiz_is_answered_forgotten_and_asked_at_other_numbers(notebook, kernel):
    page = notebook("quiz('chunked-prefill')")
    root = page.locator(".live[data-figure=quiz-chunks]")
    page.evaluate("window.still = true")
    for _ in range(2):
        root.get_by_role("radio", name="35", exact=True).check()
        root.get_by_role("button", name=GUESS.en).click()
        expect(page.locator(".quiz-score")).to_have_text("1 of 4 guessed, 1 right.")
        page.get_by_role("button", name=FORGET.en).click()
        expect(page.locator(".quiz-score")).to_have_text("0 of 4 guessed, 0 right.")
    assert page.evaluate("window.still"), "the notebook was loaded again"
    root.get_by_text(ANSWER.en, exact=True).click()
    knob = QUESTIONS["quiz-chunks"].knobs[0]
    turn(root, knob.label.en, "End")
    answered = json.loads(answer("quiz-chunks", json.dumps({knob.name: knob.marks[-1]}), "en", 0))
    expect(root.locator(".live-picture")).to_have_attribute("data-right", answered["right"])
    assert answered["right"] != "35"
