"""Show fitted machines, paths and experiments in a notebook, or save them as a page."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.models import MODELS
from fmviz.estimators import OrdinalRegressor
from fmviz.estimators.base import ModelEstimator
from fmviz.figures import training as curves
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.thinned import Frame, Thinned
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import program
from fmviz.lab.store.table import title_of_settings
from fmviz.paths import PathPoint
from fmviz.report import Outcome, html, learned, page, picture_of
from fmviz.stage import Panel, module
from fmviz.stage.pictures import MOST_FRAMES, Picture, chart_of, rounded

_OUTPUTS = 6
_LISTED = 20
# Seconds between pictures of a run.
_PAUSE = 0.15


def show(x: Any) -> Any:
    """Show a fitted machine, a path or an experiment in a notebook: Jupyter, marimo or VS Code.

    Parameters
    ----------
    x : estimator, DataFrame, sequence of PathPoint or Experiment
        A fitted estimator; what `fmviz.regularization_path` returns or `fmviz.paths.iterate_path` yields,
        with a slider for λ; or an experiment, which is trained in a thread and seen live, with a slider for
        its epochs when it has ended. Closing the widget ends the training.

    Returns
    -------
    anywidget.AnyWidget
        The widget, with the picture in ``payload``.

    Raises
    ------
    ImportError
        If anywidget is not installed.
    TypeError
        If `x` is of another kind.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.show(fmviz.Experiment(dataset="planted_interactions"))  # doctest: +SKIP
    """
    stage = _widget()
    if not isinstance(x, Experiment):
        return stage(payload=_picture(x).reduced()[0].payload())
    widget = stage(payload=Picture(state=("Loading", "", "Loading the data …")).payload())
    # Under marimo, a thread of its own kind may speak to the browser.
    kind = getattr(sys.modules.get("marimo"), "Thread", threading.Thread)
    kind(target=_follow, args=(widget, x), daemon=True).start()
    return widget


def save(x: Any, file: str | Path) -> Path:
    """Save a fitted machine, a path or an experiment as a page that opens without a server or a network.

    Parameters
    ----------
    x : estimator, DataFrame, sequence of PathPoint or Experiment
        As for `show`; an experiment is trained first.
    file : str or Path
        The file of HTML, of at most 2 MB. Of many frames or features some are left out, which the page says.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TypeError
        If `x` is of another kind.

    Examples
    --------
    >>> import tempfile
    >>> import fmviz
    >>> X, y, _ = fmviz.datasets.make_sparse_interactions(60, d_true=4, b=2, d_noise=2, random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressor(rank=2, lambda_p=0.1, random_state=0).fit(X, y)
    >>> fmviz.save(machine, f"{tempfile.mkdtemp()}/machine.html").stat().st_size < 2_000_000
    True
    """
    file, x = Path(file), [*x] if isinstance(x, Iterator) else x
    if isinstance(x, Experiment):
        *_, outcome = _outcomes(x)
        text = html(outcome)
    else:
        text = _page(x)
    file.write_text(text, encoding="utf-8")
    return file


@cache
def _widget() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            'fmviz.show draws with anywidget, which is not installed: pip install "fmviz[notebook]". '
            "fmviz.save needs no such package."
        ) from error

    class Stage(anywidget.AnyWidget):
        _esm = module()
        payload = traitlets.Bytes().tag(sync=True)

    return Stage


# ------------------------------------------------------------------------------------- machines and paths


def _picture(x: Any) -> Picture:
    if isinstance(x, OrdinalRegressor):
        x = x.estimator_
    if isinstance(x, BaseEstimator) and hasattr(type(x), "interactions"):
        return _of_machine(x)
    # A part of the table of a path has lost its fits.
    points = getattr(x, "points", () if hasattr(x, "columns") or not isinstance(x, Iterable) else x)
    points = [*points]
    if not points or not all(isinstance(point, PathPoint) for point in points):
        raise TypeError(
            f"{type(x).__name__} is neither a fitted machine, a path nor an experiment. Take the last "
            "step of a pipeline; paths come from fmviz.regularization_path and fmviz.paths.iterate_path."
        )
    return _of_path(getattr(x, "model", MODELS["fm"]), points)


def _of_machine(machine: Any) -> Picture:
    check_is_fitted(machine)
    color = regularizer_color(str(getattr(machine, "regularizer", "")))
    names = getattr(machine, "feature_names_in_", [f"feature {j}" for j in range(machine.n_features_in_)])
    panels: list[Panel] = []
    for title, model, weights in islice(_outputs(machine), _OUTPUTS):
        panel, features, words = learned(model, [("", "", weights)], color, title)
        panels.append(panel)
    history = machine.history_.to_dict("records") if hasattr(machine, "history_") else []
    plots = {"Objective": curves.objective(color), "What the model uses": curves.uses()}
    charts = [chart_of(title, plot) for title, plot in plots.items() if len(history) > 1]
    return Picture(panels, [names[j] for j in features], charts, history, omitted=words)


def _outputs(machine: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the title, the model and the parameters of every output; of samples, their mean weights."""
    d = machine.n_features_in_
    if not isinstance(machine, ModelEstimator):
        P = np.asarray(machine.P_)
        for c, samples in enumerate(P.reshape(-1, *P.shape[-3:])):
            W = np.einsum("sik,sjk->ij", samples, samples, optimize=True) / len(samples)
            yield "Learned" if P.ndim == 3 else f"Output {c + 1}", MODELS["fm"], Thinned(W, d)
        return
    several = machine._fitted_model.n_outputs_of(machine._parameters) > 1
    for name in machine._fitted_target.output_names if several else [None]:
        model, parameters, *_ = machine.fit_of(name)
        alone = parameters.replace(P=parameters.P[:d], w=parameters.w[:d])
        yield str(name) if several else "Learned", model, alone


def _of_path(model: Any, points: Sequence[PathPoint]) -> Picture:
    rising = sorted(points, key=_strength)
    orders = {name: [p for p in rising if p.order == name] for name in dict.fromkeys(p.order for p in points)}
    colors = dict(zip(orders, (curves.ORANGE, curves.BLUE, curves.PURPLE), strict=False))
    panels = []
    for order, fits in orders.items():
        title = "Along λ" if len(orders) == 1 else f"Fits {order}"
        frames = [(f"λ = {_strength(p):.4g}", "", model.of_output(p.snapshot.parameters, 0)[1]) for p in fits]
        single = model.of_output(fits[0].snapshot.parameters, 0)[0]
        panel, features, words = learned(single, frames, colors[order], title)
        panels.append(panel)
    fits = next(iter(orders.values()))
    losses = [point.validation for point in fits]
    start = len(fits) // 2 if np.isnan(losses).all() else int(np.nanargmin(losses))
    charts = [
        {
            "title": title,
            "x": "λ",
            "xlog": _strength(fits[0]) > 0,
            "rows": [
                {
                    "zero": zero,
                    "log": not zero,
                    "top": 0.0,
                    "series": [
                        {
                            "name": order if len(orders) > 1 else "",
                            "color": colors[order],
                            "x": [*map(_strength, own)],
                            "y": [rounded(point.record()[column]) for point in own],
                        }
                        for order, own in orders.items()
                    ],
                }
            ],
        }
        for column, title, zero in (
            ("used_interactions", "Interactions", True),
            ("used_features", "Features", True),
            ("objective", "Objective", False),
            ("validation_loss", "Validation loss", False),
        )
        if np.isfinite([point.record()[column] for point in fits]).any()
    ]
    names = [f"feature {j}" for j in features]
    return Picture(panels, names, charts, along="values of λ", start=start, omitted=words)


def _strength(point: PathPoint) -> float:
    return point.lambda_sparse


def _page(x: Any) -> str:
    """Return the page of a machine, with its largest weights and settings, or of a path, with its table."""
    picture, cells = ("", _picture(x)), "Every cell is the weight of a pair of features"
    if not isinstance(x, BaseEstimator):
        tables = [("The fits", [point.record() for point in getattr(x, "points", x)])]
        return page("A path along λ", [f"{cells}; the slider moves λ."], [picture], tables=tables)
    settings = {name: value for name, value in x.get_params(deep=False).items() if value is not None}
    rows = x.interactions(top=_LISTED).to_dict("records") if hasattr(x, "interactions") else []
    for row in rows:
        if "feature_i" in row:
            verb = "rises" if row["weight"] > 0 else "falls"
            both = f"{row['feature_i']} and {row['feature_j']}"
            row["in words"] = f"For a unit of each of {both}, f {verb} by {abs(row['weight']):.3g}."
    messages = [getattr(getattr(x, "status_", None), "message", ""), f"{cells}."]
    tables = [("The largest weights", rows)]
    return page(type(x).__name__, messages, [picture], tables=tables, settings=settings)


# ------------------------------------------------------------------------------------------------ training


def _follow(widget: Any, experiment: Experiment) -> None:
    """Train, and show the run; what goes wrong is said in the widget."""
    sent = 0.0
    try:
        for outcome in _outcomes(experiment):
            if widget.comm is None or getattr(threading.current_thread(), "should_exit", False):
                return
            ended = outcome.message
            if not ended and time.monotonic() < sent + _PAUSE:
                continue
            words = f"Epoch {outcome.epoch:,} of at most {experiment.max_epochs:,}."
            state = ("Ended", "good", ended) if ended else ("Running", "going", words)
            shown = outcome if ended else replace(outcome, frames=outcome.frames[-1:])
            pictures = [p for o in shown.each()[:_OUTPUTS] if (p := picture_of(o, state=state)) is not None]
            if pictures:
                panels = [panel for picture in pictures for panel in picture.panels]
                picture = replace(pictures[0], panels=panels, turn=outcome.epoch + 1)
                widget.payload = picture.reduced()[0].payload()
            sent = time.monotonic()
    except Exception as error:
        widget.payload = Picture(state=("Failed", "bad", str(error)), turn=-1).payload()


def _outcomes(experiment: Experiment) -> Iterator[Outcome]:
    """Train, and yield how far it is; the last has a message."""
    run = Run.prepare(experiment)
    frames: list[Frame] = []
    records: list[dict[str, Any]] = []
    stride = 1
    for snapshot in run.snapshots():
        if len(frames) >= 2 * MOST_FRAMES:
            del frames[1::2]
            stride *= 2
        if frames and len(records) % stride:
            frames.pop()
        frames.append(Frame.of(snapshot))
        records.append(snapshot.record())
        yield Outcome(
            title_of_settings(experiment.to_dict(), snapshot.epoch),
            experiment,
            run.problem.model,
            "" if snapshot.status is None else snapshot.status.message,
            records,
            snapshot.parameters,
            run.dataset,
            program=program(experiment),
            frames=[*frames],
        )
