"""Show fitted machines, paths and experiments in a notebook, or save them as a page."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.interactions.weights import Interactions
from fmviz.engine.models import MODELS
from fmviz.estimators import OrdinalRegressor
from fmviz.estimators.bayesian import BayesianFM
from fmviz.estimators.fitting import added
from fmviz.figures import training as curves
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.job import EveryNth
from fmviz.lab.background.thinned import Frame, Thinned
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import program
from fmviz.lab.store.table import title_of_settings
from fmviz.paths import PathPoint
from fmviz.report import UNION, USED, Outcome, html, learned, listed_settings, page, picture_of
from fmviz.stage import module
from fmviz.stage.pictures import MOST_FRAMES, Picture, chart_of, rounded

_OUTPUTS = 6
_LISTED = 20
# Seconds between pictures of a run.
_PAUSE = 0.15
_strength = attrgetter("lambda_sparse")


def show(x: Any) -> Any:
    """Show a fitted machine, a path or an experiment in a notebook: Jupyter, marimo or VS Code.

    Parameters
    ----------
    x : estimator, Pipeline, DataFrame, sequence of PathPoint or Experiment
        A fitted estimator or a pipeline that ends in one; the result of
        `fmviz.regularization_path` or the points of `fmviz.paths.iterate_path`,
        shown with a slider for λ; or an experiment, which is trained in a thread and shown live, then with a
        slider for its epochs. Closing the widget stops the training.

    Returns
    -------
    anywidget.AnyWidget
        The widget; ``payload`` contains the picture.

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
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            'fmviz.show requires anywidget, which is not installed: pip install "fmviz[notebook]". '
            "fmviz.save needs no such package."
        ) from error

    class Stage(anywidget.AnyWidget):
        _esm = module()
        payload = traitlets.Bytes().tag(sync=True)

    if not isinstance(x, Experiment):
        picture, words = _picture(x).reduced()
        return Stage(payload=replace(picture, state=("", "", words)).payload())
    widget = Stage(payload=Picture(state=("Loading", "", "Loading the data …")).payload())
    # Under marimo, only a thread of marimo's own class can send messages to the browser.
    kind = getattr(sys.modules.get("marimo"), "Thread", threading.Thread)
    kind(target=_follow, args=(widget, x), daemon=True).start()
    return widget


