"""Interactions as a network with a reproducible layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path

__all__ = ["Network", "network"]

_ROUNDS = 120
_WIDE = 1.9  # how much wider than high the picture is


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes joined by weighted edges.

    Attributes
    ----------
    nodes : (n,) int ndarray
        What the nodes stand for.
    position : (n, 2) ndarray
        Where they are.
    strength : (n,) ndarray
        The sum of |weight| of the edges of each.
    degree : (n,) int ndarray
        The number of its edges.
    edges : (e, 2) int ndarray
        The places among `nodes` of both ends.
    weight : (e,) ndarray
        Of each edge.
    """

    nodes: np.ndarray
    position: np.ndarray
    strength: np.ndarray
    degree: np.ndarray
    edges: np.ndarray
    weight: np.ndarray


def network(i: np.ndarray, j: np.ndarray, weight: np.ndarray) -> Network:
    """Return the network of some pairs.

    Every connected component is drawn so that distances are near the lengths of shortest paths (stress
    majorization: Gansner, Koren and North 2004, "Graph drawing by stress majorization"), and the components
    are set side by side, the largest first. Nothing is drawn at random.

    Parameters
    ----------
    i, j : int ndarrays
        The two ends of every edge.
    weight : ndarray
        Of every edge.
    """
    nodes, ends = np.unique(np.concatenate([i, j]), return_inverse=True)
    edges = ends.reshape(2, -1).T
    n = nodes.size
    size = np.abs(weight)
    strength = np.bincount(edges.ravel(), np.repeat(size, 2), minlength=n)
    degree = np.bincount(edges.ravel(), minlength=n)
    graph = sp.csr_array((np.ones(len(edges)), edges.T), shape=(n, n))
    graph = graph + graph.T
    count, member = connected_components(graph, directed=False)
    parts = [np.flatnonzero(member == c) for c in range(count)]
    parts.sort(key=lambda part: (-part.size, part[0]))
    drawn = [_component(graph[part][:, part]) for part in parts]
    position = np.zeros((n, 2))
    for part, place in zip(parts, _packed(drawn), strict=True):
        position[part] = place
    return Network(nodes, position, strength, degree, edges, weight)


def _component(graph: sp.csr_array) -> np.ndarray:
    """Return positions of the nodes of a connected graph, its first node in the middle of the circle."""
    n = graph.shape[0]
    distance = shortest_path(graph, unweighted=True, directed=False)
    # On a circle, neighbours near each other, to begin with.
    order = np.lexsort((np.arange(n), distance[int(np.argmax(distance.sum(axis=1)))]))
    angle = np.empty(n)
    angle[order] = 2 * np.pi * np.arange(n) / n
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * distance.max() / 2
    if n < 3:
        return X
    importance = 1.0 / np.square(distance + np.eye(n)) * (1 - np.eye(n))
    laplacian = np.diag(importance.sum(axis=1)) - importance
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_ROUNDS):
        apart = np.sqrt(np.square(X[:, None] - X).sum(axis=2)) + 1e-9
        ratio = importance * distance / apart
        X = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ X)
    return np.asarray(X)


def _packed(drawn: list[np.ndarray]) -> list[np.ndarray]:
    """Return positions of the components in rows of about equal width."""
    boxes = []
    for X in drawn:
        low = X.min(axis=0)
        boxes.append((X - low, np.maximum(X.max(axis=0) - low, 0.6)))
    area = sum(float(np.prod(size + 1.0)) for _, size in boxes)
    width = max(float(np.sqrt(area * _WIDE)), max(float(size[0]) for _, size in boxes))
    found, x, y, tall = [], 0.0, 0.0, 0.0
    for X, size in boxes:
        if x > 0 and x + size[0] > width:
            x, y, tall = 0.0, y - tall - 1.0, 0.0
        found.append(X + np.array([x, y - float(size[1])]))
        x, tall = x + float(size[0]) + 1.0, max(tall, float(size[1]))
    return found
