"""The page Interactions in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser

CANVAS = """(() => [...document.querySelectorAll('[class*="st-key-interactions_matrix"] *')].flatMap(
  (e) => (e.shadowRoot ? [...e.shadowRoot.querySelectorAll('.stage canvas')] : []))
  .filter((c) => c.getBoundingClientRect().width > 0)[0])()"""


def rectangle(page: Any) -> list[float]:
    """Return left, top, width and height of the matrix, once it is there and in the middle of the window."""
    page.wait_for_function(f"() => {CANVAS}")
    return page.evaluate(
        f"(() => {{ const c = {CANVAS}; c.scrollIntoView({{block: 'center'}});"
        " const r = c.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()"
    )


def view(page: Any, name: str, wait_idle: Any) -> None:
    page.get_by_role("radio", name=name, exact=True).click()
    wait_idle(page)


@pytest.mark.slow
def test_the_example_is_read_by_pairs_attributes_and_cells(server, page, wait_idle, shoot):
    page.goto(f"{server.url}/interactions")
    page.get_by_role("button", name=re.compile("Train on ")).first.click()
    page.get_by_text("The strongest pair.").wait_for(timeout=120_000)
    wait_idle(page)
    shoot(page, "interactions-pairs")
    # A node is clicked: the table has its pairs alone.
    nodes = page.locator(".st-key-interactions_network .scatterlayer .trace.scatter").last.locator(".point")
    nodes.first.wait_for()
    nodes.first.click(force=True)
    page.wait_for_url(re.compile("find="))
    wait_idle(page)
    page.get_by_role("button", name="Show all").first.click()
    wait_idle(page)
    assert "find=" not in page.url

    view(page, "Attributes", wait_idle)
    page.get_by_role("heading", name=re.compile(" with ")).wait_for()
    box = page.locator(".st-key-interactions_groups .gram")
    names = box.locator(".names.rows span")
    names.first.wait_for()
    assert names.all_inner_texts()[:3] == ["month", "day", "day_of_week"]
    assert box.locator(".names.cols span").count() == 9
    cells, last = box.locator("canvas").bounding_box(), names.last.bounding_box()
    assert last["y"] + last["height"] == pytest.approx(cells["y"] + cells["height"], abs=1)
    assert last["x"] >= cells["x"] + cells["width"], "beside the cells, not on them"
    shoot(page, "interactions-attributes")

    view(page, "Matrix", wait_idle)
    x, top, width, height = rectangle(page)
    total = page.get_by_role("button", name="Whole matrix", exact=True)
    assert not total.is_visible()
    page.mouse.move(x + 0.25 * width, top + 0.1 * height)
    page.mouse.down()
    page.mouse.move(x + 0.3 * width, top + 0.15 * height, steps=4)
    page.mouse.up()
    total.wait_for()
    shoot(page, "interactions-matrix")
    total.click()
    assert not total.is_visible()
