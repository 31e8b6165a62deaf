"""A run while it goes on: status, numbers, curves, matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from fmviz.engine._jit import compiling
from fmviz.engine.interactions.of_order import orders_of
from fmviz.engine.parameters import Parameters
from fmviz.figures import training as figures
from fmviz.figures.classes import confusion
from fmviz.figures.marks import mark_epochs
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.job import Job
from fmviz.lab.background.job_view import JobView
from fmviz.lab.background.task import TaskState
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.changes import change_words, with_jumps
from fmviz.ui import widgets
from fmviz.ui.charts import chart, curves
from fmviz.ui.guard import fragment
from fmviz.ui.outputs import choose_output
from fmviz.ui.state import Settings
from fmviz.ui.train import epoch_trace, higher_order, slices
from fmviz.ui.train.interactions import draw_matrix, draw_pairs, looked_at
from fmviz.ui.train.strengths import adopt, changed_words
from fmviz.ui.train.why_zero import draw_why

POLL_SECONDS = 0.4
GOOD_CERTIFICATE = 1e-3
# What is known of the steepest direction to another basis is an interval, about so wide.
_GOOD_BASIS_GAP = 0.02

_BADGES: dict[TaskState, tuple[str, Any, str]] = {
    TaskState.QUEUED: ("Queued", "gray", ":material/hourglass_top:"),
    TaskState.RUNNING: ("Running", "blue", ":material/progress_activity:"),
    TaskState.PAUSED: ("Paused", "orange", ":material/pause:"),
    TaskState.FINISHED: ("Finished", "green", ":material/check:"),
    TaskState.STOPPED: ("Stopped", "gray", ":material/stop:"),
    TaskState.FAILED: ("Failed", "red", ":material/error:"),
    TaskState.DIVERGED: ("Diverged", "red", ":material/trending_up:"),
}


def show(job: Job, settings: Settings, *, stale: str | None = None) -> None:
    """Draw a job; while it is active, again and again.

    Parameters
    ----------
    job : Job
        What to show.
    settings : Settings
        The page's, with ``x``, ``parts`` and ``metric``.
    stale : str, optional
        The sentence that the settings have changed since.
    """
    active, moving = job.state.active, settings["motion"]

    def draw() -> None:
        if moving and settings["motion"]:
            epoch_trace.tick(settings, job)
        view = job.view()
        # The controls above change with the state, and the settings with the run.
        ended = view.state.ended if moving else not view.state.active
        if ((active or moving) and ended) or adopt(settings, job):
            st.rerun()
        _draw(job, view, settings, stale)

    fragment(draw, run_every=POLL_SECONDS if active or moving else None)()


def _draw(job: Job, view: JobView, settings: Settings, stale: str | None) -> None:
    _status(view, settings["motion"])
    if view.unsaved:
        st.warning(view.unsaved, icon=":material/save:")
    if stale:
        st.warning(stale, icon=":material/sync_problem:")
    if view.state in (TaskState.FAILED, TaskState.DIVERGED):
        _error(view)
    if not view.history or view.dataset is None:
        if not view.state.ended:
            _loading(view)
        return
    history = pd.DataFrame(view.history)
    _numbers(view)
    slices.draw(view, settings)
    if not stale:
        epoch_trace.draw(settings, job, view)
    if settings.shows("curves", "Curves"):
        _curves(view, history, settings)
    one = view.of_output(choose_output(settings, view.dataset))
    assert one.dataset is not None, "the view has data"
    look = draw_matrix(one, one.dataset, settings)
    if look is not None:
        higher_order.draw_columns(one, look)
        higher_order.draw_subset(one, one.dataset, settings)
    draw_why(one, one.dataset, settings)
    if settings.shows("quality", "Prediction and recovery"):
        _quality(view, history, settings)
        _confusion(view)
    if settings.shows("pairs", "The strongest interactions"):
        draw_pairs(one, one.dataset, look)


# ------------------------------------------------------------------------------------------------- status


def _status(view: JobView, moving: bool) -> None:
    label, color, icon = _BADGES[view.state]
    if view.state is TaskState.FINISHED and not view.converged:
        label, color, icon = "Not converged", "orange", ":material/timer_off:"
    sentence = view.message
    if view.state is TaskState.RUNNING and view.history:
        sentence = f"Epoch {view.epoch:,} of at most {view.experiment.max_epochs:,}."
        if view.epoch == 0 and (kernels := compiling()):
            sentence = _compiling_words(kernels[0])
    if moving and not view.state.ended:
        label, color, icon = "Slow motion", "blue", ":material/slow_motion_video:"
        sentence = f"Epoch {view.epoch + 1:,}, step by step."
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="train_status"):
        st.badge(label, color=color, icon=icon)
        if view.history and not view.state.active and math.isfinite(view.last["certificate"]):
            gap = view.machine.certificate == "gap"
            good = _GOOD_BASIS_GAP if "least_certificate" in view.last else GOOD_CERTIFICATE
            widgets.certificate_badge(
                float(view.last["certificate"]), good, "duality gap" if gap else "certificate"
            )
        if view.state not in (TaskState.FAILED, TaskState.DIVERGED):
            st.markdown(sentence, width="content")


def _error(view: JobView) -> None:
    st.error(view.message, icon=":material/error:")
    if view.state is TaskState.FAILED and view.details:
        st.caption(
            "This is a defect of fmviz or of its surroundings. Other settings may go round it: change one, "
            "then press Play."
        )
        with st.expander("Details", icon=":material/info:"):
            st.code(view.details, language=None, wrap_lines=True)
    elif view.state is TaskState.FAILED:
        st.caption("Change the setting that the sentence names, then press Play.")


def _loading(view: JobView) -> None:
    with st.container(border=True):
        if kernels := compiling():
            st.markdown(_compiling_words(kernels[0]))
        elif view.state is TaskState.QUEUED:
            st.markdown("**Waiting** for a free worker: other runs are at work.")
        else:
            st.markdown("**Preparing**: the data is loaded and the first state evaluated.")
        st.caption(f"{view.elapsed:.1f} s so far. Stop ends it.")


def _compiling_words(kernel: str) -> str:
    return (
        f"**Compiling** `{kernel}`. The first run of a kind compiles its kernels, for some seconds; later "
        "runs start at once."
    )


# ------------------------------------------------------------------------------------------------ numbers


def _numbers(view: JobView) -> None:
    last = view.last
    d = view.dataset.X.shape[1] if view.dataset is not None else 0
    factorised = view.machine.factorised
    rows = "rows of P that are not zero" if factorised else "those in a pair whose weight in W is not zero"
    machine = view.machine
    if machine.lifted:
        rows = "those in a product that some column makes of entries that are not zero"
    pairs = (
        "pairs of rows that share a column in which both are not zero"
        if factorised
        else "pairs whose weight in W is not zero"
    )
    pairs += f", of {d * (d - 1) // 2:,}"
    if machine.lifted:
        pairs = (
            "sets of distinct features that can be dealt out to the factors of a column, no entry being zero"
        )
    if machine.columnar and orders_of(machine) != (2,):
        pairs = "sets of features, of every order, that share a column of P in which all are not zero"
    cells = (
        (
            "Epoch",
            f"{view.epoch:,}",
            "Sweeps over all parameters." if factorised else "Steps of all parameters at once.",
        ),
        ("Objective", f"{last['objective']:.5g}", "Loss and penalties, the sum that is minimised."),
        *(
            [
                (
                    "Features",
                    f"{last['used_features']:,}",
                    f"Used features: {rows}, of {d:,}.",
                ),
                (
                    "Interactions",
                    f"{last['used_interactions']:,}",
                    f"Used interactions: {pairs}; counted exactly.",
                ),
            ]
            if "used_bases" not in last
            else [("Bases", f"{last['used_bases']:,}", "The rows of V that are not zero.")]
        ),
        *_predicted_cell(view),
        _certificate_cell(view),
        ("Solver time", _seconds(view.seconds), "Time in the solver; evaluating and drawing are left out."),
    )
    st.html(_NUMBERS_STYLE)
    with st.container(horizontal=True, gap="small", key="train_numbers"):
        for label, value, help_text in cells:
            st.metric(label, value, help=help_text, width=108 if len(value) <= 9 else 128)
    if words := higher_order.order_words(view.machine, last):
        st.caption(words)


def _predicted_cell(view: JobView) -> list[tuple[str, str, str]]:
    """Return how well several outputs are predicted, where there are several."""
    if view.dataset is None or not view.dataset.outputs:
        return []
    for metric in ("accuracy", "rmse"):
        for rows, words in (("validation", "the validation rows"), ("train", "the training rows")):
            if (value := view.last.get(f"{rows}_{metric}")) is not None:
                told = f"{value:.1%}" if metric == "accuracy" else f"{value:.4g}"
                return [(figures.METRICS[metric], told, f"On {words}.")]
    return []


def _certificate_cell(view: JobView) -> tuple[str, str, str]:
    solved = f"Up to {GOOD_CERTIFICATE:g}, a tenth of a percent, counts as solved."
    if view.machine.certificate == "stationarity":
        value = view.last["certificate"]
        words = (
            "The largest step that a minimisation over one entry (or row) would still make, relative to the "
            f"largest parameter, recomputed from the parameters alone. 0 at a stationary point. {solved}"
        )
        return "Certificate", "–" if math.isnan(value) else f"{value:.1e}", words
    # Not every epoch has one.
    found = next((r for r in reversed(view.history) if math.isfinite(r["certificate"])), None)
    epoch, value = (0, 1.0) if found is None else (found["epoch"], found["certificate"])
    least = None if found is None else found.get("least_certificate")
    words = (
        "The relative duality gap: the objective is at most this part of itself above the least possible, "
        f"proved from the parameters alone. 0 at the optimum. {solved} Computed every tenth epoch; this is "
        f"that of epoch {epoch:,}."
    )
    if least is None:
        return "Duality gap", f"{value:.1e}", words
    words = (
        "The relative duality gap: the objective is at most the second number of itself above the least that "
        "any bases reach, proved from the parameters alone. The steepest direction to another basis is known "
        "between two bounds: no better proof brings the gap below the first number. Computed every tenth "
        f"epoch; this is that of epoch {epoch:,}."
    )
    return "Duality gap", _interval(least, value), words


def _interval(least: float, most: float) -> str:
    """Return both ends of a gap in percent, once where they look alike."""
    ends = [f"{100 * end:.0f}" if most >= 0.1 else f"{100 * end:.2g}" for end in (least, most)]
    return f"{'–'.join(dict.fromkeys(ends))} %"


# Six numbers in one row, whose digits stay in place while they change.
_NUMBERS_STYLE = """<style>
.st-key-train_numbers [data-testid="stMetricValue"] {
  font-size: 1.4rem; line-height: 1.4; font-variant-numeric: tabular-nums;
}
.st-key-train_numbers [data-testid="stMetricLabel"] p { font-size: 0.8rem; white-space: nowrap; }
</style>"""


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


# ------------------------------------------------------------------------------------------------- curves


def _curves(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="train_axes"):
        widgets.param(
            settings,
            _axis(history),
            "Curves against",
            labels={"used_bases": "Bases", "epoch": "Epochs", "seconds": "Seconds"},
        )
        names = figures.metric_names(history)
        if settings["metric"] not in names:
            settings.set(metric=names[0])
        widgets.control(
            settings,
            "metric",
            st.segmented_control,
            "Prediction measured by",
            names,
            format_func=figures.METRICS.__getitem__,
            required=True,
        )
        widgets.param(settings, "parts", "Parts of the objective")
    live, x = _live(view, settings), settings[_axis(history)]
    left, right = st.columns(2)
    notation = view.machine.notation
    with left:
        st.markdown("**Objective**")
        made = changed_words(view.experiment, view.epoch)
        figure = figures.objective(
            with_jumps(history, view.experiment),
            x,
            parts=settings["parts"],
            terms={"penalty_p": notation.shrinkage_term, "penalty_sparse": notation.penalty_term},
            color=regularizer_color(view.experiment.regularizer),
            revision=view.id,
        )
        curves(
            _marked(figure, view, history, settings),
            key="train_objective",
            alt=f"The objective against {figures.X_TITLES[settings['x']]}. {made}".strip(),
            live=live,
        )
    with right:
        if "used_bases" in history:
            # Its bases join all features; they are what is chosen.
            _prediction(view, history, settings)
        else:
            _uses(view, history, settings)
    if made:
        st.caption(made)
    if view.stride > 1:
        st.caption(f"The run is long: every {view.stride}th epoch is kept, and the last.")


def _uses(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    st.markdown("**What the model uses**")
    parts = higher_order.interaction_columns(view.machine, history)
    counts = higher_order.true_counts(view.machine, view.dataset, bool(parts))
    figure = figures.sparsity(history, settings["x"], revision=view.id, parts=parts, **counts)
    curves(
        _marked(figure, view, history, settings),
        key="train_sparsity",
        alt="The numbers of used interactions and of used features.",
        live=_live(view, settings),
    )


def _axis(history: pd.DataFrame) -> str:
    """Return the setting that has the axis of the curves."""
    return "against" if "used_bases" in history else "x"


def _live(view: JobView, settings: Settings) -> bool:
    """Return whether the curves are about to change."""
    return view.state.active or (settings["motion"] and not view.state.ended)


def _marked(figure: go.Figure, view: JobView, history: pd.DataFrame, settings: Settings) -> go.Figure:
    """Mark the changes of strengths, and the epoch that is looked at."""
    words = change_words(view.experiment, view.epoch)
    return mark_epochs(figure, history, settings[_axis(history)], words, looked_at(view))


def _prediction(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    metric = settings["metric"]
    st.markdown("**Prediction**")
    figure = figures.prediction(history, metric, settings[_axis(history)], revision=f"{view.id}:{metric}")
    curves(
        _marked(figure, view, history, settings),
        key="train_prediction",
        alt=f"{figures.METRICS[metric]} on the training rows"
        + (" and the validation rows." if f"validation_{metric}" in history else "."),
        live=_live(view, settings),
    )
    if view.experiment.validation == 0:
        st.caption("No rows are kept out. Raise *Validation share* to see how the model generalises.")


def _quality(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    planted = "support_f1" in history or "support_f1_3" in history
    above = "used_bases" in history
    columns = st.columns(2) if planted and not above else [st.container()]
    if not above:
        with columns[0]:
            _prediction(view, history, settings)
    if planted:
        with columns[-1]:
            st.markdown("**Recovery of the truth**")
            figure = figures.recovery(history, settings[_axis(history)], revision=view.id)
            curves(
                _marked(figure, view, history, settings),
                key="train_recovery",
                alt="The F1 score of the support, and the estimation error.",
                live=_live(view, settings),
            )
            st.caption(_recovery_words(view))


def _confusion(view: JobView) -> None:
    """Draw how often each class is taken for each, once nothing moves."""
    dataset = view.dataset
    if view.state.active or view.parameters is None or dataset is None:
        return
    if dataset.task not in ("class", "ordinal") or not np.isfinite(view.parameters.P).all():
        return
    counts, rows = _confused(view.id, view.epoch, view.experiment, view.parameters)
    st.markdown(f"**Which classes are confused**, on the {rows} rows")
    chart(
        confusion(counts, dataset.class_labels or ()),
        key="train_confusion",
        alt=f"Confusion matrix of {len(counts)} classes: true classes against predicted ones.",
    )


@st.cache_data(max_entries=16, show_spinner=False)
def _confused(run: str, epoch: int, _experiment: Experiment, _parameters: Parameters) -> Any:
    del run, epoch
    return Run.prepare(_experiment).confusion(_parameters)


def _recovery_words(view: JobView) -> str:
    last, matrix = view.last, view.machine.notation.matrix
    said = []
    for key, kind in (("", " of pairs"), ("_3", " of triples")):
        if f"support_f1{key}" not in last:
            continue
        kind = kind if "support_f1_3" in last else ""
        exactly = "is exactly" if last[f"support_recovered{key}"] else "is not exactly"
        words = f"The support{kind} {exactly} the true one. F1 {last[f'support_f1{key}']:.3f}"
        if not key and "estimation_error" in last:
            words += f", estimation error {last['estimation_error']:.3f} ({matrix} = 0 has 1)"
        said.append(words + ".")
    return " ".join(said)
