"""Several solvers on one problem: the runs of Figs. 8 and 9 of atarashi2021."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason
from fmviz.lab.papers.base import Desk, Row, Tables, rows_where
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.protocols.descent import SHARE, descend

RANK, INIT_SD = 30, 0.01
# What "much faster" means at least.
MUCH = 2.0
BATCH = ("APGD", "nmAPGD")
READINGS = (
    "The stochastic methods run as published, without the safeguard that fmviz has by default, and PSGD "
    "applies its operator to all of P at every step, as the paper's; of the initial steps the one with the "
    "lowest end is shown, of each start.",
    "A method that is faster than another comes close to the lowest objective of all before it, in the "
    f"median over the starts and in two readings of close: all but {SHARE:.0%} of the way from the start, "
    f"and to {SHARE:.0%} above it. Much faster means by a factor of {MUCH:g} at least. Where the two "
    "readings disagree, a statement is not settled. Times are looked at in steps of 15% after the first ten "
    "epochs.",
    "Fits end when no parameter changes by more than 1e-7 of the largest one, or after the seconds told with "
    "the settings, of processor time of their thread; the paper's figures have other axes.",
)


@dataclass(frozen=True)
class Racer:
    """A line of the figure.

    Attributes
    ----------
    label, solver : str
        Its name, and that of the solver.
    tries : sequence of mapping
        The solver's own parameters; of several the one with the lowest end is shown.
    """

    label: str
    solver: str
    tries: Sequence[Mapping[str, Any]] = ({},)


def racers(regularizer: str, eta0: Sequence[float], mini_batches: bool) -> list[Racer]:
    """Return the lines for TI ("ti") or CS ("cs")."""
    steps = [{"eta0": value, "monotone": False} for value in eta0]
    dense = [{**one, "operator": "dense"} for one in steps]
    coordinate = Racer("PCD", "pcd") if regularizer == "ti" else Racer("PBCD", "pbcd")
    found = [coordinate, Racer("APGD", "apgd"), Racer("nmAPGD", "nmapgd"), Racer("PSGD", "psgd", dense)]
    if mini_batches:
        found.append(Racer("MB-PSGD", "mb_psgd", steps))
    found.append(Racer("Katyusha", "katyusha", steps))
    if mini_batches:
        found.append(Racer("MB-Katyusha", "mb_katyusha", steps))
    return found


def runs(lines: Sequence[Racer]) -> int:
    """Return how many fits a race is."""
    return sum(len(one.tries) for one in lines)


def race(
    desk: Desk,
    problem: Problem,
    lines: Sequence[Racer],
    *,
    panel: str,
    seed: int,
    data: str,
    seconds: float,
    scale: float = 1.0,
) -> Iterator[str]:
    """Run all lines from one start; tables "trace" and "ends".

    Parameters
    ----------
    desk : Desk
        Whose tables; its settings have ``epochs`` and ``tol``.
    problem : Problem
        What all minimise.
    lines : sequence of Racer
        The methods.
    panel, seed : str, int
        What the rows are told apart by; the seed draws the start, too.
    data : str
        The name of the data in `Desk.data`.
    seconds : float
        Solver seconds of each.
    scale : float
        What objectives are multiplied by.
    """
    start = problem.start(INIT_SD, np.random.default_rng([seed, 1]))
    limits = {"epochs": desk.settings["epochs"], "seconds": seconds, "tol": desk.settings["tol"]}
    for line in lines:
        for number, own in enumerate(line.tries):
            label = f"{line.label}, {number}" if len(line.tries) > 1 else line.label

            def steps(line: Racer = line, own: Mapping[str, Any] = own, label: str = label) -> Iterator[str]:
                first: float | None = None
                run = descend(
                    desk,
                    problem,
                    line.solver,
                    start,
                    scale,
                    seed=seed,
                    solver_params=own,
                    panel=panel,
                    method=label,
                    **limits,
                )
                for last in run:
                    first = last.objective if first is None else first
                    if desk.due():
                        yield f"{panel}, start {seed + 1}: {line.label}, epoch {last.epoch}"
                if desk.should_stop():
                    return
                assert first is not None, "a run begins with a snapshot"
                assert last.status is not None, "the last snapshot says how the run ended"
                desk.row(
                    "ends",
                    panel=panel,
                    method=line.label,
                    label=label,
                    seed=seed,
                    eta0=own.get("eta0"),
                    objective=scale * last.objective,
                    epochs=last.epoch,
                    seconds=last.seconds,
                    diverged=last.status.reason is Reason.DIVERGED or last.objective > first,
                )

            if desk.should_stop():
                return
            yield f"{panel}, start {seed + 1}: {line.label}"
            key = key_of(panel, seed, line.label, dict(own), desk.data[data])
            yield from desk.once(key, steps)
            if desk.should_stop():
                return
            desk.done += 1
        _keep_best(desk, panel, seed, line)


def _keep_best(desk: Desk, panel: str, seed: int, line: Racer) -> None:
    """Leave in the table "trace" the run with the lowest end, under the name of its line."""
    tried = rows_where(desk.tables, "ends", panel=panel, seed=seed, method=line.label)
    best = min(tried, key=lambda row: (row["diverged"], row["objective"]))
    dropped = {row["label"] for row in tried} - {best["label"]}
    kept: list[Row] = []
    for row in desk.tables["trace"]:
        if (row["panel"], row["seed"]) == (panel, seed):
            if row["method"] in dropped:
                continue
            if row["method"] == best["label"]:
                row = {**row, "method": line.label}
        kept.append(row)
    desk.tables["trace"] = kept


def starts(tables: Tables, panel: str, lines: Sequence[Racer]) -> list[int]:
    """Return the starts from which all lines have ended."""
    ended: dict[int, int] = {}
    for row in rows_where(tables, "ends", panel=panel):
        ended[row["seed"]] = ended.get(row["seed"], 0) + 1
    return sorted(seed for seed, count in ended.items() if count == runs(lines))
