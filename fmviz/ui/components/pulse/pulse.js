// Has the server draw a fragment again: after a pause that the server names, and never while the tab is hidden.
//
// The next question is asked only when an answer has been drawn, and the later the longer the last one took. So a
// slow server, or one far away, is asked less often by itself. What an answer brings for another component of the
// page is handed on to it, however its element and ours come and go.

const PATIENCE = 3; // how many times the way there and back is waited
const LOST = 15000; // milliseconds after which an answer counts as lost

const pulses = new WeakMap();
const feeds = (globalThis.fmvizFeeds ||= new Map());

class Pulse {
  constructor() {
    this.turn = null;
    this.timer = 0;
    this.asked = 0;
    this.lost = LOST;
    this.onVisible = () => {
      if (!document.hidden && this.due) this.beat();
    };
    document.addEventListener("visibilitychange", this.onVisible);
  }

  answer({ turn, wait, to }, payload) {
    if (turn === this.turn) return;
    this.turn = turn;
    if (to && payload.length) hand(to, payload);
    const took = this.asked ? performance.now() - this.asked : 0;
    this.lost = LOST;
    this.after(Math.max(1000 * wait, PATIENCE * took));
  }

  after(milliseconds) {
    clearTimeout(this.timer);
    this.due = false;
    this.timer = setTimeout(() => this.beat(), milliseconds);
  }

  beat() {
    this.due = document.hidden;
    if (this.due) return;
    this.asked = performance.now();
    this.after(this.lost);
    this.lost *= 2;
    this.ask();
  }

  stop() {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
  }
}

function hand(to, payload) {
  const feed = feeds.get(to) || {};
  if (feed.take) feed.take(payload);
  else feeds.set(to, { waiting: payload });
}

export default function (component) {
  const { data, parentElement } = component;
  let pulse = pulses.get(parentElement);
  if (!pulse) {
    pulse = new Pulse();
    pulses.set(parentElement, pulse);
  }
  pulse.ask = () => component.setTriggerValue("beat", pulse.turn);
  const size = new DataView(data.buffer, data.byteOffset, data.byteLength).getUint32(0, true);
  const text = new TextDecoder().decode(data.subarray(4, 4 + size));
  pulse.answer(JSON.parse(text), data.subarray(4 + size));
  return () => {
    if (parentElement.isConnected || !pulses.delete(parentElement)) return;
    pulse.stop();
  };
}
