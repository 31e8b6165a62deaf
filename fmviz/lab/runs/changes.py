"""Changes of strengths during a run, in words."""

from __future__ import annotations

from collections.abc import Sequence

from fmviz.engine.models import MODELS
from fmviz.engine.schedule import Change

__all__ = ["in_words", "strength_label"]


def strength_label(name: str, model: str = "fm") -> str:
    """Return the symbol of a strength in plain characters."""
    if name == "lambda_p" and MODELS[model].notation.shrinkage_term.startswith("λ_tr"):
        return "λ_tr"
    return {"lambda_sparse": "λ", "lambda_p": "λₚ", "lambda_w": "λ_w"}[name]


def in_words(changes: Sequence[Change], model: str = "fm") -> str:
    """Return for instance "λ = 0.1, λₚ = 2"."""
    return ", ".join(f"{strength_label(change.name, model)} = {change.value:g}" for change in changes)
