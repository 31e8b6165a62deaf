"""Encode and decode targets: standardized numbers, classes, ordered classes, or several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from fmviz.checked import Distinct, Finite, Positive, checked
from fmviz.engine.errors import one_of
from fmviz.engine.losses import Loss
from fmviz.engine.target import Target
from fmviz.tables.cells import are_codes, quoted, without, words_of
from fmviz.tables.columns import YES, FeatureColumn, NumberColumn, WordColumn, column_from_dict
from fmviz.tables.kinds import Column, ascending, described, listed
from fmviz.tables.scaling import Scaling
from fmviz.tables.source import Reading

Task = Literal["regression", "binary", "class", "ordinal", "several"]
"""A number; two classes; several classes; ordered classes; any number of labels per row."""
TASKS = ("auto", "regression", "binary", "class", "ordinal")
"""The tasks of a single column."""
MOST_CLASSES = 1_000
# Integers with at most this number of distinct values may be classes.
_FEW = 12
# Counts of a larger mean are almost continuous.
_SMALL = 10
_OWN_SHARE, _MANY_ROWS = 0.5, 20


@dataclass(frozen=True)
class TargetEncoding:
    """The encoding of a target.

    Attributes
    ----------
    name : str
        The column, or all columns.
    task : {"regression", "binary", "class", "ordinal", "several"}
        A number, encoded as (value − mean)/scale; two classes, encoded as -1 and +1; several classes, ordered
        or not, encoded by their label index; or several columns of two classes.
    mean, scale : float
        Mean and standard deviation of a number.
    labels : tuple of str
        The labels of -1 and +1, or of the classes; empty for numbers and for several columns.
    others : bool
        Whether -1 stands for all other classes.
    logarithm : bool
        Whether the natural logarithm of the number is encoded.
    parts : tuple of TargetEncoding
        The targets of several columns: all numbers ("regression") or all of two classes ("several").
    reader : FeatureColumn, optional
        The reader of its cells; None for several columns.
    notes : tuple of str
        Sentences on how it was read, and on alternatives.
    """

    name: str
    task: Task
    mean: Finite = 0.0
    scale: Positive = 1.0
    labels: Distinct = ()
    others: bool = False
    parts: tuple[TargetEncoding, ...] = ()
    logarithm: bool = False
    reader: FeatureColumn | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as a dictionary for JSON."""
        return vars(self) | {
            "parts": [part.to_dict() for part in self.parts],
            "reader": self.reader and self.reader.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TargetEncoding:
        """Return the target from a dictionary of `to_dict`.

        Raises
        ------
        ValueError
            If the dictionary is invalid; the message names the field.
        """
        parts = tuple(map(cls.from_dict, data["parts"]))
        reader = data["reader"] and column_from_dict(data["reader"])
        target = checked(cls, {**data, "parts": parts, "reader": reader})
        target._check()
        return target

    def _check(self) -> None:
        """Raise ValueError if labels and parts do not match the task."""
        most = {"binary": 2, "class": MOST_CLASSES, "ordinal": MOST_CLASSES}.get(self.task, 0)
        allowed = {"several": "binary", "regression": "regression"}.get(self.task)
        levels = self.reader.levels if isinstance(self.reader, WordColumn) else self.labels
        faults = {
            f"labels are {len(self.labels):,}, and the task is {self.task!r}": (
                not min(2, most) <= len(self.labels) <= most
            ),
            f"parts are not those of the task {self.task!r}": any(
                part.parts or part.task != allowed for part in self.parts
            ),
            f"labels are {quoted(self.labels)}, and its words {quoted(levels)}": (
                len(levels) < MOST_CLASSES and not {*self.labels[self.others :]} <= {*levels}
            ),
            "parts are missing": not self.parts and self.task == "several",
        }
        if fault := next((fault for fault, is_so in faults.items() if is_so), ""):
            raise ValueError(f"target.{fault}")

    @classmethod
    def learn(
        cls,
        values: pd.Series,
        task: str = "auto",
        positive: str = "",
        order: Sequence[str] = (),
        logarithm: bool = False,
        column: Column | None = None,
    ) -> TargetEncoding:
        """Learn the encoding of a target.

        With "auto", two unique values are classes; more are numbers if at least half of the values parse as
        numbers, and classes otherwise. The `positive` class is encoded as +1 and all others as -1; of two
        classes, the default is the one that sorts last. Ordered classes follow `order`, or a rating scale, or
        numerical or alphabetical order. With `logarithm`, the logarithm of a positive number is encoded.
        `column` defines how the cells are read.

        Raises
        ------
        ValueError
            If all values are equal or missing, do not match the task, or are nearly all distinct words.
        """
        one_of("task", task, TASKS)
        column = column or described(values.to_frame())[0]
        name, reader = column.name, column.words
        words = reader.in_order(reader.read(values).dropna())
        if len(words) < 2:
            always = f"is always {words[0]!r}" if words else "has no values"
            raise ValueError(f"The target {name!r} {always}; there is nothing to predict. Choose another.")
        positive = positive if positive in words else ""
        noted = bool(column.note) and column.kind in ("number", "word", "yes_no")
        notes = [f"Target {name!r}: {column.note}"] * noted
        notes += [column.asked] * (column.question != "" and column.option != "words")
        numbers = column.numbers.read(values)
        mostly = (
            len(words) > 2
            and not are_codes(words)
            and numbers.notna().sum() >= 0.5 * values.notna().sum()
            and not positive
        )
        if task == "regression" or (task == "auto" and mostly):
            return cls._of_numbers(column.numbers, numbers, words, logarithm, notes)
        if logarithm:
            raise ValueError(f"The target {name!r} has classes, but a logarithm needs numbers.")
        reader = replace(reader, levels=tuple(words[:MOST_CLASSES]))
        kind: Task = "ordinal" if task == "ordinal" else "class"
        labels, scale = order or words, () if order or column.order else ascending(words)
        if len(words) == 2:
            kind = "binary"
            labels = sorted(words, key=(positive or (order[1:2] or words[1:])[0]).__eq__)
        elif positive:
            kind, labels = "binary", (f"not {positive}", positive)
        elif refused := _refusal(words, len(values), task, order):
            raise ValueError(f"The target {name!r} {refused}")
        elif scale and task == "ordinal":
            labels = scale
            notes.append(f"The classes of {name!r} are ordered by their rating scale: {quoted(scale, 7)}.")
        elif scale:
            notes.append(f"The classes of {name!r} form a rating scale; `--task ordinal` uses its order.")
        others = len(words) > len(labels)
        return cls(name, kind, labels=tuple(labels), others=others, reader=reader, notes=tuple(notes))

    @classmethod
    def of_table(
        cls,
        table: pd.DataFrame,
        names: Sequence[str],
        columns: Mapping[str, Column],
        **options: Any,
    ) -> TargetEncoding:
        """Learn the encoding of several columns, all numeric or all binary; options as in `learn`.

        Raises
        ------
        ValueError
            If they are of different kinds, have more than two classes, or one cannot be a target.
        """
        parts = tuple(cls.learn(table[name], column=columns.get(name), **options) for name in names)
        kinds = {part.task for part in parts}
        if len(parts) == 1:
            return parts[0]
        if len(kinds) > 1 or not kinds <= {"regression", "binary"}:
            described = ", ".join(f"{part.name} ({_KINDS[part.task]})" for part in parts)
            raise ValueError(
                f"Several targets must all be numeric or all binary; they are {described}. Choose columns of "
                "one kind."
            )
        return cls(", ".join(names), "several" if kinds == {"binary"} else "regression", parts=parts)

    @classmethod
    def _of_numbers(
        cls, reader: NumberColumn, numbers: pd.Series, words: list[str], logarithm: bool, notes: list[str]
    ) -> TargetEncoding:
        name, known = reader.name, numbers.dropna()
        if logarithm and len(known) and known.min() <= 0.0:
            raise ValueError(
                f"The target {name!r} has the value {known.min():g}, but only positive numbers have a "
                "logarithm. Predict it without the logarithm."
            )
        if not len(known):
            raise ValueError(
                f"The target {name!r} contains words such as {words[0]!r}, but regression needs numbers. "
                "Choose classes, or another target."
            )
        learned = reader.learn(np.log(known) if logarithm else known, "standard")
        if learned is None:
            raise ValueError(f"The target {name!r} is the same in all rows; choose another one.")
        integral = (known == np.round(known)).all() and not logarithm
        if integral and len(words) <= _FEW:
            notes.append(
                f"The target {name!r} has {len(words)} distinct integers; `--task class` predicts classes."
            )
        if integral and known.min() == 0.0 and known.mean() <= _SMALL and known.skew() > 0.0:
            notes.append(f"The target {name!r} may be a count; `--loss poisson` models counts.")
        return cls(
            name,
            "regression",
            learned.center,
            learned.scale,
            logarithm=logarithm,
            reader=reader,
            notes=tuple(notes),
        )

    def for_loss(self, loss: Loss) -> TargetEncoding:
        """Return the target unscaled if the loss has a log link, otherwise itself."""
        if not loss.log_link:
            return self
        parts = tuple(part.for_loss(loss) for part in self.parts)
        return replace(self, mean=0.0, scale=1.0, logarithm=False, parts=parts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(part.name for part in self.parts) or (self.name,)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on how the columns were read."""
        return tuple(note for part in (self.parts or (self,)) for note in part.notes)

    def encode(
        self, table: pd.DataFrame, reading: Reading | None = None, notes: list[str] | None = None
    ) -> np.ndarray:
        """Return y of a table, float64 of shape (N,) or (N, m); NaN if a value is missing or unknown.

        The options of reading apply to its cells, and sentences on another notation are appended to `notes`.
        """
        if self.parts:
            return np.column_stack([part.encode(table, reading, notes) for part in self.parts])
        assert self.reader is not None
        cells = without(table[self.name], listed(reading.missing if reading else ""))
        values = self.reader.suited(cells, [] if notes is None else notes).read(cells)
        if self.task == "regression":
            numbers = values.to_numpy(dtype=np.float64)
            # Numbers without a logarithm count as missing.
            numbers = np.log(np.where(numbers > 0.0, numbers, np.nan)) if self.logarithm else numbers
            return np.asarray((numbers - self.mean) / self.scale)
        codes = (-1.0, 1.0) if self.task == "binary" else range(len(self.labels))
        known = dict(zip(self.labels, codes, strict=True))
        other = -1.0 if self.others else np.nan
        return np.array([np.nan if word is None else known.get(word, other) for word in words_of(values)])

    def unknown(self, table: pd.DataFrame) -> list[str]:
        """Return a sentence on labels of a table that are unknown to the target, if there are any."""
        if not isinstance(self.reader, WordColumn) or self.others or self.name not in table:
            return []
        counts = self.reader.unseen(self.reader.read(table[self.name]))
        rows = "1 row has" if counts.total() == 1 else f"{counts.total():,} rows have"
        sentence = f"The model does not have the class {quoted(counts)} of {self.name!r}, which {rows}."
        return [sentence] * bool(counts)

    @property
    def engine(self) -> Target:
        """The target in the form of the engine, without values."""
        kind: Any = "real" if self.task == "regression" else self.task
        labels = np.array(self.outputs or self.labels, dtype=object)
        return Target(
            np.empty((0, *labels.shape) if self.parts else 0), kind, labels if labels.size else None
        )

    def decode(self, f: np.ndarray) -> np.ndarray:
        """Decode scores f, shape (N,) or (N, m), to numbers or labels."""
        if self.parts:
            return np.column_stack([part.decode(f[:, c]) for c, part in enumerate(self.parts)])
        if self.task != "regression":
            return self.engine.decode(f)
        return Scaling(self.mean, self.scale, logarithm=self.logarithm).decode(f)

    def in_columns(self, predictions: np.ndarray, p: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return decoded predictions, with probabilities p if available, as columns of a table."""
        if self.parts:
            kinds = [("prediction", self.names, predictions)]
            kinds += [] if p is None else [("probability", self.outputs, p)]
            places = range(len(self.parts))
            return {f"{kind} of {names[c]}": each[:, c] for c in places for kind, names, each in kinds}
        columns = {"prediction": predictions}
        if p is not None and self.task != "regression":
            each = self.engine.probabilities(p)
            labels = enumerate(self.labels) if len(self.labels) > 2 else [(1, self.labels[1])]
            columns |= {f"probability of {label}": each[:, c] for c, label in labels}
        return columns

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of several outputs; yes/no columns have only their name."""
        return tuple(
            part.name
            if part.task == "regression" or part.labels[1].lower() in YES
            else f"{part.name}={part.labels[1]}"
            for part in self.parts
        )

    @property
    def scaling(self) -> Scaling | tuple[Scaling, ...] | None:
        """The scaling of one or several numbers."""
        if self.task != "regression":
            return None
        each = (Scaling(own.mean, own.scale, logarithm=own.logarithm) for own in self.parts or (self,))
        return tuple(each) if self.parts else next(each)

    @property
    def class_labels(self) -> tuple[str, ...] | None:
        """The labels of -1 and +1, of the classes, or of several outputs; None for numbers."""
        return self.outputs if self.task == "several" else self.labels or None


def _refusal(words: Sequence[str], n: int, task: str, order: Sequence[str]) -> str:
    """Return why words of n rows cannot be predicted as classes, with advice; or ""."""
    different, shown = f"{len(words):,}", quoted(words)
    refusals = (
        (
            len(words) > MOST_CLASSES,
            f"has {different} classes, but at most {MOST_CLASSES:,} are supported, with a machine each. "
            "Choose one class to predict against all others, or another target.",
        ),
        (
            task == "binary",
            f"has {different} classes ({shown}); choose one to predict against all others, or predict all "
            "of them.",
        ),
        (
            n >= _MANY_ROWS and len(words) > _OWN_SHARE * n,
            f"has {different} distinct words in {n:,} rows ({shown}): nearly every row is a separate "
            "class. If they are numbers, correct their format; otherwise choose another target.",
        ),
        (
            order and sorted(order) != sorted(words),
            f"has the values {quoted(words, 20)}; the order {quoted(order)} does not contain each of them "
            "once.",
        ),
    )
    return next((sentence for is_wrong, sentence in refusals if is_wrong), "")


_KINDS = {
    "regression": "a number",
    "binary": "two classes",
    "class": "more classes",
    "ordinal": "ordered classes",
}
