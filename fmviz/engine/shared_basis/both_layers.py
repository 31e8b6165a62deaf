"""Both layers at once: a local search on the bases H and the output layer, which is not convex."""

from __future__ import annotations

import numpy as np

from ..penalties import Penalty
from ..problem import Problem
from .gradients import activations
from .output_layer import OutputLayer, Risk, whitened

_MOST = 1000
Limits = tuple[float | None, float | None]
_LBFGS_MEMORY = 20


class BothLayers:
    """The risk as a function of H, shape (d, k), and Θ, shape (q, m), stacked as in `OutputLayer`."""

    def __init__(self, problem: Problem, diagonal: bool, k: int, offset: np.ndarray | None = None) -> None:
        self._offset = offset
        self.problem, self.diagonal, self.k = problem, diagonal, k
        self.risk = Risk(problem)
        # Without bases: the linear part of Z, and everything that acts on Θ but for V.
        self.linear = OutputLayer(problem, np.zeros((problem.design.n_samples, 0)), offset)

    def layer(self, H: np.ndarray) -> OutputLayer:
        """Return the problem of the output layer on these bases."""
        return OutputLayer(self.problem, activations(self.problem.design, H, self.diagonal), self._offset)

    def value_and_gradients(self, H: np.ndarray, T: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the risk plus λ_w‖w‖², and the gradients in H and in Θ."""
        design, k, linear = self.problem.design, self.k, self.linear
        A = design.dot(H)
        Phi = np.square(A)
        if not self.diagonal:
            squares = design.power(2)
            Phi = 0.5 * (Phi - np.asarray(squares @ np.square(H)))
        V, rest = T[:k], T[k:]
        value, slopes = self.risk.value_and_slopes(Phi @ V + linear.predict(rest))
        E = slopes @ V.T
        if self.diagonal:
            in_H = 2.0 * design.transpose_dot(A * E)
        else:
            in_H = design.transpose_dot(A * E) - H * np.asarray(squares.T @ E)
        ridge = linear.ridge[:, None]
        in_T = np.vstack([Phi.T @ slopes, linear.Z.T @ slopes + 2.0 * ridge * rest])
        return value + float((ridge * np.square(rest)).sum()), in_H, in_T


def _into_ball(H: np.ndarray) -> np.ndarray:
    return np.asarray(H / np.maximum(np.linalg.norm(H, axis=0), 1.0))


def fista_both(
    problem: Problem,
    diagonal: bool,
    H: np.ndarray,
    T: np.ndarray,
    tol: float,
    most: int = _MOST,
    offset: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return H and Θ after accelerated proximal gradient steps on both, with restarts ([C] Appendix D).

    The bases are projected on the unit ball, V goes through the operator of its penalty. The steps end once
    no entry moves by more than `tol` of the largest one.
    """
    both = BothLayers(problem, diagonal, H.shape[1], offset)
    proximal = both.layer(H).prox
    mixed_H, mixed_T, t, L = H, T, 1.0, 1.0
    for _ in range(most):
        value, in_H, in_T = both.value_and_gradients(mixed_H, mixed_T)
        while True:
            new_H, new_T = _into_ball(mixed_H - in_H / L), proximal(mixed_T - in_T / L, 1.0 / L)
            step_H, step_T = new_H - mixed_H, new_T - mixed_T
            linear = float((in_H * step_H).sum() + (in_T * step_T).sum())
            square = 0.5 * L * float((step_H * step_H).sum() + (step_T * step_T).sum())
            reached = both.value_and_gradients(new_H, new_T)[0]
            if reached <= value + linear + square + 1e-14 * abs(value) or L > 1e18:
                break
            L *= 2.0
        apart_H, apart_T = new_H - H, new_T - T
        if float((step_H * apart_H).sum() + (step_T * apart_T).sum()) < 0.0:
            t = 1.0
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        mixed_H, mixed_T = new_H + (t - 1.0) / faster * apart_H, new_T + (t - 1.0) / faster * apart_T
        H, T, t = new_H, new_T, faster
        L *= 0.95
        moved = max(
            float(np.abs(apart_H).max(initial=0.0)) / float(np.abs(H).max(initial=1e-300)),
            float(np.abs(apart_T).max(initial=0.0)) / float(np.abs(T).max(initial=1e-300)),
        )
        if moved <= tol:
            break
    return H, T


class _Smooth:
    """The objective in free directions u_r = ‖u_r‖h_r and a form of V in which its penalty is smooth.

    ℓ1: V = A − B with A, B ≥ 0, and the penalty ΣA + ΣB. ℓ1/ℓ2: V itself, whose rows are not 0. ℓ1/ℓ∞:
    v_rc = t_r s_rc with |s_rc| ≤ 1, and the penalty Σt_r.
    """

    def __init__(self, both: BothLayers, penalty: Penalty, strength: float, m: int) -> None:
        self._both, self._penalty, self._strength = both, penalty, strength
        self._d, self._k, self._m = both.problem.design.n_features, both.k, m

    def pack(self, H: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, list[Limits]]:
        """Return the variables and their bounds."""
        k, V = self._k, T[: self._k]
        free: Limits = (None, None)
        bounds: list[Limits] = [free] * H.size
        parts = [H.ravel()]
        if self._penalty.row_norm == 1.0:
            parts += [np.maximum(V, 0.0).ravel(), np.maximum(-V, 0.0).ravel()]
            bounds += [(0.0, None)] * (2 * V.size)
        elif self._penalty.row_norm == np.inf:
            tops = np.abs(V).max(axis=1)
            parts += [tops, (V / np.maximum(tops, 1e-300)[:, None]).ravel()]
            bounds += [(0.0, None)] * k + [(-1.0, 1.0)] * V.size
        else:
            parts.append(V.ravel())
            bounds += [free] * V.size
        parts.append(T[k:].ravel())
        bounds += [free] * T[k:].size
        return np.concatenate(parts), bounds

    def unpack(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U, Θ, and what V was made of."""
        d, k, m = self._d, self._k, self._m
        U, x = x[: d * k].reshape(d, k), x[d * k :]
        count = {1.0: 2 * k * m, np.inf: k + k * m}.get(self._penalty.row_norm or 0.0, k * m)
        inner, rest = x[:count], x[count:].reshape(-1, m)
        if self._penalty.row_norm == 1.0:
            V = (inner[: k * m] - inner[k * m :]).reshape(k, m)
        elif self._penalty.row_norm == np.inf:
            V = inner[:k, None] * inner[k:].reshape(k, m)
        else:
            V = inner.reshape(k, m)
        return U, np.vstack([V, rest]), inner

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient."""
        k, m, strength = self._k, self._m, self._strength
        U, T, inner = self.unpack(x)
        size = np.maximum(np.linalg.norm(U, axis=0), 1e-300)
        H = U / size
        value, in_H, in_T = self._both.value_and_gradients(H, T)
        in_U = (in_H - H * (in_H * H).sum(axis=0)) / size
        V, in_V = T[:k], in_T[:k]
        if self._penalty.row_norm == 1.0:
            value += strength * float(inner.sum())
            in_inner = np.concatenate([(in_V + strength).ravel(), (strength - in_V).ravel()])
        elif self._penalty.row_norm == np.inf:
            tops, shares = inner[:k], inner[k:].reshape(k, m)
            value += strength * float(tops.sum())
            in_inner = np.concatenate(
                [(in_V * shares).sum(axis=1) + strength, (in_V * tops[:, None]).ravel()]
            )
        else:
            norms = np.linalg.norm(V, axis=1, keepdims=True)
            value += strength * float(norms.sum())
            in_inner = (in_V + strength * V / np.maximum(norms, 1e-300)).ravel()
        return value, np.concatenate([in_U.ravel(), in_inner, in_T[k:].ravel()])


def descend(
    problem: Problem,
    diagonal: bool,
    H: np.ndarray,
    T: np.ndarray,
    tol: float,
    most: int = _MOST,
    offset: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return H, of unit columns, and Θ after L-BFGS iterations on both, and a refit of the output layer.

    The iterations know no kinks, and a basis without a weight would stay without one; the refit makes rows of
    V exactly 0. It never raises the objective.
    """
    from scipy.optimize import minimize

    both = BothLayers(problem, diagonal, H.shape[1], offset)
    layer = both.layer(H)
    before = layer.objective(T)
    form = _Smooth(both, problem.penalty, layer.strength, T.shape[1])
    x, bounds = form.pack(H, T)
    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": _LBFGS_MEMORY, "ftol": 0.1 * tol, "gtol": 0.0}
    found = minimize(form.value_and_gradient, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    U, new, _ = form.unpack(found.x)
    size = np.linalg.norm(U, axis=0)
    new_H = np.divide(U, size, out=np.zeros_like(U), where=size > 0)
    layer = both.layer(new_H)
    new = whitened(layer, new, tol).T
    return (new_H, new) if layer.objective(new) <= before else (H, T)
