"""Fit the encoding of table columns as features, apply it to other tables, and describe it in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from fmviz.checked import checked
from fmviz.engine.errors import one_of, whole_number
from fmviz.tables.batches import TableSample
from fmviz.tables.cells import (
    DateFormat,
    date_format,
    dates_of,
    is_number,
    parts_of,
    quoted,
    unknown_answers,
    without,
)
from fmviz.tables.columns import (
    MISSING,
    SCALINGS,
    FeatureColumn,
    NumberColumn,
    WordColumn,
    column_from_dict,
)
from fmviz.tables.curves import BASES, EVERY, MOST_ROWS, SIDE_BY_SIDE, USUAL, best_bases, repeated, telling
from fmviz.tables.kinds import KINDS, Column, described, listed
from fmviz.tables.source import Reading, frame_of
from fmviz.typography import counted

NUMBERS = ("auto", "line", "curve")
"""The encoding of numbers: straight lines, additional curves, or whichever predicts better."""
TELLS = "Column {!r} alone determines the target: was it known before? If not, ignore it."
"""The sentence on a column that may leak the target."""

# X is sparse if more than this share of it is zero.
_SPARSE_SHARE = 0.7
_MANY_ROWS = 1_000
# With more numbers in all, no bases are compared.
_MOST_NUMBERS = 1_000_000
_RARE = 5
_LEARNED = ("columns_", "dates_", "sentences_", "bases_", "feature_names_in_", "n_features_in_")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as numeric features.

    Numbers become a scaled feature, optionally with a basis of hat functions or bins for non-linear effects;
    words an indicator for each level; dates their year, month, weekday, hour and trend; texts an indicator
    for each word.

    Parameters
    ----------
    numbers : {"auto", "line", "curve"} or name of bases, default="auto"
        Whether numbers have curves, or a name from ``fmviz.tables.curves.BASES``. By default chosen by
        validation among a few bases on the target passed to `fit`; without a target, curves of ten hat
        functions. "every" has all bases side by side, for averages over machines that each use one.
    use : mapping of str to str, optional
        The kinds of columns, overriding the detected ones: "number", "word", "yes_no", "date", "text" or
        "ignored".
    missing : {"impute", "mark", "drop"}, or mapping of str to str, optional
        The treatment of missing values, for all columns or by column: impute the mean or no level; impute and
        add an indicator; or set all features of the row to NaN. By default, columns with missing values are
        imputed with an indicator.
    scaling : {"standard", "range", "none"}, default="standard"
        The scaling of straight lines.
    ends : bool, default=True
        Whether lines and curves end at the 0.5 and 99.5 % quantiles of the training rows, which makes
        predictions for larger numbers independent of a slope that no row supports.
    distinct : bool, default=True
        Whether a column that says the same as an earlier one is left out: numbers that explain 99 % of each
        other's variance, by value or rank; words that are one-to-one; the year beside the trend of a date.
    rare : int, optional
        Words in fewer rows share a level; by default 5, and 1 below 1,000 rows.
    most_levels : int, optional
        The maximum number of levels of a column, by default unlimited; for the words of a text 1,000.
    decimal : {"point", "comma"}, default="point"
        The decimal sign of text columns whose cells prove none.
    dates : {"auto", "day", "month"}, default="auto"
        The first of day and month in dates if no cell proves the order.
    missing_words : str, default=""
        Words that stand for missing values, separated by commas.

    Attributes
    ----------
    columns_ : tuple of FeatureColumn
        The encoded columns in table order; a date has a column for each part.
    dates_ : dict of str to str
        The format of every column of dates; "pair" or "answers" of columns of two numbers or several answers.
    sentences_ : tuple of str
        Sentences on inferred properties.
    bases_ : str
        The curves of numbers, a name from ``fmviz.tables.curves.BASES``, or "every".
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
    [[1.38, 0.0], [-0.97, 1.0], [-0.41, 0.0]]
    >>> print(encoder.sentences_[0])
    Column 'price': Read as numbers in $ ('$1,200').
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        *,
        numbers: str = "auto",
        use: Mapping[str, str] | None = None,
        missing: str | Mapping[str, str] | None = None,
        scaling: str = "standard",
        ends: bool = True,
        distinct: bool = True,
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
        self.ends = ends
        self.distinct = distinct
        self.rare = rare
        self.most_levels = most_levels
        self.decimal = decimal
        self.dates = dates
        self.missing_words = missing_words

    # ------------------------------------------------------------------------------------------ learned

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the encoding to a table.

        Parameters
        ----------
        X : DataFrame, or (N, m) array_like
            The table, with typed values or text from a file.
        y : (N,) or (N, m) array_like, optional
            The target, numbers or classes; with ``numbers="auto"``, the curves are chosen on it, or on the
            first of several outputs.

        Raises
        ------
        ValueError
            If a parameter is invalid, or all columns are constant.
        """
        table = _frame(X)
        columns = described(table, self.decimal, self.dates, self.missing_words)
        self._sample: TableSample | None = None
        return self.learn(table, columns, None if y is None else np.asarray(y).reshape(len(table), -1)[:, 0])

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take another batch of rows of a table that is larger than memory, with the columns of the first.

        Levels of words, and which are rare, are learned from the counts over all batches; kinds of columns,
        means, scales, ends and curves from a random sample of up to 200,000 rows, which does not depend on
        the sizes of the batches. If all rows are in the sample, the encoding is that of `fit`. It is learned
        when it is first used after a batch. `fit` starts again.

        Parameters
        ----------
        X : DataFrame, or (N, m) array_like
            The rows, as in `fit`.
        y : (N,) or (N, m) array_like, optional
            Their target, as in `fit`: for all batches or for none.

        Raises
        ------
        ValueError
            If a parameter is invalid, or the columns are not those of the first batch.
        """
        table, sample = _frame(X), vars(self).get("_sample") or TableSample()
        self._sample = sample
        sample.add(table, None if y is None else np.asarray(y).reshape(len(table), -1)[:, 0])
        for name in {*_LEARNED} & {*vars(self)}:
            delattr(self, name)
        return self

    def __getattr__(self, name: str) -> Any:
        if name in _LEARNED and (sample := vars(self).get("_sample")) is not None:
            columns = sample.columns(self.decimal, self.dates, self.missing_words)
            return getattr(self.learn(sample.table, columns, sample.y, words=sample.words), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def learn(
        self,
        table: pd.DataFrame,
        columns: Iterable[Column],
        y: Any = None,
        row_groups: np.ndarray | None = None,
        words: Mapping[str, Counter[Any]] | None = None,
    ) -> Self:
        """Fit like `fit`, with columns that have already been described; `row_groups` as in `best_bases`.

        If the table is a sample, `words` has the number of all rows of every word, see `TableSample`.
        """
        self.feature_names_in_ = np.array([str(name) for name in table], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.check(self.feature_names_in_.tolist())
        self.dates_: dict[str, str] = {}
        self.sentences_: tuple[str, ...] = ()
        columns = tuple(columns)
        pairs = [pair for column in columns for pair in self._readers(table[column.name], column)]
        readers = [reader for reader, _ in pairs]
        if twice := [name for name, n in Counter(reader.name for reader in readers).items() if n > 1]:
            raise ValueError(f"Two columns become {twice[0]!r}. Ignore one of them.")
        if not readers:
            raise ValueError("No column is left to predict from. Use at least one in addition to the target.")
        read = {reader.name: reader.read(cells) for reader, cells in pairs}
        needed = [read[reader.name] for reader in readers if self._rule(reader) == "drop"]
        missing = [values.isna().to_numpy() for values in needed if values.notna().any()]
        kept = ~np.logical_or.reduce([np.zeros(len(table), dtype=bool), *missing])
        if kept.sum() < 2:
            raise ValueError(
                "Fewer than two rows have no missing value; impute missing values, or ignore columns with "
                "many of them."
            )
        read = {name: values[kept] for name, values in read.items()}
        learned = [
            self._learned(reader, read[reader.name], (words or {}).get(reader.name)) for reader in readers
        ]
        useful = [column for column in learned if column is not None]
        # Of a group that is alike in a column, such as a person, one row counts.
        groups = None if row_groups is None else row_groups[kept]
        once = (
            np.ones(kept.sum(), dtype=bool) if groups is None else ~pd.Series(groups).duplicated().to_numpy()
        )
        copies = self._copies({own.name: read[own.name][once] for own in useful}) if self.distinct else {}
        self.columns_ = tuple(column for column in useful if column.name not in copies)
        if not self.columns_:
            raise ValueError(
                "All remaining columns are constant; there is nothing to learn from. "
                + " ".join(self.sentences_[-1:])
            )
        y = None if y is None else np.asarray(y)[kept]
        if y is not None and y.ndim == 1:
            alone = telling({column.name: read[column.name][once] for column in self.columns_}, y[once])
            self._say(*map(TELLS.format, alone))
        self._choose_curves(read, y, groups)
        if 2 * once.sum() > once.size:
            self._say(*(column.hint for column in columns if column.name in read))
        return self

    def check(self, names: Sequence[str] = ()) -> None:
        """Raise ValueError if a parameter is invalid for a table with these column names."""
        allowed = {
            "numbers": (*NUMBERS, *BASES, EVERY),
            "scaling": SCALINGS,
            "missing": MISSING,
            "use": KINDS,
        }
        for parameter, choices in allowed.items():
            given = getattr(self, parameter) or {}
            for name, value in given.items() if isinstance(given, Mapping) else [("", given)]:
                one_of(f"{parameter}[{name!r}]" if name else parameter, value, choices)
                if name and name not in names:
                    raise ValueError(
                        f"{parameter} has the unknown column {name!r}; the columns are {quoted(names, 20)}."
                    )
        for parameter in ("rare", "most_levels"):
            if getattr(self, parameter) is not None:
                whole_number(parameter, getattr(self, parameter), 1)

    def _say(self, *sentences: str) -> None:
        self.sentences_ += tuple(sentence for sentence in sentences if sentence)

    def _rule(self, reader: FeatureColumn) -> Any:
        """Return the rule for missing values of a column or of a part of a date."""
        rules = self.missing if isinstance(self.missing, Mapping) else {reader.name: self.missing or "mark"}
        return rules.get(reader.name, rules.get(reader.origin, "mark"))

    def _readers(self, values: pd.Series, column: Column) -> Iterable[tuple[FeatureColumn, pd.Series]]:
        """Yield the reader of a column, or of each part of a date, and its cells."""
        kind = (self.use or {}).get(column.name, column.kind)
        if kind == column.kind:
            self._say(*column.sentences)
        if reader := column.reader(kind):
            yield reader, values
        elif kind != "ignored":
            yield from self._parts(values, column, kind)

    def _parts(
        self, values: pd.Series, column: Column, kind: str
    ) -> Iterable[tuple[FeatureColumn, pd.Series]]:
        name = column.name
        form = column.dates or date_format(values, self.dates) if kind == "date" else DateFormat(kind)
        parts = {} if form is None else parts_of(without(values, column.absent), form.form)
        parts = {part: cells for part, cells in parts.items() if cells.nunique() > 1}
        if self.distinct and f"{name}.trend" in parts:
            # The trend contains the year.
            parts.pop(f"{name}.year", None)
        if form is None or not parts:
            what = {"date": "dates", "pair": "pairs of numbers"}.get(kind, "answers")
            raise ValueError(
                f"Column {name!r} has fewer than two distinct {what}. Use it as words, or ignore it."
            )
        self.dates_[name] = form.form
        ends = ", ".join(part.removeprefix(f"{name}.") for part in parts)
        what = "a time of day" if ends == "hour" else "a date"
        self._say(f"Column {name!r} is {what} and becomes {ends}." * (kind == "date"), form.sentence(name))
        whence: dict[str, Any] = {"part_of" if kind == "date" else "split_from": name}
        words = partial(WordColumn, single=kind == "answers")
        for part, cells in parts.items():
            yield (NumberColumn if is_number(cells) else words)(name=part, **whence), cells

    def _learned(
        self, reader: FeatureColumn, values: pd.Series, words: Counter[Any] | None
    ) -> FeatureColumn | None:
        """Return the fitted column; None, with a sentence, if it has no features."""
        name, known, rule = reader.name, values.dropna(), self._rule(reader)
        # An indicator needs missing values.
        reader = replace(reader, missing="impute" if rule == "mark" and len(known) == len(values) else rule)
        rare = self.rare or (_RARE if len(values) >= _MANY_ROWS else 1)
        if self.ends and isinstance(reader, NumberColumn) and len(known):
            reader = reader.with_ends(known)
        learned = reader.learn(known, self.scaling, rare, self.most_levels) if len(known) else None
        if words and isinstance(reader, WordColumn) and not reader.single:
            read = reader.read(pd.Series([*words], dtype=object))
            counts = pd.Series([*words.values()]).groupby(read).sum()
            learned = reader.of_counts(Counter(counts.to_dict()), rare, self.most_levels)
        if learned is None:
            n = known.nunique()
            same = (
                "it has no values",
                "it has the same value in all rows" + " that have one" * values.hasnans,
            )
            why = same[n] if n < 2 else f"none of its {n:,} words is in {rare:,} rows"
            self._say(f"Column {name!r} is left out: {why}.")
        elif isinstance(learned, WordColumn) and learned.other_label:
            n = len(learned.others)
            self._say(f"{n:,} rare words of column {name!r}, in fewer than {rare} rows, share a feature.")
        return learned

    def _copies(self, read: Mapping[str, pd.Series]) -> dict[str, str]:
        """Return the columns that repeat another one, and say so."""
        copies = repeated(read)
        self._say(*(f"Column {name!r} says the same as {copies[name]!r} and is left out." for name in copies))
        return copies

    def _choose_curves(
        self, read: Mapping[str, pd.Series], y: np.ndarray | None, row_groups: np.ndarray | None
    ) -> None:
        """Choose the curves of numbers that predict best."""
        tried = {"auto": tuple(BASES), "curve": tuple(BASES)[1:]}.get(self.numbers, (self.numbers,))
        numbers = sum(isinstance(column, NumberColumn) for column in self.columns_)
        if len(tried) > 1 and y is not None and numbers * min(len(y), MOST_ROWS) > _MOST_NUMBERS:
            tried = (tried[0],)
            self._say(
                f"{numbers:,} columns of numbers enter as {_basis(tried[0])}; a choice would take long."
            )
        able: dict[str, tuple[FeatureColumn, ...]] = {
            name: tuple(
                column.with_curves(read[column.name], BASES.get(name, SIDE_BY_SIDE))
                if isinstance(column, NumberColumn)
                else column
                for column in self.columns_
            )
            for name in tried
        }
        if all(columns == self.columns_ for columns in able.values()):
            self.bases_ = "line"
        elif y is None or len(tried) == 1:
            self.bases_ = USUAL if USUAL in tried else tried[0]
        else:
            encoded = {name: partial(_encoded, columns, read) for name, columns in able.items()}
            # Encodings of commit a8ed998a, which have no ends, had a prior per column.
            priors = {
                name: np.repeat(np.arange(len(columns)), [len(column.feature_names) for column in columns])
                for name, columns in able.items()
            }
            self.bases_, losses = best_bases(encoded, y, row_groups, None if self.ends else priors)
            share = losses[self.bases_] / losses.get("line", np.nan)
            shown = "less than 1 %" if share < 0.01 else f"{100 * share:.0f} %"
            than = f", {shown} of that of straight lines" if share < 1.0 else ""
            self._say(f"Numbers enter as {_basis(self.bases_)}: the smallest loss in validation{than}.")
        self.columns_ = able.get(self.bases_, self.columns_)

    # ------------------------------------------------------------------------------------------ applied

    def transform(self, X: Any) -> np.ndarray | sp.csr_array | pd.DataFrame:
        """Encode a table with the same columns as in `fit`.

        Parameters
        ----------
        X : DataFrame, or (N, m) array_like
            The table.

        Returns
        -------
        (N, d) float64 ndarray or CSR array
            Sparse if most entries are zero; a DataFrame after ``set_output(transform="pandas")``. Rows with
            a missing value that is not imputed are NaN.

        Raises
        ------
        ValueError
            If a column is missing, or has words instead of numbers.
        """
        read = self.read(X)
        encoded: Any = self.encoded(read)
        needed = [read[column.name].isna() for column in self.columns_ if column.missing == "drop"]
        if needed and (lost := np.logical_or.reduce(needed)).any():
            encoded = encoded.toarray() if sp.issparse(encoded) else encoded
            encoded[lost] = np.nan
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        if sp.issparse(encoded) and (own or get_config()["transform_output"]) == "pandas":
            index = getattr(X, "index", None)
            return pd.DataFrame.sparse.from_spmatrix(encoded, index, self.get_feature_names_out())
        return encoded

    def encoded(self, read: Mapping[str, pd.Series]) -> np.ndarray | sp.csr_array:
        """Return the features of columns from `read`, sparse if most entries are zero."""
        X = _encoded(self.columns_, read, slice(None))
        return X if X.nnz <= (1 - _SPARSE_SHARE) * np.prod(X.shape) else X.toarray()

    def read(
        self, X: Any, reading: Reading | None = None, notes: list[str] | None = None
    ) -> dict[str, pd.Series]:
        """Return the columns of a table as numbers, words and texts, by name; errors as in `transform`.

        The kinds of the columns are those of the training table, their notation is that of the cells.
        Sentences on cells that are written differently are appended to `notes`.
        """
        check_is_fitted(self, "columns_")
        reading, notes = reading or Reading(), [] if notes is None else notes
        table = _frame(X, self.feature_names_in_.tolist())
        if missing := [column.origin for column in self.columns_ if column.origin not in table]:
            others = {name.casefold(): name for name in table}
            near = get_close_matches(missing[0].casefold(), others, 1)
            rename = "".join(f" If it is {others[name]!r}, rename that." for name in near)
            raise ValueError(f"The table lacks the column {missing[0]!r}.{rename}")
        table = table.apply(without, words=listed(reading.missing))
        read, parts = dict[str, pd.Series](), dict[str, pd.Series]()
        for name, form in self.dates_.items():
            answers = [c.name.removeprefix(f"{name}.") for c in self.columns_ if c.origin == name]
            form = _form_of(table[name].dropna(), form, reading.dates, notes)
            parts |= parts_of(table[name], form, answers)
            if form == "answers" and (others := unknown_answers(table[name], answers)):
                rows = counted(others.total(), "row")
                notes.append(
                    f"Column {name!r} has answers without a feature ({quoted(others)}) in {rows}; they are "
                    "ignored."
                )
        for column in self.columns_:
            values = (parts if column.origin in self.dates_ else table).get(column.name)
            if values is None:
                raise ValueError(
                    f"Column {column.origin!r} has no dates as in training: {column.name!r} is missing."
                )
            read[column.name] = column.suited(values, notes).read(values)
            if column.kind == "number" and values.notna().any() and read[column.name].isna().all():
                raise ValueError(
                    f"Column {column.name!r} contains {str(values.dropna().iloc[0])!r}, but was numeric in "
                    "training."
                )
        return read

    def notes(self, read: Mapping[str, pd.Series]) -> list[str]:
        """Return sentences on imputed values in the result of `read`, and on unseen numbers and words."""
        notes, imputed = [], set()
        for column in self.columns_:
            name, absent = column.origin, int(read[column.name].isna().sum())
            if absent and column.missing == "impute" and name not in imputed:
                imputed.add(name)
                instead = "its mean" if column.kind == "number" else "none of its levels"
                rows = counted(absent, "row")
                notes.append(f"Column {name!r} has no readable value in {rows}, which counts as {instead}.")
            if isinstance(column, NumberColumn) and (far := column.beyond(read[column.name])):
                notes.append(far)
            if isinstance(column, WordColumn) and (words := column.unseen(read[column.name])):
                rows, instead = counted(words.total(), "row"), column.other_label or "none of its levels"
                notes.append(
                    f"Column {column.name!r} has words that are new to the model ({quoted(words)}) in {rows}"
                    f"; they count as {instead}."
                )
        return notes

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, shape (d,); `input_features` must be the names of the columns."""
        check_is_fitted(self, "columns_")
        if input_features is not None and list(input_features) != self.feature_names_in_.tolist():
            raise ValueError(
                f"input_features are {quoted(input_features)}, but the columns are "
                f"{quoted(self.feature_names_in_.tolist())}."
            )
        return np.array([name for column in self.columns_ for name in column.feature_names], dtype=object)

    @property
    def groups_(self) -> tuple[str, ...]:
        """The column of every feature; parts of a date are separate columns."""
        return tuple(column.name for column in self.columns_ for _ in column.feature_names)

    # ------------------------------------------------------------------------------------------ kept

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted encoder as a dictionary for JSON."""
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
        """Return the encoder from a dictionary of `to_dict`.

        Raises
        ------
        ValueError
            If the dictionary is invalid; the message names the field.
        """
        learned = checked(_Learned, data)
        if unknown := learned.parameters.keys() - cls().get_params().keys():
            raise ValueError(f"encoding.parameters: {min(unknown)!r} is unknown")
        encoder = cls(**learned.parameters)
        encoder.check(learned.names)
        one_of("encoding.bases", learned.bases, (*BASES, EVERY))
        encoder.columns_ = tuple(map(column_from_dict, learned.columns))
        encoder.dates_, encoder.sentences_, encoder.bases_ = learned.dates, learned.sentences, learned.bases
        encoder.feature_names_in_ = np.array(learned.names, dtype=object)
        encoder.n_features_in_ = len(learned.names)
        if lone := [own for own in encoder.columns_ if own.origin not in (own.name, *encoder.dates_)]:
            raise ValueError(f"encoding.dates lacks {lone[0].origin!r}, of which {lone[0].name!r} is a part")
        return encoder


@dataclass(frozen=True)
class _Learned:
    """The result of `TableEncoder.to_dict`."""

    parameters: dict[str, Any]
    columns: list[dict[str, Any]]
    dates: dict[str, str]
    sentences: tuple[str, ...]
    bases: str
    names: tuple[str, ...]


def _form_of(known: pd.Series, form: str, order: str, notes: list[str]) -> str:
    """Return the format that reads most dates, the one of training if it reads as many as another."""
    lost = dates_of(known, form).isna().sum() if form not in ("pair", "answers") else 0
    other = date_format(known, order) if lost or (order != "auto" and form.startswith("%")) else None
    if other is None or other.form == form or dates_of(known, other.form).isna().sum() > lost:
        return form
    first = known[dates_of(known, other.form).notna()].iloc[0]
    notes.append(f"Column {known.name!r}: dates in another format than in training ({first}).")
    return other.form


def _frame(X: Any, names: Sequence[str] = ()) -> pd.DataFrame:
    """Return a table with named columns."""
    types = [type(dtype) for dtype in X.dtypes] if isinstance(X, pd.DataFrame) else [pd.ArrowDtype]
    if pd.ArrowDtype in types and hasattr(X, "__arrow_c_stream__"):
        X = frame_of(X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else X)
    elif not isinstance(X, pd.DataFrame):
        # Strings would otherwise turn the numbers beside them into strings.
        X = np.array(X, dtype=object) if isinstance(X, list) else X
        values = check_array(X, dtype=None, ensure_all_finite=False)
        names = names or [f"column {place}" for place in range(1, values.shape[1] + 1)]
        if len(names) != values.shape[1]:
            raise ValueError(f"X has {values.shape[1]} columns, but {len(names)} were fitted.")
        X = pd.DataFrame(values, columns=list(names)).infer_objects()
    words = [str(name) for name in X]
    if twice := [word for word, n in Counter(words).items() if n > 1]:
        raise ValueError(
            f"{words.count(twice[0])} columns are named {twice[0]!r}; rename or remove all but one."
        )
    # Column names of files are stripped, and their inner whitespace is collapsed.
    return X.set_axis(
        [word if not names or word in names else " ".join(word.split()) for word in words], axis=1
    )


def _basis(name: str) -> str:
    return "straight lines" if name == "line" else f"curves of {name}"


def _encoded(
    columns: Iterable[FeatureColumn], read: Mapping[str, pd.Series], rows: np.ndarray | slice
) -> sp.csr_array:
    """Return the features of some rows of columns."""
    blocks = [block for own in columns for block in own.features(read[own.name].iloc[rows])]
    X = sp.csr_array(sp.hstack(blocks, format="csr"), dtype=np.float64)
    X.eliminate_zeros()
    X.sort_indices()
    return X
