"""Comparison of fits and supports: errors, recovery and their conclusions in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from fmviz.metrics import Metric
from fmviz.typography import typeset, with_spread

FOUND = 0.95
"""Minimum F1 for two supports to count as equal."""
_ALIKE = 0.02
# Models have about equally many pairs if the ratio of their counts is at most this.
_ABOUT = 1.1


def leaders(rows: pd.DataFrame, column: str, metric: Metric) -> list[str]:
    """Return the labels indistinguishable from the best: within the deviation over seeds, or 2 %.

    Parameters
    ----------
    rows : DataFrame
        Columns ``label`` and `column`, with a row for each seed.
    column : str
        The values, or NaN.
    metric : Metric
        The metric, which defines whether small or large values are better.
    """
    over = (
        rows.dropna(subset=[column])
        .groupby("label", sort=False)[column]
        .agg(["mean", "std"])
        .sort_values("mean", ascending=metric.better == "smaller", kind="stable")
    )
    best = over.head(1).sum()
    least = best["std"] if over["std"].notna().any() else _ALIKE * abs(best["mean"])
    return list(over.index[(over["mean"] - best["mean"]).abs() <= np.fmax(over["std"], least)])


def error_words(rows: pd.DataFrame, metric: Metric) -> str:
    """Return a sentence on the labels with the best values, and with the best values refitted without λ.

    Parameters
    ----------
    rows : DataFrame
        Columns ``label``, ``value`` and ``refitted``, with a row for each seed; the last may be NaN.
    metric : Metric
        The metric of the values.
    """

    def best(column: str) -> str:
        means = rows.groupby("label", sort=False)[column].mean()[leaders(rows, column, metric)]
        alike = "; within the spread over seeds" if rows["label"].duplicated().any() else ", a tie"
        values = joined(dict.fromkeys(map(typeset, means)))
        return f"for {joined(means.index)} ({values}{alike * (len(means) > 1)})"

    mean = "mean " if rows["label"].duplicated().any() else ""
    said = f"{mean}{metric.label}: {'lowest' if metric.better == 'smaller' else 'highest'} {best('value')}"
    return f"{said}; refitted without λ, {best('refitted')}" if rows["refitted"].notna().any() else said


def support_words(rows: pd.DataFrame, reference: str = "") -> str:
    """Return a sentence on the labels that recover the true support or, if unknown, that of a reference.

    Parameters
    ----------
    rows : DataFrame
        Columns ``label`` and ``F1``, with a row for each seed.
    reference : str
        The reference label, if the truth is unknown.
    """
    rows = rows[rows["label"] != reference]
    times = (rows["F1"] >= FOUND).groupby(rows["label"], sort=False).sum().sort_values(ascending=False)
    seeds = len(rows) // len(times)
    what = f"{f'the pairs of {reference}' if reference else 'the true pairs'} (F1 ≥ {FOUND})"
    (most, first), *others = times.groupby(times, sort=False).groups.items()
    if most == 0:
        return f"none recovers {what}"
    said = f"{joined(first)} {'recover' if len(first) > 1 else 'recovers'} {what}"
    if seeds == 1:
        return ", unlike ".join([said, *(joined(labels) for _, labels in others)])
    words = [f"{joined(labels)} on {count or 'none'}" for count, labels in others]
    return ", ".join([f"{said} on {most} of {seeds} seeds", *words])


def conclusion(
    table: pd.DataFrame, metric: Metric, target: int, accept: tuple[int, int], reference: str = ""
) -> str:
    """Return the conclusions of a comparison at equal sparsity, and the regularizers that miss the target.

    Parameters
    ----------
    table : DataFrame
        The columns of `error_words` and `support_words`, with F1 NaN if unknown; ``seed``; ``nearest``,
        whether the target is missed; ``instead``, the closest counts.
    metric : Metric
        The metric of the values.
    target : int
        The target number of interactions.
    accept : (int, int)
        The accepted range.
    reference : str
        See `support_words`.
    """
    ratios = table["interactions"].clip(lower=0.5) / max(target, 0.5)
    far = table["nearest"] & (np.abs(np.log(ratios)) > math.log(_ABOUT))
    missed = table[table["nearest"] & table["label"].isin(table["label"][far])]
    rows = table[~table["label"].isin(missed["label"])].dropna(subset=["value"])
    seeds, words = table["seed"].nunique(), []
    if len(rows):
        if rows["F1"].notna().all() and {*rows["label"]} != {reference}:
            words.append(f"With about {target:,} pairs, {support_words(rows, reference)}.")
        if rows["label"].nunique() > 1:
            said = error_words(rows, metric)
            words.append(f"{said[0].upper()}{said[1:]}.")
        if rows["nearest"].any():
            words.append(f"Fits marked ✕ miss the range by less than {_ABOUT - 1:.0%}.")
    for label, own in missed.groupby("label", sort=False):
        on = f" on {len(own)} of {seeds} seeds" * (seeds > 1)
        closest = "; ".join(dict.fromkeys(own["instead"]))
        words.append(f"{label}: no model with {range_words(accept)} pairs{on}; closest: {closest}.")
    return " ".join(words)


SHRINKAGE = (
    "At equal numbers of pairs, errors before refitting measure the shrinkage of the weights by λ: compare "
    "pairs by their refitted errors."
)


def chosen_words(rows: pd.DataFrame, metric: Metric, accept: tuple[int, int]) -> str:
    """Return a sentence on the λ with an accepted number of pairs, with count, error and F1 over the seeds.

    Parameters
    ----------
    rows : DataFrame
        Columns ``label``, ``λ``, ``interactions``, ``value``, ``F1`` and ``nearest``, a row for each seed.
    metric : Metric
        The metric of the values.
    accept : (int, int)
        The accepted range.
    """
    seeds, parts = rows["label"].value_counts().max(), []
    for label, own in rows.groupby("label", sort=False):
        strengths, pairs = (
            " to ".join(dict.fromkeys(map(form, (own[name].min(), own[name].max()))))
            for name, form in (("λ", typeset), ("interactions", "{:,}".format))
        )
        value, f1 = (with_spread(own[name].mean(), own[name].std()) for name in ("value", "F1"))
        missed = int(own["nearest"].sum())
        off = f" (nearest{f' on {missed} of {seeds} seeds' * bool(seeds > 1)})" * bool(missed)
        exact = f", F1 {f1}" * bool(own["F1"].notna().all())
        parts.append(f"{label}: λ = {strengths}, {pairs} pairs{off}, {value}{exact}")
    over = f", mean ± deviation over {seeds} seeds" * bool(seeds > 1)
    return f"Weakest λ with {range_words(accept)} pairs, {metric.label}{over}. {' · '.join(parts)}."


def range_words(ends: tuple[int, int]) -> str:
    """Return a range of counts as text."""
    return " to ".join(dict.fromkeys(f"{end:,}" for end in ends))


def joined(words: Iterable[str]) -> str:
    """Return a list of words joined by commas and "and"."""
    *most, last = list(words) or [""]
    return f"{', '.join(most)} and {last}" if most else last


CLASSES = ("true negative", "true positive", "false negative", "false positive")
"""Names of the codes of a `Support`."""


@dataclass(frozen=True, eq=False)
class Support:
    """A classification of all pairs.

    Attributes
    ----------
    codes : (d, d) int8 ndarray
        Indices into `CLASSES`.
    counts : tuple of int
        The number of pairs i < j in each class.
    """

    codes: np.ndarray
    counts: tuple[int, ...]

    @property
    def f1(self) -> float:
        """F1 of the learned support; 1 if and only if it is exactly the true one."""
        _, hit, missed, wrong = self.counts
        return 1.0 if hit + missed + wrong == 0 else 2 * hit / (2 * hit + missed + wrong)


def compare_supports(truth: np.ndarray, learned: np.ndarray, excluded: tuple[int, ...] = ()) -> Support:
    """Classify all pairs.

    Parameters
    ----------
    truth, learned : (d, d) array_like
        Symmetric, non-zero for pairs that interact. The diagonal is ignored.
    excluded : tuple of int
        Features whose pairs are ignored.

    Returns
    -------
    Support
    """
    true, used = np.asarray(truth) != 0, np.asarray(learned) != 0
    codes = np.select([true & used, true & ~used, used], [1, 2, 3], 0).astype(np.int8)
    free = np.ones(codes.shape[0], dtype=bool)
    free[list(excluded)] = False
    upper = codes[free][:, free][np.triu_indices(int(free.sum()), 1)]
    return Support(codes, tuple(int(n) for n in np.bincount(upper, minlength=4)))


def describe_support(used: np.ndarray, truth: np.ndarray | None = None) -> str:
    """Return the counts of used pairs and, if the truth is known, of true and false ones.

    Parameters
    ----------
    used : (d, d) array_like
        Symmetric, non-zero for used pairs. The diagonal is ignored.
    truth : (d, d) array_like, optional
        Symmetric, non-zero for true pairs.

    Returns
    -------
    str
        Counts of true pairs and of false pairs: across groups of connected features, with noise features and,
        if any, within groups.
    """
    learned = np.triu(np.asarray(used) != 0, 1)
    d, n = len(learned), int(learned.sum())
    if truth is None:
        features = int((learned | learned.T).any(axis=0).sum())
        return f"{n:,} of {d * (d - 1) // 2:,} pairs, of {features:,} features."
    true = np.triu(np.asarray(truth) != 0, 1)
    matters = (true | true.T).any(axis=0)
    _, group = connected_components(true, directed=False)
    false = learned & ~true
    inside, apart = np.outer(matters, matters), group[:, None] != group
    counts = {
        "true": learned & true,
        "between": false & inside & apart,
        "noise": false & ~inside,
        "within": false & inside & ~apart,
    }
    words = [
        f"{pairs.sum():,}\N{NO-BREAK SPACE}{name}"
        for name, pairs in counts.items()
        if name != "within" or pairs.any()
    ]
    return "✓ Exact: " * np.array_equal(learned, true) + " · ".join(words)


def groups_of(truth: np.ndarray) -> list[tuple[str, int, int]]:
    """Return the name, first feature and size of each group of features connected by the truth.

    Features without interactions are noise. Returns nothing if groups are not contiguous.
    """
    true = np.asarray(truth) != 0
    _, labels = connected_components(true, directed=False)
    labels[~true.any(axis=0)] = -1
    starts = np.flatnonzero(np.diff(labels, prepend=-2))
    if len(starts) > len(set(labels.tolist())):
        return []
    sizes = np.diff(starts, append=len(labels))
    numbers = np.cumsum(labels[starts] >= 0)
    return [
        ("noise" if labels[at] < 0 else f"group {number}", int(at), int(size))
        for at, size, number in zip(starts, sizes, numbers, strict=True)
    ]


def say_where_exact(exact: Mapping[str, np.ndarray], strengths: Sequence[float]) -> str:
    """Return a sentence on the starts and strengths at which regularizers use exactly the true pairs.

    Parameters
    ----------
    exact : mapping of (starts, strengths) ndarray of bool
        For the label of each regularizer, whether the fit from each start is exact at each strength.
    strengths : sequence of float
        λ, ascending.
    """
    said: dict[str, list[str]] = {}
    for name, flags in sorted(exact.items(), key=lambda item: -item[1].sum()):
        places, times = np.flatnonzero(flags.any(axis=0)), flags.sum(axis=1)
        ends = " to ".join(dict.fromkeys(f"{strengths[at]:g}" for at in (*places[:1], *places[-1:])))
        count = range_words((times[times > 0].min(initial=len(strengths)), times.max()))
        where = f"at {count if ends else 'none'} of {len(strengths)} strengths" + f" (λ = {ends})" * bool(
            ends
        )
        if (n := len(flags)) > 1:
            some = np.count_nonzero(times)
            where = f"from {f'{some} of' if some < n else 'all'} {n} starts, {where}" if ends else "from none"
        said.setdefault(where, []).append(name)
    (where, names), *others = said.items()
    leading = f"{joined(names)} {'use' if len(names) > 1 else 'uses'} exactly the true pairs {where}"
    return "; ".join([leading, *(f"{joined(names)} {where}" for where, names in others)]) + "."
