"""Check in a browser what fits on the first screen: wide, of a laptop, narrow and on a phone, both themes."""

from __future__ import annotations

from typing import Any

import pytest
from ui.driving import PAGES

pytestmark = pytest.mark.browser

WIDE, LAPTOP, NARROW, PHONE = (1440, 900), (1366, 768), (700, 900), (390, 844)
# So many screens hold what a page shows.
SCREENS = {WIDE: 1, LAPTOP: 1, NARROW: 2, PHONE: 1}
GOING = (
    "level=expert&dataset=planted_interactions&lambda_sparse=0.1&lambda_p=0.1&rank=30&tol=0.0"
    "&max_epochs=100000&speed=slow"
)
STAGE = ".st-key-train_matrix"
CONTROLS = (
    ".st-key-train_play button",
    ".st-key-train_main [role=slider], .st-key-train_main input[type=range]",
)
PICTURES = (f"{STAGE} .stage canvas",)
REST = (f"{STAGE} .numbers", f"{STAGE} .chart svg", ".st-key-train_settings button", ".st-key-train_speed")


def below(page: Any, selectors: tuple[str, ...], limit: float) -> list[str]:
    """Return what of some elements is missing, or ends below a limit in CSS pixels."""
    problems = []
    for selector in selectors:
        elements = page.locator(f"{selector}:visible" if "," not in selector else selector)
        boxes = [box for element in elements.all() if (box := element.bounding_box()) is not None]
        if not boxes:
            problems.append(f"{selector} is missing")
        problems += [
            f"{selector} ends at {box['y'] + box['height']:.0f} of {limit:g}"
            for box in boxes
            if box["y"] + box["height"] > limit or box["y"] < 0
        ]
    return problems


def look(page: Any, size: tuple[int, int], scheme: str) -> list[str]:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=scheme)
    page.wait_for_timeout(400)
    wanted = CONTROLS + PICTURES + (() if size == PHONE else REST)
    problems = below(page, wanted, SCREENS[size] * size[1])
    canvases = page.locator(f"{STAGE} .stage canvas:visible")
    if canvases.count() != (1 if size == PHONE else 2):
        problems.append(f"{canvases.count()} matrices")
    elif size == WIDE and min(canvas.bounding_box()["width"] for canvas in canvases.all()) < 380:
        problems.append("the matrices are small")
    return [f"{size[0]} × {size[1]}, {scheme}: {problem}" for problem in problems]


def state(page: Any, words: str) -> None:
    page.locator(f"{STAGE} .badge").get_by_text(words).wait_for()


def test_training_is_on_one_screen(server, page, wait_idle):
    page.goto(f"{server.url}/train?{GOING}")
    state(page, "Ready")
    page.locator(f"{STAGE} .stage canvas:visible").first.wait_for()
    wait_idle(page)
    ready = [problem for size in (WIDE, PHONE, LAPTOP) for problem in look(page, size, "light")]
    problems = [problem for problem in ready if "numbers" not in problem]
    before = page.locator(f"{STAGE} canvas:visible").first.bounding_box()
    page.locator(".st-key-train_play button:visible").first.click()
    state(page, "Running")
    page.locator(f"{STAGE} .numbers dd").first.wait_for()
    for size in (PHONE, NARROW, WIDE, LAPTOP):
        problems += look(page, size, "dark")
    page.locator(".st-key-train_stop button:visible").first.click()
    state(page, "Stopped")
    wait_idle(page)
    for size in (WIDE, NARROW, PHONE, LAPTOP):
        problems += look(page, size, "light")
    assert page.locator(f"{STAGE} canvas:visible").first.bounding_box() == before, "the end moves no matrix"
    assert not problems, "\n".join(problems)


# ------------------------------------------------------------------------------------------ the other pages

AFTER_A_RUN = {
    "path": (
        "path?dataset=monks1&points=3&penalties=ti,cs&run=1",
        ".st-key-path_point",
        (".st-key-path_validation_auc_used_interactions .js-plotly-plot",),
    ),
    "prox": ("prox", ".picture canvas", (".st-key-prox_log2lambda", ".picture canvas")),
    "geometry": ("geometry", ".st-key-geometry_cs .js-plotly-plot", (".st-key-geometry_cs .js-plotly-plot",)),
    "lesson": (
        "train?lesson=lambda",
        f"{STAGE} .stage canvas",
        (".st-key-lesson_text p", ".st-key-lesson_next", f"{STAGE} .stage canvas"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AFTER_A_RUN)
def test_what_was_computed_is_on_the_first_screen(server, page, wait_idle, name):
    address, ready, wanted = AFTER_A_RUN[name]
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    page.goto(f"{server.url}/{address}")
    for selector in (ready, *wanted):
        page.locator(f"{selector}:visible").first.wait_for(timeout=120_000)
    wait_idle(page)
    problems = below(page, wanted, WIDE[1])
    if name == "lesson":
        words, picture = (
            page.locator(f"{selector}:visible").first.bounding_box() for selector in (wanted[0], wanted[2])
        )
        if words["x"] + words["width"] > picture["x"]:
            problems.append("the words are not beside the picture")
    assert not problems, "\n".join(problems)


MOST_WORDS = 350
_COUNT = """() => document.querySelector('[data-testid="stMainBlockContainer"]').innerText
  .split(/\\s+/).filter((word) => /\\p{L}{2}/u.test(word)).length"""


@pytest.mark.slow
def test_no_page_is_long_before_anything_is_opened(server, page, wait_idle):
    counts = {}
    for name in PAGES:
        page.goto(f"{server.url}/{'' if name == 'start' else name}")
        page.get_by_role("heading", level=1).wait_for()
        wait_idle(page)
        counts[name] = page.evaluate(_COUNT)
    assert max(counts.values()) <= MOST_WORDS, counts
