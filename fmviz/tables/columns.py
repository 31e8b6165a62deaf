"""The columns of a table as features: what is learned of each, and the sparse blocks that it becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import StandardScaler

from fmviz.tables.cells import (
    Notation,
    cleaned,
    levels_of,
    numbers_of,
    typed_words,
    words_of,
)
from fmviz.tables.scaling import Scaling

__all__ = [
    "MISSING",
    "SCALINGS",
    "Basis",
    "FeatureColumn",
    "Missing",
    "NumberColumn",
    "ScalingKind",
    "TextColumn",
    "WordColumn",
    "basis_of",
    "column_from_dict",
    "learn_numbers",
    "learn_texts",
    "learn_words",
]

Missing = Literal["drop", "impute", "mark"]
MISSING: tuple[Missing, ...] = ("drop", "impute", "mark")
"""Drop rows with a missing value; impute the mean, or no level; or impute, and add an indicator feature."""

ScalingKind = Literal["standard", "range", "none"]
SCALINGS: tuple[ScalingKind, ...] = ("standard", "range", "none")
"""Scale numbers to mean 0 and standard deviation 1, scale them to [0, 1], or leave them unscaled."""

OTHER = "(other)"
_MISSING = "(missing)"
_LONGEST = 100
# Words of fewer texts identify single rows.
_FEWEST_TEXTS = 5
# Values beyond `size` that have a function each nonetheless: the hours of a day among 20.
_SPARE = 1.6
_YES = ("yes", "true", "1", "y", "t", "on", "ja", "oui", "si", "sí", "positive", "present")


@dataclass(frozen=True)
class Basis:
    """A basis of functions of a number, at most two of which are not zero at any value; they sum to 1.

    Attributes
    ----------
    degree : {0, 1}
        Bins, or hat functions: linear B-splines.
    knots : tuple of float
        The ends of the bins, or where the hats have their tops.
    """

    degree: int
    knots: tuple[float, ...]

    @property
    def width(self) -> int:
        """The number of functions."""
        return len(self.knots) + self.degree - 1

    def labels(self, name: str) -> tuple[str, ...]:
        """Return a name for every function."""
        if self.degree:
            return tuple(f"{name}≈{knot:.4g}" for knot in self.knots)
        return tuple(
            f"{name}={low:.4g}…{high:.4g}" for low, high in zip(self.knots, self.knots[1:], strict=False)
        )

    def __call__(self, values: np.ndarray) -> sp.csr_array:
        """Return the functions of some numbers, shape (N, width); those beyond the knots are at the ends."""
        known = np.flatnonzero(~np.isnan(values))
        knots = np.array(self.knots)
        padded = np.r_[knots[0], knots, knots[-1]] if self.degree else knots
        inside = np.clip(values[known], knots[0], knots[-1])
        design = BSpline.design_matrix(inside, padded, self.degree).tocoo()
        return sp.csr_array((design.data, (known[design.row], design.col)), shape=(len(values), self.width))


def basis_of(values: np.ndarray, degree: int, size: int) -> Basis | None:
    """Return a basis with knots at quantiles, or at all values where they are few; None for two values.

    Parameters
    ----------
    values : (N,) ndarray
        The known numbers.
    degree : {0, 1}
        Bins or hat functions.
    size : int
        The largest number of functions.
    """
    different = np.unique(values)
    if len(different) < 3:
        return None
    if len(different) <= _SPARE * size:
        knots = different
        if not degree:
            knots = np.r_[different[0], (different[1:] + different[:-1]) / 2, different[-1]]
    else:
        knots = np.unique(np.quantile(values, np.linspace(0.0, 1.0, size + 1 - degree)))
    return Basis(degree, tuple(knots.tolist())) if len(knots) > 2 else None


# --------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True, kw_only=True)
class FeatureColumn:
    """A column of a table, or a part of a date, with what was learned of it.

    Attributes
    ----------
    name : str
        Its name.
    missing : {"drop", "impute", "mark"}
        See `MISSING`.
    part_of : str
        The column of dates of which it is a part; empty otherwise.
    """

    kind: ClassVar[str]
    name: str
    missing: Missing = "drop"
    part_of: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its features, but for the one that marks missing values."""
        return (self.name,)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name for every feature."""
        return (*self.labels, f"{self.name}={_MISSING}") if self.missing == "mark" else self.labels

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """The scaling of every feature; None for indicators and for unscaled numbers."""
        return (None,) * len(self.feature_names)

    def read(self, values: pd.Series) -> pd.Series:
        """Return its cells as numbers or words, NaN or None where one is missing."""
        raise NotImplementedError

    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return its features of values by `read`, side by side, shape (N, ·) each."""
        raise NotImplementedError

    def features(self, values: pd.Series) -> list[sp.csr_array]:
        """Return all its features of values by `read`, with the mark of missing ones."""
        marks = (
            [sp.csr_array(values.isna().to_numpy(dtype=np.float64)[:, None])]
            if self.missing == "mark"
            else []
        )
        return self.blocks(values) + marks

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dictionary for JSON."""
        return {key: value for key, value in asdict(self).items() if value not in ("", (), {}, None)}


@dataclass(frozen=True, kw_only=True)
class NumberColumn(FeatureColumn):
    """A column of numbers: a straight line (value − center)/scale, and curves beside it.

    Attributes
    ----------
    center, scale : float
        Mean and standard deviation, or minimum and range, or 0 and 1.
    fill : float
        The encoded value that replaces a missing one.
    deviations : bool
        Whether center and scale are the mean and the standard deviation.
    curves : tuple of Basis
        Bases of functions of the number.
    notation : Notation
        How its cells write numbers.
    """

    kind = "number"
    center: float
    scale: float
    fill: float = 0.0
    deviations: bool = True
    curves: tuple[Basis, ...] = ()
    notation: Notation = field(default_factory=Notation)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its features, but for the one that marks missing values."""
        return (self.name, *(label for basis in self.curves for label in basis.labels(self.name)))

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """The scaling of every feature; None for indicators and for unscaled numbers."""
        own = Scaling(self.center, self.scale, self.deviations)
        return (None if (self.center, self.scale) == (0.0, 1.0) else own, *super().scalings[1:])

    def read(self, values: pd.Series) -> pd.Series:
        """Return its cells as numbers."""
        return pd.Series(numbers_of(values, self.notation), index=values.index, name=self.name)

    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return the line and the curves."""
        numbers = values.to_numpy(dtype=np.float64)
        line = np.where(np.isnan(numbers), self.fill, (numbers - self.center) / self.scale)
        return [sp.csr_array(line[:, None]), *(basis(numbers) for basis in self.curves)]


@dataclass(frozen=True, kw_only=True)
class WordColumn(FeatureColumn):
    """A column of words: one feature of zeros and ones for each of its levels.

    Attributes
    ----------
    levels : tuple of str
        The words that have a feature; a single one for a column of yes and no.
    other_label : str
        The name of a further level that all other words share; empty if they have no feature.
    others : tuple of str
        The other words of the training rows.
    clean : bool
        Whether blanks around a word do not count.
    merged : mapping of str to str
        Other spellings of levels, in capitals or without.
    absent : tuple of str
        Words that stand for missing values.
    """

    kind = "word"
    levels: tuple[str, ...]
    other_label: str = ""
    others: tuple[str, ...] = ()
    clean: bool = False
    merged: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()

    @property
    def categories(self) -> tuple[str, ...]:
        """The levels, and that of all other words where there is one."""
        return (*self.levels, self.other_label) if self.other_label else self.levels

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the features, but for the one that marks missing values."""
        return tuple(f"{self.name}={_short(level)}" for level in self.categories)

    def read(self, values: pd.Series) -> pd.Series:
        """Return its cells as words."""
        if not self.clean:
            return typed_words(values)
        words = pd.Series(words_of(cleaned(values)), index=values.index, name=self.name, dtype=object)
        words = words.where(~words.isin(self.absent), None)
        spellings = dict(self.merged)
        for word in set(words.dropna()) - {*self.levels, *self.others, *spellings}:
            # Spelt in another way than ever before, as "<=50K." is.
            alike = (level for level in (*self.levels, *self.others) if _alike(level) == _alike(word))
            spellings[word] = next(alike, word)
        return words.replace(spellings) if spellings else words

    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return an indicator of every level."""
        words = words_of(values)
        codes = pd.Index(self.levels, dtype=object).get_indexer(pd.Index(words, dtype=object))
        if self.other_label:
            codes[(codes < 0) & pd.notna(words)] = len(self.levels)
        known = np.flatnonzero(codes >= 0)
        shape = len(values), len(self.categories)
        return [sp.csr_array((np.ones(len(known)), (known, codes[known])), shape=shape)]

    def unseen(self, values: pd.Series) -> dict[str, int]:
        """Return the words, by `read`, that were in no training row, with their counts."""
        known = {*self.levels, *self.others, None}
        return {word: n for word, n in Counter(words_of(values)).items() if word not in known}


def _alike(word: str) -> str:
    return word.casefold().strip().rstrip(".")


@dataclass(frozen=True, kw_only=True)
class TextColumn(FeatureColumn):
    """A column of texts: one feature of zeros and ones for each of its words.

    Attributes
    ----------
    words : tuple of str
        The words, in lower case and by letters.
    """

    kind = "text"
    words: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the features, but for the one that marks missing values."""
        return tuple(f"{self.name}:{_short(word)}" for word in self.words)

    def read(self, values: pd.Series) -> pd.Series:
        """Return its cells as texts."""
        return pd.Series(words_of(values), index=values.index, name=self.name, dtype=object)

    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return an indicator of every word; a missing text has none."""
        counter = CountVectorizer(vocabulary=self.words, binary=True, dtype=np.float64)
        return [sp.csr_array(counter.transform(values.fillna("")))]


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"


# --------------------------------------------------------------------------------------------- learned


def learn_numbers(known: np.ndarray, scaling: ScalingKind, **about: Any) -> NumberColumn | None:
    """Return a column of numbers, None where all are equal.

    Parameters
    ----------
    known : (N,) ndarray
        Its known values.
    scaling : {"standard", "range", "none"}
        See `SCALINGS`.
    **about
        Its name and other fields.
    """
    if np.ptp(known) == 0:
        return None
    scaler = StandardScaler().fit(known[:, None])
    mean = float(scaler.mean_[0])
    if scaling == "standard":
        return NumberColumn(center=mean, scale=float(scaler.scale_[0]), **about)
    center, scale = (float(known.min()), float(np.ptp(known))) if scaling == "range" else (0.0, 1.0)
    return NumberColumn(center=center, scale=scale, fill=(mean - center) / scale, deviations=False, **about)


def learn_words(known: pd.Series, single: bool, rare: int, most: int, **about: Any) -> WordColumn | None:
    """Return a column of words, None where it would have a single level.

    Parameters
    ----------
    known : Series
        Its known words, as read.
    single : bool
        Whether of two words only that for yes gets a feature.
    rare, most : int
        Words in fewer rows, and words beyond so many levels, share a level.
    **about
        Its name and other fields.
    """
    different = levels_of(known, by_number=about.get("clean", False))
    if single and len(different) == 2:
        # Without a word for yes, the alphabetically later one.
        yes = next((level for level in different if level.strip().lower() in _YES), max(different))
        return WordColumn(levels=(yes,), others=tuple(word for word in different if word != yes), **about)
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
    if len(levels) + bool(other_label) + (about["missing"] == "mark") < 2:
        return None
    return WordColumn(levels=levels, other_label=other_label, others=others, **about)


def learn_texts(known: pd.Series, rare: int, most: int, **about: Any) -> TextColumn | None:
    """Return a column of texts, None where no word is in enough of them; parameters as of `learn_words`."""
    counter = CountVectorizer(binary=True, min_df=max(rare, _FEWEST_TEXTS), max_features=most)
    try:
        words = counter.fit(known).get_feature_names_out()
    except ValueError:  # No word is in so many texts.
        return None
    return TextColumn(words=tuple(map(str, words)), **about)


def column_from_dict(data: Mapping[str, Any]) -> FeatureColumn:
    """Return the column of a dictionary by `FeatureColumn.to_dict`, or of a model of commit 2c2cf81."""
    values = dict(data)
    if "rest" in values:  # The name of the other level in those models.
        values["other_label"] = values.pop("rest")
    kinds: dict[str, type[FeatureColumn]] = {
        "levels": WordColumn,
        "words": TextColumn,
        "center": NumberColumn,
    }
    kind = next(kind for key, kind in kinds.items() if key in values)
    if "curves" in values:
        values["curves"] = tuple(Basis(basis["degree"], tuple(basis["knots"])) for basis in values["curves"])
    if "notation" in values:
        values["notation"] = Notation(**{**values["notation"], "habits": tuple(values["notation"]["habits"])})
    known = {name: values[name] for name in values.keys() & {attribute.name for attribute in fields(kind)}}
    about: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    return kind(**about)
