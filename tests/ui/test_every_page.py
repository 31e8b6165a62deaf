"""Every page in a real browser: no error, nothing outside the window or on another, no rule of axe broken.

Light and dark, 1366, 820 and 390 pixels wide. FMVIZ_SCREENSHOTS names a folder for the pictures.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from ui.driving import PAGES

SMALL = "dataset=balance_scale&rank=3&lambda_p=0.001&lambda_sparse=0.001&max_epochs=40"
# Where a page shows nothing before something is done: what to open it with, and what to press.
OPENED = {
    "prox": "d=60&k=8",
    "train": f"{SMALL}&play=1",
    "path": "dataset=balance_scale&points=4&rank=3",
    "sweeps": "dataset=balance_scale&penalties=ti,cs&points=2&seeds=1&high=0.1",
}
PRESSED = {"path": "path_start", "sweeps": "sweeps_start", "compare": "compare_newest"}
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
_RUN_AXE = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.flatMap((one) =>
    one.nodes.map((node) => ({
      rule: one.id, target: node.target.flat().join(" "), html: node.html.slice(0, 200),
      why: [...node.any, ...node.all, ...node.none].map((check) => check.message).join(" "),
    })));
}"""
# Elements of the page's body, as the reader sees them: none may stick out of the window, or lie on another.
_LAYOUT = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const wide = document.documentElement.clientWidth;
  const problems = [];
  if (document.documentElement.scrollWidth > wide + 1)
    problems.push(`the window scrolls sideways: ${document.documentElement.scrollWidth} > ${wide}`);
  if (main.scrollWidth > main.clientWidth + 1)
    problems.push(`the page scrolls sideways: ${main.scrollWidth} > ${main.clientWidth}`);
  const pinned = (element) => {
    for (let e = element; e && e !== main; e = e.parentElement)
      if (["sticky", "fixed"].includes(getComputedStyle(e).position)) return true;
    return false;
  };
  const named = (e) => {
    const key = e.closest('[class*="st-key-"]');
    const found = key && [...key.classList].find((name) => name.startsWith("st-key-"));
    const text = (e.textContent || e.firstElementChild?.className || "").trim();
    return `${found || ""} ${text.slice(0, 50)}`.trim();
  };
  const boxes = [...main.querySelectorAll('[data-testid="stElementContainer"]')]
    .filter((e) => e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && !pinned(e))
    .map((element) => ({element, rect: element.getBoundingClientRect()}))
    .filter(({rect}) => rect.width > 2 && rect.height > 2);
  for (const {element, rect} of boxes)
    if (rect.right > wide + 1 || rect.left < -1)
      problems.push(`${named(element)} sticks out: ${rect.left | 0} to ${rect.right | 0} of ${wide}`);
  boxes.sort((a, b) => a.rect.top - b.rect.top);
  boxes.forEach((one, at) => {
    for (const two of boxes.slice(at + 1)) {
      if (two.rect.top >= one.rect.bottom - 4) break;
      const across = Math.min(one.rect.right, two.rect.right) - Math.max(one.rect.left, two.rect.left);
      const down = Math.min(one.rect.bottom, two.rect.bottom) - two.rect.top;
      const nested = one.element.contains(two.element) || two.element.contains(one.element);
      if (across > 4 && down > 4 && !nested)
        problems.push(`${named(one.element)} | ${named(two.element)} overlap: ${across | 0} × ${down | 0}`);
    }
  });
  return problems;
}"""


def problems_of_axe(page: Any) -> list[str]:
    """Return the violations, a sentence each."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE)
    return [
        f"{violation['rule']}: {violation['html']} {violation['why']}"
        for violation in page.evaluate(_RUN_AXE)
    ]


# TeX, names of icons, a sentence that ends twice, and words that are all said twice.
_MISREAD = re.compile(r"[\\$]|:material/|\w icon\b|(?<!\.)\.\.(?!\.)|^(.+) \1$")


def misread(page: Any) -> list[str]:
    """Return the accessible names that are not to be read aloud as they are."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    named = [(node["role"]["value"], node["name"]["value"]) for node in nodes if "name" in node]
    apart = ("RootWebArea", "StaticText", "InlineTextBox")
    return sorted({f"{role}: {name}" for role, name in named if role not in apart and _MISREAD.search(name)})


LOOKS = [("light", 1366), ("dark", 1366), ("dark", 820), ("dark", 390), ("light", 390), ("light", 820)]
_SETTLED = "() => !document.getAnimations().some((one) => one instanceof CSSTransition)"


def look(page: Any, name: str, scheme: str, width: int) -> list[str]:
    """Return what is wrong with a page that is open, in one theme and width."""
    problems = page.evaluate(_LAYOUT) if width > 600 else []
    boxes = page.locator('[data-testid="stException"], [data-testid="stAlertContentError"]')
    problems += [text[:200] for text in boxes.all_inner_texts()]
    if (scheme, width) == LOOKS[0]:
        problems += misread(page)
    problems += problems_of_axe(page)
    return [f"{name}, {scheme}, {width} px: {problem}" for problem in problems]


@pytest.fixture
def opened(server, wait_idle) -> Callable[[Any, str], None]:
    """Return a function that opens a page of the navigation with something on it."""

    def open_it(page: Any, name: str) -> None:
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1366, "height": 1000})
        page.goto(f"{server.url}/{'' if name == 'start' else name}?{OPENED.get(name, '')}")
        wait_idle(page, 90)
        button = page.locator(f".st-key-{PRESSED.get(name, '-')} button")
        if button.count() and button.is_enabled():
            # By the keyboard: under a mouse that stays, other widths may show a tooltip.
            button.press("Enter")
            page.wait_for_timeout(1000)
        wait_idle(page, 90, calm=1.2)

    return open_it


@pytest.mark.browser
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_in_order(page, opened, name):
    opened(page, name)
    assert not look(page, name, "light", 1366)


@pytest.mark.slow
@pytest.mark.browser
def test_every_page_in_both_themes_wide_and_narrow(page, opened, wait_idle, shoot):
    problems: list[str] = []
    for name in PAGES:
        opened(page, name)
        for scheme, width in LOOKS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 1000})
            page.wait_for_timeout(250)
            wait_idle(page, 60)
            page.wait_for_function(_SETTLED)
            problems += look(page, name, scheme, width)
            shoot(page, f"{name}-{scheme}-{width}")
    assert not problems, "\n".join(problems)
