"""Time the start page: the delay until its models appear, and the frame rate while λ changes.

    python -m bench.arena

Fits the four paths of the start page (68 features), and those of 200 samples of 100 features, in this process
with compiled kernels, and records the time of each fit. Then serves the dashboard, opens the start page and
Compare with the flights from New York (196 features), drags the handle of λ from end to end, and counts the
painted frames and the messages sent by the browser; and again with the arrow keys. Requires Playwright and a
Chromium (set FMVIZ_CHROMIUM).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from playwright.sync_api import Page, sync_playwright

from fmviz.lab.catalog import DataChoice
from fmviz.lab.search.arena import arena_plan
from fmviz.lab.search.strength_path import PathPlan, trace

from .serve import browser_of, served

# Pages, and the keys of their models. With a different λ, the start page begins without a film.
VIEWS = {
    "?strength=0.46": "start_models",
    "compare?view=strength&dataset=flights&trained=1": "compare_models",
}
# 200 samples of 100 features.
LARGER = {"n_samples": 200, "d_true": 80, "b": 8, "d_noise": 20}
# Counts painted frames, and those in which any picture has changed.
WATCH = """(place) => {
  const view = document.querySelector(place);
  const roots = [...view.querySelectorAll('*')].flatMap((e) => (e.shadowRoot ? [e.shadowRoot] : []));
  const canvases = [view, ...roots].flatMap((root) => [...root.querySelectorAll('.gram canvas')]);
  const seen = () => canvases.map((c) => c.toDataURL().length + c.toDataURL().slice(-400)).join();
  window.painted = { frames: 0, changed: 0, worst: 0, began: performance.now() };
  let before = seen(), last = performance.now();
  const tick = (now) => {
    window.painted.frames += 1;
    window.painted.worst = Math.max(window.painted.worst, now - last);
    last = now;
    const shown = seen();
    if (shown !== before) window.painted.changed += 1;
    before = shown;
    if (!window.enough) requestAnimationFrame(tick);
  };
  window.enough = false;
  requestAnimationFrame(tick);
}"""
STOP = """() => { window.enough = true;
  return { ...window.painted, seconds: (performance.now() - window.painted.began) / 1000 }; }"""


def paths(plan: PathPlan) -> tuple[list[float], float]:
    """Return the time in seconds until each fit of a plan is finished, and the total CPU time."""
    began, spent = time.perf_counter(), time.process_time()
    times = [time.perf_counter() - began for _ in trace(plan)]
    return times, time.process_time() - spent


def moved(page: Page, place: str, sent: list[int], how: Callable[[], None]) -> str:
    """Return the numbers of painted frames and sent messages while λ changes."""
    page.wait_for_timeout(1_500)
    page.evaluate(WATCH, place)
    sent.clear()
    how()
    messages = len(sent)
    state = page.evaluate(STOP)
    rate = state["frames"] / state["seconds"]
    return (
        f"{state['frames']} frames in {state['seconds']:.2f} s, {rate:.0f} a second, the slowest "
        f"{state['worst']:.0f} ms; {state['changed']} with another picture; {messages} messages sent"
    )


def follow(page: Page, address: str, place: str) -> None:
    """Open a page, wait for its models, and change λ by the handle and by keys."""
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(len(data))))
    page.goto(address)
    page.locator(f"{place} .gram canvas").first.wait_for(timeout=180_000)
    began = time.perf_counter()
    for words, remaining, what in (
        ("Being trained", 3, "a first matrix"),
        ("Being trained", 0, "four matrices"),
        ("So far", 0, "all four at the λ that is shown"),
    ):
        while page.locator(place).get_by_text(words).count() > remaining:
            page.wait_for_timeout(20)
        print(f"{what}: {time.perf_counter() - began:.2f} s after the empty view")
    # The page requests models while they are being trained.
    quiet = False
    while not quiet:
        before = len(sent)
        page.wait_for_timeout(4_000)
        quiet = len(sent) == before
    slider = page.get_by_role("slider", name="Strength λ")
    slider.press("Home")
    thumb = slider.locator("xpath=..").bounding_box()
    assert thumb is not None
    x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2

    def drag() -> None:
        for step in range(120):
            page.mouse.move(x + 5 * step, y)
        for step in range(120, 0, -1):
            page.mouse.move(x + 5 * step, y)

    def press() -> None:
        for key in ["ArrowRight"] * 24 + ["ArrowLeft"] * 24:
            page.keyboard.press(key)

    page.mouse.move(x, y)
    page.mouse.down()
    print(f"dragged: {moved(page, place, sent, drag)}")
    page.mouse.up()
    page.wait_for_timeout(2_000)
    slider.press("Home")
    print(f"keys: {moved(page, place, sent, press)}")


def main() -> None:
    """Measure and print."""
    start = arena_plan()
    larger = DataChoice.of(start.base.dataset.name, LARGER)
    for name, plan in (
        ("68 features", start),
        ("100 features", replace(start, base=replace(start.base, dataset=larger))),
    ):
        paths(plan)
        for _ in range(3):
            times, spent = paths(plan)
            print(
                f"{name}: first fit {times[0]:.2f} s, all {len(times)} {times[-1]:.2f} s, "
                f"processors {spent:.2f} s"
            )
    with served() as url, sync_playwright() as playwright:
        browser = browser_of(playwright)
        for path, key in VIEWS.items():
            print(f"/{path}")
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            follow(page, f"{url}/{path}", f".st-key-{key}")
            page.close()


if __name__ == "__main__":
    main()
