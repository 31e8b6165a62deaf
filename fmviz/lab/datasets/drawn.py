"""Generated data sets: planted interactions, triples, subsets and classes, MONK's problem and a balance.

Also synthetic errors in the targets of any set, to evaluate the detection of outliers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import block_diag

from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.settings import ParamSpec
from fmviz.tables.scaling import Scaling

if TYPE_CHECKING:
    from fmviz.tables.target import Task


def make_sparse_interactions(
    n_samples: int = 200,
    d_true: int = 80,
    b: int = 8,
    d_noise: int = 20,
    *,
    noise: float = 0.1,
    correlation: float = 0.2,
    random_state: int | np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Draw Gaussian features and a target that depends on some of their pairs.

    The first `d_true` features form `b` groups of equal size, and all pairs within a group interact:

    .. math:: y = \sum_{j<l} W_{jl} x_j x_l + \varepsilon, \qquad
              W_{jl} = 1 \text{ if j and l are in one group, else } 0.

    Every feature has mean 0 and variance 1. Features of the same group have covariance `correlation`, others
    are uncorrelated. The last `d_noise` features do not affect the target. There is no linear term.

    Parameters
    ----------
    n_samples : int
        N, the number of rows, at least 1.
    d_true : int
        The number of interacting features, divisible by `b`.
    b : int
        The number of groups, from 1 to ``d_true / 2``.
    d_noise : int
        The number of noise features.
    noise : float
        The standard deviation of ε, at least 0.
    correlation : float
        The covariance within a group of m features, from ``-1/(m - 1)`` to 1.
    random_state : int, numpy.random.Generator or None
        A seed, a generator, or None for different data at every call.

    Returns
    -------
    X : (N, d) ndarray
        The features, d = d_true + d_noise.
    y : (N,) ndarray
        The target.
    W : (d, d) ndarray
        The true interaction weights, symmetric with a zero diagonal.

    Raises
    ------
    ValueError
        If a number is out of range, or the groups cannot be of equal size.

    References
    ----------
    K. Atarashi, S. Oyama, M. Kurihara. Factorization machines with regularization for sparse feature
    interactions. JMLR 22, 2021, section 8.2.1. "Feature interaction selection" there is d_true = 80, b = 8,
    d_noise = 20; "feature selection" is d_true = 20, b = 1, d_noise = 80.

    Examples
    --------
    >>> X, y, W = make_sparse_interactions(100, d_true=6, b=2, d_noise=3, random_state=0)
    >>> X.shape, y.shape, int(W.sum()) // 2
    ((100, 9), (100,), 6)
    """
    n_samples = whole_number("n_samples", n_samples, 1)
    d_true = whole_number("d_true", d_true, 2)
    b = whole_number("b", b, 1)
    d_noise = whole_number("d_noise", d_noise, 0)
    noise = finite_number("noise", noise, 0.0)
    if d_true % b:
        allowed = ", ".join(map(str, [n for n in range(1, d_true // 2 + 1) if d_true % n == 0]))
        raise ValueError(
            f"d_true = {d_true} is not divisible by b = {b}; for this d_true, b can be {allowed}."
        )
    if (m := d_true // b) == 1:
        raise ValueError(
            f"d_true = {d_true} split into b = {b} groups leaves one feature per group, without "
            "interactions: give at most d_true / 2 groups."
        )
    correlation = finite_number("correlation", correlation, -1.0 / (m - 1), 1.0)
    try:
        rng = np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {random_state!r} must be None, a whole number of at least 0 or a "
            "numpy.random.Generator."
        ) from None

    X = rng.standard_normal((n_samples, d_true + d_noise))
    # The symmetric square root of (1 - c) I + c 11ᵀ is a I + t 11ᵀ: no Cholesky factor, any admissible c.
    a = np.sqrt(1.0 - correlation)
    t = (np.sqrt(max(0.0, 1.0 + (m - 1) * correlation)) - a) / m
    groups = X[:, :d_true].reshape(n_samples, b, m)
    groups = a * groups + t * groups.sum(axis=2, keepdims=True)
    X[:, :d_true] = groups.reshape(n_samples, d_true)
    # Σ_{j<l} x_j x_l = ½((Σ x_j)² - Σ x_j²), group by group.
    pairs = 0.5 * (groups.sum(axis=2) ** 2 - (groups**2).sum(axis=2))
    y = pairs.sum(axis=1) + noise * rng.standard_normal(n_samples)
    return X, y, block_diag(*[np.ones((m, m)) - np.eye(m)] * b, np.zeros((d_noise, d_noise)))


def sparse_interactions(
    *,
    n_samples: int,
    d_true: int,
    b: int,
    d_noise: int,
    noise: float,
    correlation: float,
    seed: int,
    decimals: int | None = None,
) -> dict[str, Any]:
    """Draw by `make_sparse_interactions`, rounded to the precision of a file."""
    X, y, W = make_sparse_interactions(
        n_samples, d_true, b, d_noise, noise=noise, correlation=correlation, random_state=seed
    )
    if decimals is not None:
        X, y = _rounded(X, decimals), _rounded(y, decimals)
    return {**_named(X, _numbered("g", b, d_true // b), d_noise), "y": y, "truth": W}


def _rounded(values: np.ndarray, decimals: int = 6) -> np.ndarray:
    return values.round(decimals) + 0.0  # no "-0.0"


def _numbered(word: str, n_groups: int, size: int) -> list[str]:
    return [f"{word}{g}_{j}" for g in range(1, n_groups + 1) for j in range(1, size + 1)]


def _named(X: np.ndarray, names: Sequence[str], n_noise: int = 0) -> dict[str, Any]:
    """Return column names, one attribute each, with noise columns last."""
    names = (*names, *(f"noise_{j}" for j in range(1, n_noise + 1)))
    return {"X": X, "feature_names": names, "groups": names}


def _groups(n_groups: int, size: int) -> list[range]:
    return [range(size * g, size * (g + 1)) for g in range(n_groups)]


def _subsets(groups: Sequence[range], order: int) -> tuple[tuple[int, ...], ...]:
    return tuple(subset for group in groups for subset in combinations(group, order))


def pair_weights(d: int, pairs: Iterable[tuple[int, ...]], weight: float = 1.0) -> np.ndarray:
    """Return the symmetric matrix, shape (d, d), with a weight at some pairs and 0 elsewhere."""
    W = np.zeros((d, d))
    for i, j in pairs:
        W[i, j] = W[j, i] = weight
    return W


def planted_triples(
    *, n_samples: int, pair_groups: int, triple_groups: int, size: int, n_noise: int, noise: float, seed: int
) -> dict[str, Any]:
    """Draw Gaussian features; the target sums the pairs of the first groups and the triples of the next."""
    rng = np.random.default_rng(seed)
    groups = _groups(pair_groups + triple_groups, size)
    pairs, triples = _subsets(groups[:pair_groups], 2), _subsets(groups[pair_groups:], 3)
    d = size * len(groups) + n_noise
    X = _rounded(rng.standard_normal((n_samples, d)))
    y = noise * rng.standard_normal(n_samples)
    for members in (*pairs, *triples):
        y += X[:, members].prod(axis=1)
    return {
        **_named(
            X,
            [*_numbered("pairs", pair_groups, size), *_numbered("triples", triple_groups, size)],
            n_noise,
        ),
        "y": y.round(6),
        "truth": pair_weights(d, pairs),
        "true_triples": triples,
    }


def planted_subsets(
    *, n_samples: int, n_groups: int, size: int, n_noise: int, noise: float, seed: int
) -> dict[str, Any]:
    """Draw features, uniform on [-1, 1]; the target sums all subsets of groups, by the products of 1 + x."""
    rng = np.random.default_rng(seed)
    groups = _groups(n_groups, size)
    d = size * n_groups + n_noise
    X = _rounded(rng.uniform(-1.0, 1.0, (n_samples, d)))
    y = noise * rng.standard_normal(n_samples)
    for members in groups:
        y += (1.0 + X[:, members]).prod(axis=1)
    return {
        **_named(X, _numbered("g", n_groups, size), n_noise),
        "y": y.round(6),
        "truth": pair_weights(d, _subsets(groups, 2)),
        "true_triples": _subsets(groups, 3),
    }


def planted_classes(
    *, n_samples: int, n_classes: int, size: int, n_noise: int, weight: float, seed: int
) -> dict[str, Any]:
    """Draw Gaussian features, and classes by the softmax of Σ_{i<j} w^c_ij x_i x_j on one basis of groups.

    For class c, all pairs of group c have the weight and those of group c + 1 (for the last class, group 1)
    its negative: the classes share a basis with one vector per group, and each class uses two of them.
    """
    rng = np.random.default_rng(seed)
    d = n_classes * size + n_noise
    own = np.array([pair_weights(d, _subsets([group], 2), weight) for group in _groups(n_classes, size)])
    W = own - np.roll(own, -1, axis=0)
    X = _rounded(rng.standard_normal((n_samples, d)))
    scores = 0.5 * np.einsum("ni,cij,nj->nc", X, W, X)
    # The largest of scores with Gumbel noise is a draw from their softmax.
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(np.float64)
    return {**_named(X, _numbered("group", n_classes, size), n_noise), "y": y, "truth": W}


MONKS = {
    "head_shape": ("round", "square", "octagon"),
    "body_shape": ("round", "square", "octagon"),
    "is_smiling": ("yes", "no"),
    "holding": ("sword", "balloon", "flag"),
    "jacket_color": ("red", "yellow", "green", "blue"),
    "has_tie": ("yes", "no"),
}
"""The attributes a1 to a6 of MONK's problems, as in their paper, in the order of its codes."""


def monks1() -> dict[str, Any]:
    """Return all robots, one-hot, and whether head and body have the same shape or the jacket is red."""
    from fmviz.tables.columns import WordColumn

    codes = _cases(*map(len, MONKS.values()))
    head, body, _, _, jacket, _ = codes
    X = np.hstack([np.eye(len(levels))[code] for levels, code in zip(MONKS.values(), codes, strict=True)])
    n_shapes = len(MONKS["head_shape"])
    return {
        "X": X,
        "y": np.where((head == body) | (jacket == MONKS["jacket_color"].index("red")), 1.0, -1.0),
        "feature_names": tuple(f"{name}={level}" for name, levels in MONKS.items() for level in levels),
        "groups": tuple(name for name, levels in MONKS.items() for _ in levels),
        "columns": tuple(WordColumn(name=name, levels=levels) for name, levels in MONKS.items()),
        "true_pairs": tuple((j, n_shapes + j) for j in range(n_shapes)),
    }


def balance_scale() -> dict[str, Any]:
    """Return all weights and distances from 1 to 5 on both sides of a lever, and whether it tips left."""
    codes = _cases(5, 5, 5, 5) + 1
    left_weight, left_distance, right_weight, right_distance = codes
    # Centred: an uncentred product is nearly collinear with its factors.
    return {
        **_named(
            np.ascontiguousarray(codes.T - 3.0),
            ("left weight", "left distance", "right weight", "right distance"),
        ),
        "y": np.where(left_weight * left_distance > right_weight * right_distance, 1.0, -1.0),
        "scaling": (Scaling(3.0, 1.0, deviations=False),) * 4,
        "true_pairs": ((0, 1), (2, 3)),
    }


def _cases(*sizes: int) -> np.ndarray:
    """Return all combinations of codes from 0, the last varying fastest, shape (attributes, cases)."""
    return np.indices(sizes).reshape(len(sizes), -1)


# ----------------------------------------------------------------------------------- synthetic errors


_GROSS = ParamSpec(
    "gross",
    "float",
    0.0,
    0.0,
    0.5,
    help="Share of rows with targets shifted by ±3 to 8 standard deviations. Validation rows keep their "
    "true targets.",
)
_FLIPPED = ParamSpec(
    "flipped",
    "float",
    0.0,
    0.0,
    0.5,
    help="Share of rows with a changed class. Validation rows keep their true classes.",
)
_SWAPPED = ParamSpec(
    "swapped",
    "float",
    0.0,
    0.0,
    0.5,
    help="Share of rows with permuted targets. Validation rows keep their true targets.",
)
_SEED = ParamSpec("errors_seed", "int", 0, 0, 999_999, help="Seed of the choice of corrupted rows.")
CONTAMINATION = tuple(spec.name for spec in (_GROSS, _FLIPPED, _SWAPPED, _SEED))
"""The names of these settings for all tasks."""
# The range of gross errors, in standard deviations of y.
_SIZES = (3.0, 8.0)


def contamination_params(task: Task) -> tuple[ParamSpec, ...]:
    """Return the contamination parameters for a task."""
    return (_GROSS if task == "regression" else _FLIPPED, _SWAPPED, _SEED)


def contaminated(
    y: np.ndarray,
    task: Task,
    gross: float = 0.0,
    flipped: float = 0.0,
    swapped: float = 0.0,
    errors_seed: int = 0,
) -> np.ndarray:
    """Return a contaminated copy of a target, or y itself if all shares are 0.

    Parameters
    ----------
    y : (N,) or (N, m) ndarray
        The target, encoded as in `fmviz.lab.datasets.Dataset`.
    task : str
        The task.
    gross : float
        Share of rows shifted by 3 to 8 standard deviations, up or down at random.
    flipped : float
        Share of rows with a changed class; with several labels, one random label is flipped.
    swapped : float
        Share of further rows with cyclically permuted targets.
    errors_seed : int
        The seed. Rows of a smaller share are a subset of those of a larger share.

    Raises
    ------
    ValueError
        If the shares sum to more than 1.
    """
    first = gross if task == "regression" else flipped
    if first == swapped == 0.0:
        return y
    if first + swapped > 1.0:
        raise ValueError("The shares of corrupted rows must sum to at most 1.")
    rng, n = np.random.default_rng([errors_seed, 7]), len(y)
    moved, exchanged = rng.permutation(n), rng.permutation(n)
    moved = moved[: round(first * n)]
    exchanged = exchanged[~np.isin(exchanged, moved)][: round(swapped * n)]
    changed = y.copy()
    changed[exchanged] = y[np.roll(exchanged, 1)]
    drawn = rng.random((n, 2))[moved]
    if task == "regression":
        low, high = _SIZES
        size = (low + (high - low) * drawn[:, 0]) * np.where(drawn[:, 1] < 0.5, -1.0, 1.0)
        changed[moved] += np.multiply.outer(size, y.std(axis=0))
    elif task == "binary":
        changed[moved] *= -1.0
    elif task == "several":
        changed[moved, (drawn[:, 0] * y.shape[1]).astype(int)] *= -1.0
    else:
        n_classes = int(y.max()) + 1
        changed[moved] = (y[moved] + 1.0 + np.floor(drawn[:, 0] * (n_classes - 1))) % n_classes
    return changed
