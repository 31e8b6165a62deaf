"""Changes of regularization strengths during a run: descriptions, and marks in its history."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd

from fmviz.engine.models import MODELS
from fmviz.engine.schedule import STRENGTHS, Change
from fmviz.lab.experiment import Experiment
from fmviz.typography import typeset


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
