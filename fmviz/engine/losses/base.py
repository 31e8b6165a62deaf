"""Base class of losses: the interface for the objective, certificates and solvers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ..errors import WhyNot
from ..settings import SMALL, Bound
from .scalar import Scalar, ScalarLoss, evaluate

if TYPE_CHECKING:
    from .majoriser import Majoriser


@dataclass(frozen=True)
class Loss(Bound):
    """Loss ℓ(f, y) of a prediction f and a target y, with its parameters ([B] Table 1).

    Subclasses are frozen dataclasses that declare the class attributes and, by
    `fmviz.engine.settings.setting`, their numeric parameters.

    Attributes
    ----------
    name, label, formula : str
        Identifier, display name, and LaTeX.
    task : {"regression", "binary"}
        Binary losses need y in {-1, +1}.
    scalar : ScalarLoss
        Its jitable functions.
    convex : bool
        Whether it is convex in f.
    smooth : bool
        Whether its derivative in f is continuous. If not, `derivative` is one-sided at a kink.
        If it is continuous, but not Lipschitz continuous, the second derivative must be convex in f.
    lipschitz : float or None
        The Lipschitz constant of the derivative, if it depends on no parameter.
    needs : str
        The targets that it accepts, in words, if these are not all numbers.
    log_link : bool
        Whether f is the logarithm of the mean of y, which is then not standardized; otherwise, f is the mean
        or a score. Which y it accepts is stated by `needs` and `why_not_target`.
    jitable_conjugate : callable, optional
        The convex conjugate ℓ*(a, y) = sup_f a·f − ℓ(f, y) as a jitable function of (a, y, theta), infinite
        outside its domain.
    """

    noun: ClassVar[str] = "loss"
    label: ClassVar[str]
    formula: ClassVar[str]
    task: ClassVar[Literal["regression", "binary"]]
    scalar: ClassVar[ScalarLoss]
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    lipschitz: ClassVar[float | None] = None
    needs: ClassVar[str] = "numbers"
    log_link: ClassVar[bool] = False
    jitable_conjugate: ClassVar[Scalar | None] = None

    @cached_property
    def theta(self) -> tuple[float, ...]:
        """The parameters in the order of declaration: the last argument of the functions."""
        return tuple(float(value) for value in self.settings.values())

    def mu(self) -> float | None:
        """Return the Lipschitz constant of the derivative in f, None if it has none."""
        return self.lipschitz

    @property
    def majoriser(self) -> Majoriser | None:
        """The weighted squares that majorize it, or None if it is smooth."""
        return None

    @property
    def cap(self) -> float | None:
        """The maximum loss of a row, a parameter of capped losses; None for others."""
        return None

    def mean(self, f: np.ndarray) -> np.ndarray:
        """Return the predictions of y for scores f of any shape: e^f with a log link, otherwise f."""
        return np.exp(np.minimum(f, 700.0)) if self.log_link else f

    def score(self, mean: float) -> float:
        """Return the f whose prediction is `mean`."""
        return float(np.log(max(mean, SMALL))) if self.log_link else mean

    def why_not_target(self, y: np.ndarray) -> str | None:
        """Return why finite numbers y of any shape are no target of this loss, or None."""
        if self.task != "binary" or (labels := np.isin(y, (-1.0, 1.0))).all():
            return None
        return (
            f"y contains {y[~labels][0]:g}, but loss {self.name!r} needs labels -1 and +1; "
            "recode y, or choose the loss 'squared' or 'huber'."
        )

    def why_not_task(self, classes: bool, target: str) -> str | None:
        """Return why this loss does not suit classes, or else numbers, of a named target; or None."""
        if self.task == "binary" and not classes:
            return (
                f"The {self.label.lower()} loss needs classes, but {target} is numeric. Choose the squared "
                "or the Huber loss."
            )
        if self.log_link and classes:
            return (
                f"The {self.label.lower()} loss needs {self.needs}, but {target} has classes. Choose the "
                "logistic loss."
            )
        return None

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray | None:
        """Return ℓ*(a, y) for arrays of shape (N,), None if no conjugate is declared."""
        conjugate = type(self).jitable_conjugate
        return None if conjugate is None else evaluate(conjugate, a, y, self.theta)

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ℓ(f, y) for arrays of shape (N,)."""
        return evaluate(self.scalar.value, f, y, self.theta)

    def derivative(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the derivative in f, for arrays of shape (N,)."""
        return evaluate(self.scalar.derivative, f, y, self.theta)

    def second(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the (generalized) second derivative in f, for arrays of shape (N,)."""
        return evaluate(self.scalar.second, f, y, self.theta)

    def probability(self, f: np.ndarray) -> np.ndarray | None:
        """Return the probability of the label +1 given scores f, shape (N,), or None if undefined."""
        return None

    def why_no_derivative(self, use: str) -> WhyNot | None:
        """Return why `use`, which needs a continuous derivative, is not possible, or None."""
        if self.smooth:
            return None
        return WhyNot(
            "kinks",
            f"{use} follows derivatives, but that of the {self.label.lower()} loss is discontinuous: near a "
            "kink its steps would only shrink. Use reweighted, which minimizes weighted squares instead, or "
            "choose a smooth loss, such as Huber.",
        )

    def why_no_mu(self, use: str) -> WhyNot | None:
        """Return why `use`, which needs the Lipschitz constant, is not possible, or None."""
        if self.mu() is not None:
            return None
        return WhyNot(
            "no_mu",
            f"{use} needs a bound on the curvature for its step sizes, but the derivative of the "
            f"{self.label.lower()} loss has no Lipschitz constant. Use PCD, PBCD, APGD, PGD or nmAPGD, which "
            "choose their steps by a line search, or choose another loss.",
        )

    def why_no_gap(self) -> WhyNot | None:
        """Return why no duality gap can certify a model with this loss, or None."""
        missing = "is not convex" if not self.convex else "has no convex conjugate in closed form"
        if self.convex and type(self).jitable_conjugate is not None:
            return None
        return WhyNot(
            "no_conjugate",
            f"The certificate of this model is a duality gap, but the {self.label.lower()} loss {missing}. "
            "Choose another loss, or a factorization machine, whose certificate needs none.",
        )
