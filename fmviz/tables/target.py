"""Encode and decode targets: standardized numbers, classes, ordered classes, or several columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from fmviz.engine.errors import one_of
from fmviz.engine.target import Target as EngineTarget
from fmviz.tables.cells import (
    NOTHING,
    Notation,
    in_one_case,
    is_number,
    levels_of,
    notation_of,
    quoted,
    words_of,
)
from fmviz.tables.columns import FeatureColumn, NumberColumn, WordColumn, column_from_dict
from fmviz.tables.scaling import Scaling

__all__ = ["MOST_CLASSES", "TASKS", "Target", "Task", "ascending"]

Task = Literal["regression", "binary", "class", "ordinal", "several"]
"""Numbers; two classes; more classes; classes in an order; any number of labels a row."""
TASKS = ("auto", "regression", "binary", "class", "ordinal")
"""The tasks of a single column."""
MOST_CLASSES = 1_000
# Whole numbers of at most so many values might be classes.
_FEW = 10
_OWN_SHARE, _MANY_ROWS = 0.5, 20
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
    reader : FeatureColumn, optional
        What reads its cells; None for several columns.
    notes : tuple of str
        Sentences on how it was read, and on other ways.
    """

    name: str
    task: Task
    mean: float = 0.0
    scale: float = 1.0
    labels: tuple[str, ...] = ()
    others: bool = False
    parts: tuple[Target, ...] = ()
    logarithm: bool = False
    reader: FeatureColumn | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the target as a dictionary for JSON."""
        about = {
            name: getattr(self, name) for name in ("name", "task", "mean", "scale", "others", "logarithm")
        }
        about |= {"labels": list(self.labels), "notes": list(self.notes)}
        about["parts"] = [part.to_dict() for part in self.parts]
        about["reader"] = None if self.reader is None else self.reader.to_dict()
        return about

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], decimal: str = "point") -> Target:
        """Return the target of a dictionary by `to_dict`, or of a model of commit 2c2cf81."""
        parts = tuple(cls.from_dict(part, decimal) for part in data.get("parts", ()))
        read = data.get("reader")
        reader = None if read is None else column_from_dict(read)
        if "reader" not in data and not parts:
            reader = _before(data["name"], data["task"] == "regression", decimal)
        known = {"labels": tuple(data["labels"]), "parts": parts, "reader": reader}
        return cls(**{**data, **known, "notes": tuple(data.get("notes", ()))})

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
        *,
        absent: Sequence[str] = (),
        strict: bool = False,
    ) -> Target:
        """Learn the encoding of a target; mean and scale from `rows` alone, where given.

        Under "auto" two unique values are classes; more are numbers if at least half of the values parse as
        numbers, and else classes. A `positive` class is encoded as +1 and all others as -1; of two classes
        the default is the numerically or alphabetically later one. Ordered classes ascend as in `order`, or
        as on a rating scale, or numerically or alphabetically. With `logarithm` the logarithm of a positive
        number is encoded. Words in `absent` are missing values; `strict` reads cells as at commit 2c2cf81.

        Raises
        ------
        ValueError
            If all values are equal or missing, do not suit the task, or are nearly all different words.
        """
        name = str(values.name)
        one_of("task", task, TASKS)
        by_word, by_number, notes = _readers(values, decimal, absent, strict)
        words = levels_of(by_word.read(values).dropna(), by_number=not strict)
        if len(words) < 2:
            always = f"is always {words[0]!r}" if words else "has no values"
            raise ValueError(f"The target {name!r} {always}; there is nothing to predict. Choose another.")
        positive = positive if positive in words else ""
        numbers = by_number.read(values).to_numpy(dtype=np.float64)
        if task == "auto":
            mostly = np.isfinite(numbers).sum() >= 0.5 * values.notna().sum()
            task = "regression" if len(words) > 2 and mostly and not positive else "class"
        if task == "regression":
            return cls._of_numbers(by_number, numbers, rows, words, logarithm, notes)
        if logarithm:
            raise ValueError(f"The target {name!r} is of classes, and a logarithm is one of numbers.")
        how: dict[str, Any] = {"reader": by_word, "notes": notes}
        if len(words) == 2:
            words.sort(key=(positive or (order[1:2] or words[1:])[0]).__eq__)
            return cls(name, "binary", labels=tuple(words), **how)
        if positive:
            return cls(name, "binary", labels=(f"not {positive}", positive), others=True, **how)
        if len(words) > MOST_CLASSES:
            raise ValueError(
                f"The target {name!r} has {len(words):,} classes, and each of up to {MOST_CLASSES:,} gets a "
                "machine of its own. Choose the one to tell from all others, or another target."
            )
        if task == "binary":
            raise ValueError(
                f"The target {name!r} has {len(words):,} classes ({quoted(words)}); choose the one to tell "
                "from all others, or predict all of them."
            )
        if len(words) > _OWN_SHARE * len(values) and len(values) >= _MANY_ROWS:
            raise ValueError(
                f"The target {name!r} has {len(words):,} different words in {len(values):,} rows "
                f"({quoted(words)}): nearly every row is a class of its own. If they are numbers, mend how they are "
                "written; else choose another target."
            )
        if order and sorted(order) != sorted(words):
            raise ValueError(
                f"The order {quoted(order)} does not hold all values of {name!r} once: {quoted(words, 20)}."
            )
        if scale := ascending(words):
            if task == "ordinal" and not order and not strict:
                order = scale
                notes = (
                    *notes,
                    f"The classes of {name!r} are in the order of their scale: {quoted(scale, 7)}.",
                )
            elif task == "class" and not strict:
                notes = (
                    *notes,
                    f"The classes of {name!r} are a scale; `--task ordinal` predicts in its order.",
                )
            how["notes"] = notes
        return cls(name, "ordinal" if task == "ordinal" else "class", labels=tuple(order or words), **how)

    @classmethod
    def of_table(cls, table: pd.DataFrame, names: Sequence[str], **options: Any) -> Target:
        """Learn the encoding of several columns, all numbers or all of two classes; options as of `learn`.

        Raises
        ------
        ValueError
            If they are of different kinds, or have more classes, or one is not a target.
        """
        parts = tuple(cls.learn(table[name], **options) for name in names)
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
        cls,
        reader: FeatureColumn,
        numbers: np.ndarray,
        rows: np.ndarray | None,
        words: list[str],
        logarithm: bool,
        notes: tuple[str, ...],
    ) -> Target:
        name = reader.name
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
        if len(words) <= _FEW and (learned == np.round(learned)).all() and not logarithm:
            notes = (
                *notes,
                f"The target {name!r} has {len(words)} whole numbers; `--task class` predicts classes.",
            )
        scaler = StandardScaler().fit(learned[:, None])
        about: dict[str, Any] = {"logarithm": logarithm, "reader": reader, "notes": notes}
        return cls(name, "regression", float(scaler.mean_[0]), float(scaler.scale_[0]), **about)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(part.name for part in self.parts) or (self.name,)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on how the column, or each of several, was read."""
        return tuple(note for part in (self.parts or (self,)) for note in part.notes)

    def encode(self, table: pd.DataFrame) -> np.ndarray:
        """Return y of a table, float64 of shape (N,) or (N, m); NaN where a value is missing or unknown."""
        if self.parts:
            return np.column_stack([part.encode(table) for part in self.parts])
        assert self.reader is not None
        values = self.reader.read(table[self.name])
        if self.task == "regression":
            numbers = values.to_numpy(dtype=np.float64)
            if self.logarithm:
                # Other numbers count as missing.
                numbers = np.log(np.where(numbers > 0.0, numbers, np.nan))
            return np.asarray((numbers - self.mean) / self.scale)
        words = words_of(values)
        if self.task == "binary":
            negative, positive = self.labels
            y = np.where(pd.notna(words) & self.others, -1.0, np.nan)
            y[words == negative], y[words == positive] = -1.0, 1.0
            return y
        places = {label: float(c) for c, label in enumerate(self.labels)}
        return np.array([places.get(word, np.nan) for word in words])

    def unknown(self, table: pd.DataFrame) -> dict[str, int]:
        """Return the labels of a table that are none of its own, with their counts."""
        if self.parts or self.task == "regression" or self.others or self.name not in table:
            return {}
        assert self.reader is not None
        words = Counter(self.reader.read(table[self.name]).dropna().astype(str))
        return {word: n for word, n in words.items() if word not in self.labels}

    def new_classes(self, unknown: Mapping[str, int]) -> list[str]:
        """Return a sentence on `unknown` labels, if there are any."""
        n = sum(unknown.values())
        rows = "row has" if n == 1 else "rows have"
        known = f"The model knows no class {quoted(unknown)} of {self.name!r}, which {n:,} {rows}."
        return [known] if unknown else []

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


