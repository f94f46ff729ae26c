"""The figures where readers meet them: on the pages of the built book, under a policy without eval."""

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from lab.live.figure import NARROW, WIDE
from lab.live.knobs import Slider
from lab.live.page import RUN, WORDS
from lab.live.registry import FIGURES, answer
from lab.streams.svg import ON_DARK, PAPER, TEXT_SIZE, dark_rules
from tests.book.conftest import site
from tests.live.pages import BOOT_MS, figure, run
from tools.settings import LANGUAGES, ROOT
from tools.vendor_pyodide import NOTICES, TARGET

__all__ = ["site"]  # a fixture

# The theme has scripts and styles in its pages. MathJax tries `Function` now and then, and can do without.
REST = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'"
POLICY = f"{REST} 'wasm-unsafe-eval'"
CHAPTER = {"01-chunked-prefill": ("gantt",), "02-admission-control": ("console", "region")}
CHAPTER |= {"03-cross-stream-reuse": tuple(name for name in FIGURES if name.startswith("streams-"))}
LIVE_REGIONS = "[...document.querySelectorAll('[aria-live], [role=status]')]"


@pytest.fixture(scope="module")
def address(serve, site, missing):
    if not TARGET.exists():
        missing("the book was built without the Python of its figures")
    return serve(site, [("Content-Security-Policy", POLICY)])


@pytest.fixture(autouse=True)
def eval_that_others_try(visit):
    """What of ours needed it would not run."""
    yield
    visit.trouble[:] = [line for line in visit.trouble if not line.startswith("Evaluating a string as JavaScript")]


def shows(root, name, settings, lang):
    """Wait for what the figure says of the settings: its text, or why there is none."""
    want = json.loads(answer(name, json.dumps(settings), lang, WIDE))
    place, text = (".live-status", want["error"]) if "error" in want else (".live-text", want["text"])
    expect(root.locator(place)).to_have_text(text, timeout=BOOT_MS)


@pytest.mark.parametrize(("chapter", "lang"), list(zip(CHAPTER, ("en", "zh", "en"))))
def test_every_slider_of_a_chapter_goes_to_its_ends_by_keyboard(visit, chapter, lang):
    page = visit(f"{lang}/{chapter}.html")
    page.wait_for_load_state("networkidle")
    assert not [path for path in visit.asked if path.startswith("/live/") or "worker" in path]
    run(page, CHAPTER[chapter][0], lang)
    for name in CHAPTER[chapter]:
        root, knobs = figure(page, name), FIGURES[name].knobs
        for key, end in (("Home", 0), ("End", -1)):
            for knob in knobs:
                if isinstance(knob, Slider):
                    root.get_by_role("slider", name=knob.label.of(lang), exact=True).press(key)
            settings = {knob.name: knob.marks[end] for knob in knobs if isinstance(knob, Slider)}
            shows(root, name, settings, lang)
            for setting, value in settings.items():
                assert root.locator(f"[name={setting}]").get_attribute("aria-valuetext") == str(value)


def test_waits_are_chosen_and_half_a_wait_is_said(visit):
    page = visit("zh/03-cross-stream-reuse.html")
    root = run(page, "streams-handoff", "zh")
    for knob, value in (("after1", "1"), ("before1", "2")):
        root.locator(f"[name={knob}]").select_option(value)
        shows(root, "streams-handoff", {"after1": "1"} | ({knob: value}), "zh")
    assert "streams-handoff.after1=1" in page.url


@pytest.mark.parametrize("asked", ["gantt.budget=many", "gantt.budgit=1", "gantt.policy=%3Cimg%3E"])
def test_nonsense_in_the_address_is_said_and_goes_to_the_other_language(visit, asked):
    page = visit(f"en/01-chunked-prefill.html?{asked}")
    expect(figure(page).get_by_role("status")).to_have_text(WORDS["asked"].en)
    page.click("a.language-switch")
    page.wait_for_url(f"**/zh/01-chunked-prefill.html?{asked}*")
    expect(figure(page).get_by_role("status")).to_have_text(WORDS["asked"].zh)
    if asked.endswith("many"):
        root = run(page, lang="zh")
        shows(root, "gantt", {"budget": "many"}, "zh")
        assert root.locator("svg:visible").count() == 1


def test_one_run_is_one_polite_announcement(visit):
    page = visit("en/01-chunked-prefill.html")
    root = run(page)
    expect(root.get_by_role("status")).to_have_text(WORDS["ready"].en)
    page.evaluate(f"""() => {{
      window.said = [];
      for (const region of {LIVE_REGIONS}) {{
        new MutationObserver(() => region.textContent && said.push(region.textContent))
          .observe(region, {{childList: true, characterData: true, subtree: true}});
      }}
    }}""")
    for _ in range(3):
        root.get_by_role("slider", name="token budget").press("ArrowRight")
    shows(root, "gantt", {"budget": 4096}, "en")
    said = page.evaluate("said")
    assert said[-1] == root.locator(".live-text").inner_text() and len(said) == len(set(said)) <= 3


