"""Operators of the trace norm and of its sum with ‖·‖₁, for symmetric matrices.

All of them act on a symmetric W, shape (d, d), through its eigendecomposition in O(d³): the singular values
of a symmetric matrix are the absolute values of its eigenvalues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def soft_threshold(V: np.ndarray, threshold: float) -> np.ndarray:
    """Return prox of threshold·‖·‖₁: every entry moved towards 0 by `threshold`; zeros are exact."""
    return V - np.clip(V, -threshold, threshold)


def trace_norm(W: np.ndarray) -> float:
    """Return ‖W‖_tr = Σ|eigenvalues| of a symmetric W."""
    live = W.any(axis=1)
    return float(np.abs(np.linalg.eigvalsh(W[np.ix_(live, live)])).sum()) if live.any() else 0.0


def spectral_norm(W: np.ndarray) -> float:
    """Return the largest |eigenvalue| of a symmetric W."""
    return float(np.abs(np.linalg.eigvalsh(W)).max(initial=0.0))


def prox_trace(V: np.ndarray, threshold: float) -> np.ndarray:
    """Return argmin_W ½‖W − V‖²_F + threshold·‖W‖_tr: the eigenvalues moved towards 0 by `threshold`.

    Rows and columns that are zero in V stay exactly zero.
    """
    result = np.zeros_like(V)
    live = np.flatnonzero(V.any(axis=1))
    if live.size == 0:
        return result
    block = np.ix_(live, live)
    values, vectors = np.linalg.eigh(V[block])
    values = soft_threshold(values, threshold)
    kept = values != 0.0
    half = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
    result[block] = 0.5 * (half + half.T)
    return result


class SumOperator(NamedTuple):
    """What `prox_trace_l1` returns.

    Attributes
    ----------
    W : (d, d) ndarray
        The minimiser, with exact zeros.
    S : (d, d) ndarray
        The part of V − W that is in trace·∂‖W‖_tr, the rest being in entries·∂‖W‖₁.
    rounds : int
        Eigendecompositions made.
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
    scale: np.ndarray | None = None,
    most: int = 500,
) -> SumOperator:
    r"""Return argmin_W ½‖W − V‖²_F + trace·‖W‖_tr + entries·‖W‖₁, both strengths positive.

    The operator of a sum is not the operators applied in turn. Its dual is
    min ½‖soft(V − S, entries)‖²_F over ‖S‖_op ≤ trace, whose gradient is −W(S) with
    W(S) = soft(V − S, entries), 1-Lipschitz: projected gradient steps S ← S + W − prox_trace(S + W) are the
    Dykstra iteration of Bauschke and Combettes (2008) for two operators, and are accelerated here by FISTA
    with restart.

    Parameters
    ----------
    V : (d, d) ndarray
        Symmetric.
    trace, entries : float
        The strengths of the two norms, > 0.
    S : (d, d) ndarray, optional
        Where to start: the S of a near problem.
    rtol : float
        It stops when W(S) and prox_trace(S + W), which are equal at the solution, differ by at most `rtol`
        times the norm of `V`, or times ‖W − scale‖ where `scale` is given.
    scale : (d, d) ndarray, optional
        See rtol.
    most : int
        The most eigendecompositions.
    """
    S = np.zeros_like(V) if S is None else S
    ahead, t = S, 1.0
    floor = 1e-15 * float(np.linalg.norm(V))
    W = soft_threshold(V - S, entries)
    for rounds in range(1, most + 1):
        W_ahead = soft_threshold(V - ahead, entries)
        shifted = ahead + W_ahead
        new = shifted - prox_trace(shifted, trace)
        # ½‖W‖² is the dual's objective: FISTA with restart where the step turns back.
        turned = float(np.vdot(ahead - new, new - S)) > 0.0
        gap = float(np.linalg.norm(new - ahead))
        t_next = 1.0 if turned else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead = new if turned else new + ((t - 1.0) / t_next) * (new - S)
        S, t = new, t_next
        W = soft_threshold(V - S, entries)
        size = float(np.linalg.norm(V if scale is None else W - scale))
        if gap <= max(rtol * size, floor):
            break
    return SumOperator(W, S, rounds)
