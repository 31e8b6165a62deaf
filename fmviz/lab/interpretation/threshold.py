"""λ_max of an experiment: the smallest strength without interactions."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from fmviz.engine.losses import LOSSES
from fmviz.engine.losses.majoriser import typical_size
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.shared_basis.output_layer import largest_strength
from fmviz.engine.starts.strengths import References
from fmviz.engine.starts.zero_threshold import why_no_threshold, zero_threshold
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, load_dataset

# Largest number of stored entries of X for which λ_max is computed.
_MOST_ENTRIES = 3_000_000
# Share of λ_max that leaves some bases on all data sets; large data sets may need less.
_BASIS_SHARE = 0.05


@lru_cache(maxsize=256)
def lambda_max(experiment: Experiment) -> tuple[float, float] | None:
    """Return an interval that contains λ_max, or None if there is none or the computation takes too long.

    See `fmviz.lambda_max`; with several outputs, the maximum over outputs. On a shared basis both ends are
    the largest known strength, see `fmviz.engine.shared_basis.path.largest_strength`.
    """
    return _interval_and_reference(_core(experiment))[0]


def emptying_strength(experiment: Experiment) -> float:
    """Return λ_max, or a reference strength for a regularizer without one.

    0 if neither is known, or no λ leaves an interaction.
    """
    interval, reference = _interval_and_reference(_core(experiment))
    return reference if interval is None else interval[1]


def following_data(experiment: Experiment) -> Experiment:
    """Return the suggested experiment with a λ relative to λ_max, unless the data set suggests a λ.

    Machines on a shared basis use a share of λ_max, since λ does not carry over from other models.
    """
    if not experiment.model.multi_output or experiment.model.name in experiment.dataset.spec.suited:
        return experiment
    top = emptying_strength(experiment)
    return replace(experiment, lambda_sparse=float(f"{_BASIS_SHARE * top:.1g}")) if top else experiment


def under_loss(experiment: Experiment, loss: str) -> Experiment:
    """Return the experiment with another loss, caps estimated from the data, and rescaled strengths.

    Half the squared residual has the slope r, a loss with kinks has slope 1: the equivalent of the strength λ
    is λ divided by a typical size of the target, rounded to one digit.

    Parameters
    ----------
    experiment : Experiment
        The current settings.
    loss : str
        The new loss.
    """
    spec = experiment.dataset.spec
    changed = replace(experiment, loss=LOSSES[loss], caps="auto")
    if not changed.finds_caps or spec.task not in ("regression", "binary"):
        changed = replace(changed, caps="given")
    before, after = (value.majoriser is None for value in (experiment.loss, changed.loss))
    if spec.task != "regression" or before == after:
        return changed
    unit = typical_size(load_dataset(experiment.dataset).y)
    factor = 1.0 / unit if before else unit
    weighed: dict[str, Any] = {name: float(f"{getattr(changed, name) * factor:.1g}") for name in STRENGTHS}
    return replace(changed, **weighed)


def _core(experiment: Experiment) -> Experiment:
    """Return the experiment with irrelevant settings normalised, as a cache key."""
    if experiment.model.no_threshold is None:
        # λ_max depends only on the regularizer as a function of W.
        kind = experiment.regularizer.in_weights
        same = next(penalty for penalty in PENALTIES.values() if penalty.in_weights == kind)
        experiment = replace(experiment, regularizer=same)
    return replace(
        experiment,
        rank=1,
        lambda_sparse=0.0,
        solver="auto",
        changes=(),
        max_epochs=1,
        tol=0.0,
        start="random",
        init_scale=0.01,
    )


@lru_cache(maxsize=64)
def _interval_and_reference(experiment: Experiment) -> tuple[tuple[float, float] | None, float]:
    """Return the interval of λ_max or None, and a reference strength if there is no interval."""
    try:
        problem = Run.prepare(experiment).problem
    except ValueError:
        return None, 0.0
    if problem.design.nnz > _MOST_ENTRIES:
        return None, 0.0
    if problem.model.multi_output and problem.penalty.row_norm is not None:
        top = largest_strength(problem)
        return (top, top), 0.0
    if problem.model.no_threshold is not None:
        return None, 0.0
    if why_no_threshold(problem.machines[0]) is not None:
        return None, References(problem).lambda_sparse
    # Quick bounds with several outputs.
    intervals = [zero_threshold(machine, tight=len(problem.machines) == 1) for machine in problem.machines]
    return (max(interval.lower for interval in intervals), max(interval.upper for interval in intervals)), 0.0
