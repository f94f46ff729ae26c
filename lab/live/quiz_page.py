"""A quiz as HTML: the questions, and the answers folded up, as recorded when the page was built. Where no script runs
that is all of it; the page's script keeps score and lets the reader turn the numbers.
"""

import json
from html import escape

from lab.live.page import WORDS, form_html, words_html
from lab.live.quiz import Question, Quiz
from lab.live.registry import answer
from lab.live.words import Both, Lang

GUESS = Both("就猜这个", "That is my guess")
ANSWER = Both("答案", "Answer")
OTHERS = Both("换一组数字，答案重新算", "Other numbers: the answer is computed again")
FORGET = Both("忘掉我的猜测", "Forget my guesses")
# What the script says; {} is why, or the numbers.
QUIZ_WORDS = WORDS | {
    "failed": Both("没能运行：{}。题目还是原来的。", "It did not run: {}. The question is as it was."),
    "right": Both("猜对了。", "Right."),
    "wrong": Both("不对，看下面的答案。", "No: see the answer."),
    "score": Both("{0} 题猜了 {1} 题，猜对 {2} 题。", "{1} of {0} guessed, {2} right."),
    "broken": Both(
        "这个浏览器里存的猜测读不懂，丢掉了。", "The guesses kept in this browser made no sense and were dropped."
    ),
    "unkept": Both(
        "这个浏览器不让存：猜测留到关掉本页为止。", "This browser keeps nothing: guesses last until the page is closed."
    ),
}


def quiz_html(quiz: Quiz, lang: Lang) -> str:
    words = words_html(QUIZ_WORDS, lang)
    questions = "\n".join(question_html(question, lang, words) for question in quiz.questions)
    return f"""<div class="quiz" data-quiz="{quiz.name}" data-words="{words}">
{questions}
<p class="quiz-score"></p>
<p class="quiz-said" role="status"></p>
<p><button type="button" class="quiz-forget" hidden>{FORGET.of(lang)}</button></p>
</div>
"""


def question_html(question: Question, lang: Lang, words: str) -> str:
    name = question.name
    asked = json.loads(answer(name, "{}", lang, 0))
    return f"""<div class="live quiz-question" data-figure="{name}" data-lang="{lang}" data-words="{words}">
<div class="live-picture" role="radiogroup" aria-labelledby="{name}-asked" data-right="{escape(asked["right"])}">
{asked["options"]}
</div>
<p><button type="button" class="quiz-guess" disabled hidden>{GUESS.of(lang)}</button></p>
<p class="live-status" role="status"></p>
<details><summary>{ANSWER.of(lang)}</summary>
<div class="live-text" aria-live="polite">{asked["answer"]}</div>
{form_html(OTHERS, question.knobs, lang)}
</details>
</div>"""
