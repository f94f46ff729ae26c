"""The figures in a real Chromium: the recorded picture first, and the same answers as here once they run."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from lab.live.figure import NEEDED
from lab.live.page import RUN, WORDS
from lab.live.registry import FIGURES, answer
from tests.live.pages import BOOT_MS, check_access, check_answers, figure, run
from tests.live.settings import random_settings
from tools.settings import ROOT

HIDE = """async (root) => {
  root.hidden = true;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return root.querySelector(".live-picture").hasAttribute("aria-busy");
}"""


@pytest.mark.parametrize("name", FIGURES)
def test_the_browser_answers_as_cpython_does(visit, name):
    """60 settings a figure."""
    page = visit("en/page.html")
    questions = [
        {"figure": name, "settings": json.dumps(setting), "lang": ("en", "zh")[i % 2], "width": (680, 320)[i // 2 % 2]}
        for i, setting in enumerate(random_settings(FIGURES[name], 60))
    ]
    check_answers(page, questions)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_without_javascript_the_recording_is_there(visit, lang):
    page = visit(f"{lang}/page.html", java_script_enabled=False)
    for name in FIGURES:
        root = figure(page, name)
        assert root.locator("svg:visible").count() == 1
        assert root.locator(".live-text").inner_text() == json.loads(answer(name, "{}", lang, 680))["text"]
        assert root.locator("button:visible").count() == 0
        expect(root.locator("input, select").first).to_be_disabled()


def test_nothing_is_fetched_before_the_click_and_it_runs_after_it(visit):
    page = visit("en/page.html")
    page.wait_for_load_state("networkidle")
    assert not [path for path in visit.asked if path.startswith("/live/") or "worker" in path]
    root = run(page)
    recorded = root.locator(".live-wide svg").inner_html()
    slider = root.get_by_role("slider", name="token budget of a step")
    expect(root.get_by_role("combobox", name="policy")).to_be_focused()
    slider.press("End")
    expect(root.locator(".live-text")).to_contain_text("in 1 chunk ")
    assert root.locator("svg").count() == 1 and root.locator("svg").inner_html() != recorded
    assert slider.get_attribute("aria-valuetext") == "8192"
    assert "gantt.budget=8192" in page.url
    root.get_by_role("button", name="Start over").click()
    expect(root.locator(".live-text")).to_contain_text("in 9 chunks")
    assert "gantt" not in page.url and root.locator("svg").inner_html() == recorded


def test_the_latest_setting_wins(visit):
    root = run(visit("en/page.html"), "console")
    slider = root.get_by_role("slider", name="max_num_seqs")
    for _ in range(5):
        slider.press("ArrowLeft", delay=60)
    expect(root.locator(".live-picture")).not_to_have_attribute("aria-busy", "true", timeout=BOOT_MS)
    want = json.loads(answer("console", '{"max_num_seqs": 1}', "en", 680))
    expect(root.locator(".live-text")).to_have_text(want["text"])
    assert slider.get_attribute("aria-valuetext") == "1"
    assert root.locator(".live-notes li").inner_text() == want["notes"][0]


def test_the_address_keeps_the_setting(visit):
    page = visit("en/page.html?gantt.policy=prefill-first&gantt.budget=500")
    root = figure(page)
    expect(root.get_by_role("status")).to_have_text(WORDS["asked"].en)
    root = run(page)
    expect(root.locator(".live-text")).to_contain_text("126.94 ms")
    assert root.get_by_role("slider", name="token budget").get_attribute("aria-valuetext") == "512"
    assert root.get_by_role("combobox", name="policy").input_value() == "prefill-first"
    assert "512, the nearest" in root.locator(".live-notes").inner_text()


@pytest.mark.parametrize(
    ("name", "value"), [("budget", "many"), ("budget", "1e999"), ("budgit", "1"), ("policy", "<img src=x>")]
)
def test_nonsense_in_the_address_is_said_and_harmless(visit, name, value):
    root = run(visit(f"en/page.html?gantt.{name}={quote(value)}"))
    said = json.loads(answer("gantt", json.dumps({name: value}), "en", 680))
    expect(root.get_by_role("status")).to_have_text(said["error"])
    assert root.locator("svg:visible").count() == 1
    root.get_by_role("slider", name="token budget").press("Home")
    expect(root.locator(".live-text")).to_contain_text("66 chunks")
    expect(root.get_by_role("status")).to_have_text("")


@pytest.mark.parametrize(
    "lost", ["live-worker.mjs", "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python.zip"]
)
def test_a_missing_file_is_said_and_the_recording_stays(visit, lost):
    page = visit("en/page.html", lose=lost)
    root = figure(page)
    root.get_by_role("button", name=RUN.en).click()
    expect(root.get_by_role("status")).to_contain_text("It did not run", timeout=BOOT_MS)
    expect(root.get_by_role("button", name=RUN.en)).to_be_enabled()
    expect(root.locator("input, select").first).to_be_disabled()
    assert root.locator("svg:visible").count() == 1
    visit.trouble[:] = [line for line in visit.trouble if "404" not in line and lost not in line]  # the console has it


def test_a_phone_has_the_narrow_picture_and_nothing_sticks_out(visit):
    page = visit("zh/page.html", viewport={"width": 360, "height": 740})
    root = run(page, lang="zh")
    root.get_by_role("slider", name="正在解码的请求").press("End")
    expect(root.locator("svg:visible")).to_contain_text("A8")
    assert root.locator("svg").get_attribute("viewBox").startswith("0 0 320 ")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 900, "height": 740})
    expect(root.locator("svg")).to_have_attribute("viewBox", re.compile("^0 0 680 "))
    assert not root.evaluate(HIDE), "what is not shown is not narrow"


def test_one_number_in_three_languages():
    script, styles = ((ROOT / f"lab/live/front/live.{kind}").read_text() for kind in ("mjs", "css"))
    assert f"NEEDED = {NEEDED};" in script and f"min-width: {NEEDED}px" in styles


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_accessibility_audit_finds_nothing(visit, lang, theme):
    page = visit(f"{lang}/page.html")
    run(page, lang=lang)
    check_access(page, theme)
