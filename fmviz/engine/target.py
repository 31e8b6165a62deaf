"""Targets: validated numbers or labels, and the decoding of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .errors import LARGEST

_SMALL = 1e-50
_STEP = 2.0**-30
Kind = Literal["real", "binary", "class", "ordinal", "several"]


@dataclass(frozen=True, eq=False)
class Target:
    """The target of every row, as numbers.

    Attributes
    ----------
    values : (N,) or (N, m) float64 ndarray
        Real numbers; -1 and +1 for two classes and for several labels per row; 0, …, C − 1 for one of C
        classes or ratings.
    kind : {"real", "binary", "class", "ordinal", "several"}
        Real numbers; two classes; several classes; ordered classes; any number of m labels.
    labels : ndarray or None
        The names of the classes in numerical order (the negative one first), or of m labels or m real
        numbers; None if they have no names.
    center : float or (m,) ndarray
        The mean that was subtracted from real numbers.
    """

    values: np.ndarray
    kind: Kind = "real"
    labels: np.ndarray | None = None
    center: Any = 0.0

    @classmethod
    def of(cls, y: Any) -> Target:
        """Return the target for numbers: two classes if all are -1 or +1, otherwise real.

        Parameters
        ----------
        y : (N,) or (N, m) array_like
            Finite numbers, or a target, which is returned unchanged.

        Raises
        ------
        ValueError
            If y contains other values or has the wrong shape.
        """
        if isinstance(y, Target):
            return y
        try:
            # A copy: kernels would be recompiled for read-only memory, such as memory shared between
            # processes.
            values = np.array(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y contains a value that is not a number: {error}.") from None
        if values.ndim not in (1, 2):
            raise ValueError(f"y has shape {values.shape}; use one number per row, or a row of numbers.")
        if not np.isfinite(values).all():
            raise ValueError("y contains NaN or infinity; drop those rows first.")
        signs = bool(np.isin(values, (-1.0, 1.0)).all())
        if values.ndim == 2:
            return cls(values, "several" if signs else "real")
        return cls(values, "binary", np.array([-1.0, 1.0])) if signs else cls(values)

    def check_size(self) -> None:
        """Raise ValueError if squared differences in y would overflow or underflow."""
        if (largest := float(np.abs(self.values).max(initial=0.0))) > LARGEST:
            raise ValueError(f"y has a value of size {largest:g}, whose square overflows; scale it.")
        spread = float(np.max(np.ptp(self.values, axis=0)))
        if spread and not _SMALL <= spread <= 1.0 / _SMALL:
            raise ValueError(
                f"y varies by {spread:.3g}, but fits support variations of {_SMALL:g} to "
                f"{1.0 / _SMALL:g}, or a constant; scale it, for example with scikit-learn's "
                "TransformedTargetRegressor."
            )

    def centred(self, weights: np.ndarray | None = None) -> Target:
        """Subtract the weighted mean from real numbers, by column; labels are unchanged.

        Differences are rounded to 2⁻³⁰ of their standard deviation: fits are then independent of rounding
        errors of the mean.
        """
        if self.kind != "real":
            return self
        mean = np.average(self.values, axis=0, weights=weights)
        values = self.values - mean
        step = _STEP * np.sqrt(np.average(np.square(values), axis=0, weights=weights))
        steps = np.rint(np.divide(values, step, out=np.zeros_like(values), where=step > 0.0))
        return replace(self, values=steps * step, center=self.center + mean)

    @classmethod
    def of_labels(cls, y: Any, ordered: bool = False) -> Target:
        """Return the target for labels, numbers or strings, one per row.

        Parameters
        ----------
        y : (N,) array_like
            Labels; their numbers follow their sorted order.
        ordered : bool
            Whether this order is meaningful, as for ratings.

        Raises
        ------
        ValueError
            If there is only one label.
        """
        labels, numbers = np.unique(np.asarray(y), return_inverse=True)
        if labels.size < 2:
            raise ValueError(
                f"y has one class only, {labels.tolist()[0]!r}; a classifier needs two classes. Add rows of "
                "another class."
            )
        if labels.size == 2:
            return cls(np.where(numbers == 1, 1.0, -1.0), "binary", labels)
        return cls(numbers.astype(np.float64), "ordinal" if ordered else "class", labels)

    @property
    def n_outputs(self) -> int:
        """The number m of outputs per row.

        One per class, label or number; for C ordered classes C − 1, which predict whether y is at most a
        level.
        """
        if self.labels is not None and self.kind in ("class", "ordinal"):
            return int(self.labels.size) - (self.kind == "ordinal")
        return 1 if self.values.ndim == 1 else int(self.values.shape[1])

    @property
    def output_names(self) -> list[Any]:
        """The names of the outputs: their labels; for ordered classes, the highest included level."""
        m = self.n_outputs
        return list(range(m)) if self.labels is None or m == 1 else self.labels[:m].tolist()

    def output(self, which: Any) -> int:
        """Return the index of an output given by name, or by index if no name is a number.

        Raises
        ------
        ValueError
            If the output does not exist.
        """
        names = self.output_names
        if which in names:
            return names.index(which)
        numbered = not any(isinstance(name, int | float) for name in names)
        if numbered and isinstance(which, int | np.integer) and 0 <= which < len(names):
            return int(which)
        known = ", ".join(repr(name) for name in names[:20])
        raise ValueError(f"output = {which!r} does not exist in this model; it has {known}.")

    @cached_property
    def outputs(self) -> tuple[Target, ...]:
        """One target per output: one-vs-rest, at most a level, or a column."""
        y, m = self.values, self.n_outputs
        if y.ndim == 2:
            columns = [np.ascontiguousarray(y[:, c]) for c in range(m)]
            if self.kind == "real":
                centers = np.broadcast_to(self.center, m)
                return tuple(Target(column, center=c) for column, c in zip(columns, centers, strict=True))
        elif m == 1:
            # A copy, since a reference cycle would delay the release of memory.
            return (replace(self),)
        else:
            hits = [y <= c if self.kind == "ordinal" else y == c for c in range(m)]
            columns = [np.where(hit, 1.0, -1.0) for hit in hits]
        return tuple(Target(column, "binary", np.array([-1.0, 1.0])) for column in columns)

    def in_words(self, outputs: Sequence[int], most: int = 3) -> str:
        """Format the names of some outputs: "Output 'a'", "Outputs 'a', 'b', 'c' and 3 more"."""
        names = ", ".join(repr(self.output_names[c]) for c in outputs[:most])
        more = f" and {len(outputs) - most} more" if len(outputs) > most else ""
        return f"Output{'s' if len(outputs) > 1 else ''} {names}{more}"

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Return the probability of every class, or of every label, given those of the outputs.

        Parameters
        ----------
        p : (M,) or (M, m) ndarray
            The probability of +1 in every output.

        Returns
        -------
        (M, C) ndarray
            For classes, probabilities that sum to 1: normalized p for several classes, differences of the
            sorted p for ordered ones. For several labels, p itself.
        """
        if self.kind == "binary":
            return np.column_stack([1.0 - p, p])
        if self.kind == "ordinal":
            return np.diff(np.sort(p, axis=1), axis=1, prepend=0.0, append=1.0)
        if self.kind == "several":
            return p
        total = p.sum(axis=1, keepdims=True)
        return np.divide(p, total, out=np.full(p.shape, 1.0 / p.shape[1]), where=total > 0.0)

    def decode(self, f: np.ndarray) -> np.ndarray:
        """Convert predictions to values or labels of the target.

        Parameters
        ----------
        f : (M,) or (M, m) ndarray
            Scores for M rows, one per output.

        Returns
        -------
        ndarray
            f itself for real numbers; for classes, labels of shape (M,) by the sign or the largest score, or
            the median of ordered ones; for several labels, whether each is predicted, shape (M, m).
        """
        if self.kind == "real":
            return f
        if self.labels is None or self.kind == "several":
            return f > 0.0
        if self.kind == "binary":
            return np.asarray(self.labels[(f > 0.0).astype(int)])
        return np.asarray(self.labels[self.chosen(f)])

    def chosen(self, f: np.ndarray) -> np.ndarray:
        """Return the numbers of the predicted classes, shape (M,); see `decode`."""
        return (f <= 0.0).sum(axis=1) if self.kind == "ordinal" else f.argmax(axis=1)
