"""Base class of losses: the interface for the objective, certificates and solvers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ..errors import WhyNot
from ..settings import Bound
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
    lipschitz : float or None
        The Lipschitz constant of the derivative, if it depends on no parameter.
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
            f"{self.label.lower()} loss has no Lipschitz constant. Use APGD, PGD or nmAPGD, which choose "
            "their steps by a line search, or choose another loss.",
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
