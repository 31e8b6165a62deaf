"""Reference implementations of models, losses and regularizers, written from the papers' formulae."""

from __future__ import annotations

import numpy as np


def quantile_huber(f, y, tau=0.5, delta=0.1):
    """Value, slope and bend of the pinball loss of y − f, its kink replaced by a parabola for |f − y| ≤ δ."""
    high, inside = f > y, np.abs(f - y) <= delta
    weight = np.where(high, 1.0 - tau, tau)
    value = np.where(inside, (f - y) ** 2 / (2 * delta), np.abs(f - y) - delta / 2)
    slope = np.where(inside, (f - y) / delta, np.where(high, 1.0, -1.0))
    return weight * value, weight * slope, weight * inside / delta


LOSS = {
    "squared": lambda f, y: 0.5 * (f - y) ** 2,
    "logistic": lambda f, y: np.logaddexp(0.0, -y * f),
    "squared_hinge": lambda f, y: np.maximum(1.0 - y * f, 0.0) ** 2,
    "huber": lambda f, y: np.where(np.abs(f - y) <= 1.0, 0.5 * (f - y) ** 2, np.abs(f - y) - 0.5),
    "quantile_huber": lambda f, y: quantile_huber(f, y)[0],
    "poisson": lambda f, y: np.exp(f) - y * f + (y * np.log(np.where(y > 0.0, y, 1.0)) - y),
    "absolute": lambda f, y: np.abs(f - y),
    "epsilon_insensitive": lambda f, y: np.maximum(np.abs(f - y) - 0.1, 0.0),
    "capped": lambda f, y: np.minimum(np.maximum(np.abs(f - y) - 0.1, 0.0), 1.0),
    "capped_hinge": lambda f, y: np.minimum(np.maximum(1.0 - y * f, 0.0), 2.0),
}
SLOPE = {
    "squared": lambda f, y: f - y,
    "logistic": lambda f, y: -y / (1.0 + np.exp(y * f)),
    "squared_hinge": lambda f, y: -2.0 * y * np.maximum(1.0 - y * f, 0.0),
    "huber": lambda f, y: np.clip(f - y, -1.0, 1.0),
    "quantile_huber": lambda f, y: quantile_huber(f, y)[1],
    "poisson": lambda f, y: np.exp(f) - y,
    "absolute": lambda f, y: np.sign(f - y),
    "epsilon_insensitive": lambda f, y: np.sign(f - y) * (np.abs(f - y) > 0.1),
    "capped": lambda f, y: np.sign(f - y) * (np.abs(f - y) > 0.1) * (np.abs(f - y) <= 1.1),
    "capped_hinge": lambda f, y: -y * (y * f < 1.0) * (y * f >= -1.0),
}
BEND = {
    "squared": lambda f, y: np.ones_like(f),
    "logistic": lambda f, y: 1.0 / (2.0 + np.exp(y * f) + np.exp(-y * f)),
    "squared_hinge": lambda f, y: 2.0 * (y * f < 1.0),
    "huber": lambda f, y: 1.0 * (np.abs(f - y) <= 1.0),
    "quantile_huber": lambda f, y: quantile_huber(f, y)[2],
    "poisson": lambda f, y: np.exp(f),
} | dict.fromkeys(
    ("absolute", "epsilon_insensitive", "capped", "capped_hinge"), lambda f, y: np.zeros_like(f)
)
MU = {"squared": 1.0, "logistic": 0.25, "squared_hinge": 2.0, "huber": 1.0, "quantile_huber": 5.0}


def predict(X: np.ndarray, w: np.ndarray, P: np.ndarray, bias: float) -> np.ndarray:
    """The definition ([A] Eq. 1): a double loop over pairs of features."""
    f = bias + X @ w
    for i in range(X.shape[1]):
        for j in range(i + 1, X.shape[1]):
            f = f + (P[i] @ P[j]) * X[:, i] * X[:, j]
    return f


