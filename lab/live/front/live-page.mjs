// The figures of a page of the book: one worker answers them all. It is not fetched before a reader asks to run one.
import { figuresIn } from "./live-quiz.mjs";
import { Backend, inTime } from "./live.mjs";

// Where the build put Python, one copy for both languages; none if it could not be had.
const PYTHON = document.querySelector("meta[name=live-python]")?.content;

class WorkerBackend extends Backend {
  start() {
    this.worker = new Worker(new URL("live-worker.mjs", import.meta.url), { type: "module" });
    return inTime(this.post({ base: new URL(PYTHON, location).href }));
  }

  post(message) {
    return new Promise((resolve, reject) => {
      this.worker.onerror = (event) => reject(new Error(event.message || "live-worker.mjs"));
      this.worker.onmessage = ({ data }) => (data.failed ? reject(new Error(data.failed)) : resolve(data.answer));
      this.worker.postMessage(message);
    });
  }

  fail(reason) {
    this.worker?.terminate();
    super.fail(reason);
    for (const figure of this.figures) sleep(figure);
  }

  // The address keeps what differs from the page's own settings, as gantt.budget=128.
  kept(name) {
    const mine = [...new URLSearchParams(location.search)].filter(([key]) => key.startsWith(`${name}.`));
    return Object.fromEntries(mine.map(([key, value]) => [key.slice(name.length + 1), value]));
  }

  keep(name, settings) {
    const url = new URL(location);
    for (const key of Object.keys(this.kept(name))) url.searchParams.delete(`${name}.${key}`);
    for (const [key, value] of Object.entries(settings)) url.searchParams.set(`${name}.${key}`, value);
    history.replaceState(history.state, "", url);
  }

  startAfresh() {
    location.reload();
  }
}

const backend = new WorkerBackend();
const buttonOf = (figure) => figure.root.querySelector(".live-run");

function sleep(figure) {
  figure.fieldset.disabled = true;
  figure.reset.hidden = true;
  Object.assign(buttonOf(figure), { hidden: !PYTHON, disabled: false });
}

async function run(pressed) {
  for (const figure of backend.figures) buttonOf(figure).disabled = true;
  pressed.say("loading");
  try {
    await backend.start();
  } catch (error) {
    backend.fail(error.message);
    return;
  }
  const isIdle = [document.body, buttonOf(pressed)].includes(document.activeElement);
  for (const figure of backend.figures) {
    buttonOf(figure).hidden = true;
    figure.wake();
  }
  if (isIdle) pressed.knobs[0].focus();
  // The first run is slow while the browser still optimises: let it be one that nobody waits for.
  if (!backend.busy) backend.ask({ show() {} }, { figure: pressed.name, settings: "{}", lang: "en", width: 0 });
}

figuresIn(document, backend);
for (const figure of backend.figures) {
  buttonOf(figure).addEventListener("click", () => run(figure));
  sleep(figure);
  if (PYTHON && Object.keys(backend.kept(figure.name)).length) figure.say("asked");
}
