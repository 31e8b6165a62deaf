// Writes settings into the address of the page, without an entry in the history: Back leaves the page in one step.

const PATIENCE = 100; // ms between looks whether the page is there

let waiting = 0;

function asSearch(query) {
  const text = new URLSearchParams(query).toString();
  return text && `?${text}`;
}

function write({ page, query }, turns = 20) {
  clearTimeout(waiting);
  const here = location.pathname.replace(/\/$/, "").split("/").pop();
  if (here !== page && page !== "start") {
    if (turns) waiting = setTimeout(() => write({ page, query }, turns - 1), PATIENCE);
    return;
  }
  const search = asSearch(query);
  if (location.search !== search)
    history.replaceState(history.state, "", location.pathname + search + location.hash);
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

// A session that is lost, as where the server has been started again, begins from the query string by which the page was
// opened: what has been written since is a better link.
export default function ({ data }) {
  const before = globalThis.fmvizSession || data.session;
  globalThis.fmvizSession = data.session;
  if (before !== data.session && location.search !== asSearch(data.query)) location.reload();
  else write(data);
}
