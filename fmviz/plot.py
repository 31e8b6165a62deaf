"""Plotly figures of fits, paths and runs, as on the dashboard's pages, and findings on fits.

A fit is a fitted estimator, a pipeline that ends in one, or a stored run. Names of features, columns and runs
are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.errors import finite_matrix, one_of, whole_number
from fmviz.engine.interactions.weights import PairWeights, pairs_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import ALL_PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.target import Target
from fmviz.estimators.base import ModelEstimator
from fmviz.estimators.bayesian import BayesianFM
from fmviz.estimators.fitting import checked_data
from fmviz.figures import comparison as comparisons
from fmviz.figures import effects as effect_figures
from fmviz.figures import operators as operator_figures
from fmviz.figures import pairs, strength_path
from fmviz.figures import training as curves
from fmviz.figures.palette import regularizer_color
from fmviz.figures.tabular import literal
from fmviz.lab.interpretation.effects import Effects, as_posterior
from fmviz.lab.interpretation.reading import strongest_features
from fmviz.lab.operators.study import EXPONENTS, VARIANTS, Study, study
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.averaged import LOG_ODDS
from fmviz.lab.search.findings import Findings, effects_of
from fmviz.lab.store import StoredRun, store
from fmviz.lab.store.lowest import Lowest, lowest
from fmviz.lab.store.table import title_of_run
from fmviz.metrics import COLUMNS, METRICS, Metric
from fmviz.report import ShownFindings, main_figure, pair_figure
from fmviz.tables.columns import FeatureColumn, NumberColumn
from fmviz.tables.encoder import TableEncoder

__all__ = ["comparison", "effects", "interactions", "operators", "path", "selection", "training"]

_FITS = "Pass a fitted estimator of fmviz, a pipeline that ends in one, or a stored run"
_COUNTED = ("used interactions", "used features")
_AXES = ("epoch", "seconds")


def interactions(fit: Any, *, top: int = 200, output: Any = None, dark: bool = False) -> go.Figure:
    """Draw the matrix of pair weights in feature order; unused pairs are empty.

    Parameters
    ----------
    fit : estimator, Pipeline or StoredRun
        The fit.
    top : int, default=200
        The maximum number of features drawn: those with the largest Σ |weight|.
    output : label or int, optional
        One of several outputs, by class or number (for a stored run, by number); by default the first.
    dark : bool, default=False
        Whether to use the colours for a dark background.

    Returns
    -------
    plotly Figure

    Raises
    ------
    ValueError
        If the model has no pairs, uses none, or an argument is out of range.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressor(random_state=0).fit(X, y)
    >>> fmviz.plot.interactions(machine, top=6).data[0].z.shape
    (6, 6)
    """
    most = whole_number("top", top, 2)
    weights, names = _pairs(fit, output)
    features, _ = strongest_features([weights], most)
    if not features.size:
        raise ValueError("This fit uses no pairs; there is nothing to draw. Fit with a smaller λ.")
    weight, used = weights.among(features, features)
    labels = [str(names[j]) for j in features]
    return effect_figures.surface(
        np.where(used, weight, np.nan),
        None,
        (labels, labels),
        (None, None),
        ("", ""),
        "weight",
        dark=dark,
    )


def effects(fit: Any, *columns: str, X: Any = None, output: Any = None, dark: bool = False) -> go.Figure:
    """Draw the effect of a column on the prediction, or the additional effect of a pair of columns.

    f = c + Σ_A h_A + Σ_{A<B} g_AB over columns A, B, as on the page Interactions: with v_A = Σ_{j∈A} p_j x_j
    and its mean m_A over the rows, g_AB = ⟨v_A − m_A, v_B − m_B⟩, and h_A is the part that depends on A
    alone, centred.

    Parameters
    ----------
    fit : estimator, Pipeline, StoredRun or findings
        A second-order factorization machine; a Bayesian one gets a 90 % band. After a `TableEncoder`, effects
        are those of the columns of its table, otherwise of the features. Or the result of `fmviz.findings`,
        which needs no `X`.
    *columns : str
        One column for h_A, two for g_AB; by default the pair whose g_AB varies most.
    X : table, array_like or sparse matrix of shape (N, d), optional
        Typical rows in the input format of the fit; for a stored run, the training rows by default.
    output, dark
        As for `interactions`.

    Returns
    -------
    plotly Figure
        A curve for a number, bars for categories; for a pair, a surface, or a curve for each of few
        categories.

    Raises
    ------
    ValueError
        If the model is not supported, X is missing, or a column does not exist.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressor(random_state=0).fit(X, y)
    >>> fmviz.plot.effects(machine, "0", "1", X=X).layout.xaxis.title.text
    '1'
    """
    known = fit.effects if isinstance(fit, Findings) else _effects(fit, X, output)
    names = [column.name for column in known.columns]
    places = [names.index(one_of("columns", name, names)) for name in map(str, columns)]
    if len(places) == 1:
        return main_figure(known, *places)
    if not places and len(names) > 1:
        places = known.pairs[["a", "b"]].iloc[0].tolist()
    if len({*places}) != 2:
        raise ValueError(f"columns = {columns!r} must be one or two distinct columns of {', '.join(names)}.")
    return pair_figure(known.surface(*places), known.unit, dark)


def findings(fit: Any, X: Any, y: Any, *, encoder: Any = None, output: Any = None) -> ShownFindings:
    """Return the effects of columns and pairs of columns in a fit, and which of them stand out from chance.

    Columns are tested by the residuals of the mean, pairs of columns by those of a linear model of the
    columns alone, beside random signs, at 1 % for all together.

    Parameters
    ----------
    fit : estimator, Pipeline
        A fitted second-order factorization machine, such as `FactorizationMachineRegressorCV` or
        `BayesianFMClassifier`, or a pipeline that ends in one. After a `TableEncoder`, findings are on the
        columns of its table, otherwise on the features.
    X : table, array_like or sparse matrix of shape (N, d)
        Rows in the input format of the fit, such as the training rows.
    y : array_like of shape (N,) or (N, m)
        Their targets, in the form that the fit takes.
    encoder : TableEncoder, optional
        The fitted encoder of a bare estimator; `X` is then the table.
    output : label or int, optional
        One of several outputs, by class or number; by default the first.

    Returns
    -------
    findings
        ``columns`` and ``pairs``, tables with sizes in the unit of the target (log-odds for two classes),
        sentences and what stands out; ``curve(column)`` and ``surface(first, second)``, tables of effects;
        ``sentences``; ``lines``, the chance lines of columns and of pairs; ``candidates``, empty, since
        only first fits compare candidates. Notebooks show it, ``save("page.html")`` writes a page, and
        `fmviz.plot.effects` draws its effects.

    Raises
    ------
    ValueError
        If the model is not supported, or `y` does not fit `X` and the estimator.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressor(random_state=0).fit(X, y)
    >>> fmviz.findings(machine, X, y).pairs[["first", "second"]].iloc[0].tolist()
    ['8', '9']
    """
    if isinstance(fit, StoredRun):
        raise ValueError("A stored run has its findings on the page Interactions; pass a fitted estimator.")
    fit = fit if encoder is None else make_pipeline(encoder, fit)
    effects = _effects(fit, X, output)
    *_, machine, output = _steps(fit, output)
    bayesian = isinstance(machine, BayesianFM)
    target = machine._target if bayesian else machine._fitted_target
    values = _targets(y, target, output, effects.X.shape[0])
    loss = ("squared" if target.kind == "real" else "logistic") if bayesian else machine._fitted_loss
    problem = Problem.build(machine._scale.apply(effects.X), values, loss=loss, rank=0)
    known = (values > 0).astype(float) if effects.log_odds else values
    comparable = effects.log_odds or (target.kind == "real" and not problem.loss.log_link)
    return ShownFindings.of(replace(effects, y=known) if comparable else effects, problem)


def _targets(y: Any, target: Target, output: Any, n: int) -> np.ndarray:
    """Return the targets of one output as numbers, -1 and 1 for classes; ValueError if y does not suit."""
    values = np.asarray(y)
    if values.shape[:1] != (n,):
        raise ValueError(f"y has shape {values.shape}, and X has {n:,} rows; pass the target of every row.")
    labels = target.labels
    if target.kind in ("binary", "class", "ordinal") and labels is not None:
        if (unknown := ~np.isin(values, labels)).any():
            classes = ", ".join(map(str, labels))
            raise ValueError(
                f"y contains {str(values[unknown][0])!r}; the classes of this fit are {classes}."
            )
        values = np.searchsorted(labels, values) * (2.0 if target.kind == "binary" else 1.0)
        values -= target.kind == "binary"
    elif target.kind == "several":
        values = np.where(values > 0, 1.0, -1.0)
    own = replace(target, values=Target.of(values).values)
    return own.outputs[0 if output is None else target.output(output)].values


def path(
    path: Any,
    metric: str = "used_interactions",
    against: str = "lambda_sparse",
    *,
    truth: Any = None,
) -> go.Figure:
    """Draw a column of a path against the strength or the used interactions, or the weights of pairs.

    Parameters
    ----------
    path : DataFrame, estimator, or mapping of str to these
        From `fmviz.regularization_path`, or an estimator with a ``path_``; several as a mapping from
        regularizer names, which determine the colours. Each order, strength λ_p and output has its own line.
    metric : str, default="used_interactions"
        The column; or "weights", the weights of the strongest pairs of one path against λ.
    against : {"lambda_sparse", "used_interactions"}
        The horizontal axis.
    truth : (d, d) array_like, optional
        The true weights of pairs: pairs with non-zero weights are drawn in colour, others in grey.

    Returns
    -------
    plotly Figure

    Raises
    ------
    ValueError
        If the column does not exist, or an item is not a path.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> table = fmviz.regularization_path(X, y, [0.2, 0.1, 0.05], lambda_p=0.1, random_state=0)
    >>> [trace.name for trace in fmviz.plot.path({"ti": table}, "loss").data]
    ['TI']
    """
    one_of("against", against, strength_path.X_TITLES)
    truth = None if truth is None else finite_matrix("truth", truth)
    if metric == "weights" and (points := getattr(path, "points", None)):
        points = sorted(points, key=lambda point: point.lambda_sparse)
        fits = [path.model.of_output(point.snapshot.parameters, 0) for point in points]
        every = np.arange(fits[0][1].w.shape[-1])
        return pairs.weights(
            [point.lambda_sparse for point in points],
            [pairs_of(*fit).among(every, every)[0] for fit in fits],
            [*map(str, every if path.names is None else path.names)],
            regularizer_color("ti"),
            truth=truth,
        )
    given = _several("path", path, "paths by name") if isinstance(path, Mapping) else {"": path}
    tables = []
    for name, item in given.items():
        table = getattr(item, "path_", item)
        if not isinstance(table, pd.DataFrame) or not {*strength_path.X_TITLES} <= {*table}:
            raise ValueError(
                f"path = {item!r} is not a path. Pass the result of fmviz.regularization_path, an estimator "
                "with path_, or a dict of these."
            )
        label = ALL_PENALTIES[name].label if name in ALL_PENALTIES else str(name)
        lines = pd.Series(label, table.index)
        for column, words in (("output", " {}"), ("order", " {}"), ("lambda_p", " λ_p {:.3g}")):
            if column in table and table[column].nunique() > 1:
                lines += table[column].map(words.format)
        for line, rows in table.groupby(lines, sort=False):
            kind = name if line == label else line
            tables.append(rows.assign(label=literal(line.strip()), regularizer=kind))
    table = pd.concat(tables)
    return strength_path.path(table, _metric(metric, table), x=against)  # type: ignore[arg-type]


def selection(frequencies: pd.DataFrame, at: float | None = None, *, truth: Any = None) -> go.Figure:
    """Draw selection frequencies: of all pairs at one λ, and of the most frequently selected ones along λ.

    Parameters
    ----------
    frequencies : DataFrame
        From `fmviz.selection_frequencies`.
    at : float, optional
        The λ of the matrix, rounded to the nearest one in the table; by default the middle one.
    truth : (d, d) array_like, optional
        The true weights of pairs: the names of true pairs are bold.

    Returns
    -------
    plotly Figure

    Raises
    ------
    ValueError
        If `frequencies` is not such a table, or no pair is ever selected.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> table = fmviz.selection_frequencies(X, y, [0.1, 0.2], halves=2, lambda_p=0.1, random_state=0)
    >>> fmviz.plot.selection(table, truth=W).data[0].z.shape
    (20, 20)
    """
    if not (names := getattr(frequencies, "attrs", {}).get("names")) or not len(frequencies):
        raise ValueError(
            "frequencies must be a table by fmviz.selection_frequencies with at least one selected pair; "
            "pass one for smaller strengths."
        )
    strengths = frequencies.columns.to_numpy(dtype=float)
    chosen = strengths[strengths.size // 2 if at is None else np.abs(strengths - at).argmin()]
    truth = None if truth is None else finite_matrix("truth", truth)
    parts = (
        pairs.frequency_matrix(frequencies[chosen], names),
        pairs.frequency_strip(frequencies, names, truth=truth),
    )
    figure = make_subplots(1, 2, subplot_titles=(f"At λ = {chosen:.4g}", "Along λ"), horizontal_spacing=0.2)
    for place, part in enumerate(parts, 1):
        figure.add_trace(part.data[0], 1, place)
        figure.update_xaxes(part.layout.xaxis, col=place)
        figure.update_yaxes(part.layout.yaxis, col=place)
    return curves.finish(figure, 340, 34)


def operators(
    P: Any, regularizers: Sequence[str] = ("l1", "l21", "ti", "cs"), count: str = "used interactions"
) -> go.Figure:
    """Draw the number of non-zero pairs or features after proximal operators on P, for λ = 2⁻⁷, …, 2⁷.

    Parameters
    ----------
    P : (d, k) array_like, estimator or StoredRun
        The matrix, or a fit with factors P.
    regularizers : sequence of str
        Regularizers with an exact operator; "ti_rows" is TI by rows.
    count : {"used interactions", "used features"}
        The quantity drawn.

    Returns
    -------
    plotly Figure

    Raises
    ------
    ValueError
        If a regularizer or the matrix does not exist.

    Examples
    --------
    >>> import fmviz
    >>> figure = fmviz.plot.operators([[3.0, 1.0], [1.0, 2.0], [0.5, 0.0]], ["l1", "ti"])
    >>> [int(trace.y[0]) for trace in figure.data]
    [3, 3]
    """
    one_of("count", count, _COUNTED)
    if isinstance(P, BaseEstimator | StoredRun):
        _, fit, output = _steps(P, None)
        P = fit.P_ if isinstance(fit, BayesianFM) else _parameters(fit, output)[1].P
    matrix = finite_matrix("P", P)
    studies = [
        study(matrix, VARIANTS[one_of("regularizers", name, VARIANTS)])
        for name in _several("regularizers", regularizers, "names of regularizers")
    ]
    return counts_figure(studies, count)[0]


def training(run: Any, x: str = "epoch") -> go.Figure:
    """Draw convergence, used features and interactions, errors and recovery; of several runs convergence.

    Convergence is F − F* and the certificate. F* is the lowest objective of the plotted runs or, for a stored
    run, of all stored runs of its problem; the figure states which.

    Parameters
    ----------
    run : estimator, StoredRun, iterable of Snapshot, or DataFrame
        A fit, the snapshots of a run (`fmviz.lab.runner.Run.snapshots`), or its records, such as
        ``history_``; or a dict of these by name for the same problem, for instance with different solvers.
    x : {"epoch", "seconds"}
        The horizontal axis.

    Returns
    -------
    plotly Figure

    Raises
    ------
    ValueError
        If `run` is not a run, or has no epoch.

    Examples
    --------
    >>> import fmviz
    >>> from fmviz.lab.runner import Run
    >>> run = Run.prepare(fmviz.Experiment(dataset="monks1", loss="logistic", max_epochs=5))
    >>> figure = fmviz.plot.training(run.snapshots())
    >>> figure.layout.xaxis.anchor, len(figure.data[0].x)
    ('y', 6)
    """
    one_of("x", x, _AXES)
    several = isinstance(run, list | tuple) and run and not isinstance(run[0], Snapshot)
    runs = _named(run) if several or isinstance(run, Mapping) else {"this run": run}
    histories = {literal(name): _history(each) for name, each in runs.items()}
    ends = {name: history.attrs["lowest"][-1] for name, history in histories.items()}
    first = min(ends, key=lambda name: ends[name].value)
    lines = []
    for name, history in histories.items():
        floors = [(each.after, each.value) for each in history.attrs["lowest"]]
        floors[-1] = floors[-1][0], ends[first].value
        color = regularizer_color(regularizer := history.attrs.get("regularizer", ""))
        lines.append((name, regularizer, history.assign(gap=curves.gap(history, floors))))
    if len(lines) > 1:
        figure = comparisons.overlay(lines, *curves.CONVERGENCE, x=x)  # type: ignore[arg-type]
    else:
        judged = (m for n, m in METRICS.items() if {f"train_{n}", f"validation_{n}"} & {*history})
        plots = [
            *curves.convergence(color, floors),
            *curves.uses(),
            *(curves.prediction(metric)[0] for metric in [*judged][:1]),
            *curves.recovery(history),
        ]
        figure = curves.curves(history, plots, x)  # type: ignore[arg-type]
        figure.update_layout(height=110 + 130 * len(plots))
    words = ends[first].sentence.replace("this run", first)
    return figure.for_each_xaxis(
        lambda axis: axis.update(title_text=f"{axis.title.text}<br><sup>{words}</sup>"),
        lambda axis: axis.title.text,
    )


def comparison(
    runs: Mapping[str, Any] | Iterable[Any], metric: str = "objective", x: str = "epoch"
) -> go.Figure:
    """Draw one recorded quantity of several runs.

    Parameters
    ----------
    runs : mapping of str to runs, or iterable of runs
        As for `training`, keyed by name; unnamed runs are labelled by their titles if stored, else by number.
    metric : str, default="objective"
        The column.
    x : {"epoch", "seconds"}
        The horizontal axis.

    Returns
    -------
    plotly Figure

    Raises
    ------
    ValueError
        If no run has that column, or an item is not a run.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressor(lambda_p=0.1, lambda_sparse=0.1, random_state=0)
    >>> fits = {name: machine.set_params(regularizer=name).fit(X, y).history_ for name in ("ti", "cs")}
    >>> [trace.name for trace in fmviz.plot.comparison(fits, "used_features").data]
    ['ti', 'cs']
    """
    one_of("x", x, _AXES)
    histories = {literal(name): _history(run) for name, run in _named(runs).items()}
    lines = [(name, history.attrs.get("regularizer", ""), history) for name, history in histories.items()]
    return comparisons.overlay(
        lines,
        _metric(metric, [column for *_, history in lines for column in history]),
        x=x,  # type: ignore[arg-type]
    )


def counts_figure(studies: Sequence[Study], count: str, current: int | None = None) -> tuple[go.Figure, str]:
    """Return the figure of used pairs or features of prox(P) against λ, with a descriptive sentence."""
    d = studies[0].Q.shape[1]
    total = math.comb(d, 2) if count == "used interactions" else d
    lines = [
        (
            each.variant.label,
            regularizer_color(each.variant.penalty.name),
            each.interactions if count == "used interactions" else each.features,
            int(each.variant.id != each.variant.penalty.name),
        )
        for each in studies
    ]
    figure = operator_figures.counts_figure(EXPONENTS, lines, what=count, total=total, current=current)
    return figure, operator_figures.describe(EXPONENTS, lines, count, total)


# ------------------------------------------------------------------------------------------------- reading


def _several(what: str, given: Any, kind: str) -> Any:
    """Return a dict or a list of at least one item; otherwise raise ValueError."""
    if isinstance(given, Iterable) and not isinstance(given, Mapping | str | pd.DataFrame):
        given = [*given]
    if not isinstance(given, Mapping | list) or not given:
        raise ValueError(f"{what} = {given!r:.100} must be a sequence of one or more {kind}: write [...].")
    return given


def _named(runs: Any) -> dict[str, Any]:
    """Return runs by their names; without names stored runs have their titles, others numbers."""
    runs = _several("runs", runs, "runs, also by name")
    if isinstance(runs, Mapping):
        return {str(name): run for name, run in runs.items()}
    return {
        f"{title_of_run(run)} ({run.id[:4]})" if isinstance(run, StoredRun) else f"run {number}": run
        for number, run in enumerate(runs, 1)
    }


def _metric(name: str, columns: Iterable[str]) -> Metric:
    """Return the metric of an existing column."""
    known = {**METRICS, **COLUMNS}
    return known[one_of("metric", name, [column for column in known if column in {*columns}])]


def _history(run: Any) -> pd.DataFrame:
    """Return the records of a run, one row per epoch, with the regularizer in its attrs if known."""
    run = run[-1] if isinstance(run, Pipeline) else run
    if isinstance(run, StoredRun):
        trace, experiment = store().trace(run.id), run.experiment
        history = pd.DataFrame(trace)
        history.attrs["regularizer"] = experiment.regularizer.name
        history.attrs["lowest"] = lowest(experiment, trace, run.data_hash, run.id)
    elif isinstance(run, ModelEstimator | pd.DataFrame):
        history = run.copy() if isinstance(run, pd.DataFrame) else run.history_
    else:
        snapshots = [*run] if isinstance(run, Iterable) else [run]
        if not all(isinstance(snapshot, Snapshot) for snapshot in snapshots):
            raise ValueError(
                f"{run!r:.100} is not a run. {_FITS}, the snapshots of a run, or a DataFrame of their "
                "records."
            )
        history = pd.DataFrame([snapshot.record() for snapshot in snapshots])
    if not {"epoch", "objective"} <= {*history}:
        raise ValueError("This run has no recorded epoch with its objective; train it for at least one.")
    if "lowest" not in history.attrs:
        least, epoch = min(zip(history["objective"], history["epoch"], strict=True))
        history.attrs["lowest"] = [Lowest(-1, least, f"this run at epoch {epoch:,}")]
    return history


def _parameters(machine: Any, output: Any) -> tuple[Model, Parameters]:
    """Return the model and the parameters of one output of an estimator or a stored run."""
    if not isinstance(machine, StoredRun):
        return machine.fit_of(output)[:2]
    if (parameters := store().parameters(machine.id)) is None:
        raise ValueError(
            f"{title_of_run(machine)} ended before its first epoch and has no parameters to draw."
        )
    model = machine.experiment.model
    last = model.n_outputs_of(parameters) - 1
    return model.of_output(parameters, whole_number("output", output or 0, 0, last))


def _steps(fit: Any, output: Any = None) -> tuple[Any, Any, Any]:
    """Return the preceding steps of a pipeline, if any, the estimator or stored run, and the output."""
    before, machine = (fit[:-1], fit[-1]) if isinstance(fit, Pipeline) and len(fit) > 1 else (None, fit)
    if not isinstance(machine, ModelEstimator | BayesianFM | StoredRun):
        raise ValueError(f"{type(machine).__name__} cannot be drawn. {_FITS}.")
    if output is None and isinstance(machine, ModelEstimator):
        check_is_fitted(machine)
        output = machine._fitted_target.output_names[0]
    return before, machine, output


def _pairs(fit: Any, output: Any) -> tuple[PairWeights, Sequence[Any]]:
    """Return the weights of all pairs, and the names of the features."""
    before, machine, output = _steps(fit, output)
    if isinstance(machine, StoredRun):
        return pairs_of(*_parameters(machine, output)), load_dataset(machine.experiment.dataset).feature_names
    return machine.pair_weights(output), machine.names() if before is None else before.get_feature_names_out()


def _effects(fit: Any, X: Any, output: Any) -> Effects:
    """Return the effects of a fit, by table column or by feature."""
    before, machine, output = _steps(fit, output)
    scale = 1.0
    if isinstance(machine, BayesianFM):
        posterior, unit = machine.posterior_of(output), "f"
        if posterior.binary:
            scale, unit = LOG_ODDS, "log-odds"
    else:
        model, parameters = _parameters(machine, output)
        if not parameters.P.size:
            raise ValueError(
                "rank = 0: this fit has no interactions, only w_. Fit with a rank of at least 1."
            )
        if not model.plain:
            raise ValueError(
                "Effects of columns exist only for second-order factorization machines; this is "
                f"{model.label}. Its interactions() lists the products by weight."
            )
        posterior = as_posterior(parameters, False)
        if isinstance(machine, StoredRun):
            return effects_of(Run.prepare(machine.experiment).of_output(output or 0), posterior)
        unit = machine.unit
    if X is None:
        raise ValueError(
            "X is missing: effects are computed over typical rows. Pass some, such as X=X_train."
        )
    columns: Sequence[FeatureColumn]
    if before is not None and isinstance(before[0], TableEncoder) and len(before) == 1:
        columns = before[0].columns_
    else:
        names = machine.names() if before is None else before.get_feature_names_out()
        columns = [NumberColumn(name=str(name)) for name in names]
    P, w, intercept = machine._scale.in_units(posterior.P, posterior.w, posterior.intercept)
    posterior = replace(posterior, P=P, w=w, intercept=intercept)
    rows = checked_data(machine, X if before is None else before.transform(X), reset=False)
    return Effects(posterior, rows, tuple(columns), scale, unit)
