"""Read a machine by the columns of its table: main effects as curves, pairs of columns by what they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import ndtr

from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.typography import cell
from fmviz.tables.columns import FeatureColumn, NumberColumn, WordColumn

__all__ = ["Effects", "as_posterior"]

_MOST_ROWS = 2_000
_MOST_TESTED = 6_000
_POINTS = 60
_RANGES = 6
_LEVELS = 40
# Cells of fewer rows are not spoken of.
_FEWEST_ROWS = 5
_MOST_PAIRS = 30


def as_posterior(parameters: Parameters, binary: bool) -> Posterior:
    """Return the parameters of a machine of order 2 as a single sample."""
    return Posterior(parameters.P[None], parameters.w[None], np.array([float(parameters.intercept)]), binary)


@dataclass(frozen=True, eq=False)
class Effects:
    """The parts of f by columns, exact for every sample: f = c + Σ_A h_A + Σ_{A<B} g_AB.

    With v_A = Σ_j p_j x_j over the features of column A, and m_A its mean over typical rows, g_AB is
    ⟨v_A − m_A, v_B − m_B⟩, and h_A all that depends on A alone, less its mean.

    Attributes
    ----------
    posterior : Posterior
        Samples of a machine, or a single one.
    X : (N, d) ndarray or CSR array
        Typical rows: those that the machine was fitted to.
    columns : tuple of FeatureColumn
        The columns that X encodes.
    scale : float
        What f is multiplied by to be in the target's unit.
    """

    posterior: Posterior
    X: np.ndarray | sp.csr_array
    columns: tuple[FeatureColumn, ...]
    scale: float = 1.0

    @cached_property
    def rows(self) -> sp.csc_array:
        """Some of the rows, as many as tell sizes of effects well enough."""
        rows = sp.csr_array(self.X)
        n = rows.shape[0]
        if n > _MOST_ROWS:
            rows = rows[np.sort(np.random.default_rng(0).permutation(n)[:_MOST_ROWS])]
        return sp.csc_array(rows)

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
        """The means over the rows of what depends on one column alone, shape (S, columns)."""
        alone = (self._alone(a, self._block(a)).mean(axis=1) for a in range(len(self.columns)))
        return np.stack(list(alone), axis=1)

    def _block(self, column: int, X: Any = None) -> np.ndarray:
        """Return the features of a column, of the rows or of others, dense."""
        return np.asarray((self.rows if X is None else sp.csc_array(X))[:, self.members[column]].toarray())

    def _centered(self, column: int, block: np.ndarray) -> np.ndarray:
        """Return v_A − m_A of every sample, shape (n, S, k)."""
        return self._sums(column, block) - self._means[:, column]

    def _sums(self, column: int, block: np.ndarray) -> np.ndarray:
        """Return v_A of every sample, shape (n, S, k)."""
        P = self.posterior.P[:, self.members[column]]
        return np.tensordot(block.astype(P.dtype), P, axes=(1, 1))

    def _alone(self, column: int, block: np.ndarray) -> np.ndarray:
        j = self.members[column]
        P, w = self.posterior.P[:, j], self.posterior.w[:, j]
        v = self._sums(column, block)
        others = self._means.sum(axis=1) - self._means[:, column]
        inner = 0.5 * (np.square(v).sum(axis=2).T - np.square(P).sum(axis=2) @ np.square(block).T)
        return np.asarray(w @ block.T + inner + (v * others).sum(axis=2).T)

    def main(self, column: int, block: np.ndarray) -> np.ndarray:
        """Return h_A of every sample, shape (S, n), for features of column A, shape (n, width)."""
        return np.asarray(self.scale * (self._alone(column, block) - self._alone_means[:, column, None]))

    def pair(self, a: int, b: int, of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
        """Return the mean of g_AB over the samples, shape (n,), for features of the columns A and B."""
        return self.scale * self._product(self._centered(a, of_a), self._centered(b, of_b))

    def _product(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the mean over the samples of ⟨v_A − m_A, v_B − m_B⟩, shape (n,)."""
        return np.asarray(np.einsum("nsk,nsk->n", first, second) / len(self.posterior.P))

    # ---------------------------------------------------------------------------------------- rankings

    @cached_property
    def mains(self) -> pd.DataFrame:
        """A row for each column, the largest ``size`` of its main effect first: its deviation over the rows."""
        sizes = [self.main(a, self._block(a)).mean(axis=0).std() for a in range(len(self.columns))]
        names = [column.name for column in self.columns]
        table = pd.DataFrame({"column": range(len(names)), "name": names, "size": sizes})
        return table.sort_values("size", ascending=False, ignore_index=True)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """A row for each pair of columns, the largest ``size`` first: the deviation of g_AB over the rows."""
        parts = [self._centered(a, self._block(a)) for a in range(len(self.columns))]
        records = []
        for a, b in combinations(range(len(parts)), 2):
            names = self.columns[a].name, self.columns[b].name
            records.append((a, b, *names, self.scale * float(self._product(parts[a], parts[b]).std())))
        table = pd.DataFrame(records, columns=["a", "b", "first", "second", "size"])
        return table.sort_values("size", ascending=False, ignore_index=True)

    def enough(self, X: Any, y: np.ndarray) -> int:
        """Return the fewest of the largest pairs whose loss is within one standard error of the least.

        Parameters
        ----------
        X, y : (n, d) ndarray or CSR array, (n,) ndarray
            Rows that were kept out, in the scale that the machine was fitted to.
        """
        rows = slice(_MOST_TESTED)
        losses = [self._losses(y[rows], f) for f in self._truncated(sp.csc_array(X)[rows])]
        best = min(losses, key=np.mean)
        limit = best.mean() + best.std() / np.sqrt(len(best))
        return next(count for count, loss in enumerate(losses) if loss.mean() <= limit)

    def _truncated(self, X: sp.csc_array) -> Iterator[np.ndarray]:
        """Yield f with no pair of columns, with the largest one, with the two largest and so on."""
        constant = 0.0
        for a in range(len(self.columns)):
            constant += self._alone_means[:, a].mean()
        for a, b in combinations(range(len(self.columns)), 2):
            constant -= np.einsum("sk,sk->s", self._means[:, a], self._means[:, b]).mean()
        f = np.full(X.shape[0], constant + float(self.posterior.intercept.mean()))
        blocks = [self._block(a, X) for a in range(len(self.columns))]
        for a, block in enumerate(blocks):
            f = f + self.main(a, block).mean(axis=0) / self.scale
        yield f
        parts = [self._centered(a, block) for a, block in enumerate(blocks)]
        for a, b in self.pairs[["a", "b"]].head(_MOST_PAIRS).itertuples(index=False):
            f = f + self._product(parts[a], parts[b])
            yield f

    def _losses(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        if self.posterior.binary:
            return np.asarray(-np.log(np.clip(ndtr(y * f), 1e-9, 1.0)))
        return np.square(y - f)

    # ------------------------------------------------------------------------------------------ values

    def _values(self, column: int, block: np.ndarray) -> pd.Series:
        """Return the values of a column behind its features; NaN or None where one is missing."""
        own = self.columns[column]
        marked = block[:, -1] == 1.0 if own.missing == "mark" else np.zeros(len(block), dtype=bool)
        if isinstance(own, NumberColumn):
            return pd.Series(np.where(marked, np.nan, own.center + own.scale * block[:, 0]))
        labels = own.categories if isinstance(own, WordColumn) else own.labels
        width = len(labels)
        words = np.array([*labels, None], dtype=object)
        if isinstance(own, WordColumn) and width == 1 and own.others:
            words[-1] = own.others[0]
        place = np.where(block[:, :width].any(axis=1), block[:, :width].argmax(axis=1), width)
        return pd.Series(words[place], dtype=object).where(~marked, None)

    def curve(self, column: int, level: float = 0.9) -> pd.DataFrame:
        """Return a main effect: ``value``, ``effect``, ``lower`` and ``upper``, and the ``rows`` of each.

        Of a number there are points between its quantiles of 1 and 99 %; of words a point for each level.
        The ends are those of the central interval of probability `level` of the samples.
        """
        own, block = self.columns[column], self._block(column)
        if isinstance(own, NumberColumn):
            values = self._values(column, block).dropna()
            different = np.unique(values)
            points = (
                different
                if len(different) <= _POINTS
                else np.quantile(different, np.linspace(0.01, 0.99, _POINTS))
            )
            series = pd.Series(points, name=own.name)
            at = sp.hstack(own.features(series)).toarray()
            edges = np.r_[-np.inf, (points[1:] + points[:-1]) / 2, np.inf]
            rows = np.histogram(values, edges)[0]
        else:
            known = set(self._values(column, block).dropna())
            order = [*own.categories, *own.others] if isinstance(own, WordColumn) else [*own.labels]
            points = np.array([word for word in order if word in known][:_LEVELS], dtype=object)
            at = sp.hstack(own.features(pd.Series(points, dtype=object))).toarray()
            rows = self._values(column, block).value_counts().reindex(points).to_numpy()
        effects = self.main(column, at)
        lower, upper = np.quantile(effects, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return pd.DataFrame(
            {"value": points, "effect": effects.mean(axis=0), "lower": lower, "upper": upper, "rows": rows}
        )

    def _ranges(self, column: int, block: np.ndarray) -> pd.Series:
        """Return for every row the level of a column, or the range of its number, as words in order."""
        values = self._values(column, block)
        if not isinstance(self.columns[column], NumberColumn):
            return pd.Series(pd.Categorical(values, dict.fromkeys(values.value_counts().index[:_LEVELS])))
        if values.nunique() <= _RANGES:
            return pd.Series(
                pd.Categorical(
                    values.map(cell, na_action="ignore"), [cell(v) for v in sorted(values.dropna().unique())]
                )
            )
        cut = pd.qcut(values, _RANGES, duplicates="drop")
        ends = values.groupby(cut, observed=False).agg(["min", "max"])
        names = [
            cell(low) if low == high else f"{cell(low)} to {cell(high)}" for low, high in ends.to_numpy()
        ]
        return pd.Series(cut.cat.rename_categories(dict(zip(cut.cat.categories, names, strict=True))))

    def surface(self, a: int, b: int) -> pd.DataFrame:
        """Return a pair of columns by levels and ranges: ``first``, ``second``, mean ``effect``, ``rows``."""
        of_a, of_b = self._block(a), self._block(b)
        table = pd.DataFrame(
            {
                "first": self._ranges(a, of_a),
                "second": self._ranges(b, of_b),
                "effect": self.pair(a, b, of_a, of_b),
            }
        )
        cells = table.groupby(["first", "second"], observed=True)["effect"].agg(["mean", "size"])
        return cells.reset_index().rename(columns={"mean": "effect", "size": "rows"})

    # --------------------------------------------------------------------------------------- sentences

    def main_sentence(self, column: int, unit: str = "") -> str:
        """Return where a main effect is largest and least, in a sentence."""
        curve, name = self.curve(column), self.columns[column].name
        spoken = curve[curve["rows"] >= min(_FEWEST_ROWS, curve["rows"].max())]
        high, low = spoken.loc[spoken["effect"].idxmax()], spoken.loc[spoken["effect"].idxmin()]
        about = "≈" if isinstance(self.columns[column], NumberColumn) and len(curve) >= _POINTS else "="
        return (
            f"{name}: {_signed(high['effect'], unit)} at {name} {about} {_word(high['value'])}, "
            f"{_signed(low['effect'], unit)} at {_word(low['value'])}."
        )

    def pair_sentence(self, a: int, b: int, unit: str = "") -> str:
        """Return the cell of a pair of columns that changes predictions most, in a sentence."""
        cells = self.surface(a, b)
        spoken = cells[cells["rows"] >= min(_FEWEST_ROWS, cells["rows"].max())]
        top = spoken.loc[spoken["effect"].abs().idxmax()]
        first, second = self.columns[a].name, self.columns[b].name
        return (
            f"{first} × {second}: {_signed(top['effect'], unit)} where {first} is {top['first']} and {second} is "
            f"{top['second']} ({top['rows']:,} of {self.rows.shape[0]:,} rows)."
        )


def _signed(value: float, unit: str) -> str:
    return f"{'+' if value >= 0 else '−'}{cell(abs(value))}{f' {unit}' if unit else ''}"


def _word(value: Any) -> str:
    return cell(value) if isinstance(value, float) else str(value)
