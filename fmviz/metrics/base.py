"""Definition of a metric: its computation, names, comparison and drawing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fmviz.engine.losses import Loss
from fmviz.engine.target import Target


@dataclass(frozen=True)
class Metric:
    """A quantity measured on a fit, with the information that pages, tables and figures need.

    Attributes
    ----------
    name : str
        The name in records; prefixed by "validation_" or "train_" if measured on rows.
    label : str
        The displayed name.
    function : callable or None
        Takes `Predictions`, or the true weights and the parameters, and returns the value, or None if it is
        undefined. None if runs record the value themselves.
    on : tuple of str
        The data it applies to: kinds of `fmviz.engine.target.Target`, or the known truth, "weights" or
        "support".
    better : {"smaller", "larger"}
        The better direction.
    unit : {"", "target"}
        Whether it has the unit of the target.
    axis : {"log", "linear"}
        The scale of its axis; logarithmic for positive values of different magnitudes.
    limits : (float or None, float or None)
        The range of its values; None is unbounded.
    help : str
        The definition, to follow "is".
    listed : bool
        Whether it appears in tables of results.
    log_link : bool
        Whether it is defined only for losses with a log link.
    """

    name: str
    label: str
    function: Callable[..., float | None] | None = None
    on: tuple[str, ...] = ()
    better: Literal["smaller", "larger"] = "smaller"
    unit: Literal["", "target"] = ""
    axis: Literal["log", "linear"] = "log"
    limits: tuple[float | None, float | None] = (0.0, None)
    help: str = ""
    listed: bool = True
    log_link: bool = False

    @property
    def on_rows(self) -> bool:
        """Whether it is measured on predictions of rows."""
        return not {"support", "weights"}.issuperset(self.on)

    def within(self, unit: tuple[float, str]) -> tuple[float, str]:
        """Return the factor that converts values to the target's unit, and the label with the unit."""
        scale, name = unit if self.unit == "target" else (1.0, "")
        return scale, f"{self.label}{name and f' (in {name})'}"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for some rows, with the target.

    Attributes
    ----------
    target : Target
        The true target.
    f : (N,) or (N, m) ndarray
        The outputs.
    p : (N,) or (N, m) ndarray or None
        The probabilities of the outputs, if any.
    levels : (C,) ndarray, optional
        The numerical levels of ordered classes.
    risk : float, optional
        The mean of the minimized loss.
    loss : Loss, optional
        The minimized loss; without it, outputs are predictions.
    """

    target: Target
    f: np.ndarray
    p: np.ndarray | None = None
    levels: np.ndarray | None = None
    risk: float | None = None
    loss: Loss | None = None

    @cached_property
    def shares(self) -> np.ndarray | None:
        """The probabilities of several classes, if any."""
        return None if self.p is None else self.target.probabilities(self.p)

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The target and its predictions as numbers.

        For ordered classes, the prediction is the expected level or, without probabilities, the median level;
        None if the classes have no levels.
        """
        if self.target.kind == "real":
            return self.target.values, self.f if self.loss is None else self.loss.mean(self.f)
        if self.levels is None:
            return None
        expected = (
            self.levels[self.target.chosen(self.f)] if self.shares is None else self.shares @ self.levels
        )
        return self.levels[self.target.values.astype(int)], expected
