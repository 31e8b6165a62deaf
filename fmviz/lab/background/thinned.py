"""Reduce the parameters of an epoch to what its picture shows, to save memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fmviz.engine.interactions.weights import GivenPairs, interactions_of, tile_edges
from fmviz.engine.models import MODELS
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Snapshot

EXACT_FEATURES = 512
"""Up to so many features every pair is drawn; more are drawn as tiles."""
N_TILES = 128


@dataclass(frozen=True, eq=False)
class ThinnedFactors:
    """The non-zero rows of P, at most a few hundred of them.

    Attributes
    ----------
    rows : (m,) int ndarray
        The kept feature indices, ascending.
    values : (m, rank) float64 ndarray
        Their rows of P. Exact zeros stay exact zeros.
    n_features : int
        The number of rows of the full P.
    n_dropped : int
        Non-zero rows left out, those of least norm.
    coefficients : (rank,) float64 ndarray or None
        What the columns are multiplied by, where that is not 1.
    """

    rows: np.ndarray
    values: np.ndarray
    n_features: int
    n_dropped: int
    coefficients: np.ndarray | None = None

    @classmethod
    def of(
        cls, P: np.ndarray, most: int = EXACT_FEATURES, coefficients: np.ndarray | None = None
    ) -> ThinnedFactors:
        """Keep the `most` non-zero rows of largest norm."""
        live = np.flatnonzero(P.any(axis=1))
        dropped = max(0, live.size - most)
        if dropped:
            live = np.sort(live[np.argsort(-np.abs(P[live]).max(axis=1), kind="stable")[:most]])
        return cls(live, P[live].copy(), P.shape[0], dropped, coefficients)

    def dense(self) -> np.ndarray:
        """Return the (n_features, rank) matrix with the dropped rows as zeros."""
        P = np.zeros((self.n_features, self.values.shape[1]))
        P[self.rows] = self.values
        return P

    def tiles(self) -> np.ndarray:
        """Return PPᵀ as tiles, each with its largest interaction."""
        return interactions_of(MODELS["fm"], replace(self, coefficients=None)).pooled(N_TILES)


@dataclass(frozen=True, eq=False)
class ThinnedWeights:
    """The pair weights W without their diagonal; of many features, as tiles.

    Attributes
    ----------
    values : (t, t) float64 ndarray
        W itself up to `EXACT_FEATURES` features, else its tiles. Exact zeros
        stay exact zeros.
    n_features : int
        The number of rows of W.
    """

    values: np.ndarray
    n_features: int

    n_dropped = 0

    @classmethod
    def of(cls, W: np.ndarray) -> ThinnedWeights:
        """Thin W."""
        d = W.shape[0]
        return cls(GivenPairs.of(W).pooled(d if d <= EXACT_FEATURES else N_TILES), d)


Thinned = ThinnedFactors | ThinnedWeights


@dataclass(frozen=True, eq=False)
class ThinnedOutputs:
    """The parameters of several outputs, each thinned."""

    each: tuple[Thinned, ...]

    def of_output(self, c: int) -> Thinned:
        """Return those of one output."""
        return self.each[c]

    @property
    def values(self) -> np.ndarray:
        """What is kept of all, in one dimension."""
        return np.concatenate([weights.values.ravel() for weights in self.each])


@dataclass(frozen=True, eq=False)
class ThinnedBasis:
    """The bases in use of a machine of several outputs, and what each output takes of them.

    Attributes
    ----------
    factors : ThinnedFactors
        The bases as columns.
    V : (k, m) ndarray
        The rows of V that are not zero.
    """

    factors: ThinnedFactors
    V: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """What is kept, in one dimension."""
        return np.concatenate([self.factors.values.ravel(), self.V.ravel()])

    def of_output(self, c: int) -> Thinned:
        """Return the bases with the weights that one output gives them."""
        return replace(self.factors, coefficients=self.V[:, c])


def tile_labels(n_features: int, n_tiles: int = N_TILES) -> list[str]:
    """Return "features 1–20" and so on for the tiles of all features, counted from 1."""
    edges = tile_edges(n_features, n_tiles)
    return [
        f"feature {a + 1:,}" if b - a == 1 else f"features {a + 1:,}–{b:,}"
        for a, b in itertools.pairwise(edges)
    ]


def thin(parameters: Parameters) -> Any:
    """Return what is kept of the parameters of any model.

    That is a `Thinned`; of several outputs `ThinnedOutputs`, or `ThinnedBasis` where they share one.
    """
    if (m := parameters.n_machines) is not None:
        return ThinnedOutputs(tuple(thin(parameters.of_output(c)) for c in range(m)))
    if "V" in parameters:
        live = parameters["V"].any(axis=1)
        return ThinnedBasis(ThinnedFactors.of(parameters.P[:, live]), parameters["V"][live])
    if parameters.W is not None:
        return ThinnedWeights.of(parameters.W)
    return ThinnedFactors.of(parameters.P, coefficients=parameters.coefficients)


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture's worth of one epoch.

    Attributes
    ----------
    epoch, used_interactions : int
        Of the snapshot.
    objective : float
        Of the snapshot.
    thinned : ThinnedFactors, ThinnedWeights, ThinnedOutputs or ThinnedBasis
        Of its parameters.
    """

    epoch: int
    used_interactions: int
    objective: float
    thinned: Any

    @classmethod
    def of(cls, snapshot: Snapshot) -> Frame:
        """Return the frame of a snapshot."""
        return cls(snapshot.epoch, snapshot.used_interactions, snapshot.objective, thin(snapshot.parameters))

    def of_output(self, c: int) -> Frame:
        """Return the frame with the picture of one of several outputs; its counts are those of all."""
        return replace(self, thinned=self.thinned.of_output(c))

    @property
    def key(self) -> str:
        """What a slider over the epochs displays."""
        return f"epoch {self.epoch:,}"

    @property
    def finite(self) -> bool:
        """Whether it can be drawn."""
        return bool(np.isfinite(self.thinned.values).all())
