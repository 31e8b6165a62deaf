"""The result of a reproduction: figure, checks, published numbers, tables and downloads."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from fmviz.figures import papers as figures
from fmviz.figures import thumbnail as small
from fmviz.figures.palette import SIGNALS
from fmviz.lab.papers import ARTEFACTS, Artefact, Result
from fmviz.lab.papers.results import last_kept, last_shipped
from fmviz.lab.papers.shipped import shipped_picture
from fmviz.lab.runs.program import paper_program
from fmviz.lab.store import store
from fmviz.lab.store.results import Kept
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain

_VERDICTS: dict[str, tuple[Literal["green", "red", "gray"], str, str, str]] = {
    "holds": ("green", ":material/check_circle:", "holds", "hold"),
    "does not hold": ("red", ":material/cancel:", "does not hold", "do not hold"),
    "not settled": ("gray", ":material/help:", "not settled", "not settled"),
}


def draw(artefact: Artefact, result: Result, *, live: bool) -> None:
    """Draw a result; `live` leaves out what makes sense only at the end."""
    figure = figures.draw(artefact.picture.kind, result.tables, **artefact.picture.options)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="paper_verdicts"):
        verdicts(Counter(check.verdict for check in result.checks))
        if not live:
            st.caption(
                f"{plain(result.budget.capitalize())} budget, {result.seconds:.0f} s.", width="content"
            )
    if figure.data:
        chart(figure, key="paper_picture", alt=_in_words(artefact, result))
    _checks(artefact, result)
    if compared := artefact.compared(result.tables):
        st.markdown("#### Published beside ours")
        st.dataframe(
            beside(compared),
            hide_index=True,
            key="paper_published",
            column_config={
                "": st.column_config.TextColumn(width="large"),
                "Source": st.column_config.TextColumn(width="medium"),
            },
        )
    differences(result.differences)
    if live:
        return
    _tables(result)
    _downloads(artefact, result)
    _program(artefact, result)


def last_of(artefact: Artefact, kept: Kept) -> Result | None:
    """Return the result that was kept, here or with fmviz; raises ValueError as `last_kept`."""
    if kept.shipped:
        return last_shipped(artefact, kept.budget)
    return last_kept(artefact, kept.budget, store())


def when(kept: Kept) -> str:
    """Return when a result was made; of ours the day."""
    return time.strftime("%Y-%m-%d" if kept.shipped else "%Y-%m-%d %H:%M", time.localtime(kept.created))


def thumbnail(artefact: Artefact, kept: Kept) -> None:
    """Draw the first panel of a result's figure, small."""
    # One that was made under another protocol has none.
    with suppress(ValueError):
        made = (
            shipped_picture(kept.artefact)
            if kept.shipped
            else _drawn(kept.artefact, kept.budget, kept.created)
        )
        st.image(made, width="stretch", alt=f"One panel of {artefact.title}.")


@lru_cache(maxsize=64)
def _drawn(name: str, budget: str, created: float) -> str:
    """Return the thumbnail of a result that is kept here since a time."""
    artefact = ARTEFACTS[name]
    result = last_kept(artefact, budget, store())
    picture = artefact.picture
    tables = {} if result is None else result.tables
    return small.svg(figures.draw(picture.kind, tables, **picture.options))


def beside(rows: Sequence[Mapping[str, Any]]) -> Styler:
    """Return published numbers beside ours, the deviation coloured by whether it is tolerated."""
    table = pd.DataFrame(
        {
            "": [row["what"] for row in rows],
            "Published": [row["published"] for row in rows],
            "Ours": [row["ours"] for row in rows],
            "Deviation": [row["deviation"] for row in rows],
            "Source": [row["source"] for row in rows],
        }
    )
    fills = [f"background-color: {SIGNALS[row['within']]}" for row in rows]
    forms: Any = {"Published": "{:,.6g}", "Ours": "{:,.6g}", "Deviation": "{:+.1%}"}
    return table.style.apply(lambda _: fills, subset=["Deviation"]).format(forms, na_rep="–")


