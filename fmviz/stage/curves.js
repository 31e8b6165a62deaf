// Small live curves, stacked and side by side, on a common axis.

const CHART_HEIGHT = 84;
const STRIP_HEIGHT = 56;
const LETTER = 12; // font size of a name at the end of a line
const INSET = { left: 6, right: 6, top: 4, bottom: 4 }; // at the sides, half the handle of Streamlit's slider
const SVG = "http://www.w3.org/2000/svg";

function draw(tag, attributes, parent) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (parent) parent.append(element);
  return element;
}

// The index of the nearest of ascending numbers to x.
function nearest(xs, x) {
  let low = 0;
  for (let high = xs.length - 1; low < high;) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

const finite = Number.isFinite;

// F − F*: what objectives are above the lowest under the same strengths, or above a floor known elsewhere.
function gaps(ys, epochs, floors) {
  const problem = (at) => floors.findLastIndex(([after]) => epochs[at] > after);
  const least = floors.map(([, known]) => (finite(known) ? known : Infinity));
  ys.forEach((y, at) => finite(y) && (least[problem(at)] = Math.min(least[problem(at)], y)));
  return ys.map((y, at) => (y - least[problem(at)] > 1e-14 * Math.abs(y) ? y - least[problem(at)] : 0));
}
const short = (x) => (Number.isInteger(x) && Math.abs(x) < 1e9 ? grouped(x).replace("-", "−") : number(x, 4));

// Stacked curves, each with separate numbers, or with columns of its owner.
class Chart {
  constructor(parent, spec, owner) {
    this.spec = spec;
    this.owner = owner;
    this.box = make("div", "chart", parent);
    this.box.style.setProperty("--wide", spec.rows.length > 1 && !spec.rows[0].floors ? "1.7" : "1");
    const head = make("div", "chart-head", this.box);
    make("div", "chart-title", head).textContent = spec.title;
    this.values = make("div", "values", head);
    this.readouts = spec.rows.flatMap((row) =>
      row.series.filter(({ thin }) => !thin).map((one) => {
        const entry = make("span", "readout", this.values);
        make("span", "dash", entry).style.background = one.color;
        make("span", "", entry).textContent = one.name;
        one.floors = row.floors;
        return { one, row, value: make("b", "", entry), more: make("span", "", entry) };
      }),
    );
    this.height = spec.strip ? STRIP_HEIGHT : CHART_HEIGHT;
    this.svg = draw("svg", { height: this.height, role: "img" }, this.box);
    this.foot = make("div", "axis", this.box);
    this.ends = [0, 1, 2].map(() => make("span", "", this.foot));
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => owner.point(null));
  }

  numbers({ x, y, column, floors }) {
    const { columns } = this.owner;
    const ys = y || columns[column] || [];
    return { xs: x || columns[this.owner.x] || [], ys: floors ? gaps(ys, columns.epoch, floors) : ys };
  }

  point(event) {
    const rect = this.svg.getBoundingClientRect();
    const part = (event.clientX - rect.left - INSET.left) / (rect.width - INSET.left - INSET.right);
    const { xs } = this.numbers(this.readouts[0].one);
    const at = this.first + within(part, 1) * this.breadth;
    if (this.spec.strip) this.owner.point(xs[Math.round(at)]);
    else if (xs.length) this.owner.point(xs[nearest(xs, this.spec.xlog ? 10 ** at : at)]);
  }

  // Shows the values at a position of the axis, by default the last, and draws a line there.
  mark(at) {
    const words = [];
    for (const { one, value, more } of this.readouts) {
      const { xs, ys } = this.numbers(one);
      const y = ys[finite(at) ? nearest(xs, at) : xs.length - 1];
      put(value, finite(y) ? short(y) : "–");
      put(more, finite(one.level) ? ` (true ${grouped(one.level)})` : "");
      words.push(`${one.name} ${value.textContent}${more.textContent}`);
    }
    this.svg.setAttribute("aria-label", `${this.spec.title}: ${words.join(", ")}`);
    if (!this.cross) return;
    this.cross.style.display = finite(at) ? "" : "none";
    if (finite(at)) for (const name of ["x1", "x2"]) this.cross.setAttribute(name, this.across(at));
  }

  draw() {
    const { marks } = this.owner;
    const { rows, x, xlog, strip } = this.spec;
    const { xs } = this.numbers(this.readouts[0].one);
    // A strip is spaced like the slider below or above it: evenly.
    const scale = strip ? (value) => nearest(xs, value) : xlog ? Math.log10 : (value) => value;
    const known = rows.flatMap(({ series }) => series.flatMap((one) => this.numbers(one).xs)).filter(finite);
    const [first, last] = this.spec.ends || [Math.min(...known), Math.max(...known)];
    const width = this.svg.clientWidth || this.box.clientWidth;
    this.svg.replaceChildren();
    if (!width) return;
    this.first = finite(first) ? scale(first) : 0;
    this.breadth = (finite(first) && scale(last) - this.first) || 1;
    const inner = width - INSET.left - INSET.right;
    const across = (value) => INSET.left + ((scale(value) - this.first) / this.breadth) * inner;
    [first, x, last].forEach((end, at) =>
      put(this.ends[at], !x || !finite(first) ? "" : at === 1 ? x : short(Number(end.toPrecision(3)))),
    );
    const each = (this.height - 6 * (rows.length - 1)) / rows.length;
    rows.forEach((row, number_) => this.row(row, number_ * (each + 6), each, width, across));
    // Labels are at the bottom, on the first free line; the smallest value is on the lowest.
    const free = [44, 0];
    const places = marks.map(([epoch]) => across(this.owner.where(epoch)));
    for (const x1 of places) draw("line", { x1, x2: x1, y1: 0, y2: this.height, class: "change" }, this.svg);
    for (const [i, at] of places.entries()) {
      const words = marks[i][1];
      const wide = 6 * words.length;
      const left = at + wide > width ? at - wide : at + 3;
      const line = free.findIndex((end) => end <= left);
      if (line < 0) continue;
      free[line] = left + wide;
      draw("text", { x: left, y: this.height - 3 - 12 * line, class: "edge" }, this.svg).textContent = words;
    }
    this.cross = draw("line", { y1: 0, y2: this.height, class: "cross" }, this.svg);
    this.across = across;
  }

  row(row, top, height, width, across) {
    const lines = row.series.map((one) => ({ one, ...this.numbers(one) }));
    const levels = row.series.map((one) => one.level).filter(finite);
    const all = lines.flatMap(({ one, ys }) => ys.filter((y) => finite(y) && (y > 0 || !one.floors))).concat(levels);
    draw("rect", { x: 0, y: top, width, height, class: "ground" }, this.svg);
    if (!all.length) return;
    let low = row.zero ? 0 : Math.min(...all);
    // Values beyond a fixed end of the axis are clipped.
    let high = row.top || Math.max(...all);
    const log = row.log && low > 0 && high > 20 * low;
    const scale = log ? Math.log10 : (value) => value;
    [low, high] = [scale(low), scale(high)];
    // No plotted quantity is negative.
    if (high === low) [low, high] = [Math.max(0, low - 0.5), row.top || high + 0.5];
    const inner = height - INSET.top - INSET.bottom;
    const down = (value) => top + INSET.top + (1 - Math.min(1, (scale(value) - low) / (high - low))) * inner;
    if (log)
      for (let decade = Math.ceil(low); decade <= high; decade += Math.ceil((high - low) / 4)) {
        const y = down(10 ** decade);
        draw("line", { x1: 0, x2: width, y1: y, y2: y, class: "decade" }, this.svg);
      }
    for (const { one, xs, ys } of lines) {
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
      const style = {
        stroke: one.color,
        "stroke-dasharray": one.dash ? "3 3" : "none",
        class: one.thin ? "line thin" : "line",
      };
      if (points.length > 1) draw("polyline", { points: points.join(" "), ...style }, this.svg);
      if (points.length && !one.thin) {
        const [cx, cy] = points[points.length - 1].split(",");
        draw("circle", { cx, cy, r: 2.5, fill: one.color }, this.svg);
      }
    }
    const ends = lines
      .map(({ one, ys }) => ({ one, y: down(ys.at(-1)) }))
      .filter(({ one, y }) => !one.thin && finite(y));
    let free = 0;
    ends.sort((a, b) => a.y - b.y);
    for (const [at, { one, y }] of this.spec.strip ? ends.entries() : []) {
      free = LETTER + Math.max(free, Math.min(y - LETTER / 2, height - LETTER * (ends.length - at)));
      const place = { x: width + 3, y: free - LETTER / 2, style: `--tone: ${one.color}`, class: "end" };
      draw("text", place, this.svg).textContent = one.name;
    }
    const edge = (value, y, anchor) => {
      const text = draw("text", { x: 3, y, class: "edge", "dominant-baseline": anchor }, this.svg);
      text.textContent = short(log ? Number((10 ** value).toPrecision(2)) : Number(value.toPrecision(3)));
    };
    edge(high, top + 2, "hanging");
    if (height > 50) edge(low, top + height - 2, "auto");
  }
}

