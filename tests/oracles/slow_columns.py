"""Reference epochs of the coordinate solvers for sums of column kernels, by loops over subsets."""

from __future__ import annotations

import numpy as np

from fmviz.engine.penalties import PENALTIES

from . import slow_fm, slow_kernels


def column(kind: str, degree: int | None, p: np.ndarray, x: np.ndarray) -> float:
    if kind == "subsets":
        return slow_kernels.all_subsets(p, x)
    return getattr(slow_kernels, kind)(p, x, degree)


def predict(blocks, X, P, w, bias, coefficients):
    """blocks: a list of (kind, degree); each has as many columns of P as the others."""
    k = P.shape[1] // len(blocks)
    f = bias + X @ w
    for s in range(P.shape[1]):
        kind, degree = blocks[s // k]
        f = f + coefficients[s] * np.array([column(kind, degree, P[:, s], x) for x in X])
    return f


def slope(blocks, X, P, j, s):
    """∂K/∂p_js for every row, without its coefficient; the kernels are linear in the entry."""
    kind, degree = blocks[s // (P.shape[1] // len(blocks))]
    with_it, without = P[:, s].copy(), P[:, s].copy()
    with_it[j], without[j] = 1.0, 0.0
    return np.array([column(kind, degree, with_it, x) - column(kind, degree, without, x) for x in X])


def weight_of(name: str, order: int | None, P: np.ndarray, j: int, s: int) -> float:
    """The weight of |p_js| (of ‖p_j‖) in Ω, by definition: Ω with the entry at 1 less Ω with it at 0."""
    if name == "l2":
        return 0.0
    if name in ("l1", "l21"):
        return 1.0
    sizes = np.abs(P[:, s]) if name == "omega_ti" else np.linalg.norm(P, axis=1)
    at, ones = np.arange(sizes.size) == j, np.ones(sizes.size)
    kind = "subsets" if order is None else "anova"
    return column(kind, order, np.where(at, 1.0, sizes), ones) - column(kind, order, sizes * ~at, ones)


def row_slopes(blocks, x, P, coefficients):
    """∂f/∂P at one row, entry by entry, with the coefficients."""
    G = np.zeros_like(P)
    k = P.shape[1] // len(blocks)
    for j, s in np.ndindex(P.shape):
        kind, degree = blocks[s // k]
        if kind == "polynomial":
            G[j, s] = degree * (P[:, s] @ x) ** (degree - 1) * x[j]
        else:
            G[j, s] = slope(blocks, x[None], P, j, s)[0]
    return G * coefficients


def stochastic_epoch(
    blocks, X, y, P, w, b, coefficients, order, etas, *, loss, lam_w, lam_p, lam, name, linear, weights=None
):
    """One sample at a time, all of P at every step: [A] Algorithm 5 for "sgd", Eq. 28 with ℓ1 for "psgd".

    The step of column s is over |its coefficient|; a column with coefficient 0 stays.
    """
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    live = coefficients != 0
    sizes = np.where(live, np.abs(coefficients), 1.0)
    for (ep, ew), n in zip(etas, order, strict=True):
        x = X[n]
        f = predict(blocks, x[None], P, w, b, coefficients)
        g = float((c[n] * slow_fm.SLOPE[loss](f, y[n : n + 1]))[0])
        step = ep * g * row_slopes(blocks, x, P, coefficients) / sizes
        if name == "sgd":
            new = P - step - 2 * ep * (lam_p + lam) * P
            w = w - ew * (g * x + 2 * lam_w * w) if linear else w
        else:
            r = 1 / (1 + 2 * ep * lam_p)
            new = r * (P - step)
            new = np.sign(new) * np.maximum(np.abs(new) - ep * lam * r, 0.0)
            w = (w - ew * g * x) / (1 + 2 * ew * lam_w) if linear else w
        P = np.where(live, new, P)
        b = b - ew * g if linear else b
    return P, w, b


def fitted_coefficients(blocks, X, y, P, w, b, coefficients, *, loss, lam_p):
    """argmin over λ of the mean loss plus lam_p Σ|λ_s|‖p_s‖², by plain coordinate descent."""
    Z = np.array([[column(*blocks[0], P[:, s], x) for s in range(P.shape[1])] for x in X])
    c = coefficients.copy()
    for _ in range(5_000):
        for s in range(c.size):
            h = slow_fm.MU[loss] * np.mean(Z[:, s] ** 2)
            g = np.mean(slow_fm.SLOPE[loss](b + X @ w + Z @ c, y) * Z[:, s])
            c[s] = slow_fm.least([(0.0, 0.0, lam_p * (P[:, s] ** 2).sum())], c[s], g, h, 0.0, 1.0)
    return c


class Setting:
    """A problem in the scaling convention of `fmviz.engine.problem`."""

    def __init__(self, blocks, X, y, loss, name, lam_w, lam_p, lam, linear=True, bias=True, weights=None):
        self.blocks, self.X, self.y, self.loss, self.name = blocks, X, y, loss, name
        self.lam_w, self.lam_p, self.lam, self.linear, self.bias = lam_w, lam_p, lam, linear, bias
        self.c = np.ones(y.size) if weights is None else weights / weights.mean()
        self.mu = slow_fm.MU[loss]

    def _slopes(self, P, w, b, coefficients):
        f = predict(self.blocks, self.X, P, w, b, coefficients)
        return self.c * slow_fm.SLOPE[self.loss](f, self.y)

    def linear_sweep(self, P, w, b, coefficients):
        own = {"c": self.c, "lam_w": self.lam_w, "linear": self.linear, "bias": self.bias}
        return slow_fm.linear_sweep(
            lambda w, b: self._slopes(P, w, b, coefficients), self.X, w, b, loss=self.loss, **own
        )

    def order(self, s, P):
        kind, degree = self.blocks[s // (P.shape[1] // len(self.blocks))]
        return None if kind == "subsets" else degree

    def coordinate_epoch(self, P, w, b, coefficients):
        """[A] Algorithm 1, with any multilinear columns."""
        w, b = self.linear_sweep(P, w, b, coefficients)
        P = P.copy()
        for s in range(P.shape[1]):
            for j in range(P.shape[0]):
                df = coefficients[s] * slope(self.blocks, self.X, P, j, s)
                g = np.mean(self._slopes(P, w, b, coefficients) * df)
                h = self.mu * np.mean(self.c * df**2)
                t = self.lam * weight_of(self.name, self.order(s, P), P, j, s)
                quad = 2 * self.lam_p * abs(coefficients[s]) + 2 * self.lam * (self.name == "l2")
                P[j, s] = slow_fm.least([(0.0, 0.0, t)], P[j, s], g, h, quad, 1.0)
        return P, w, b

    def row_epoch(self, P, w, b, coefficients):
        """[A] Algorithm 6, block after block."""
        w, b = self.linear_sweep(P, w, b, coefficients)
        P = P.copy()
        k = P.shape[1] // len(self.blocks)
        for block in range(len(self.blocks)):
            columns = range(block * k, (block + 1) * k)
            for j in range(P.shape[0]):
                df = np.array([coefficients[s] * slope(self.blocks, self.X, P, j, s) for s in columns])
                g = (df * self._slopes(P, w, b, coefficients)).mean(axis=1)
                h = self.mu * np.mean(self.c * (df**2).sum(axis=0)) + 2 * self.lam_p
                own = P[:, list(columns)]
                order = self.order(block * k, P)
                if h == 0:
                    continue
                step = own[j] - (g + 2 * self.lam_p * own[j]) / h
                t = np.array([weight_of(self.name, order, own, j, s) for s in range(k)]) * self.lam / h
                size = np.linalg.norm(step) if PENALTIES[self.name].row_wise else np.abs(step)
                P[j, list(columns)] = step * np.maximum(1 - t / np.where(size > 0, size, 1.0), 0.0)
        return P, w, b
