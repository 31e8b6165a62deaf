"""Parameters of an epoch reduced to the contents of its picture, to save memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fmviz.engine.interactions.weights import GivenPairs, interactions_of
from fmviz.engine.models import MODELS
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Snapshot

EXACT_FEATURES = 512
"""Maximum number of features drawn pair by pair; more are drawn as tiles."""
N_TILES = 128


@dataclass(frozen=True, eq=False)
class Thinned:
    """The non-zero rows of P, at most a few hundred, or the pair weights W. Exact zeros are preserved.

    `values` are these `rows` of P, shape (m, rank), without the `n_dropped` rows of smallest norm; or, if
    `rows` is None, W without its diagonal, as tiles for many features. `coefficients`, if given, multiply the
    columns, and V, shape (rank, outputs), has the weights of the columns in several outputs.
    """

    values: np.ndarray
    n_features: int
    rows: Any = None
    n_dropped: int = 0
    coefficients: np.ndarray | None = None
    V: Any = None

    @property
    def factors(self) -> bool:
        """Whether the values are rows of P."""
        return self.rows is not None

    def dense(self) -> np.ndarray:
        """Return the (n_features, rank) matrix with the dropped rows as zeros."""
        P = np.zeros((self.n_features, self.values.shape[1]))
        P[self.rows] = self.values
        return P

    def tiles(self) -> np.ndarray:
        """Return PPᵀ as tiles, each with its largest interaction."""
        return interactions_of(MODELS["fm"], replace(self, coefficients=None)).pooled(N_TILES)


def thin(parameters: Parameters, most: int = EXACT_FEATURES) -> Any:
    """Return a `Thinned` of the parameters of a model, with the `most` non-zero rows of P of largest norm.

    Several machines give a tuple.
    """
    if (m := parameters.n_machines) is not None:
        return tuple(thin(parameters.of_output(c), most) for c in range(m))
    if parameters.W is not None:
        d = parameters.W.shape[0]
        return Thinned(GivenPairs.of(parameters.W).pooled(d if d <= most else N_TILES), d)
    P, V = parameters.P, parameters.get("V")
    if V is not None:
        used = V.any(axis=1)
        P, V = P[:, used], V[used]
    rows = np.flatnonzero(P.any(axis=1))
    if dropped := max(0, rows.size - most):
        rows = np.sort(rows[np.argsort(-np.abs(P[rows]).max(axis=1), kind="stable")[:most]])
    return Thinned(P[rows], P.shape[0], rows, dropped, parameters.coefficients, V)


@dataclass(frozen=True, eq=False)
class Frame:
    """The picture of an epoch: metrics of its snapshot, and its parameters by `thin`."""

    epoch: int
    used_interactions: int
    thinned: Any

    @classmethod
    def of(cls, snapshot: Snapshot) -> Frame:
        """Return the frame of a snapshot."""
        return cls(snapshot.epoch, snapshot.used_interactions, thin(snapshot.parameters))

    def of_output(self, c: int) -> Frame:
        """Return the frame with the picture of one output; counts are those of all outputs."""
        if isinstance(self.thinned, tuple):
            return replace(self, thinned=self.thinned[c])
        return replace(self, thinned=replace(self.thinned, coefficients=self.thinned.V[:, c]))

    @property
    def arrays(self) -> list[np.ndarray]:
        """The thinned parameters."""
        parts = self.thinned if isinstance(self.thinned, tuple) else (self.thinned,)
        return [array for part in parts for array in (part.values, part.V) if array is not None]

    @property
    def key(self) -> str:
        """The label on a slider over epochs."""
        return f"epoch {self.epoch:,}"

    @property
    def finite(self) -> bool:
        """Whether the frame can be drawn."""
        return all(np.isfinite(array).all() for array in self.arrays)
