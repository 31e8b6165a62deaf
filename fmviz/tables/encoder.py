"""Learn how the columns of a table become features, apply that to the next table, and say it in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.errors import one_of, whole_number
from fmviz.tables.cells import NOTHING, Notation, date_format, date_parts, is_number, notation_of, quoted
from fmviz.tables.columns import (
    MISSING,
    SCALINGS,
    FeatureColumn,
    NumberColumn,
    TextColumn,
    WordColumn,
    basis_of,
    column_from_dict,
    learn_numbers,
    learn_texts,
    learn_words,
)
from fmviz.tables.curves import BASES, USUAL, best_bases
from fmviz.tables.kinds import KINDS, Column, described, known_values
from fmviz.tables.limits import MOST_LEVELS

__all__ = ["NUMBERS", "TableEncoder"]

NUMBERS = ("auto", "line", "curve")
"""How numbers enter: as straight lines; with curves beside them; or whichever predicts better."""

# X is sparse if more than this share of it is zero.
_SPARSE_SHARE = 0.7
_MANY_ROWS = 1_000
_RARE = 5
_FEWEST_VALUES = 4


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as numeric features.

    A number is a straight line, scaled, with a basis of hat functions or bins beside it, so that a model can
    draw a curve; a word an indicator for each of its levels; a date its year, month, weekday, hour and trend;
    a text its words.

    Parameters
    ----------
    numbers : {"auto", "line", "curve"} or name of bases, default="auto"
        Whether numbers get curves, or which of ``fmviz.tables.curves.BASES``. By default the target that `fit` is given decides, by validation among
        a few bases; without a target there are curves of ten hat functions.
    use : mapping of str to str, optional
        What some columns hold, in place of what they look like: "number", "word", "yes_no", "date", "text"
        or "ignored".
    missing : {"impute", "mark", "drop"}, or mapping of str to str, optional
        What becomes of missing values, everywhere or by column: the mean or no level; the same, and a feature
        that marks them; or NaN in all features of the row. By default columns with missing values are
        marked.
    scaling : {"standard", "range", "none"}, default="standard"
        How straight lines are scaled.
    rare : int, optional
        Words in fewer rows share a level; by default 5, and 1 below 1,000 rows.
    most_levels : int, optional
        The largest number of levels of a column, by default as many as there are; of words of a text 1,000.
    decimal : {"point", "comma"}, default="point"
        The decimal sign of columns of words whose cells prove none.
    dates : {"auto", "day", "month"}, default="auto"
        What comes first in dates of which no cell proves it.
    missing_words : str, default=""
        Words that stand for missing values, separated by commas.

    Attributes
    ----------
    columns_ : tuple of FeatureColumn
        The encoded columns in the order of the table; a date has a column for each part.
    dates_ : dict of str to str
        The format of every column of dates.
    sentences_ : tuple of str
        What was inferred, in sentences.
    bases_ : str
        The curves of numbers, a name of ``fmviz.tables.curves.BASES``.
    n_features_in_, feature_names_in_
        The columns of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from fmviz import TableEncoder
    >>> table = pd.DataFrame({"price": ["$1,200", "$950", "$1,010"], "town": ["Bonn", "Kiel", "Bonn"]})
    >>> encoder = TableEncoder(numbers="line").fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['price', 'town=Kiel']
    >>> encoder.transform(table).round(2).tolist()
    [[1.36, 0.0], [-0.97, 1.0], [-0.4, 0.0]]
    >>> print(encoder.sentences_[0])
    Column 'price': Read as numbers in $ ('$1,200').
    """

    def __init__(
        self,
        *,
        numbers: str = "auto",
        use: Mapping[str, str] | None = None,
        missing: str | Mapping[str, str] | None = None,
        scaling: str = "standard",
        rare: int | None = None,
        most_levels: int | None = None,
        decimal: str = "point",
        dates: str = "auto",
        missing_words: str = "",
    ) -> None:
        self.numbers = numbers
        self.use = use
        self.missing = missing
        self.scaling = scaling
        self.rare = rare
        self.most_levels = most_levels
        self.decimal = decimal
        self.dates = dates
        self.missing_words = missing_words

    # ------------------------------------------------------------------------------------------ learned

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a table how its columns are read and become features.

        Parameters
        ----------
        X : DataFrame, or (N, m) array_like
            The table, of typed values or of words as a file writes them.
        y : (N,) array_like, optional
            The target, numbers or classes; with ``numbers="auto"`` it decides upon the curves.

        Raises
        ------
        ValueError
            If a parameter is not allowed, or no column differs from row to row.
        """
        table = _frame(X)
        columns = described(table, self.decimal, self.dates, self.missing_words)
        return self.learn(table, columns, None if y is None else np.asarray(y))

    def learn(self, table: pd.DataFrame, columns: Iterable[Column], y: Any = None) -> Self:
        """Learn as `fit` does, from columns that were described before."""
        self._check(table)
        names = [str(name) for name in table]
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        self.dates_: dict[str, str] = {}
        self.sentences_: tuple[str, ...] = ()
        read: dict[str, pd.Series] = {}
        learners = {}
        for column in columns:
            for name, values, learner in self._readings(table, column):
                if name in read:
                    raise ValueError(f"Two columns become {name!r}. Ignore one of them.")
                read[name], learners[name] = values, learner
        if not read:
            raise ValueError("No column is left to predict from. Use at least one besides the target.")
        for name in [name for name, values in read.items() if not values.notna().any()]:
            self._say(f"Column {name!r} is left out: it has no values.")
            del read[name]
        complete = pd.concat(read, axis=1) if read else pd.DataFrame()
        needed = [name for name in read if self._rule(name, "") == "drop"]
        kept: np.ndarray = complete[needed].notna().all(axis=1).to_numpy()
        if kept.sum() < 2:
            raise ValueError(
                "Fewer than two rows are left without a missing value; impute them, or ignore the columns "
                "that are often missing."
            )
        read = {name: values[kept] for name, values in read.items()}
        self.columns_ = tuple(
            column for name, values in read.items() if (column := learners[name](values)) is not None
        )
        if not self.columns_:
            raise ValueError(
                "No column is left that differs from row to row; there is nothing to learn from. "
                + " ".join(self.sentences_[-1:])
            )
        self._choose_curves(read, None if y is None else np.asarray(y)[kept])
        return self

    def _check(self, table: pd.DataFrame) -> None:
        one_of("numbers", self.numbers, (*NUMBERS, *BASES))
        one_of("scaling", self.scaling, SCALINGS)
        for parameter, allowed in (("use", KINDS), ("missing", MISSING)):
            given = getattr(self, parameter)
            for name, value in given.items() if isinstance(given, Mapping) else ():
                one_of(f"{parameter}[{name!r}]", value, allowed)
                if name not in table:
                    raise ValueError(
                        f"{parameter} names {name!r}; the columns are {quoted(list(table), 20)}."
                    )
        if isinstance(self.missing, str):
            one_of("missing", self.missing, MISSING)
        for parameter in ("rare", "most_levels"):
            if (given := getattr(self, parameter)) is not None:
                whole_number(parameter, given, 1)

    def _say(self, *sentences: str) -> None:
        self.sentences_ += tuple(sentence for sentence in sentences if sentence)

    def _rule(self, name: str, usual: str) -> Any:
        """Return the rule for missing values of a column or of a part of a date."""
        if self.missing is None or isinstance(self.missing, str):
            return self.missing or usual
        column = next((date for date in self.dates_ if name.startswith(f"{date}.")), name)
        return self.missing.get(name, self.missing.get(column, usual))

    def _readings(self, table: pd.DataFrame, column: Column) -> Iterable[tuple[str, pd.Series, Any]]:
        """Yield the name of a column, or of each part of a date, its values as read, and what learns it."""
        name, values = column.name, table[column.name]
        kind = (self.use or {}).get(name, column.kind)
        if kind != "ignored" and kind == column.kind:
            self._say(f"Column {name!r}: {column.note}" if column.note else "", column.asked)
        elif kind == column.kind:
            self._say(f"Column {name!r} is left out. {column.note}")
        if kind == "ignored":
            return
        if kind != "date":
            if kind == "number" and kind != column.kind and not is_number(values):
                notation = notation_of(known_values(values), self.decimal)
                column = replace(column, notation=notation[0] if notation else Notation(self.decimal))
            yield self._reading(column, kind, values, "")
            return
        form = column.dates or date_format(values, self.dates)
        parts = {} if form is None else date_parts(values, form.form)
        parts = {
            part: own
            for part, own in parts.items()
            if own[own.notna()].nunique() > 1
            and (part != f"{name}.trend" or (form is not None and form.trend))
        }
        if form is None or not parts:
            raise ValueError(f"Column {name!r} holds no dates that differ. Use it as words, or ignore it.")
        self.dates_[name] = form.form
        ends = [part.rpartition(".")[2] for part in parts]
        self._say(f"Column {name!r} is a date and becomes {', '.join(ends)}.", form.sentence(name))
        for part, own in parts.items():
            plain = Column(part, "number" if own.dtype == np.float64 else "word", 0, 0, "")
            yield self._reading(plain, plain.kind, own, name)

    def _reading(
        self, column: Column, kind: str, values: pd.Series, part_of: str
    ) -> tuple[str, pd.Series, Any]:
        name = column.name
        how: dict[str, Any] = {"name": name, "part_of": part_of}
        reader: FeatureColumn
        learn: Any
        if kind == "number":
            how["notation"] = column.notation
            reader, learn = NumberColumn(center=0.0, scale=1.0, **how), self._learn_numbers
        elif kind == "text":
            reader, learn = TextColumn(words=(), **how), self._learn_texts
        else:
            absent = tuple(word.strip() for word in self.missing_words.split(",") if word.strip())
            if column.clean and not part_of:
                how |= {"clean": True, "merged": column.merged, "absent": (*NOTHING, *absent)}
            reader, learn = WordColumn(levels=(), **how), partial(self._learn_words, single=kind == "yes_no")
        return name, reader.read(values), partial(self._learned, learn, how)

    def _learned(self, learn: Any, how: dict[str, Any], values: pd.Series) -> FeatureColumn | None:
        """Return what is learned of a column; None, with a sentence, where it makes no features."""
        known = values.dropna()
        some = len(known) < len(values)
        rule = self._rule(how["name"], "mark" if some else "impute")
        # A mark needs something to mark.
        how["missing"] = "impute" if rule == "mark" and not some else rule
        rare = self.rare or (_RARE if len(values) >= _MANY_ROWS else 1)
        learned: FeatureColumn | None = learn(known, rare, **how) if len(known) else None
        name = how["name"]
        if learned is None:
            different = known.nunique()
            why = "it has the same value in all rows"
            if different > 1:
                why = f"none of its {different:,} words is in {rare:,} rows"
            self._say(f"Column {name!r} is left out: {why}.")
        elif others := getattr(learned, "others", ()) if getattr(learned, "other_label", "") else ():
            self._say(
                f"{len(others):,} rare words of column {name!r}, in fewer than {rare} rows, share a feature."
            )
        return learned

    def _learn_numbers(self, known: pd.Series, rare: int, **how: Any) -> NumberColumn | None:
        del rare
        scaling: Any = self.scaling
        return learn_numbers(known.to_numpy(dtype=np.float64), scaling, **how)

    def _learn_texts(self, known: pd.Series, rare: int, **how: Any) -> TextColumn | None:
        return learn_texts(known, rare, self.most_levels or MOST_LEVELS, **how)

    def _learn_words(self, known: pd.Series, rare: int, single: bool, **how: Any) -> WordColumn | None:
        return learn_words(known, single, rare, self.most_levels or len(known), **how)

    def _choose_curves(self, read: Mapping[str, pd.Series], y: np.ndarray | None) -> None:
        """Give numbers the curves that predict best."""
        self.bases_ = "line"
        enough = [
            column.name
            for column in self.columns_
            if column.kind == "number" and read[column.name].nunique() >= _FEWEST_VALUES
        ]
        if not enough or self.numbers == "line":
            return
        if self.numbers in BASES:
            self.bases_, self.columns_ = self.numbers, self._with_curves(read, enough, self.numbers)
            return
        able = {name: self._with_curves(read, enough, name) for name in BASES if name != "line"}
        if self.numbers == "auto":
            able = {"line": self.columns_, **able}
        if y is None:
            self.bases_ = USUAL
        else:
            encoded = {name: partial(_encoded, columns, read) for name, columns in able.items()}
            self.bases_, losses = best_bases(encoded, y)
            chosen = f"curves of {self.bases_}" if self.bases_ != "line" else "straight lines"
            best, line = losses[self.bases_], losses.get("line")
            beside = (
                f", {best / line:.0%} of that of straight lines" if line and self.bases_ != "line" else ""
            )
            self._say(f"Numbers enter as {chosen}: the smallest loss in validation{beside}.")
        self.columns_ = able[self.bases_]

    def _with_curves(
        self, read: Mapping[str, pd.Series], enough: Sequence[str], bases: str
    ) -> tuple[FeatureColumn, ...]:
        columns = []
        for column in self.columns_:
            if column.name in enough:
                known = read[column.name].dropna().to_numpy(dtype=np.float64)
                able = (basis_of(known, degree, size) for degree, size in BASES[bases])
                column = replace(column, curves=tuple(basis for basis in able if basis is not None))
            columns.append(column)
        return tuple(columns)

    # ------------------------------------------------------------------------------------------ applied

    def transform(self, X: Any) -> np.ndarray | sp.csr_array:
        """Encode a table with the columns of the fitted one.

        Parameters
        ----------
        X : DataFrame, or (N, m) array_like
            The table.

        Returns
        -------
        (N, d) float64 ndarray or CSR array
            Sparse where most entries are zero; rows of NaN where a value is missing that is not imputed.

        Raises
        ------
        ValueError
            If a column is missing, or holds words in place of numbers.
        """
        read = self.read(X)
        encoded: Any = self.encoded(read)
        needed = [read[column.name].isna() for column in self.columns_ if column.missing == "drop"]
        if needed and (lost := np.logical_or.reduce(needed)).any():
            encoded = encoded.toarray() if sp.issparse(encoded) else encoded
            encoded[lost] = np.nan
        return encoded

    def encoded(self, read: Mapping[str, pd.Series]) -> np.ndarray | sp.csr_array:
        """Return the features of columns by `read`, sparse where most entries are zero."""
        X, _ = _encoded(self.columns_, read, None)
        n, d = X.shape
        return X if X.nnz <= (1 - _SPARSE_SHARE) * n * d else X.toarray()

    def read(self, X: Any) -> dict[str, pd.Series]:
        """Return the columns of a table as numbers, words and texts, by their names; errors as of `transform`."""
        check_is_fitted(self, "columns_")
        table = _frame(X, self.feature_names_in_.tolist())
        parts: dict[str, pd.Series] = {}
        for name, form in self.dates_.items():
            parts |= date_parts(_column(table, name), form)
        read = {}
        for column in self.columns_:
            values = parts[column.name] if column.part_of else _column(table, column.name)
            read[column.name] = column.read(values)
            if column.kind == "number" and values.notna().any() and read[column.name].isna().all():
                word = str(values.dropna().iloc[0])
                raise ValueError(f"Column {column.name!r} holds {word!r}, but was one of numbers.")
        return read

    def unseen(self, read: Mapping[str, pd.Series]) -> dict[str, dict[str, int]]:
        """Return by column the words, of columns by `read`, that were in no training row, with their counts."""
        words = {
            column.name: column.unseen(read[column.name])
            for column in self.columns_
            if isinstance(column, WordColumn)
        }
        return {name: counts for name, counts in words.items() if counts}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, shape (d,)."""
        del input_features
        check_is_fitted(self, "columns_")
        return np.array([name for column in self.columns_ for name in column.feature_names], dtype=object)

    @property
    def groups_(self) -> tuple[str, ...]:
        """The column of every feature; a part of a date is one."""
        return tuple(column.name for column in self.columns_ for _ in column.feature_names)

    # ------------------------------------------------------------------------------------------ kept

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as a dictionary for JSON."""
        check_is_fitted(self, "columns_")
        return {
            "parameters": self.get_params(),
            "columns": [column.to_dict() for column in self.columns_],
            "dates": self.dates_,
            "sentences": list(self.sentences_),
            "bases": self.bases_,
            "names": self.feature_names_in_.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the encoder of a dictionary by `to_dict`, or of a model of commit 2c2cf81."""
        encoder = cls(**data.get("parameters", {}))
        notation = {"notation": {"decimal": data.get("decimal", "point"), "habits": ()}}
        encoder.columns_ = tuple(
            column_from_dict(column if "parameters" in data or "center" not in column else column | notation)
            for column in data["columns"]
        )
        encoder.dates_ = dict(data["dates"])
        if "parameters" not in data:
            encoder.columns_ = tuple(
                replace(column, part_of=next((d for d in encoder.dates_ if _is_part(column.name, d)), ""))
                for column in encoder.columns_
            )
        encoder.sentences_ = tuple(data.get("sentences", data.get("notes", ())))
        encoder.bases_ = data.get("bases", "line")
        names = data.get(
            "names", [*dict.fromkeys(column.part_of or column.name for column in encoder.columns_)]
        )
        encoder.feature_names_in_ = np.array(names, dtype=object)
        encoder.n_features_in_ = len(names)
        return encoder


