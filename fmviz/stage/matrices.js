// Heatmaps of matrices whose frames follow a slider while it is dragged.

const LEVELS = 127;
const SKIP = -128; // the code of a cell that is not an interaction
const CELL_GAP = 9; // CSS pixels between Q and its Gram matrix
const PANEL_GAP = 24;
const PLAY_SECONDS = 6;
const ROUNDED = 1 + 1e-6; // tolerance for a scale equal to the largest value
const GRID = 9; // minimum cell size with grid lines, in CSS pixels
const MIN_FACTOR = 26;
const MAX_NAME = 120;
const MIN_NAMED = 13; // minimum cell size with names, in CSS pixels
const PLAYER = "fmviz-player"; // the event of a player with loaded frames
const ROW = 11; // height of a factor row below a matrix, in CSS pixels
const ZOOMED_IN = 3; // zoom factor of a double click or the key +

// ---- payload ----

// Returns section(at, count, type): numbers of a payload.
function sections(bytes, body) {
  const cache = new Map();
  return (at, count, type) => {
    if (!cache.has(at)) {
      const start = bytes.byteOffset + body + at;
      const end = start + count * type.BYTES_PER_ELEMENT;
      cache.set(at, new type(bytes.buffer.slice(start, end))); // a copy, since the message is not aligned
    }
    return cache.get(at);
  };
}

function decode(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0) !== 0x464d5631) throw new Error("matrix view: the payload has another version");
  const size = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  header.section = sections(bytes, 8 + size);
  return header;
}

// ---- numbers ----

// Colours are linear in the square root of the magnitude; `top` is the end of the scale.
function level(value, top) {
  const size = Math.max(1, Math.round(Math.sqrt(Math.min(1, Math.abs(value) / top)) * LEVELS));
  return value < 0 ? -size : size;
}

function factorCodes(q, scale) {
  return Int8Array.from(q, (value) => (value === 0 ? 0 : level(value, scale)));
}

// The product of two rows; null, an exact zero, if they share no column.
function product(q, k, i, j) {
  let sum = null;
  for (let s = 0, a = i * k, b = j * k; s < k; s++) if (q[a + s] && q[b + s]) sum += q[a + s] * q[b + s];
  return sum;
}

// Calls beyond() for a value outside the scale.
function gramCodes(q, n, k, scale, beyond) {
  const out = new Int8Array(n * n);
  for (let i = 0; i < n; i++) {
    out[i * n + i] = SKIP;
    for (let j = 0; j < i; j++) {
      const value = product(q, k, i, j);
      if (value === null) continue;
      if (Math.abs(value) > ROUNDED * scale) beyond();
      const code = level(value, scale);
      out[i * n + j] = code;
      out[j * n + i] = code;
    }
  }
  return out;
}

const amount = (c, top) => (c * Math.abs(c) * top) / LEVELS ** 2;

function rescaled(codes, own, scale) {
  return codes.map((c) => (c && c !== SKIP ? level(amount(c, own), scale) : c));
}

// A tile shows its largest magnitude: no non-zero is ever dropped.
function pooled(codes, n, m, fr, fc) {
  if (fr === 1 && fc === 1) return codes;
  const cols = Math.ceil(m / fc);
  const out = new Int8Array(Math.ceil(n / fr) * cols).fill(SKIP);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < m; j++) {
      const at = ((i / fr) | 0) * cols + ((j / fc) | 0);
      const c = codes[i * m + j];
      if (c !== SKIP && (out[at] === SKIP || Math.abs(c) > Math.abs(out[at]))) out[at] = c;
    }
  return out;
}

const nonzero = (codes) => codes.some((c) => c !== 0 && c !== SKIP);

function number(value, digits = 4) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(digits))) : value.toExponential(2);
  return text.replaceAll("-", "−").replace("e+", "e");
}

const grouped = (n) => n.toLocaleString("en-US");
const within = (x, most) => Math.max(0, Math.min(most, x));

// ---- colours ----

function rgb(hex) {
  const v = parseInt(hex.slice(1), 16);
  return [v >> 16, (v >> 8) & 255, v & 255];
}

function along(stops, t) {
  const x = t * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(x));
  const a = rgb(stops[i]);
  const b = rgb(stops[i + 1]);
  return a.map((c, s) => Math.round(c + (b[s] - c) * (x - i)));
}

// One packed RGBA word for each code from −128 to 127.
function lookup(colors) {
  const words = new Uint32Array(256);
  const bytes = new Uint8ClampedArray(words.buffer);
  const put = (code, [r, g, b]) => bytes.set([r, g, b, 255], 4 * (code + 128));
  put(SKIP, rgb(colors.diagonal));
  put(0, rgb(colors.zero));
  for (let c = 1; c <= LEVELS; c++) {
    const t = (c - 1) / (LEVELS - 1);
    put(c, along(colors.positive, t));
    put(-c, along(colors.negative, t));
  }
  return words;
}

// Whether an element has a dark background: Streamlit's, or the colour painted behind it.
function isDark(element) {
  let color = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  for (let at = element; !color && at; at = at.parentElement || at.getRootNode().host) {
    const ground = getComputedStyle(at).backgroundColor;
    if (!/, 0\)$/.test(ground)) color = ground;
  }
  if (!color) return matchMedia("(prefers-color-scheme: dark)").matches;
  const context = make("canvas").getContext("2d");
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
}

// ---- slider ----

const squeeze = (text) => (text || "").replace(/\s+/g, " ").trim();

function position(range) {
  const [value, low, high] = [range.value, range.min, range.max].map(Number);
  const text = squeeze(range.getAttribute("aria-valuetext"));
  return { text, index: Math.round(value - low), count: Math.round(high - low) + 1 };
}

// Follows the slider of a Streamlit widget, or the player of another view. Python receives only the end of a drag, but
// aria-valuetext changes on each step.
class Driver {
  constructor(key, listener) {
    this.selector = `.st-key-${CSS.escape(key.trim().replace(/[^a-zA-Z0-9_-]/g, "-"))}`;
    this.listener = listener;
    this.thumb = null;
    this.inner = new MutationObserver(() => listener());
    // Streamlit may create the slider later, or recreate it.
    this.search = () => {
      if (!this.thumb || !this.thumb.isConnected) this.attach();
    };
    this.outer = new MutationObserver(this.search);
    this.outer.observe(document.body, { childList: true, subtree: true });
    // A player is inside the shadow root of its component, whose mutations are not observable.
    document.addEventListener(PLAYER, this.search);
    this.attach();
  }