def _before(name: str, number: bool, decimal: str) -> FeatureColumn:
    """Return what reads a target as at commit 2c2cf81."""
    if number:
        return NumberColumn(name=name, center=0.0, scale=1.0, notation=Notation(decimal, strict=True))
    return WordColumn(name=name, levels=())


def _readers(
    values: pd.Series, decimal: str, absent: Sequence[str], strict: bool
) -> tuple[FeatureColumn, FeatureColumn, tuple[str, ...]]:
    """Return what reads a target as words and as numbers, and sentences on that."""
    name = str(values.name)
    if strict:
        return _before(name, False, decimal), _before(name, True, decimal), ()
    words = WordColumn(name=name, levels=(), clean=True, absent=(*NOTHING, *absent))
    known = words.read(values).dropna()
    merged = in_one_case(list(known.astype(str)))
    notes = []
    if merged:
        pairs = [f"{word!r} as {level!r}" for word, level in merged.items()]
        notes.append(f"Classes of {name!r} that differ in capitals alone are the same: {quoted(pairs)}.")
    read = None if is_number(values) or not len(known) else notation_of(known, decimal)
    notation = Notation(decimal) if read is None else read[0]
    if read is not None and (said := notation.sentence(str(known.iloc[0]))):
        notes.append(f"Target {name!r}: {said}")
    if notation.ambiguous:
        notes.append(f"{notation.question(name)} `--read {notation.option}` reads it in the other way.")
    levels = tuple(sorted({merged.get(word, word) for word in known.astype(str)}))
    numbers = NumberColumn(name=name, center=0.0, scale=1.0, notation=notation)
    return replace(words, merged=merged, levels=levels[:MOST_CLASSES]), numbers, tuple(notes)


def ascending(levels: Sequence[str]) -> tuple[str, ...]:
    """Return levels in the order of a rating scale that has all of them, else ()."""
    words = {level: level.strip().lower().replace(" ", "_").replace("-", "_") for level in levels}
    for scale in _SCALES:
        places = {word: at for at, place in enumerate(scale) for word in place}
        ranks = [places.get(word) for word in words.values()]
        if None not in ranks and len(set(ranks)) == len(ranks):
            return tuple(sorted(words, key=lambda level: places[words[level]]))
    return ()
