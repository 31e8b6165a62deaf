"""What is predicted: a number, which is standardized, or one class against all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from fmviz.engine.errors import one_of
from fmviz.lab.datasets.base import Scaling, Task
from fmviz.lab.tables.values import levels_of, numbers_of, some, typed_words, words_of

__all__ = ["TASKS", "Target"]

TASKS = ("auto", "regression", "binary")


@dataclass(frozen=True)
class Target:
    """What is predicted.

    Attributes
    ----------
    name : str
        The column.
    task : {"regression", "binary"}
        A number, encoded as (value − mean)/scale, or two classes, encoded as -1 and +1.
    mean, scale : float
        Of a number.
    labels : tuple of str
        The words for -1 and +1; empty for a number.
    others : bool
        Whether -1 is every class but that of +1.
    """

    name: str
    task: Task
    mean: float = 0.0
    scale: float = 1.0
    labels: tuple[str, ...] = ()
    others: bool = False

    @classmethod
    def learn(
        cls,
        values: pd.Series,
        task: str = "auto",
        positive: str = "",
        decimal: str = "point",
        rows: np.ndarray | None = None,
    ) -> Target:
        """Learn a target; mean and scale from `rows` alone, where they are given.

        With "auto" two different values are classes, more of them numbers if at least half can be read so,
        and else classes. Of these `positive` is +1 and all others are -1; of two it may be left out and is
        the later by letters or by size.

        Raises
        ------
        ValueError
            If all values are the same or missing, or do not suit the task.
        """
        name = str(values.name)
        one_of("task", task, TASKS)
        words = levels_of(typed_words(values).dropna())
        if len(words) < 2:
            always = f"is always {words[0]!r}" if words else "has no values"
            raise ValueError(f"The target {name!r} {always}; there is nothing to predict. Choose another.")
        positive = positive if positive in words else ""
        numbers = numbers_of(values, decimal)
        if task == "auto":
            mostly = np.isfinite(numbers).sum() >= 0.5 * values.notna().sum()
            task = "regression" if len(words) > 2 and mostly and not positive else "binary"
        if task == "regression":
            return cls._of_numbers(name, numbers, rows, words)
        if len(words) == 2:
            words.sort(key=(positive or words[1]).__eq__)
            return cls(name, "binary", labels=tuple(words))
        if not positive:
            raise ValueError(
                f"The target {name!r} has {len(words):,} classes ({some(words)}); choose the one to tell "
                "from all others, or another target."
            )
        return cls(name, "binary", labels=(f"not {positive}", positive), others=True)

    @classmethod
    def _of_numbers(cls, name: str, numbers: np.ndarray, rows: np.ndarray | None, words: list[str]) -> Target:
        learned = numbers if rows is None else numbers[rows]
        learned = learned[~np.isnan(learned)]
        if np.isnan(numbers).all():
            raise ValueError(
                f"The target {name!r} holds words such as {words[0]!r}, and regression wants numbers. "
                "Choose two classes, or another target."
            )
        if not learned.size or np.ptp(learned) == 0:
            raise ValueError(f"The target {name!r} is the same in all training rows; add rows.")
        found = StandardScaler().fit(learned[:, None])
        return cls(name, "regression", float(found.mean_[0]), float(found.scale_[0]))

    def encode(self, values: pd.Series, decimal: str = "point") -> np.ndarray:
        """Return y, float64 of the length of `values`; NaN where one is missing, or of neither class."""
        if self.task == "regression":
            return (numbers_of(values, decimal) - self.mean) / self.scale
        negative, positive = self.labels
        words = words_of(typed_words(values))
        y = np.where(pd.notna(words) & self.others, -1.0, np.nan)
        y[words == negative], y[words == positive] = -1.0, 1.0
        return y

    def decode(self, f: np.ndarray) -> np.ndarray:
        """Return what scores f, shape (N,), say in the target's own numbers or words."""
        if self.task == "regression":
            return self.mean + self.scale * f
        return np.array(self.labels, dtype=object)[(f > 0).astype(int)]

    @property
    def scaling(self) -> Scaling | None:
        """How a number was scaled."""
        return Scaling(self.mean, self.scale) if self.task == "regression" else None

    @property
    def class_labels(self) -> tuple[str, str] | None:
        """The words for -1 and +1, or None for a number."""
        return (self.labels[0], self.labels[1]) if self.labels else None
