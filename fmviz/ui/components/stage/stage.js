// A training run on one screen: its state, the learned matrix beside the truth, and its curves in small.
//
// The page sends all of it when it is drawn; while the run goes on, the channel brings what is new.

const CHART_HEIGHT = 84;
const NARROW = 560; // CSS pixels below which there is room for one matrix
const INSET = { left: 4, right: 4, top: 4, bottom: 4 };
const SVG = "http://www.w3.org/2000/svg";

const stages = new WeakMap();

function draw(tag, attributes, parent) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (parent) parent.append(element);
  return element;
}

const finite = (x) => x !== null && x !== undefined && Number.isFinite(x);
const short = (x) => (Number.isInteger(x) && Math.abs(x) < 1e9 ? grouped(x).replace("-", "−") : number(x, 4));

// Some curves above each other, on one axis of epochs or seconds.
class Chart {
  constructor(parent, spec, owner) {
    this.spec = spec;
    this.owner = owner;
    this.box = make("div", "chart", parent);
    this.box.style.setProperty("--wide", spec.rows.length > 1 ? "1.7" : "1");
    const head = make("div", "chart-head", this.box);
    const title = make("div", "chart-title", head);
    title.textContent = spec.title;
    this.values = make("div", "values", head);
    this.readouts = spec.rows.flatMap((row) =>
      row.series.map((one) => {
        const entry = make("span", "readout", this.values);
        const chip = make("span", "dash", entry);
        chip.style.background = one.color;
        const name = make("span", "", entry);
        name.textContent = one.name;
        return { one, row, value: make("b", "", entry), more: make("span", "", entry) };
      }),
    );
    this.svg = draw("svg", { height: CHART_HEIGHT, role: "img" }, null);
    this.box.append(this.svg);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => owner.point(null));
  }

  point(event) {
    const rect = this.svg.getBoundingClientRect();
    const part = (event.clientX - rect.left - INSET.left) / (rect.width - INSET.left - INSET.right);
    const xs = this.owner.columns[this.owner.x] || [];
    if (!xs.length) return;
    const x = xs[0] + Math.max(0, Math.min(1, part)) * (xs[xs.length - 1] - xs[0]);
    let low = 0;
    for (let high = xs.length - 1; low < high; ) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    if (low > 0 && x - xs[low - 1] < xs[low] - x) low--;
    this.owner.point(low);
  }

  // Writes the values of an epoch, by its place.
  tell(at) {
    const { columns } = this.owner;
    const words = [];
    for (const { one, row, value, more } of this.readouts) {
      const x = (columns[one.column] || [])[at];
      put(value, finite(x) ? short(x) : "–");
      put(more, finite(one.level) ? ` (true ${grouped(one.level)})` : "");
      words.push(`${one.name} ${value.textContent}${more.textContent}`);
    }
    this.svg.setAttribute("aria-label", `${this.spec.title}: ${words.join(", ")}`);
  }

  draw() {
    const { columns, x, marks } = this.owner;
    const xs = columns[x] || [];
    const width = this.svg.clientWidth || this.box.clientWidth;
    this.svg.replaceChildren();
    if (!width) return;
    const first = xs.length ? xs[0] : 0;
    const breadth = xs.length > 1 ? xs[xs.length - 1] - first || 1 : 1;
    const across = (value) => INSET.left + ((value - first) / breadth) * (width - INSET.left - INSET.right);
    const rows = this.spec.rows;
    const each = (CHART_HEIGHT - 6 * (rows.length - 1)) / rows.length;
    rows.forEach((row, number_) => this.row(row, number_ * (each + 6), each, width, xs, across));
    for (const epoch of marks) {
      const at = across(this.owner.where(epoch));
      draw("line", { x1: at, x2: at, y1: 0, y2: CHART_HEIGHT, class: "change" }, this.svg);
    }
    this.cross = draw("line", { y1: 0, y2: CHART_HEIGHT, class: "cross" }, this.svg);
    this.across = across;
  }

  row(row, top, height, width, xs, across) {
    const lines = row.series.map((one) => ({ one, ys: this.owner.columns[one.column] || [] }));
    const levels = row.series.map((one) => one.level).filter(finite);
    const all = lines.flatMap(({ ys }) => ys.filter(finite)).concat(levels);
    draw("rect", { x: 0, y: top, width, height, class: "ground" }, this.svg);
    if (!all.length) return;
    let low = row.zero ? 0 : Math.min(...all);
    // What sticks out of an axis with a fixed end is cut off.
    let high = row.top || Math.max(...all);
    const log = row.log && low > 0 && high > 20 * low;
    const scale = log ? Math.log10 : (value) => value;
    [low, high] = [scale(low), scale(high)];
    // None of what is drawn can be below 0.
    if (high === low) [low, high] = [Math.max(0, low - 0.5), row.top || high + 0.5];
    const inner = height - INSET.top - INSET.bottom;
    const down = (value) => top + INSET.top + (1 - Math.min(1, (scale(value) - low) / (high - low))) * inner;
    if (log)
      for (let decade = Math.ceil(low); decade <= high; decade++) {
        const y = down(10 ** decade);
        draw("line", { x1: 0, x2: width, y1: y, y2: y, class: "decade" }, this.svg);
      }
    for (const { one, ys } of lines) {
      if (finite(one.level)) {
        const y = down(one.level);
        draw("line", { x1: 0, x2: width, y1: y, y2: y, stroke: one.color, class: "level" }, this.svg);
      }
      const points = [];
      const step = Math.max(1, Math.floor(ys.length / (2 * width)));
      ys.forEach((y, i) => {
        if ((i % step === 0 || i === ys.length - 1) && finite(y) && (!log || y > 0))
          points.push(`${across(xs[i]).toFixed(1)},${down(y).toFixed(1)}`);
      });
      const style = { stroke: one.color, "stroke-dasharray": one.dash ? "3 3" : "none", class: "line" };
      if (points.length > 1) draw("polyline", { points: points.join(" "), ...style }, this.svg);
      if (points.length) {
        const [cx, cy] = points[points.length - 1].split(",");
        draw("circle", { cx, cy, r: 2.5, fill: one.color }, this.svg);
      }
    }
    const edge = (value, y, anchor) => {
      const text = draw("text", { x: 3, y, class: "edge", "dominant-baseline": anchor }, this.svg);
      text.textContent = short(log ? Number((10 ** value).toPrecision(2)) : Number(value.toPrecision(3)));
    };
    edge(high, top + 2, "hanging");
    if (height > 60) edge(low, top + height - 2, "auto");
  }

  // Draws the line of an epoch, or none.
  mark(at) {
    if (!this.cross) return;
    const value = at === null ? null : (this.owner.columns[this.owner.x] || [])[at];
    this.cross.style.display = finite(value) ? "" : "none";
    if (!finite(value)) return;
    for (const name of ["x1", "x2"]) this.cross.setAttribute(name, this.across(value));
  }
}

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
    this.view.onFrame = () => this.turnTo();
    this.view.playerPlace = this.film;
    this.side = make("div", "side");
    this.view.root.insertBefore(this.side, this.view.foot);
    this.numbers = make("dl", "numbers", this.side);
    this.side.append(this.view.foot);
    this.strip = make("div", "strip", this.root);
    this.charts = [];
    this.columns = {};
    this.marks = [];
    this.x = "epoch";
    this.turn = 0;
    this.pointed = null;
    this.back = null;
    this.picked = 0;
    this.resizer = new ResizeObserver(() => this.fit());
    this.resizer.observe(this.root);
  }

  // Takes all that the page draws.
  take(bytes) {
    const header = decode(bytes);
    const { stage } = header;
    if (stage.turn < this.turn && stage.run === this.run) {
      this.view.update(this.view.header || header); // the theme may be another one
    } else {
      this.run = stage.run;
      this.turn = stage.turn;
      this.view.update(header);
      this.pick();
      this.x = stage.x;
      this.root.dataset.x = stage.x;
      this.played = stage.film;
      this.columns = Object.fromEntries(stage.names.map((name) => [name, []]));
      this.generation = stage.generation;
      this.charts.forEach((chart) => chart.box.remove());
      this.charts = stage.charts.map((spec) => new Chart(this.strip, spec, this));
      this.grow(stage, stage.rows, 0);
    }
    this.phase = stage.phase;
    this.listen(stage.live);
  }

  grow({ state, numbers, marks }, rows, from) {
    this.state(state);
    this.count(numbers);
    Object.values(this.columns).forEach((column, at) => {
      column.length = from;
      for (const row of rows) column.push(row[at]);
    });
    this.marks = marks;
    this.root.classList.toggle("idle", !(this.columns.epoch || []).length);
    this.curves();
  }

  // Listens to a run that goes on, or to none.
  listen(live) {
    if (this.live?.topic === live?.topic) return;
    if (this.live) channel.leave(this.live.topic, this.ear);
    this.live = live;
    if (!live) return;
    this.ear = {
      has: () => ({ rows: (this.columns.epoch || []).length, generation: this.generation }),
      take: (head, rows, body) => this.hear(head, rows, body),
      gone: () => this.change("gone"),
    };
    channel.listen(live.path, live.topic, this.ear);
  }

  hear(head, { rows, from, generation }, body) {
    if (head.turn > this.turn) {
      this.turn = head.turn;
      this.generation = generation;
      // Before its data are loaded, a page has no panels.
      const drawn = head.panels.length > 0 && head.panels.every(({ place }) => this.view.header.panels[place]);
      if (drawn) this.view.renew(head, sections(new Uint8Array(body), 0));
      this.grow(head, rows, from);
    }
    this.change(head.phase);
  }

  // Has the page drawn anew, once, where more changes than the stage shows.
  change(phase) {
    if (phase === this.phase) return;
    this.phase = phase;
    this.redraw(phase);
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

  // The value of the axis at an epoch.
  where(epoch) {
    const epochs = this.columns.epoch || [];
    const at = epochs.findIndex((one) => one >= epoch);
    return (this.columns[this.x] || [])[at < 0 ? epochs.length - 1 : at];
  }

  curves() {
    this.charts.forEach((chart) => chart.draw());
    this.tell();
  }

  // The epoch under the pointer, else the one that is looked back to, else the last.
  tell() {
    const last = (this.columns.epoch || []).length - 1;
    const at = this.pointed !== null && this.pointed <= last ? this.pointed : this.back;
    for (const chart of this.charts) {
      chart.tell(at === null ? last : at);
      chart.mark(at);
    }
  }

  point(at) {
    this.pointed = at;
    this.tell();
  }

  // Follows the frame that the view shows.
  turnTo() {
    const key = this.view.root.dataset.frame || "";
    const epochs = this.columns.epoch || [];
    const at = this.played ? epochs.indexOf(numeric(key)) : -1;
    this.back = at < 0 || at === epochs.length - 1 ? null : at;
    this.tell();
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
    if (width !== this.width) {
      this.width = width;
      this.curves();
    }
  }

  destroy() {
    this.listen(null);
    this.resizer.disconnect();
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
