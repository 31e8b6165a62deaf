"""One's own data in a real browser: uploaded, corrected, trained on; nothing in it is executed."""

from __future__ import annotations

import os

import pytest
from ui.driving import choose_target

from fmviz.tables.limits import UPLOADS

SCRIPT = "<img src=x onerror=window.hacked=1>"
FORMULA = "=cmd|' /C calc'!A0"
CSV = f'age,"{SCRIPT}",**town**,"{FORMULA}",bought\n' + "".join(
    f"{20 + i % 40},{i % 13},{('<b>Bonn</b>', ':red[Kiel]', '$Ulm$')[i % 3]},{i % 5 + 1},"
    f"{('no', 'yes')[(i % 3 == 0) == (i % 40 > 15)]}\n"
    for i in range(240)
)

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_a_file_is_brought_corrected_and_trained_on(server, page, wait_idle, shoot, tmp_path):
    page.goto(f"{server.url}/data")
    uploader = page.locator('[data-testid="stFileUploader"] input[type="file"]')
    uploader.wait_for(state="attached")
    wait_idle(page)

    # What is too large is refused before it is sent.
    large = tmp_path / "large.csv"
    with large.open("wb") as sink:
        sink.truncate(2 * int(UPLOADS.file))
    uploader.set_input_files(str(large))
    page.get_by_text("100.0MB or smaller").wait_for()
    os.unlink(large)

    mine = tmp_path / "my people.csv"
    mine.write_text(CSV, encoding="utf-8")
    uploader.set_input_files(str(mine))
    choose_target(page, "bought")
    page.locator(".st-key-data_read button:not([disabled])").first.wait_for()
    wait_idle(page)
    figures = page.locator(".st-key-data_figures")
    before = figures.inner_text()
    assert "240" in before
    shoot(page, "data-check")

    # The second column becomes a category: 13 features in place of a line and a curve.
    editor = page.locator('[class*="st-key-data_columns_"] canvas').first
    # Playwright scrolls to it; `force`, since a transparent layer above the cells takes the click.
    editor.click(position={"x": 190, "y": 52 + 35}, force=True)
    page.keyboard.press("Enter")
    page.locator("#portal input").wait_for()
    page.keyboard.type("category")
    page.locator("#portal").get_by_text("category", exact=True).first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.search.includes('columns=')")
    wait_idle(page)
    assert figures.inner_text() != before

    page.locator(".st-key-data_read button").first.click()
    page.wait_for_url("**/interactions**")
    wait_idle(page)
    assert "run=" in page.url
    page.locator("[class*=st-key-interactions_surface]").first.wait_for()
    assert page.evaluate("() => window.hacked") is None
    shoot(page, "data-read")
