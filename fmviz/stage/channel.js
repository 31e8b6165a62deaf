// The client of the server's channel: one WebSocket for all components of a page.
//
// A listener is { number, has(), take(head, rows, from, body), gone(), cut(blocked) }. The next message is requested
// after the last one has been painted, which does not happen in a hidden tab.

const RETRY = 1000;
const REFUSALS = 3; // successive refusals, with a working page connection, that mean a blocked channel
const REDRAW = 2000; // milliseconds between refreshes of a page with a blocked channel
// As in docs/guide/serving.md.
const PROXY_LINES = `proxy_http_version 1.1;
proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection "upgrade";`;
const CALM = 100; // milliseconds between checks whether the page can be redrawn
const LEAVING = 1500; // milliseconds after a link, or Back, in which another page may load

class Channel {
  constructor() {
    this.listeners = new Map();
    this.left = -LEAVING;
    this.refusals = 0;
    const leave = () => (this.left = performance.now());
    document.addEventListener("click", ({ target }) => target.closest?.("a") && leave(), true);
    window.addEventListener("popstate", leave, true);
    document.addEventListener("visibilitychange", () => this.askAll());
  }

  // Whether the page can be redrawn. Requests without a connection are lost, and requests of the old page while another
  // one loads would take the reader back.
  get calm() {
    return this.connected && appState("Script") !== "running" && performance.now() - this.left > LEAVING;
  }

  get connected() {
    return (appState("Connection") ?? "CONNECTED") === "CONNECTED";
  }

  get cut() {
    return this.refusals >= REFUSALS;
  }

  get address() {
    return location.host + this.path;
  }

  listen(path, topic, listener) {
    const old = this.listeners.get(topic);
    if (old === listener) return;
    listener.number = 0;
    this.left = -LEAVING; // the other page has loaded
    this.path = path;
    this.listeners.set(topic, listener);
    listener.cut(this.cut);
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
    let heard = false;
    socket.onopen = () => {
      // A new request is answered immediately, which shows that the channel works.
      for (const listener of this.listeners.values()) listener.number = 0;
      this.askAll();
    };
    socket.onmessage = ({ data }) => {
      heard = true;
      this.count(0);
      this.take(data);
    };
    socket.onclose = () => {
      this.socket = null;
      if (!this.listeners.size) return;
      // A restarting server also refuses the page; a hidden tab sends no requests.
      if (!heard && this.connected && !document.hidden) this.count(this.refusals + 1);
      this.waiting = true;
      setTimeout(() => {
        this.waiting = false;
        if (this.listeners.size) this.open();
      }, RETRY);
    };
  }

  count(refusals) {
    this.refusals = refusals;
    for (const listener of this.listeners.values()) listener.cut(this.cut);
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
    // Before drawing: a picture that cannot be drawn must not be the last one.
    requestAnimationFrame(() => this.ask(topic));
    listener.take(head, { rows, from, generation }, data.slice(4 + size));
  }
}

function appState(name) {
  return document.querySelector('[data-testid="stApp"]')?.dataset[`test${name}State`];
}

const channel = (globalThis.fmvizChannel ||= new Channel());

// Shows that the channel is blocked, and how to open it.
function cutNotice() {
  const notice = document.createElement("div");
  notice.className = "fmviz-cut";
  notice.setAttribute("role", "status");
  const sentence = document.createElement("div");
  sentence.textContent =
    `Live updates are blocked: this browser cannot reach ${channel.address}. ` +
    "The page is refreshed every two seconds instead.";
  const details = document.createElement("details");
  details.append(document.createElement("summary"), document.createElement("pre"));
  details.firstChild.textContent = "Configuration for a proxy such as nginx";
  details.lastChild.textContent = PROXY_LINES;
  notice.append(sentence, details);
  return notice;
}

// The subscription of a component: one topic at a time, or none.
//
// Its host is { root, has(), take(head, rows, body), redraw(phase) }. Topic and page have a phase; if they differ, the
// page is redrawn, once per phase. With a blocked channel it is redrawn periodically.
class Watch {
  constructor(host) {
    this.host = host;
  }

  // Accepts the state of the page: the channel, if something is active, and its phase.
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
      cut: (blocked) => this.cut(blocked),
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

  cut(blocked) {
    if (blocked === Boolean(this.notice)) return;
    clearInterval(this.polling);
    this.notice?.remove();
    this.notice = null;
    if (!blocked) return;
    this.notice = cutNotice();
    this.host.root.prepend(this.notice);
    this.polling = setInterval(() => {
      if (channel.calm && !document.hidden) this.host.redraw(this.phase);
    }, REDRAW);
  }

  stop() {
    clearTimeout(this.waiting);
    this.cut(false);
    if (this.live) channel.leave(this.live.topic, this.listener);
    this.live = null;
  }
}