def omega(
    name: str,
    P: np.ndarray,
    degree: int = 3,
    axis: str = "columns",
    rho: float = 0.5,
    gamma: float = 1.0,
    groups: tuple = (),
) -> float:
    """Every Ω from its definition, by loops; with the parameters of those that have some.

    Groups are numbers of the features, or tuples of features; all others are by themselves.
    """
    d, k = P.shape
    columns = [sum(abs(P[j, s]) for j in range(d)) for s in range(k)]
    rows = [sum(abs(P[j, s]) for s in range(k)) for j in range(d)]
    norms = [np.sqrt(sum(P[j, s] ** 2 for s in range(k))) for j in range(d)]
    pairs = [(i, j) for i in range(d) for j in range(i)]
    if groups and not isinstance(groups[0], tuple):
        groups = tuple(tuple(j for j, g in enumerate(groups) if g == name) for name in set(groups))
    blocks = [*groups, *((j,) for j in range(d) if not any(j in g for g in groups))]
    return {
        "l2": lambda: sum(P[j, s] ** 2 for j in range(d) for s in range(k)),
        "l1": lambda: sum(columns),
        "elastic_net": lambda: rho * omega("l1", P) + (1 - rho) * omega("l2", P),
        "mcp": lambda: sum(
            abs(p) - p * p / (2 * gamma) if abs(p) < gamma else gamma / 2 for p in P.ravel().tolist()
        ),
        "l21": lambda: sum(norms),
        "group": lambda: sum(np.sqrt(len(g) * sum(norms[j] ** 2 for j in g)) for g in blocks),
        "ti": lambda: sum(size**2 for size in columns),
        "ti_rows": lambda: sum(size**2 for size in rows),
        "cs": lambda: sum(norms) ** 2,
        "ti_power": lambda: sum(size**degree for size in (rows if axis == "rows" else columns)),
        "cs_power": lambda: sum(norms) ** degree,
        "omega_ti": lambda: sum(abs(P[i, s] * P[j, s]) for s in range(k) for i, j in pairs),
        "omega_cs": lambda: sum(norms[i] * norms[j] for i, j in pairs),
        "omega_star": lambda: sum(abs(sum(P[i, s] * P[j, s] for s in range(k))) for i, j in pairs),
    }[name]()


def used_pairs(P: np.ndarray) -> int:
    """Pairs of rows that share a live column, by a double loop."""
    d = P.shape[0]
    return sum(bool(((P[i] != 0) & (P[j] != 0)).any()) for i in range(d) for j in range(i))


def objective(X, y, w, P, bias, *, loss, name, lam_w, lam_p, lam, weights=None) -> float:
    """The objective ([A] Eq. 2 with λΩ)."""
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    risk = np.mean(c * LOSS[loss](predict(X, w, P, bias), y))
    return risk + lam_w * (w @ w) + lam_p * np.sum(P**2) + lam * omega(name, P)


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


def quad_and_threshold(name: str, P: np.ndarray, j: int, s: int) -> tuple[float, float]:
    """Ω as quad·p² + t·|p| in the entry (j, s)."""
    column = np.abs(P[:, s]).sum() - abs(P[j, s])
    row = np.abs(P[j]).sum() - abs(P[j, s])
    return {
        "l2": (1.0, 0.0),
        "l1": (0.0, 1.0),
        "elastic_net": (0.5, 0.5),
        "ti": (1.0, 2 * column),
        "ti_rows": (1.0, 2 * row),
        "omega_ti": (0.0, column),
    }[name]


def entry_step(p: float, g: float, h: float, quad: float, t: float) -> float:
    """argmin over q of g(q − p) + ½h(q − p)² + ½quad·q² + t·|q|."""
    z = h * p - g
    return np.sign(z) * max(abs(z) - t, 0.0) / (h + quad) if h + quad > 0 else p * (t == 0)


def mcp_step(p: float, g: float, h: float, quad: float, strength: float) -> float:
    """The same with strength·MCP, γ = 1, for t·|q|: the best of where its pieces are least and meet."""

    def value(q):
        return (
            g * (q - p)
            + 0.5 * h * (q - p) ** 2
            + 0.5 * quad * q**2
            + strength * omega("mcp", np.array([[q]]))
        )

    inner = np.clip(entry_step(p, g, h, quad - strength, strength), -1.0, 1.0)
    return min((entry_step(p, g, h, quad, 0.0), inner, 0.0, -1.0, 1.0), key=value)


