"""Main effects and pairwise effects of the columns of a table in a machine."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit, logit

from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.interpretation.wording import number
from fmviz.tables.cells import quoted
from fmviz.tables.columns import FeatureColumn, NumberColumn, TextColumn, WordColumn
from fmviz.typography import cell

_MOST_ROWS = 2_000
# Maximum number of stored v_A over rows, samples and columns.
_MOST_NUMBERS = 4e7
_FEWEST_SAMPLED = 300
# Maximum number of columns whose pairs are described: those with the largest part in pairs.
_MOST_PAIRED = 150
_POINTS = 60
_RANGES = 10
_VALUES = 31
_LEVELS = 40
# Cells of two columns need some rows: limits on the ranges and levels of each, and the rows of a cell.
_RANGES_OF_CODES, _CODED, _RANGE_ROWS = (3, 8), 12, 10
# Maximum number of levels drawn as curves; more become rows of a heatmap.
_CURVES = 6
# Minimum rows of a cell in a sentence.
_FEWEST_ROWS = 5
# Neighbours of the largest cell join its sentence from this share of its effect.
_ALIKE = 0.5
_NAMED = 6
# Maximum number of levels in a negated condition.
_EXCLUDED = 3
_WORKING, _WEEKEND = {"Mon", "Tue", "Wed", "Thu", "Fri"}, {"Sat", "Sun"}
_PREPOSITIONS = {"year": "in", "month": "in", "weekday": "on", "hour": "at", "trend": "on"}
_EPOCH = pd.Timestamp("2000-01-01")
_CALENDARS = [
    {name.casefold(): place for names in both for place, name in enumerate(names) if name}
    for both in ((calendar.day_name, calendar.day_abbr), (calendar.month_name, calendar.month_abbr))
]
# Both minus one minus the other plus neither.
_DOUBLE = np.array([1.0, -1.0, -1.0, 1.0])


def as_posterior(parameters: Parameters, binary: bool) -> Posterior:
    """Return the parameters of a machine of order 2 as a single sample."""
    return Posterior(parameters.P[None], parameters.w[None], np.array([float(parameters.intercept)]), binary)


@dataclass(frozen=True, eq=False)
class Axis:
    """Levels of a column, or ranges of its numbers, in order.

    Attributes
    ----------
    column : FeatureColumn
        The column.
    members : (n, m) CSR array
        1 if a row belongs to a level or range: none for missing values, several for texts.
    labels : tuple of str
        A label for each level or range.
    ends : (m, 2) ndarray or None
        The smallest and largest number of each range; None for levels.
    """

    column: FeatureColumn
    members: sp.csr_array
    labels: tuple[str, ...]
    ends: np.ndarray | None

    def alike(self, effects: np.ndarray, at: int) -> list[int]:
        """Return the indices with effects similar to that at `at`; for numbers, contiguous ones."""
        if isinstance(self.column, TextColumn):
            # A row can have several words.
            return [at]
        good = np.sign(effects[at]) * np.nan_to_num(effects) >= _ALIKE * abs(effects[at])
        if self.ends is not None:
            # Indices contiguous with `at`.
            others = np.cumsum(~good)
            good &= others == others[at]
        return np.flatnonzero(good).tolist()

    def rows_of(self, places: Sequence[int]) -> np.ndarray:
        """Return the mask of the rows that belong to one of the levels or ranges."""
        return np.asarray(self.members[:, list(places)].sum(axis=1)).ravel() > 0

    def where(self, places: Sequence[int]) -> str:
        """Return the condition that a value belongs to one of the levels or ranges."""
        name, part = self.column.name, _part(self.column)
        if self.ends is None:
            words = [self.labels[place] for place in places]
            text = isinstance(self.column, TextColumn)
            return f"{name} has {quoted(words)}" if text else _of_words(name, part, words, self.labels)
        low, high = (
            shown_value(self.column, end) for end in (self.ends[places[0], 0], self.ends[places[-1], 1])
        )
        between = f"between {low} and {high}"
        if part:
            span = between if low != high else f"{_PREPOSITIONS[part]} {low}"
            return span + " o'clock" * (part == "hour")
        if low == high:
            return f"{name} is {low}"
        if places[0] == 0:
            return f"{name} is at most {high}"
        return f"{name} is at least {low}" if places[-1] == len(self.ends) - 1 else f"{name} is {between}"


@dataclass(frozen=True, eq=False)
class Surface:
    """The effect of a pair of columns by levels and ranges.

    Attributes
    ----------
    first, second : Axis
        The two columns.
    effect : (m, n) ndarray
        Mean over the rows of each cell; NaN for empty cells.
    rows : (m, n) int ndarray
        Number of rows of each cell.
    curves : DataFrame or None
        For a number and few levels, a curve per level, indexed by the number.
    """

    first: Axis
    second: Axis
    effect: np.ndarray
    rows: np.ndarray
    curves: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class Contrast:
    """The double difference of a pair of columns.

    Attributes
    ----------
    first, second : Axis
        The two columns.
    of_first, of_second : list of int
        The levels U and V.
    effect : float
        f(U, V) − f(U, not V) − f(not U, V) + f(not U, not V).
    interval : tuple of float
        The central interval of probability 0.95 over the samples; empty for a single one.
    means : (4,) ndarray
        f for both U and V, for U only, for V only, and for neither.
    counted : (4,) ndarray
        The same of the targets of these rows; NaN without rows or targets.
    rows : int
        The number of rows with both.
    accuracy : float
        The root of the product of the variances of both indicators.
    """

    first: Axis
    second: Axis
    of_first: list[int]
    of_second: list[int]
    effect: float
    interval: tuple[float, ...]
    means: np.ndarray
    counted: np.ndarray
    rows: int
    accuracy: float

    @property
    def of_counted(self) -> float:
        """The double difference of the counted means."""
        return float(self.counted @ _DOUBLE)


@dataclass(frozen=True, eq=False)
class Effects:
    """The decomposition of f by columns, exact for every sample: f = c + Σ_A h_A + Σ_{A<B} g_AB.

    With v_A = Σ_j p_j x_j over the features of column A, and m_A its mean over typical rows, g_AB is
    ⟨v_A − m_A, v_B − m_B⟩, and h_A is the part that depends only on A, minus its mean.

    Attributes
    ----------
    posterior : Posterior
        Samples of a machine, or a single sample.
    X : (N, d) ndarray or CSR array
        Typical rows, the training rows.
    columns : tuple of FeatureColumn
        The columns encoded in X.
    scale : float
        Factor from f to the unit of the target, or to the log-odds of two classes.
    unit : str
        The unit of effects.
    center : float
        The target, in this unit, at f = 0.
    y : (N,) ndarray or None
        The targets of the rows, in this unit, or 0 and 1 for log-odds.
    """

    posterior: Posterior
    X: np.ndarray | sp.csr_array
    columns: tuple[FeatureColumn, ...]
    scale: float = 1.0
    unit: str = ""
    center: float = 0.0
    y: np.ndarray | None = None

    @cached_property
    def sample(self) -> np.ndarray:
        """The indices of rows that suffice to estimate sizes of effects."""
        samples, _, k = self.posterior.P.shape
        most = max(_FEWEST_SAMPLED, int(_MOST_NUMBERS / max(1, samples * k * len(self.columns))))
        return np.sort(np.random.default_rng(0).permutation(self.X.shape[0])[: min(_MOST_ROWS, most)])

    @cached_property
    def rows(self) -> sp.csc_array:
        """These rows."""
        return sp.csc_array(sp.csr_array(self.X)[self.sample])

    @property
    def log_odds(self) -> bool:
        """Whether effects are log-odds."""
        return self.unit.startswith("log-odds")

    @cached_property
    def members(self) -> tuple[slice, ...]:
        """The features of each column."""
        ends = np.cumsum([0, *(len(column.feature_names) for column in self.columns)]).tolist()
        return tuple(map(slice, ends, ends[1:]))

    @cached_property
    def _means(self) -> np.ndarray:
        """m_A of every sample, shape (S, columns, k)."""
        share = np.asarray(self.rows.mean(axis=0)).ravel()
        P = self.posterior.P
        return np.stack([np.einsum("j,sjk->sk", share[j], P[:, j]) for j in self.members], axis=1)

    @cached_property
    def _alone_means(self) -> np.ndarray:
        """Means over the rows of the single-column parts, shape (S, columns)."""
        alone = (self._alone(a, self._block(a)).mean(axis=1) for a in range(len(self.columns)))
        return np.stack(list(alone), axis=1)

    def _block(self, column: int, X: Any = None) -> sp.csr_array:
        """Return the features of a column, for the stored rows or for other rows."""
        return sp.csr_array((self.rows if X is None else sp.csc_array(X))[:, self.members[column]])

    def _centered(self, column: int, block: sp.csr_array) -> np.ndarray:
        """Return v_A − m_A of every sample, shape (n, S, k)."""
        return self._sums(column, block) - self._means[:, column]

    def _sums(self, column: int, block: sp.csr_array) -> np.ndarray:
        """Return v_A of every sample, shape (n, S, k)."""
        P = self.posterior.P[:, self.members[column]]
        samples, width, k = P.shape
        return np.asarray(block @ P.transpose(1, 0, 2).reshape(width, samples * k)).reshape(-1, samples, k)

    def _alone(self, column: int, block: sp.csr_array) -> np.ndarray:
        j = self.members[column]
        P, w = self.posterior.P[:, j], self.posterior.w[:, j]
        v = self._sums(column, block)
        others = self._means.sum(axis=1) - self._means[:, column]
        inner = 0.5 * (np.square(v).sum(axis=2) - block.power(2) @ np.square(P).sum(axis=2).T)
        return np.asarray((block @ w.T + inner + (v * others).sum(axis=2)).T)

    def main(self, column: int, block: sp.csr_array) -> np.ndarray:
        """Return h_A of every sample, shape (S, n), for features of column A, shape (n, width)."""
        return np.asarray(self.scale * (self._alone(column, block) - self._alone_means[:, column, None]))

    def pair(self, a: int, b: int, of_a: sp.csr_array, of_b: sp.csr_array) -> np.ndarray:
        """Return the mean of g_AB over the samples, shape (n,), for features of the columns A and B."""
        return self.scale * self._product(self._centered(a, of_a), self._centered(b, of_b))

    def contribution(self, columns: Sequence[int]) -> np.ndarray:
        """Return the effect of a column or a pair in every row of `X`, the mean over the samples."""
        blocks = [self._block(column, self.X) for column in columns]
        return self.pair(*columns, *blocks) if len(columns) > 1 else self.main(*columns, *blocks).mean(axis=0)

    def _product(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the mean over the samples of ⟨v_A − m_A, v_B − m_B⟩, shape (n,)."""
        return np.asarray(np.einsum("nsk,nsk->n", first, second) / len(self.posterior.P))

    # ---------------------------------------------------------------------------------------- rankings

    @cached_property
    def _main_effects(self) -> list[np.ndarray]:
        """The mean effect of each column in the stored rows, over the samples."""
        return [self.main(a, self._block(a)).mean(axis=0) for a in range(len(self.columns))]

    @cached_property
    def mains(self) -> pd.DataFrame:
        """The columns by descending ``size``, the deviation of the main effect over the rows."""
        sizes = [effect.std() for effect in self._main_effects]
        names = [column.name for column in self.columns]
        table = pd.DataFrame({"column": range(len(names)), "name": names, "size": sizes})
        return table.sort_values("size", ascending=False, ignore_index=True)

    @cached_property
    def coupled(self) -> list[int]:
        """All columns by how much they take part in pairs: the mean of ‖v_A − m_A‖², the largest first."""
        sizes = [np.square(self._centered(a, self._block(a))).mean() for a in range(len(self.columns))]
        return np.argsort(-np.array(sizes), kind="stable").tolist()

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The pairs of columns by descending ``size``, the deviation of g_AB over the rows."""
        parts = {a: self._centered(a, self._block(a)) for a in sorted(self.coupled[:_MOST_PAIRED])}
        records = []
        for a, b in combinations(parts, 2):
            names = self.columns[a].name, self.columns[b].name
            records.append((a, b, *names, self.scale * float(self._product(parts[a], parts[b]).std())))
        table = pd.DataFrame(records, columns=["a", "b", "first", "second", "size"])
        return table.sort_values("size", ascending=False, ignore_index=True)

    @property
    def matrix(self) -> np.ndarray:
        """The sizes of `pairs` as a symmetric matrix with zero diagonal."""
        sizes = np.zeros((len(self.columns),) * 2)
        sizes[self.pairs["a"], self.pairs["b"]] = self.pairs["size"]
        return sizes + sizes.T

    # ------------------------------------------------------------------------------------------ values

    def codes(self, column: int) -> np.ndarray:
        """Return the level of a column, or the range of its numbers, in every row of `X`, shape (N,).

        Ranges are quantiles, fewer for few rows; rare levels share a code.
        """
        values = self._values(column, self._block(column, self.X))
        if isinstance(self.columns[column], NumberColumn) and values.nunique() > (
            ranges := int(np.clip(np.sqrt(values.size / _RANGE_ROWS), *_RANGES_OF_CODES))
        ):
            return pd.qcut(values, ranges, labels=False, duplicates="drop").fillna(ranges).to_numpy(int)
        frequent = values.value_counts().index[:_CODED]
        codes = pd.Index(frequent).get_indexer(pd.Index(values))
        return np.where(codes < 0, frequent.size, codes)

    def _values(self, column: int, block: sp.csr_array) -> pd.Series:
        """Return the original values of a column; NaN or None if missing."""
        own = self.columns[column]
        marked = (block[:, [block.shape[1] - 1]].toarray().ravel() == 1.0) & (own.missing == "mark")
        if isinstance(own, NumberColumn):
            values = own.center + own.scale * block[:, [0]].toarray().ravel()
            # Rounded if the encoding was inexact.
            return pd.Series(np.where(marked, np.nan, np.round(values, 12)))
        labels = own.categories if isinstance(own, WordColumn) else own.labels
        words = np.array([*labels, None], dtype=object)
        if isinstance(own, WordColumn) and len(labels) == 1 and own.others:
            words[-1] = own.others[0]
        known = block[:, : len(labels)]
        place = np.where(known.sum(axis=1) > 0, np.asarray(known.argmax(axis=1)).ravel(), len(labels))
        return pd.Series(words[place], dtype=object).where(~marked, None)

    def curve(self, column: int, level: float = 0.9) -> pd.DataFrame:
        """Return a main effect: ``value``, ``effect``, ``lower``, ``upper`` and ``rows``.

        Numbers have points between their 1 and 99 % quantiles, levels one point each. ``lower`` and ``upper``
        are the ends of the central interval of probability `level` over the samples.
        """
        block = self._block(column)
        if isinstance(self.columns[column], NumberColumn):
            values = self._values(column, block).dropna()
            points = _points(values)
            rows = np.histogram(values, np.r_[-np.inf, (points[1:] + points[:-1]) / 2, np.inf])[0]
            effects = self.main(column, self._at(column, points))
        else:
            axis = self.axis(column)
            points, rows = np.array(axis.labels, dtype=object), np.asarray(axis.members.sum(axis=0)).ravel()
            effects = np.asarray(self.main(column, block) @ axis.members) / rows
        lower, upper = np.quantile(effects, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return pd.DataFrame(
            {"value": points, "effect": effects.mean(axis=0), "lower": lower, "upper": upper, "rows": rows}
        )

    def _at(self, column: int, values: np.ndarray) -> sp.csr_array:
        """Return the encoded features of some values of a column."""
        return sp.csr_array(sp.hstack(self.columns[column].features(pd.Series(values)), format="csr"))

    def axis(self, column: int) -> Axis:
        """Return the levels of a column in the rows, or ranges of its numbers; of a text, frequent words."""
        own, block = self.columns[column], self._block(column)
        if isinstance(own, TextColumn):
            counts = np.asarray(block[:, : len(own.labels)].sum(axis=0)).ravel()
            frequent = np.sort(np.argsort(-counts, kind="stable")[:_LEVELS])
            places = frequent[counts[frequent] > 0]
            return Axis(own, sp.csr_array(block[:, places]), tuple(own.words[at] for at in places), None)
        values = self._values(column, block)
        if isinstance(own, WordColumn):
            levels = _levels(own, values)
            codes = pd.Index(levels).get_indexer(pd.Index(values))
            # Months and weekdays without their numbers.
            dated = _part(own) in ("month", "weekday")
            labels = tuple(word.partition("-")[2] if dated else word for word in levels)
            return Axis(own, _members(codes, len(labels)), labels, None)
        different = np.sort(values.dropna().unique())
        codes = pd.Index(different).get_indexer(pd.Index(values))
        if len(different) > _VALUES:
            codes = pd.qcut(values, _RANGES, labels=False, duplicates="drop").fillna(-1).to_numpy(int)
        ends = values[codes >= 0].groupby(codes[codes >= 0]).agg(["min", "max"]).to_numpy()
        shown = [[shown_value(own, value) for value in pair] for pair in ends]
        labels = tuple(a if a == b else f"{a} to {b}" for a, b in shown)
        return Axis(own, _members(codes, len(labels)), labels, ends)

    def surface(self, a: int, b: int) -> Surface:
        """Return the effect of a pair of columns by levels and ranges, with curves for few levels."""
        first, second = self.axis(a), self.axis(b)
        effect = self.pair(a, b, self._block(a), self._block(b))
        rows = (first.members.T @ second.members).toarray().astype(int)
        sums = (first.members.T @ second.members.multiply(effect[:, None])).toarray()
        means = np.where(rows > 0, sums / np.maximum(rows, 1), np.nan)
        curves = None
        if (first.ends is None) != (second.ends is None):
            word, line, words = (a, b, first) if first.ends is None else (b, a, second)
            if len(words.labels) <= _CURVES and not isinstance(words.column, TextColumn):
                curves = self._curves(word, line, words)
        return Surface(first, second, means, rows, curves)

    def _curves(self, word: int, line: int, words: Axis) -> pd.DataFrame:
        """Return a curve over a number for each level, within the range of its numbers."""
        block, values = self._block(word), self._values(line, self._block(line))
        points = _points(values.dropna())
        at, curves = self._at(line, points), {}
        for place, label in enumerate(words.labels):
            rows = np.flatnonzero(words.rows_of([place]))
            effect = self.pair(word, line, block[np.repeat(rows[:1], len(points))], at)
            inside = (points >= values[rows].min()) & (points <= values[rows].max())
            curves[label] = np.where(inside, effect, np.nan)
        return pd.DataFrame(curves, index=points)

    # --------------------------------------------------------------------------------------- sentences

    def main_sentence(self, column: int) -> str:
        """Return a sentence on the maximum and minimum of a main effect."""
        curve, own = self.curve(column), self.columns[column]
        spoken = curve[curve["rows"] >= min(_FEWEST_ROWS, curve["rows"].max())]
        high, low = spoken.loc[spoken["effect"].idxmax()], spoken.loc[spoken["effect"].idxmin()]
        ends = (
            f"{self._signed(end['effect'])}{self._chance(end['effect'])} {_at_value(own, end['value'])}"
            for end in (high, low)
        )
        return f"{own.name}: {', '.join(ends)}."

    def pair_sentence(self, a: int, b: int) -> str:
        """Return a sentence on the levels and ranges with the largest joint effect of a pair of columns."""
        return self.sentence_of(self.contrast(a, b))

    def sentence_of(self, contrast: Contrast) -> str:
        """Return a sentence on a double difference."""
        axes = (contrast.first, contrast.of_first), (contrast.second, contrast.of_second)
        # Parts of dates need prepositions: at 7 o'clock, in May.
        words = [axis.where(places) for axis, places in axes if axis.column.part_of]
        named = [axis.where(places) for axis, places in axes if not axis.column.part_of]
        text = " ".join([*words, *([f"where {' and '.join(named)}"] if named else [])])
        # Zeros up to rounding.
        unit = 1e-9 * max(abs(contrast.effect), *np.abs(contrast.means)) or 1.0
        shown = [self._level(round(mean / unit) * unit) for mean in contrast.means]
        within = ["95 %: " + " to ".join(number(end) for end in contrast.interval)] * bool(contrast.interval)
        within.append("both {}, first only {}, second only {}, neither {}".format(*shown))
        low, high = contrast.interval or (contrast.effect,) * 2
        counted, counted_words = contrast.of_counted, number(contrast.of_counted)
        if (counted < low or counted > high) and counted_words != number(contrast.effect):
            within.append(f"counted means give {counted_words}")
        within.append(f"{number(100 * contrast.rows / self.rows.shape[0])} % of rows")
        text = f"{text[:1].upper()}{text[1:]}: {self._signed(contrast.effect)} beyond both alone"
        return f"{text} ({'; '.join(within)})."

    def contrast(self, a: int, b: int) -> Contrast:
        """Return the double difference of a pair of columns that is largest beside its accuracy.

        With others at their average, it is f(U, V) − f(U, not V) − f(not U, V) + f(not U, not V) for levels U
        and V of the columns, where levels of "not" are weighted by their rows, alike in both terms. It does
        not depend on the coding of levels or on effects of single columns.
        """
        axes, sums = (self.axis(a), self.axis(b)), [self._centered(j, self._block(j)) for j in (a, b)]
        each = [
            np.stack([self._difference(axis, [place], own) for place in range(len(axis.labels))])
            for axis, own in zip(axes, sums, strict=True)
        ]
        effect = self.scale * np.einsum("usk,vsk->uv", *each) / len(self.posterior.P)
        rows = (axes[0].members.T @ axes[1].members).toarray()
        shares = [np.asarray(axis.members.mean(axis=0)).ravel() for axis in axes]
        accuracy = np.sqrt(np.outer(*(share * (1.0 - share) for share in shares)))
        # Of two levels each, all double differences are equal but for their sign.
        size = (
            np.abs(effect) * accuracy * (rows >= min(_FEWEST_ROWS, rows.max())) * (1.0 + 1e-6 * (effect > 0))
        )
        i, j = map(int, np.unravel_index(np.argmax(size), size.shape))
        alike = axes[0].alike(effect[:, j], i), axes[1].alike(effect[i], j)
        tried = [
            self._contrast(axes, of, sums) for of in (([i], [j]), (alike[0], [j]), ([i], alike[1]), alike)
        ]
        return max(tried, key=lambda contrast: abs(contrast.effect) * contrast.accuracy)

    def _contrast(
        self, axes: tuple[Axis, Axis], places: tuple[list[int], list[int]], sums: list[np.ndarray]
    ) -> Contrast:
        masks = [axis.rows_of(of) for axis, of in zip(axes, places, strict=True)]
        if any(mask.all() for mask in masks):
            return Contrast(*axes, *places, 0.0, (), np.zeros(4), np.full(4, np.nan), 0, 0.0)
        inside = [np.stack([mask, ~mask]).astype(float) for mask in masks]
        means = [own / own.sum(axis=1, keepdims=True) for own in inside]
        v = [np.einsum("in,nsk->isk", *each) for each in zip(means, sums, strict=True)]
        samples = self.scale * np.einsum("sk,sk->s", *(own[0] - own[1] for own in v))
        interval = np.quantile(samples, (0.025, 0.975)).tolist() if samples.size > 1 else ()
        joint = self.scale * np.einsum("usk,vsk->uv", *v) / samples.size
        mains = [
            own @ self._main_effects[self.columns.index(axis.column)]
            for own, axis in zip(means, axes, strict=True)
        ]
        levels = self.constant + mains[0][:, None] + mains[1] + joint
        rows = inside[0] @ inside[1].T
        return Contrast(
            *axes,
            *places,
            float(samples.mean()),
            tuple(interval),
            levels.ravel(),
            self._counted(inside[0], inside[1], rows).ravel(),
            int(rows[0, 0]),
            float(np.sqrt(np.prod([mask.mean() * (1.0 - mask.mean()) for mask in masks]))),
        )

    def _counted(self, first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the mean of the targets of the rows in each cell; NaN without rows or targets."""
        sums = np.nan * rows if self.y is None else (first * self.y[self.sample]) @ second.T
        sums = np.where(rows > 0, sums, np.nan)
        # A pseudo-row of each class: log-odds stay finite.
        return logit((sums + 0.5) / (rows + 1.0)) if self.log_odds else sums / np.maximum(rows, 1.0)

    def _difference(self, axis: Axis, places: Sequence[int], sums: np.ndarray) -> np.ndarray:
        """Return the mean of v_A over the rows of some levels minus that over the others, shape (S, k)."""
        inside = axis.rows_of(places)
        if inside.all() or not inside.any():
            return np.zeros(sums.shape[1:])
        return np.asarray(sums[inside].mean(axis=0) - sums[~inside].mean(axis=0))

    @cached_property
    def constant(self) -> float:
        """The value of f with all columns at their average."""
        means = self._means
        products = 0.5 * (np.square(means.sum(axis=1)) - np.square(means).sum(axis=1)).sum(axis=1)
        return self.center + self.scale * float(
            (self.posterior.intercept + self._alone_means.sum(axis=1) - products).mean()
        )

    @cached_property
    def shrinkage(self) -> float:
        """The share by which the effects of pairs are too small for the targets of the rows.

        1 − Σ g² / Σ g (y − f + g) with g = Σ g_AB; NaN without targets, or for log-odds.
        """
        if self.y is None or self.log_odds:
            return float("nan")
        f = self.center + self.scale * self.posterior.scores(self.rows)
        joint = f - self.constant - np.sum(self._main_effects, axis=0)
        return float(1.0 - joint @ joint / (joint @ (self.y[self.sample] - f + joint) or np.nan))

    def _level(self, mean: float) -> str:
        """Return a value of f as text: a chance for log-odds."""
        if not self.log_odds:
            return number(mean)
        percent = 100 * float(expit(mean))
        return "under 0.1 %" if percent < 0.1 else "over 99.9 %" if percent > 99.9 else f"{number(percent)} %"

    def _chance(self, effect: float) -> str:
        """Return the chance with all other columns at their average, in parentheses; "" for numbers."""
        return f" ({self._level(self.constant + effect)})" * self.log_odds

    def _signed(self, value: float) -> str:
        sign = "+" if value >= 0 else "−"
        return f"{sign}{number(abs(value))}{f' {self.unit}' if self.unit else ''}"