def _is_part(name: str, date: str) -> bool:
    return name.startswith(f"{date}.") and name.rpartition(".")[2] in ("year", "month", "weekday", "hour")


def _frame(X: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table with names for its columns."""
    if isinstance(X, pd.DataFrame):
        return (
            X if all(isinstance(name, str) for name in X) else X.set_axis([str(name) for name in X], axis=1)
        )
    values = np.asarray(X)
    if values.ndim != 2:
        raise ValueError(f"X has {values.ndim} dimensions; give a table, such as a DataFrame.")
    if names is None:
        names = [f"column {place}" for place in range(1, values.shape[1] + 1)]
    if len(names) != values.shape[1]:
        raise ValueError(f"X has {values.shape[1]} columns, but {len(names)} were fitted.")
    return pd.DataFrame(values, columns=list(names)).infer_objects()


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table:
        raise ValueError(f"The table lacks the column {name!r}.")
    return table[name]


def _encoded(
    columns: Iterable[FeatureColumn], read: Mapping[str, pd.Series], rows: np.ndarray | None
) -> tuple[sp.csr_array, np.ndarray]:
    """Return the features of columns, and the number of the column of each, for some rows or all."""
    blocks, groups = [], []
    for group, column in enumerate(columns):
        values = read[column.name]
        blocks += column.features(values if rows is None else values.iloc[rows])
        groups += [group] * len(column.feature_names)
    X = sp.csr_array(sp.hstack(blocks, format="csr"), dtype=np.float64)
    X.eliminate_zeros()
    X.sort_indices()
    return X, np.array(groups)
