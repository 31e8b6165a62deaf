// A training run on one screen: its state, the learned matrix beside the truth, and its curves in small.
//
// The page sends all of it when it is drawn; while the run goes on, the channel brings what is new.

const NARROW = 560; // CSS pixels below which there is room for one matrix

const stages = new WeakMap();

class Stage {
  constructor(parent) {
    this.root = make("div", "fmviz-stage", parent);
    this.bar = make("div", "status", this.root);
    this.badge = make("span", "badge", this.bar);
    this.sentence = make("span", "sentence", this.bar);
    this.badge.setAttribute("role", "status");
    this.film = make("div", "film", this.bar);
    this.picker = make("div", "picker", this.root);
    this.picker.setAttribute("role", "group");
    this.picker.setAttribute("aria-label", "Matrix");
    this.view = new View(this.root);
    this.view.onFrame = (key) => this.curves.turnTo(this.played ? numeric(key) : null);
    this.view.playerPlace = this.film;
    this.side = make("div", "side");
    this.view.root.insertBefore(this.side, this.view.foot);
    this.numbers = make("dl", "numbers", this.side);
    this.side.append(this.view.foot);
    this.curves = new Curves(this.root);
    this.watch = new Watch({
      has: () => ({ rows: this.curves.length, generation: this.generation }),
      take: (head, rows, body) => this.receive(head, rows, body),
      redraw: (phase) => this.redraw(phase),
    });
    this.turn = 0;
    this.picked = 0;
    this.resizer = new ResizeObserver(() => this.fit());
    this.resizer.observe(this.root);
  }

  // Takes all that the page draws.
  take(bytes) {
    const header = decode(bytes);
    const { stage } = header;
    if (stage.turn === this.drawn && stage.run === this.run) {
      this.view.update(this.view.header || header); // the theme may be another one
    } else {
      this.run = stage.run;
      this.drawn = this.turn = stage.turn;
      this.view.update(header);
      this.pick();
      this.root.dataset.x = stage.x;
      this.played = stage.film;
      this.generation = stage.generation;
      this.curves.set(stage.charts, stage.names, stage.x);
      this.grow(stage, stage.rows, 0);
    }
    this.watch.follow(stage.live, stage.phase);
  }

  grow({ state, numbers, marks }, rows, from) {
    this.state(state);
    this.count(numbers);
    this.curves.grow(rows, from, marks);
    this.root.classList.toggle("idle", !this.curves.length);
  }

  receive(head, { rows, from, generation }, body) {
    if (head.turn <= this.turn) return;
    this.turn = head.turn;
    this.generation = generation;
    // Before its data are loaded, a page has no panels.
    const drawn = head.panels.length > 0 && head.panels.every(({ place }) => this.view.header.panels[place]);
    if (drawn) this.view.renew(head, sections(new Uint8Array(body), 0));
    this.grow(head, rows, from);
  }

  state({ word, tone, sentence }) {
    put(this.badge, word);
    this.badge.dataset.tone = tone;
    put(this.sentence, sentence);
  }

  count(numbers) {
    const key = numbers.map(([label]) => label).join();
    if (key !== this.counted) {
      this.counted = key;
      this.numbers.replaceChildren();
      this.cells = numbers.map(([label]) => {
        const box = make("div", "", this.numbers);
        const term = make("dt", "", box);
        term.textContent = label;
        return { box, value: make("dd", "", box) };
      });
    }
    numbers.forEach(([, value, help, tone], at) => {
      const { box, value: cell } = this.cells[at];
      put(cell, value);
      cell.dataset.tone = tone || "";
      if (box.title !== help) box.title = help;
    });
  }

  // Offers the matrices one at a time where there is no room for more.
  pick() {
    const titles = this.view.header.panels.map((panel) => panel.title);
    this.picked = Math.max(0, Math.min(this.picked, titles.length - 1));
    this.picker.replaceChildren();
    titles.forEach((title, at) => {
      const button = make("button", "", this.picker);
      button.type = "button";
      button.textContent = title.replace(/ \(.*/, "");
      button.addEventListener("click", () => {
        this.picked = at;
        this.fit();
      });
    });
    this.fit();
  }

  fit() {
    const width = this.root.clientWidth;
    if (!width || !this.view.header) return;
    const several = this.view.header.panels.length > 1;
    const narrow = width < NARROW && several;
    this.root.classList.toggle("narrow", narrow);
    [...this.picker.children].forEach((button, at) => button.setAttribute("aria-pressed", String(at === this.picked)));
    const only = narrow ? this.picked : -1;
    if (only !== this.view.only) {
      this.view.only = only;
      this.view.width = -1;
      this.view.layout();
    }
  }

  destroy() {
    this.watch.stop();
    this.resizer.disconnect();
    this.curves.destroy();
    this.view.destroy();
    this.root.remove();
  }
}

export default function (component) {
  const { data, parentElement } = component;
  let stage = stages.get(parentElement);
  if (!stage) {
    parentElement.querySelectorAll(".fmviz-stage").forEach((old) => old.remove());
    stage = new Stage(parentElement);
    stages.set(parentElement, stage);
  }
  stage.view.pick = (cell) => component.setStateValue("cell", cell);
  stage.redraw = (phase) => component.setTriggerValue("phase", phase);
  stage.take(data);
  return () => {
    if (parentElement.isConnected || !stages.delete(parentElement)) return;
    stage.destroy();
  };
}
