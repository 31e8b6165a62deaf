"""The page Papers: shipped reproductions of figures and tables, with checks of the papers' statements."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pandas.io.formats.style import Styler

from fmviz.engine.settings import ParamSpec
from fmviz.figures.palette import SIGNALS
from fmviz.lab.papers import Result, Summary, shipped_result, summaries
from fmviz.typography import in_powers
from fmviz.ui import navigation, shell, widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

ALL = "all"
TABLE = (
    ParamSpec(
        "artefact",
        "choice",
        ALL,
        choices=(ALL, *summaries()),
        help="A figure or table of a paper, with its protocol and the paper's statements.",
    ),
)
_VERDICTS: dict[str, tuple[Literal["green", "red", "gray"], str, str, str]] = {
    "holds": ("green", ":material/check_circle:", "holds", "hold"),
    "does not hold": ("red", ":material/cancel:", "does not hold", "do not hold"),
    "not settled": ("gray", ":material/help:", "not settled", "not settled"),
}


# Panels keep their width on phones and scroll.
_STYLE = """<style>
.st-key-paper_picture {overflow-x: auto}
.st-key-paper_picture_chart {min-width: 56rem}
</style>"""


def render() -> None:
    """Draw the page."""
    with shell.page("Papers", Settings("paper", TABLE, unread=("dataset", "seed"))) as settings:
        shell.heading(
            settings,
            "Papers",
            "Figures and tables of papers, reproduced with the original protocol. Each statement of a paper "
            "becomes a check that holds, does not hold, or is not settled, with the number "
            "measured.",
        )
        labels = {ALL: "All figures"} | {
            name: f"{name.rpartition('_')[0]} · {summary.title}" for name, summary in summaries().items()
        }
        with st.container(key="paper_choice"):
            widgets.param(settings, "artefact", "Figure", labels=labels, style="select")
        if settings["artefact"] == ALL:
            _cards(settings)
        else:
            _result(summaries()[settings["artefact"]], shipped_result(settings["artefact"]))


# ------------------------------------------------------------------------------------------------------ cards


def _cards(settings: Settings) -> None:
    papers = {paper: list(group) for paper, group in groupby(summaries().values(), attrgetter("paper"))}
    # First author and year of a citation, or its first words.
    short = [re.sub(r"^([^,]*),.*?( \d{4})?$", r"\1\2", paper) for paper in papers]
    for tab, (paper, artefacts) in zip(st.tabs(list(map(plain, short))), papers.items(), strict=True):
        with tab:
            st.caption(plain(paper))
            with st.container(key=f"cards_{artefacts[0].artefact.rpartition('_')[0]}"):
                for summary in artefacts:
                    with st.container(border=True, height="stretch"):
                        _card(summary, settings)


def _card(summary: Summary, settings: Settings) -> None:
    first = summary.statement
    st.markdown(f"**{plain(summary.title)}**", help=f"“{first.text}” ({first.where})")
    st.image(summary.thumbnail, width="stretch", alt=f"One panel of {summary.title}.")
    with st.container(horizontal=True, gap="xsmall"):
        _badges(summary.verdicts)
    without = f"; without {plain(', '.join(summary.without))}" if summary.without else ""
    st.caption(f"{plain(_day(summary))}, {plain(summary.budget)} budget{without}.")
    link = settings.link(artefact=summary.artefact)
    navigation.page_link(navigation.PAPER, link, label="Open", icon=":material/arrow_forward:")


def _badges(counts: Mapping[str, int]) -> None:
    """Draw the number of checks per verdict."""
    shown = [verdict for verdict in _VERDICTS if counts.get(verdict)]
    for verdict in shown:
        number, (color, icon, single, many) = counts[verdict], _VERDICTS[verdict]
        what, words = ("claim ", single) if number == 1 else ("claims ", many)
        # Only the first badge has the noun.
        st.badge(f"{number:,} {what if verdict == shown[0] else ''}{words}", icon=icon, color=color)


def _day(summary: Summary) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(summary.created))


# ----------------------------------------------------------------------------------------------------- result


def _result(summary: Summary, result: Result) -> None:
    st.subheader(plain(result.title))
    st.caption(f"{plain(result.paper)}.")
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    st.caption(
        f"Computed on {plain(_day(summary))} with {plain(versions)}. To repeat it in a checkout of fmviz:"
    )
    st.code(result.command, language="sh")
    figure = go.Figure(result.picture)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="paper_verdicts"):
        _badges(Counter(check.verdict for check in result.checks))
        st.caption(
            f"{plain(result.budget.capitalize())} budget, {result.seconds:.0f} s.",
            width="content",
            help="Quick: fewer repetitions and smaller data. Full: the protocol of the paper.",
        )
    if figure.data:
        st.html(_STYLE)
        said = "; ".join(f"{check.case}: {check.verdict}" for check in result.checks[:8])
        chart(figure, key="paper_picture", alt=f"{result.title}. {said}.")
    st.markdown("#### Statements of the paper and measurements")
    for statement in result.statements:
        lines = [f"“{statement.text}” ({statement.where})", ""]
        for check in result.checks:
            if check.statement == statement.key:
                color, icon, words, _ = _VERDICTS[check.verdict]
                measured = f"**{plain(in_powers(check.case))}.** {plain(in_powers(check.measured))}"
                lines.append(f"- :{color}[{icon} {words}] {measured}")
        with st.container(border=True):
            st.markdown("\n".join(lines))
    if result.compared:
        st.markdown("#### Published and reproduced numbers")
        widths: Any = {"": "large", "Source": "medium"}
        columns = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
        st.dataframe(beside(result.compared), hide_index=True, key="paper_published", column_config=columns)
    with st.expander(f"Differences from the paper ({len(result.differences)})", icon=":material/difference:"):
        st.markdown("\n".join(f"- {plain(text)}" for text in result.differences))
    with st.expander("The numbers", icon=":material/table:"):
        for name, rows in result.tables.items():
            st.markdown(f"**{plain(name)}**")
            st.dataframe(
                pd.DataFrame(rows),
                hide_index=True,
                key=f"paper_table_{name}",
                height=min(320, 38 + 35 * len(rows)),
            )
    widgets.download(
        "Result (JSON)",
        partial(json.dumps, result.to_dict(), indent=1),
        f"{result.artefact}-{result.budget}.json",
        key="paper_json",
        help="Tables, checks, settings, versions and data digests.",
    )


def beside(rows: Sequence[Mapping[str, Any]]) -> Styler:
    """Return published and reproduced numbers, with deviations coloured by tolerance."""
    table = pd.DataFrame(rows, columns=["what", "published", "ours", "deviation", "source"])
    table.columns = ["", *(name.capitalize() for name in table.columns[1:])]
    fills = [f"background-color: {SIGNALS[row['within']]}" for row in rows]
    forms: Any = {"Published": "{:,.6g}", "Ours": "{:,.6g}", "Deviation": "{:+.1%}"}
    return table.style.apply(lambda _: fills, subset=["Deviation"]).format(forms, na_rep="–")
