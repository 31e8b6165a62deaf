// Matrices with state, numbers and small curves, for three hosts: Streamlit, a notebook, and a saved page. With a server,
// the channel delivers updates.

const NARROW = 2.3; // minimum width for several matrices, in minimum matrix widths

class Stage {
  constructor(parent) {
    this.root = make("div", "fmviz fmviz-stage", parent);
    this.heading = make("div", "heading", this.root, { role: "heading", "aria-level": 2 });
    this.bar = make("div", "status", this.root);
    this.badge = make("span", "badge", this.bar, { role: "status" });
    this.sentence = make("span", "sentence", this.bar);
    this.film = make("div", "film", this.bar);
    this.picker = make("div", "picker", this.root, { role: "group", "aria-label": "Matrix" });
    this.view = new View(this.root);
    this.view.onFrame = (key, at) =>
      this.curves.turnTo(this.played ? (this.along ? at : numeric(key)) : null);
    this.view.playerPlace = this.film;
    this.side = make("div", "side");
    this.view.root.insertBefore(this.side, this.view.foot);
    this.numbers = make("dl", "numbers", this.side);
    this.side.append(this.view.foot);
    this.curves = new Curves(this.root);
    this.turn = 0;
    this.resizer = new ResizeObserver(() => this.fit());
    this.resizer.observe(this.root);
  }

  update(header) {
    const { stage } = header;
    if (stage.run && stage.turn === this.drawn && stage.run === this.run) {
      this.view.update(this.view.header || header); // the theme may have changed
      return;
    }
    this.run = stage.run;
    this.drawn = this.turn = stage.turn;
    this.played = stage.film;
    this.generation = stage.generation;
    this.root.dataset.x = stage.x;
    this.curves.set(stage.charts, stage.names, stage.x);
    put(this.heading, stage.title || "");
    const strip = stage.charts[0]?.strip && stage.charts[0].rows[0];
    this.along = Boolean(strip);
    this.root.classList.toggle("along", this.along);
    if (strip) {
      this.heading.after(this.curves.strip);
      this.root.style.setProperty("--ends", `${nameWidth(strip.series.map(({ name }) => name))}px`);
    }
    this.view.update(header);
    this.pick();
    this.grow(stage, stage.rows, 0);
  }

  grow({ state, numbers, marks }, rows, from) {
    this.state(state);
    this.count(numbers);
    this.curves.grow(rows, from, marks);
    this.root.classList.toggle("idle", Boolean(numbers) && !this.curves.length);
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

  // Without numbers, matrices take their place.
  count(given) {
    const numbers = given || [];
    this.root.classList.toggle("plain", !given);
    const key = numbers.map(([label]) => label).join();
    if (key !== this.counted) {
      this.counted = key;
      this.numbers.replaceChildren();
      this.cells = numbers.map(([label]) => {
        const box = make("div", "", this.numbers);
        make("dt", "", box).textContent = label;
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

  // Shows the matrices one at a time if only one fits.
  pick() {
    const { panels } = this.view.header;
    // Models come before the truth.
    if (!panels[this.picked]) this.picked = panels.findIndex(({ color }) => color);
    this.picker.replaceChildren();
    panels.forEach(({ title }, at) =>
      button("save", title.replace(/ \(.*/, ""), this.picker, () => {
        this.picked = at;
        this.fit();
      }),
    );
    this.fit();
  }

  fit() {
    const width = this.root.clientWidth;
    if (!width || !this.view.header) return;
    const { panels, minWidth } = this.view.header;
    const narrow = width < NARROW * minWidth && panels.length > 1;
    this.root.classList.toggle("narrow", narrow);
    if (narrow && this.view.header.maxHeight < 1) this.side.before(this.film);
    else this.bar.append(this.film);
    [...this.picker.children].forEach((button, at) =>
      button.setAttribute("aria-pressed", String(at === this.picked)),
    );
    const only = narrow ? this.picked : -1;
    if (only !== this.view.only) {
      this.view.only = only;
      this.view.width = -1;
      this.view.layout();
    }
  }

  destroy() {
    this.resizer.disconnect();
    this.curves.destroy();
    this.view.destroy();
    this.root.remove();
  }
}

// ---- hosts ----

const views = new WeakMap();

// Draws a payload in an element: only matrices, or a stage.
function mount(parent, bytes) {
  const header = decode(bytes);
  let view = views.get(parent);
  if (!view) {
    parent.querySelectorAll(".fmviz").forEach((old) => old.remove());
    view = header.stage ? new Stage(parent) : new View(parent, "fmviz");
    views.set(parent, view);
  }
  view.update(header);
  return view;
}

// Streamlit calls this again with new data or another theme. It calls the cleanup when the component is removed, but
// also when newer data arrive during a call, which must not end the view.
function streamlit({ data, parentElement, setStateValue, setTriggerValue }) {
  const view = mount(parentElement, data);
  (view.view || view).pick = (cell) => setStateValue("cell", cell);
  if (view.view) {
    view.redraw = (phase) => setTriggerValue("phase", phase);
    view.watch ||= new Watch({
      root: view.root,
      has: () => ({ rows: view.curves.length, generation: view.generation }),
      take: (head, rows, body) => view.receive(head, rows, body),
      redraw: (phase) => view.redraw(phase),
    });
    const { live, phase } = decode(data).stage;
    view.watch.follow(live, phase);
  }
  return () => {
    if (parentElement.isConnected || !views.delete(parentElement)) return;
    view.watch?.stop();
    view.destroy();
  };
}

// Elsewhere a shadow root separates our styles from those of the page.
function shadow(element) {
  const root = element.attachShadow({ mode: "open" });
  make("style", "", root).textContent = STYLE;
  return make("div", "", root);
}

// A notebook, by anywidget: the trait `payload` is the picture.
function render({ model, el }) {
  const place = el.appendChild(document.createElement("div"));
  place.dataset.lmSuppressShortcuts = "true"; // suppress JupyterLab's shortcuts here
  const parent = shadow(place);
  const take = () => {
    const { buffer, byteOffset, byteLength } = model.get("payload");
    mount(parent, new Uint8Array(buffer, byteOffset, byteLength));
  };
  model.on("change:payload", take);
  take();
  return () => {
    model.off("change:payload", take);
    views.get(parent).destroy();
  };
}

// A saved page contains every picture as JSON in its place.
async function unfold(script) {
  const place = document.createElement("div");
  script.before(place);
  const packed = Uint8Array.from(atob(JSON.parse(script.textContent).payload), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const parent = shadow(place);
  const draw = new Uint8Array(await new Response(stream).arrayBuffer());
  mount(parent, draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => mount(parent, draw));
}

const payloads = document.querySelectorAll('script[type="application/json"].fmviz');
payloads.forEach(unfold);

// In a frame, a saved page omits its heading and sends its height.
if (payloads.length && parent !== window) {
  const root = document.documentElement;
  root.classList.add("framed");
  new ResizeObserver(() => parent.postMessage({ fmvizHeight: root.offsetHeight }, "*")).observe(root);
}

export default (component) => (component ? streamlit(component) : { render });