@pytest.mark.parametrize("lost", ["python.zip", "pyodide.asm.wasm", "live-worker.mjs"])
def test_a_missing_file_is_said_and_the_recording_stays(visit, lost):
    page = visit("en/01-chunked-prefill.html", lose=lost)
    check_it_fails(page, visit)


def test_no_webassembly_and_no_workers_are_said(visit, serve, site):
    address = serve(site, [("Content-Security-Policy", REST)])
    page = visit(f"{address}/en/01-chunked-prefill.html")
    check_it_fails(page, visit)
    page.add_init_script("delete window.Worker")
    page.reload()
    check_it_fails(page, visit)


def check_it_fails(page, visit):
    root = figure(page)
    root.get_by_role("button", name=RUN.en).click()
    expect(root.get_by_role("status")).to_contain_text("It did not run", timeout=BOOT_MS)
    expect(root.get_by_role("button", name=RUN.en)).to_be_enabled()
    expect(root.locator("select").first).to_be_disabled()
    assert root.locator("svg:visible").count() == 1
    visit.trouble.clear()  # the console has it too


def test_the_second_page_has_python_from_the_cache(browser, site):
    sent = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, code="-", size="-"):
            sent.append((self.path, int(code)))

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    for chapter, (name, *_) in list(CHAPTER.items())[:2]:
        page.goto(f"http://127.0.0.1:{server.server_port}/en/{chapter}.html")
        run(page, name)
    page.close()
    server.shutdown()
    python = [path for path, code in sent if path.startswith("/live/") and code == 200]
    assert len(python) == len(set(python)) == 5


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("chapter", CHAPTER)
def test_without_javascript_from_a_file_and_on_paper_there_are_pictures_and_no_buttons(visit, site, chapter, lang):
    recorded = visit(f"{lang}/{chapter}.html", java_script_enabled=False)
    from_file = visit((site / lang / f"{chapter}.html").as_uri(), offline=True)
    printed = visit(f"{lang}/{chapter}.html")
    printed.emulate_media(media="print")
    for page in (recorded, from_file, printed):
        for name in CHAPTER[chapter]:
            assert figure(page, name).locator("svg:visible").count() == 1
            assert figure(page, name).locator("button:visible").count() == 0


@pytest.mark.parametrize("chapter", CHAPTER)
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_letters_can_be_read_and_nothing_sticks_out(visit, chapter, width):
    page = visit(f"zh/{chapter}.html", viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in CHAPTER[chapter]:
        picture = figure(page, name).locator("svg:visible")
        box, units = picture.bounding_box(), float(picture.get_attribute("viewBox").split()[2])
        assert units == (NARROW if width < 600 else WIDE)
        assert TEXT_SIZE * box["width"] / units >= 9.8


def test_in_the_dark_pictures_are_dark_too(visit):
    page = visit("en/03-cross-stream-reuse.html", color_scheme="dark", reduced_motion="reduce")
    root = figure(page, "streams-handoff")
    label = root.locator(f'svg:visible text[stroke="{PAPER}"]').first
    red, green, blue = (int(ON_DARK[PAPER][i : i + 2], 16) for i in (1, 3, 5))
    assert label.evaluate("text => getComputedStyle(text).stroke") == f"rgb({red}, {green}, {blue})"
    around = root.locator("xpath=ancestor::*[contains(@class, 'text_html')]")
    assert around.evaluate("box => getComputedStyle(box).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert root.locator(".live-picture").evaluate("box => getComputedStyle(box).transitionDuration") == "0s"


def test_the_pages_style_sheet_has_the_pictures_colours():
    styles = (ROOT / "lab/live/front/live.css").read_text()
    assert all(rule in styles for rule in dark_rules())


@pytest.mark.parametrize("lang", LANGUAGES)
def test_only_pages_with_figures_load_their_script_and_style(site, lang):
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (site / lang).glob("*.html")}
    with_figure = {name for name, text in pages.items() if 'class="live' in text}
    assert set(CHAPTER) <= with_figure and {"index", "search", "credits"} <= set(pages) - with_figure
    for part in ("_static/live.js", "_static/live.css", 'name="live-python" content="../live/"'):
        assert {name for name, text in pages.items() if text.count(part) == 1} == with_figure, part


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_credits_lead_to_the_licences_in_the_site(site, address, lang):
    text = (site / lang / "credits.html").read_text(encoding="utf-8")
    for name in NOTICES:
        assert f'href="../live/{name}"' in text and (site / "live" / name).exists()
