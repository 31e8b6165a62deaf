// A sentence and a progress bar.

const bars = new WeakMap();

class Progress {
  constructor(parent) {
    this.root = document.createElement("div");
    this.root.className = "fmviz-progress";
    this.words = this.root.appendChild(document.createElement("div"));
    this.words.setAttribute("role", "status");
    this.bar = this.root.appendChild(document.createElement("progress"));
    parent.append(this.root);
    this.watch = new Watch({
      root: this.root,
      has: () => ({}),
      take: (head) => this.show(head),
      redraw: (phase) => this.redraw(phase),
    });
  }

  show({ sentence, done }) {
    this.words.textContent = sentence;
    this.bar.setAttribute("aria-label", sentence);
    if (done === null) this.bar.removeAttribute("value");
    else this.bar.value = done;
  }
}

export default function (component) {
  const { data, parentElement } = component;
  let progress = bars.get(parentElement);
  if (!progress) {
    parentElement.querySelectorAll(".fmviz-progress").forEach((old) => old.remove());
    progress = new Progress(parentElement);
    bars.set(parentElement, progress);
  }
  progress.redraw = (phase) => component.setTriggerValue("phase", phase);
  progress.show(data.head);
  progress.watch.follow(data.live, data.head.phase);
  return () => {
    if (parentElement.isConnected || !bars.delete(parentElement)) return;
    progress.watch.stop();
  };
}