def _levels(column: WordColumn, words: pd.Series) -> list[str]:
    """Return the most frequent levels of a column, in its order; weekdays and months in that of the year."""
    kept = set(words.value_counts().index[:_LEVELS])
    levels = [word for word in (*column.categories, *column.others) if word in kept]
    for order in _CALENDARS:
        places = [order.get(word.strip().casefold()) for word in levels]
        if None not in places:
            return [levels[at] for at in np.argsort(np.array(places, dtype=int), kind="stable")]
    return levels


def _members(codes: np.ndarray, count: int) -> sp.csr_array:
    """Return the rows of each level, given the level of every row, or -1."""
    known = np.flatnonzero(codes >= 0)
    return sp.csr_array((np.ones(known.size), (known, codes[known])), (codes.size, count))


def _points(values: pd.Series) -> np.ndarray:
    different = np.unique(values)
    if len(different) <= _POINTS:
        return different
    return np.unique(np.quantile(values, np.linspace(0.01, 0.99, _POINTS)))


def _part(column: FeatureColumn) -> str:
    """Return the part of a date that a column contains, or ""."""
    return column.name.rpartition(".")[2] if column.part_of else ""


def shown_value(column: FeatureColumn, value: float) -> str:
    """Return a number as text, a date as a day."""
    if _part(column) == "trend":
        day = _EPOCH + pd.Timedelta(days=value)
        return f"{day.day} {day:%b %Y}"
    return f"{value:.3g}" if abs(value) < 1_000 else f"{value:.0f}" if abs(value) < 1e6 else cell(value)


