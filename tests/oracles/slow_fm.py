"""Reference implementations of models, losses and regularizers, written from the papers' formulae."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature

import numpy as np

from fmviz.engine.losses import LOSSES
from fmviz.engine.penalties import PENALTIES, Penalty, get_penalty

FORMULAS = {
    "squared": (lambda f, y: 0.5 * (f - y) ** 2, lambda f, y: f - y, lambda f, y: f * 0 + 1, 1.0),
    "logistic": (
        lambda f, y: np.logaddexp(0.0, -y * f),
        lambda f, y: -y / (1.0 + np.exp(y * f)),
        lambda f, y: 1.0 / (2.0 + np.exp(y * f) + np.exp(-y * f)),
        0.25,
    ),
    "squared_hinge": (
        lambda f, y: np.maximum(1.0 - y * f, 0.0) ** 2,
        lambda f, y: -2.0 * y * np.maximum(1.0 - y * f, 0.0),
        lambda f, y: 2.0 * (y * f < 1.0),
        2.0,
    ),
    "huber": (
        lambda f, y: np.where(np.abs(f - y) <= 1.0, 0.5 * (f - y) ** 2, np.abs(f - y) - 0.5),
        lambda f, y: np.clip(f - y, -1.0, 1.0),
        lambda f, y: 1.0 * (np.abs(f - y) <= 1.0),
        1.0,
    ),
    "quantile_huber": (
        lambda f, y: 0.5 * np.where(np.abs(f - y) <= 0.1, 5.0 * (f - y) ** 2, np.abs(f - y) - 0.05),
        lambda f, y: 0.5 * np.clip(10.0 * (f - y), -1.0, 1.0),
        lambda f, y: 5.0 * (np.abs(f - y) <= 0.1),
        5.0,
    ),
    "poisson": (
        lambda f, y: np.exp(np.minimum(f, 708.0)) - y * f + (y * np.log(np.where(y > 0.0, y, 1.0)) - y),
        lambda f, y: np.exp(np.minimum(f, 708.0)) - y,
        lambda f, y: np.exp(np.minimum(f, 708.0)),
    ),
    "absolute": (lambda f, y: np.abs(f - y), lambda f, y: np.sign(f - y), lambda f, y: f * 0),
    "epsilon_insensitive": (
        lambda f, y: np.maximum(np.abs(f - y) - 0.1, 0.0),
        lambda f, y: np.sign(f - y) * (np.abs(f - y) > 0.1),
        lambda f, y: f * 0,
    ),
    "capped": (
        lambda f, y: np.minimum(np.maximum(np.abs(f - y) - 0.1, 0.0), 1.0),
        lambda f, y: np.sign(f - y) * (np.abs(f - y) > 0.1) * (np.abs(f - y) <= 1.1),
        lambda f, y: f * 0,
    ),
    "capped_hinge": (
        lambda f, y: np.minimum(np.maximum(1.0 - y * f, 0.0), 2.0),
        lambda f, y: -y * (y * f < 1.0) * (y * f >= -1.0),
        lambda f, y: f * 0,
    ),
}
"""Every loss with its default parameters: value, slope and bend in f, and μ if it has one."""
LOSS, SLOPE, BEND = ({name: row[i] for name, row in FORMULAS.items()} for i in range(3))
MU = {name: row[3] for name, row in FORMULAS.items() if len(row) > 3}


def predict(X: np.ndarray, w: np.ndarray, P: np.ndarray, bias: float) -> np.ndarray:
    """The definition ([A] Eq. 1): a double loop over pairs of features."""
    f = bias + X @ w
    for i in range(X.shape[1]):
        for j in range(i + 1, X.shape[1]):
            f = f + (P[i] @ P[j]) * X[:, i] * X[:, j]
    return f


def of_groups(P: np.ndarray, groups: tuple) -> float:
    """Groups are numbers of the features, or tuples of features; all others are by themselves."""
    d = len(P)
    if groups and not isinstance(groups[0], tuple):
        groups = tuple(tuple(j for j, g in enumerate(groups) if g == name) for name in set(groups))
    blocks = [*groups, *((j,) for j in range(d) if not any(j in g for g in groups))]
    return sum(np.sqrt(len(g)) * np.linalg.norm(P[list(g)]) for g in blocks)


OMEGA = {
    "l2": lambda P: (P**2).sum(),
    "l1": lambda P: np.abs(P).sum(),
    "elastic_net": lambda P, rho: rho * np.abs(P).sum() + (1 - rho) * (P**2).sum(),
    "mcp": lambda P, gamma: sum(
        abs(p) - p * p / (2 * gamma) if abs(p) < gamma else gamma / 2 for p in P.ravel().tolist()
    ),
    "l21": lambda P: np.linalg.norm(P, axis=1).sum(),
    "group": of_groups,
    "ti": lambda P, axis: (np.abs(P).sum(axis=int(axis == "rows")) ** 2).sum(),
    "cs": lambda P: np.linalg.norm(P, axis=1).sum() ** 2,
    "ti_power": lambda P, degree, axis: (np.abs(P).sum(axis=int(axis == "rows")) ** degree).sum(),
    "cs_power": lambda P, degree: np.linalg.norm(P, axis=1).sum() ** degree,
    "omega_ti": lambda P: sum(np.triu(np.abs(np.outer(p, p)), 1).sum() for p in P.T),
    "omega_cs": lambda P: np.triu(np.outer(*2 * [np.linalg.norm(P, axis=1)]), 1).sum(),
    "omega_star": lambda P, prox_steps, prox_step: np.triu(np.abs(P @ P.T), 1).sum(),
}
"""Every Ω as a function of P and of all parameters of the penalty, by the names that they have there."""
for kind, components, table in (("FORMULAS", LOSSES, FORMULAS), ("OMEGA", PENALTIES, OMEGA)):
    assert not (missing := components.keys() - table), f"Add {missing} to {kind} of tests/oracles/slow_fm.py."
for name, formula in OMEGA.items():
    arguments = ["P", *PENALTIES[name].settings]
    assert arguments == [*signature(formula).parameters], f"OMEGA[{name!r}] has to take {arguments}."


def omega(penalty: str | Penalty, P: np.ndarray) -> float:
    """Ω from its definition, with the parameters of the penalty."""
    penalty = get_penalty(penalty)
    return OMEGA[penalty.name](P, **penalty.settings)


def used_pairs(P: np.ndarray) -> int:
    """Pairs of rows that share a live column, by a double loop."""
    d = P.shape[0]
    return sum(bool(((P[i] != 0) & (P[j] != 0)).any()) for i in range(d) for j in range(i))


def objective(X, y, w, P, bias, *, loss, penalty, lam_w, lam_p, lam, weights=None) -> float:
    """The objective ([A] Eq. 2 with λΩ)."""
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    risk = np.mean(c * LOSS[loss](predict(X, w, P, bias), y))
    return risk + lam_w * (w @ w) + lam_p * np.sum(P**2) + lam * omega(penalty, P)


def curved_step(step, p, df, c, f, y, loss):
    """step(h) with h = μ·mean(c·df²); without μ, with the first h tried that bounds the bend on the way."""
    if loss in MU:
        return step(MU[loss] * np.mean(c * df**2))
    needed = np.mean(c * BEND[loss](f, y) * df**2)
    h = 1.25 * needed
    while needed > 0.0:
        q = step(h)
        needed = np.mean(c * (2 * BEND[loss](f, y) + BEND[loss](f + df * (q - p), y)) / 3 * df**2)
        if needed <= h:
            return q
        h = min(1.25 * needed, 4 * h)
    return step(0.0)


def linear_sweep(slopes, X, w, b, *, loss, c, lam_w, linear, bias, f=None, y=None):
    """[A] Algorithm 4, lines 4-9, with the bias first; slopes(w, b) are computed anew at each step.

    So are the predictions f(w, b), which losses without μ need.
    """
    w, f = w.copy(), f or (lambda w, b: None)
    if bias:
        g = np.mean(slopes(w, b))
        b = curved_step(lambda h: b - (g / h if h > 0 else 0.0), b, np.ones(len(X)), c, f(w, b), y, loss)
    for j in range(w.size) if linear else ():
        g = np.mean(slopes(w, b) * X[:, j])

        def step(h, p=w[j], g=g):
            return p - (g + 2 * lam_w * p) / (h + 2 * lam_w) if h + lam_w > 0 else p

        w[j] = curved_step(step, w[j], X[:, j], c, f(w, b), y, loss)
    return w, b


def linear_epoch(X, y, w, P, b, *, loss, weights=None, **own):
    """The linear sweep of a factorization machine."""
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    own |= {"f": lambda w, b: predict(X, w, P, b), "y": y}
    return linear_sweep(lambda w, b: c * SLOPE[loss](predict(X, w, P, b), y), X, w, b, loss=loss, c=c, **own)


def slope_of_entry(X, P, j, s):
    """∂f/∂p_js = x_j(⟨p_:,s, x⟩ − x_j p_js), for all rows; the sum is over the other features."""
    others = [i for i in range(X.shape[1]) if i != j]
    return X[:, j] * (X[:, others] @ P[others, s])


def gradient(X, y, w, P, b, c, loss):
    """The gradient of the mean of c·ℓ over the rows given, entry by entry."""
    slope = c * SLOPE[loss](predict(X, w, P, b), y) / y.size
    G = np.zeros_like(P)
    for j, s in np.ndindex(P.shape):
        G[j, s] = slope @ slope_of_entry(X, P, j, s)
    return G, X.T @ slope, slope.sum()


def pieces(value: Callable, low: float = 0.0, high: float = 64.0) -> list[tuple[float, ...]]:
    """A function of q ≥ 0 by its parabolas a·q² + b·q + const: from which q on, a and b.

    A range in which three values do not predict two more is halved, until no test ends in it.
    """
    width = high - low
    at = low + width * np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    v = np.array([value(q) for q in at])
    a, b = 2 * (v[0] - 2 * v[2] + v[4]) / width**2, (v[4] - v[0]) / width
    off = np.abs(v[1::2] - 0.5 * (v[:-2:2] + v[2::2]) + a * width**2 / 16).max()
    if off <= 1e-13 * max(1.0, np.abs(v).max()) or width < 1e-6:
        return [(low, a, b - a * (low + high))]
    return pieces(value, low, at[2]) + pieces(value, at[2], high)


def least(parabolas: list[tuple[float, ...]], p: float, g: float, h: float, quad: float, lam: float) -> float:
    """argmin over q of g(q − p) + ½h(q − p)² + ½quad·q² + lam·Ω, with Ω by its pieces in |q|.

    It is the best of the minima of all pieces. Where all is flat, p stays.
    """
    low, a, b = np.array(parabolas).T
    high, bend, slope = np.append(low[1:], 1e9), h + quad + 2 * lam * a, lam * b - abs(h * p - g)
    if bend[-1] <= 0:
        return 0.0 if lam * b[0] > 0 else p
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(bend > 0, np.clip(-slope / bend, low, high), high)
    rises = [0.5 * bend * (x * x - low * low) + slope * (x - low) for x in (inner, high)]
    values = np.append(0.0, rises[0] + np.append(0.0, np.cumsum(rises[1][:-1])))
    return np.sign(h * p - g) * np.append(0.0, inner)[values.argmin()]


def pieces_along(penalty: Penalty, P: np.ndarray, j: int, unit: np.ndarray) -> list:
    """The pieces of Ω where q·unit replaces the entries of p_j at which a unit vector is not 0."""
    moved = P.copy()

    def value(q):
        moved[j] = np.where(unit, q * unit, P[j])
        return omega(penalty, moved)

    return pieces(value)


def pcd_epoch(X, y, w, P, bias, *, loss, penalty, lam_p, lam, weights=None, by_features=False):
    """[A] Algorithm 1, lines 5-15, or with its two loops exchanged; everything recomputed at each step."""
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    P = P.copy()
    d, k = P.shape
    entries = [(j, s) for s in range(k) for j in range(d)]
    for j, s in sorted(entries) if by_features else entries:
        df = slope_of_entry(X, P, j, s)
        f = predict(X, w, P, bias)
        g = np.mean(c * SLOPE[loss](f, y) * df)
        parabolas = pieces_along(penalty, P, j, np.eye(k)[s])
        step = partial(least, parabolas, P[j, s], g, quad=2 * lam_p, lam=lam)
        P[j, s] = curved_step(step, P[j, s], df, c, f, y, loss)
    return P


def shrink_row(penalty: Penalty, u: np.ndarray, strength: float, P: np.ndarray, j: int) -> np.ndarray:
    """The row operator of Ω without its quadratic part: Ω shrinks the norm of u, or each of its entries."""
    shrunk = np.zeros_like(u)
    for unit in [u / (np.linalg.norm(u) or 1.0)] if penalty.row_wise else np.eye(u.size):
        smooth = -2.0 * strength * penalty.quad
        shrunk += unit * least(pieces_along(penalty, P, j, unit), u @ unit, 0.0, 1.0, smooth, strength)
    return shrunk


def pbcd_epoch(X, y, w, P, bias, *, loss, penalty, lam_p, lam, weights=None, search=None):
    """[A] Algorithm 6, lines 9-34; with search = (sigma, rho), or without μ, its line search."""
    n, d = X.shape
    search = (0.01, 0.5) if search is None and loss not in MU else search
    c = np.ones(n) if weights is None else weights / weights.mean()
    P, penalty = P.copy(), get_penalty(penalty)
    smooth = lam_p + lam * penalty.quad

    def value(Q):
        return objective(
            X, y, w, Q, bias, loss=loss, penalty=penalty, lam_w=0.0, lam_p=lam_p, lam=lam, weights=weights
        )

    for j in range(d):
        df = np.column_stack([slope_of_entry(X, P, j, s) for s in range(P.shape[1])])
        f = predict(X, w, P, bias)
        direction = (c * SLOPE[loss](f, y)) @ df / n + 2 * smooth * P[j]
        trace = MU.get(loss, 1.0) * np.sum(c[:, None] * df**2) / n
        inverse = trace + 2 * smooth
        if search is not None:
            bent = np.max((c * BEND[loss](f, y)) @ df**2 / n) + 2 * smooth
            inverse = bent if bent > 1e-12 * trace else inverse
        if inverse > 0:
            q = shrink_row(penalty, P[j] - direction / inverse, lam / inverse, P, j)
        else:
            q = shrink_row(penalty, P[j], 1e100 if lam > 0 else 0.0, P, j)
        step = q - P[j]
        if search is None:
            P[j] = q
            continue
        sigma, rho = search
        Q = P.copy()
        Q[j] = q
        # The quadratic part of Ω counts as smooth, so it is not in this difference.
        jump = omega(penalty, Q) - omega(penalty, P) - penalty.quad * (q @ q - P[j] @ P[j])
        predicted = direction @ step + lam * jump
        alpha = 1.0
        for _ in range(40):
            Q[j] = P[j] + alpha * step
            if value(Q) - value(P) <= sigma * alpha * predicted + 1e-15:
                P[j] = Q[j]
                break
            alpha *= rho
    return P
