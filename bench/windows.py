"""How long a person waits for the matrix of many features: first paint, message size, and every step down.

    python -m bench.windows            # at d = 2,703 and 47,236, each with up to 3,000 used features

Serves a dashboard of its own over a store of its own, whose runs are planted: a machine of rank 30, and one
with a single pair. The data are drawn at random in the shapes of MovieLens 100K with side features (RCV1 has
the other number of features). Medians of five visits, the first of all apart, which loads the data. Needs
Playwright and a Chromium (FMVIZ_CHROMIUM names one).
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import BrowserContext, Page, TimeoutError, sync_playwright

from fmviz.engine.parameters import Parameters
from fmviz.lab.catalog import load
from fmviz.lab.datasets.readers import GENRES
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import Growth, RunStore

from .pages import browser_of, served

RANK, USED = 30, 3_000
PAIR = (0.31, 0.77)
# The canvas lies in a shadow tree, as does its title, which a new picture changes.
CANVAS = """(() => {
  const all = [...document.querySelectorAll('[class*="st-key-interactions_matrix"] *')].flatMap(
    (e) => (e.shadowRoot ? [...e.shadowRoot.querySelectorAll('.stage canvas')] : []));
  return all.filter((c) => c.getBoundingClientRect().width > 0)[0];
})()"""
HEAD = """(() => {
  const all = [...document.querySelectorAll('[class*="st-key-interactions_matrix"] *')].flatMap(
    (e) => (e.shadowRoot ? [...e.shadowRoot.querySelectorAll('.panel .title')] : []));
  return all.length ? all[0].textContent : "";
})()"""
COLOURED = f"""() => {{
  const c = {CANVAS};
  if (!c || !c.width) return 0;
  const data = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
  const zero = getComputedStyle(c.getRootNode().querySelector('.swatch .square')).backgroundColor
    .match(/\\d+/g).map(Number);
  const word = (zero[0] | (zero[1] << 8) | (zero[2] << 16) | (255 << 24)) >>> 0;
  return data.reduce((n, x) => n + (x !== word), 0);
}}"""


def draw_data(folder: Path) -> None:
    """Write data of the two shapes: MovieLens with side features, and LIBSVM text of 47,236 features."""
    rng = np.random.default_rng(0)
    movies, words = folder / "ml100k", folder / "rcv1"
    movies.mkdir()
    words.mkdir()
    jobs = [f"job{n}" for n in range(21)]
    zips = "0123456789VTLRKNEYM"
    users = [
        f"{u}|{rng.integers(7, 74)}|{'MF'[u % 2]}|{jobs[u % 21]}|{zips[u % len(zips)]}0000"
        for u in range(1, 944)
    ]
    flags = rng.integers(0, 2, (1682, len(GENRES)))
    items = [
        f"{i}|Film {i}|{'' if i == 1 else f'01-Jan-{1920 + i % 79}'}||http|{'|'.join(map(str, flags[i - 1]))}"
        for i in range(1, 1683)
    ]
    rated = [
        f"{rng.integers(1, 944)}\t{rng.integers(1, 1683)}\t{rng.integers(1, 6)}\t0" for _ in range(100_000)
    ]
    for name, lines in (("u.user", users), ("u.item", items), ("u.data", rated)):
        (movies / name).write_text("\n".join(lines) + "\n", encoding="latin-1")
    lines = []
    for n in range(20_242):
        held = np.unique(rng.integers(1, 47_237, 74))
        weight = rng.random(held.size)
        weight /= np.sqrt(np.square(weight).sum())
        pairs = " ".join(f"{j}:{v:.5f}" for j, v in zip(held, weight, strict=True))
        lines.append(f"{'+1' if n % 2 else '-1'} {pairs}")
    for name in ("rcv1_train.binary", "rcv1_test.binary"):
        (words / name).write_text("\n".join(lines if "train" in name else lines[:10]) + "\n")


def planted(d: int, single: bool) -> np.ndarray:
    """Return a P of d rows: up to `USED` of them not zero, or two that share a column."""
    P = np.zeros((d, RANK))
    if single:
        P[[int(part * d) for part in PAIR], 3] = 0.5, 1e-3
        return P
    rng = np.random.default_rng(1)
    rows = rng.choice(d, min(d, USED), replace=False)
    P[rows] = rng.standard_normal((rows.size, RANK)) * (rng.random((rows.size, RANK)) < 0.3)
    return P


def plant_runs(path: Path) -> dict[tuple[int, bool], str]:
    """Enter the runs; return their ids by the number of features and whether they have a single pair."""
    store = RunStore(path)
    found = {}
    experiments = (
        Experiment(dataset="movielens_100k", rank=RANK, dataset_params=(("side_features", True),)),
        Experiment(dataset="rcv1", rank=RANK, loss="logistic"),
    )
    for experiment in experiments:
        d = load(experiment.dataset, **dict(experiment.dataset_params)).X.shape[1]
        for single in (False, True):
            run = store.begin(experiment, title=f"d = {d:,}, {'one pair' if single else 'many pairs'}")
            record = {
                "epoch": 1,
                "seconds": 0.0,
                "objective": 1.0,
                "used_features": 0,
                "used_interactions": 0,
            }
            parameters = Parameters(planted(d, single), np.zeros(d), 0.0)
            store.grow(run, Growth([record], parameters=parameters, status="epochs", message="Planted."))
            found[d, single] = run
    store.close()
    return found


def visit(window: BrowserContext, url: str, sizes: list[int]) -> tuple[Page, float]:
    """Open a matrix; return the page and the seconds until it is painted."""
    page = window.new_page()
    page.on("websocket", lambda ws: ws.on("framereceived", lambda data: sizes.append(len(data))))
    begin = time.perf_counter()
    page.goto(url)
    page.wait_for_function(f"() => ({COLOURED})() > 0", timeout=180_000)
    return page, time.perf_counter() - begin


def step_down(page: Page) -> list[tuple[str, float, int]]:
    """Open the coloured cell nearest the middle, down to the entries; return titles, seconds, and cells."""
    found = []
    while True:
        before = page.evaluate(HEAD)
        place = page.evaluate(
            f"""() => {{
              const c = {CANVAS}, box = c.getBoundingClientRect();
              const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
              const none = [...c.getRootNode().querySelectorAll('.swatch .square')].map((e) =>
                getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number));
              let best = null, least = 1e9;
              for (let i = 0; i < c.height; i++) for (let j = 0; j < c.width; j++) {{
                const at = 4 * (i * c.width + j);
                if (none.some((rgb) => [0, 1, 2].every((s) => data[at + s] === rgb[s]))) continue;
                const far = Math.abs(i - c.height / 2) + Math.abs(j - c.width / 2);
                if (far < least) {{ least = far; best = [i, j]; }}
              }}
              c.scrollIntoView({{block: 'center'}});
              const r = c.getBoundingClientRect();
              return [r.left + (best[1] + 0.5) * r.width / c.width,
                      r.top + (best[0] + 0.5) * r.height / c.height];
            }}"""
        )
        begin = time.perf_counter()
        page.mouse.click(place[0], place[1])
        try:
            page.wait_for_function(
                f"(old) => {HEAD} !== old && ({COLOURED})() > 0", arg=before, timeout=6_000
            )
        except TimeoutError:
            return found  # Nothing further down.
        found.append((page.evaluate(HEAD), time.perf_counter() - begin, page.evaluate(COLOURED)))
        # The table beneath is still on its way.
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        page.wait_for_timeout(500)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        draw_data(folder)
        os.environ["FMVIZ_DATA"] = str(folder)
        store = folder / "runs.sqlite"
        runs = plant_runs(store)
        surroundings = {"FMVIZ_DATA": str(folder), "FMVIZ_STORE": str(store)}
        with served(surroundings) as url, sync_playwright() as playwright:
            browser = browser_of(playwright)
            window = browser.new_context(viewport={"width": 1440, "height": 1000})
            for (d, single), run in runs.items():
                link = f"{url}/interactions?run={run}&view=matrix"
                sizes: list[int] = []
                page, first = visit(window, link, sizes)
                later = []
                for _ in range(5):
                    page.close()
                    sizes.clear()
                    page, seconds = visit(window, link, sizes)
                    later.append(seconds)
                kind = "one pair" if single else f"{min(d, USED):,} used features"
                print(
                    f"d = {d:,}, {kind}: first visit {first:.2f} s, then {statistics.median(later):.2f} s "
                    f"(worst {max(later):.2f}), largest message {max(sizes):,} bytes, all {sum(sizes):,}",
                    flush=True,
                )
                page.wait_for_timeout(1_500)
                for title, seconds, cells in step_down(page):
                    print(f"    {title}: {seconds:.2f} s, {cells:,} cells not zero", flush=True)
                page.close()
            browser.close()


if __name__ == "__main__":
    main()
