"""Downloads of a chart: its data and its picture."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ui.driving import page


def test_each_chart_has_a_menu(store):
    app = page("prox", d="20", k="4", regularizers="ti")
    labels = [button.proto.label for button in app.get("download_button")]
    charts = app.get("plotly_chart")
    assert labels.count("Data (CSV)") == len(charts) == 2
    # What saves a picture presses this button of Plotly's.
    assert json.loads(charts[0].proto.config)["modeBarButtons"] == [["toImage"]]


@pytest.mark.slow
@pytest.mark.browser
def test_a_chart_gives_its_numbers_and_its_picture(new_page, server, wait_idle, tmp_path):
    tab = new_page(color_scheme="dark")
    tab.goto(f"{server.url}/prox?d=30&k=4&regularizers=ti,cs")
    tab.locator(".st-key-prox_used_features .js-plotly-plot").wait_for()
    wait_idle(tab)

    def save(name: str) -> Path:
        if not tab.get_by_role("button", name=name).is_visible():
            tab.locator(".st-key-prox_used_features_download button").click()
        with tab.expect_download() as download:
            tab.get_by_role("button", name=name).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    path = save("Data (CSV)")
    assert path.name == "fmviz-prox-used-features.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "trace,x,y"
    assert len(lines) == 1 + 2 * 15
    svg = save("Picture (SVG)").read_text(encoding="utf-8")
    assert "Used features" in svg
    # Dark letters on white, though the page is dark.
    assert re.search(r'class="ytitle"[^>]*fill: rgb\(49, 51, 63\)', svg)
    assert re.search(r"<rect[^>]*fill: rgb\(255, 255, 255\)", svg)
    assert save("Picture (PNG)").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    drawn = tab.locator(".st-key-prox_used_features .ytitle").evaluate("e => e.style.fill")
    assert drawn == "rgb(230, 234, 241)"
