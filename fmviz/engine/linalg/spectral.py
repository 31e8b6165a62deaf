"""The trace norm of symmetric matrices, and the proximal operators of this norm alone and plus ‖·‖₁.

All use the eigendecomposition of a symmetric W, shape (d, d), in O(d³): the singular values of a symmetric
matrix are the absolute values of its eigenvalues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# ρ divided by the ratio of the strengths to the largest entry; values from 50 to 500 perform similarly.
_BALANCE = 150.0


def soft_threshold(V: np.ndarray, threshold: float) -> np.ndarray:
    """Return the prox of threshold·‖·‖₁: soft thresholding with exact zeros."""
    return V - np.clip(V, -threshold, threshold)


def trace_norm(W: np.ndarray) -> float:
    """Return Σ|eigenvalues| of a symmetric W."""
    live = W.any(axis=1)
    return float(np.abs(np.linalg.eigvalsh(W[np.ix_(live, live)])).sum()) if live.any() else 0.0


def spectral_norm(W: np.ndarray) -> float:
    """Return the largest |eigenvalue| of a symmetric W."""
    return float(np.abs(np.linalg.eigvalsh(W)).max(initial=0.0))


def prox_trace(V: np.ndarray, strength: float) -> np.ndarray:
    """Return argmin_W ½‖W − V‖²_F + strength·‖W‖_tr, which shrinks eigenvalues and keeps eigenvectors.

    Rows and columns that are zero in V stay exactly zero.
    """
    result = np.zeros_like(V)
    live = np.flatnonzero(V.any(axis=1))
    if live.size == 0:
        return result
    block = np.ix_(live, live)
    values, vectors = np.linalg.eigh(V[block])
    values = soft_threshold(values, strength)
    kept = values != 0.0
    half = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    result[block] = 0.5 * (half + half.T)
    return result


class SumOperator(NamedTuple):
    """The result of `prox_trace_l1`.

    Attributes
    ----------
    W : (d, d) ndarray
        The minimizer, with exact zeros.
    S : (d, d) ndarray
        The part of V − W in trace·∂‖W‖_tr; the remainder is in entries·∂‖W‖₁.
    rounds : int
        The number of eigendecompositions.
    """

    W: np.ndarray
    S: np.ndarray
    rounds: int


def prox_trace_l1(
    V: np.ndarray,
    trace: float,
    entries: float,
    S: np.ndarray | None = None,
    *,
    rtol: float = 1e-12,
    origin: np.ndarray | None = None,
    most: int = 500,
) -> SumOperator:
    r"""Return argmin_W ½‖W − V‖²_F + trace·‖W‖_tr + entries·‖W‖₁, both strengths positive.

    The operator of a sum is not the composition of the operators. W solves the problem if and only if
    W = soft(V − S, entries) = Z for some S in trace·∂‖Z‖_tr. The fixed point is found by Douglas–Rachford
    splitting (Eckstein and Bertsekas 1992): from x = Z + S/ρ,

        Z = prox of (trace/ρ)·‖·‖_tr at x,  S = ρ(x − Z),
        x ← soft((V + ρZ − S)/(1 + ρ), entries/(1 + ρ)) + S/ρ,

    with Anderson acceleration (Zhang, O'Donoghue and Boyd 2020). ρ balances the sizes of Z and S/ρ.

    Parameters
    ----------
    V : (d, d) ndarray
        A symmetric matrix.
    trace, entries : float
        The strengths of the two norms, > 0.
    S : (d, d) ndarray, optional
        A start: the S of a similar problem.
    rtol : float
        The iteration stops when the W from S and Z differ by at most `rtol` times the norm of V, or times
        ‖W − origin‖ if `origin` is given.
    origin : (d, d) ndarray, optional
        See rtol.
    most : int
        The maximum number of eigendecompositions.
    """
    S = np.zeros_like(V) if S is None else S
    W = soft_threshold(V - S, entries)
    size = float(np.abs(W).max(initial=0.0))
    rho = min(max(_BALANCE * (trace + entries) / size, 1.0), 1e3) if size > 0.0 else 1.0
    floor = 1e-15 * float(np.linalg.norm(V))
    x = W + S / rho
    mixer = _Anderson()
    rounds, Z = 0, W
    while rounds < most:
        rounds += 1
        before, Z = Z, prox_trace(x, trace / rho)
        S = rho * (x - Z)
        W = soft_threshold(V - S, entries)
        scale = float(np.linalg.norm(V if origin is None else W - origin))
        if float(np.linalg.norm(W - Z)) <= max(rtol * scale, floor):
            break
        inner = soft_threshold((V + rho * Z - S) / (1.0 + rho), entries / (1.0 + rho))
        if rounds % 25 == 0:
            # Very different residuals of the two copies and of S call for another ρ (Boyd et al. 2011).
            apart, moved = np.linalg.norm(inner - Z), rho * np.linalg.norm(Z - before)
            change = 4.0 if apart > 30.0 * moved else 0.25 if moved > 30.0 * apart else 1.0
            if change != 1.0:
                rho = min(max(change * rho, 1.0), 1e3)
                x, mixer = Z + S / rho, _Anderson()
                continue
        x = mixer.next(x, inner + x - Z)
    return SumOperator(W, S, rounds)


class _Anderson:
    """Type-II Anderson acceleration of x ← F(x), F nonexpansive, with a short memory and a safeguard.

    The residuals ‖F(x) − x‖ of plain steps never increase. If the residual of a mixed point increases, the
    plain step from the previous point replaces it and the memory is cleared; the iteration thus converges
    like F.
    """

    def __init__(self, memory: int = 10) -> None:
        self._memory = memory
        self._size = np.inf
        self._fallback: np.ndarray | None = None
        self._residuals: list[np.ndarray] = []
        self._images: list[np.ndarray] = []

    def next(self, x: np.ndarray, image: np.ndarray) -> np.ndarray:
        """Return the next point after F(x) = `image`."""
        residual = (image - x).ravel()
        size = float(np.linalg.norm(residual))
        if self._fallback is not None and not size <= self._size:
            plain, self._fallback = self._fallback, None
            self._residuals, self._images = [], []
            return plain
        self._size, self._fallback = size, None
        self._residuals = [*self._residuals[-self._memory :], residual]
        self._images = [*self._images[-self._memory :], image.ravel()]
        if len(self._images) < 3:
            return image
        dR = np.diff(np.array(self._residuals), axis=0)
        gram = dR @ dR.T
        gram[np.diag_indices_from(gram)] += 1e-10 * float(np.trace(gram)) + 1e-300
        mix = np.linalg.solve(gram, dR @ residual)
        self._fallback = image
        return (self._images[-1] - mix @ np.diff(np.array(self._images), axis=0)).reshape(x.shape)
