"""Reference implementations of the stochastic solvers, whose steps visit all of P."""

from __future__ import annotations

import numpy as np

from .slow_batch import proximal_step
from .slow_fm import SLOPE, predict


def prox(name: str, P: np.ndarray, strength: float) -> np.ndarray:
    """argmin ½‖Q − P‖² + strength·Ω(Q), by the papers' formulae."""
    size = np.abs(P)
    norms = np.sqrt((P**2).sum(axis=1))
    unit = np.divide(P, norms[:, None], out=np.zeros_like(P), where=norms[:, None] > 0)

    def by_columns(shrunk):
        return np.sign(P) * np.column_stack([shrunk(column, strength) for column in size.T])

    return {
        "l2": lambda: P / (1 + 2 * strength),
        "l1": lambda: np.sign(P) * np.maximum(size - strength, 0),
        "elastic_net": lambda: np.sign(P) * np.maximum(size - strength / 2, 0) / (1 + strength),
        "l21": lambda: np.maximum(norms - strength, 0)[:, None] * unit,
        "ti": lambda: by_columns(squared),
        "ti_rows": lambda: np.sign(P) * np.array([squared(row, strength) for row in size]),
        "cs": lambda: squared(norms, strength)[:, None] * unit,
        "omega_ti": lambda: by_columns(pairs),
        "omega_cs": lambda: pairs(norms, strength)[:, None] * unit,
        "ti_power": lambda: by_columns(cubed),
        "cs_power": lambda: cubed(norms, strength)[:, None] * unit,
    }[name]()


def cubed(p: np.ndarray, strength: float) -> np.ndarray:
    """[A] Theorem 10 for m = 3 and p ≥ 0: S + 3λθS² = Σ, and the largest θ with p_θ ≥ 3λS²."""
    ordered = np.sort(p)[::-1]
    best = 0.0
    for theta in range(1, p.size + 1):
        total = ordered[:theta].sum()
        S = 2 * total / (1 + np.sqrt(1 + 12 * strength * theta * total))
        if ordered[theta - 1] >= 3 * strength * S**2:
            best = S
    return np.maximum(p - 3 * strength * best**2, 0)


def squared(p: np.ndarray, strength: float) -> np.ndarray:
    """[A] Theorem 7 for p ≥ 0: sort, and take the largest θ with p_θ ≥ 2λS_θ."""
    ordered = np.sort(p)[::-1]
    best = 0.0
    for theta in range(1, p.size + 1):
        S = ordered[:theta].sum() / (1 + 2 * strength * theta)
        if ordered[theta - 1] >= 2 * strength * S:
            best = S
    return np.maximum(p - 2 * strength * best, 0)


def pairs(p: np.ndarray, strength: float) -> np.ndarray:
    """½(‖·‖₁² − ‖·‖²) for p ≥ 0: a scaled square, or the largest entry alone."""
    if strength < 1:
        return squared(p, strength / (2 * (1 - strength))) / (1 - strength)
    return np.where(np.arange(p.size) == np.argmax(p), p, 0.0)


def gradient(X, y, w, P, b, c, loss):
    """The gradient of the mean of c·ℓ over the rows given, entry by entry."""
    slope = c * SLOPE[loss](predict(X, w, P, b), y) / y.size
    G = np.zeros_like(P)
    for n in range(y.size):
        A = X[n] @ P
        for j in range(P.shape[0]):
            for s in range(P.shape[1]):
                G[j, s] += slope[n] * X[n, j] * (A[s] - X[n, j] * P[j, s])
    return G, X.T @ slope, slope.sum()


def eta(schedule: str, eta0: float, power: float, lam: float, t: int) -> float:
    """The step size of step t = 0, 1, ..."""
    return {
        "constant": eta0,
        "bottou": eta0 / (1 + eta0 * lam * t),
        "optimal": eta0 / (1 + 2 * eta0 * lam * t),
    }.get(schedule, eta0 / (t + 1) ** power)


