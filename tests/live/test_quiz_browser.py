"""The quiz in a real Chromium: guesses are kept, whatever the browser's storage does, and the lab answers anew."""

import json
import random
from html import unescape

import pytest
from playwright.sync_api import expect

from lab.live.page import RUN
from lab.live.quiz_page import ANSWER, FORGET, GUESS, QUIZ_WORDS
from lab.live.registry import QUESTIONS, QUIZZES, answer
from tests.live.pages import BOOT_MS, check_access, check_answers, figure
from tests.live.settings import random_settings

REFUSE = "for (const name of ['getItem', 'setItem']) Storage.prototype[name] = () => { throw new Error('no'); };"


def question(page, name="quiz-gap"):
    return figure(page, name)


def guess(page, text, name="quiz-gap", lang="en"):
    root = question(page, name)
    root.get_by_role("radio", name=text, exact=True).check()
    root.get_by_role("button", name=GUESS.of(lang)).click()
    return root


def score(page, quiz="chunked-prefill"):
    return page.locator(f".quiz[data-quiz={quiz}] .quiz-score")


def said(page, quiz="chunked-prefill"):
    return page.locator(f".quiz[data-quiz={quiz}] .quiz-said")


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_without_javascript_questions_and_answers_are_there(visit, lang):
    page = visit(f"{lang}/quiz.html", java_script_enabled=False)
    for name in QUESTIONS:
        root = question(page, name)
        assert root.get_by_role("radio").count() >= 3
        assert root.locator("button:visible").count() == 0
        expect(root.locator(".live-text")).to_be_hidden()
        root.get_by_text(ANSWER.of(lang), exact=True).click()
        expect(root.locator(".live-text")).to_be_visible()


def test_a_guess_by_keyboard_is_answered_and_kept_for_both_languages(visit):
    page = visit("en/quiz.html")
    root = question(page)
    expect(root.get_by_role("button", name=GUESS.en)).to_be_disabled()
    root.get_by_role("radio", name="15.24 ms").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(root.get_by_role("status")).to_have_text(QUIZ_WORDS["right"].en)
    expect(root.locator(".live-text")).to_be_visible()
    expect(root.locator("summary")).to_be_focused()
    guess(page, "32", "quiz-chunks")
    expect(question(page, "quiz-chunks").get_by_role("status")).to_have_text(QUIZ_WORDS["wrong"].en)
    expect(score(page)).to_have_text("2 of 4 guessed, 1 right.")
    page.goto(page.url.replace("/en/", "/zh/"))
    expect(score(page)).to_have_text("4 题猜了 2 题，猜对 1 题。")
    radio = question(page).get_by_role("radio", name="126.94 ms ✓")
    expect(radio).to_be_checked()
    expect(radio).to_be_disabled()
    expect(question(page, "quiz-chunks").get_by_role("radio", name="32 块 ✗")).to_be_checked()
    expect(question(page, "quiz-fit").get_by_role("radio").first).to_be_enabled()
    assert not [path for path in visit.asked if path.startswith("/live/")]


def test_guesses_are_forgotten_chapter_by_chapter(visit):
    page = visit("en/quiz.html")
    guess(page, "126.94 ms")
    guess(page, "31", "quiz-fit")
    page.locator(".quiz[data-quiz=chunked-prefill]").get_by_role("button", name=FORGET.en).click()
    expect(score(page)).to_have_text("0 of 4 guessed, 0 right.")
    expect(score(page, "admission-control")).to_have_text("1 of 5 guessed, 1 right.")
    expect(question(page).get_by_role("radio", name="126.94 ms", exact=True)).to_be_enabled()


@pytest.mark.parametrize("kept", ["{", "[]", "null", "7", '{"quiz-gap": "<img src=x>"}', '{"quiz-gap": {"a": 1}}'])
def test_nonsense_in_the_storage_is_dropped_with_a_word(visit, kept):
    page = visit("en/quiz.html")
    expect(score(page)).to_have_text("0 of 4 guessed, 0 right.")  # else the script finds the nonsense at once
    page.evaluate("kept => localStorage.setItem('lab.quiz', kept)", kept)
    page.reload()
    expect(said(page)).to_have_text(QUIZ_WORDS["broken"].en)
    expect(score(page)).to_have_text("0 of 4 guessed, 0 right.")
    guess(page, "126.94 ms")
    expect(said(page)).to_have_text("")
    page.reload()
    expect(score(page)).to_have_text("1 of 4 guessed, 1 right.")


def test_a_browser_that_keeps_nothing_says_so_and_goes_on(visit):
    page = visit("en/quiz.html")
    page.add_init_script(REFUSE)
    page.reload()
    expect(said(page)).to_have_text(QUIZ_WORDS["unkept"].en)
    root = guess(page, "126.94 ms")
    expect(root.get_by_role("status")).to_have_text(QUIZ_WORDS["right"].en)
    expect(score(page)).to_have_text("1 of 4 guessed, 1 right.")


def test_other_numbers_are_answered_by_the_lab(visit):
    page = visit("en/quiz.html?quiz-fit.blocks=many")
    root = guess(page, "126.94 ms")
    root.get_by_role("button", name=RUN.en).click()
    slider = root.get_by_role("slider", name="token budget of a step")
    expect(slider).to_be_enabled(timeout=BOOT_MS)
    slider.press("ArrowLeft")
    want = json.loads(answer("quiz-gap", '{"budget": 256}', "en", 0))
    expect(root.locator(".live-text")).to_contain_text("16 of them", timeout=BOOT_MS)
    assert root.locator(".live-text p").inner_text() in unescape(want["answer"])
    assert "quiz-gap.budget=256" in page.url
    expect(root.get_by_role("radio", name=" ✓")).to_be_disabled()
    expect(score(page)).to_have_text("1 of 4 guessed, 1 right.")
    nonsense = json.loads(answer("quiz-fit", '{"blocks": "many"}', "en", 0))["error"]
    expect(question(page, "quiz-fit").get_by_role("status")).to_have_text(nonsense)
    root.get_by_role("button", name="Start over").click()
    expect(root.get_by_role("radio", name="126.94 ms ✓")).to_be_checked()


def test_the_browser_answers_as_cpython_does(visit):
    """60 settings of any of the questions."""
    page = visit("en/quiz.html")
    rng = random.Random(0)
    asked = [(name, setting) for name in QUESTIONS for setting in random_settings(QUESTIONS[name], 4)]
    questions = [
        {"figure": name, "settings": json.dumps(setting), "lang": ("en", "zh")[i % 2], "width": 680}
        for i, (name, setting) in enumerate(rng.sample(asked, 60))
    ]
    check_answers(page, questions)


def test_a_phone_shows_it_all(visit):
    page = visit("zh/quiz.html", viewport={"width": 360, "height": 740})
    for quiz in QUIZZES.values():
        for one in quiz.questions:
            question(page, one.name).locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_accessibility_audit_finds_nothing(visit, lang, theme):
    page = visit(f"{lang}/quiz.html")
    guess(page, "126.94 ms", lang=lang)
    check_access(page, theme)
