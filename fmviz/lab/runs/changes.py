"""Changes of regularization strengths during a run: descriptions, and marks in its history."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fmviz.engine.models import MODELS
from fmviz.engine.schedule import STRENGTHS, Change
from fmviz.lab.experiment import Experiment
from fmviz.typography import typeset

_TERMS = {"lambda_sparse": "penalty_sparse", "lambda_p": "penalty_p", "lambda_w": "penalty_w"}


def in_words(changes: Sequence[Change], model: str = "fm") -> str:
    """Return changes as text, for instance "λ = 0.1, λₚ = 2"."""
    shrinkage = "λ_tr" if MODELS[model].notation.shrinkage_term.startswith("λ_tr") else "λₚ"
    symbols = {"lambda_sparse": "λ", "lambda_p": shrinkage, "lambda_w": "λ_w"}
    return ", ".join(f"{symbols[change.name]} = {typeset(change.value, 'g')}" for change in changes)


def change_words(experiment: Experiment, epoch: int) -> dict[int, str]:
    """Return the changes up to `epoch` by epoch, for instance ``{50: "λ = 0.1"}``."""
    due = [change for change in experiment.changes if change.epoch <= epoch]
    groups = itertools.groupby(due, key=lambda change: change.epoch)
    return {when: in_words(tuple(changes), experiment.model.name) for when, changes in groups}


def changes_listed(experiment: Experiment, epoch: int) -> str:
    """Return the changes up to an epoch as text, for instance "λ = 0.1 after epoch 50", or ""."""
    words = change_words(experiment, epoch)
    return "; ".join(f"{text} after epoch {when:,}" for when, text in words.items())


def changed_words(experiment: Experiment, epoch: int) -> str:
    """Return the changes up to an epoch as a sentence, or ""."""
    if not (said := changes_listed(experiment, epoch)):
        return ""
    return f"Changes during the run: {said}. The objective of each epoch uses the strengths of that epoch."


def with_strengths(history: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """Add columns with the strengths of every epoch to a history."""
    along = [experiment.strengths(int(epoch) - 1) for epoch in history["epoch"]]
    return history.assign(**{name: [strengths[name] for strengths in along] for name in STRENGTHS})


def with_jumps(history: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """Add a row after every change: the same iterate under the new strengths.

    Its penalties are the previous ones times the ratio of the strengths. If these are unknown (a strength
    was 0, or the history lacks the epoch), the objective and its parts are NaN, and curves are interrupted.

    Parameters
    ----------
    history : DataFrame
        One row per epoch, ascending; columns ``epoch``, ``seconds``, ``objective``, ``loss``, ``penalty_w``,
        ``penalty_p`` and ``penalty_sparse``, and others.
    experiment : Experiment
        The settings of the run.
    """
    epochs = history["epoch"].to_numpy()
    pieces, done = [], 0
    for epoch in change_words(experiment, int(epochs[-1]) if epochs.size else -1):
        at = int(np.searchsorted(epochs, epoch, side="right"))
        if at == 0:
            continue
        row = history.iloc[at - 1 : at].copy()
        old, new = experiment.strengths(epoch - 1), experiment.strengths(epoch)
        known = int(epochs[at - 1]) == epoch
        for name, term in _TERMS.items():
            if old[name] != new[name]:
                row[term] = row[term] * (new[name] / old[name] if old[name] > 0.0 and known else np.nan)
        row["objective"] = row[["loss", *_TERMS.values()]].sum(axis=1, skipna=False)
        if not known:
            row[["objective", "loss", *_TERMS.values()]] = np.nan
            row["epoch"] = epoch
        pieces += [history.iloc[done:at], row]
        done = at
    pieces.append(history.iloc[done:])
    return pd.concat(pieces, ignore_index=True) if len(pieces) > 1 else history