  attach() {
    this.inner.disconnect();
    this.thumb = null;
    for (const box of document.querySelectorAll(this.selector)) {
      const shadow = box.querySelector('[data-testid="stBidiComponentIsolated"]')?.shadowRoot;
      const thumb = (shadow || box).querySelector('input[type="range"]');
      if (thumb) this.thumb = thumb;
    }
    if (!this.thumb) return;
    this.inner.observe(this.thumb, { attributes: true });
    this.listener();
  }

  read() {
    // Another view may have more epochs.
    return this.thumb && { ...position(this.thumb), nearest: Boolean(this.thumb.closest(".player")) };
  }

  destroy() {
    this.inner.disconnect();
    this.outer.disconnect();
    document.removeEventListener(PLAYER, this.search);
  }
}

// A slider and a Play button of the view, with the interface of a Driver.
class Player {
  constructor(parent, listener) {
    this.listener = listener;
    this.keys = [];
    this.timer = 0;
    this.box = make("div", "player", null, { role: "group" });
    parent.prepend(this.box);
    this.button = button("save play", "", this.box, () => (this.timer ? this.pause() : this.play()));
    this.range = make("input", "", this.box, { type: "range", min: 0 });
    this.label = make("span", "at", this.box);
    this.range.addEventListener("input", () => {
      this.pause();
      this.go(this.range.valueAsNumber);
    });
    this.pause();
  }

  // Sets the names of the frames; plays them once, or rests at one.
  take(keys, { player, playerLabel, start }) {
    const same = String(keys) === String(this.keys);
    this.keys = keys;
    this.range.max = keys.length - 1;
    this.range.setAttribute("aria-label", playerLabel);
    this.rests = player === "rests";
    if (this.rests) {
      if (!same) this.go(start ?? keys.length - 1);
      this.fresh ||= !same; // the first Play shows all frames
      if (!this.timer) this.pause();
    } else {
      this.range.value = 0;
      this.play();
    }
    this.box.dispatchEvent(new Event(PLAYER, { bubbles: true, composed: true }));
  }

  get ends() {
    return this.range.valueAsNumber >= this.keys.length - 1;
  }

  play() {
    this.go(this.ends || this.fresh ? 0 : this.range.valueAsNumber);
    this.fresh = false;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.go(this.keys.length - 1);
    clearInterval(this.timer);
    const step = () => {
      this.go(this.range.valueAsNumber + 1);
      if (this.ends) this.pause();
    };
    this.timer = setInterval(step, (1000 * PLAY_SECONDS) / Math.max(1, this.keys.length - 1));
    put(this.button, "❚❚ Pause");
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    put(this.button, this.rests && this.ends ? "↺ Replay" : "▶ Play");
  }

  go(index) {
    this.range.value = index;
    const key = this.keys[this.range.valueAsNumber] || "";
    put(this.label, key);
    this.range.setAttribute("aria-valuetext", key);
    this.listener();
  }

  read() {
    return position(this.range);
  }

  destroy() {
    this.pause();
    this.box.remove();
  }
}

// The number in a frame's name, such as 0.01, or "epoch 1,200".
function numeric(key) {
  const digits = key.replace(/^(epoch|λ =) |,/gi, "").trim();
  return digits === "" ? NaN : Number(digits);
}

function frameAt(frames, position) {
  const last = frames.length - 1;
  if (!last || !position) return last;
  const byText = frames.findIndex(({ key }) => squeeze(key) === position.text);
  if (byText >= 0) return byText;
  const wanted = numeric(position.text);
  const numbers = frames.map(({ key }) => numeric(key));
  if (numbers.includes(wanted)) return numbers.indexOf(wanted);
  if (position.nearest && wanted === wanted)
    return Math.max(0, numbers.filter((x) => x <= wanted).length - 1);
  return position.count === frames.length ? within(position.index, last) : -1;
}

// ---- pictures ----

function make(tag, className, parent, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (parent) parent.append(element);
  return element;
}

