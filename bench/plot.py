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
WIDTH, HEIGHT = 1300, 1750


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
    traces = [row for row in results.get("time_to", {"traces": []})["traces"] if row["regularizer"] == "ti"]
    sets = list(dict.fromkeys(row["data"] for row in traces))[:3]
    fig = make_subplots(
        3,
        6,
        specs=[
            [{"colspan": 3, "rowspan": 2}, None, None, {"colspan": 3}, None, None],
            [None, None, None, {"colspan": 3}, None, None],
            [{"colspan": 2}, None] * 3,
        ],
        subplot_titles=(
            "Epoch over 60 matrix-vector products",
            "Times faster than another program, an epoch",
            "Seconds of an epoch over d (lines) and over non-zero entries (dots)",
            *(f"TI above the best objective: {data}" for data in sets),
        ),
        row_heights=(0.37, 0.35, 0.28),
        horizontal_spacing=0.07,
        vertical_spacing=0.07,
    )
    _draw_epochs(fig, results)
    _draw_growth(fig, results)
    _draw_ways(fig, traces, sets)
    key = {"orientation": "h", "yanchor": "bottom", "x": 0.0, "font": {"size": 11}}
    fig.update_layout(
        template="plotly_white",
        width=WIDTH,
        height=HEIGHT,
        font={"size": 11},
        margin={"t": 90, "l": 130, "r": 20, "b": 110},
        legend=key | {"y": 1.03},
        legend2=key | {"orientation": "v", "x": 0.57, "y": 0.325},
        legend3=key | {"y": -0.06, "yanchor": "top"},
    )
    fig.update_annotations(font_size=13)
    return fig


def _draw_epochs(fig: go.Figure, results: dict[str, Any]) -> None:
    """Draw epochs beside the floor, and beside those of other programs."""
    epochs = [row for row in results.get("epochs", {"every": []})["every"] if row["how"] == "measured"]
    versus = results.get("versus", {"rows": []})["rows"]
    for data, colour in named(row["data"] for row in [*epochs, *versus]).items():
        common: dict[str, Any] = {"mode": "markers", "name": data}
        rows = [row for row in epochs if row["data"] == data]
        fig.add_scatter(
            x=[row["ratio"] for row in rows],
            y=[f"{row['solver']} {row['regularizer']}" for row in rows],
            marker={"color": colour, "size": 6},
            showlegend=bool(rows),
            row=1,
            col=1,
            **common,
        )
        rows = [row for row in versus if row["data"] == data]
        fig.add_scatter(
            x=[row["speedup"] for row in rows],
            y=[f"{row['program']} {row['regularizer']}" for row in rows],
            marker={"color": colour, "size": 8},
            showlegend=False,
            row=1,
            col=4,
            **common,
        )
    for column in (1, 4):
        fig.update_xaxes(type="log", dtick=1 if column == 1 else "D2", row=1, col=column)
        fig.update_yaxes(autorange="reversed", dtick=1, tickfont_size=9, row=1, col=column)
    fig.add_vline(x=1.0, line={"color": "#777777", "width": 1}, row=1, col=1)  # type: ignore[arg-type]


def _draw_growth(fig: go.Figure, results: dict[str, Any]) -> None:
    """Draw how an epoch grows with features and with non-zero entries."""
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
            legend="legend2",
            row=2,
            col=4,
        )
    for update in (fig.update_xaxes, fig.update_yaxes):
        update(type="log", dtick=1, row=2, col=4)


def _draw_ways(fig: go.Figure, traces: list[dict[str, Any]], sets: list[str]) -> None:
    """Draw, a panel for each data set, how far each program is above the best objective, by time."""
    colours = named(row["run"] for row in traces)
    told = set()
    for row in traces:
        if row["data"] in sets:
            fig.add_scatter(
                x=row["seconds"],
                y=[max(above, 1e-9) for above in row["above"]],
                mode="lines",
                line={
                    "color": colours[row["run"]],
                    "dash": "dot" if list(colours).index(row["run"]) >= len(COLOURS) else "solid",
                },
                name=row["run"],
                showlegend=row["run"] not in told,
                legend="legend3",
                row=3,
                col=1 + 2 * sets.index(row["data"]),
            )
            told.add(row["run"])
    for i in range(3):
        fig.update_xaxes(type="log", dtick=1, title_text="solver seconds", row=3, col=1 + 2 * i)
        fig.update_yaxes(type="log", dtick=2, exponentformat="power", row=3, col=1 + 2 * i)


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
