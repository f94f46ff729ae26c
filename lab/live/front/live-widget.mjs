// Figures in a notebook: the kernel answers. lab/show/live_widget.py is the other end; it hands the files that this one
// imports over together with it, since anywidget runs a script from a blob, which has no neighbours.
import { figuresIn } from "./live-quiz.mjs";
import { Backend } from "./live.mjs";

class KernelBackend extends Backend {
  constructor(model, place) {
    super();
    Object.assign(this, { model, place });
    this.startAfresh();
  }

  startAfresh() {
    this.figures = [];
    this.place.innerHTML = this.model.get("markup");
    figuresIn(this.place, this);
    for (const figure of this.figures) figure.wake();
  }

  kept(name) {
    return this.model.get("settings")[name] ?? {};
  }

  keep(name, settings) {
    this.model.set("settings", { ...this.model.get("settings"), [name]: settings });
    this.model.save_changes();
  }

  post(question) {
    const id = Math.random();    // every view of the model hears every answer
    return new Promise((resolve) => {
      const listen = (reply) => {
        if (reply.id !== id) return;
        this.model.off("msg:custom", listen);
        resolve(reply.answer);
      };
      this.model.on("msg:custom", listen);
      this.model.send({ id, question });
    });
  }
}

// What is typed in a figure is for the figure: JupyterLab would take a slider's arrow keys to move among its cells.
const keep = (event) => { if (!(event.ctrlKey || event.metaKey || event.altKey)) event.stopPropagation(); };

export default {
  render: ({ model, el }) => {
    new KernelBackend(model, el);
    el.addEventListener("keydown", keep);
  },
};
