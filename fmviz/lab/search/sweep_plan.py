"""Plans of sweeps: data sets × methods × grids of settings × seeds."""

from __future__ import annotations

import itertools
import json
import math
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fmviz.engine.models import get_model
from fmviz.lab.experiment import SPECS, Experiment, suggested
from fmviz.lab.files import read_input
from fmviz.lab.runs.program import opening
from fmviz.lab.values import plain, to_python

MOST_CELLS = 100_000

_MOST_BYTES = 10_000_000
_KNOWN = ("title", "suggested", "base", "dataset", "method", "grid", "seeds")
_EXAMPLE = (
    'title = "TI against CS"\nseeds = 5\n\n[[dataset]]\ndataset = "planted_interactions"\n\n[[method]]\n'
    'regularizer = "ti"\n\n[[method]]\nregularizer = "cs"\n\n[grid]\nlambda_sparse = [0.01, 0.1, 1.0]\n'
)


@dataclass(frozen=True)
class SweepPlan:
    """A sweep: every data set with every method, at every point of the grid, with every seed.

    Parameters
    ----------
    datasets : sequence of mapping
        Settings of `fmviz.Experiment` for the data, for instance ``{"dataset": "flights"}``.
    methods : sequence of mapping
        Settings for models and solvers, for instance ``{"regularizer": "ti"}``.
    grid : mapping of str to sequence
        Values of numeric settings; all combinations are fitted.
    seeds : sequence of int
        The seeds of start and split.
    base : mapping
        Settings of all fits.
    suggested : bool
        Whether other settings are the suggestions of the data set instead of the defaults.
    title : str
        A title.

    Raises
    ------
    ValueError
        If a setting is unknown or out of range, a combination is impossible, or the number of combinations is
        0 or above `MOST_CELLS`.

    Examples
    --------
    >>> plan = SweepPlan(
    ...     datasets=[{"dataset": "planted_interactions"}],
    ...     methods=[{"regularizer": "ti"}, {"regularizer": "cs"}],
    ...     grid={"lambda_sparse": [0.1, 1.0]},
    ...     seeds=range(5),
    ... )
    >>> len(plan.cells)
    20
    """

    datasets: Sequence[Mapping[str, Any]] = ({"dataset": "planted_interactions"},)
    methods: Sequence[Mapping[str, Any]] = ({},)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    base: Mapping[str, Any] = field(default_factory=dict)
    suggested: bool = False
    title: str = ""
    cells: tuple[Experiment, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("datasets", "methods"):
            given: Any = getattr(self, name)
            parts = given if isinstance(given, list | tuple) else [given]
            object.__setattr__(self, name, tuple(dict(_table(name[:-1], part)) for part in parts))
        grid = {name: tuple(_listed(name, values)) for name, values in _table("grid", self.grid).items()}
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "seeds", tuple(int(seed) for seed in self.seeds))
        object.__setattr__(self, "base", dict(_table("base", self.base)))
        for part in (self.base, self.grid, *self.datasets, *self.methods):
            if "seed" in part:
                raise ValueError(
                    f"seed = {part['seed']!r} is not a setting of a sweep; use seeds, a number of seeds or a "
                    "list of them."
                )
        object.__setattr__(self, "cells", self._cells())

    def _cells(self) -> tuple[Experiment, ...]:
        _checked_count(math.prod(map(len, (self.datasets, self.methods, self.seeds, *self.grid.values()))))
        points = [
            dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())
        ]
        cells = []
        for data, method, point in itertools.product(self.datasets, self.methods, points):
            # Feasibility does not depend on the seed.
            first = self._cell({**self.base, **data, **method, **point, "seed": self.seeds[0]})
            cells += [first, *(replace(first, seed=seed) for seed in self.seeds[1:])]
        return tuple(dict.fromkeys(cells))

    def _cell(self, settings: dict[str, Any]) -> Experiment:
        if self.suggested:
            name = str(settings.get("dataset", "planted_interactions"))
            own = {k.removeprefix("model_"): v for k, v in settings.items() if k.startswith("model_")}
            model = get_model(settings["model"], own) if "model" in settings else None
            settings = suggested(name, model).to_dict() | settings
        cell = Experiment.from_dict(settings)
        if (reason := cell.why_not()) is not None:
            words = ", ".join(f"{name} = {value}" for name, value in settings.items())
            raise ValueError(f"{words} cannot be fitted: {reason}")
        return cell

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dictionary, in the layout of a file."""
        return dict(
            plain(
                {
                    "title": self.title,
                    "suggested": self.suggested,
                    "base": self.base,
                    "dataset": self.datasets,
                    "method": self.methods,
                    "grid": self.grid,
                    "seeds": self.seeds,
                }
            )
        )

    def to_json(self) -> str:
        """Return the plan as JSON, which `from_file` reads."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> SweepPlan:
        """Return the plan of a dictionary by `to_dict` or from a file.

        ``seeds`` may be a number n for 0, …, n − 1; a grid may be ``{from = 1e-3, to = 1, count = 7}``,
        evenly spaced on a log scale; ``dataset`` and ``method`` may be single tables.
        """
        if unknown := set(given) - set(_KNOWN):
            raise ValueError(f"Unknown part {min(unknown)!r} of a sweep; available: {', '.join(_KNOWN)}.")
        seeds = given.get("seeds", 1)
        if isinstance(seeds, int) and not isinstance(seeds, bool):
            # Checked before the list is built, since a typo could make it huge.
            seeds = range(_checked_count(seeds))
        if not isinstance(seeds, range | list) or not all(type(seed) is int for seed in seeds):
            raise ValueError(f"seeds = {seeds!r}; give a number of seeds, or a list of them.")
        from_data = given.get("suggested", False)
        if not isinstance(from_data, bool):
            raise ValueError(f"suggested = {from_data!r}; give true or false.")
        return cls(
            datasets=given.get("dataset", {"dataset": "planted_interactions"}),
            methods=given.get("method", {}),
            grid=given.get("grid", {}),
            seeds=seeds,
            base=given.get("base", {}),
            suggested=from_data,
            title=str(given.get("title", "")),
        )

    @classmethod
    def from_text(cls, text: str) -> SweepPlan:
        """Parse a plan from TOML or JSON text; ValueError for anything else."""
        try:
            given = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
        except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"This is not a sweep ({error}). A small example:\n\n{_EXAMPLE}") from None
        return cls.from_dict(given)

    @classmethod
    def from_file(cls, path: str | Path) -> SweepPlan:
        """Read a plan from a TOML or JSON file."""
        try:
            # Some editors start a file with a byte order mark.
            text = read_input(path, _MOST_BYTES, "Declare a smaller sweep.").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"The sweep {str(path)!r} cannot be read: {error}.") from None
        return cls.from_text(text)


