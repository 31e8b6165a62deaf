"""What a metric is: how it is computed, called, compared and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fmviz.engine.target import Target


@dataclass(frozen=True)
class Metric:
    """A figure of a fit, and all that pages, tables and pictures need to know about it.

    Attributes
    ----------
    name : str
        Its name in records; on rows it is preceded by "validation_" or "train_".
    label : str
        What readers see.
    function : callable or None
        Takes `Predictions`, or the true weights and the parameters, and returns the value, or None where it
        has none. None where a run records the figure by itself.
    on : tuple of str
        What it is measured on: kinds of `fmviz.engine.target.Target`, or what is known of the truth,
        "weights" or "support".
    better : {"smaller", "larger"}
        Which of two values is better.
    unit : {"", "target"}
        Whether it is in the unit of the target.
    axis : {"log", "linear"}
        The scale of its axis; a logarithmic one where its values are positive and far apart.
    limits : (float, float or None)
        Between what it lies.
    help : str
        Its definition, after "is".
    listed : bool
        Whether tables of results have it.
    """

    name: str
    label: str
    function: Callable[..., float | None] | None = None
    on: tuple[str, ...] = ()
    better: Literal["smaller", "larger"] = "smaller"
    unit: Literal["", "target"] = ""
    axis: Literal["log", "linear"] = "log"
    limits: tuple[float, float | None] = (0.0, None)
    help: str = ""
    listed: bool = True

    @property
    def on_rows(self) -> bool:
        """Whether it is measured on predictions of rows."""
        return not {"support", "weights"}.issuperset(self.on)

    def within(self, unit: tuple[float, str]) -> tuple[float, str]:
        """Return the factor that converts values to a target's unit, and the label with that unit."""
        scale, name = unit if self.unit == "target" else (1.0, "")
        return scale, f"{self.label}{name and f' (in {name})'}"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of some rows beside their target.

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
        The mean of the loss that is minimised.
    """

    target: Target
    f: np.ndarray
    p: np.ndarray | None = None
    levels: np.ndarray | None = None
    risk: float | None = None

    @cached_property
    def shares(self) -> np.ndarray | None:
        """The probabilities of several classes, if any."""
        return None if self.p is None else self.target.probabilities(self.p)

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The target and its predictions as numbers.

        Of ordered classes the expected level, or without probabilities that of the median; None where they
        have no levels.
        """
        if self.target.kind == "real":
            return self.target.values, self.f
        if self.levels is None:
            return None
        expected = (
            self.levels[self.target.chosen(self.f)] if self.shares is None else self.shares @ self.levels
        )
        return self.levels[self.target.values.astype(int)], expected