def pcd_epoch(X, y, w, P, bias, *, loss, name, lam_p, lam, weights=None, by_features=False):
    """[A] Algorithm 1, lines 5-15, or with its two loops exchanged; everything recomputed at each step."""
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    P = P.copy()
    d, k = P.shape
    entries = [(j, s) for s in range(k) for j in range(d)]
    for j, s in sorted(entries) if by_features else entries:
        df = slope_of_entry(X, P, j, s)
        f = predict(X, w, P, bias)
        g = np.mean(c * SLOPE[loss](f, y) * df)
        quad, t = (0.0, 0.0) if name == "mcp" else quad_and_threshold(name, P, j, s)

        def step(h, p=P[j, s], g=g, quad=quad, t=t):
            if name == "mcp":
                return mcp_step(p, g, h, 2 * lam_p, lam)
            return entry_step(p, g, h, 2 * (lam_p + lam * quad), lam * t)

        P[j, s] = curved_step(step, P[j, s], df, c, f, y, loss)
    return P


def shrink_row(name: str, u: np.ndarray, strength: float, P: np.ndarray, j: int) -> np.ndarray:
    """The row operator of Ω without its quadratic part."""
    norms = np.linalg.norm(P, axis=1)
    others = norms.sum() - norms[j]
    columns = np.abs(P).sum(axis=0) - np.abs(P[j])
    if name == "l2":
        return u
    if name == "mcp":
        return np.array([mcp_step(q, 0.0, 1.0, 0.0, strength) for q in u])
    if name in ("l21", "cs", "omega_cs"):
        t = strength * {"l21": 1.0, "cs": 2 * others, "omega_cs": others}[name]
        length = np.linalg.norm(u)
        return u * max(1 - t / length, 0.0) if length > 0 else u * 0
    ones = np.ones_like(u)
    t = strength * {"l1": ones, "elastic_net": 0.5 * ones, "ti": 2 * columns, "omega_ti": columns}[name]
    return np.sign(u) * np.maximum(np.abs(u) - t, 0.0)


QUAD = {
    "l2": 1.0,
    "l1": 0.0,
    "mcp": 0.0,
    "elastic_net": 0.5,
    "l21": 0.0,
    "ti": 1.0,
    "cs": 1.0,
    "omega_ti": 0.0,
    "omega_cs": 0.0,
}


def pbcd_epoch(X, y, w, P, bias, *, loss, name, lam_p, lam, weights=None, search=None):
    """[A] Algorithm 6, lines 9-34; with search = (sigma, rho), or without μ, its line search."""
    n, d = X.shape
    search = (0.01, 0.5) if search is None and loss not in MU else search
    c = np.ones(n) if weights is None else weights / weights.mean()
    P = P.copy()
    smooth = lam_p + lam * QUAD[name]

    def value(Q):
        risk = np.mean(c * LOSS[loss](predict(X, w, Q, bias), y))
        return risk + lam_p * np.sum(Q**2) + lam * omega(name, Q)

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
            q = shrink_row(name, P[j] - direction / inverse, lam / inverse, P, j)
        else:
            q = shrink_row(name, P[j], 1e300 if lam > 0 else 0.0, P, j)
        step = q - P[j]
        if search is None:
            P[j] = q
            continue
        sigma, rho = search
        Q = P.copy()
        Q[j] = q
        # The quadratic part of Ω counts as smooth, so it is not in this difference.
        jump = omega(name, Q) - omega(name, P) - QUAD[name] * (q @ q - P[j] @ P[j])
        predicted = direction @ step + lam * jump
        alpha = 1.0
        for _ in range(40):
            Q[j] = P[j] + alpha * step
            if value(Q) - value(P) <= sigma * alpha * predicted + 1e-15:
                P[j] = Q[j]
                break
            alpha *= rho
    return P
