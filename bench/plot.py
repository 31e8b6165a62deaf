"""One picture of what is kept: epochs over the floor, speed-ups, the way to a common objective, growth."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

# Colours of Okabe and Ito, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
WIDTH, HEIGHT = 1400, 1000
TITLES = (
    "Epoch over 60 matrix-vector products",
    "Times faster than another program, an epoch",
    "Objective above the best, TI",
    "Epoch over size",
)


def chromium() -> str | None:
    """Return the Chromium to use; None lets Playwright take its own."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("FMVIZ_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def named(names: Any) -> dict[str, str]:
    """Return a colour for each name, in order of appearance."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(names))}


def figure(kept: dict[str, Any]) -> go.Figure:
    """Return the picture; panels of what was not measured stay empty."""
    results = {section: part["result"] for section, part in kept.items()}
    fig = make_subplots(2, 2, subplot_titles=TITLES, horizontal_spacing=0.08, vertical_spacing=0.16)
    epochs = results.get("epochs", {"every": []})["every"]
    versus = results.get("versus", {"rows": []})["rows"]
    colours = named(row["data"] for row in [*epochs, *versus])
    for data, colour in colours.items():
        rows = [row for row in epochs if row["data"] == data and row["how"] == "measured"]
        fig.add_scatter(
            x=[f"{row['solver']} {row['regularizer']}" for row in rows],
            y=[row["ratio"] for row in rows],
            mode="markers",
            marker={"color": colour, "size": 5},
            name=data,
            legendgroup=data,
            row=1,
            col=1,
        )
        rows = [row for row in versus if row["data"] == data]
        fig.add_scatter(
            x=[f"{row['program']} {row['regularizer']}" for row in rows],
            y=[row["speedup"] for row in rows],
            mode="markers",
            marker={"color": colour, "size": 8},
            name=data,
            legendgroup=data,
            showlegend=False,
            row=1,
            col=2,
        )
    traces = [row for row in results.get("time_to", {"traces": []})["traces"] if row["regularizer"] == "ti"]
    colours = named(row["run"] for row in traces)
    dashes = dict(zip(dict.fromkeys(row["data"] for row in traces), ("solid", "dash", "dot"), strict=False))
    for row in traces:
        fig.add_scatter(
            x=row["seconds"],
            y=[max(above, 1e-9) for above in row["above"]],
            mode="lines",
            line={"color": colours[row["run"]], "dash": dashes[row["data"]]},
            name=f"{row['run']}, {row['data']}",
            row=2,
            col=1,
        )
    growth = results.get("scaling", {"rows": []})["rows"]
    colours = named(f"{row['solver']} {row['regularizer']}" for row in growth)
    for row in growth:
        method = f"{row['solver']} {row['regularizer']}"
        fig.add_scatter(
            x=row["sizes"],
            y=row["seconds"],
            mode="lines+markers",
            line={"color": colours[method], "dash": "solid" if row["in"] == "d" else "dot"},
            name=f"{method} in {row['in']}: exponent {row['exponent']:.2f}",
            row=2,
            col=2,
        )
    fig.update_yaxes(type="log")
    fig.update_xaxes(type="log", row=2)
    fig.update_xaxes(title_text="solver seconds", row=2, col=1)
    fig.update_xaxes(title_text="d, or non-zero entries", row=2, col=2)
    fig.update_yaxes(title_text="seconds", row=2, col=2)
    fig.update_layout(template="plotly_white", width=WIDTH, height=HEIGHT, font={"size": 10})
    return fig


def render(fig: go.Figure, path: Path) -> str | None:
    """Draw the picture as SVG with the browser that the tests use; return why not, or None."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return "Playwright is not installed, so there is no plot; `make setup-dev` installs it."
    html = fig.to_html(include_plotlyjs=True, div_id="figure")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
            )
        except Error:
            return "No Chromium was found, so there is no plot; FMVIZ_CHROMIUM names one."
        page = browser.new_page()
        page.set_content(html)
        size = f"{{format: 'svg', width: {WIDTH}, height: {HEIGHT}}}"
        address = page.evaluate(f"() => Plotly.toImage(document.getElementById('figure'), {size})")
        svg = page.evaluate("(address) => decodeURIComponent(address.split(',').slice(1).join(','))", address)
        browser.close()
    path.write_text(svg + "\n", encoding="utf-8")
    return None
