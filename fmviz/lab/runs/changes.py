"""Changes of strengths during a run, as text for links, files, curves and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fmviz.engine.models import MODELS
from fmviz.engine.schedule import Change, changes_of

__all__ = ["changes_from_text", "changes_to_text", "in_words", "strength_label"]


def changes_to_text(changes: Iterable[Change]) -> str:
    """Return for instance ``"50:lambda_sparse:0.1,80:lambda_p:2.0"``; every value reads back exactly."""
    return ",".join(f"{epoch}:{name}:{value!r}" for epoch, name, value in changes)


def changes_from_text(text: str) -> tuple[Change, ...]:
    """Return the changes that a text of `changes_to_text` tells.

    Raises
    ------
    ValueError
        If it tells something else, with a sentence.
    """
    found = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        try:
            epoch, name, value = item.split(":")
            found.append((int(epoch), name.strip(), float(value)))
        except ValueError:
            raise ValueError(
                f"changes: {item!r} is no change of a strength; write the epoch after which it is made, the "
                "name and the new value, for instance 50:lambda_sparse:0.1."
            ) from None
    return changes_of(found)


def strength_label(name: str, model: str = "fm") -> str:
    """Return the symbol of a strength in plain characters."""
    if name == "lambda_p" and MODELS[model].notation.shrinkage_term.startswith("λ_tr"):
        return "λ_tr"
    return {"lambda_sparse": "λ", "lambda_p": "λₚ", "lambda_w": "λ_w"}[name]


def in_words(changes: Sequence[Change], model: str = "fm") -> str:
    """Return for instance "λ = 0.1, λₚ = 2"."""
    return ", ".join(f"{strength_label(change.name, model)} = {change.value:g}" for change in changes)
