"""Replay the next epoch of a paused run step by step, with the formula of each update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmviz.engine.drive import chosen_solver
from fmviz.engine.epoch_trace import (
    HALVES,
    SWEEPS,
    Step,
    replay,
    steps_of_epoch,
    why_no_steps,
)
from fmviz.engine.parameters import Parameters
from fmviz.engine.solvers import Solver
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.typography import in_latex as _n

GRAINS = ("epoch", "block", "entry")
"""How much is moved at once: everything once, a row or a column of P (or half of an update), an entry."""
MOST_ENTRIES = 1_000
"""Entries of P, up to which they are stepped through one at a time."""
MOST_BLOCKS = 4_000
"""Entries of P, up to which its rows or columns are: every step is made anew in Python."""


@dataclass(frozen=True, eq=False)
class Inside:
    """The steps of an epoch.

    Attributes
    ----------
    epochs : int
        Epochs done before it.
    start : Parameters
        Where it begins.
    steps : tuple of Step
        All of its steps.
    stops : tuple of int
        How many steps are made after each step of the grain that is looked at.
    """

    epochs: int
    start: Parameters
    steps: tuple[Step, ...]
    stops: tuple[int, ...]

    def at(self, stop: int) -> Parameters:
        """Return the parameters after a number of stops."""
        done = self.stops[stop - 1] if stop else 0
        return replay(self.start, list(self.steps[:done]))

    def steps_of(self, stop: int) -> tuple[Step, ...]:
        """Return the steps of one stop, counted from 1."""
        return self.steps[self.stops[stop - 2] if stop > 1 else 0 : self.stops[stop - 1]]


def why_no_grain(experiment: Experiment, d: int, grain: str) -> str | None:
    """Return why this run cannot be stepped through at a grain, or None.

    Parameters
    ----------
    experiment : Experiment
        A run that can be made.
    d : int
        Its features.
    grain : str
        One of `GRAINS`.
    """
    if grain == "epoch":
        return None
    solver = _solver(experiment)
    if (reason := why_no_steps(experiment.machine, solver)) is not None:
        return reason
    label = solver.label
    if solver.name in HALVES:
        return f"{label} moves all entries at once: step by half of the update." if grain == "entry" else None
    if grain == "entry" and SWEEPS[solver.name] == "row":
        return f"{label} moves a whole row of P at once: step by row."
    size, most = d * experiment.rank, MOST_ENTRIES if grain == "entry" else MOST_BLOCKS
    if size > most:
        coarser = "by column" if grain == "entry" and size <= MOST_BLOCKS else "by epoch"
        return (
            f"P has {size:,} entries. Up to {most:,} are stepped through in this way: every step is made "
            f"anew outside the compiled sweep, and nobody could follow more. Step {coarser}, or take fewer "
            "columns or features."
        )
    return None


def block_name(experiment: Experiment) -> str:
    """Return the kind of a block of steps: "row", "column" or "half"."""
    solver = _solver(experiment).name
    if solver in HALVES:
        return "half"
    order = dict(experiment.solver_params).get("order", "auto")
    return "row" if SWEEPS.get(solver) == "row" or order in ("features", "mixed") else "column"


def look_inside(
    experiment: Experiment,
    parameters: Parameters,
    epochs: int,
    grain: str,
    memory: Mapping[str, Any] | None = None,
) -> Inside:
    """Replay the epoch after `epochs` as single steps.

    Parameters
    ----------
    experiment : Experiment
        A run for which `why_no_grain` has no reason.
    parameters : Parameters
        After `epochs` epochs.
    epochs : int
        How many are done.
    grain : {"block", "entry"}
        What a stop is.
    memory : mapping, optional
        What the solver remembers, see `fmviz.lab.background.job.Job.memory`; None where it starts anew.
    """
    # Runs of several outputs are not traced.
    (problem,) = Run.prepare(experiment).problem.at(**experiment.strengths(epochs)).machines
    started = max((change.epoch for change in experiment.changes if change.epoch <= epochs), default=0)
    steps = tuple(
        steps_of_epoch(
            problem,
            _solver(experiment),
            parameters,
            epochs=epochs - started,
            memory=memory,
        )
    )
    return Inside(epochs, parameters, steps, _stops(steps, grain))


def _solver(experiment: Experiment) -> Solver:
    return chosen_solver(experiment.formulation, experiment.solver, dict(experiment.solver_params))


def _stops(steps: Sequence[Step], grain: str) -> tuple[int, ...]:
    """Return the number of steps before each stop: every step, or where the row or column changes."""
    if grain == "entry":
        return tuple(range(1, len(steps) + 1))
    entries = [step for step in steps if step.kind == "entry"]
    by_rows = len(entries) > 1 and entries[0].j == entries[1].j

    def block(at: int) -> object:
        step = steps[at]
        if step.kind in ("bias", "weight"):
            return "linear"
        if step.kind == "entry":
            return step.j if by_rows else step.s
        return step.kind, at

    last = len(steps) - 1
    return tuple(at + 1 for at in range(len(steps)) if at == last or block(at) != block(at + 1))


# -------------------------------------------------------------------------------------------------- words


def headline(steps: Sequence[Step], names: Sequence[str]) -> str:
    """Describe which parameters a stop updates."""
    last = steps[-1]
    if len(steps) > 1:
        if last.kind in ("bias", "weight"):
            return "The bias and the linear weights"
        rows = {step.j for step in steps}
        return f"Row {names[last.j]} of P" if len(rows) == 1 else f"Column {last.s + 1} of P"
    return {
        "bias": "The bias",
        "weight": f"The linear weight of {names[last.j]}",
        "entry": f"The entry of {names[last.j]} in column {last.s + 1} of P",
        "row": f"The row of {names[last.j]} in P",
        "extrapolate": "Momentum: beyond the last point",
        "gradient": "First half: a gradient step on the loss alone",
        "prox": "Second half: the proximal operator of the regularizer",
        "back": "Momentum would raise the objective: back to the last point",
    }[last.kind]


def summary(steps: Sequence[Step]) -> str:
    """Count the parameters that several steps changed, and the zeros that appeared or disappeared."""
    moved = sum(step.moved for step in steps)
    to_zero = sum(int(((step.before != 0) & (step.after == 0)).sum()) for step in steps)
    from_zero = sum(int(((step.before == 0) & (step.after != 0)).sum()) for step in steps)
    return f"{moved:,} of {len(steps):,} moved, {to_zero:,} to exactly zero and {from_zero:,} away from it."


def formula(step: Step) -> tuple[str, str, str]:
    """Return a step's formula, the numbers that enter it, and the formula with them, all in LaTeX."""
    g, t, h, r = float(step.slope[0]), float(step.threshold[0]), step.bend, step.shrink
    before, after = float(step.before[0]), float(step.after[0])
    if step.kind == "bias":
        return (
            r"b \leftarrow b-\frac{g}{\mu}",
            rf"g={_n(g)},\ \mu={_n(h)}",
            rf"{_n(before)}-\frac{{{_n(g)}}}{{{_n(h)}}}={_n(after)}",
        )
    if step.kind == "weight":
        return (
            r"w_j \leftarrow w_j-\frac{g+r\,w_j}{h+r},\quad r=2\lambda_w",
            rf"g={_n(g)},\ h={_n(h)},\ r={_n(r)}",
            rf"{_n(before)}-\frac{{{_n(g + r * before)}}}{{{_n(h + r)}}}={_n(after)}",
        )
    if step.kind == "entry":
        return (
            r"p_{js} \leftarrow \frac{\operatorname{soft}(h\,p_{js}-g,\ t)}{h+r}",
            rf"h={_n(h)},\ g={_n(g)},\ t={_n(t)},\ r={_n(r)}",
            rf"\frac{{\operatorname{{soft}}({_n(h * before - g)},\ {_n(t)})}}{{{_n(h + r)}}}={_n(after)}",
        )
    if step.kind == "row" and step.by_norm:
        u = step.bend * step.before - step.slope
        size = float(np.sqrt(u @ u))
        factor = max(1.0 - t / size, 0.0) if size else 0.0
        return (
            r"p_j \leftarrow \max\!\Big(1-\frac{t}{\|u\|},0\Big)\frac{u}{h+r},\quad u=h\,p_j-g",
            rf"\|u\|={_n(size)},\ t={_n(t)},\ h={_n(h)},\ r={_n(r)}",
            rf"\max\Big(1-\frac{{{_n(t)}}}{{{_n(size)}}},0\Big)={_n(factor)}",
        )
    if step.kind == "row":
        return (
            r"p_{js} \leftarrow \frac{\operatorname{soft}(h\,p_{js}-g_s,\ t_s)}{h+r}\ \text{for every } s",
            rf"h={_n(h)},\ r={_n(r)},\ t_s\ \text{{from }}{_n(step.threshold.min())}"
            rf"\text{{ to }}{_n(step.threshold.max())}",
            "",
        )
    if step.kind == "gradient":
        theta = r"\theta \leftarrow \theta-\eta\,\nabla\mathrm{risk}(\theta)"
        return theta, rf"\eta={_n(1.0 / h)}", ""
    if step.kind == "prox":
        operator = r"P \leftarrow \operatorname{prox}_{\frac{\eta\lambda}{c}\Omega}\Big(\frac{P}{c}\Big)"
        return operator + r",\quad c=1+2\eta\lambda_p", rf"\eta={_n(1.0 / h)}", ""
    if step.kind == "extrapolate":
        return r"y = \theta_t+m\,(\theta_t-\theta_{t-1})", rf"m={_n(h)}", ""
    return r"y = \theta_t", "", ""


def meaning(step: Step) -> str:
    """Explain the result of a step in a sentence."""
    if step.kind in ("bias", "weight"):
        return "The minimum along this parameter; no regularizer makes it zero."
    if step.kind == "entry":
        u, t = abs(step.bend * step.before[0] - step.slope[0]), step.threshold[0]
        if step.after[0] == 0.0:
            became = "stays" if step.before[0] == 0.0 else "becomes"
            return (
                f"|h p − g| = {u:.3g} is at most the threshold t = {t:.3g}: the entry {became} exactly zero."
            )
        return f"|h p − g| = {u:.3g} exceeds the threshold t = {t:.3g}: the entry is not zero."
    if step.kind == "row":
        now, then = int((step.after == 0).sum()), int((step.before == 0).sum())
        return f"{now} of the row's {step.after.size} entries are zero now, {then} were before."
    return ""


def halves(step: Step, size: int) -> str:
    """Return how many of the `size` entries of P are zero before and after a half of an update."""
    before, after = ((x[:size] == 0).sum() for x in (step.before, step.after))
    return f"Zeros in P: {int(before):,} before, {int(after):,} after, of {size:,}."
