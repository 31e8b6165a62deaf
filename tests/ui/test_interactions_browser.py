"""The page Interactions in a real browser."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from ui.driving import choose_target

pytestmark = pytest.mark.browser


# From a file to sentences, and on to a report.
CLICKS = ("data_read", "interactions_report")


@pytest.mark.slow
def test_a_file_is_a_click_from_sentences_and_two_from_a_report(server, page, wait_idle, tmp_path, rng):
    n = 2_000
    table = pd.DataFrame(
        {
            "city": rng.choice(["Bonn", "Kiel", "Ulm"], n),
            "plan": rng.choice(["basic", "plus", "pro"], n),
            "age": rng.integers(18, 80, n),
            "income": rng.normal(3000, 800, n).round(),
            "visits": rng.integers(0, 30, n),
            "channel": rng.choice(["web", "shop", "phone"], n),
        }
    )
    y = 60.0 * ((table["city"] == "Kiel") & (table["plan"] == "pro")) + 80 * np.sin(table["age"] / 12)
    y += np.where(table["channel"] == "web", 1, -1) * (table["income"] - 3000) / 25 + rng.normal(0, 20, n)
    path = tmp_path / "planted.csv"
    table.assign(spend=y.round(1)).to_csv(path, index=False)
    page.goto(f"{server.url}/data")
    uploader = page.locator('[data-testid="stFileUploader"] input[type="file"]')
    uploader.wait_for(state="attached")
    uploader.set_input_files(str(path))
    choose_target(page, "spend")
    to_sentences, to_report = (f".st-key-{name} button:not([disabled])" for name in CLICKS)
    page.locator(to_sentences).first.click()
    page.locator(".st-key-interactions_surface .js-plotly-plot").wait_for(timeout=120_000)
    page.get_by_text("pairs of columns stand out from chance").first.wait_for()
    wait_idle(page)
    with page.expect_download() as waiting:
        page.locator(to_report).first.click()
    report = waiting.value.path().read_text(encoding="utf-8")
    pairs, alone = (re.findall(pattern, report) for pattern in (r"<h3>(.*? × .*?)</h3>", r"<p>(\w+): [+−]"))
    assert set(pairs[:2]) == {"city × plan", "income × channel"}
    assert alone[0] == "age"
    assert "standard errors behind the best" in report

    page.get_by_role("radio", name="Matrix", exact=True).click()
    box = page.locator(".st-key-interactions_groups .gram")
    names = box.locator(".names.rows span")
    names.first.wait_for()
    assert names.all_inner_texts() == ["city", "plan", "age", "income", "visits", "channel"]
    cells, last = box.locator("canvas").bounding_box(), names.last.bounding_box()
    assert last["x"] >= cells["x"] + cells["width"], "beside the cells, not on them"

    page.go_back()
    page.wait_for_url("**/data?**file=**")
    wait_idle(page)
    assert not page.get_by_text("it was ignored").count()
