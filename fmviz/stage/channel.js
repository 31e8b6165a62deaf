// Listens to the channel of the server: one WebSocket for all components of a page.
//
// A listener is { number, has(), take(head, rows, from, body), gone() }. The next message is asked for when the last
// one has been painted, which does not happen in a hidden tab.

const RETRY = 1000;
const CALM = 100; // milliseconds between looks whether the page can be drawn again
const LEAVING = 1500; // milliseconds after a link, or Back, in which another page may be on its way

class Channel {
  constructor() {
    this.listeners = new Map();
    this.left = -LEAVING;
    const leave = () => (this.left = performance.now());
    document.addEventListener("click", ({ target }) => target.closest?.("a") && leave(), true);
    window.addEventListener("popstate", leave, true);
    document.addEventListener("visibilitychange", () => this.askAll());
  }

  // Whether the page can be drawn again. What is asked for without a connection is lost, and what the old page asks for
  // while another one is on its way would take the reader back.
  get calm() {
    const { testConnectionState: state = "CONNECTED", testScriptState: script } =
      document.querySelector('[data-testid="stApp"]')?.dataset || {};
    return state === "CONNECTED" && script !== "running" && performance.now() - this.left > LEAVING;
  }

  listen(path, topic, listener) {
    const old = this.listeners.get(topic);
    if (old === listener) return;
    listener.number = 0;
    this.left = -LEAVING; // the other page is there
    this.path = path;
    this.listeners.set(topic, listener);
    this.ask(topic);
  }

  leave(topic, listener) {
    if (this.listeners.get(topic) !== listener) return;
    this.listeners.delete(topic);
    if (this.listeners.size) this.send({ topic, leave: true });
    else this.socket?.close();
  }

  askAll() {
    for (const topic of this.listeners.keys()) this.ask(topic);
  }

  ask(topic) {
    const listener = this.listeners.get(topic);
    if (listener && !document.hidden) this.send({ topic, number: listener.number, ...listener.has() });
  }

  send(question) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(question));
    else this.open();
  }

  open() {
    if (this.socket || this.waiting) return;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = (this.socket = new WebSocket(`${scheme}//${location.host}${this.path}`));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.askAll();
    socket.onmessage = ({ data }) => this.take(data);
    socket.onclose = () => {
      this.socket = null;
      if (!this.listeners.size) return;
      this.waiting = true;
      setTimeout(() => {
        this.waiting = false;
        if (this.listeners.size) this.open();
      }, RETRY);
    };
  }

  take(data) {
    const size = new DataView(data).getUint32(0, true);
    const { topic, number, generation, from, head, rows } = JSON.parse(
      new TextDecoder().decode(new Uint8Array(data, 4, size)),
    );
    const listener = this.listeners.get(topic);
    if (!listener) return;
    if (head.gone) {
      this.listeners.delete(topic);
      listener.gone();
      return;
    }
    listener.number = number;
    // Before it is drawn: a picture that cannot be drawn must not be the last one.
    requestAnimationFrame(() => this.ask(topic));
    listener.take(head, { rows, from, generation }, data.slice(4 + size));
  }
}

const channel = (globalThis.fmvizChannel ||= new Channel());

// What a component watches: one topic at a time, or none.
//
// Its host is { has(), take(head, rows, body), redraw(phase) }. A topic has a phase, and so has the page that was drawn:
// where the two differ, the page is drawn again, once for every phase.
class Watch {
  constructor(host) {
    this.host = host;
  }

  // Takes what the page says: where to listen, if anything goes on, and the phase that it was drawn in.
  follow(live, phase) {
    this.phase = phase;
    if (this.live?.topic === live?.topic) return;
    this.stop();
    this.live = live;
    if (!live) return;
    this.listener = {
      has: () => this.host.has(),
      take: (head, rows, body) => {
        this.host.take(head, rows, body);
        this.turn(head.phase);
      },
      gone: () => this.turn("gone"),
    };
    channel.listen(live.path, live.topic, this.listener);
  }

  turn(phase) {
    clearTimeout(this.waiting);
    if (phase === this.phase) return;
    if (channel.calm) {
      this.phase = phase;
      this.host.redraw(phase);
    } else this.waiting = setTimeout(() => this.turn(phase), CALM);
  }

  stop() {
    clearTimeout(this.waiting);
    if (this.live) channel.leave(this.live.topic, this.listener);
    this.live = null;
  }
}
