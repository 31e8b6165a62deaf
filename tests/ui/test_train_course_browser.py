"""One walk in a real browser: a run slowed down to its entries, changed on the way, and looked into."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LINK = (
    "train?dataset=balance_scale&rank=3&lambda_p=0.001&lambda_sparse=0.001&init_scale=0.3&tol=0.0"
    "&max_epochs=40&speed=slow&grain=entry"
)


def press(page: Any, name: str) -> None:
    page.locator(f".st-key-train_{name} button").first.click()


def asked(page: Any, name: str) -> str:
    return parse_qs(urlsplit(page.url).query).get(name, [""])[0]


def wait_for_query(page: Any, name: str, pattern: str) -> None:
    page.wait_for_function(
        "([name, pattern]) => new RegExp(pattern).test(new URLSearchParams(location.search).get(name) || '')",
        arg=[name, pattern],
    )


def segment(page: Any, name: str, words: str) -> None:
    page.locator(f".st-key-train_{name}").get_by_text(words, exact=True).first.click()


def test_a_run_is_slowed_down_changed_and_looked_into(server, page, wait_idle, shoot):
    page.goto(f"{server.url}/{LINK}")
    wait_idle(page)
    press(page, "play")
    box = page.locator(".st-key-train_inside_box")
    box.get_by_text("Inside epoch 1", exact=True).wait_for()
    page.locator(".st-key-train_matrix .status").get_by_text("Slow motion").first.wait_for()
    box.get_by_text(re.compile(r"Step ([6-9]|1\d) of 17")).wait_for()
    box.get_by_text(re.compile("The entry of .* of P")).wait_for()
    box.locator(".katex-display").first.wait_for()
    press(page, "pause")
    wait_for_query(page, "motion", "^$")
    page.locator(".st-key-train_matrix .status").get_by_text("Paused").first.wait_for()
    wait_idle(page)
    mark = page.locator(".st-key-train_inside_matrix .picture.factor .mark:visible")
    assert mark.count() == 1
    shoot(page, "train-inside")
    here = int(asked(page, "inside"))
    press(page, "step")
    wait_for_query(page, "inside", f"^{here + 1}$")
    wait_idle(page)
    # Back by the arrow keys: the steps are those of before.
    slider = box.get_by_role("slider").first
    slider.focus()
    page.keyboard.press("ArrowLeft")
    wait_for_query(page, "inside", f"^{here}$")
    # At full speed by epochs, and with another strength from here on.
    page.locator(".st-key-train_grain").get_by_role("combobox").click()
    page.get_by_role("option", name="by epoch").click()
    box.wait_for(state="detached")
    press(page, "step")
    page.locator(".st-key-train_matrix .status").get_by_text(
        re.compile("Paused after [12] epoch")
    ).first.wait_for()
    wait_idle(page)
    page.locator(".st-key-train_now_lambda_sparse").get_by_role("slider").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    wait_for_query(page, "changes", r"^\d:lambda_sparse:0.02$")
    wait_idle(page)
    segment(page, "speed", "Full speed")
    wait_idle(page)
    press(page, "play")
    page.locator(".st-key-train_exports").wait_for()
    page.locator(".st-key-train_curves summary").click()
    plot = page.locator(".st-key-train_objective .js-plotly-plot:visible")
    plot.get_by_text("λ = 0.02").first.wait_for()
    page.get_by_text("The objective of an epoch belongs to the strengths of that epoch").wait_for()
    wait_idle(page)
    # The truth, pair by pair, at every epoch.
    page.locator(".st-key-train_support").get_by_text("Compare with the truth").click()
    wait_for_query(page, "support", "^1$")
    wait_idle(page)
    shoot(page, "train-support")
    view = page.locator(".st-key-train_matrix")
    view.get_by_text(re.compile(r"True positive: \d")).first.wait_for()
    view.get_by_text(re.compile(r"epoch 40: F1 [01]\.\d+")).first.wait_for()
    wait_idle(page)
    page.get_by_role("slider", name="Look back").focus()
    page.keyboard.press("Home")
    view.get_by_text(re.compile(r"epoch 0: F1 0\.5")).first.wait_for()
    counts = view.locator(".swatch").all_inner_texts()
    assert {"True positive: 2", "False positive: 4", "False negative: 0", "True negative: 0"} <= set(counts)
    wait_idle(page)
    # A click tells why.
    canvas = view.locator(".picture.gram canvas:visible").first
    size = canvas.bounding_box()
    canvas.click(position={"x": 0.63 * size["width"], "y": 0.12 * size["height"]})
    wait_for_query(page, "cell_i", "^0$")
    wait_for_query(page, "cell_j", "^2$")
    page.get_by_text(re.compile("left weight and right weight (do not )?interact")).wait_for()
    page.locator(".st-key-train_why .js-plotly-plot:visible").first.wait_for()
    wait_idle(page)
    shoot(page, "train-why")


def test_playing_again_at_once_leaves_the_strengths(server, page, wait_idle):
    page.goto(f"{server.url}/{LINK}")
    wait_idle(page)
    sliders = page.locator(".st-key-train_main").get_by_role("slider")
    for _ in range(2):  # The second time the sliders come back with a run of the page that another overtakes.
        page.locator(".st-key-train_play button").first.dblclick()
        wait_for_query(page, "motion", "^1$")
        page.locator(".st-key-train_inside_box").get_by_text(re.compile("Step [3-9] of")).wait_for()
        shown = sliders.evaluate_all("all => all.map(e => e.getAttribute('aria-valuetext'))")
        assert shown == ["0.001"]
        assert asked(page, "changes") == ""
        press(page, "stop")
        page.locator(".st-key-train_matrix .status").get_by_text("Stopped").first.wait_for()
        wait_idle(page)