def _checked_count(count: int) -> int:
    if not 0 < count <= MOST_CELLS:
        raise ValueError(
            f"This sweep has {count:,} fits; the range is 1 to {MOST_CELLS:,}. Give at least one data set, "
            "method, seed and value of each grid, or split the sweep."
        )
    return count


def _table(name: str, part: Any) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        raise ValueError(f"{name} = {part!r}; give settings with their values, as in\n\n{_EXAMPLE}")
    return part


def _listed(name: str, values: Any) -> list[Any]:
    """Return the values of one axis of the grid."""
    if isinstance(values, Mapping):
        try:
            first, last, count = float(values["from"]), float(values["to"]), int(values["count"])
        except (KeyError, TypeError, ValueError):
            first = last = count = 0
        if len(values) != 3 or not (0 < first < np.inf and 0 < last < np.inf and count > 0):
            raise ValueError(
                f"grid.{name} = {dict(values)!r}; give a list of values, or from and to, positive, and count."
            )
        return [float(value) for value in np.geomspace(first, last, _checked_count(count))]
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        names = ", ".join(spec.name for spec in SPECS if spec.kind == "float")
        raise ValueError(f"grid.{name} = {values!r}; give a list of values. Settings with grids: {names}.")
    return list(plain(list(values)))


def sweep_program(plan: SweepPlan) -> str:
    """Return a program that runs a sweep and prints means over the seeds."""
    return (
        opening(
            (cell.dataset.name for cell in plan.cells),
            "from fmviz.lab.store import RunStore",
            "from fmviz.lab.search.sweep_plan import SweepPlan",
            "from fmviz.lab.search.sweep_run import carry_out",
            "from fmviz.lab.search.sweep_run import fits_table, main_metric, means_table",
        )
        + f"plan = SweepPlan.from_dict(\n{textwrap.indent(to_python(plan.to_dict()), '    ')}\n)\n"
        'store = RunStore("sweep.sqlite")  # stored fits are not repeated\n'
        "table = fits_table(plan, ((fit.index, fit.run) for fit in carry_out(plan, store)))\n"
        "store.close()\n"
        "metric = main_metric(table)\n"
        'print(f"mean and std of {metric}")\n'
        "print(means_table(table, list(plan.grid), metric).to_string(index=False))\n"
    )
