"""Heatmaps of a run: learned weights, true weights, and their comparison."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.counting import used_mask
from fmviz.engine.interactions.weights import GivenPairs, Interactions, interactions_of, tile_edges
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.figures.palette import regularizer_color
from fmviz.figures.training import evenly
from fmviz.lab.background.job import JobView
from fmviz.lab.background.thinned import EXACT_FEATURES, N_TILES, Frame, Thinned
from fmviz.lab.datasets import Dataset
from fmviz.lab.datasets.drawn import pair_weights
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.comparison import CLASSES, compare_supports, groups_of
from fmviz.lab.interpretation.reading import rows_with_all
from fmviz.lab.runner import pairs_matrix, truth_of
from fmviz.stage import (
    NOT_AN_INTERACTION,
    CellClass,
    ClassesFrame,
    CodesFrame,
    FactorFrame,
    Panel,
    encode_codes,
)
from fmviz.typography import superscript


def order_name(order: int) -> str:
    """Return "pairs", "triples" or "sets of 4"."""
    return {2: "pairs", 3: "triples"}.get(order, f"sets of {order}")


@dataclass(frozen=True)
class Look:
    """An order of a columnar model; above 2, a slice at m − 2 fixed features.

    Attributes
    ----------
    model : Model
        The model with its parameters.
    order : int
        The order m.
    at : tuple of int
        The fixed features; () for order 2.
    """

    model: Model
    order: int
    at: tuple[int, ...] = ()

    def interactions(self, parameters: Parameters | Thinned) -> Interactions:
        """Return all interactions of the order or of the slice."""
        every = interactions_of(self.model, parameters, self.order, entries=True)
        return every.at(self.at) if self.at else every

    def label(self) -> str:
        """Return the formula of the matrix as Unicode text."""
        if self.order > 2 and not self.model.columnar:
            return f"𝒲{'ᵢₕₐₑₒₓᵤᵥ'[: len(self.at)]}ⱼₗ"
        if self.order > 2:
            factors = "".join(f"p{x}ₛ" for x in "ᵢₕₐₑₒₓᵤᵥ"[: len(self.at)])
            coefficient = "λₛ " if "coefficients" in self.model.shapes(1, 1) else ""
            return f"Σₛ {coefficient}{factors} pⱼₛ pₗₛ"
        if self.model.order is not None and len(self.model.orders) > 1:
            mark = f"⁽{superscript(self.order)}⁾"
            return f"P{mark}P{mark}ᵀ"
        return self.model.notation.weights

    def picture(self, thinned: Thinned, key: str, caption: str) -> CodesFrame:
        """Return the matrix as codes, or as tiles for many features."""
        shown = self.interactions(thinned)
        if shown.n_features > EXACT_FEATURES:
            codes, scale = encode_codes(np.nan_to_num(shown.pooled(N_TILES)))
            return CodesFrame(codes, scale, key=key, caption=caption)
        codes, scale = encode_codes(np.nan_to_num(shown.matrix()), grey_diagonal=not shown.repeats)
        if not shown.repeats:
            codes = _crossed_out(codes, self.at)
        return CodesFrame(codes, scale, key=key, caption=caption)

    def truth(self, dataset: Dataset) -> tuple[np.ndarray | None, bool]:
        """Return the true weights or None, and whether their magnitudes are comparable."""
        if self.order == 2:
            if dataset.truth is not None:
                return dataset.truth, not self.model.repeats
            return pairs_matrix(dataset), False
        if self.order != 3 or dataset.true_triples is None:
            return None, False
        others = [{*triple} - {*self.at} for triple in dataset.true_triples if self.at[0] in triple]
        return pair_weights(dataset.X.shape[1], map(tuple, others)), False


def _crossed_out(codes: np.ndarray, features: Sequence[int]) -> np.ndarray:
    """Return the codes without the diagonal and without all pairs of some features."""
    np.fill_diagonal(codes, NOT_AN_INTERACTION)
    codes[list(features)] = codes[:, list(features)] = NOT_AN_INTERACTION
    return codes


def strongest_slice(interactions: Interactions) -> tuple[int, ...]:
    """Return the m − 2 fixed features of a slice, the first of the strongest set; () for pairs."""
    if (need := interactions.order - 2) == 0:
        return ()
    return tuple((interactions.within(most=100).ranked(1).sets.tolist() or [range(need)])[0][:need])


def true_sets(dataset: Dataset, order: int) -> set[tuple[int, ...]] | None:
    """Return the true interactions of an order, or None if they are unknown."""
    if order == 3:
        return None if dataset.true_triples is None else set(dataset.true_triples)
    truth = truth_of(dataset) if order == 2 else None
    if truth is not None and truth.ndim == 3:
        # Pairs used by any output.
        truth = np.abs(truth).sum(axis=0)
    return None if truth is None else {(int(i), int(j)) for i, j in np.argwhere(np.triu(truth, 1))}


def true_counts(model: Model, dataset: Dataset | None, several: bool) -> dict[str, Any]:
    """Return the true counts for `fmviz.figures.training.sparsity`, if known.

    With `several`, the interactions of each order are counted in a separate column.
    """
    each = {} if dataset is None else {m: true_sets(dataset, m) for m in (2, 3)}
    known = {m: sets for m, sets in each.items() if sets is not None}
    if not known:
        return {}
    counts = {
        f"used_interactions_{m}" if several else "used_interactions": len(known[m])
        for m in model.orders or (2,)
        if m in known
    }
    features = {j for sets in known.values() for features_of_set in sets for j in features_of_set}
    return {"true_interactions": counts, "true_features": len(features)}


def sets_table(sets: np.ndarray, weight: np.ndarray, dataset: Dataset) -> pd.DataFrame:
    """Return a table of feature sets, shape (t, m): names, weights and whether they are true."""
    names = np.asarray(dataset.feature_names, dtype=object)
    order = sets.shape[1]
    heads = ["Feature", "with feature", *("and" + " " * extra for extra in range(order - 2))]
    table = pd.DataFrame({head: names[sets[:, at]] for at, head in enumerate(heads)})
    table["Weight"] = weight
    table["Rows with both" if order == 2 else "Rows with all"] = rows_with_all(dataset, sets)
    if (true := true_sets(dataset, order)) is not None:
        table["In truth"] = [tuple(features) in true for features in sets.tolist()]
    return table


def tile_labels(n_features: int, n_tiles: int = N_TILES) -> list[str]:
    """Return "features 1–20" and so on for the tiles of all features, counted from 1."""
    return [
        f"feature {a + 1:,}" if b - a == 1 else f"features {a + 1:,}–{b:,}"
        for a, b in itertools.pairwise(tile_edges(n_features, n_tiles))
    ]


# Blue and orange mark errors and are distinct for all kinds of colour vision; the lightness of green, for
# true positives, lies between them.
SUPPORT = tuple(
    CellClass(label.capitalize(), light, dark)
    for label, light, dark in zip(
        CLASSES,
        ("#f2f3f5", "#0a8f5b", "#56b4e9", "#b8460e"),
        ("#1c212b", "#22b57c", "#2f74b5", "#f08a3c"),
        strict=True,
    )
)
_STRUCTURE = (
    CellClass("No interaction", "#f2f3f5", "#1c212b"),
    CellClass("Interaction", "#0a8f5b", "#22b57c"),
)
# Largest payload of all frames, in bytes.
_FILM_BYTES = 2_500_000


def last_frame(view: JobView) -> Frame:
    """Return the frame of the last epoch."""
    assert view.thinned is not None
    return Frame(view.epoch, view.last["used_interactions"], view.thinned)


def film(view: JobView, look: Look | None, compared: bool) -> tuple[Frame, ...]:
    """Return the frames of a run with finite factors, thinned to a limited payload."""
    frames = [frame for frame in view.frames if frame.finite]
    if not frames or view.dataset is None:
        return ()
    d = view.dataset.X.shape[1]
    weight = min(d, N_TILES) ** 2 if d > EXACT_FEATURES else d**2
    if look is None and frames[0].thinned.factors and d <= EXACT_FEATURES:
        weight = 4 * d * view.experiment.rank
    most = max(2, _FILM_BYTES // (weight + (d**2 if compared else 0)))
    return tuple(frames[i] for i in evenly(len(frames), most))


def learned(view: JobView, dataset: Dataset, frames: tuple[Frame, ...], look: Look | None) -> Panel:
    """Return the panel of learned weights, with a frame for each epoch."""
    records = {} if look is None else {record["epoch"]: record for record in view.history}
    drawn = [
        picture(frame.thinned, frame.key, _caption(frame, records, look, view), look) for frame in frames
    ]
    d = dataset.X.shape[1]
    notation = view.machine.notation
    names = dataset.feature_names if isinstance(drawn[0], CodesFrame) else None
    labels: Sequence[str] | None = tile_labels(d) if d > EXACT_FEATURES else names
    return Panel(
        "Learned",
        drawn,
        color=regularizer_color(view.experiment.regularizer.name),
        row_labels=labels,
        col_labels=labels,
        factor_label=notation.matrix,
        **_named(look.label() if look else notation.weights, d),
    )


def _named(label: str, d: int) -> dict[str, Any]:
    """Return the label option of a panel; tiles have another label."""
    return {"gram_label": label} if d <= EXACT_FEATURES else {}


def nothing_learned(experiment: Experiment, dataset: Dataset, words: str) -> Panel:
    """Return the panel of a run before its start: all zero, with a notice."""
    d = dataset.X.shape[1]
    notation = experiment.model.notation
    frame: FactorFrame | CodesFrame = FactorFrame(np.zeros((d, 1)), caption="No epoch yet", notice=words)
    if d > EXACT_FEATURES:
        frame = CodesFrame(np.zeros((N_TILES, N_TILES), dtype=np.int8), 1.0, caption=words)
    return Panel(
        "Learned",
        [frame],
        color=regularizer_color(experiment.regularizer.name),
        **_named(notation.weights, d),
    )


def support_panel(dataset: Dataset, truth: np.ndarray, frames: tuple[Frame, ...], look: Look | None) -> Panel:
    """Return the panel that compares the learned support with the true one, with a frame for each epoch."""
    features, drawn = () if look is None else look.at, []
    for frame in frames:
        support = compare_supports(truth, learned_support(frame.thinned, look), features)
        exactly = "exact recovery (PSSR 1)" if support.f1 == 1.0 else "no exact recovery (PSSR 0)"
        caption = f"epoch {frame.epoch:,}: F1 {support.f1:.3f}, {exactly}"
        codes = _crossed_out(support.codes.copy(), features)
        drawn.append(ClassesFrame(codes, support.counts, key=frame.key, caption=caption))
    return Panel(
        "Against the truth",
        drawn,
        row_labels=dataset.feature_names,
        col_labels=dataset.feature_names,
        gram_label="support",
        classes=SUPPORT,
    )


def learned_support(thinned: Thinned, look: Look | None) -> np.ndarray:
    """Return a mask of the used pairs."""
    if look is not None and thinned.factors:
        codes = np.asarray(look.picture(thinned, "", "").codes)
        return np.asarray((codes != 0) & (codes != NOT_AN_INTERACTION))
    return used_mask(thinned.dense()) if thinned.factors else thinned.values != 0


def _caption(frame: Frame, records: dict[int, dict[str, Any]], look: Look | None, view: JobView) -> str:
    count, name = frame.used_interactions, "interactions"
    if look is not None:
        count = records.get(frame.epoch, {}).get(f"used_interactions_{look.order}", count)
        name = order_name(look.order)
    where = "" if view.output is None else " in all outputs"
    return f"epoch {frame.epoch:,}: {count:,} {name}{where}"


def picture(thinned: Thinned, key: str, caption: str, look: Look | None = None) -> FactorFrame | CodesFrame:
    """Return the frame of an epoch's thinned parameters."""
    exact = thinned.n_features <= EXACT_FEATURES
    if look is not None and thinned.factors:
        return look.picture(thinned, key, caption)
    if thinned.factors:
        if exact:
            return FactorFrame(thinned.dense(), key=key, caption=caption)
        codes, scale = encode_codes(thinned.tiles())
    else:
        codes, scale = encode_codes(thinned.values, grey_diagonal=exact)
    return CodesFrame(codes, scale, key=key, caption=caption)


