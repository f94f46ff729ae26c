// A figure that lab.live.page wrote: its knobs, and who answers them. In a page of the book that is Python in a worker
// (live-page.mjs), in a notebook the kernel (live-widget.mjs).

const SETTLE_MS = 120;    // a slider on its way sends many values
const GIVE_UP_MS = 120_000;
const NEEDED = 560;    // as in lab/live/figure.py: pixels from which on the wide picture can be read

export const inTime = (answer) => Promise.race([
  answer,
  new Promise((_, reject) => setTimeout(reject, GIVE_UP_MS, new Error("slow"))),
]);

// Who answers: a question at a time, of each figure only the latest. A subclass has `post`, a question in and the
// promise of lab.live.registry.answer's text out; `kept` and `keep`, for the settings that a figure starts with; and
// `startAfresh`, which draws everything anew.
export class Backend {
  figures = [];
  busy = false;
  #waiting = new Map();    // by figure

  async ask(figure, question) {
    this.#waiting.set(figure, question);
    if (this.busy) return;
    this.busy = true;
    try {
      for (const [next, latest] of this.#waiting) {    // also those that come meanwhile
        this.#waiting.delete(next);
        const answer = JSON.parse(await inTime(this.post(latest)));
        if (!this.#waiting.has(next)) next.show(answer);
      }
    } catch (error) {
      this.#waiting.clear();
      this.fail(error.message);
    } finally {
      this.busy = false;
    }
  }

  fail(reason) {
    for (const figure of this.figures) figure.fail(reason);
  }
}

export class Figure {
  constructor(root, backend) {
    this.root = root;
    this.backend = backend;
    this.name = root.dataset.figure;
    this.words = JSON.parse(root.dataset.words);
    this.form = root.querySelector("form");
    this.fieldset = root.querySelector("fieldset");
    this.reset = root.querySelector(".live-reset");
    this.status = root.querySelector(".live-status");
    this.picture = root.querySelector(".live-picture");
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("reset", () => setTimeout(() => this.changed()));
    this.form.addEventListener("input", () => {
      this.label();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.changed(), SETTLE_MS);
    });
    new ResizeObserver(() => this.resized()).observe(this.picture);
    backend.figures.push(this);
  }

  wake() {
    this.fieldset.disabled = false;
    this.reset.hidden = false;
    this.say("ready");
    const kept = this.backend.kept(this.name);
    if (Object.keys(kept).length) this.request(kept);
  }

  say(word, reason = "") {
    this.status.textContent = this.words[word].replace("{}", reason);
  }

  fail(reason) {
    this.asked = null;
    this.picture.removeAttribute("aria-busy");
    this.say("failed", this.words[reason] ?? reason);
  }

  get knobs() {
    return [...this.form.querySelectorAll("input, select")];
  }

  label() {
    for (const knob of this.form.querySelectorAll("input")) {
      const value = String(valueOf(knob));
      knob.setAttribute("aria-valuetext", value);
      knob.nextElementSibling.textContent = value;
    }
  }

  changed() {
    this.timer = null;
    if (this.fieldset.disabled) return;
    this.label();
    const turned = this.knobs.filter((knob) => valueOf(knob) !== defaultOf(knob));
    this.backend.keep(this.name, settingsOf(turned));
    this.request(settingsOf(this.knobs));
  }

  request(settings) {
    const width = this.picture.clientWidth;
    this.asked = { settings, isWide: width >= NEEDED };
    this.picture.setAttribute("aria-busy", "true");
    const question = { figure: this.name, settings: JSON.stringify(settings), lang: this.root.dataset.lang, width };
    this.backend.ask(this, question);
  }

  resized() {
    const width = this.picture.clientWidth;    // 0 while nothing of it is shown
    if (this.asked && width && width >= NEEDED !== this.asked.isWide) this.request(this.asked.settings);
  }

  show(answer) {
    this.picture.removeAttribute("aria-busy");
    this.status.textContent = answer.error ?? "";
    if (answer.error) return;
    this.draw(answer);
    this.turnTo(answer.settings);
  }

  draw(answer) {
    this.picture.innerHTML = answer.svg;
    this.root.querySelector(".live-text").textContent = answer.text;
    this.root.querySelector(".live-rows").replaceChildren(...answer.rows.map(([label, value]) => {
      const row = document.createElement("div");
      for (const [tag, text] of [["dt", label], ["dd", value]]) {
        row.append(Object.assign(document.createElement(tag), { textContent: text }));
      }
      return row;
    }));
    this.root.querySelector(".live-notes").replaceChildren(
      ...answer.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
  }

  // Where a setting was kept from before: the knobs follow.
  turnTo(settings) {
    if (this.timer) return;    // one is being turned
    for (const knob of this.knobs) {
      const value = settings[knob.name];
      knob.value = knob.type === "range" ? marksOf(knob).indexOf(value) : value;
    }
    this.label();
  }
}

const marksOf = (slider) => JSON.parse(slider.dataset.marks);
const valueOf = (knob) => (knob.type === "range" ? marksOf(knob)[knob.value] : knob.value);
const defaultOf = (knob) => (knob.type === "range"
  ? marksOf(knob)[knob.defaultValue]
  : [...knob.options].find((option) => option.defaultSelected).value);
const settingsOf = (knobs) => Object.fromEntries(knobs.map((knob) => [knob.name, valueOf(knob)]));
