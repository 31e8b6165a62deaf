// Writes settings into the address without a history entry: Back leaves the page in one step.

const PATIENCE = 100; // polling interval in ms

let waiting;

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

// Streamlit labels sliders twice, exposes icons to screen readers, skips heading levels, and labels elements without a role.
const REPAIRS = [
  ['[role="img"][aria-label$=" icon"]', "aria-hidden", true],
  ["h3, h4", "aria-level", 2],
  ['[role="presentation"][aria-label]', "role", "group"],
];

function relabel() {
  for (const thumb of document.querySelectorAll('[data-testid="stSlider"] input[aria-labelledby]'))
    thumb.removeAttribute("aria-labelledby");
  for (const [where, ...attribute] of REPAIRS)
    document.querySelectorAll(where).forEach((element) => element.setAttribute(...attribute));
}

if (!globalThis.fmvizLabels) {
  globalThis.fmvizLabels = new MutationObserver(relabel);
  globalThis.fmvizLabels.observe(document, { childList: true, subtree: true });
  relabel();
}

// In another session, for instance after a restart of the server, the page is reloaded from its address.
export default function ({ data }) {
  const before = globalThis.fmvizSession || data.session;
  globalThis.fmvizSession = data.session;
  if (before !== data.session && location.search !== asSearch(data.query)) location.reload();
  else write(data);
}
