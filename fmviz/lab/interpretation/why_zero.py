"""Explanation of a pair weight: why it is zero, or which columns of P it consists of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.typography import counted


@dataclass(frozen=True, eq=False)
class Row:
    """A row of P with its gradients and thresholds.

    Attributes
    ----------
    feature : int
        Index j of the feature.
    values : (k,) ndarray
        The row p_j.
    pull : (k,) ndarray or (1,) ndarray
        |∂risk/∂p_js| for each entry; if the penalty shrinks row norms, the norm of the gradient of the row.
    threshold : ndarray of the same shape
        The largest pull at which a zero entry (row) stays zero: λ times the weight of |p_js| (‖p_j‖₂) in Ω.
    """

    feature: int
    values: np.ndarray
    pull: np.ndarray
    threshold: np.ndarray

    @property
    def live(self) -> np.ndarray:
        """The columns that the row uses, as a mask of shape (k,)."""
        return self.values != 0.0

    @property
    def stays_zero(self) -> np.ndarray:
        """Zero entries whose pull does not exceed the threshold, as a mask of shape (k,)."""
        return ~self.live & np.broadcast_to(self.pull <= self.threshold, self.values.shape)


@dataclass(frozen=True, eq=False)
class Story:
    """The explanation of the weight of a pair of features.

    Attributes
    ----------
    first, second : Row
        The two rows.
    by_norm : bool
        Whether the regularizer shrinks row norms.
    thresholded : bool
        Whether the regularizer has a threshold.
    """

    first: Row
    second: Row
    by_norm: bool
    thresholded: bool

    @property
    def weight(self) -> float:
        """⟨p_i, p_j⟩."""
        return float(self.first.values @ self.second.values)

    @property
    def shared(self) -> np.ndarray:
        """The columns in which both rows are non-zero."""
        return np.flatnonzero(self.first.live & self.second.live)

    def sentence(self, names: tuple[str, ...] | list[str]) -> str:
        """Return the explanation of the weight in words."""
        a, b = names[self.first.feature], names[self.second.feature]
        if self.shared.size:
            columns = counted(self.shared.size, "column")
            return (
                f"{a} and {b} interact with weight {self.weight:.4g}, the sum of products over {columns} of "
                "P in which both are non-zero."
            )
        if dead := [names[row.feature] for row in (self.first, self.second) if not row.live.any()]:
            rows = f"the row of {dead[0]} is" if len(dead) == 1 else f"the rows of {a} and {b} are"
            return f"{a} and {b} do not interact: {rows} zero in every column of P."
        return (
            f"{a} and {b} do not interact: their rows are disjoint. {a} uses {_columns(self.first.live)}, "
            f"{b} uses {_columns(self.second.live)}; no column is common to both."
        )

    def reason(self, names: tuple[str, ...] | list[str]) -> str:
        """Return which thresholds keep entries at zero, or "" if the features interact."""
        if self.shared.size:
            return ""
        if not self.thresholded:
            return "No threshold of this regularizer keeps a single entry or row at exactly zero."
        said = []
        for row, partner in ((self.first, self.second), (self.second, self.first)):
            wanted = ~row.live & (partner.live if partner.live.any() else not row.live.any())
            if not wanted.any():
                continue
            kept = int((row.stays_zero & wanted).sum())
            name = names[row.feature]
            if self.by_norm:
                relation = "within" if row.pull[0] <= row.threshold[0] else "above"
                said.append(
                    f"The pull on the row of {name} is {row.pull[0]:.3g}, {relation} the threshold "
                    f"{row.threshold[0]:.3g}."
                )
                continue
            share = np.divide(row.pull, row.threshold, out=row.pull - 1.0, where=row.threshold > 0.0)
            s = int(np.flatnonzero(wanted)[np.argmax(share[wanted])])
            n = int(wanted.sum())
            which = {0: "No", n: {1: "The only", 2: "Both"}.get(n, f"All {n:,}")}.get(
                kept, f"{kept:,} of {n:,}"
            )
            said.append(
                f"{which} candidate {'entry' if n == 1 else 'entries'} of {name} "
                f"stay{'s' * (1 in (n, kept))} below the threshold; closest: column {s + 1} "
                f"({row.pull[s]:.3g} of {row.threshold[s]:.3g})."
            )
        if any((~row.live & ~row.stays_zero).any() for row in (self.first, self.second)):
            said.append("Entries whose pull exceeds the threshold become non-zero in the next step.")
        return " ".join(said)


def why_zero(problem: Problem, parameters: Parameters, i: int, j: int) -> Story:
    """Explain the weight of the pair (i, j).

    An entry p_js = 0 stays 0 in a coordinate step if and only if |∂risk/∂p_js| ≤ λ·t_js, with Ω = t_js·|p_js|
    + … as a function of the entry (atarashi2021, Algorithm 1); for TI t_js = 2(‖p_:,s‖₁ − |p_js|). For
    penalties on row norms (ℓ2,1, CS) the same condition applies to row norms. All values are recomputed from
    the parameters.

    Parameters
    ----------
    problem : Problem
        Problem of a factorization machine of order 2, with the current strengths.
    parameters : Parameters
        P of shape (d, k), w, bias.
    i, j : int
        Two different features.
    """
    gradient = problem.evaluated(parameters).gradient[0]
    penalty, by_norm = problem.penalty, problem.penalty.row_wise
    thresholded = penalty.separable and problem.lambda_sparse > 0.0
    none = np.zeros((len(parameters.P), 1) if by_norm else parameters.P.shape)
    t = problem.lambda_sparse * penalty.thresholds(parameters.P) if thresholded else none
    thresholded = thresholded and bool(t.any())

    def row(at: int) -> Row:
        pull = np.sqrt(np.square(gradient[at]).sum(keepdims=True)) if by_norm else np.abs(gradient[at])
        return Row(at, parameters.P[at].copy(), pull, np.asarray(t[at], dtype=float))

    return Story(row(i), row(j), by_norm, thresholded)


def _columns(live: np.ndarray) -> str:
    places = [str(s + 1) for s in np.flatnonzero(live)]
    if len(places) > 6:
        return f"{len(places)} other columns"
    return f"column {places[0]}" if len(places) == 1 else f"columns {', '.join(places[:-1])} and {places[-1]}"