function button(className, text, parent, action, title = "") {
  const element = make("button", className, parent, { type: "button" });
  element.textContent = text;
  element.addEventListener("click", action);
  if (title) Object.assign(element, { title, ariaLabel: title });
  return element;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Approximate width of names in CSS pixels.
function nameWidth(names) {
  return Math.min(MAX_NAME, Math.ceil(6.2 * Math.max(0, ...names.map((name) => name.length))) + 6);
}

// A matrix on a canvas with one pixel per drawn cell, enlarged by the browser.
class Picture {
  constructor(parent, part) {
    this.part = part;
    this.box = make("div", `picture ${part}`, parent);
    this.head = make("div", "head", this.box);
    this.name = make("span", "name", this.head);
    this.size = make("span", "size", this.head);
    this.stage = make("div", "stage", this.box);
    this.canvas = make("canvas", "", this.stage);
    this.context = this.canvas.getContext("2d");
    this.grid = make("div", "grid", this.stage);
    this.marks = [0, 1].map(() => make("div", "mark", this.stage));
    this.blocks = make("div", "", this.stage, { "aria-hidden": true });
    this.notice = make("div", "notice", this.stage);
    this.rowNames = make("div", "names rows", this.stage, { "aria-hidden": true });
    this.colNames = make("div", "names cols", this.stage, { "aria-hidden": true });
    this.image = null;
  }

  label(rows, cols) {
    const write = (box, names, size, side) => {
      box.replaceChildren();
      for (const name of names) {
        const entry = make("span", "", box);
        entry.textContent = name;
        entry.style[side] = `${size}px`;
        entry.style.lineHeight = `${size}px`;
      }
    };
    write(this.rowNames, rows, this.rowPixels, "height");
    write(this.colNames, cols, this.colPixels, "width");
    this.stage.style.marginBottom = cols.length ? `${nameWidth(cols) + 4}px` : "";
  }

  // Allocates n × m cells from `top`, `left` of the matrix.
  place(n, m, rowPool, colPool, cellHeight, cellWidth, dpr, top = 0, left = 0) {
    Object.assign(this, { n, m, rowPool, colPool, top, left });
    const rows = Math.ceil(n / rowPool);
    const cols = Math.ceil(m / colPool);
    this.rowPixels = cellHeight / dpr;
    this.colPixels = cellWidth / dpr;
    if (this.canvas.width !== cols || this.canvas.height !== rows || !this.image) {
      this.canvas.width = cols;
      this.canvas.height = rows;
      this.image = this.context.createImageData(cols, rows);
    }
    this.width = cols * this.colPixels;
    this.height = rows * this.rowPixels;
    for (const { style } of [this.canvas, this.stage])
      Object.assign(style, { width: `${this.width}px`, height: `${this.height}px` });
    this.head.style.maxWidth = this.part === "factor" ? "" : `${Math.max(this.width, 60)}px`;
    const fine = this.part === "rows" || Math.min(this.rowPixels, this.colPixels) >= GRID;
    this.grid.style.display = fine ? "" : "none";
    this.grid.style.backgroundSize = `${this.colPixels}px ${this.rowPixels}px`;
  }

  draw(codes, table) {
    const small = pooled(codes, this.n, this.m, this.rowPool, this.colPool);
    const words = new Uint32Array(this.image.data.buffer);
    for (let i = 0; i < words.length; i++) words[i] = table[small[i] + 128];
    this.context.putImageData(this.image, 0, 0);
  }

  // The cell under a pointer as half-open ranges of rows and columns; the nearest one with `near`.
  cell(event, near = false) {
    const rect = this.canvas.getBoundingClientRect();
    const { width, height } = this.canvas;
    let col = Math.floor(((event.clientX - rect.left) / rect.width) * width);
    let row = Math.floor(((event.clientY - rect.top) / rect.height) * height);
    if (near) [col, row] = [within(col, width - 1), within(row, height - 1)];
    if (col < 0 || row < 0 || col >= width || row >= height) return null;
    const range = (at, pool, first, size) => [first + at * pool, first + Math.min(size, (at + 1) * pool)];
    return {
      rows: range(row, this.rowPool, this.top, this.n),
      cols: range(col, this.colPool, this.left, this.m),
    };
  }

  // Outlines at most two ranges of cells, each {rows, cols}; a missing side means the full side.
  mark(ranges) {
    this.marks.forEach((element, at) => this.frame(element, ranges[at]));
  }

  // Outlines blocks [name, first, size] on the diagonal.
  divide(blocks) {
    this.blocks.replaceChildren();
    for (const [name, first, size] of blocks) {
      const element = make("div", "mark block", this.blocks);
      make("span", "", element).textContent = name;
      const side = [first, first + size];
      this.frame(element, { rows: side, cols: side });
    }
  }

  frame(element, range) {
    element.style.display = range ? "grid" : "none";
    if (!range) return;
    const place = (given, first, size, pool, pixels) =>
      (given || [first, first + size])
        .map((x) => within(x - first, size))
        .map((x) => Math.ceil(x / pool) * pixels);
    const [top, bottom] = place(range.rows, this.top, this.n, this.rowPool, this.rowPixels);
    const [left, right] = place(range.cols, this.left, this.m, this.colPool, this.colPixels);
    if (bottom === top || right === left) element.style.display = "none";
    Object.assign(element.style, {
      transform: `translate(${left - 1}px, ${top - 1}px)`,
      width: `${right - left + 2}px`,
      height: `${bottom - top + 2}px`,
    });
  }
}

class Panel {
  constructor(view) {
    this.view = view;
    this.box = make("section", "panel", view.panelsBox);
    const heading = make("div", "title", this.box, { role: "heading", "aria-level": 2 });
    this.chip = make("span", "chip", heading);
    this.title = make("span", "", heading);
    this.figure = make("div", "figure", this.box, { role: "img", tabindex: 0 });
    this.figure.addEventListener("keydown", (event) => view.key(this, event));
    this.figure.addEventListener("blur", () => view.leave());
    this.factor = new Picture(this.figure, "factor");
    this.gram = new Picture(this.figure, "gram");
    this.caption = make("div", "caption", this.box, { "aria-hidden": true }); // it is part of the picture's label
    this.rows = new Picture(this.box, "rows");
    this.shown = -1;
    this.width = 0;
    for (const picture of [this.factor, this.gram]) {
      const on = (name, listener) => picture.canvas.addEventListener(name, listener);
      on("pointermove", (event) => view.hover(this, picture, event));
      on("pointerleave", () => view.leave());
      on("click", (event) => view.click(this, picture, event));
      on("dblclick", (event) => view.closer(this, picture, picture.cell(event)));
      on("pointerdown", (event) => {
        view.hover(this, picture, event);
        view.press(this, picture, event);
      });
      on("pointerup", (event) => view.release(event));
      on("pointercancel", () => view.drop());
    }
  }

  // Sets a description and the payload with its numbers.
  set(spec, source) {
    this.spec = spec;
    this.source = source;
    this.shown = -1;
    put(this.title, spec.title);
    this.chip.style.display = spec.color ? "" : "none";
    this.chip.style.background = spec.color || "";
    const isFactor = spec.kind === "factor";
    this.isClasses = spec.kind === "classes";
    this.hasFactor = isFactor && this.view.header.show === "both";
    this.factor.box.style.display = this.hasFactor ? "" : "none";
    put(this.factor.name, spec.factorLabel);
    // Codes are tiles unless their panel has another label.
    this.tiles = !isFactor && spec.gramLabel === "QQᵀ";
    put(this.gram.name, this.tiles ? "" : spec.gramLabel);
    put(this.gram.size, this.tiles ? `${grouped(spec.rows)} × ${grouped(spec.cols)} tiles` : "");
  }

  // The drawn rows and columns: all, unless the view is zoomed and this panel has the same shape.
  get window() {
    const { rows: n, cols: k, kind } = this.spec;
    const m = kind === "factor" ? n : k;
    const zoomed = this.view.zoomed;
    if (zoomed && !this.hasFactor && zoomed.n === n && zoomed.m === m) return zoomed;
    return { rows: [0, n], cols: [0, m], n, m };
  }

  // The largest cells that fit: n and n + 1 device pixels or, with a grid, equal sizes.
  layout(width, dpr) {
    const { kind } = this.spec;
    let wide = Math.floor(width * dpr);
    const { maxHeight } = this.view.header;
    let tall = Math.floor(maxHeight * (maxHeight < 1 ? innerHeight : 1) * dpr);
    this.width = width;
    if (this.hasFactor) {
      this.around(wide, tall, dpr);
      return;
    }
    const { rows, cols } = this.window;
    const high = rows[1] - rows[0];
    const broad = cols[1] - cols[0];
    const names = this.view.header.names;
    const [acrossNames, downNames] =
      kind === "factor" ? [names, names] : [this.spec.rowLabels, this.spec.colLabels];
    let named =
      this.view.header.named && acrossNames && downNames && Math.max(high, broad) * MIN_NAMED <= width;
    const [rowNames, colNames] = named ? [acrossNames.slice(...rows), downNames.slice(...cols)] : [[], []];
    if (named) {
      const room = wide - Math.ceil((nameWidth(rowNames) + 8) * dpr);
      const floor = this.view.header.zoom ? tall - Math.ceil((nameWidth(colNames) + 4) * dpr) : tall;
      named = Math.min(Math.floor(room / broad), Math.floor(floor / high)) >= MIN_NAMED * dpr;
      if (named) [wide, tall] = [room, floor];
    }
    let pool = 1;
    const across = () => Math.ceil(broad / pool);
    const most = () => Math.min(wide / across(), tall / Math.ceil(high / pool));
    while (most() < 1 && pool < Math.max(high, broad)) pool++;
    const cell = Math.max(
      1,
      most() >= GRID * dpr ? Math.floor(most()) : Math.floor(most() * across()) / across(),
    );
    this.gram.place(high, broad, pool, pool, cell, cell, dpr, rows[0], cols[0]);
    this.gram.label(named ? rowNames : [], named ? colNames : []);
    this.gram.divide(this.spec.blocks);
  }

  // The same for Q with its Gram matrix beside it.
  around(wide, tall, dpr) {
    const { rows: n, cols: k } = this.spec;
    for (let pool = 1; ; pool++) {
      const side = Math.ceil(n / pool);
      for (let cell = Math.max(side > 1 ? 0 : 1, Math.floor(Math.min(wide, tall) / side)); cell; cell--) {
        const target = Math.max(MIN_FACTOR * dpr, Math.min(k * cell, 0.3 * wide));
        const colPool = Math.ceil(k / target);
        const columns = Math.ceil(k / colPool);
        const broad = Math.max(1, Math.min(Math.floor(target / columns), 4 * cell + 24));
        const used = Math.round(CELL_GAP * dpr) + broad * columns + cell * side;
        if (used > wide && (cell > 1 || side > 1)) continue;
        this.factor.place(n, k, pool, colPool, cell, broad, dpr);
        this.gram.place(n, n, pool, pool, cell, cell, dpr);
        this.gram.label([], []);
        return;
      }
    }
  }

  numbers() {
    const { rows, cols, frames, kind } = this.spec;
    const type = kind === "factor" ? Float32Array : Int8Array;
    return this.source.section(frames[this.shown].at, rows * cols, type);
  }

  draw(index, force) {
    if (index < 0 || (index === this.shown && !force)) return false;
    this.shown = index;
    const { rows: n, cols: k, frames, kind, title, factorLabel, gramLabel } = this.spec;
    const { table } = this.view;
    const frame = frames[index];
    const numbers = this.numbers();
    let empty = false;
    this.beyond = false;
    if (kind === "factor") {
      if (this.hasFactor) this.factor.draw(factorCodes(numbers, this.view.scale("factor")), table);
      const gram = gramCodes(numbers, n, k, this.view.scale("gram"), () => (this.beyond = true));
      empty = !numbers.some(Boolean) ? "All zero" : !nonzero(gram) && "No interactions";
      this.gram.draw(this.cut(gram, n), table);
    } else if (kind === "classes") {
      this.gram.draw(this.cut(numbers, k), this.view.classTable(this.spec.classes));
    } else {
      const codes = rescaled(numbers, frame.scale, this.view.scale("gram"));
      this.beyond = frame.scale > ROUNDED * this.view.scale("gram");
      empty = !nonzero(codes) && "All zero";
      this.gram.draw(this.cut(codes, k), table);
    }
    const notice = frame.notice || empty || "";
    put(this.gram.notice, notice);
    put(this.caption, frame.caption);
    this.caption.classList.toggle("exact", frame.caption.startsWith("✓"));
    const size = this.tiles
      ? `matrix of ${n} by ${k} tiles`
      : `${gramLabel}, ${n} by ${kind === "factor" ? n : k}`;
    const what = this.hasFactor ? `${factorLabel}, ${n} by ${k} and ${size}` : size;
    const parts = [`${title}: heatmap of ${what}`, frame.caption, notice].filter(Boolean);
    const label = parts.map((part) => part.replace(/\.$/, "")).join(". ");
    if (this.figure.getAttribute("aria-label") !== label) this.figure.setAttribute("aria-label", label);
    return true;
  }

  cut(codes, stride) {
    const { rows, cols, n, m } = this.window;
    if (rows[1] - rows[0] === n && cols[1] - cols[0] === m) return codes;
    const width = cols[1] - cols[0];
    const out = new Int8Array((rows[1] - rows[0]) * width);
    for (let i = rows[0]; i < rows[1]; i++)
      out.set(codes.subarray(i * stride + cols[0], i * stride + cols[1]), (i - rows[0]) * width);
    return out;
  }

  name(i) {
    return this.view.header.names?.[i] ?? `feature ${i}`;
  }

  // The largest cell within the drawn one; its kind is "value", "zero" or "skip".
  find(picture, cell) {
    const { cols: k, kind, frames } = this.spec;
    const numbers = this.numbers();
    const gram = picture === this.gram && kind === "factor";
    let best = { i: cell.rows[0], j: cell.cols[0], value: 0, kind: "skip" };
    for (let i = cell.rows[0]; i < cell.rows[1]; i++)
      for (let j = cell.cols[0]; j < cell.cols[1]; j++) {
        const own = numbers[i * k + j];
        if (gram ? i === j : kind !== "factor" && own === SKIP) continue;
        const sum = gram ? product(numbers, k, i, j) : own || null;
        const zero = sum === null;
        const value = kind === "codes" ? amount(own, frames[this.shown].scale) : sum || 0;
        const better =
          best.kind === "skip" || (best.kind === "zero" && !zero) || Math.abs(value) > Math.abs(best.value);
        if (better) best = { i, j, value, kind: zero ? "zero" : "value" };
      }
    return best;
  }

  // Draws the rows of two features in the factor; returns whether there is a factor.
  compare(cell) {
    const { cols: k, kind, frames } = this.spec;
    const { dpr } = this.view;
    const own = cell && this.width && kind === "factor" && !this.hasFactor && !frames[this.shown].notice;
    this.rows.box.style.display = own ? "" : "none";
    if (!own) return false;
    const pool = Math.ceil(k / this.gram.width);
    this.rows.place(2, k, 1, pool, ROW * dpr, (this.gram.width * dpr * pool) / k, dpr);
    const codes = cell.flatMap((j) => [...factorCodes(this.row(j), this.view.scale("factor"))]);
    this.rows.draw(Int8Array.from(codes), this.view.table);
    return true;
  }

  row(j) {
    const k = this.spec.cols;
    return this.numbers().subarray(j * k, (j + 1) * k);
  }

  // The explanation of the weight of two features.
  reason([i, j]) {
    const { title, cols: k, notes } = this.spec;
    const other = this.row(j);
    const shared = this.row(i).filter((x, s) => x && other[s]).length;
    const none = [i, j].filter((at) => !this.row(at).some(Boolean)).map((at) => this.name(at));
    const words = shared
      ? `${shared} of ${k} columns; the products sum to ${number(product(this.numbers(), k, i, j), 2)}.`
      : `no column; the weight, their product summed over columns, is exactly zero.${none[0] ? ` The row of ${none.join(" and of ")} is zero.` : ""}`;
    return `Above: rows of P of ${this.name(i)} and ${this.name(j)}. In ${title} they share ${words} ${notes[shared ? 1 : 0]}`;
  }

  entries(emit) {
    const { rows: n, cols: k, kind, frames, factorLabel, gramLabel, rowLabels, colLabels } = this.spec;
    const { key, scale } = frames[this.shown];
    const numbers = this.numbers();
    if (kind !== "factor") {
      const same = n === k && String(rowLabels) === String(colLabels);
      for (let i = 0; i < n; i++)
        for (let j = same ? i : 0; j < k; j++) {
          const code = numbers[i * k + j];
          if (!code || code === SKIP) continue;
          const value = this.isClasses ? this.spec.classes[code].label : +amount(code, scale).toPrecision(3);
          emit(key, this.tiles ? "tiles" : gramLabel, rowLabels?.[i] ?? i, colLabels?.[j] ?? j, value);
        }
      return;
    }
    for (let i = 0; this.hasFactor && i < n; i++)
      for (let s = 0; s < k; s++)
        if (numbers[i * k + s] !== 0) emit(key, factorLabel, this.name(i), s, numbers[i * k + s]);
    for (let i = 0; i < n; i++)
      for (let j = i + 1; j < n; j++) {
        const value = product(numbers, k, i, j);
        if (value !== null) emit(key, gramLabel, this.name(i), this.name(j), value);
      }
  }

  // The contents of a cell as text, [position, value].
  describe(picture, cell) {
    const { kind, rowLabels, colLabels, factorLabel } = this.spec;
    const found = this.find(picture, cell);
    const { i, j, value } = found;
    if (picture === this.factor) {
      const symbol = `${factorLabel.toLowerCase()}[${i}, ${j}]`;
      const where = this.view.header.names ? `${symbol} · ${this.name(i)}` : symbol;
      return [where, found.kind === "zero" ? "exact zero" : number(value)];
    }
    if (kind !== "factor") {
      const where = `${rowLabels?.[i] ?? `row ${i}`} × ${colLabels?.[j] ?? `column ${j}`}`;
      if (found.kind === "skip") return [where, "not an interaction"];
      if (kind === "classes") return [where, this.spec.classes[value].label];
      return [where, found.kind === "zero" ? "exact zero" : `≈ ${number(value)}`];
    }
    if (found.kind === "skip") return [this.name(i), "diagonal: not an interaction"];
    const where = `${this.name(i)} × ${this.name(j)}`;
    if (found.kind === "zero") return [where, "exact zero: no shared column"];
    return [where, value === 0 ? "0: the shared columns cancel" : number(value)];
  }
}

// ---- view ----

class View {
  constructor(parent, alone = "") {
    this.root = make("div", `${alone} fmviz-matrix-view`.trim(), parent);
    this.panelsBox = make("div", "panels", this.root);
    this.emptyBox = make("div", "empty", this.root);
    this.why = make("div", "why", this.root, { "aria-live": "polite" });
    this.foot = make("div", "foot", this.root);
    this.bars = { factor: this.bar(), gram: this.bar() };
    this.swatches = make("div", "swatches", this.foot);
    this.zero = this.swatch("exact zero");
    this.diagonal = this.swatch("");
    this.classes = [];
    this.whole = button("save whole", "Whole matrix", this.foot, () => this.zoom(null));
    this.saves = make("div", "saves", this.foot, { role: "group", "aria-label": "Download" });
    const blob = (text, type) => this.download(new Blob([text], { type }), type.match(/\w+/g)[1]);
    const save = (name, action, words = "the picture as") =>
      button("save", name, this.saves, action, `Download ${words} ${name}`);
    save("CSV", () => blob(this.csv(), "text/csv"), "the non-zero numbers as");
    save("SVG", () => blob(this.svg(), "image/svg+xml"));
    save("PNG", () => this.png());
    this.tip = make("div", "tip", this.root, { "aria-hidden": true });
    this.said = make("div", "said", this.root, { "aria-live": "polite" });
    this.tipWhere = make("span", "where", this.tip);
    this.tipValue = make("span", "value", this.tip);
    this.panels = [];
    this.header = null;
    this.zoomed = null; // the drawn rows and columns, and the shape of their matrices
    this.only = -1; // the panel drawn if only one fits, or -1 for all
    this.driver = null;
    this.steering = null;
    this.asked = 0;
    this.resizer = new ResizeObserver(() => this.layout());
    this.resizer.observe(this.root);
  }

  bar() {
    const box = make("div", "bar", this.foot);
    const name = make("span", "name", box);
    const body = make("span", "body", box);
    const ramp = make("canvas", "ramp", body);
    ramp.width = 2 * LEVELS;
    ramp.height = 1;
    const ticks = make("span", "ticks", body);
    make("span", "note", body).textContent = "square-root scale";
    return { box, name, ramp, ticks: Array.from({ length: 5 }, () => make("span", "", ticks)) };
  }

  swatch(text) {
    const box = make("span", "swatch", this.swatches);
    const chip = make("span", "square", box);
    const label = make("span", "", box);
    label.textContent = text;
    return { box, chip, label };
  }

  classTable(classes) {
    const table = lookup(this.colors);
    const bytes = new Uint8ClampedArray(table.buffer);
    classes.forEach((one, code) =>
      bytes.set([...rgb(one[this.dark ? "dark" : "light"]), 255], 4 * (code + 128)),
    );
    return table;
  }

  update(header) {
    const dark = isDark(this.root);
    const same = this.header && this.header.digest === header.digest;
    if (same && dark === this.dark) return;
    this.header = same ? this.header : header;
    if (dark !== this.dark || !same) {
      this.dark = dark;
      this.colors = { ...header.palette[dark ? "dark" : "light"] };
      if (!header.signed) this.colors.positive = this.colors.magnitude;
      this.table = lookup(this.colors);
      this.root.dataset.theme = dark ? "dark" : "light";
      this.root.closest(".fmviz").classList.toggle("dark", dark);
    }
    if (!same) {
      while (this.panels.length > header.panels.length) this.panels.pop().box.remove();
      while (this.panels.length < header.panels.length) this.panels.push(new Panel(this));
      this.panels.forEach((panel, at) => panel.set(header.panels[at], header));
      if (header.mark || !this.panels.includes(this.picked?.[0])) this.picked = null;
      const { panel, row, col } = header.mark || {};
      if (row >= 0 && col >= 0 && this.panels[panel]) this.choose(this.panels[panel], row, col);
      this.root.classList.toggle("clickable", Boolean(header.clickable));
      this.root.classList.toggle("selectable", header.zoom);
      this.drag = null;
      this.steer(header);
    }
    const bare = header.panels.length === 0;
    this.root.classList.toggle("bare", bare);
    put(this.emptyBox, bare ? header.empty : "");
    this.legend();
    this.width = -1;
    this.layout();
  }

  // Sets new frames of some panels by index; the others stay.
  renew({ panels, scales }, section) {
    const shapes = () => JSON.stringify(this.header.panels.map(({ rows, cols, kind }) => [rows, cols, kind]));
    const before = shapes();
    for (const { place, ...panel } of panels) {
      Object.assign(this.header.panels[place], panel);
      this.panels[place].set(this.header.panels[place], { section });
    }
    this.header.scales = scales;
    this.legend();
    if (shapes() === before) return this.draw(false);
    this.width = -1;
    this.layout();
  }

  // Follows the slider in the header, or its own.
  steer(header) {
    const wanted = header.player ? "player" : header.driver;
    if (this.steering !== wanted) {
      if (this.driver) this.driver.destroy();
      const listener = () => this.ask();
      if (header.player) this.driver = new Player(this.playerPlace || this.root, listener);
      else this.driver = header.driver === null ? null : new Driver(header.driver, listener);
      this.steering = wanted;
    }
    if (!header.player) return;
    const most = header.panels.reduce(
      (a, b) => (b.frames.length > a.frames.length ? b : a),
      header.panels[0],
    );
    this.driver.take(most ? most.frames.map((frame) => frame.key) : [], header);
  }

  scale(part) {
    return this.header.scales[part] || 1;
  }

  legend() {
    for (const part of ["factor", "gram"]) {
      const { box, name, ramp, ticks } = this.bars[part];
      const shown = this.panels.filter((p) => (part === "factor" ? p.hasFactor : !p.isClasses));
      box.style.display = shown.length ? "" : "none";
      const labels = shown.filter((p) => p.spec.kind === "factor").map((p) => p.spec[`${part}Label`]);
      put(name, [...new Set(labels)].join(", "));
      const top = this.header.scales[part];
      const signed = this.header.signed;
      const beyond = part === "gram" && shown.some((p) => p.beyond);
      for (let at = 0; at < 5; at++) {
        const way = signed ? (at - 2) / 2 : at / 4; // along an arm
        const x = top * way * Math.abs(way);
        const sign = !beyond || Math.abs(way) < 1 ? "" : way < 0 ? "≤ " : "≥ ";
        put(ticks[at], top || at === (signed ? 2 : 0) ? sign + number(x, 3) : "");
      }
      const context = ramp.getContext("2d");
      const image = context.createImageData(2 * LEVELS, 1);
      const words = new Uint32Array(image.data.buffer);
      for (let x = 0; x < 2 * LEVELS; x++) {
        const code = signed ? x - LEVELS + (x >= LEVELS) : 1 + (x >> 1);
        words[x] = this.table[code + 128];
      }
      context.putImageData(image, 0, 0);
    }
    // Common captions are shown once.
    const classes = [];
    for (const panel of this.panels) {
      panel.spec.classes.forEach((one, code) => {
        const known = classes.find((entry) => entry.one.label === one.label);
        if (known) known.panels.push(panel);
        else classes.push({ panels: [panel], one, code });
      });
    }
    this.classes.forEach(({ box }) => box.remove());
    this.classes = classes.map((kind) => ({ ...kind, ...this.swatch("") }));
    for (const { one, chip } of this.classes) chip.style.background = one[this.dark ? "dark" : "light"];
    this.zero.box.style.display = this.panels.every((p) => p.isClasses) ? "none" : "";
    this.zero.chip.style.background = this.colors.zero;
    this.diagonal.chip.style.background = this.colors.diagonal;
    this.diagonal.box.style.display = this.header.skipped ? "" : "none";
    put(this.diagonal.label, this.header.skipped);
  }

  layout() {
    if (!this.header) return;
    const dpr = window.devicePixelRatio || 1;
    const width = this.panelsBox.clientWidth || (this.panels.length ? 0 : this.root.clientWidth);
    if (width === 0 || (width === this.width && dpr === this.dpr)) return;
    this.width = width;
    this.dpr = dpr;
    const shown = this.panels.filter((panel, at) => this.only < 0 || at === this.only);
    this.panels.forEach((panel) => (panel.box.style.display = shown.includes(panel) ? "" : "none"));
    const count = shown.length;
    this.whole.style.display = this.panels.some((panel) => panel.window === this.zoomed) ? "" : "none";
    if (count > 0) {
      let columns = Math.floor((width + PANEL_GAP) / (this.header.minWidth + PANEL_GAP));
      columns = Math.max(1, Math.min(count, columns, this.header.columns || count));
      columns = Math.ceil(count / Math.ceil(count / columns)); // no lonely last panel
      const each = Math.floor((width - (columns - 1) * PANEL_GAP) / columns);
      this.panelsBox.style.gridTemplateColumns = `repeat(${columns}, ${each}px)`;
      shown.forEach((panel) => panel.layout(each, dpr));
    }
    this.draw(true);
  }

  ask() {
    if (!this.asked) this.asked = requestAnimationFrame(() => this.draw(false));
  }

  draw(force) {
    cancelAnimationFrame(this.asked);
    this.asked = 0;
    if (!this.header || !(this.width > 0)) return;
    const position = this.driver ? this.driver.read() : null;
    let drawn = false;
    for (const panel of this.panels) {
      if (!panel.width) continue;
      let index = frameAt(panel.spec.frames, position);
      if (this.driver && !position && panel.shown >= 0) index = panel.shown;
      if (index < 0 && panel.shown < 0) index = 0;
      drawn = panel.draw(index < 0 ? panel.shown : index, force) || drawn;
    }
    if (!drawn) return;
    const beyond = this.panels.some((panel) => panel.beyond);
    if (beyond !== this.beyond) {
      this.beyond = beyond;
      this.legend();
    }
    for (const { panels, one, code, label } of this.classes) {
      const [{ spec, shown }] = panels;
      if (panels.length > 1) put(label, one.label);
      else if (shown >= 0) put(label, `${one.label}: ${grouped(spec.frames[shown].counts[code])}`);
    }
    const first = this.panels.find((p) => p.spec.frames.length > 1) || this.panels[0];
    this.root.dataset.frame = first ? first.spec.frames[Math.max(0, first.shown)].key : "";
    this.onFrame?.(this.root.dataset.frame, first?.shown);
    this.explain();
    if (this.pointed) this.hover(...this.pointed);
    else this.leave();
  }

  hover(panel, picture, event) {
    if (this.drag) return void this.stretch(event);
    const cell = picture.cell(event);
    if (!cell || !this.panels.includes(panel)) return void this.leave();
    this.pointed = [panel, picture, event];
    const [where, value] = panel.describe(picture, cell);
    put(this.tipWhere, where);
    put(this.tipValue, value);
    this.tip.classList.add("on");
    // Hosts may have moved the origin of fixed positions.
    this.tip.style.transform = "none";
    const { left: x, top: y, width: w, height: h } = this.tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - w - 8);
    const top = event.clientY + 18 + h > window.innerHeight ? event.clientY - h - 12 : event.clientY + 18;
    this.tip.style.transform = `translate(${Math.round(left - x)}px, ${Math.round(top - y)}px)`;
    this.markAll(panel, picture, cell);
  }

  // Outlines the same position in every panel of the same shape.
  markAll(panel, { part, n, m }, { rows, cols }) {
    const gram = part === "gram";
    for (const other of this.panels) {
      const alike = (gram || other.hasFactor) && other[part].n === n && other[part].m === m;
      const [inGram, inFactor] = gram ? [[{ rows, cols }], [{ rows }, { rows: cols }]] : [[{ rows }], [{ rows, cols }]];
      other.gram.mark(alike ? inGram : []);
      other.factor.mark(alike && other.hasFactor ? inFactor : []);
    }
  }

  // Draws a range of rows and columns, or all again.
  zoom(zoomed) {
    const covers = ([low, high], size) => high - low >= size;
    this.zoomed = zoomed && covers(zoomed.rows, zoomed.n) && covers(zoomed.cols, zoomed.m) ? null : zoomed;
    this.panels.forEach((panel) => (panel.cursor = null));
    this.picked = null;
    this.width = -1;
    this.layout();
  }

  // Zooms around a cell; factors below 1 zoom out.
  closer(panel, picture, cell, factor = ZOOMED_IN) {
    if (!this.header.zoom || !cell || picture !== panel.gram || panel.hasFactor) return;
    const { rows, cols, n, m } = panel.window;
    const around = ([low, high], at, size) => {
      const length = Math.max(2, Math.min(size, Math.ceil((high - low) / factor)));
      const first = within(Math.round((at[0] + at[1] - length) / 2), size - length);
      return [first, first + length];
    };
    this.zoom({ rows: around(rows, cell.rows, n), cols: around(cols, cell.cols, m), n, m });
  }

  // Arrow keys move between cells; Enter clicks; + and − zoom.
  key(panel, event) {
    const picture = panel.gram;
    if (this.header.zoom && ["+", "-", "Escape"].includes(event.key)) {
      const at = this.pointed?.[0] === panel && picture.cell(this.pointed[2]);
      event.preventDefault();
      if (event.key === "Escape") return this.zoom(null);
      return this.closer(panel, picture, at || panel.window, event.key === "+" ? ZOOMED_IN : 1 / ZOOMED_IN);
    }
    const { width: columns, height: rows } = picture.canvas;
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowUp: [-step, 0], ArrowDown: [step, 0], ArrowLeft: [0, -step], ArrowRight: [0, step] };
    const move = moves[event.key];
    if (!move && event.key !== "Enter") return;
    event.preventDefault();
    const [row, column] = panel.cursor || [0, 0];
    const [down, right] = panel.cursor && move ? move : [0, 0];
    panel.cursor = [within(row + down, rows - 1), within(column + right, columns - 1)];
    const rect = picture.canvas.getBoundingClientRect();
    const point = {
      clientX: rect.left + ((panel.cursor[1] + 0.5) / columns) * rect.width,
      clientY: rect.top + ((panel.cursor[0] + 0.5) / rows) * rect.height,
    };
    this.hover(panel, picture, point);
    put(this.said, `${this.tipWhere.textContent}: ${this.tipValue.textContent}`);
    if (event.key === "Enter") this.click(panel, picture, point);
  }

  // From the pressed cell to the cell under the pointer.
  stretched(event) {
    const { picture, from } = this.drag;
    const to = picture.cell(event, true);
    const span = (a, b) => [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
    return { rows: span(from.rows, to.rows), cols: span(from.cols, to.cols) };
  }

  press(panel, picture, event) {
    const drawn = this.header.zoom && event.pointerType !== "touch" && !panel.hasFactor;
    const from = drawn && event.button === 0 ? picture.cell(event) : null;
    if (!from) return;
    this.drag = { panel, picture, from };
    picture.canvas.setPointerCapture(event.pointerId);
  }

  stretch(event) {
    const box = this.stretched(event);
    this.drag.picture.mark([box]);
    put(this.tipWhere, `${grouped(box.rows[1] - box.rows[0])} × ${grouped(box.cols[1] - box.cols[0])}`);
    put(this.tipValue, "release to zoom in");
  }

  release(event) {
    if (!this.drag) return;
    const { n, m } = this.drag.panel.window;
    const { rows, cols } = this.stretched(event);
    this.drop();
    this.stretching = Math.min(rows[1] - rows[0], cols[1] - cols[0]) > 1;
    if (this.stretching) this.zoom({ rows, cols, n, m });
  }

  drop() {
    this.drag = null;
    this.leave();
  }

  leave() {
    if (this.drag) return;
    this.pointed = null;
    this.tip.classList.remove("on");
    for (const panel of this.panels) {
      panel.factor.mark([]);
      panel.gram.mark([]);
    }
    if (this.picked) this.markAll(...this.picked);
    else if (this.header?.mark) {
      const { row, col } = this.header.mark;
      const [rows, cols] = [row, col].map((at) => (at < 0 ? null : [at, at + 1]));
      this.panels.forEach(({ gram }) => gram.mark([{ rows, cols }]));
    }
  }

  click(panel, picture, event) {
    const cell = this.header.clickable && !this.stretching ? picture.cell(event) : null;
    this.stretching = false;
    if (!cell) return;
    const { i, j } = panel.find(picture, cell);
    this.choose(panel, i, j, picture);
    this.explain();
    // A tap has no hover that marks the cell, and arrow keys start from it.
    this.markAll(...this.picked);
    const { left, top, width, height } = picture.canvas.getBoundingClientRect();
    const at = (share, count) => within(Math.floor(share * count), count - 1);
    const { canvas } = panel.gram;
    if (picture === panel.gram) {
      panel.cursor = [
        at((event.clientY - top) / height, canvas.height),
        at((event.clientX - left) / width, canvas.width),
      ];
    }
    if (this.header.clickable !== true) return;
    this.pick({
      panel: this.panels.indexOf(panel),
      frame: panel.spec.frames[panel.shown].key,
      picture: picture.part,
      row: i,
      col: j,
    });
  }

  choose(panel, i, j, picture = panel.gram) {
    this.picked = [panel, picture, { rows: [i, i + 1], cols: [j, j + 1] }];
  }

  explain() {
    const [panel, picture, { rows: [i], cols: [j] } = { rows: [], cols: [] }] = this.picked || [];
    const cell = panel && picture === panel.gram && i !== j && [i, j];
    const explained = this.panels.filter((each) => each.compare(cell));
    const first = explained.includes(panel) ? panel : explained[0];
    put(this.why, first?.reason(cell) || this.header.ask);
  }

  async png() {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(this.svg())}`;
    await image.decode();
    const canvas = make("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => this.download(blob, "png"));
  }

  // Text is text; the cells of a matrix are pixels of an image.
  svg() {
    const base = this.root.getBoundingClientRect();
    const pad = 16;
    const parts = [];
    const add = (tag, left, top, values, text = "") => {
      const attributes = Object.entries({ x: left - base.left + pad, y: top - base.top + pad, ...values })
        .map(([name, value]) => ` ${name}="${escaped(typeof value === "number" ? +value.toFixed(2) : value)}"`)
        .join("");
      parts.push(`<${tag}${attributes}>${escaped(text)}</${tag}>`);
    };
    const width = base.width + 2 * pad;
    const height = this.foot.getBoundingClientRect().bottom - base.top + 2 * pad;
    const fill = getComputedStyle(this.root).getPropertyValue("--paper").trim();
    add("rect", base.left - pad, base.top - pad, { width, height, fill });
    const stroke = getComputedStyle(this.saves.firstChild).borderTopColor;
    for (const element of this.root.querySelectorAll("canvas, .square, .chip, .notice")) {
      const { left, top, width, height } = element.getBoundingClientRect();
      if (width === 0) continue;
      const more =
        element.tagName === "CANVAS"
          ? { href: element.toDataURL(), preserveAspectRatio: "none", style: "image-rendering:pixelated" }
          : { rx: 2, fill: getComputedStyle(element).backgroundColor };
      add(more.href ? "image" : "rect", left, top, { width, height, ...more });
      if (element.matches(".stage canvas, .square"))
        add("rect", left - 0.5, top - 0.5, { width: width + 1, height: height + 1, fill: "none", stroke });
    }
    const walker = document.createTreeWalker(this.root, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (!node.data.trim() || parent.closest(".tip, .said, .saves, .names")) continue;
      const own = getComputedStyle(parent);
      const look = {
        "dominant-baseline": "central",
        fill: own.color,
        opacity: own.opacity,
        "font-family": own.fontFamily,
        "font-size": own.fontSize,
        "font-weight": own.fontWeight,
      };
      for (const [text, rect] of lines(node, range)) add("text", rect.left, rect.top + rect.height / 2, look, text);
    }
    const size = `width="${width}" height="${height}" viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>${parts.join("")}</svg>`;
  }

  // The non-zero cells on the screen; one half of a symmetric matrix.
  csv() {
    const rows = [["panel", "frame", "matrix", "row", "column", "value"]];
    for (const panel of this.panels) panel.entries((...entry) => rows.push([panel.spec.title, ...entry]));
    return rows.map((row) => row.map(quoted).join(",") + "\n").join("");
  }

  download(blob, ending) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    const frame = (this.root.dataset.frame || "").replace(/[^\w.+-]+/g, "-").replace(/^-+|-+$/g, "");
    link.download = `matrices${frame ? `-${frame}` : ""}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  destroy() {
    cancelAnimationFrame(this.asked);
    this.resizer.disconnect();
    if (this.driver) this.driver.destroy();
    this.root.remove();
    this.panels = [];
    this.header = null;
  }
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ENTITIES[c]);
const quoted = (value) =>
  /[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value);

// The lines of a text node, each [text, rectangle].
function lines(node, range) {
  const out = [];
  for (const match of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].trimEnd().length);
    const rect = range.getBoundingClientRect();
    const last = out[out.length - 1];
    if (last && Math.abs(last[1].top - rect.top) < 2) last[0] += match[0];
    else out.push([match[0], rect]);
  }
  return out;
}
