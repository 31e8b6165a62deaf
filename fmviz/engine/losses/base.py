"""Base class of losses: the interface that the objective, the certificates and the solvers use."""

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
    """A loss ℓ(f, y) of a prediction f and a target y, with its parameters ([B] Table 1).

    Subclasses are frozen dataclasses that declare the class attributes, and their parameters by
    `fmviz.engine.settings.setting`, all of them numbers.

    Attributes
    ----------
    name, label, formula : str
        Identifier, display name, and LaTeX.
    task : {"regression", "binary"}
        A binary loss needs y in {-1, +1}.
    scalar : ScalarLoss
        Its jitable functions.
    convex : bool
        Whether it is convex in f.
    smooth : bool
        Whether its derivative in f is continuous. Where not, `derivative` is that of one side at a kink.
    lipschitz : float or None
        The Lipschitz constant of the derivative, where it depends on no parameter.
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
        """The parameters, in the order in which they are declared: the last argument of the functions."""
        return tuple(float(value) for value in self.settings.values())

    def mu(self) -> float | None:
        """Return the Lipschitz constant of the derivative in f, None where it has none."""
        return self.lipschitz

    @property
    def majoriser(self) -> Majoriser | None:
        """The weighted squares that majorise it, or None where it needs none."""
        return None

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray | None:
        """Return ℓ*(a, y) for arrays of shape (N,), None where no conjugate is declared."""
        conjugate = type(self).jitable_conjugate
        return None if conjugate is None else evaluate(conjugate, a, y, self.theta)

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ℓ(f, y) for arrays of shape (N,)."""
        return evaluate(self.scalar.value, f, y, self.theta)

    def derivative(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the derivative in f, for arrays of shape (N,)."""
        return evaluate(self.scalar.derivative, f, y, self.theta)

    def second(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the (generalised) second derivative in f, for arrays of shape (N,)."""
        return evaluate(self.scalar.second, f, y, self.theta)

    def probability(self, f: np.ndarray) -> np.ndarray | None:
        """Return the probability of the label +1 given scores f, shape (N,), or None where there is none."""
        return None

    def why_no_derivative(self, use: str) -> WhyNot | None:
        """Return why `use`, which needs a continuous derivative, is not possible, or None."""
        if self.smooth:
            return None
        return WhyNot(
            "kinks",
            f"{use} follows derivatives, and that of the {self.label.lower()} loss jumps: near a kink its "
            "steps would only shrink. Use reweighted, which minimises weighted squares in its place, or "
            "choose a loss without kinks, such as Huber.",
        )

    def why_no_mu(self, use: str) -> WhyNot | None:
        """Return why `use`, which needs the Lipschitz constant, is not possible, or None."""
        if self.mu() is not None:
            return None
        return WhyNot(
            "no_mu",
            f"{use} takes steps whose length follows from a bound on the curvature, and the derivative of "
            f"the {self.label.lower()} loss has no Lipschitz constant. Use APGD, PGD or nmAPGD, which find "
            "their steps by a line search, or choose another loss.",
        )

    def why_no_gap(self) -> WhyNot | None:
        """Return why no duality gap can certify a model with this loss, or None."""
        missing = "is not convex" if not self.convex else "has no convex conjugate in closed form"
        if self.convex and type(self).jitable_conjugate is not None:
            return None
        return WhyNot(
            "no_conjugate",
            f"This model's certificate is a duality gap, and the {self.label.lower()} loss {missing}. Choose "
            "another loss, or a factorization machine, whose certificate needs none.",
        )
