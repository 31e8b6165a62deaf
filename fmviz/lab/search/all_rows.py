"""A fit to all rows of a file that are encoded on disk, compared with simpler models on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from fmviz.engine.fit import Budget, Fit
from fmviz.engine.parameters import Parameters
from fmviz.engine.parts import Parts
from fmviz.engine.settings import SMALL
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.engine.solvers import LBFGS
from fmviz.engine.stopping import LOSS, HeldOut
from fmviz.engine.threads import Threads
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.chance import Beyond
from fmviz.lab.interpretation.effects import as_posterior
from fmviz.lab.runner import Run, prepare, problem_of
from fmviz.lab.search.averaged import Message, by_row
from fmviz.lab.search.contest import Contest
from fmviz.lab.search.findings import Findings, effects_of
from fmviz.lab.search.first_fit import FirstFit
from fmviz.lab.store.rows import StoredRows
from fmviz.tables.encoded import Encoded
from fmviz.typography import cell, duration

# The maximum number of held-out rows, and the number of epochs without a lower loss on them before the end.
_HELD_OUT, _PATIENCE = 200_000, 5
_LINEAR_EPOCHS = 30
# The chance that any column or pair without an effect is named.
_LEVEL = 0.01

FIRST = {"regularizer": "l2", "solver": LBFGS(scaled=True), "max_epochs": 100}
"""Settings of a first fit to all rows."""


def all_rows_fit(
    rows: StoredRows, title: str, experiment: Experiment, mapper: Threads, *, choose: bool = True
) -> Generator[Message, None, tuple[FirstFit, list[Findings], Encoded]]:
    """Fit columns alone and a machine to all rows but a held-out part, and compare them on that part.

    Of each fit, the epoch with the lowest loss on the held-out rows is taken. Parameters are saved after
    every epoch, and an interrupted fit continues from them.

    Parameters
    ----------
    rows : StoredRows
        The rows.
    title : str
        The name of the file.
    experiment : Experiment
        The settings; its `validation` is the share of held-out rows, at most 200,000.
    mapper : Threads
        See `fmviz.engine.problem.Problem`.
    choose : bool
        Whether λ_w and λ_p are ½/N, as for weights with a prior of the variance of the noise, and λ is 0.

    Yields
    ------
    Message
        Progress after every epoch.

    Returns
    -------
    FirstFit
        The fit, with the comparison.
    list of Findings
        The effects of every output, tested on the held-out rows.
    Encoded
        The held-out rows.
    """
    y, parts = rows.y, Parts(rows.sources, mapper=mapper)
    rng, size = np.random.default_rng(experiment.seed), min(_HELD_OUT, round(experiment.validation * len(y)))
    out = np.sort(rng.choice(len(y), max(1, size), replace=False))
    inside = np.ones(len(y), dtype=bool)
    inside[out] = False
    if choose:
        prior = 0.5 / (len(y) - out.size)
        experiment = replace(experiment, lambda_w=prior, lambda_p=prior, lambda_sparse=0.0)
    encoded = Encoded(parts.of_rows(out).collected(), y[out], out, 0, rows.target, rows.encoder)
    dataset = Dataset.of_table(encoded, title, title)
    y = replace(dataset, y=y).for_loss(experiment.loss).y
    held = prepare(dataset.for_loss(experiment.loss), experiment, np.arange(out.size))
    problem = problem_of(experiment, held.dataset, parts.of_rows(inside), y[inside])
    problem = replace(problem, mapper=mapper)
    del y
    linear = replace(problem, rank=0, lambda_sparse=0.0)
    fit = Fit.of(linear, LBFGS(scaled=True), Budget(_LINEAR_EPOCHS, tol=experiment.tol), init_scale=0.0, rng=rng)
    columns, _ = yield from _ended(fit, held, rows.folder, "Columns alone: ")
    start = problem.start(experiment.init_scale, rng)
    start = start.replace(w=columns.parameters.w, intercept=columns.parameters.intercept)
    budget = Budget(experiment.max_epochs, tol=experiment.tol)
    fit = Fit.of(problem, experiment.solver, budget, start=start, rng=rng)
    end, history = yield from _ended(fit, held, rows.folder, "")
    alone = problem.model.scores(held.problem.design, columns.parameters)
    scores = {
        "mean": np.broadcast_to(problem.y.mean(axis=0), alone.shape),
        "columns": alone,
        "pairs": problem.model.scores(held.problem.design, end.parameters),
    }
    good: Any = {name: by_row(held.problem.target, f) for name, f in scores.items()}
    contest = Contest(held, {}, good, None, 1)
    run = replace(held, problem=problem, validation=(held.problem.design, held.dataset.y))
    measured = held.predicted(held.problem.design, held.dataset.y, end.parameters, "validation")
    end = replace(end, metrics={**end.metrics, **measured})
    message = contest.message("pairs")
    last = FirstFit(experiment, run, end, history, message, {"message": message}, contest=contest)
    each = zip(range(problem.model.n_outputs_of(end.parameters)), alone.reshape(out.size, -1).T, strict=True)
    findings = [
        replace(
            _tested(held.of_output(c), problem.model.of_output(end.parameters, c)[1], f),
            candidates=pd.DataFrame(contest.errors),
            message=message,
            output=dataset.outputs[c] if dataset.outputs else "",
        )
        for c, f in each
    ]
    return last, findings, replace(encoded, target=encoded.target.for_loss(experiment.loss))


def _ended(
    fit: Fit, held: Run, folder: Path, before: str
) -> Generator[Message, None, tuple[Snapshot, list[dict[str, Any]]]]:
    """Run a fit with early stopping; return the best snapshot on the held-out rows, and all records."""
    problem, most = fit.problem, fit.budget.epochs
    key = sha256(repr([held.experiment.to_json(), problem.rank]).encode()).hexdigest()[:16]
    file, done, history = folder / f"fit_{key}.npz", 0, []
    if file.is_file():
        with np.load(file) as saved:
            done, start = int(saved["epoch"]), Parameters(saved["P"], saved["w"], saved["intercept"])
        fit = replace(fit, start=start, budget=replace(fit.budget, epochs=max(1, most - done)))
    stopping, begin = HeldOut(problem, held.problem, _PATIENCE), time.monotonic()
    fit = replace(fit, budget=replace(fit.budget, certify_every=None))
    for snapshot in fit.epochs():
        seconds = (time.monotonic() - begin) / (snapshot.epoch + 1)
        snapshot, enough = stopping.after(replace(snapshot, epoch=snapshot.epoch + done))
        history.append(snapshot.record())
        yield Message(
            f"{before}epoch {snapshot.epoch:,} of at most {most:,}: objective {cell(snapshot.objective)}, loss "
            f"on held-out rows {cell(snapshot.metrics[LOSS])}, {duration(seconds)} per epoch, at most "
            f"{duration(seconds * (most - snapshot.epoch))} left"
        )
        new = file.with_suffix(".new.npz")
        np.savez(new, epoch=snapshot.epoch, **dict(snapshot.parameters.items()))
        new.replace(file)
        if enough and snapshot.status is None:
            snapshot = replace(snapshot, status=Status(Reason.STOPPED, enough))
            break
    return stopping.best_of(problem, snapshot), history


def _tested(held: Run, parameters: Parameters, alone: np.ndarray) -> Findings:
    """Return the effects whose contributions to held-out rows agree with the residuals without them.

    These are the residuals of the mean for columns, and of the columns alone for pairs. If the contribution g
    of a pair to rows that were not used for the fit has nothing to do with the residuals r, then Σ g r has
    mean 0 and variance Σ g² r².
    """
    problem = held.problem
    effects = effects_of(held, as_posterior(parameters, problem.loss.task == "binary"))
    pairs = effects.pairs[["a", "b"]].itertuples(index=False, name=None)
    sets: list[tuple[int, ...]] = [*((a,) for a in effects.mains["column"]), *pairs]
    line, beyond = float(ndtri(1.0 - _LEVEL / len(sets))), []
    residuals = [-problem.slope(f) for f in (np.full_like(alone, problem.y.mean()), alone)]
    for columns in sets:
        r, g = residuals[len(columns) - 1], effects.contribution(columns)
        r, g = r - r.mean(), g - g.mean()
        score = float(g @ r / max(np.linalg.norm(g * r), SMALL))
        if score > line:
            share = float((g @ r) ** 2 / (g @ g) / (r @ r))
            beyond.append(Beyond(columns, score, share))
    beyond.sort(key=lambda each: (len(each.columns), -each.share))
    test = (
        f"Tested by {len(alone):,} held-out rows: whether contributions agree with the residuals of the "
        f"columns alone (columns: of the mean), at {100 * _LEVEL:g} % for all together."
    )
    return Findings(effects, tuple(beyond), (line, line), len(effects.columns), test=test)
