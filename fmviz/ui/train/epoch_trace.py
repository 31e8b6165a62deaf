"""Step through the next epoch of a paused run by rows, columns or entries of P."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from fmviz.engine.epoch_trace import Step
from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.job import Job, JobView
from fmviz.lab.background.task import TaskState
from fmviz.lab.interpretation import epoch_trace as lab
from fmviz.ui import widgets
from fmviz.ui.components.matrix_view import MAX_GRAM_FEATURES, FactorFrame, Mark, Panel, matrix_view
from fmviz.ui.components.matrix_view.model import largest_interaction
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

VIEW = (
    ParamSpec(
        "grain",
        "choice",
        "epoch",
        choices=lab.GRAINS,
        help="What one Step moves: all parameters once (an epoch), one row or column of P (of PGD and APGD: "
        "one half of the update), or one entry. At Slow, Play goes through these steps by itself.",
    ),
    ParamSpec("inside", "int", 0, 0, 10_000_000, help="The position inside the next epoch."),
    ParamSpec("motion", "bool", False, help="Whether the steps inside epochs go on by themselves."),
)
_NAMES = {"row": "Row", "column": "Column", "half": "Half"}
# With more features, pairs would be too small beside P.
_MOST_PAIRS = 128
_CACHE = "fmviz:train:inside_cache"
_MOVING = "fmviz:train:inside_moving"


def grain_names(job: Job | None) -> dict[str, str]:
    """Return the labels of the step sizes of a run."""
    block = "Row or column" if job is None else _NAMES[lab.block_name(job.experiment)]
    return {"epoch": "Epoch", "block": block, "entry": "Entry"}


def why_not(settings: Settings, view: JobView) -> str | None:
    """Return why the run cannot be stepped at the chosen grain, or None."""
    if view.dataset is None:
        return None
    if view.dataset.outputs and settings["grain"] != "epoch":
        return "Several machines are fitted side by side, and the steps inside an epoch are shown of one."
    return lab.why_no_grain(view.experiment, view.dataset.X.shape[1], settings["grain"])


def possible(settings: Settings, job: Job) -> bool:
    """Return whether the next epoch can be stepped through."""
    return _look(settings, job) is not None


def step(settings: Settings, job: Job) -> None:
    """Advance by one step of the chosen grain; after the last step of an epoch, run the epoch itself."""
    settings.set(inside=_next(settings["inside"], settings, job))


def _next(position: int, settings: Settings, job: Job) -> int:
    """Return the next position; at the end of an epoch, have the job run that epoch."""
    inside = _look(settings, job)
    if inside is not None and position < len(inside.stops):
        return position + 1
    job.step()
    return 0 if inside is None else 1


def begin_motion(settings: Settings) -> None:
    """Start slow motion at the present position."""
    st.session_state[_MOVING] = settings["inside"]
    settings.set(motion=True)


def end_motion(settings: Settings) -> None:
    """Stop slow motion at its present position."""
    if settings["motion"]:
        settings.set(motion=False, inside=_position(settings))


def tick(settings: Settings, job: Job) -> None:
    """Advance slow motion by one step; end it with the run."""
    if job.state is TaskState.PAUSED:
        st.session_state[_MOVING] = _next(_position(settings), settings, job)
    elif job.state.ended:
        settings.set(motion=False, inside=0)


def _position(settings: Settings) -> int:
    # In slow motion the position is not written to the URL: browsers record each change in their history.
    return int(st.session_state.get(_MOVING, 0) if settings["motion"] else settings["inside"])


def _look(settings: Settings, job: Job) -> lab.Inside | None:
    """Return the steps of the next epoch of a paused run, or None where they are not available."""
    view, grain = job.view(), settings["grain"]
    if grain == "epoch" or view.state is not TaskState.PAUSED or view.parameters is None:
        return None
    if why_not(settings, view) is not None or not np.isfinite(view.parameters.P).all():
        return None
    name = (view.id, view.epoch, view.experiment, grain)
    kept: tuple[object, lab.Inside] | None = st.session_state.get(_CACHE)
    if kept is None or kept[0] != name:
        kept = (name, lab.look_inside(view.experiment, view.parameters, view.epoch, grain, job.memory()))
        st.session_state[_CACHE] = kept
    return kept[1]


# ------------------------------------------------------------------------------------------------ drawing


def draw(settings: Settings, job: Job, view: JobView) -> None:
    """Draw the position inside the next epoch: the last update, and P and PPᵀ at this point."""
    if settings["grain"] == "epoch" or view.state.ended or view.dataset is None:
        return
    if (reason := why_not(settings, view)) is not None:
        st.info(plain(reason), icon=":material/zoom_out:")
        return
    inside = _look(settings, job)
    if inside is None:
        return
    stops = len(inside.stops)
    position = min(_position(settings), stops)
    if not settings["motion"] and settings["inside"] > stops:
        settings.set(inside=stops)
    with st.container(border=True, key="train_inside_box"):
        st.markdown(f"**Inside epoch {inside.epochs + 1:,}**")
        if settings["motion"]:
            st.progress(position / stops, text=f"Step {position:,} of {stops:,}")
        else:
            widgets.control(
                settings,
                "inside",
                st.slider,
                f"Step, of {stops:,}",
                0,
                stops,
                help="Drag, or use the arrow keys: forwards and back. Step and S go on, into the next epoch.",
            )
        left, right = st.columns([1.3, 1])
        steps = inside.steps_of(position) if position else ()
        with left:
            _matrices(view, inside, position, steps)
        with right:
            _words(view, inside, steps)


def _matrices(view: JobView, inside: lab.Inside, stop: int, steps: Sequence[Step]) -> None:
    here = inside.at(stop).P
    d = here.shape[0]
    ends = [inside.start.P, inside.at(len(inside.stops)).P]
    pairs = d <= _MOST_PAIRS
    assert view.dataset is not None
    letter = view.machine.notation.matrix
    panel = Panel(
        "",
        [FactorFrame(here, caption=f"{int((here == 0).sum()):,} of {here.size:,} entries are exactly zero")],
        factor_label=letter,
        gram_label=f"{letter}{letter}ᵀ",
    )
    if d > MAX_GRAM_FEATURES and pairs:
        return
    matrix_view(
        [panel],
        key="train_inside_matrix",
        show="both" if pairs else "factor",
        feature_names=view.dataset.feature_names,
        factor_scale=max(float(np.abs(P).max()) for P in ends) or None,
        gram_scale=(max(largest_interaction(P) for P in ends) or None) if pairs else None,
        max_height=300,
        mark=_mark(steps),
    )


def _mark(steps: Sequence[Step]) -> Mark | None:
    if not steps or steps[-1].kind not in ("entry", "row"):
        return None
    last = steps[-1]
    if len({step.j for step in steps}) > 1:
        return Mark("factor", -1, last.s)
    return Mark("factor", last.j, last.s if len(steps) == 1 and last.kind == "entry" else -1)


def _words(view: JobView, inside: lab.Inside, steps: Sequence[Step]) -> None:
    assert view.dataset is not None
    names = view.dataset.feature_names
    if not steps:
        st.caption(
            f"The parameters after epoch {inside.epochs:,}. Press **Step** or S: each step shows what moves, "
            "from where to where, and why."
        )
        return
    last = steps[-1]
    st.markdown(f"**{plain(lab.headline(steps, names))}**")
    if len(steps) > 1:
        st.caption(plain(lab.summary(steps)))
        return
    if last.before.size == 1:
        before, after = float(last.before[0]), float(last.after[0])
        same = "" if last.moved else " (stays)"
        st.markdown(f"{before:.5g} → **{after:.5g}**{same}")
    for line in filter(None, lab.formula(last)):
        st.latex(line)
    if last.kind in ("gradient", "prox", "extrapolate", "back"):
        st.caption(plain(lab.halves(last, inside.start.P.size)))
    else:
        st.caption(plain(lab.meaning(last)))
    if last.kind in ("entry", "row"):
        st.caption(
            "g: slope of the loss in what moves; h: its largest curvature; t: λ times the weight of its size "
            "in Ω; r: what all squares weigh."
        )
