"""Pages opened by a link, as somebody's bookmark does, and the numbers on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from compatibility.comparing import numbers_in
from streamlit.testing.v1 import AppTest

import fmviz

ROOT = Path(fmviz.__file__).parents[1]


def opened(page: str, query: Mapping[str, str]) -> AppTest:
    """Return a page, by the path in its address ("" is the first one), opened with a query string."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if page:
        app.switch_page(f"pages/{page}.py")
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    if {"play", "run", "seek"} & query.keys():
        app.run()  # What a link starts is drawn by the next run of the script only.
    assert not app.exception, app.exception
    return app


def address(app: AppTest) -> dict[str, str]:
    """Return the query string that the page has written to the address bar."""
    return {name: one[0] if isinstance(one, list) else one for name, one in app.query_params.items()}


def texts(app: AppTest) -> list[str]:
    """Return what the page says outside of its tables."""
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption]
    return [one.value for one in (*parts, *app.info, *app.warning, *app.error, *app.success)]


def numbers(app: AppTest) -> list[float]:
    """Return all numbers on a page: in sentences, figures and tables."""
    found = [*texts(app), *(str(one.value) for one in app.metric)]
    for one in app.dataframe:
        frame = pd.DataFrame(one.value)
        found += [str(cell) for name in frame for cell in frame[name]]
    return [float(number) for text in found for number in numbers_in(text)]


def lacks(app: AppTest, expected: list[float]) -> list[float]:
    """Return the numbers that the page does not show, to the four digits that pages show at least."""
    there = numbers(app)
    return [one for one in expected if not any(abs(x - one) <= 6e-5 * abs(one) for x in there)]


def programs(app: AppTest) -> list[str]:
    """Return the Python programs that the page offers to copy."""
    return [block.value for block in app.code if block.language == "python"]