def plotted(column: FeatureColumn, values: Any) -> Any:
    """Return numbers for display: trends in years."""
    return 2000 + values / 365.2425 if _part(column) == "trend" else values


def _at_value(column: FeatureColumn, value: float | str) -> str:
    part, shown = _part(column), value if isinstance(value, str) else shown_value(column, value)
    if part:
        return f"{_PREPOSITIONS[part]} {shown}" + " o'clock" * (part == "hour")
    return f"{'for' if isinstance(value, str) else 'at'} {shown}"


def _of_words(name: str, part: str, words: list[str], every: Sequence[str]) -> str:
    """Return the condition that a level is one of several, see `Axis.where`."""
    if part == "weekday" and set(words) in (_WORKING, _WEEKEND):
        return "on working days" if set(words) == _WORKING else "at weekends"
    others = [word for word in every if word not in words]
    negated = 0 < len(others) <= _EXCLUDED < len(words)
    shown = others if negated else words
    listed = ", ".join(shown[:_NAMED])
    if len(shown) > _NAMED:
        listed += f" or another of {len(shown)}"
    elif len(shown) > 1:
        listed = f"{', '.join(shown[:-1])} or {shown[-1]}"
    no = "not " if negated else ""
    return f"{no}{_PREPOSITIONS[part]} {listed}" if part else f"{name} is {no}{listed}"
