"""Search for the λ at which a model uses a given number of interactions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import strength_path as figures
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.equal_sparsity import SearchFit, search, search_program
from fmviz.lab.search.strength_path import METHODS, bracket_grid, nearest, strengths
from fmviz.lab.store.table import METRICS
from fmviz.paths import accepted_range
from fmviz.ui import navigation, widgets
from fmviz.ui.charts import curves
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.settings import train_query
from fmviz.ui.watching import failure, watch

# Width of the interval at which the search of the paper gives up (atarashi2021, 8.3).
_NARROWEST = 1e-12
SLACK = {"paper": "As in the paper", "5": "±5 %", "20": "±20 %"}
"""How many interactions are near enough to a target."""
ACCEPT = ParamSpec(
    "accept",
    "choice",
    "paper",
    choices=tuple(SLACK),
    help="Which numbers are near enough. The paper takes the binomial coefficients around the target, "
    "which are all that a selection of whole features can reach: 990 to 1,035 for 1,000.",
)
TABLE = (
    ParamSpec(
        "target",
        "int",
        1000,
        1,
        1_000_000,
        log=True,
        help="About how many interactions the model is to use.",
    ),
    ParamSpec("seeker", "choice", "ti", choices=METHODS, help="The regularizer whose λ is searched."),
    ACCEPT,
    ParamSpec("seek", "bool", False, help="A link with seek=1 makes the search."),
)
PARTS = ("seek_start", "seek_stop")
_SHOWN = "fmviz:path:search"
# Set when a suggested change was accepted: search at once.
_NOW = "fmviz:path:search_now"
_STEPS = (1, 1.5, 2, 3, 5, 7)


@dataclass(frozen=True)
class Search:
    """The parameters of a search."""

    experiment: Experiment
    target: int
    accept: tuple[int, int]
    grid: tuple[float, ...]

    @property
    def key(self) -> str:
        """The key of its task."""
        low, high = self.accept
        return (
            f"target:{self.experiment.digest}:{self.target}:{low}:{high}:{self.grid[0]:g}:{self.grid[-1]:g}"
        )


def looked_at(
    place: str, asked: Any, key: str, wanted: bool, linked: bool, start: Callable[[], None]
) -> tuple[Any, Task] | None:
    """Return the request that this session shows, and its task, which outlives the server's list.

    Parameters
    ----------
    place : str
        Where the session keeps it.
    asked : object
        What the settings ask for.
    key : str
        The name of its task, which somebody may have started in another session.
    wanted : bool
        Whether the link says that it is to be computed.
    linked : bool
        Whether a link that could be followed was just opened.
    start : callable
        Starts the task, and keeps it at the place.
    """
    shown = st.session_state.get(place)
    there = manager().get(key)
    if wanted and there is not None and (there.state.active or there.state is TaskState.FINISHED):
        if shown is None or shown[1] is not there:
            st.session_state[place] = (asked, there)
    elif wanted and linked and (shown is None or shown[0] != asked):
        start()
    return st.session_state.get(place)


def draw(settings: Settings, base: Experiment, linked: bool) -> None:
    """Draw the target number, the progress of the search, and its result."""
    st.subheader("Search for a number of interactions")
    st.markdown(
        "Along the path above until a fit uses too many interactions, or too few; then halve the interval "
        "between. Every fit begins at its neighbour, as on the path."
        if base.start == "informed"
        else "The search of the paper (atarashi2021, 8.3): powers of ten from the largest down until a fit "
        "uses too many interactions, then halve the interval between too many and too few. Every fit begins "
        "at the same random start."
    )
    box = st.container(border=True, key="path_target_box")
    with box, st.container(horizontal=True, vertical_alignment="top", gap="large"):
        widgets.scale(
            settings,
            "target",
            "Interactions",
            lowest=1,
            highest=1e6,
            steps=_STEPS,
            place=st.container(width=420),
        )
        widgets.param(
            settings,
            "seeker",
            "Regularizer Ω",
            labels={name: PENALTIES[name].label for name in METHODS},
            style="select",
            place=st.container(width=160),
        )
        widgets.param(settings, "accept", "Accepted", labels=SLACK, place=st.container(width="content"))
    try:
        asked = _asked(settings, base)
    except ValueError as error:
        st.error(plain(error), icon=":material/block:")
        return
    low, high = asked.accept

    def start() -> None:
        make = partial(
            search, asked.experiment, asked.target, asked.accept, grid=asked.grid, narrowest=_NARROWEST
        )
        st.session_state[_SHOWN] = (
            asked,
            manager().submit(asked.key, lambda should_stop: make(should_stop=should_stop)),
        )
        settings.set(seek=True)

    if st.session_state.pop(_NOW, False):
        start()
    shown = looked_at(_SHOWN, asked, asked.key, settings["seek"], linked and not settings.notices, start)
    stale = shown is not None and shown[0] != asked
    active = shown is not None and shown[1].state.active
    with st.container(horizontal=True, vertical_alignment="center", key="path_target_controls"):
        widgets.action(
            settings,
            "seek_start",
            "Search λ" if shown is None or stale else "Search again",
            icon=":material/my_location:",
            type="primary",
            disabled=active and not stale,
            on_click=start,
        )
        widgets.stop(settings, None if shown is None else shown[1], name="seek_stop", shortcut=None)
        st.caption(f"Accepts {low:,} to {high:,} interactions.", width="content")
    if shown is None:
        st.caption(
            ":material/touch_app: Nothing has been searched yet. Set the number and press **Search λ**."
        )
        return
    if stale:
        st.warning(
            "Settings changed since this search. Press **Search λ** to search with them.",
            icon=":material/sync_problem:",
        )
    watch(shown[1], partial(_draw, settings, shown[0]))


def _asked(settings: Settings, base: Experiment) -> Search:
    name, target = settings["seeker"], settings["target"]
    experiment = replace(base, regularizer=name)
    if (reason := experiment.why_not()) is not None:
        raise ValueError(reason)
    grid = bracket_grid(settings["low"], settings["high"])
    if base.start == "informed":
        # Warm starts along the path need smaller steps than powers of ten.
        path = strengths(settings["low"], settings["high"], settings["points"])
        grid = tuple(sorted({*grid, *path}))
    return Search(experiment, target, accepted(settings), grid)


def accepted(settings: Settings) -> tuple[int, int]:
    """Return the range of numbers that the settings ``target`` and ``accept`` allow."""
    target = settings["target"]
    if settings["accept"] == "paper":
        return accepted_range(target)
    slack = int(settings["accept"]) / 100
    return int(target * (1 - slack)), round(target * (1 + slack))


def _draw(settings: Settings, asked: Search, view: TaskView) -> None:
    fits: list[SearchFit] = list(view.items)
    live = view.state.active
    if live:
        now = plain(fits[-1].message) if fits else "Preparing the data."
        st.caption(f":material/search: {len(fits)} fits in {view.elapsed:.0f} s. {now}")
    elif view.state is TaskState.FAILED:
        failure(view)
        st.caption("Change the setting that the sentence names, then search again.")
    if not fits:
        return
    last = fits[-1]
    if not live and view.state is not TaskState.FAILED:
        _verdict(settings, asked, view, fits)
    table = pd.DataFrame(
        {
            "lambda_sparse": [fit.experiment.lambda_sparse for fit in fits],
            "used_interactions": [fit.used_interactions for fit in fits],
            "low": [fit.low for fit in fits],
            "high": [fit.high for fit in fits],
        }
    )
    figure = figures.bracket(
        table, asked.target, asked.accept, color=regularizer_color(asked.experiment.regularizer)
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.markdown("**What every fit uses, and the interval as it narrows**")
        curves(
            figure,
            key="path_bracket",
            alt=f"{len(fits)} fits in search of {asked.target:,} interactions. {last.message}",
            live=live,
        )
    with right:
        st.markdown("**Fit by fit**")
        number = st.column_config.NumberColumn
        table.insert(0, "fit", range(1, len(table) + 1))
        st.dataframe(
            table,
            hide_index=True,
            height=430,
            key="path_probes",
            column_config={
                "fit": number("Fit", width="small"),
                "lambda_sparse": number("λ", format="%.6g", width="small"),
                "used_interactions": number("Interactions", format="localized", width="small"),
                "low": number("Too many at", format="%.6g", width="small"),
                "high": number("Too few at", format="%.6g", width="small"),
            },
        )
    if not live:
        widgets.download(
            "The search (CSV)",
            lambda: table.to_csv(index=False),
            f"search-{asked.target}-{asked.experiment.regularizer}.csv",
            key="path_probes_csv",
        )
        dataset = load_dataset(asked.experiment.dataset, **dict(asked.experiment.dataset_params))
        widgets.python_block(
            widgets.linked(
                search_program(
                    asked.experiment, asked.target, asked.accept, grid=asked.grid, narrowest=_NARROWEST
                ),
                f"λ of {asked.experiment.regularizer} for {asked.target:,} interactions on "
                f"{asked.experiment.dataset}, seed {asked.experiment.seed}",
                data={asked.experiment.dataset: data_hash(dataset)},
            ),
            f"Makes the same {len(fits)} fits and prints the same counts.",
        )


def _verdict(settings: Settings, asked: Search, view: TaskView, fits: list[SearchFit]) -> None:
    last = fits[-1]
    label = PENALTIES[asked.experiment.regularizer].label
    if last.status == "found":
        said = [
            f"{words} {last.metrics[name]:.5g}" for name, words in METRICS.items() if name in last.metrics
        ]
        st.success(
            f"{label} at λ = {last.experiment.lambda_sparse:.6g} uses **{last.used_interactions:,}** "
            f"interactions of {last.used_features:,} features, found with {len(fits)} fits in "
            f"{view.elapsed:.1f} s. {plain(', '.join(said))}.",
            icon=":material/check_circle:",
        )
        _open(last, "**Open in Train**")
        return
    if last.status == "searching":
        st.info("Stopped. The fits so far are shown.", icon=":material/stop:")
        return
    st.warning(plain(last.message), icon=":material/block:")
    below, above = nearest([fit.used_interactions for fit in fits], asked.target)
    with st.container(border=True, key="path_nearest"):
        st.markdown(f"Nearest to **{asked.target:,}** that {label} has reached:")
        for place, words in ((below, "below"), (above, "above")):
            if place is None:
                st.caption(f"Nothing {plain(words)} it.")
                continue
            fit = fits[place]
            _open(
                fit,
                f"**{fit.used_interactions:,}** {words}, at λ = {fit.experiment.lambda_sparse:.6g}: open "
                "in Train",
            )
        if "jumps" in last.message:
            st.caption(
                "Fits that begin anew may empty P all at once. A path that goes **Upwards** in λ, above, "
                "often passes through the numbers between."
            )
        ways = None if "Ask for fewer" in last.message else _ways_out(settings, below is None, above is None)
        if ways:
            words, changes = ways
            if st.button(plain(words), key="path_way_out", icon=":material/build:"):
                settings.set(**changes)
                st.session_state[_NOW] = True
                st.rerun()


def _ways_out(settings: Settings, no_below: bool, no_above: bool) -> tuple[str, dict[str, Any]] | None:
    """Return a change that may make the number reachable, in words and as settings."""
    if no_below and settings["high"] < 1e6:
        high = min(settings["high"] * 100, 1e6)
        return f"Look up to λ = {high * 100:g}", {"high": high}
    if no_above and settings["low"] > 1e-10:
        low = max(settings["low"] / 100, 1e-12)
        return f"Look down to λ = {low / 100:g}", {"low": low}
    order = list(SLACK)
    place = order.index(settings["accept"])
    if place + 1 < len(order):
        wider = order[place + 1]
        return f"Accept {SLACK[wider]}", {"accept": wider}
    seeker = str(settings.table["seeker"].default)
    if settings["seeker"] != seeker:
        return f"Take {PENALTIES[seeker].label}, which chooses single interactions", {"seeker": seeker}
    return None


def _open(fit: SearchFit, label: str) -> None:
    navigation.page_link(
        navigation.TRAIN,
        train_query(fit.experiment),
        label=label,
    )