def psgd_epoch(
    X, y, w, P, b, order, *, name, loss, lam_w, lam_p, lam, schedule="bottou", eta0=0.1, power=0.5,
    linear=True, bias=True, weights=None, batch=1, explicit=False, first=0, scale=1.0,
):  # fmt: skip
    """[A] Eq. 28 with the gradient of a batch; with `explicit`, Algorithm 5."""
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    for t, at in enumerate(range(0, y.size, batch)):
        rows = order[at : at + batch]
        G, gw, gb = gradient(X[rows], y[rows], w, P, b, c[rows], loss)
        ep = scale * eta(schedule, eta0, power, lam_p, first + t)
        ew = scale * eta(schedule, eta0, power, lam_w, first + t)
        if explicit:
            P = P - ep * (G + 2 * (lam_p + lam) * P)
            w = w - ew * (gw + 2 * lam_w * w) if linear else w
        else:
            r = 1 / (1 + 2 * ep * lam_p)
            P = prox(name, r * (P - ep * G), ep * lam * r)
            w = (w - ew * gw) / (1 + 2 * ew * lam_w) if linear else w
        b = b - ew * gb if bias else b
    return P, w, b


class Katyusha:
    """Allen-Zhu 2017, Algorithm 1 with Option II and plain means; points are [P, w, b]."""

    def __init__(
        self, X, y, *, name, loss, lam_w, lam_p, lam, eta0=0.1, tau=0.5, linear=True, bias=True, weights=None,
        batch=1,
    ):  # fmt: skip
        self.X, self.y, self.loss, self.batch, self.tau, self.eta0 = X, y, loss, batch, tau, eta0
        self.name, self.lam_w, self.lam_p, self.lam, self.linear = name, lam_w, lam_p, lam, linear
        self.c = np.ones(y.size) if weights is None else weights / weights.mean()
        self.mask = np.array([1.0, float(linear), float(bias)])
        self.everything = np.arange(y.size)

    def grad(self, point, rows):
        P, w, b = point
        parts = gradient(self.X[rows], self.y[rows], w, P, b, self.c[rows], self.loss)
        return [m * g for m, g in zip(self.mask, parts, strict=True)]

    def step(self, point, g, size):
        r = 1 / (1 + 2 * size * self.lam_p)
        new_w = (point[1] - size * g[1]) / (1 + 2 * size * self.lam_w) if self.linear else point[1]
        new_P = prox(self.name, r * (point[0] - size * g[0]), size * self.lam * r)
        return [new_P, new_w, point[2] - size * g[2]]

    def epoch(self, state, order, scale=1.0):
        """Return the next S, Z and Y, and the point that is reported."""
        S, Z, Y = state
        tau, eta0 = self.tau, scale * self.eta0
        full = self.grad(S, self.everything)
        points = []
        for at in range(0, order.size, self.batch):
            rows = order[at : at + self.batch]
            here = mix((tau, Z), (0.5, S), (0.5 - tau, Y))
            g = mix((1, full), (1, self.grad(here, rows)), (-1, self.grad(S, rows)))
            new = self.step(Z, g, eta0 / tau)
            Y = mix((1, here), (tau, new), (-tau, Z))
            Z = new
            points.append((1 / -(-order.size // self.batch), Y))
        S = mix(*points)
        return (S, Z, Y), self.step(S, self.grad(S, self.everything), eta0)


def mix(*terms):
    """Return the sum of a·point over pairs of them."""
    return [sum(a * point[part] for a, point in terms) for part in range(3)]


def katyusha(X, y, w, P, b, orders, **settings):
    """As many epochs as there are orders."""
    method = Katyusha(X, y, **settings)
    state, reported = ([P, w, b],) * 3, None
    for order in orders:
        state, reported = method.epoch(state, order)
    return reported


def safeguarded(problem, start, orders, advance, begin):
    """Return the kept points, one an epoch, and whether each is the end of the epoch.

    `problem` is a `slow_batch.Setting`. ``advance(point, memory, order, scale)`` makes an epoch and returns
    the point and the memory after it; ``begin(point, memory)`` is the memory with which an epoch that was
    undone is followed.
    """
    kept, memory, scale, eta = start, begin(start, None), 1.0, 0.8
    path, stayed = [], []
    for order in orders:
        end, after = advance(kept, memory, order, scale)
        stayed.append(bool(problem.objective(slow(end)) <= problem.objective(slow(kept))))
        if stayed[-1]:
            kept, memory, scale = end, after, min(1.0, 1.25 * scale)
        else:
            # The line search of PGD, which tries a step longer by a quarter each time: 1 at first.
            end, eta = proximal_step(problem, slow(kept), 1.25 * eta, 0.5)
            if problem.objective(end) <= problem.objective(slow(kept)):
                kept = [end[0], end[1], float(end[2][0])]
            memory, scale = begin(kept, memory), 0.5 * scale
        path.append(kept)
    return path, stayed


def slow(point):
    """Return a point as `slow_batch` has them."""
    return [point[0], point[1], np.array([point[2]])]