def verdicts(counts: Mapping[str, int]) -> None:
    """Draw how many checks came to which verdict."""
    shown = [verdict for verdict in _VERDICTS if counts.get(verdict)]
    for verdict in shown:
        number, (color, icon, one, many) = counts[verdict], _VERDICTS[verdict]
        what, words = ("claim ", one) if number == 1 else ("claims ", many)
        # The first says what is counted.
        st.badge(f"{number:,} {what if verdict == shown[0] else ''}{words}", icon=icon, color=color)


def differences(texts: Sequence[str]) -> None:
    """Draw what differs from the paper."""
    with st.expander(f"What differs from the paper ({len(texts)})", icon=":material/difference:"):
        st.markdown("\n".join(f"- {plain(text)}" for text in texts))


def _in_words(artefact: Artefact, result: Result) -> str:
    said = "; ".join(f"{check.case}: {check.verdict}" for check in result.checks[:8])
    return f"{artefact.title}. {said}."


def _checks(artefact: Artefact, result: Result) -> None:
    st.markdown("#### What the paper says, and what was measured")
    for statement in artefact.statements:
        lines = [f"“{statement.text}” ({statement.where})", ""]
        for check in result.checks:
            if check.statement == statement.key:
                color, icon, words, _ = _VERDICTS[check.verdict]
                lines.append(f"- :{color}[{icon} {words}] **{plain(check.case)}.** {plain(check.measured)}")
        with st.container(border=True):
            st.markdown("\n".join(lines))


def frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows of a table; a column of lists becomes as many columns."""
    flat = []
    for row in rows:
        found: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, list):
                found |= {f"{name}_{i}": one for i, one in enumerate(value)}
            else:
                found[name] = value
        flat.append(found)
    return pd.DataFrame(flat)


def _tables(result: Result) -> None:
    if not result.tables:
        return
    with st.expander("The numbers", icon=":material/table:"):
        for tab, (name, rows) in zip(
            st.tabs([plain(name) for name in result.tables]), result.tables.items(), strict=True
        ):
            with tab:
                table = frame(rows)
                st.dataframe(
                    table, hide_index=True, key=f"paper_table_{name}", height=min(320, 38 + 35 * len(rows))
                )
                widgets.download(
                    f"{plain(name)} (CSV)",
                    lambda table=table: table.to_csv(index=False),  # type: ignore[misc]
                    f"{result.artefact}-{result.budget}-{name}.csv",
                    key=f"paper_csv_{name}",
                )


def _program(artefact: Artefact, result: Result) -> None:
    with st.expander("Settings", icon=":material/tune:"):
        told = ", ".join(f"{name} = {value}" for name, value in result.settings.items())
        st.code(told or "none", language=None, wrap_lines=True)
    source = widgets.linked(
        paper_program(artefact.name, result.budget),
        f"{artefact.title}, {result.budget} budget",
        data={name: str(digest) for name, digest in result.data.items()},
        versions={name: str(value) for name, value in result.versions.items()},
    )
    widgets.python_block(
        source,
        "Reproduces it and prints the outcome of the checks; times differ from machine to machine.",
    )


def _downloads(artefact: Artefact, result: Result) -> None:
    name = f"{result.artefact}-{result.budget}"
    with st.container(horizontal=True, key="paper_downloads"):
        widgets.download(
            "Result (JSON)",
            lambda: json.dumps(result.to_dict(), indent=1),
            f"{name}.json",
            key="paper_json",
            help="Tables, checks, settings, versions and digests of the data.",
        )
        widgets.download(
            "Figure (HTML)",
            lambda: figure_html(artefact, result),
            f"{name}.html",
            key="paper_html",
            help="A page of its own, to zoom and to save from.",
        )


def figure_html(artefact: Artefact, result: Result) -> str:
    """Return the figure as one HTML page."""
    picture = artefact.picture
    return figures.standalone(artefact.title, picture.kind, result.tables, **picture.options)
