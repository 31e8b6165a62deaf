"""Reference implementations of the batch solvers, written from the papers' formulae with loops."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

import fmviz

from . import slow_fm


class Setting:
    """A problem as slow functions of θ = [P, w, b], where b is an array of one number."""

    def __init__(self, X, y, *, loss, penalty, lam_w, lam_p, lam, linear=True, bias=True, weights=None):
        self.X, self.y, self.loss, self.omega = X, y, loss, penalty
        self.lam_w, self.lam_p, self.lam = lam_w, lam_p, lam
        self.linear, self.bias = linear, bias
        self.c = np.ones(y.size) if weights is None else weights / weights.mean()

    def risk(self, theta):
        P, w, b = theta
        return np.mean(self.c * slow_fm.LOSS[self.loss](slow_fm.predict(self.X, w, P, b[0]), self.y))

    def penalty(self, theta):
        P, w, _ = theta
        return self.lam_w * (w @ w) + self.lam_p * np.sum(P**2) + self.lam * slow_fm.omega(self.omega, P)

    def objective(self, theta):
        return self.risk(theta) + self.penalty(theta)

    def gradient(self, theta):
        """The gradient of the risk, entry by entry."""
        P, w, b = theta
        in_P, in_w, in_b = slow_fm.gradient(self.X, self.y, w, P, b[0], self.c, self.loss)
        return [in_P, in_w * self.linear, np.array([in_b * self.bias])]

    def prox(self, theta, eta):
        """[A] Eq. 28; operators have contracts of their own."""
        P, w, b = theta
        scale = 1 + 2 * eta * self.lam_p
        Q = fmviz.prox(self.omega, P / scale, eta * self.lam / scale)
        return [Q, w / (1 + 2 * eta * self.lam_w) if self.linear else w, b]


def add(a, scale, b):
    return [x + scale * z for x, z in zip(a, b, strict=True)]


def inner(a, b):
    return sum(np.sum(x * z) for x, z in zip(a, b, strict=True))


def proximal_step(problem, y, eta, rho):
    """Backtrack on the smooth part; returns the point and the step size."""
    gradient = problem.gradient(y)
    while True:
        x = problem.prox(add(y, -eta, gradient), eta)
        step = add(x, -1, y)
        if problem.risk(x) <= problem.risk(y) + inner(gradient, step) + inner(step, step) / (2 * eta):
            return x, eta
        eta *= rho


def pgd(problem, x, epochs, eta=1.0, rho=0.5, growth=1.25):
    for epoch in range(epochs):
        x, eta = proximal_step(problem, x, eta * (growth if epoch else 1.0), rho)
    return x


def apgd(problem, x, epochs, eta=1.0, rho=0.5, growth=1.25, scheme="function"):
    before, t_before, t = x, 1.0, 1.0
    for epoch in range(epochs):
        y = add(x, (t_before - 1) / t, add(x, -1, before))
        new, eta = proximal_step(problem, y, eta * (growth if epoch else 1.0), rho)
        if problem.objective(new) > problem.objective(x):
            t, y = 1.0, x
            new, eta = proximal_step(problem, x, eta, rho)
        elif scheme == "gradient" and inner(add(y, -1, new), add(new, -1, x)) > 0:
            t = 1.0
        before, x = x, new
        t_before, t = t, (1 + np.sqrt(1 + 4 * t**2)) / 2
    return x


def nmapgd(problem, x, epochs, step=1.0, rho=0.5, delta=1e-4, eta=0.8):
    before, z, t_before, t, q, last = x, x, 0.0, 1.0, 1.0, None
    c = problem.objective(x)
    known = step

    def first_step(point):
        if last is None:
            return known
        s = add(point, -1, last)
        r = add(problem.gradient(point), -1, problem.gradient(last))
        return inner(s, s) / inner(s, r) if inner(s, r) > 1e-12 * inner(s, s) else known

    def search(point, bound):
        alpha = first_step(point)
        while True:
            out = problem.prox(add(point, -alpha, problem.gradient(point)), alpha)
            length = inner(add(out, -1, point), add(out, -1, point))
            if problem.objective(out) <= bound - delta * length:
                return out, length, alpha
            alpha *= rho

    for _ in range(epochs):
        y = add(add(x, t_before / t, add(z, -1, x)), (t_before - 1) / t, add(x, -1, before))
        z, length, known = search(y, max(problem.objective(y), c))
        new = z
        if problem.objective(z) > c - delta * length:
            v, _, known = search(x, c)
            if problem.objective(z) > problem.objective(v):
                new = v
        last, before, x = y, x, new
        t_before, t = t, (np.sqrt(4 * t**2 + 1) + 1) / 2
        q_next = eta * q + 1
        c = (eta * q * c + problem.objective(x)) / q_next
        q = q_next
    return x


def subgd(problem, x, epochs, eta=1.0, rho=0.5, sigma=1e-4):
    """[A] Eq. 12 with the full sign matrix of Eq. 13, and λ_p − λ/2 in front of ‖P‖²."""
    eta /= 2
    for _ in range(epochs):
        P, w, _ = x
        g = problem.gradient(x)
        shifted = problem.lam_p - problem.lam / 2
        g[0] = g[0] + 2 * shifted * P + problem.lam / 2 * (2 * np.sign(P @ P.T) @ P)
        g[1] = g[1] + 2 * problem.lam_w * w * problem.linear
        eta *= 2
        while problem.objective(add(x, -eta, g)) > problem.objective(x) - sigma * eta * inner(g, g):
            eta *= rho
        x = add(x, -eta, g)
    return x


def lbfgs(problem, x, epochs, memory=10):
    """As many iterations of scipy's L-BFGS in one go."""
    shapes = [part.shape for part in x]
    ends = np.cumsum([part.size for part in x])[:-1]

    def unpack(flat):
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]

    def pack(theta):
        return np.concatenate([part.ravel() for part in theta])

    def value_and_gradient(flat):
        theta = unpack(flat)
        g = problem.gradient(theta)
        g[0] = g[0] + 2 * (problem.lam_p + problem.lam) * theta[0]
        g[1] = g[1] + 2 * problem.lam_w * theta[1] * problem.linear
        return problem.objective(theta), pack(g)

    options = {"maxiter": epochs, "maxcor": memory, "ftol": 0.0, "gtol": 0.0, "maxls": 50}
    done = minimize(value_and_gradient, pack(x), jac=True, method="L-BFGS-B", options=options)
    return unpack(done.x)
