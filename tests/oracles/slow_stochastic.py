"""Reference implementations of the stochastic solvers, whose steps visit all of P."""

from __future__ import annotations

import numpy as np

import fmviz

from .slow_batch import Setting, add, proximal_step
from .slow_fm import gradient


def eta(schedule: str, eta0: float, power: float, lam: float, t: int) -> float:
    """The step size of step t = 0, 1, ..."""
    return {
        "constant": eta0,
        "bottou": eta0 / (1 + eta0 * lam * t),
        "optimal": eta0 / (1 + 2 * eta0 * lam * t),
    }.get(schedule, eta0 / (t + 1) ** power)


def psgd_epoch(
    X, y, w, P, b, order, *, penalty, loss, lam_w, lam_p, lam, schedule="bottou", eta0=0.1, power=0.5,
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
            P = fmviz.prox(penalty, r * (P - ep * G), ep * lam * r)
            w = (w - ew * gw) / (1 + 2 * ew * lam_w) if linear else w
        b = b - ew * gb if bias else b
    return P, w, b


class Katyusha:
    """Allen-Zhu 2017, Algorithm 1 with Option II and plain means; points are [P, w, b]."""

    def __init__(self, X, y, *, eta0=0.1, tau=0.5, batch=1, **own):
        self.problem, self.batch, self.tau, self.eta0 = Setting(X, y, **own), batch, tau, eta0

    def grad(self, point, rows=slice(None)):
        P, w, b = point
        of = self.problem
        in_P, in_w, in_b = gradient(of.X[rows], of.y[rows], w, P, b, of.c[rows], of.loss)
        return [in_P, in_w * of.linear, in_b * of.bias]

    def step(self, point, g, size):
        return self.problem.prox(add(point, -size, g), size)

    def epoch(self, state, order, scale=1.0):
        """Return the next S, Z and Y, and the point that is reported."""
        S, Z, Y = state
        tau, eta0 = self.tau, scale * self.eta0
        full = self.grad(S)
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
        return (S, Z, Y), self.step(S, self.grad(S), eta0)


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
