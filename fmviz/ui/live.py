"""What is seen of a run while it goes on: the status, the numbers, the curves, the matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine._jit import compiling
from fmviz.engine.pairs import ranked_pairs
from fmviz.engine.snapshot import ThinnedFactors
from fmviz.figures import training as figures
from fmviz.figures.palette import regularizer_color
from fmviz.lab.datasets import Dataset
from fmviz.lab.job import Frame, Job, JobState, JobView
from fmviz.lab.runner import pairs_matrix
from fmviz.lab.tiles import pooled_interactions, pooled_matrix, tile_labels
from fmviz.ui import shell, widgets
from fmviz.ui.charts import curves
from fmviz.ui.components.matrix_view import CodesFrame, FactorFrame, Panel, encode_codes, matrix_view
from fmviz.ui.state import Settings

POLL_SECONDS = 0.4
GOOD_CERTIFICATE = 1e-3
EXACT_FEATURES = 512
N_TILES = 128
TOP_PAIRS = 10
# What all pictures of the filmstrip may weigh on their way to the browser.
STRIP_BYTES = 2_500_000

_BADGES: dict[JobState, tuple[str, Any, str]] = {
    JobState.QUEUED: ("Queued", "gray", ":material/hourglass_top:"),
    JobState.RUNNING: ("Running", "blue", ":material/progress_activity:"),
    JobState.PAUSED: ("Paused", "orange", ":material/pause:"),
    JobState.FINISHED: ("Finished", "green", ":material/check:"),
    JobState.STOPPED: ("Stopped", "gray", ":material/stop:"),
    JobState.FAILED: ("Failed", "red", ":material/error:"),
    JobState.DIVERGED: ("Diverged", "red", ":material/trending_up:"),
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
    active = job.state.active

    def draw() -> None:
        view = job.view()
        if active and not view.state.active:
            # The controls above change with the state.
            st.rerun()
        _draw(view, settings, stale)

    shell.fragment(draw, run_every=POLL_SECONDS if active else None)()


def _draw(view: JobView, settings: Settings, stale: str | None) -> None:
    _status(view)
    if stale:
        st.warning(stale, icon=":material/sync_problem:")
    if view.state in (JobState.FAILED, JobState.DIVERGED):
        _error(view)
    if not view.history or view.dataset is None:
        if not view.state.ended:
            _loading(view)
        return
    history = pd.DataFrame(view.history)
    _numbers(view)
    _curves(view, history, settings)
    _matrix(view, view.dataset)
    _quality(view, history, settings)
    _pairs(view, view.dataset)


# ------------------------------------------------------------------------------------------------- status


def _status(view: JobView) -> None:
    label, color, icon = _BADGES[view.state]
    sentence = view.message
    if view.state is JobState.RUNNING and view.history:
        sentence = f"Epoch {view.epoch:,} of at most {view.experiment.max_epochs:,}."
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="train_status"):
        st.badge(label, color=color, icon=icon)
        if view.history and not view.state.active and math.isfinite(view.last["certificate"]):
            widgets.certificate_badge(float(view.last["certificate"]), GOOD_CERTIFICATE)
        if view.state not in (JobState.FAILED, JobState.DIVERGED):
            st.markdown(sentence, width="content")


def _error(view: JobView) -> None:
    st.error(view.message, icon=":material/error:")
    if view.state is JobState.FAILED and view.details:
        st.caption(
            "This is a defect of fmviz or of its surroundings. Other settings may go round it: change one, "
            "then press Play."
        )
        with st.expander("Details", icon=":material/info:"):
            st.code(view.details, language=None, wrap_lines=True)
    elif view.state is JobState.FAILED:
        st.caption("Change the setting that the sentence names, then press Play.")


def _loading(view: JobView) -> None:
    with st.container(border=True):
        if kernels := compiling():
            st.markdown(
                f"**Compiling** `{kernels[0]}`. The first run of a kind compiles its kernels, for some "
                "seconds; later runs start at once."
            )
        elif view.state is JobState.QUEUED:
            st.markdown("**Waiting** for a free worker: other runs are at work.")
        else:
            st.markdown("**Preparing**: the data is loaded and the first state evaluated.")
        st.caption(f"{view.elapsed:.1f} s so far. Stop ends it.")


# ------------------------------------------------------------------------------------------------ numbers


def _numbers(view: JobView) -> None:
    last = view.last
    d = view.dataset.X.shape[1] if view.dataset is not None else 0
    cells = (
        ("Epoch", f"{view.epoch:,}", "Sweeps over all parameters."),
        ("Objective", f"{last['objective']:.5g}", "Loss and penalties, the sum that is minimised."),
        (
            "Features",
            f"{last['used_features']:,}",
            f"Used features: rows of P that are not zero, of {d:,}.",
        ),
        (
            "Interactions",
            f"{last['used_interactions']:,}",
            f"Used interactions: pairs of rows that share a column in which both are not zero, of "
            f"{d * (d - 1) // 2:,}; counted exactly.",
        ),
        (
            "Certificate",
            "–" if math.isnan(last["certificate"]) else f"{last['certificate']:.1e}",
            "The largest step that a minimisation over one entry (or row) would still make, relative to the "
            "largest parameter, recomputed from the parameters alone. 0 at a stationary point. Up to "
            f"{GOOD_CERTIFICATE:g}, a tenth of a percent, counts as solved.",
        ),
        ("Solver time", _seconds(view.seconds), "Time in the solver; evaluating and drawing are left out."),
    )
    st.html(_NUMBERS_STYLE)
    with st.container(horizontal=True, gap="small", key="train_numbers"):
        for label, value, help_text in cells:
            st.metric(label, value, help=help_text, width=108)


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
        widgets.param(settings, "x", "Curves against", labels={"epoch": "Epochs", "seconds": "Seconds"})
        names = figures.metric_names(history)
        st.segmented_control(
            "Prediction measured by",
            names,
            format_func=figures.METRICS.__getitem__,
            required=True,
            **_bind_metric(settings, names),
        )
        widgets.param(settings, "parts", "Parts of the objective")
    left, right = st.columns(2)
    truth = _truth(view.dataset) if view.dataset is not None else None
    with left:
        st.markdown("**Objective**")
        curves(
            figures.objective(
                history,
                settings["x"],
                parts=settings["parts"],
                color=regularizer_color(view.experiment.regularizer),
                revision=view.id,
            ),
            key="train_objective",
            alt=f"The objective against {figures.X_TITLES[settings['x']]}.",
            live=view.state.active,
        )
    with right:
        st.markdown("**What the model uses**")
        counts: dict[str, Any] = {}
        if truth is not None:
            pairs = np.triu(truth != 0, 1)
            counts = {
                "true_interactions": int(pairs.sum()),
                "true_features": int((pairs | pairs.T).any(axis=1).sum()),
            }
        curves(
            figures.sparsity(history, settings["x"], revision=view.id, **counts),
            key="train_sparsity",
            alt="The numbers of used interactions and of used features.",
            live=view.state.active,
        )
    if view.stride > 1:
        st.caption(f"The run is long: every {view.stride}th epoch is kept, and the last.")


def _quality(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    planted = "support_f1" in history
    columns = st.columns(2) if planted else [st.container()]
    with columns[0]:
        metric = settings["metric"]
        st.markdown("**Prediction**")
        curves(
            figures.prediction(history, metric, settings["x"], revision=f"{view.id}:{metric}"),
            key="train_prediction",
            alt=f"{figures.METRICS[metric]} on the training rows"
            + (" and the validation rows." if f"validation_{metric}" in history else "."),
            live=view.state.active,
        )
        if view.experiment.validation == 0:
            st.caption("No rows are kept out. Raise *Validation share* to see how the model generalises.")
    if planted:
        with columns[1]:
            st.markdown("**Recovery of the truth**")
            curves(
                figures.recovery(history, settings["x"], revision=view.id),
                key="train_recovery",
                alt="The F1 score of the support, and the estimation error.",
                live=view.state.active,
            )
            st.caption(_recovery_words(view.last))


def _bind_metric(settings: Settings, names: list[str]) -> dict[str, Any]:
    if settings["metric"] not in names:
        settings.set(metric=names[0])
    return settings.bind("metric")


def _recovery_words(last: dict[str, Any]) -> str:
    words = (
        "The support is exactly the true one."
        if last["support_recovered"]
        else "The support is not exactly the true one."
    )
    words += f" F1 {last['support_f1']:.3f}"
    if "estimation_error" in last:
        words += f", estimation error {last['estimation_error']:.3f} (P = 0 has 1)"
    return words + "."


# ------------------------------------------------------------------------------------------------- matrix


def _truth(dataset: Dataset | None) -> np.ndarray | None:
    if dataset is None:
        return None
    return dataset.truth if dataset.truth is not None else pairs_matrix(dataset)


def _matrix(view: JobView, dataset: Dataset) -> None:
    if view.factors is None or not np.isfinite(view.factors.values).all():
        return
    st.markdown("**The interactions PPᵀ**")
    frames = _strip(view) if not view.state.active else ()
    scrub = len(frames) > 1
    learned = _panel(view, dataset, frames if scrub else (_last_frame(view),))
    panels = [learned]
    structure_only = None
    truth = _truth(dataset)
    if truth is not None:
        panel = _truth_panel(dataset, truth)
        if dataset.truth is not None:
            panels.append(panel)
        else:
            # Ones, which say nothing about the size of the weights: not on the same scale.
            structure_only = panel
    names = dataset.feature_names if isinstance(learned.frames[0], FactorFrame) else None
    options: dict[str, Any] = {"show": "gram", "feature_names": names, "columns": 2, "max_height": 400}
    # A key a run: a new one starts at its last epoch.
    driver = f"train_frame_{view.id}_{view.epoch}"
    if scrub:
        options["driver_key"] = driver
    if structure_only is None and len(panels) == 2:
        matrix_view(panels, key="train_matrix", **options)
    else:
        left, right = st.columns(2)
        with left:
            matrix_view(panels, key="train_matrix", **options)
        if structure_only is not None:
            with right:
                matrix_view([structure_only], key="train_truth", columns=1, max_height=400)
    if scrub:
        keys = [frame.key for frame in learned.frames]
        st.select_slider(
            "Look back: the matrix at an earlier epoch",
            keys,
            value=keys[-1],
            key=driver,
            help="Drag, or use the arrow keys. The picture follows while you drag.",
        )
    _notes(view)


def _notes(view: JobView) -> None:
    factors = view.factors
    assert factors is not None
    if factors.n_features > EXACT_FEATURES:
        text = (
            f"{factors.n_features:,} features are drawn as tiles; each has the colour of its largest "
            "interaction, and only a tile without any has the colour of zero."
        )
        if factors.n_dropped:
            text += f" The {factors.n_dropped:,} rows of least norm are left out of the picture."
        st.caption(text)
    vanished = np.abs(factors.values).max(initial=0.0) < 1e-6 * view.experiment.init_scale
    if vanished:
        how = "all but" if factors.rows.size else "exactly"
        st.info(
            f"**P is {how} zero.** That is a stationary point of every factorization machine, and a strong "
            "penalty drives a small start into it for good. Lower λ̃ or λₚ, or raise the scale of the start, "
            "and press Play.",
            icon=":material/lightbulb:",
        )


def _last_frame(view: JobView) -> Frame:
    assert view.factors is not None
    return Frame(view.epoch, view.last["used_interactions"], view.last["objective"], view.factors)


def _strip(view: JobView) -> tuple[Frame, ...]:
    """Return frames of finite factors, few enough for the wire."""
    frames = [f for f in view.frames if np.isfinite(f.factors.values).all()]
    if not frames or view.dataset is None:
        return ()
    d = view.dataset.X.shape[1]
    weight = 4 * d * view.experiment.rank if d <= EXACT_FEATURES else N_TILES**2
    most = max(2, STRIP_BYTES // weight)
    if len(frames) > most:
        kept = np.unique(np.linspace(0, len(frames) - 1, most).round().astype(int))
        frames = [frames[i] for i in kept]
    return tuple(frames)


def _panel(view: JobView, dataset: Dataset, frames: tuple[Frame, ...]) -> Panel:
    drawn = [_picture(frame.factors, f"epoch {frame.epoch:,}", _caption(frame)) for frame in frames]
    d = dataset.X.shape[1]
    labels = tile_labels(d, N_TILES) if d > EXACT_FEATURES else None
    return Panel(
        "Learned",
        drawn,
        color=regularizer_color(view.experiment.regularizer),
        row_labels=labels,
        col_labels=labels,
        factor_label="P",
        # Tiles say so by themselves.
        **({"gram_label": "PPᵀ"} if labels is None else {}),
    )


def _caption(frame: Frame) -> str:
    return f"epoch {frame.epoch:,}: {frame.used_interactions:,} interactions"


def _picture(factors: ThinnedFactors, key: str, caption: str) -> FactorFrame | CodesFrame:
    if factors.n_features <= EXACT_FEATURES:
        return FactorFrame(factors.dense(), key=key, caption=caption)
    tiles = pooled_interactions(factors.rows, factors.values, factors.n_features, N_TILES)
    codes, scale = encode_codes(tiles)
    return CodesFrame(codes, scale, key=key, caption=caption)


def _truth_panel(dataset: Dataset, truth: np.ndarray) -> Panel:
    d = truth.shape[0]
    n_pairs = int(np.triu(truth != 0, 1).sum())
    exact = d <= EXACT_FEATURES
    codes, scale = encode_codes(truth if exact else pooled_matrix(truth, N_TILES), grey_diagonal=exact)
    labels = dataset.feature_names if exact else tile_labels(d, N_TILES)
    known = dataset.truth is not None
    frame = CodesFrame(codes, scale, caption=f"{n_pairs:,} interactions")
    return Panel(
        "In truth" if known else "In truth (which pairs, not how much)",
        [frame],
        row_labels=labels,
        col_labels=labels,
        **({"gram_label": "W" if known else "pairs"} if exact else {}),
    )


# -------------------------------------------------------------------------------------------------- pairs


def _pairs(view: JobView, dataset: Dataset) -> None:
    if view.factors is None or view.parameters is None:
        return
    st.markdown("**The strongest interactions**")
    table = pairs_table(view.factors if view.state.active else view.parameters.P, dataset)
    if table.empty:
        st.caption("The model uses no interaction.")
        return
    st.dataframe(
        table,
        key="train_pairs",
        hide_index=True,
        height=35 * (TOP_PAIRS + 1) + 3,
        column_config={
            "Weight": st.column_config.NumberColumn(
                format="%.4g", help="⟨pᵢ, pⱼ⟩: what the product xᵢ·xⱼ adds to the prediction, per unit."
            ),
            "In truth": st.column_config.CheckboxColumn(help="Whether the pair truly interacts."),
        },
        alt="The pairs of features with the largest weights.",
    )
    if view.state.active and view.factors.n_dropped:
        st.caption(f"Among the {view.factors.rows.size:,} rows of largest norm, while the run goes on.")


def pairs_table(P: np.ndarray | ThinnedFactors, dataset: Dataset, top: int = TOP_PAIRS) -> pd.DataFrame:
    """Return the strongest pairs in words: the two features, their weight, and whether it is so in truth."""
    if isinstance(P, ThinnedFactors):
        i, j, weight = ranked_pairs(P.values, top)
        i, j = P.rows[i], P.rows[j]
    else:
        i, j, weight = ranked_pairs(P, top)
    names = np.asarray(dataset.feature_names, dtype=object)
    table = pd.DataFrame({"Feature": names[i], "with feature": names[j], "Weight": weight})
    truth = _truth(dataset)
    if truth is not None:
        table["In truth"] = truth[i, j] != 0
    return table
