"""The page Interactions in a real browser."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.browser


def view(page: Any, name: str, wait_idle: Any) -> None:
    page.get_by_role("radio", name=name, exact=True).click()
    wait_idle(page)


@pytest.mark.slow
def test_the_example_is_read_by_columns_pairs_and_cells(server, page, wait_idle, shoot):
    page.goto(f"{server.url}/interactions")
    page.get_by_role("button", name=re.compile("Train on ")).first.click()
    page.locator(".st-key-interactions_surface .heatmaplayer").first.wait_for(timeout=120_000)
    page.get_by_text("By chance alone").wait_for(timeout=60_000)
    wait_idle(page)
    shoot(page, "interactions-columns")

    view(page, "Pairs of features", wait_idle)
    page.get_by_text("The strongest pair.").wait_for()
    shoot(page, "interactions-pairs")
    view(page, "Matrix", wait_idle)
    box = page.locator(".st-key-interactions_groups .gram")
    names = box.locator(".names.rows span")
    names.first.wait_for()
    assert names.all_inner_texts()[:3] == ["month", "day", "day_of_week"]
    assert box.locator(".names.cols span").count() == 9
    cells, last = box.locator("canvas").bounding_box(), names.last.bounding_box()
    assert last["y"] + last["height"] == pytest.approx(cells["y"] + cells["height"], abs=1)
    assert last["x"] >= cells["x"] + cells["width"], "beside the cells, not on them"
    shoot(page, "interactions-matrix-columns")


@pytest.mark.slow
def test_planted_effects_of_a_file_come_first_and_into_a_report(server, page, wait_idle, tmp_path, rng):
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
    page.locator(".st-key-data_read button:not([disabled])").first.click()
    page.locator(".st-key-interactions_surface .js-plotly-plot").wait_for(timeout=120_000)
    wait_idle(page)
    with page.expect_download() as waiting:
        page.locator(".st-key-interactions_report button").first.click()
    report = waiting.value.path().read_text(encoding="utf-8")
    pairs, alone = (re.findall(pattern, report) for pattern in (r"<h3>(.*? × .*?)</h3>", r"<p>(\w+): [+−]"))
    assert set(pairs[:2]) == {"city × plan", "income × channel"}
    assert alone[0] == "age"
    assert "Beside simple baselines" in report
