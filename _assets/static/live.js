// Wakes the figures that lab.live.page wrote. Nothing is fetched before a reader asks to run one.
(() => {
  const STATIC = new URL(".", document.currentScript.src);
  const BASE = new URL("../../live/", STATIC).href;    // one copy for both languages
  const SETTLE_MS = 120;    // a slider on its way sends many values
  const GIVE_UP_MS = 120_000;
  const NEEDED = 560;    // as in lab/live/figure.py: pixels from which on the wide picture can be read

  // -- the one worker of the page: a request at a time, of each figure only the latest ---------------------------------

  let worker = null;
  let busy = false;
  let sent = null;    // the figure whose answer is awaited
  const waiting = new Map();    // by figure

  function start(onReady, onFailure) {
    const guard = setTimeout(() => stop("slow"), GIVE_UP_MS);
    const stop = (reason) => {
      clearTimeout(guard);
      worker?.terminate();
      worker = null;
      busy = false;
      waiting.clear();
      onFailure(reason);
    };
    try {
      worker = new Worker(new URL("live-worker.js", STATIC), { type: "module" });
    } catch (error) {
      stop(error.message);
      return;
    }
    worker.onerror = (event) => stop(event.message || "live-worker.js");
    worker.onmessage = ({ data }) => {
      if (data.failed) {
        stop(data.failed);
      } else if (data.ready) {
        clearTimeout(guard);
        onReady();
      } else {
        busy = false;
        if (!waiting.has(sent)) sent.show(JSON.parse(data.answer));
        sendNext();
      }
    };
    worker.postMessage({ base: BASE });
  }

  function sendNext() {
    const next = waiting.entries().next().value;
    if (busy || !worker || !next) return;
    const [figure, request] = next;
    waiting.delete(figure);
    busy = true;
    sent = figure;
    worker.postMessage(request);
  }

  function ask(figure, request) {
    waiting.set(figure, request);
    sendNext();
  }

  // -- a figure --------------------------------------------------------------------------------------------------------

  class Figure {
    constructor(root) {
      this.root = root;
      this.name = root.dataset.figure;
      this.words = JSON.parse(root.dataset.words);
      this.form = root.querySelector("form");
      this.fieldset = root.querySelector("fieldset");
      this.button = root.querySelector(".live-run");
      this.status = root.querySelector(".live-status");
      this.picture = root.querySelector(".live-picture");
      this.button.hidden = false;
      this.button.addEventListener("click", () => run(this));
      this.form.addEventListener("submit", (event) => event.preventDefault());
      this.form.addEventListener("reset", () => setTimeout(() => this.changed()));
      this.form.addEventListener("input", () => {
        this.label();
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.changed(), SETTLE_MS);
      });
      new ResizeObserver(() => this.resized()).observe(this.picture);
      if (Object.keys(this.fromAddress()).length) this.say("asked");
    }

    say(word, reason = "") {
      this.status.textContent = word ? this.words[word].replace("{}", reason) : "";
    }

    get knobs() {
      return [...this.form.querySelectorAll("input, select")];
    }

    settings() {
      return Object.fromEntries(this.knobs.map((knob) => [knob.name, valueOf(knob)]));
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
      this.label();
      this.toAddress();
      this.request(this.settings());
    }

    request(settings) {
      const width = this.picture.clientWidth;
      this.asked = { settings, isWide: width >= NEEDED };
      this.picture.setAttribute("aria-busy", "true");
      ask(this, { figure: this.name, settings: JSON.stringify(settings), lang: this.root.dataset.lang, width });
    }

    resized() {
      if (this.asked && worker && this.picture.clientWidth >= NEEDED !== this.asked.isWide) this.request(this.asked.settings);
    }

    show(answer) {
      this.picture.removeAttribute("aria-busy");
      this.status.textContent = answer.error ?? "";
      if (answer.error) return;
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
      this.turnTo(answer.settings);
    }

    // Where a setting came from the address: the knobs follow.
    turnTo(settings) {
      if (this.timer) return;    // one is being turned
      for (const knob of this.knobs) {
        const value = settings[knob.name];
        knob.value = knob.type === "range" ? marksOf(knob).indexOf(value) : value;
      }
      this.label();
    }

    wake() {
      this.fieldset.disabled = false;
      this.button.hidden = true;
      this.root.querySelector(".live-reset").hidden = false;
      this.say("ready");
      const address = this.fromAddress();
      if (Object.keys(address).length) this.request(address);
    }

    sleep(reason) {
      this.fieldset.disabled = true;
      this.button.hidden = false;
      this.button.disabled = false;
      this.picture.removeAttribute("aria-busy");
      this.say("failed", this.words[reason] ?? reason);
    }

    // The address keeps what differs from the page's own settings, as gantt.budget=128.
    fromAddress() {
      const mine = [...new URLSearchParams(location.search)].filter(([key]) => key.startsWith(`${this.name}.`));
      return Object.fromEntries(mine.map(([key, value]) => [key.slice(this.name.length + 1), value]));
    }

    toAddress() {
      const url = new URL(location);
      for (const key of Object.keys(this.fromAddress())) url.searchParams.delete(`${this.name}.${key}`);
      for (const knob of this.knobs) {
        if (valueOf(knob) !== defaultOf(knob)) url.searchParams.set(`${this.name}.${knob.name}`, valueOf(knob));
      }
      history.replaceState(history.state, "", url);
    }
  }

  const marksOf = (slider) => JSON.parse(slider.dataset.marks);
  const valueOf = (knob) => (knob.type === "range" ? marksOf(knob)[knob.value] : knob.value);
  const defaultOf = (knob) => (knob.type === "range"
    ? marksOf(knob)[knob.defaultValue]
    : [...knob.options].find((option) => option.defaultSelected).value);

  // -- the page --------------------------------------------------------------------------------------------------------

  let figures = [];

  function run(pressed) {
    for (const figure of figures) figure.button.disabled = true;
    pressed.say("loading");
    start(
      () => {
        for (const figure of figures) figure.wake();
        if ([document.body, pressed.button].includes(document.activeElement)) pressed.knobs[0].focus();
        // The first run is slow while the browser still optimises: let it be one that nobody waits for.
        if (!busy) ask({ show() {} }, { figure: pressed.name, settings: "{}", lang: "en", width: 0 });
      },
      (reason) => {
        for (const figure of figures) figure.sleep(reason);
      });
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!location.protocol.startsWith("http")) return;    // no worker may start from a file
    figures = [...document.querySelectorAll(".live")].map((root) => new Figure(root));
  });
})();
