// Writes settings into the address of the page, without an entry in the history: Back leaves the page in one step.

const PATIENCE = 100; // milliseconds between looks whether the address is that of the page already

let waiting = 0;

function write({ page, query }, turns = 20) {
  clearTimeout(waiting);
  const here = location.pathname.replace(/\/$/, "").split("/").pop();
  if (here !== page && page !== "start") {
    if (turns) waiting = setTimeout(() => write({ page, query }, turns - 1), PATIENCE);
    return;
  }
  const text = new URLSearchParams(query).toString();
  if (location.search !== (text && `?${text}`))
    history.replaceState(history.state, "", location.pathname + (text && `?${text}`) + location.hash);
}

// Streamlit labels sliders twice, by themselves and by their group, and has names of icons read aloud.
function relabel() {
  for (const thumb of document.querySelectorAll('[data-testid="stSlider"] input[aria-labelledby]'))
    thumb.removeAttribute("aria-labelledby");
  for (const icon of document.querySelectorAll('[role="img"][aria-label$=" icon"]:not([aria-hidden])'))
    icon.setAttribute("aria-hidden", "true");
}

if (!globalThis.fmvizLabels) {
  globalThis.fmvizLabels = new MutationObserver(relabel);
  globalThis.fmvizLabels.observe(document, { childList: true, subtree: true });
  relabel();
}

export default function ({ data }) {
  write(data);
}