def truth_panel(dataset: Dataset, truth: np.ndarray, known: bool, look: Look | None) -> Panel:
    """Return the panel of the true weights, or of the true support if only that is known."""
    d = truth.shape[0]
    n_pairs = int(np.triu(truth != 0, 1).sum())
    exact = d <= EXACT_FEATURES
    name, features = ("pairs", ()) if look is None else (order_name(look.order), look.at)
    labels = dataset.feature_names if exact else tile_labels(d)
    caption = f"{n_pairs:,} true {name}"
    options = _named("W" if known else name, d)
    frame: CodesFrame | ClassesFrame
    if exact and not known:
        # A matrix of ones would suggest equal weights.
        codes = _crossed_out((truth != 0).astype(np.int8), features)
        frame = ClassesFrame(codes, [d * (d - 1) // 2 - n_pairs, n_pairs], caption=caption)
        options["classes"] = _STRUCTURE
    else:
        shown = truth if exact else GivenPairs.of(truth).pooled(N_TILES)
        codes, scale = encode_codes(shown, grey_diagonal=exact)
        codes = _crossed_out(codes, features) if exact else codes
        frame = CodesFrame(codes, scale, caption=caption)
    return Panel(
        "Truth" if known else "Truth (support only)",
        [frame],
        row_labels=labels,
        col_labels=labels,
        blocks=groups_of(truth) if exact and not features else (),
        **options,
    )


# -------------------------------------------------------------------------------------------- shared basis


# Minimum number of rows of V; prevents jumps of the picture with every new basis.
_LEAST_ROWS = 8


def basis_panel(frames: Sequence[Frame], dataset: Dataset) -> Panel:
    """Return the panel of V, the weights of the shared bases in every output, with a frame for each epoch."""
    rows = max(_LEAST_ROWS, *(len(frame.thinned.V) for frame in frames))
    drawn = []
    for frame in frames:
        n = len(frame.thinned.V)
        codes, scale = encode_codes(np.pad(frame.thinned.V, ((0, rows - n), (0, 0))))
        drawn.append(CodesFrame(codes, scale, key=frame.key, caption=f"{n:,} bas{'is' if n == 1 else 'es'}"))
    labels = _basis_labels(frames[-1].thinned, dataset, rows)
    return Panel("", drawn, row_labels=labels, col_labels=dataset.outputs, gram_label="V")


def _basis_labels(basis: Thinned, dataset: Dataset, rows: int) -> list[str]:
    """Return a label for every row of V: its number and the features with the largest entries."""
    labels = []
    for r in range(rows):
        name = f"basis {r + 1}"
        if r < len(basis.V):
            h = basis.values[:, r]
            top = np.argsort(-np.abs(h), kind="stable")[:2]
            name += ": " + ", ".join(dataset.feature_names[basis.rows[j]] for j in top if h[j])
        labels.append(name)
    return labels