// Charts over the same rows, stored as growing columns of numbers.
class Curves {
  constructor(parent) {
    this.strip = make("div", "strip", parent);
    this.charts = [];
    this.columns = {};
    this.marks = [];
    this.x = "epoch";
    this.pointed = null;
    this.back = null;
    this.resizer = new ResizeObserver(() => this.draw());
    this.resizer.observe(this.strip);
  }

  set(charts, names, x) {
    this.x = x;
    this.columns = Object.fromEntries(names.map((name) => [name, []]));
    const drawn = JSON.stringify(charts);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.charts.forEach((chart) => chart.box.remove());
    this.charts = charts.map((spec) => new Chart(this.strip, spec, this));
  }

  get length() {
    return (this.columns[this.x] || []).length;
  }

  // Replaces the rows from a number on.
  grow(rows, from, marks = []) {
    Object.values(this.columns).forEach((column, at) => {
      column.length = Math.min(column.length, from);
      for (const row of rows) column.push(row[at]);
    });
    this.marks = marks;
    this.draw();
  }

  // The value of the axis at an epoch.
  where(epoch) {
    const epochs = this.columns.epoch || [];
    const at = epochs.findIndex((each) => each >= epoch);
    return (this.columns[this.x] || [])[at < 0 ? epochs.length - 1 : at];
  }

  draw() {
    this.charts.forEach((chart) => chart.draw());
    this.mark();
  }

  // Marks the position under the pointer, else the selected epoch, else none.
  mark() {
    for (const chart of this.charts) chart.mark(this.pointed ?? this.back);
  }

  point(at) {
    this.pointed = at;
    this.mark();
  }

  // Selects an available epoch before the last, or a position of another axis.
  turnTo(at) {
    const { epoch } = this.columns;
    if (!epoch) this.back = this.charts[0]?.readouts[0].one.x?.[at] ?? at;
    else this.back = epoch.includes(at) && at !== epoch.at(-1) ? this.where(at) : null;
    this.mark();
  }

  destroy() {
    this.resizer.disconnect();
  }
}
