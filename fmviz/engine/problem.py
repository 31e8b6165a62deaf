"""The objective: one place, one scaling convention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .design import Design
from .errors import finite_number, whole_number
from .losses import Loss, evaluate, get_loss
from .models import Model, get_model
from .regularizers import Regularizer, get_regularizer
from .snapshot import Parameters


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Minimise the regularized empirical risk of a model ([A] Eq. 2).

    (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ̃_p Ω(P)

    For the quadratic regression, model "qr", the last two terms are λ_p‖W‖_tr + λ̃‖W‖₁ ([A] Eq. 58): λ_p is
    λ_tr, and the one regularizer is "l1"; see `fmviz.engine.models.qr`. For the convex factorization machine,
    model "convex_fm", they are λ_p‖W‖_tr with W = P diag(λ) Pᵀ; see `fmviz.engine.models.convex`.

    Here c_n = 1, or c_n = N·weight_n / Σ weight where sample weights are given. No ½ stands before a λ,
    and the bias is not penalised.

    Parameters
    ----------
    design : Design
        X, shape (N, d).
    y : (N,) array_like
        The target; -1 and +1 for a binary loss.
    loss, regularizer, model : str
        Names from the registries.
    rank : int
        Columns of P, for each of its orders; not used where the model has no factors.
    lambda_w, lambda_p, lambda_sparse : float
        λ_w, λ_p and λ̃_p, all ≥ 0.
    fit_linear, fit_intercept : bool
        Whether there are w and a bias.
    regularizer_params : mapping
        The regularizer's own parameters.
    loss_param : float, optional
        The loss's own parameter, for instance Huber's δ.
    sample_weight : (N,) array_like, optional
        Weights ≥ 0, not all 0.
    model_params : mapping
        The model's own parameters, for instance the order of a higher-order machine.

    Raises
    ------
    ValueError
        If anything is out of range or does not fit together.
    """

    design: Design
    y: np.ndarray
    loss: Loss
    regularizer: Regularizer
    model: Model
    rank: int
    lambda_w: float
    lambda_p: float
    lambda_sparse: float
    fit_linear: bool
    fit_intercept: bool
    regularizer_params: Mapping[str, Any] = field(default_factory=dict)
    loss_param: float = 0.0
    sample_weight: np.ndarray | None = None

    @classmethod
    def build(
        cls,
        X: Any,
        y: Any,
        *,
        loss: str = "squared",
        regularizer: str = "ti",
        model: str = "fm",
        rank: int = 10,
        lambda_w: float = 0.0,
        lambda_p: float = 0.0,
        lambda_sparse: float = 0.0,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        regularizer_params: Mapping[str, Any] | None = None,
        loss_param: float | None = None,
        sample_weight: Any = None,
        model_params: Mapping[str, Any] | None = None,
    ) -> Problem:
        """Validate everything and return the problem; see the class for the parameters."""
        design = X if isinstance(X, Design) else Design(X)
        chosen_loss = get_loss(loss)
        chosen = get_regularizer(regularizer)
        theta = 0.0
        if chosen_loss.param is not None:
            spec = chosen_loss.param
            theta = spec.check(spec.default if loss_param is None else loss_param)
        elif loss_param is not None:
            raise ValueError(f"Loss {loss!r} has no parameter of its own; leave loss_param out.")
        chosen_model = get_model(model, **dict(model_params or {}))
        if (reason := chosen_model.why_not(chosen)) is not None:
            raise ValueError(reason)
        own = chosen.check(dict(regularizer_params or {}))
        rank = whole_number("rank", rank, 1, 10_000)
        chosen_model.check_size(design.n_features, rank)
        chosen_model.check_strengths(lambda_p, lambda_sparse)
        return cls(
            design,
            _target(y, design.n_samples, chosen_loss),
            chosen_loss,
            chosen_model.bind(chosen, own, rank),
            chosen_model,
            rank,
            finite_number("lambda_w", lambda_w, low=0),
            finite_number("lambda_p", lambda_p, low=0),
            finite_number("lambda_sparse", lambda_sparse, low=0),
            bool(fit_linear),
            bool(fit_intercept),
            own,
            theta,
            _weights(sample_weight, design.n_samples),
        )

    def at(self, **strengths: float) -> Problem:
        """Return the problem with other λ_w, λ_p or λ̃_p.

        Raises
        ------
        ValueError
            If one is out of range, or the model does not take them.
        """
        new: dict[str, Any] = {name: finite_number(name, x, low=0) for name, x in strengths.items()}
        found = replace(self, **new) if new else self
        self.model.check_strengths(found.lambda_p, found.lambda_sparse)
        return found

    @cached_property
    def weights(self) -> np.ndarray:
        """c_n as an array of length N, or an empty one where all are 1: what kernels take."""
        return np.empty(0) if self.sample_weight is None else self.sample_weight

    def mean(self, values: np.ndarray) -> float:
        """Return (1/N) Σ c_n values_n."""
        return float(np.mean(values) if self.sample_weight is None else np.mean(self.weights * values))

    def start(self, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return the model's starting point: P ~ N(0, init_scale²) entry by entry (W = 0), w = 0, bias 0."""
        return self.model.start(self.design.n_features, self.rank, init_scale, rng)

    def predict(self, parameters: Parameters) -> np.ndarray:
        """Return f(x_n) for the training rows, recomputed from the parameters."""
        return self.model.predict(self.design, parameters)

    def empirical_risk(self, f: np.ndarray) -> float:
        """Return (1/N) Σ c_n ℓ(f_n, y_n)."""
        return self.mean(evaluate(self.loss.value, f, self.y, self.loss_param))

    def parts(self, parameters: Parameters, f: np.ndarray | None = None) -> dict[str, float]:
        """Return the four parts of the objective: loss, penalty_w, penalty_p, penalty_sparse."""
        f = self.predict(parameters) if f is None else f
        return {"loss": self.empirical_risk(f), **self.penalties(parameters)}

    def penalties(self, parameters: Parameters) -> dict[str, float]:
        """Return the parts of the objective without the loss: penalty_w, penalty_p, penalty_sparse."""
        return {
            "penalty_w": self.lambda_w * float(np.square(parameters.w).sum()),
            "penalty_p": self.lambda_p * self.model.shrinkage(parameters) if self.lambda_p else 0.0,
            "penalty_sparse": self.lambda_sparse
            * self.regularizer.value(self.model.penalised(parameters), **self.regularizer_params)
            if self.lambda_sparse
            else 0.0,
        }

    def objective(self, parameters: Parameters) -> float:
        """Return the value of the objective."""
        return sum(self.parts(parameters).values())


def _target(y: Any, n_samples: int, loss: Loss) -> np.ndarray:
    try:
        # A copy: kernels compile anew for memory that is read-only, as that of other processes may be.
        target = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y holds something that is not a number: {error}.") from None
    if target.ndim != 1 or target.size != n_samples:
        raise ValueError(f"y has shape {target.shape}; X has {n_samples} rows, so y must be ({n_samples},).")
    if not np.isfinite(target).all():
        raise ValueError("y contains NaN or infinity; drop those rows first.")
    if loss.task == "binary" and not np.isin(target, (-1.0, 1.0)).all():
        other = target[~np.isin(target, (-1.0, 1.0))][0]
        raise ValueError(
            f"y contains {other:g}, but loss {loss.name!r} wants labels -1 and +1; "
            "recode y, or choose the loss 'squared' or 'huber'."
        )
    return target


def _weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weights.shape}; X has {n_samples} rows.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must hold finite weights of at least zero, not all of them zero.")
    if (weights == weights[0]).all():
        return None
    return weights * (n_samples / weights.sum())