def save(x: Any, file: str | Path) -> Path:
    """Save a fitted machine, a path or an experiment as a standalone HTML page.

    The page needs neither server nor network. To publish it, put the file on any web space, such as GitHub
    Pages, attach it to an email, or embed it in another page by
    ``<iframe src="page.html" style="width: 100%; height: 46rem">``. In a frame, the page omits its
    heading and foot.

    Parameters
    ----------
    x : estimator, Pipeline, DataFrame, sequence of PathPoint or Experiment
        As for `show`; an experiment is trained first.
    file : str or Path
        The HTML file, of at most 2 MB. If there are too many frames or features, some are omitted, and the
        page states so.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TypeError
        If `x` is of another kind.
    FileNotFoundError
        If the folder does not exist.

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
    if not file.parent.is_dir():
        raise FileNotFoundError(
            f"file = {str(file)!r} is in a folder that does not exist: create {file.parent} first."
        )
    file.write_text(
        html(deque(_outcomes(x), maxlen=1)[0]) if isinstance(x, Experiment) else _page(x), encoding="utf-8"
    )
    return file


# ------------------------------------------------------------------------------------- machines and paths


def _unwrapped(x: Any) -> Any:
    """Return the machine inside a pipeline, with its feature names, or inside an ordinal regressor."""
    before, machine = (x[:-1] if len(x) > 1 else None, x[-1]) if isinstance(x, Pipeline) else (None, x)
    if isinstance(machine, OrdinalRegressor):
        check_is_fitted(machine)
        machine = machine.estimator_
    if before is not None and hasattr(type(machine), "interactions"):
        machine = copy(machine)
        machine.feature_names_in_ = before.get_feature_names_out()
    return machine


def _picture(x: Any) -> Picture:
    if isinstance(machine := _unwrapped(x), BaseEstimator) and hasattr(type(machine), "interactions"):
        return _of_machine(machine, type(x[-1] if isinstance(x, Pipeline) else x).__name__)
    # A slice of the table of a path no longer has the fits.
    points = [*getattr(x, "points", () if hasattr(x, "columns") or not isinstance(x, Iterable) else x)]
    if not points or not all(isinstance(point, PathPoint) for point in points):
        raise TypeError(
            f"{type(x).__name__} is neither a fitted machine, a path nor an experiment. Paths come from "
            "fmviz.regularization_path and fmviz.paths.iterate_path; of a part of their table give the fits, "
            "such as path.points[:2]."
        )
    return _of_path(getattr(x, "model", MODELS["fm"]), points, getattr(x, "names", None))


def _of_machine(machine: Any, name: str) -> Picture:
    check_is_fitted(machine)
    color = regularizer_color(str(getattr(machine, "regularizer", "")))
    names = getattr(machine, "feature_names_in_", [f"feature {j}" for j in range(machine.n_features_in_)])
    outputs = (machine._target if isinstance(machine, BayesianFM) else machine._fitted_target).output_names
    several = len(outputs) > 1
    given = [(str(c) if several else "Learned", *_fit_of(machine, c)) for c in outputs[:_OUTPUTS]]
    panels, features, words = learned(given, [color] * len(given))
    history = machine.history_.to_dict("records") if hasattr(machine, "history_") else []
    plots = {"Convergence, F* of this run": curves.convergence(color), USED + several * UNION: curves.uses()}
    charts = [chart_of(title, plot) for title, plot in plots.items() if len(history) > 1]
    if (penalty := getattr(machine, "_fitted_penalty", None)) is not None:
        name += f", {penalty.label}, λ = {machine.lambda_sparse_:.3g}"
    return Picture(
        panels,
        [names[j] for j in features],
        charts,
        history,
        omitted=f"{_first(outputs)} {words}".strip(),
        title=f"{name}: {machine.n_features_in_:,} features",
    )


def _fit_of(machine: Any, output: Any) -> tuple[Any, list[tuple[str, Any, int]]]:
    """Return the model and the fit of an output; for posterior samples, their mean weights."""
    if isinstance(machine, BayesianFM):
        W = Interactions.of(machine.posterior_of(output).mean_factors()).matrix()
        return MODELS["fm"], [("", Thinned(W, len(W)), 0)]
    (model, parameters, *_), d = machine.fit_of(output), machine.n_features_in_
    return model, [("", parameters.replace(P=parameters.P[:d], w=parameters.w[:d]), 0)]


def _first(outputs: Sequence[Any], most: int = _OUTPUTS) -> str:
    """Return a sentence about outputs that are not drawn."""
    return f"Only the first {most} of {len(outputs)} outputs are drawn." if len(outputs) > most else ""


def _of_path(model: Any, points: Sequence[PathPoint], given_names: Any) -> Picture:
    rising = sorted(points, key=_strength)
    orders = {name: [p for p in rising if p.order == name] for name in dict.fromkeys(p.order for p in points)}
    colors = dict(zip(orders, (curves.ORANGE, curves.BLUE, curves.PURPLE), strict=False))
    given = [
        (
            "Along λ" if len(orders) == 1 else f"Fits {order}",
            model.of_output(fits[0].snapshot.parameters, 0)[0],
            [(f"λ = {_strength(p):.4g}", model.of_output(p.snapshot.parameters, 0)[1], 0) for p in fits],
        )
        for order, fits in orders.items()
    ]
    panels, features, words = learned(given, [*colors.values()])
    fits = next(iter(orders.values()))
    if (m := model.n_outputs_of(fits[0].snapshot.parameters)) > 1:
        words = f"Output 1 of {m} is drawn; the curves are of all outputs together. {words}".strip()
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
    d, machine = len(fits[0].snapshot.parameters.P), model.label.removesuffix(", order 2")
    return Picture(
        panels,
        [f"feature {j}" if given_names is None else given_names[j] for j in features],
        charts,
        along="values of λ",
        start=start,
        omitted=words,
        title=f"{machine} along λ: {d:,} features, {len(points):,} fits",
    )


def _page(x: Any) -> str:
    """Return the page of a machine, with its largest weights and settings, or of a path, with its table."""
    machine, drawn = _unwrapped(x), _picture(x)
    picture = "", replace(drawn, title="")
    if not isinstance(x, BaseEstimator):
        return page(
            drawn.title,
            [],
            [picture],
            tables=[("The fits", [point.record() for point in getattr(x, "points", x)])],
        )
    orders = [*getattr(machine, "used_interactions_", [None])]
    tables = [
        (
            "The largest weights" + (len(orders) > 1) * f" of products of {m} features",
            table.assign(**{machine.step: added(table)}).to_dict("records"),
        )
        for m in orders
        for table in [machine.interactions(_LISTED, **({} if m is None else {"order": m}))]
    ]
    return page(
        drawn.title,
        [
            getattr(getattr(machine, "status_", None), "message", ""),
            f"Weights are {machine.step}. The sentences state the effect of each product beyond the effects "
            "of its features alone.",
        ],
        [picture],
        tables=tables,
        settings=listed_settings(
            {
                name: value
                for name, value in vars(machine).items()
                if value is not None
                and (name in machine.get_params(deep=False) or name.startswith("lambda_"))
            }
        ),
    )


# ------------------------------------------------------------------------------------------------ training


def _follow(widget: Any, experiment: Experiment) -> None:
    """Train and show the run; errors appear in the widget."""
    sent = 0.0
    try:
        for outcome in _outcomes(experiment):
            if widget.comm is None or getattr(threading.current_thread(), "should_exit", False):
                return
            ended = outcome.message
            if not ended and time.monotonic() < sent + _PAUSE:
                continue
            outputs = (outcome if ended else replace(outcome, frames=outcome.frames[-1:])).each()
            words = ended or f"Epoch {outcome.epoch:,} of at most {experiment.max_epochs:,}."
            words = f"{words} {_first(outputs)}".strip()
            state = ("Ended", "good", words) if ended else ("Running", "going", words)
            picture = picture_of(outputs[:_OUTPUTS], state=state, turn=outcome.epoch + 1, title=outcome.title)
            if picture is not None:
                widget.payload = picture.reduced()[0].payload()
            sent = time.monotonic()
    except Exception as error:
        widget.payload = Picture(state=("Failed", "bad", str(error)), turn=-1).payload()


def _outcomes(experiment: Experiment) -> Iterator[Outcome]:
    """Train and yield the progress; the last item has a message."""
    run = Run.prepare(experiment)
    frames: EveryNth[Frame] = EveryNth(2 * MOST_FRAMES)
    records: list[dict[str, Any]] = []
    for snapshot in run.snapshots():
        frames.add(snapshot.epoch, Frame.of(snapshot))
        records.append(snapshot.record())
        yield Outcome(
            title_of_settings(experiment.to_dict(), snapshot.epoch, heading=True),
            experiment,
            run.problem.model,
            "" if snapshot.status is None else snapshot.status.message,
            records,
            snapshot.parameters,
            run.dataset,
            program=program(experiment),
            frames=frames.items(),
        )
