"""The target: numbers or labels, checked once, and how predictions become labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["real", "binary", "class", "ordinal", "several"]


@dataclass(frozen=True, eq=False)
class Target:
    """The target of every row, as numbers.

    Attributes
    ----------
    values : (N,) or (N, m) float64 ndarray
        What losses see. Real numbers; -1 and +1 for two classes and for several labels a row; 0, …, C − 1 for
        one of C classes or ratings.
    kind : {"real", "binary", "class", "ordinal", "several"}
        Real numbers; two classes; several classes; classes in an order; any number of m labels.
    labels : ndarray or None
        What the classes are called, in the order of their numbers (the negative one first), or the names of
        m labels; None for real numbers.
    """

    values: np.ndarray
    kind: Kind = "real"
    labels: np.ndarray | None = None

    @classmethod
    def of(cls, y: Any) -> Target:
        """Return the target of numbers: of two classes where all are -1 or +1, else real.

        Parameters
        ----------
        y : (N,) or (N, m) array_like
            Finite numbers, or a target that is returned as it is.

        Raises
        ------
        ValueError
            If y holds something else, or has another shape.
        """
        if isinstance(y, Target):
            return y
        try:
            # A copy: kernels compile anew for memory that is read-only, as that of other processes may be.
            values = np.array(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y holds something that is not a number: {error}.") from None
        if values.ndim not in (1, 2):
            raise ValueError(f"y has shape {values.shape}; give one number a row, or one row of numbers.")
        if not np.isfinite(values).all():
            raise ValueError("y contains NaN or infinity; drop those rows first.")
        signs = bool(np.isin(values, (-1.0, 1.0)).all())
        if values.ndim == 2:
            return cls(values, "several" if signs else "real")
        return cls(values, "binary", np.array([-1.0, 1.0])) if signs else cls(values)

    @classmethod
    def of_labels(cls, y: Any, ordered: bool = False) -> Target:
        """Return the target of labels, numbers or strings, one a row.

        Parameters
        ----------
        y : (N,) array_like
            Labels; their numbers follow their sorted order.
        ordered : bool
            Whether that order means something, as that of ratings does.

        Raises
        ------
        ValueError
            If there is one label only.
        """
        labels, numbers = np.unique(np.asarray(y), return_inverse=True)
        if labels.size < 2:
            raise ValueError(
                f"y has one class only, {labels.tolist()[0]!r}; a classifier needs rows of two. Add rows of "
                "the other class."
            )
        if labels.size == 2:
            return cls(np.where(numbers == 1, 1.0, -1.0), "binary", labels)
        return cls(numbers.astype(np.float64), "ordinal" if ordered else "class", labels)

    @property
    def n_outputs(self) -> int:
        """The number of values that a model has to give for a row to be scored by a loss of vectors."""
        if self.kind in ("class", "ordinal") and self.labels is not None:
            return int(self.labels.size)
        return 1 if self.values.ndim == 1 else int(self.values.shape[1])

    def decode(self, f: np.ndarray) -> np.ndarray:
        """Return what predictions say in the terms of the target.

        Parameters
        ----------
        f : (M,) or (M, m) ndarray
            Predictions for M rows: scores, one a class where there are more than two.

        Returns
        -------
        ndarray
            f itself for real numbers; for classes labels, shape (M,), of the sign or of the largest score;
            for several labels whether each applies, shape (M, m).
        """
        if self.labels is None:
            return f > 0.0 if self.kind == "several" else f
        if self.kind == "binary":
            return np.asarray(self.labels[(f > 0.0).astype(int)])
        if self.kind == "several":
            return f > 0.0
        return np.asarray(self.labels[f.argmax(axis=1)])
