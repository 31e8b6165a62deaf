"""A lesson in a real browser: by keyboard, and in a narrow window."""

from __future__ import annotations

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_lesson_is_taken_by_keyboard(page, server, wait_idle, shoot):
    page.goto(f"{server.url}/?lesson=prox&step=2")
    page.wait_for_url(re.compile("/prox.*step=2"))
    wait_idle(page)
    panel = page.locator(".st-key-lesson_panel")
    assert page.get_by_role("button", name="Reveal").is_disabled()
    shoot(page, "lesson-1440-light")
    number = panel.locator('input[type="number"]')
    number.fill("2.5")
    number.press("Enter")
    wait_idle(page)
    page.get_by_role("heading", name="One entry at a time").click()  # out of the field, so that keys are keys
    page.keyboard.press("v")
    panel.get_by_text("Your prediction: 2.5. Correct: 2.5.").wait_for()
    wait_idle(page)
    slider = page.get_by_role("slider", name="Strength λ")
    assert slider.get_attribute("aria-valuetext") == "2⁻¹ = 0.5"
    page.keyboard.press("j")
    panel.get_by_text("step 3 of 6").wait_for()
    page.keyboard.press("k")
    panel.get_by_text("step 2 of 6").wait_for()
    wait_idle(page)
    assert slider.get_attribute("aria-valuetext") == "2⁻¹ = 0.5"
    panel.get_by_role("button", name="End").click()
    panel.wait_for(state="detached")


def test_a_lesson_fits_a_narrow_window(new_page, server, wait_idle, shoot):
    page = new_page(viewport={"width": 820, "height": 1180}, color_scheme="dark")
    page.goto(f"{server.url}/geometry?lesson=ti&step=2")
    wait_idle(page)
    shoot(page, "lesson-820-dark")
    assert page.locator(".st-key-lesson_panel").bounding_box()["width"] > 400
    assert page.locator('[data-testid="stMain"]').evaluate("e => e.scrollWidth <= e.clientWidth")
