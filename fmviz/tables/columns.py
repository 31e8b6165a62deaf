"""Encoding of table columns as sparse blocks of features."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from annotated_types import Interval
from scipy.interpolate import BSpline
from sklearn.feature_extraction.text import CountVectorizer

from fmviz.checked import Distinct, Finite, Positive, checked
from fmviz.tables.cells import (
    NOTHING,
    PERHAPS,
    Notation,
    cleaned,
    is_error,
    is_number,
    levels_of,
    notation_of,
    numbers_of,
    quoted,
    shortened,
    without,
    words_of,
)
from fmviz.tables.limits import MOST_LEVELS
from fmviz.tables.scaling import Scaling
from fmviz.typography import counted

Missing = Literal["drop", "impute", "mark"]
MISSING: tuple[Missing, ...] = ("drop", "impute", "mark")
"""Drop rows with a missing value; impute the mean, or no level; or impute and add an indicator feature."""

ScalingKind = Literal["standard", "range", "none"]
SCALINGS: tuple[ScalingKind, ...] = ("standard", "range", "none")
"""Scale numbers to mean 0 and standard deviation 1, scale them to [0, 1], or leave them unscaled."""

OTHER = "(other)"
_MISSING = "(missing)"
_LONGEST = 100
# Words in fewer texts identify single rows.
_FEWEST_TEXTS = 5
_FEWEST_VALUES = 4
# The factor for the number of functions of the trend of dates, which captures changes from week to week.
_FINER = 3
# The factor on `size` up to which every value has its own function, such as 24 hours for a size of 20.
_SPARE = 1.6
YES = ("yes", "true", "1", "1.0", "y", "t", "on", "ja", "oui", "si", "sí", "positive", "present")
"""Words for yes."""
_NO = ("no", "false", "0", "0.0", "n", "f", "off", "nein", "non", "negative", "absent")


@dataclass(frozen=True)
class Basis:
    """Basis of functions of a number: at most two are non-zero at any value, and they sum to 1.

    Attributes
    ----------
    degree : {0, 1}
        0 for bins, 1 for hat functions (linear B-splines).
    knots : tuple of float
        The ends of the bins, or the peaks of the hats.
    size : int
        The requested number of functions; 0 if unknown.
    """

    degree: Annotated[int, Interval(ge=0, le=1)]
    knots: tuple[Finite, ...]
    size: Annotated[int, Interval(ge=0)] = 0

    def __post_init__(self) -> None:
        if len(self.knots) < 2 or any(low >= high for low, high in pairwise(self.knots)):
            raise ValueError(f"The knots of a basis must ascend: {self.knots[:5]}.")

    @property
    def width(self) -> int:
        """The number of functions."""
        return len(self.knots) + self.degree - 1

    @property
    def spec(self) -> tuple[int, int]:
        """The degree, and the requested number of functions."""
        return self.degree, self.size

    def labels(self, name: str) -> tuple[str, ...]:
        """Return a name for every function."""
        if self.degree:
            return tuple(f"{name}≈{knot:.4g}" for knot in self.knots)
        return tuple(f"{name}={low:.4g}…{high:.4g}" for low, high in pairwise(self.knots))

    def __call__(self, values: np.ndarray) -> sp.csr_array:
        """Evaluate the functions at some numbers, shape (N, width); numbers beyond the knots are clipped."""
        knots = np.array(self.knots)
        padded = np.r_[knots[0], knots, knots[-1]] if self.degree else knots
        inside = np.clip(np.nan_to_num(values), knots[0], knots[-1])
        # Within the knots, `extrapolate` only saves a check, which tables without rows do not pass.
        design = BSpline.design_matrix(inside, padded, self.degree, extrapolate=True)
        return sp.csr_array(design.multiply(~np.isnan(values)[:, None]))


def basis_of(values: np.ndarray, degree: int, size: int, finer: int = 1) -> Basis | None:
    """Return a basis with knots at quantiles, or at all values if there are few; None for three values.

    Parameters
    ----------
    values : (N,) ndarray
        The non-missing numbers.
    degree : {0, 1}
        Bins or hat functions.
    size, finer : int
        The maximum number of functions is their product.
    """
    different = np.unique(values)
    if len(different) < _FEWEST_VALUES:
        return None
    if len(different) > _SPARE * size * finer:
        knots = np.unique(np.quantile(values, np.linspace(0.0, 1.0, size * finer + 1 - degree)))
    else:
        middle = (different[1:] + different[:-1]) / 2
        knots = different if degree else np.r_[different[0], middle, different[-1]]
    return Basis(degree, tuple(knots.tolist()), size) if len(knots) > 2 else None


# Fewer different numbers are levels, such as a rating, without rare extremes.
_LEVELS = 20
_TAIL = 0.005


def ends_of(numbers: np.ndarray) -> tuple[float, float]:
    """Return the numbers at which lines end: the quantiles of 0.5 and 99.5 %, since what lies beyond is rare.

    Few rows or different numbers end at the smallest and the largest. A number in most rows, such as 0, is
    ignored, to keep the tail of the others.
    """
    different, counts = np.unique(numbers, return_counts=True)
    if different.size <= _LEVELS:
        return float(different[0]), float(different[-1])
    usual = different[2 * counts > numbers.size]
    others = numbers[~np.isin(numbers, usual)]
    low = np.quantile(others, _TAIL, method="lower")
    high = np.quantile(others, 1.0 - _TAIL, method="higher")
    return float(np.append(usual, low).min()), float(np.append(usual, high).max())


# --------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True, kw_only=True)
class FeatureColumn(ABC):
    """A table column, or a part of a date, with its fitted encoding.

    Attributes
    ----------
    name : str
        Its name.
    missing : {"drop", "impute", "mark"}
        See `MISSING`.
    part_of : str
        The date column of which it is a part; empty otherwise.
    split_from : str
        The column of two numbers or several answers of which it is one; empty otherwise.
    absent : tuple of str
        Words that stand for missing values.
    """

    kind: ClassVar[str]
    name: str
    missing: Missing = "drop"
    part_of: str = ""
    split_from: str = ""
    absent: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """The table column that it reads."""
        return self.part_of or self.split_from or self.name

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The names of its features, without the indicator of missing values."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all features."""
        return (*self.labels, f"{self.name}={_MISSING}") if self.missing == "mark" else self.labels

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """The scaling of every feature; None for indicators and for unscaled numbers."""
        return (None,) * len(self.feature_names)

    def suited(self, values: pd.Series, notes: list[str]) -> Self:
        """Return the column in the notation of other cells.

        A sentence on cells that are written in another way than in training is appended to `notes`.
        """
        return self

    @abstractmethod
    def read(self, values: pd.Series) -> pd.Series:
        """Return the cells as numbers or words; NaN or None if missing."""

    @abstractmethod
    def learn(self, known: pd.Series, scaling: str, rare: int = 1, most: int | None = None) -> Self | None:
        """Return the column fitted to known values from `read`; None if it has no features.

        Parameters
        ----------
        known : Series
            The values that are not missing.
        scaling : {"standard", "range", "none"}
            See `SCALINGS`.
        rare : int
            Words in fewer rows share a level.
        most : int, optional
            The maximum number of levels; other words share a level.
        """

    @abstractmethod
    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return the blocks of features of values from `read`, each of shape (N, ·)."""

    def in_bases(self, bases: Iterable[tuple[int, int]]) -> np.ndarray:
        """Return the mask of the features outside the curves, and of curves of given degrees and sizes."""
        return np.ones(len(self.feature_names), dtype=bool)

    def features(self, values: pd.Series) -> list[sp.csr_array]:
        """Return all features of values from `read`, including the indicator of missing values."""
        missing = sp.csr_array(values.isna().to_numpy(dtype=np.float64)[:, None])
        return [*self.blocks(values), *([missing] if self.missing == "mark" else [])]

    def to_dict(self) -> dict[str, Any]:
        """Return the column as a dictionary for JSON."""
        return {key: value for key, value in asdict(self).items() if value not in ("", (), {}, None)}


@dataclass(frozen=True, kw_only=True)
class NumberColumn(FeatureColumn):
    """A column of numbers: a straight line (value − center)/scale, and optional curves.

    Attributes
    ----------
    center, scale : float
        Mean and standard deviation, or minimum and range, or 0 and 1.
    fill : float
        The encoded value that replaces a missing one.
    deviations : bool
        Whether center and scale are the mean and the standard deviation.
    curves : tuple of Basis
        The bases of its curves.
    ends : tuple of float
        The numbers at which line and curves end; see `ends_of`. Empty without ends.
    seen : tuple of float
        The smallest and the largest number of the training rows; empty without ends.
    notation : Notation
        The number format.
    """

    kind = "number"
    center: Finite = 0.0
    scale: Positive = 1.0
    fill: Finite = 0.0
    deviations: bool = True
    curves: tuple[Basis, ...] = ()
    ends: tuple[Finite, ...] = ()
    seen: tuple[Finite, ...] = ()
    notation: Notation = field(default_factory=Notation)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its features, without the indicator of missing values."""
        return (self.name, *(label for basis in self.curves for label in basis.labels(self.name)))

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """The scaling of every feature; None for indicators and for unscaled numbers."""
        own = Scaling(self.center, self.scale, self.deviations)
        return (None if (self.center, self.scale) == (0.0, 1.0) else own, *super().scalings[1:])

    def read(self, values: pd.Series) -> pd.Series:
        """Return the cells as numbers."""
        numbers = numbers_of(without(values, self.absent), self.notation)
        return pd.Series(numbers, index=values.index, name=self.name)

    def suited(self, values: pd.Series, notes: list[str]) -> Self:
        """Return the column in the notation that reads most cells, see `FeatureColumn.suited`."""
        numbers = pd.to_numeric(values, errors="coerce")
        if is_number(values) or (numbers.notna() & self.read(values).notna()).all():
            return self
        cells = cleaned(without(values, (*NOTHING, *PERHAPS, *self.absent))).dropna()
        read = notation_of(cells, self.notation.decimal) or self.notation
        other = replace(self, notation=read)
        better = other.read(cells).notna().sum() > self.read(cells).notna().sum()
        if better or not {*read.habits.split()} <= {*self.notation.habits.split()}:
            odd = cells[~cells.isin([read.missing])].map(str)
            cell = max(odd[other.read(odd).notna()], key=lambda cell: re.search(r"^-?\d+$", cell) is None)
            unit = f"the unit {self.notation.unit!r}" if self.notation.unit else "no unit"
            units = f" In training, they had {unit}." * (read.unit != self.notation.unit)
            plain = f"Read as numbers with a decimal {read.decimal} ({cell!r})."
            notes.append(f"Column {self.name!r}: {read.sentence(cell) or plain}{units}")
        return other if better else self

    def learn(self, known: pd.Series, scaling: str, rare: int = 1, most: int | None = None) -> Self | None:
        """Return the column with its center and scale; None if all numbers are equal."""
        numbers = self._inside(known)
        width = np.ptp(numbers)
        if width == 0:
            return None
        center, scale = {
            "standard": (numbers.mean(), numbers.std() or width),
            "range": (numbers.min(), width),
            "none": (0.0, 1.0),
        }[scaling]
        fill = float((numbers.mean() - center) / scale)
        deviations = scaling == "standard"
        return replace(self, center=float(center), scale=float(scale), fill=fill, deviations=deviations)

    def with_ends(self, known: pd.Series) -> Self:
        """Return the column with the ends of these training values."""
        numbers = known.to_numpy(dtype=np.float64)
        return replace(self, ends=ends_of(numbers), seen=(float(numbers.min()), float(numbers.max())))

    def _inside(self, values: pd.Series) -> np.ndarray:
        """Return the numbers, cut at the ends."""
        numbers = values.to_numpy(dtype=np.float64)
        return np.clip(numbers, self.ends[0], self.ends[1]) if self.ends else numbers

    def beyond(self, values: pd.Series) -> str:
        """Return a sentence on numbers beyond those of the training rows; empty if there are none."""
        numbers, (least, most) = values.to_numpy(dtype=np.float64), self.seen or (-np.inf, np.inf)
        outside = numbers[(numbers < least) | (numbers > most)]
        if not outside.size:
            return ""
        far = max(outside, key=lambda number: max(number - most, least - number))
        seen = f"up to {most:,.7g}" if far > most else f"from {least:,.7g}"
        lie = "lies" if outside.size == 1 else "lie"
        return f"{counted(outside.size, 'row')} {lie} beyond what was seen: {self.name} {far:,.7g}, {seen}."

    def with_curves(self, values: pd.Series, bases: Iterable[tuple[int, int]]) -> Self:
        """Return the column with bases of given degrees and sizes, if it has enough values.

        The trend of dates has finer bases.
        """
        numbers, finer = self._inside(values.dropna()), _FINER if self.part_of else 1
        able = (basis_of(numbers, degree, size, finer) for degree, size in bases)
        return replace(self, curves=tuple(basis for basis in able if basis is not None))

    def in_bases(self, bases: Iterable[tuple[int, int]]) -> np.ndarray:
        """Return the mask of the features outside the curves, and of curves of given degrees and sizes."""
        curves = [basis.spec in bases for basis in self.curves for _ in range(basis.width)]
        return np.array([True, *curves, *[True] * (self.missing == "mark")])

    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return the line and the curves."""
        numbers = self._inside(values)
        line = np.where(np.isnan(numbers), self.fill, (numbers - self.center) / self.scale)
        return [sp.csr_array(line[:, None]), *(basis(numbers) for basis in self.curves)]


@dataclass(frozen=True, kw_only=True)
class WordColumn(FeatureColumn):
    """A column of words: a binary feature for each level.

    Attributes
    ----------
    levels : tuple of str
        The words with a feature; a single one for a yes/no column.
    other_label : str
        The name of the level shared by all other words; empty if they have no feature.
    others : tuple of str
        The other words of the training rows.
    single : bool
        Whether only one of two words, the one for yes, has a feature.
    merged : mapping of str to str
        Spellings of levels that differ in case.
    blank : str
        The level of missing values, if a column is either filled with the other level or blank.
    """

    kind = "word"
    levels: Distinct = ()
    other_label: str = ""
    others: tuple[str, ...] = ()
    single: bool = False
    merged: Mapping[str, str] = field(default_factory=dict)
    blank: str = ""

    @property
    def categories(self) -> tuple[str, ...]:
        """The levels, including that of all other words if there is one."""
        return (*self.levels, self.other_label) if self.other_label else self.levels

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the features, without the indicator of missing values."""
        return tuple(f"{self.name}={shortened(level, _LONGEST)}" for level in self.categories)

    def read(self, values: pd.Series) -> pd.Series:
        """Return the cells as words."""
        codes, different = pd.factorize(values)
        spelled, known = np.array([*different, None], dtype=object), {*self.levels, *self.others, None}
        # Levels stand for themselves.
        unseen = np.array([cell not in known for cell in spelled])
        words = pd.Series(words_of(cleaned(pd.Series(spelled[unseen], dtype=object))), dtype=object)
        spelled[unseen] = list(map(self._spellings(words).get, words))
        read = pd.Series(spelled[codes], index=values.index, name=self.name, dtype=object)
        return read.fillna(self.blank) if self.blank else read

    def suited(self, values: pd.Series, notes: list[str]) -> Self:
        """Return the column, with a sentence on words in another spelling, see `FeatureColumn.suited`."""
        known = {*self.levels, *self.others, *self.merged}
        unseen = [cell for cell in values.dropna().unique().astype(object) if cell not in known]
        spellings = self._spellings(
            pd.Series(words_of(cleaned(pd.Series(unseen, dtype=object))), dtype=object)
        )
        other = [f"{w!r} as {level!r}" for w, level in spellings.items() if level in known and w not in known]
        notes += [f"Column {self.name!r}: {quoted(other)}."] * bool(other)
        return self

    def _spellings(self, words: pd.Series) -> dict[str, Any]:
        """Return the level that each of some words stands for, None for a missing value."""
        known = dict.fromkeys([*self.levels, *self.others])
        unseen = [word for word in words.dropna().unique() if word not in known]
        # A spelling unseen in training, such as "<=50K.".
        alike = {_alike(word): word for word in reversed(known if unseen else ())}
        if self.single and {*alike} <= {*YES, *_NO}:
            # Another table may use true or 1 for yes.
            says = {word in YES: known for word, known in alike.items()}
            alike = {word: says[word in YES] for word in (*YES, *_NO) if (word in YES) in says} | alike
        if self.blank and known:
            # Whatever is filled in is the level, except a word for no.
            filled = next(level for level in known if level != self.blank)
            others = {_alike(word): filled for word in unseen}
            alike = others | dict.fromkeys(_NO, self.blank) | alike
        spellings: dict[str, Any] = {word: alike.get(_alike(word), word) for word in unseen}
        absent = [*filter(is_error, unseen), *self.absent]
        return {word: word for word in known} | spellings | dict(self.merged) | dict.fromkeys(absent)

    def in_order(self, known: pd.Series) -> list[str]:
        """Return the different words, in the order of `levels` if there is one."""
        different = levels_of(known)
        return sorted(different, key=self.levels.index) if {*different} <= {*self.levels} else different

    def learn(self, known: pd.Series, scaling: str, rare: int = 1, most: int | None = None) -> Self | None:
        """Return the column with its levels; None if there is only one."""
        return self.of_counts(Counter(words_of(known)), rare, most)

    def of_counts(self, counts: Counter[str], rare: int, most: int | None) -> Self | None:
        """Return the column like `learn`, from the number of rows of every word from `read`."""
        different = self.in_order(pd.Series([*counts], dtype=object))
        if self.single and len(different) == 2:
            # Without a word for yes, the last in the order, or the one that sorts last.
            usual = different[-1] if self.levels else max(set(different) - {self.blank})
            yes = next((level for level in different if level.strip().lower() in YES), usual)
            return replace(self, levels=(yes,), others=tuple(word for word in different if word != yes))
        # Ties are broken alphabetically, independently of the order of the rows.
        first = sorted(different, key=lambda word: -counts[word])[:most]
        kept = {word for word in first if counts[word] >= rare}
        # A shared level for a single word would only hide its name.
        if len(kept) == len(different) - 1:
            kept = set(different)
        levels, others = (tuple(w for w in different if (w in kept) is level) for level in (True, False))
        if len(levels) + bool(others) + (self.missing == "mark") < 2:
            return None
        return replace(self, levels=levels, other_label=OTHER if others else "", others=others)

    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return an indicator of every level."""
        codes, different = pd.factorize(values)
        places = pd.Index(self.levels, dtype=object).get_indexer(different)
        if self.other_label:
            places[places < 0] = len(self.levels)
        # The code -1 takes the last row, which is empty.
        indicators = sp.eye_array(len(self.categories) + 1, len(self.categories), format="csr")
        return [sp.csr_array(indicators[np.append(places, -1)[codes]])]

    def unseen(self, values: pd.Series) -> Counter[str]:
        """Return the words unseen in training, from `read`, with their counts."""
        known = {*self.levels, *self.others, None}
        return Counter(word for word in words_of(values) if word not in known)


def _alike(word: str) -> str:
    return re.sub(r"^(-?\d+)\.0+$", r"\1", word.casefold().strip()).rstrip(".")


@dataclass(frozen=True, kw_only=True)
class TextColumn(FeatureColumn):
    """A column of texts: a binary feature for each word.

    Attributes
    ----------
    words : tuple of str
        The words, in lower case and alphabetical order.
    """

    kind = "text"
    words: Distinct = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the features, without the indicator of missing values."""
        return tuple(f"{self.name}:{shortened(word, _LONGEST)}" for word in self.words)

    def read(self, values: pd.Series) -> pd.Series:
        """Return the cells as texts."""
        return pd.Series(words_of(values), index=values.index, name=self.name, dtype=object)

    def learn(self, known: pd.Series, scaling: str, rare: int = 1, most: int | None = None) -> Self | None:
        """Return the column with its words; None if no word is in enough texts."""
        most = most or MOST_LEVELS
        counter = CountVectorizer(binary=True, min_df=max(rare, _FEWEST_TEXTS), max_features=most)
        try:
            words = counter.fit(known).get_feature_names_out()
        except ValueError:  # No word is in enough texts.
            return None
        return replace(self, words=tuple(map(str, words)))

    def blocks(self, values: pd.Series) -> list[sp.csr_array]:
        """Return an indicator of every word, 0 for missing texts."""
        counter = CountVectorizer(vocabulary=self.words, binary=True, dtype=np.float64)
        return [sp.csr_array(counter.transform(values.fillna("")))]


def column_from_dict(data: Mapping[str, Any]) -> FeatureColumn:
    """Return the column from a dictionary of `FeatureColumn.to_dict`.

    Raises
    ------
    ValueError
        If the dictionary is invalid; the message names the field.
    """
    # Models of commit a8ed998a have two additional fields, of removed readers.
    notation = {name: value for name, value in data.get("notation", {}).items() if name != "strict"}
    values = {name: notation if name == "notation" else data[name] for name in data if name != "clean"}
    form = NumberColumn if "center" in values else TextColumn if "words" in values else WordColumn
    return checked(form, values)
