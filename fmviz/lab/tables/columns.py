"""Encodings of single columns, learned from their values, and the scikit-learn transformer that applies them.

An encoding consists of plain numbers and words, so that a saved model is JSON without code. Levels are
chosen here, since `OneHotEncoder` with ``min_frequency`` and ``max_categories`` breaks ties the other way
round, hides the name of a single rare word, and treats a missing value as a rare one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from fmviz.lab.datasets.base import Scaling
from fmviz.lab.tables.recipe import Missing, ScalingKind
from fmviz.lab.tables.values import levels_of, words_of

__all__ = ["EncodedColumn", "NumberColumn", "TextColumn", "WordColumn", "learn_column", "transformer"]

OTHER = "(other)"
_MISSING = "(missing)"
_LONGEST = 100
# Words of fewer texts identify single rows.
_FEWEST_TEXTS = 5
_YES = ("yes", "true", "1", "y", "t", "on", "ja", "oui", "si", "sí", "positive", "present")


class _Features:
    """Names and scalings of the features of a column."""

    name: str
    missing: Missing
    kind: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the features, but for the one that marks missing values."""
        return (self.name,)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name for every feature."""
        return (*self.labels, f"{self.name}={_MISSING}") if self.missing == "mark" else self.labels

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """The scaling of every feature; None for indicators and for unscaled numbers."""
        return (None,) * len(self.feature_names)


@dataclass(frozen=True)
class NumberColumn(_Features):
    """A column of numbers, encoded as (value − center)/scale.

    Attributes
    ----------
    name : str
        The column.
    center, scale : float
        Mean and standard deviation, or minimum and range, or 0 and 1.
    missing : {"drop", "impute", "mark"}
        See `fmviz.lab.tables.recipe.MISSING`.
    fill : float
        The encoded value that replaces a missing one.
    deviations : bool
        Whether center and scale are the mean and the standard deviation.
    """

    name: str
    center: float
    scale: float
    missing: Missing = "drop"
    fill: float = 0.0
    deviations: bool = True
    kind = "number"

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """The scaling of every feature; None for indicators and for unscaled numbers."""
        own = Scaling(self.center, self.scale, self.deviations)
        return (None if (self.center, self.scale) == (0.0, 1.0) else own, *super().scalings[1:])


@dataclass(frozen=True)
class WordColumn(_Features):
    """A column of words, encoded by one feature of zeros and ones for each of its levels.

    Attributes
    ----------
    name : str
        The column.
    levels : tuple of str
        The words that have a feature; a single one for a column of yes and no.
    missing : {"drop", "impute", "mark"}
        See `fmviz.lab.tables.recipe.MISSING`.
    other_label : str
        The name of a further level that all other words share; empty if they have no feature.
    others : tuple of str
        The other words of the training rows.
    """

    name: str
    levels: tuple[str, ...]
    missing: Missing = "drop"
    other_label: str = ""
    others: tuple[str, ...] = ()
    kind = "word"

    @property
    def categories(self) -> tuple[str, ...]:
        """The levels, and that of all other words where there is one."""
        return (*self.levels, self.other_label) if self.other_label else self.levels

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the features, but for the one that marks missing values."""
        return tuple(f"{self.name}={_short(level)}" for level in self.categories)


