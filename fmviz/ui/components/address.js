// Writes settings into the address, without an entry in the history: Back leaves in one step.

const PATIENCE = 100; // ms between looks

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

// Streamlit labels sliders twice, has icons read aloud, skips levels of headings, and labels what has no role.
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

// In another session, as after a restart of the server, the page is opened again by its address.
export default function ({ data }) {
  const before = globalThis.fmvizSession || data.session;
  globalThis.fmvizSession = data.session;
  if (before !== data.session && location.search !== asSearch(data.query)) location.reload();
  else write(data);
}
