"""Preparation and execution of experiments, and metrics of their snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from fmviz.engine import compatibility
from fmviz.engine.design import Design
from fmviz.engine.errors import StoppedError, whole_number
from fmviz.engine.fit import Budget, never
from fmviz.engine.interactions.weights import interactions_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem, predictions
from fmviz.engine.schedule import Schedule
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.starts.informed import fit_from, path_start, why_empty
from fmviz.engine.target import Target
from fmviz.lab.catalog import DataChoice
from fmviz.lab.datasets import Dataset
from fmviz.lab.datasets.drawn import pair_weights
from fmviz.lab.experiment import Experiment
from fmviz.lab.quotas import WeighedCache
from fmviz.lab.runs import found_caps
from fmviz.metrics import Predictions, measured
from fmviz.paths import grid, weakest
from fmviz.paths.path import path_solver

# Computing a duality gap takes many times as long as an epoch.
_GAP_EVERY = 10

Rows = tuple[Design, np.ndarray]
Split = tuple[Dataset, Rows, Rows | None, tuple[np.ndarray, np.ndarray]]

# Runs of a sweep, and repeated runs on a page, mostly use the same rows.
_splits: WeighedCache[Split] = WeighedCache(
    2, lambda split: sum(rows[0].n_bytes for rows in split[1:3] if rows)
)
# The cells of a sweep are fits of a few walks along λ.
_ends: WeighedCache[Parameters] = WeighedCache(64, lambda end: end.P.nbytes)
_datasets: WeighedCache[Dataset] = WeighedCache(8, lambda dataset: dataset.n_bytes)


def load_dataset(name: str | DataChoice, **params: Any) -> Dataset:
    """Load a data set by name or `DataChoice`, cached in memory."""
    source = DataChoice.of(name, params)
    return _datasets.get(source, source.load)


def dataset_of(experiment: Experiment) -> Dataset:
    """Load the data of an experiment, with the target as its loss needs it, cached in memory."""
    source, loss = experiment.dataset, experiment.loss
    if not loss.log_link:
        return load_dataset(source)
    return _datasets.get((source, "log link"), lambda: load_dataset(source).for_loss(loss))


def too_large(experiment: Experiment) -> str | None:
    """Return the reason why the parameters of a run do not fit into memory, or None."""
    if (d := _n_features(experiment)) is not None:
        try:
            experiment.model.check_size(d, experiment.rank)
        except ValueError as error:
            return str(error)
    return None


def cost_note(experiment: Experiment) -> str | None:
    """Return a note on the cost of a run if it is unusually high, else None."""
    if experiment.why_not() is not None or (d := _n_features(experiment)) is None:
        return None
    return compatibility.cost_note(experiment.formulation, d, experiment.rank, experiment.solver)


def _n_features(experiment: Experiment) -> int | None:
    """Return d if a run may be costly, else None; also None if the data are unavailable."""
    machine = experiment.model
    if machine.factorised and not machine.columnar and experiment.regularizer.exact_prox:
        return None  # Cheap in any case.
    try:
        return int(load_dataset(experiment.dataset).X.shape[1])
    except ValueError:
        return None  # Reported at the start of the run.


def _rows(dataset: Dataset, share: float, seed: int) -> Split:
    rows = train, held_out = split(len(dataset.y), share, seed, dataset.row_groups)
    if not held_out.size:
        return dataset, (Design(dataset.X), dataset.y), None, rows
    # Only training targets are contaminated.
    truth = dataset.y if dataset.true_y is None else dataset.true_y
    kept = (Design(dataset.X[held_out]), truth[held_out])
    return dataset, (Design(dataset.X[train]), dataset.y[train]), kept, rows


def problem_of(experiment: Experiment, dataset: Dataset, design: Design, y: np.ndarray) -> Problem:
    """Return the objective of an experiment on some rows of a data set."""
    return Problem.build(
        design,
        dataset.target_of(y),
        loss=experiment.loss,
        penalty=experiment.regularizer.for_features(dataset.groups),
        model=experiment.model,
        # Linear models, of rank 0, are not supported.
        rank=whole_number("rank", experiment.rank, 1, 10_000),
        lambda_w=experiment.lambda_w,
        lambda_p=experiment.lambda_p,
        lambda_sparse=experiment.lambda_sparse,
        fit_linear=experiment.fit_linear,
        fit_intercept=experiment.fit_intercept,
    )


@dataclass(frozen=True, eq=False)
class Run:
    """A prepared experiment: data, split and problem.

    Attributes
    ----------
    experiment : Experiment
        The settings.
    dataset : Dataset
        All data.
    problem : Problem
        The objective on the training rows.
    validation : (Design, ndarray) or None
        The validation rows.
    rows : (int ndarray, int ndarray)
        The indices of the training rows and of the validation rows in the data.
    schedule : Schedule
        The changes of strengths; training can add more.
    begin : Parameters, optional
        The start, if it was estimated together with caps.
    """

    experiment: Experiment
    dataset: Dataset
    problem: Problem
    validation: Rows | None
    rows: tuple[np.ndarray, np.ndarray]
    schedule: Schedule = field(default_factory=Schedule)
    begin: Parameters | None = None

    @classmethod
    def prepare(cls, experiment: Experiment) -> Run:
        """Load the data of an experiment and build its problem, with estimated caps for `caps` "auto"."""
        return cls.loaded(experiment).with_caps(find=partial(found_caps.find_cached, starts=False))

    @classmethod
    def loaded(cls, experiment: Experiment) -> Run:
        """Load and split the data and build the problem, without estimating caps; may raise ValueError."""
        if (reason := experiment.why_not()) is not None:
            raise ValueError(reason)
        share = experiment.validation
        key = experiment.dataset, experiment.loss.log_link, share, (experiment.seed if share else 0)
        dataset, train, held_out, rows = _splits.get(key, lambda: _rows(dataset_of(experiment), *key[2:]))
        problem = problem_of(experiment, dataset, *train)
        return cls(experiment, dataset, problem, held_out, rows, Schedule(experiment.changes))

    @property
    def caps_missing(self) -> bool:
        """Whether caps and a start must still be estimated."""
        return self.experiment.finds_caps and self.begin is None and self.problem.n_machines is None

    def with_caps(
        self,
        should_stop: Callable[[], bool] = never,
        find: Callable[..., tuple[Problem, Parameters | None]] = found_caps.find_cached,
    ) -> Run:
        """Return the run with caps estimated from its data, for `caps` "auto".

        Parameters
        ----------
        should_stop : callable
            Polled between epochs of the estimation.
        find : callable
            Estimates the caps, by default cached for all runs of the experiment.

        Raises
        ------
        StoppedError
            If `should_stop` returns true.
        """
        if not self.caps_missing:
            return self
        problem, begin = find(self.experiment, self.problem, should_stop)
        return replace(self, problem=problem, begin=begin)

    @property
    def designs(self) -> tuple[Design, ...]:
        """The training rows and the validation rows."""
        return self.problem.design, *(() if self.validation is None else self.validation[:1])

    @property
    def row_groups(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The groups of the training rows and of the validation rows, if the data have groups of rows."""
        groups = self.dataset.row_groups
        return (None, None) if groups is None else (groups[self.rows[0]], groups[self.rows[1]])

    def of_output(self, c: int) -> Run:
        """Return the run of one of several outputs; a run with a single output is returned unchanged."""
        if self.problem.n_machines is None:
            return self
        if (kept := self.validation) is not None:
            kept = kept[0], self.dataset.target_of(kept[1]).outputs[c].values
        return replace(
            self, dataset=self.dataset.of_output(c), problem=self.problem.machines[c], validation=kept
        )

    def snapshots(self, should_stop: Callable[[], bool] = never, **checkpoints: Any) -> Iterator[Snapshot]:
        """Train, and yield snapshots with metrics by `measure`.

        `checkpoints` holds the keywords ``resume``, ``keep`` and ``leave`` of `fmviz.engine.fit.iterate`.
        """
        budget = Budget(
            epochs=self.experiment.max_epochs,
            tol=self.experiment.tol,
            certify_every=_GAP_EVERY if self.problem.model.certificate == "gap" else 1,
        )
        run = self._with_start(should_stop, checkpoints.get("resume"))
        for snapshot in run.stream(budget, should_stop, **checkpoints):
            yield run._measured_snapshot(snapshot)

    def end(self, seconds: float | None = None) -> Snapshot:
        """Train and return only the last snapshot, with its metrics; optionally limit the solver seconds."""
        budget = Budget(self.experiment.max_epochs, seconds, self.experiment.tol, report_every=None)
        run = self._with_start(never, None)
        *_, last = run.stream(budget, never)
        return run._measured_snapshot(last)

    def _with_start(self, should_stop: Callable[[], bool], resume: Any) -> Run:
        """Return the run with its caps; a resumed run needs no start and can use cached caps."""
        if resume is not None and self.caps_missing:
            return replace(Run.prepare(self.experiment), schedule=self.schedule)
        return self.with_caps(should_stop)

    def _measured_snapshot(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its metrics, and a note if a converged fit has no interactions."""
        status = snapshot.status
        if status is not None and status.converged:
            problem = self.problem.at(**self.schedule.after(snapshot.epoch))
            if (why := why_empty(problem, snapshot.parameters)) is not None:
                status = replace(status, message=f"{status.message} {why}")
        return replace(
            snapshot, metrics={**snapshot.metrics, **self.measure(snapshot.parameters)}, status=status
        )

    def stream(
        self, budget: Budget, should_stop: Callable[[], bool], **checkpoints: Any
    ) -> Iterator[Snapshot]:
        """Train within a budget, and yield snapshots without metrics."""
        resume = checkpoints.pop("resume", None)
        run = self._with_start(should_stop, resume)
        experiment, problem, start = run.experiment, run.problem, run.begin
        # The split has a separate random stream: the start does not depend on it.
        rng = np.random.default_rng([experiment.seed, 1])
        solver, warm = experiment.solver, experiment.start == "warm"
        if warm:
            solver = path_solver(problem, solver)
        if resume is not None:
            # It has the parameters.
            start = problem.start(experiment.init_scale, rng)
        elif warm and start is None:
            start = run._warm_start(should_stop)
        fit = fit_from(
            "informed" if warm else experiment.start, problem, solver, experiment.init_scale, rng, start=start
        )
        fit = replace(fit, budget=budget, schedule=run.schedule, checkpoint=resume)
        return fit.epochs(should_stop, **checkpoints)

    def _warm_start(self, should_stop: Callable[[], bool]) -> Parameters:
        """Return the solution at the next weaker strength of the grid, like `fmviz.paths.walk`."""
        strength, problem, experiment = self.problem.lambda_sparse, self.problem, self.experiment
        first = weakest(problem)
        if not (below := [other for other in grid(first, max(first, strength)) if other < strength]):
            return path_start(problem, experiment.init_scale, np.random.default_rng([experiment.seed, 1]))
        own = replace(experiment, lambda_sparse=below[-1], changes=())
        before = replace(
            self, experiment=own, problem=problem.at(lambda_sparse=below[-1]), schedule=Schedule()
        )

        def end() -> Parameters:
            budget = Budget(own.max_epochs, None, own.tol, report_every=None)
            *_, last = before.stream(budget, should_stop)
            if should_stop():
                raise StoppedError
            return last.parameters

        # Runs of a file, or on all rows, use other data than their experiment names.
        return _ends.get((own, ref(problem.design)), end)

    # The start may overflow; the status reports it.
    @np.errstate(over="ignore", invalid="ignore")
    def measure(self, parameters: Parameters) -> dict[str, float]:
        """Return prediction metrics, and recovery metrics if the truth is known."""
        figures = self.predicted(self.problem.design, self.problem.y, parameters, "train")
        if self.validation is not None:
            figures |= self.predicted(*self.validation, parameters, "validation")
        model = self.problem.model
        used = model.union(parameters)
        by_order = {m: interactions_of(model, used, m) for m in model.orders}
        if len(by_order) > 1:
            figures |= {f"used_interactions_{m}": n for m, n in model.used_by_order(used).items()}
            figures |= {f"used_features_{m}": each.rows.size for m, each in by_order.items()}
        figures |= model.further_counts(parameters)
        if self.experiment.finds_caps and self.problem.n_machines is None:
            figures |= found_caps.caps_record(self.problem)
        each = [
            self._recovery(self.dataset.of_output(c), *model.of_output(parameters, c))
            for c in range(model.n_outputs_of(parameters))
        ]
        # Recovered in all outputs.
        return figures | {
            name: float((np.min if "recovered" in name else np.mean)([recovery[name] for recovery in each]))
            for name in each[0]
        }

    def _recovery(self, dataset: Dataset, model: Model, parameters: Parameters) -> dict[str, float]:
        """Return the recovery metrics of one output, if its truth is known."""
        recovered: dict[str, float] = {}
        truth, triples = dataset.truth, dataset.true_triples
        if truth is None and triples is None and dataset.true_pairs is None:
            return recovered
        by_order = {m: interactions_of(model, parameters, m) for m in model.orders}
        pairs: Parameters | None = parameters
        if model.factorised and not model.plain:
            pairs = Parameters.of_weights(by_order[2].matrix()) if 2 in by_order else None
        if pairs is not None:
            structure = truth_of(dataset)
            if truth is not None:
                recovered |= measured("weights", truth, pairs)
            if structure is not None:
                recovered |= measured("support", structure, pairs)
                recovered["support_recovered"] = float(recovered["support_f1"] == 1.0)
        if triples is not None and 3 in by_order:
            hit = sum(by_order[3].uses(triple) for triple in triples)
            size = by_order[3].n_used() + len(triples)
            recovered["support_f1_3"] = 2 * hit / size if size else 1.0
            recovered["support_recovered_3"] = float(2 * hit == size)
        return recovered

    def confusion(self, parameters: Parameters) -> tuple[np.ndarray, str]:
        """Return the confusion matrix, shape (C, C), and the kind of rows, "validation" or "training"."""
        known = self.validation
        design, y = (self.problem.design, self.problem.y) if known is None else known
        chosen = Target.of(self.dataset.target_of(y)).chosen(self.problem.model.scores(design, parameters))
        n = len(self.dataset.class_labels or ())
        counts = np.bincount(y.astype(int) * n + chosen, minlength=n * n).reshape(n, n)
        return counts, "training" if known is None else "validation"

    def predicted(self, design: Design, y: np.ndarray, parameters: Parameters, name: str) -> dict[str, float]:
        """Return the loss and the prediction metrics on some rows, with a prefix."""
        problem = self.problem
        f = predictions(problem.model, design, parameters, problem.mapper)
        target = Target.of(self.dataset.target_of(y))
        levels = self.dataset.levels if target.kind == "ordinal" else None
        risk = problem.on_rows(design, y).empirical_risk(f)
        known = Predictions(target, f, problem.loss.probability(f), levels, risk, problem.loss)
        return {f"{name}_{metric}": value for metric, value in measured(target.kind, known).items()}


def split(
    n: int, share: float, seed: int, row_groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and validation rows, both ascending, with at least one training row.

    Rows of the same group stay on the same side; the share then refers to groups.
    """
    groups = np.arange(n) if row_groups is None else row_groups
    order = np.random.default_rng([seed, 0]).permutation(np.unique(groups))
    inside = np.isin(groups, order[min(round(order.size * share), order.size - 1) :])
    return np.flatnonzero(inside), np.flatnonzero(~inside)


def pairs_matrix(dataset: Dataset) -> np.ndarray | None:
    """Return the (d, d) indicator matrix of the true pairs, or None if they are unknown."""
    pairs = dataset.true_pairs
    return None if pairs is None else pair_weights(dataset.X.shape[1], pairs)


def truth_of(dataset: Dataset) -> np.ndarray | None:
    """Return the true weights, or the indicators of the true pairs, or None."""
    return dataset.truth if dataset.truth is not None else pairs_matrix(dataset)


def prepare(
    dataset: Dataset, experiment: Experiment, train: np.ndarray, held_out: np.ndarray | None = None
) -> Run:
    """Return the run of an experiment on given data and rows.

    Raises
    ------
    ValueError
        If the loss does not fit the target, or the settings are incompatible.
    """
    loss, dataset = experiment.loss, dataset.for_loss(experiment.loss)
    unsuitable = loss.why_not_task(dataset.task != "regression", f"the target {dataset.target_name!r}")
    if unsuitable is not None:
        raise ValueError(unsuitable)
    X, y = dataset.X, dataset.y
    problem = problem_of(experiment, dataset, Design(X[train]), y[train])
    held_out = np.empty(0, dtype=int) if held_out is None else held_out
    kept = (Design(X[held_out]), y[held_out]) if held_out.size else None
    return Run(experiment, dataset, problem, kept, (train, held_out)).with_caps(find=found_caps.find)
