// The quiz that lab.live.quiz_page wrote: a guess, then the answer. Guesses stay in this browser, for both languages.
import { Figure } from "./live.mjs";

const KEY = "lab.quiz";

// What was guessed, by question; `trouble` is a word of the page if it can't be kept, or couldn't be read.
const guesses = {
  all: {},
  trouble: "",

  load() {
    try {
      const found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      if (Object.prototype.toString.call(found) !== "[object Object]") throw new SyntaxError();
      this.all = found;
    } catch (error) {
      this.trouble = error instanceof SyntaxError ? "broken" : "unkept";
    }
  },

  // Another page may have written meanwhile.
  change(name, key) {
    this.load();
    this.trouble = "";    // what made no sense is written over
    this.all[name] = key;    // undefined is left out
    try {
      localStorage.setItem(KEY, JSON.stringify(this.all));
    } catch {
      this.trouble = "unkept";
    }
  },
};

export class Question extends Figure {
  constructor(root, backend) {
    super(root, backend);
    this.details = root.querySelector("details");
    this.button = root.querySelector(".quiz-guess");
    this.button.hidden = false;
    this.rightAtFirst = this.right;    // at the page's own numbers, at which one guesses
    this.button.disabled = !this.options.some((option) => option.checked);    // by a reader faster than this script
    this.picture.addEventListener("input", () => { this.button.disabled = false; });
  }

  get options() {
    return [...this.picture.querySelectorAll("input")];
  }

  get right() {
    return this.picture.dataset.right;
  }

  say(word, reason) {
    if (word === "ready") this.status.textContent = "";    // one voice is enough
    else super.say(word, reason);
  }

  // The answer at other numbers, at which nobody guesses.
  draw(answer) {
    this.picture.innerHTML = answer.options;
    this.picture.dataset.right = answer.right;
    this.root.querySelector(".live-text").innerHTML = answer.answer;
    const isTurned = Object.keys(this.backend.kept(this.name)).length > 0;
    this.reveal(isTurned ? "" : guesses.all[this.name]);
  }

  reveal(guess = "") {
    for (const option of this.options) {
      option.checked = option.value === guess;
      option.disabled = true;
      if (option.value === this.right) option.parentElement.append(" ✓");
      else if (option.checked) option.parentElement.append(" ✗");
    }
    this.button.hidden = true;
  }
}

export class Quiz {
  constructor(root, questions) {
    this.root = root;
    this.words = JSON.parse(root.dataset.words);
    this.questions = questions;
    this.forget = root.querySelector(".quiz-forget");
    this.forget.addEventListener("click", () => this.startOver());
    for (const question of questions) question.button.addEventListener("click", () => this.guess(question));
    guesses.load();
    for (const question of questions) this.recall(question);
    this.tell();
  }

  recall(question) {
    const key = guesses.all[question.name];
    if (key === undefined) return;
    if (question.options.some((option) => option.value === key)) {
      question.reveal(key);
    } else {
      guesses.change(question.name, undefined);
      guesses.trouble ||= "broken";
    }
  }

  guess(question) {
    const key = question.options.find((option) => option.checked).value;
    guesses.change(question.name, key);
    question.reveal(key);
    question.details.open = true;
    question.say(key === question.right ? "right" : "wrong");
    question.details.querySelector("summary").focus();    // the button, now hidden, can't keep it
    this.tell();
  }

  startOver() {
    for (const question of this.questions) guesses.change(question.name, undefined);
    this.questions[0].backend.startAfresh();
  }

  tell() {
    const made = this.questions.filter((question) => guesses.all[question.name] !== undefined);
    const numbers = [this.questions.length, made.length,
      made.filter((question) => guesses.all[question.name] === question.rightAtFirst).length];
    this.root.querySelector(".quiz-score").textContent = this.words.score.replace(/\{(\d)\}/g, (_, i) => numbers[i]);
    this.root.querySelector(".quiz-said").textContent = this.words[guesses.trouble] ?? "";
    this.forget.hidden = made.length === 0;
  }
}

export function figuresIn(place, backend) {
  for (const root of place.querySelectorAll(".live")) {
    new (root.classList.contains("quiz-question") ? Question : Figure)(root, backend);
  }
  for (const root of place.querySelectorAll(".quiz")) {
    new Quiz(root, backend.figures.filter((figure) => root.contains(figure.root)));
  }
}
