"""The size of the data set that an upload becomes, and the way to a first model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine.memory import available_bytes, in_words
from fmviz.engine.models import SharedBasis
from fmviz.lab.background.tasks import TooManyJobsError, manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.importing import import_upload
from fmviz.lab.tables.recipe import Recipe
from fmviz.lab.uploads import library
from fmviz.lab.uploads.size import Size
from fmviz.ui import navigation, session_uploads, widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.settings import train_query as experiment_query
from fmviz.ui.watching import done

__all__ = ["MESSAGE", "draw_size", "draw_train", "train_query"]

MESSAGE = "fmviz:data:told"
"""Where the session keeps a sentence on what was just done."""
_WANTED = "fmviz:data:wanted"
_EPOCHS = 300
# So many classes are named.
_NAMED = 12
_MANY = {
    "class": ("{n} classes", "each with a machine of its own"),
    "ordinal": ("{n} classes in this order", "a machine for each step between them"),
    "several": ("{n} labels", "each with a machine of its own"),
    "regression": ("{n} numbers, standardised", "a machine for each"),
}
_SHARED = "all on one shared basis"


def draw_size(settings: Settings, recipe: Recipe) -> Size | None:
    """Draw the encoded size; return it, or None where it is not known or cannot be."""
    st.subheader("What it becomes")
    file = settings["file"]
    key = f"data:size:{library.name_of(file, recipe)}"
    ready = done(
        key,
        lambda should_stop: library.sized(file, recipe, should_stop),
        "Counting what this makes.",
        _cannot,
    )
    if not ready:
        return None
    size = library.sized(file, recipe)
    rank = settings["rank"]
    if shared := has_outputs(size) and settings["outputs"] == "shared":
        rank = SharedBasis.suited["rank"]
    needed = 3 * size.bytes_of_X + 4 * size.bytes_of_P(rank)
    figures = (
        ("Rows", f"{size.rows:,}", f"{size.dropped:,} more are left out since a value is missing."),
        ("Features d", f"{size.features:,}", "Columns of X."),
        ("Pairs", f"{size.features * (size.features - 1) // 2:,}", "Interactions that a model may use."),
        ("Non-zeros of X", f"{size.entries:,}", "What an epoch goes through."),
        ("Memory of X", in_words(size.bytes_of_X), "By rows and by columns, as training holds it."),
        (
            f"Memory of {rank:,} bases" if shared else f"Memory of P at rank {rank}",
            in_words(size.bytes_of_P(rank)),
            "8 bytes for each of d × k entries.",
        ),
    )
    with st.container(horizontal=True, gap="medium", key="data_figures"):
        for label, value, help_ in figures:
            st.metric(plain(label), value, help=plain(help_), width="content")
    picture = (
        "exact, cell by cell"
        if size.features <= EXACT_FEATURES
        else f"in tiles, each of several features, since d is above {EXACT_FEATURES:,}"
    )
    if size.task == "binary":
        positives = size.counts[1]
        goal = (
            f"Two classes: **{plain(size.labels[1])}** is +1 in {positives:,} rows "
            f"({positives / size.rows:.0%}), **{plain(size.labels[0])}** is −1."
        )
    elif has_outputs(size):
        told = [f"**{plain(name)}**" for name in size.labels]
        if size.counts:
            told = [f"{words} ({n:,})" for words, n in zip(told, size.counts, strict=True)]
        more = f" and {len(told) - _NAMED:,} more" if len(told) > _NAMED else ""
        goal = f"{plain(_outputs(settings, size))}: {', '.join(told[:_NAMED])}{more}."
    else:
        goal = "A number, standardised: an error of 1 is one standard deviation."
    lost = f" {size.dropped:,} rows are left out since a value is missing." if size.dropped else ""
    # What an epoch on a shared basis takes depends on the bases that are there.
    span = "" if shared else f" {_EPOCHS} epochs take at most about {_span(size.seconds(rank, _EPOCHS))}."
    st.markdown(f"{goal}{lost} The heatmap is {picture}.{span}")
    if needed > available_bytes():
        st.warning(
            f"Training needs about {in_words(needed)}, and {in_words(available_bytes())} are free. Take a "
            "sample of the rows, or leave columns out.",
            icon=":material/memory:",
        )
    if size.features < 2:
        st.warning(
            "A single feature has none to interact with. Use more columns.", icon=":material/lightbulb:"
        )
    for note in size.notes[:8]:
        st.caption(plain(note))
    with st.expander("Features by column", icon=":material/view_column:"):
        st.dataframe(
            pd.DataFrame(
                {
                    "Column": [part.name for part in size.parts],
                    "Encoded as": [part.kind for part in size.parts],
                    "Features": [part.features for part in size.parts],
                    "Non-zeros": [part.entries for part in size.parts],
                }
            ),
            hide_index=True,
            key="data_parts",
            height=35 * (min(len(size.parts), 10) + 1) + 3,
            alt="How many features and non-zeros each column of the file becomes.",
        )
    return size


def has_outputs(size: Size) -> bool:
    """Return whether there is more than one output to predict."""
    return size.task in _MANY and bool(size.labels)


def _outputs(settings: Settings, size: Size) -> str:
    many, how = _MANY[size.task]
    return f"{many.format(n=len(size.labels))}, {_SHARED if settings['outputs'] == 'shared' else how}"


def _span(seconds: float) -> str:
    if seconds < 1.5:
        return "a second"
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"


def _cannot(sentence: str, details: str) -> None:
    st.error(plain(sentence), icon=":material/block:")
    if details:
        with st.expander("Details", icon=":material/info:"):
            st.code(details, language=None, wrap_lines=True)
    st.caption("Change the target, the columns or the rule for missing values above; or upload another file.")


def draw_train(settings: Settings, recipe: Recipe, size: Size | None, top: DeltaGenerator) -> None:
    """Draw the way to a first model; at the `top` of the page, straight to what it says."""
    if settings.shows_any("rank", "validation", "outputs", "train", "keep"):
        st.subheader("Train")
    several = size is not None and has_outputs(size)
    model = SharedBasis.name if several and settings["outputs"] == "shared" else None
    with st.container(horizontal=True, vertical_alignment="bottom", key="data_first"):
        # λ decides how many bases are shared.
        if model is None:
            with st.container(width=220):
                widgets.param(settings, "rank", "Rank $k$", style="number")
        with st.container(width=220):
            widgets.param(settings, "validation", "Validation share", style="number")
        if several:
            widgets.param(
                settings,
                "outputs",
                "Several outputs",
                labels={"each": "A machine for each", "shared": "One shared basis"},
            )
    name = library.name_of(settings["file"], recipe)
    with top:
        widgets.action(
            settings,
            "read",
            "Train, and read the pairs in words",
            icon=navigation.INTERACTIONS.icon,
            type="primary",
            disabled=size is None,
            on_click=_want,
            args=(name, "read"),
            help="With sensible defaults; opens the page Interactions.",
        )
    with st.container(horizontal=True, key="data_actions"):
        widgets.action(
            settings,
            "train",
            "Train with sensible defaults",
            icon=":material/play_arrow:",
            type="primary",
            disabled=size is None,
            on_click=_want,
            args=(name, "train"),
            help="With a strength that these data suggest; opens the page Train.",
        )
        widgets.action(
            settings,
            "keep",
            "Keep as a data set",
            icon=":material/bookmark_add:",
            disabled=size is None,
            on_click=_want,
            args=(name, "keep"),
            help="For the data set menu of this session: sweeps, comparisons and all other pages.",
        )
    st.caption(
        "Means, deviations and words are those of all rows that are kept, so that runs with other splits "
        "and seeds have the same features; the target does not enter them."
    )
    wanted, what = st.session_state.get(_WANTED, ("", ""))
    if wanted == name and size is not None:
        # Beside the button that was pressed.
        with top if what == "read" else st.container():
            _carry_out(settings, recipe, name, what, model)


def _want(name: str, what: str) -> None:
    st.session_state[_WANTED] = (name, what)


def _carry_out(settings: Settings, recipe: Recipe, name: str, what: str, model: str | None) -> None:
    """Enter the data set with strengths for a model, and go on."""
    file, title, owner = settings["file"], settings["title"], session_uploads.owner()

    def failed(sentence: str, details: str) -> None:
        st.session_state.pop(_WANTED, None)
        _cannot(sentence, details)

    def enter(should_stop: Callable[[], bool]) -> Iterator[str]:
        before = library.find(name)
        if before is None or not before.has_strengths(model):
            for trial in import_upload(file, recipe, title, should_stop, owner, model):
                yield trial.message

    if not done(f"data:enter:{name}:{title}:{model}", enter, "Encoding, and trying strengths.", failed):
        return
    st.session_state.pop(_WANTED, None)
    session_uploads.remember(name)
    if what != "keep":
        changes = {"validation": settings["validation"]}
        if model is None:
            changes["rank"] = settings["rank"]
        experiment = _first_experiment(name, settings["seed"], model or Experiment.model, **changes)
        if what == "train":
            st.switch_page(navigation.TRAIN.script, query_params=experiment_query(experiment))
        try:
            job = manager().start(experiment, owner, browser=owner)
        except TooManyJobsError as error:
            failed(str(error), "")
            return
        st.switch_page(navigation.INTERACTIONS.script, query_params={"run": job.id})
    st.session_state[MESSAGE] = f"{library.title_of(title)} is in the data set menu."
    settings.set(dataset=name)
    st.rerun()


def train_query(name: str, seed: int, model: str | None = None, **changes: Any) -> dict[str, str]:
    """Return the link that trains on a data set with what is suggested for it, some of it changed."""
    return experiment_query(_first_experiment(name, seed, model, **changes))


def _first_experiment(name: str, seed: int, model: str | None, **changes: Any) -> Experiment:
    return replace(suggested(name, model), seed=seed, **changes)