@dataclass(frozen=True)
class TextColumn(_Features):
    """A column of texts, encoded by one feature of zeros and ones for each of its words.

    Attributes
    ----------
    name : str
        The column.
    words : tuple of str
        The words, in lower case and by letters.
    missing : {"drop", "impute", "mark"}
        See `fmviz.lab.tables.recipe.MISSING`; a missing text has no words.
    """

    name: str
    words: tuple[str, ...]
    missing: Missing = "drop"
    kind = "text"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the features, but for the one that marks missing values."""
        return tuple(f"{self.name}:{_short(word)}" for word in self.words)


EncodedColumn = NumberColumn | WordColumn | TextColumn


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"


# --------------------------------------------------------------------------------------------- learned


def learn_column(
    values: pd.Series, kind: str, missing: Missing, *, scaling: ScalingKind, rare: int, most_levels: int
) -> EncodedColumn | None:
    """Return the encoding of a column, or None where the column is constant.

    Parameters
    ----------
    values : Series
        Numbers, words or texts, including missing ones.
    kind : {"number", "word", "yes_no", "text"}
        The type of the values. Of "yes_no" only the word for yes gets a feature.
    missing : {"drop", "impute", "mark"}
        See `fmviz.lab.tables.recipe.MISSING`.
    scaling, rare, most_levels : str, int, int
        As in `fmviz.lab.tables.recipe.Recipe`.
    """
    known = values.dropna()
    # A mark needs something to mark.
    marked: Missing = missing if missing != "mark" or len(known) < len(values) else "impute"
    if kind == "number":
        return _numbers(known.to_numpy(dtype=np.float64), str(values.name), marked, scaling)
    if kind == "text":
        return _texts(known, marked, max(rare, _FEWEST_TEXTS), most_levels)
    return _words(known, marked, kind == "yes_no", rare, most_levels)


def _numbers(known: np.ndarray, name: str, missing: Missing, scaling: ScalingKind) -> NumberColumn | None:
    if np.ptp(known) == 0:
        return None
    scaler = StandardScaler().fit(known[:, None])
    mean = float(scaler.mean_[0])
    if scaling == "standard":
        return NumberColumn(name, mean, float(scaler.scale_[0]), missing)
    center, scale = 0.0, 1.0
    if scaling == "range":
        ends = MinMaxScaler().fit(known[:, None])
        center, scale = float(ends.data_min_[0]), float(ends.data_range_[0])
    return NumberColumn(name, center, scale, missing, (mean - center) / scale, False)


def _words(known: pd.Series, missing: Missing, single: bool, rare: int, most: int) -> WordColumn | None:
    name, different = str(known.name), levels_of(known)
    if single and len(different) == 2:
        # Without a word for yes, the alphabetically later one.
        yes = next((level for level in different if level.strip().lower() in _YES), max(different))
        return WordColumn(name, (yes,), missing, others=tuple(word for word in different if word != yes))
    counts = pd.Series(words_of(known)).value_counts()
    # Ties are broken alphabetically, independently of the order of the rows.
    ranked = sorted(different, key=lambda word: -counts[word])[:most]
    kept = {word for word in ranked if counts[word] >= rare}
    others = tuple(word for word in different if word not in kept)
    # A common level for a single word would only hide its name.
    if len(others) <= 1:
        kept, others = set(different), ()
    other_label = OTHER if others else ""
    levels = tuple(word for word in different if word in kept)
    if len(levels) + bool(other_label) + (missing == "mark") < 2:
        return None
    return WordColumn(name, levels, missing, other_label, others)


def _texts(known: pd.Series, missing: Missing, fewest: int, most: int) -> TextColumn | None:
    counter = CountVectorizer(binary=True, min_df=fewest, max_features=most)
    try:
        words = counter.fit(known).get_feature_names_out()
    except ValueError:  # No word is in so many texts.
        return None
    return TextColumn(str(known.name), tuple(map(str, words)), missing)


# ------------------------------------------------------------------------------------------ carried out


@dataclass(frozen=True)
class _Piece:
    """Neighbouring features: those of a column, or the indicator of its missing values."""

    kind: str
    key: str
    column: Any
    width: int


def _pieces(columns: Sequence[EncodedColumn]) -> Iterator[_Piece]:
    """Yield the pieces of X, from left to right."""
    for place, column in enumerate(columns):
        yield _Piece(column.kind, str(place), column, len(column.labels))
        if column.missing == "mark":
            yield _Piece("mark", f"{place}?", column, 1)


def frame(columns: Sequence[EncodedColumn], typed: dict[str, pd.Series]) -> pd.DataFrame:
    """Return what `transformer` takes, a column for each of `_pieces`, from typed columns by their names."""
    columns_by_key: dict[str, Any] = {}
    for piece in _pieces(columns):
        values = typed[piece.column.name]
        if piece.kind == "mark":
            columns_by_key[piece.key] = values.isna().to_numpy(dtype=np.float64)
        elif piece.kind == "number":
            columns_by_key[piece.key] = values.to_numpy(dtype=np.float64)
        else:
            words = pd.Series(words_of(values), dtype=object)
            if piece.kind == "text":
                words = words.fillna("")
            elif other_label := piece.column.other_label:
                words = words.where(words.isin(piece.column.levels) | words.isna(), other_label)
            columns_by_key[piece.key] = words
    return pd.DataFrame(columns_by_key)


def transformer(columns: Sequence[EncodedColumn]) -> Pipeline:
    """Return the fitted transformer from a `frame` to X, whose columns are the features of all columns."""
    kinds: dict[str, list[_Piece]] = {}
    for piece in _pieces(columns):
        # A vectorizer takes one column. Of the others one step takes all: thousands of steps take long.
        kinds.setdefault(f"text {piece.key}" if piece.kind == "text" else piece.kind, []).append(piece)
    steps = [(name, *_step(pieces)) for name, pieces in kinds.items()]
    begin, places = 0, {}
    for piece in (piece for pieces in kinds.values() for piece in pieces):
        places[piece.key] = range(begin, begin := begin + piece.width)
    order = np.concatenate([places[piece.key] for piece in _pieces(columns)])
    # Fitted to a blank row only so that scikit-learn knows its columns.
    blank = {piece.key: [0.0 if piece.kind in ("number", "mark") else ""] for piece in _pieces(columns)}
    row = pd.DataFrame(blank).astype({key: object for key, (value,) in blank.items() if value == ""})
    return make_pipeline(
        ColumnTransformer(steps, sparse_threshold=1.0),
        FunctionTransformer(_in_order, kw_args={"order": order}),
    ).fit(row)


def _step(pieces: Sequence[_Piece]) -> tuple[Any, Any]:
    """Return a step of a `ColumnTransformer` and the columns that it takes."""
    keys, columns = [piece.key for piece in pieces], [piece.column for piece in pieces]
    if pieces[0].kind == "number":
        scaler = StandardScaler().fit(pd.DataFrame(np.zeros((1, len(keys))), columns=keys))
        scaler.mean_ = np.array([column.center for column in columns])
        scaler.scale_ = np.array([column.scale for column in columns])
        filler = SimpleImputer().fit([[column.fill for column in columns]])
        return FrozenEstimator(make_pipeline(scaler, filler)), keys
    if pieces[0].kind == "word":
        categories = [list(column.categories) for column in columns]
        return OneHotEncoder(categories=categories, handle_unknown="ignore"), keys
    if pieces[0].kind == "text":
        return CountVectorizer(vocabulary=columns[0].words, binary=True, dtype=np.float64), keys[0]
    return "passthrough", keys


def _in_order(X: Any, order: np.ndarray) -> sp.csr_array:
    """Return the features in their order, sparse and without explicit zeros."""
    X = sp.csr_array(X, dtype=np.float64)
    if (order[1:] < order[:-1]).any():
        X = X[:, order]
    X.eliminate_zeros()
    X.sort_indices()
    return X
