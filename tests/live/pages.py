"""What the tests of figures in a browser share."""

import json

from playwright.sync_api import expect

from lab.live.page import RUN
from lab.live.registry import answer
from tests.audit import violations

BOOT_MS = 120_000
ASK = """async (questions) => {
  const worker = new Worker("_static/live-worker.mjs", {type: "module"});
  const say = (message) => new Promise((done) => {
    worker.onmessage = ({data}) => done(data);
    worker.postMessage(message);
  });
  const ready = await say({base: new URL("../live/", location).href});
  if (!ready.ready) return [ready];
  const answers = [];
  for (const question of questions) answers.push(await say(question));
  worker.terminate();
  return answers;
}"""


def figure(page, name="gantt"):
    return page.locator(f".live[data-figure={name}]")


def run(page, name="gantt", lang="en"):
    root = figure(page, name)
    root.get_by_role("button", name=RUN.of(lang)).click()
    expect(root.locator("select, input").first).to_be_enabled(timeout=BOOT_MS)
    return root


def check_answers(page, questions: list[dict]) -> None:
    """The page's Python answers as this one does: numbers, pictures and text, to the last bit."""
    answers = page.evaluate(ASK, questions)
    assert len(answers) == len(questions)
    for question, got in zip(questions, answers):
        want = answer(question["figure"], question["settings"], question["lang"], question["width"])
        assert json.loads(got["answer"]) == json.loads(want), question


def check_access(page, theme: str) -> None:
    """The audit has nothing to say, in this theme."""
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    found = violations(page)
    assert [(rule["id"], [node["html"][:80] for node in rule["nodes"]]) for rule in found] == []
