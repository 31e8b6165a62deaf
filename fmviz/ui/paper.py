"""The page Papers: reproduced figures and tables, and checks of the papers' statements."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from fmviz.engine.settings import ParamSpec
from fmviz.figures import papers as figures
from fmviz.figures import sketch
from fmviz.figures.palette import SIGNALS
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Artefact, Result
from fmviz.lab.papers.results import (
    Kept,
    last_kept,
    last_results,
    newest,
    run_and_keep,
    shipped_results,
    unfinished,
)
from fmviz.lab.runs.program import paper_program
from fmviz.lab.store import StoreError, store
from fmviz.typography import in_powers
from fmviz.ui import navigation, shell, widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import duration, failure, pace, watch

ALL = "all"
TABLE = (
    ParamSpec(
        "artefact",
        "choice",
        ALL,
        choices=(ALL, *ARTEFACTS),
        help="A figure or table of a paper, with its protocol and the paper's statements.",
    ),
    ParamSpec(
        "budget",
        "choice",
        BUDGETS[0],
        choices=BUDGETS,
        help="Quick: fewer repetitions and smaller data. Full: the protocol of the paper.",
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
        try:
            kept: Mapping[tuple[str, str], Kept] = last_results(store())
        except (StoreError, sqlite3.Error) as error:
            message = f"{plain(error)} Results of earlier sessions cannot be shown."
            st.warning(message, icon=":material/save:")
            kept = shipped_results()
        labels = {
            name: f"{name.rpartition('_')[0]} · {artefact.title}" for name, artefact in ARTEFACTS.items()
        }
        with st.container(horizontal=True, vertical_alignment="bottom", key="paper_choice"):
            widgets.param(
                settings, "artefact", "Figure", labels={ALL: "All figures", **labels}, style="select"
            )
            chosen = ARTEFACTS.get(settings["artefact"])
            times = {name: f", {duration(60 * chosen.minutes[name])}" if chosen else "" for name in BUDGETS}
            words = {name: f"{name.capitalize()}{time_needed}" for name, time_needed in times.items()}
            widgets.param(settings, "budget", "Budget", labels=words)
        last = {
            name: newest(kept[name, budget] for budget in BUDGETS if (name, budget) in kept)
            for name in ARTEFACTS
        }
        if settings["artefact"] == ALL:
            _cards(settings, last)
        else:
            name, budget = settings["artefact"], settings["budget"]
            _artefact(ARTEFACTS[name], budget, kept.get((name, budget)) or last[name])


# ------------------------------------------------------------------------------------------------------ cards


def _cards(settings: Settings, last: Mapping[str, Kept | None]) -> None:
    papers = {paper: list(group) for paper, group in groupby(ARTEFACTS.values(), attrgetter("paper"))}
    # First author and year of a citation, or its first words.
    short = [re.sub(r"^([^,]*),.*?( \d{4})?$", r"\1\2", paper) for paper in papers]
    for tab, (paper, artefacts) in zip(st.tabs(list(map(plain, short))), papers.items(), strict=True):
        with tab:
            st.caption(plain(paper))
            with shell.cards(artefacts[0].name.rpartition("_")[0]):
                for artefact in artefacts:
                    with st.container(border=True, height="stretch"):
                        _card(artefact, settings, last[artefact.name])


def _card(artefact: Artefact, settings: Settings, last: Kept | None) -> None:
    first, budget = artefact.statements[0], settings["budget"]
    st.markdown(f"**{plain(artefact.title)}**", help=f"“{first.text}” ({first.where})")
    if last is not None:
        # A result of another protocol has no picture.
        with suppress(ValueError):
            key = last.artefact, last.budget, last.created
            picture = last.picture if last.shipped else _drawn(*key)
            st.image(picture, width="stretch", alt=f"One panel of {artefact.title}.")
        with st.container(horizontal=True, gap="xsmall"):
            _badges(last.verdicts)
    if last is None:
        minutes = duration(60 * artefact.minutes["quick"])
        words = f"Not run here yet. {minutes.capitalize()} at the quick budget."
    else:
        less = f"; without {plain(', '.join(last.without))}" if last.without else ""
        whose = "Shipped result" if last.shipped else "Last run"
        words = f"{whose}: {plain(_when(last))}, {plain(last.budget)} budget{less}."
    st.caption(words)
    link = settings.link(artefact=artefact.name, budget=last.budget if last else budget)
    navigation.page_link(navigation.PAPER, link, label="Open", icon=":material/arrow_forward:")


@lru_cache(maxsize=64)
def _drawn(name: str, budget: str, created: float) -> str:
    """Return the thumbnail of a result stored here since a time."""
    result: Any = last_kept(ARTEFACTS[name], budget, store())
    return sketch.thumbnail(figures.draw(result.tables, **ARTEFACTS[name].picture))


def _badges(counts: Mapping[str, int]) -> None:
    """Draw the number of checks per verdict."""
    shown = [verdict for verdict in _VERDICTS if counts.get(verdict)]
    for verdict in shown:
        number, (color, icon, single, many) = counts[verdict], _VERDICTS[verdict]
        what, words = ("claim ", single) if number == 1 else ("claims ", many)
        # Only the first badge has the noun.
        st.badge(f"{number:,} {what if verdict == shown[0] else ''}{words}", icon=icon, color=color)


def _when(kept: Kept) -> str:
    """Return the time of a result; for shipped results, the day."""
    return time.strftime("%Y-%m-%d" if kept.shipped else "%Y-%m-%d %H:%M", time.localtime(kept.created))


# ----------------------------------------------------------------------------------------------- reproduction


def _artefact(artefact: Artefact, budget: str, kept: Kept | None) -> None:
    """Draw an artefact: description, controls, and present or last result."""
    st.subheader(plain(artefact.title))
    st.caption(f"{plain(artefact.paper)}.")
    key = f"paper:{artefact.name}:{budget}"
    tasks = manager()
    task = tasks.get(key)
    active = task is not None and task.state.active
    parts = 0
    # An unreadable store is reported at the top of the page.
    with suppress(StoreError, sqlite3.Error):
        parts = 0 if active else unfinished(artefact, budget, store())
    start: Any = partial(tasks.submit, key, partial(run_and_keep, artefact, budget, store), most=1)
    with st.container(horizontal=True, vertical_alignment="center", key="paper_controls"):
        st.button(
            "Go on" if parts else "Run" if task is None and kept is None else "Run again",
            icon=":material/play_arrow:",
            key="paper_run",
            type="primary",
            disabled=active,
            on_click=start,
            help=f"Reuses {parts:,} finished parts of an earlier run." if parts else None,
        )
        stop = task.stop if task is not None else None
        st.button("Stop", icon=":material/stop:", key="paper_stop", disabled=not active, on_click=stop)
        if task is not None and not active and task.state is not TaskState.FINISHED and kept is not None:
            forget = partial(tasks.forget, key)
            st.button("Back to the last result", icon=":material/undo:", key="paper_back", on_click=forget)
    st.code(_command(artefact, budget), language="sh")
    if task is not None:
        watch(task, partial(_task, artefact, parts), _words, lambda view: int(10 * _words(view)[1]))
    elif kept is not None:
        _kept(artefact, kept)
    else:
        done = f"Incomplete: {parts:,} parts are finished." if parts else "Not run yet."
        with st.container(border=True, key="paper_empty"):
            st.markdown(f"{done} Statements to check:")
            st.markdown("\n".join(f"- “{said.text}” ({said.where})" for said in artefact.statements))
        _differences(artefact.differences)


def _command(artefact: Artefact, budget: str) -> str:
    return f"python -m fmviz paper {artefact.name} --budget {budget}"


def _words(view: TaskView) -> tuple[str, float]:
    """Return the progress of a reproduction as a sentence and a share."""
    done, total, message = 0, 1, view.message
    if view.items:
        result: Result = view.items[-1]
        done, total, message = result.done, max(result.total, 1), result.message
    return f"{pace(view, done, total)}. {message}", min(done / total, 1.0)


def _task(artefact: Artefact, parts: int, view: TaskView) -> None:
    result: Result | None = view.items[-1] if view.items else None
    if view.state is TaskState.FAILED:
        failure(view)
    elif view.state is TaskState.STOPPED:
        after = f" after {result.done:,} of {result.total:,} parts" if result is not None else ""
        kept = f" “Go on” continues from {parts:,} finished parts." if parts else ""
        st.info(f"Stopped{after}. Showing the results so far.{kept}", icon=":material/stop:")
    if result is not None:
        _result(artefact, result, live=view.state.active)


def _kept(artefact: Artefact, kept: Kept) -> None:
    """Draw the stored result, local or shipped with fmviz."""
    shipped = kept.shipped
    try:
        result = last_kept(artefact, kept.budget, None if shipped else store())
    except ValueError as error:
        st.info(plain(error), icon=":material/history:")
        return
    assert result is not None, "it is among the last results"
    words = f"Last result: {plain(_when(kept))}."
    if shipped:
        versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
        words = (
            f"Result shipped with fmviz, {plain(_when(kept))}; computed by "
            f"`{_command(artefact, kept.budget)}` with {plain(versions)}."
        )
    st.caption(words)
    _result(artefact, result, live=False)


# ----------------------------------------------------------------------------------------------------- result


def _result(artefact: Artefact, result: Result, *, live: bool) -> None:
    """Draw a result; `live` omits parts that need the complete result."""
    figure = figures.draw(result.tables, **artefact.picture)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="paper_verdicts"):
        _badges(Counter(check.verdict for check in result.checks))
        if not live:
            budget = plain(result.budget.capitalize())
            st.caption(f"{budget} budget, {result.seconds:.0f} s.", width="content")
    if figure.data:
        st.html(_STYLE)
        said = "; ".join(f"{check.case}: {check.verdict}" for check in result.checks[:8])
        chart(figure, key="paper_picture", alt=f"{artefact.title}. {said}.")
    st.markdown("#### Statements of the paper and measurements")
    for statement in artefact.statements:
        lines = [f"“{statement.text}” ({statement.where})", ""]
        for check in result.checks:
            if check.statement == statement.key:
                color, icon, words, _ = _VERDICTS[check.verdict]
                measured = f"**{plain(in_powers(check.case))}.** {plain(in_powers(check.measured))}"
                lines.append(f"- :{color}[{icon} {words}] {measured}")
        with st.container(border=True):
            st.markdown("\n".join(lines))
    if compared := artefact.compared(result.tables):
        st.markdown("#### Published and reproduced numbers")
        widths: Any = {"": "large", "Source": "medium"}
        columns = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
        st.dataframe(beside(compared), hide_index=True, key="paper_published", column_config=columns)
    _differences(result.differences)
    if live:
        return
    with st.expander("The numbers", icon=":material/table:"):
        for name, rows in result.tables.items():
            st.markdown(f"**{plain(name)}**")
            height = min(320, 38 + 35 * len(rows))
            st.dataframe(pd.DataFrame(rows), hide_index=True, key=f"paper_table_{name}", height=height)
    widgets.download(
        "Result (JSON)",
        partial(json.dumps, result.to_dict(), indent=1),
        f"{result.artefact}-{result.budget}.json",
        key="paper_json",
        help="Tables, checks, settings, versions and data digests.",
    )
    widgets.python_block(
        widgets.linked(
            paper_program(artefact.name, result.budget),
            f"{artefact.title}, {result.budget} budget",
            data={name: str(digest) for name, digest in result.data.items()},
            versions={name: str(value) for name, value in result.versions.items()},
        ),
        "Reproduces the result and prints the verdicts; times depend on the machine.",
    )


def beside(rows: Sequence[Mapping[str, Any]]) -> Styler:
    """Return published and reproduced numbers, with deviations coloured by tolerance."""
    table = pd.DataFrame(rows, columns=["what", "published", "ours", "deviation", "source"])
    table.columns = ["", *(name.capitalize() for name in table.columns[1:])]
    fills = [f"background-color: {SIGNALS[row['within']]}" for row in rows]
    forms: Any = {"Published": "{:,.6g}", "Ours": "{:,.6g}", "Deviation": "{:+.1%}"}
    return table.style.apply(lambda _: fills, subset=["Deviation"]).format(forms, na_rep="–")


def _differences(texts: Sequence[str]) -> None:
    with st.expander(f"Differences from the paper ({len(texts)})", icon=":material/difference:"):
        st.markdown("\n".join(f"- {plain(text)}" for text in texts))
