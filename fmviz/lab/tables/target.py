"""Encode and decode targets: standardized numbers, classes, ordered classes, or several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from fmviz.engine.errors import one_of
from fmviz.engine.target import Target as EngineTarget
from fmviz.lab.datasets.base import Scaling, Task
from fmviz.lab.tables.values import levels_of, numbers_of, some, typed_words, words_of

__all__ = ["MOST_CLASSES", "TASKS", "Target", "ascending"]

TASKS = ("auto", "regression", "binary", "class", "ordinal")
"""The tasks of a single column."""
MOST_CLASSES = 1_000
# Words for yes.
_YES = {"1", "1.0", "true", "yes", "y", "t"}
# Rating scales, one a line, ascending; synonyms share a place.
_SCALES = tuple(
    tuple(place.split("/") for place in line.split())
    for line in """
    awful/terrible/dreadful poor/bad fair/okay/ok/average/medium good great/very_good excellent/perfect
    never rarely/seldom sometimes often/frequently/usually always
    none/no minimal/very_low low/slight/mild medium/moderate/mid/middle high/severe very_high/extreme/critical
    tiny/xs small/s medium/m large/l huge/xl xxl
    strongly_disagree disagree neutral/undecided agree strongly_agree
    very_dissatisfied dissatisfied neutral satisfied very_satisfied
    beginner/novice intermediate advanced expert
    cold cool warm hot
    """.strip().splitlines()
)


@dataclass(frozen=True)
class Target:
    """The encoding of a target.

    Attributes
    ----------
    name : str
        The column, or all columns.
    task : {"regression", "binary", "class", "ordinal", "several"}
        A number, encoded as (value − mean)/scale; two classes, encoded as -1 and +1; more classes, ordered or
        not, encoded by their index among the labels; or several columns of two classes.
    mean, scale : float
        Mean and standard deviation of a number.
    labels : tuple of str
        The labels of -1 and +1, or of the classes; empty for numbers and for several columns.
    others : bool
        Whether -1 stands for all classes but that of +1.
    logarithm : bool
        Whether the natural logarithm of the number is encoded.
    parts : tuple of Target
        The targets of several columns: all numbers ("regression") or all of two classes ("several").
    """

    name: str
    task: Task
    mean: float = 0.0
    scale: float = 1.0
    labels: tuple[str, ...] = ()
    others: bool = False
    parts: tuple[Target, ...] = ()
    logarithm: bool = False

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Target:
        """Return the target of a dictionary by `dataclasses.asdict`."""
        parts = tuple(cls.from_dict(part) for part in data.get("parts", ()))
        return cls(**{**data, "labels": tuple(data["labels"]), "parts": parts})

    @classmethod
    def learn(
        cls,
        values: pd.Series,
        task: str = "auto",
        positive: str = "",
        decimal: str = "point",
        rows: np.ndarray | None = None,
        order: Sequence[str] = (),
        logarithm: bool = False,
    ) -> Target:
        """Learn the encoding of a target; mean and scale from `rows` alone, where given.

        Under "auto" two unique values are classes; more are numbers if at least half of the values parse as
        numbers, and else classes. A `positive` class is encoded as +1 and all others as -1; of two classes
        the default is the numerically or alphabetically later one. Ordered classes ascend as in `order`, or
        numerically or alphabetically. With `logarithm` the logarithm of a positive number is encoded.

        Raises
        ------
        ValueError
            If all values are equal or missing, or do not suit the task.
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
            task = "regression" if len(words) > 2 and mostly and not positive else "class"
        if task == "regression":
            return cls._of_numbers(name, numbers, rows, words, logarithm)
        if logarithm:
            raise ValueError(f"The target {name!r} is of classes, and a logarithm is one of numbers.")
        if len(words) == 2:
            words.sort(key=(positive or (order[1:2] or words[1:])[0]).__eq__)
            return cls(name, "binary", labels=tuple(words))
        if positive:
            return cls(name, "binary", labels=(f"not {positive}", positive), others=True)
        if len(words) > MOST_CLASSES:
            raise ValueError(
                f"The target {name!r} has {len(words):,} classes, and each of up to {MOST_CLASSES:,} gets a "
                "machine of its own. Choose the one to tell from all others, or another target."
            )
        if task == "binary":
            raise ValueError(
                f"The target {name!r} has {len(words):,} classes ({some(words)}); choose the one to tell "
                "from all others, or predict all of them."
            )
        if order:
            if sorted(order) != sorted(words):
                raise ValueError(
                    f"The order {some(order)} does not hold all values of {name!r} once: {some(words, 20)}."
                )
            words = list(order)
        return cls(name, "ordinal" if task == "ordinal" else "class", labels=tuple(words))

    @classmethod
    def of_table(
        cls,
        table: pd.DataFrame,
        names: Sequence[str],
        task: str = "auto",
        decimal: str = "point",
        rows: np.ndarray | None = None,
        logarithm: bool = False,
    ) -> Target:
        """Learn the encoding of several columns, all numbers or all of two classes.

        Raises
        ------
        ValueError
            If they are of different kinds, or have more classes, or one is not a target.
        """
        parts = tuple(cls.learn(table[name], task, "", decimal, rows, logarithm=logarithm) for name in names)
        kinds = {part.task for part in parts}
        if len(kinds) > 1 or not kinds <= {"regression", "binary"}:
            described = ", ".join(f"{part.name} ({_KINDS[part.task]})" for part in parts)
            raise ValueError(
                f"Several targets must be numbers all, or of two classes all; they are {described}. Choose "
                "columns of one kind."
            )
        joined = cls(", ".join(names), "several" if kinds == {"binary"} else "regression", parts=parts)
        return joined if len(parts) > 1 else parts[0]

    @classmethod
    def _of_numbers(
        cls, name: str, numbers: np.ndarray, rows: np.ndarray | None, words: list[str], logarithm: bool
    ) -> Target:
        if logarithm:
            if (lowest := np.nanmin(numbers, initial=np.inf)) <= 0.0:
                raise ValueError(
                    f"The target {name!r} has the value {lowest:g}, and only positive numbers have a "
                    "logarithm. Predict it as it is."
                )
            numbers = np.log(numbers)
        learned = numbers if rows is None else numbers[rows]
        learned = learned[~np.isnan(learned)]
        if np.isnan(numbers).all():
            raise ValueError(
                f"The target {name!r} holds words such as {words[0]!r}, and regression wants numbers. "
                "Choose classes, or another target."
            )
        if not learned.size or np.ptp(learned) == 0:
            raise ValueError(f"The target {name!r} is the same in all training rows; add rows.")
        scaler = StandardScaler().fit(learned[:, None])
        return cls(name, "regression", float(scaler.mean_[0]), float(scaler.scale_[0]), logarithm=logarithm)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(part.name for part in self.parts) or (self.name,)

    def encode(self, values: pd.Series | pd.DataFrame, decimal: str = "point") -> np.ndarray:
        """Return y, float64 of shape (N,) or (N, m); NaN where a value is missing or of an unknown class.

        `values` is the column, or a table with the column or columns.
        """
        if isinstance(values, pd.DataFrame):
            if self.parts:
                return np.column_stack([part.encode(values[part.name], decimal) for part in self.parts])
            values = values[self.name]
        if self.task == "regression":
            numbers = numbers_of(values, decimal)
            if self.logarithm:
                # Other numbers count as missing.
                numbers = np.log(np.where(numbers > 0.0, numbers, np.nan))
            return (numbers - self.mean) / self.scale
        words = words_of(typed_words(values))
        if self.task == "binary":
            negative, positive = self.labels
            y = np.where(pd.notna(words) & self.others, -1.0, np.nan)
            y[words == negative], y[words == positive] = -1.0, 1.0
            return y
        places = {label: float(c) for c, label in enumerate(self.labels)}
        return np.array([places.get(word, np.nan) for word in words])

    @property
    def engine(self) -> EngineTarget:
        """The target in the form of the engine, without values."""
        if self.parts:
            kind: Any = "several" if self.task == "several" else "real"
            return EngineTarget(np.empty((0, len(self.parts))), kind, np.array(self.outputs))
        kinds: Any = {"regression": "real"}
        labels = np.array(self.labels, dtype=object) if self.labels else None
        return EngineTarget(np.empty(0), kinds.get(self.task, self.task), labels)

    def decode(self, f: np.ndarray) -> np.ndarray:
        """Decode scores f, shape (N,) or (N, m), to numbers or labels."""
        if self.parts:
            return np.column_stack([part.decode(f[:, c]) for c, part in enumerate(self.parts)])
        if self.task != "regression":
            return self.engine.decode(f)
        decoded = self.mean + self.scale * f
        with np.errstate(over="ignore"):
            return np.exp(decoded) if self.logarithm else decoded

    def in_columns(self, predictions: np.ndarray, p: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return decoded predictions, with probabilities p if any, as columns of a table."""
        if self.parts:
            columns = {}
            for c, (part, output) in enumerate(zip(self.parts, self.outputs, strict=True)):
                columns[f"prediction of {part.name}"] = predictions[:, c]
                if p is not None:
                    columns[f"probability of {output}"] = p[:, c]
            return columns
        columns = {"prediction": predictions}
        if p is not None and self.task != "regression":
            each = self.engine.probabilities(p)
            labels = enumerate(self.labels) if len(self.labels) > 2 else [(1, self.labels[1])]
            columns |= {f"probability of {label}": each[:, c] for c, label in labels}
        return columns

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of several outputs: a column of yes and no by its name alone."""
        return tuple(
            part.name
            if part.task == "regression" or part.labels[1].lower() in _YES
            else f"{part.name}={part.labels[1]}"
            for part in self.parts
        )

    @property
    def scaling(self) -> Scaling | tuple[Scaling, ...] | None:
        """The scaling of a number, or of several."""
        if self.task != "regression":
            return None
        if self.parts:
            return tuple(Scaling(part.mean, part.scale, logarithm=part.logarithm) for part in self.parts)
        return Scaling(self.mean, self.scale, logarithm=self.logarithm)

    @property
    def class_labels(self) -> tuple[str, ...] | None:
        """The labels of -1 and +1, of the classes, or of several outputs; None for numbers."""
        return self.outputs if self.task == "several" else self.labels or None


_KINDS = {
    "regression": "a number",
    "binary": "two classes",
    "class": "more classes",
    "ordinal": "ordered classes",
}


def ascending(levels: Sequence[str]) -> tuple[str, ...]:
    """Return levels in the order of a rating scale that has all of them, else ()."""
    words = {level: level.strip().lower().replace(" ", "_").replace("-", "_") for level in levels}
    for scale in _SCALES:
        places = {word: at for at, place in enumerate(scale) for word in place}
        ranks = [places.get(word) for word in words.values()]
        if None not in ranks and len(set(ranks)) == len(ranks):
            return tuple(sorted(words, key=lambda level: places[words[level]]))
    return ()
