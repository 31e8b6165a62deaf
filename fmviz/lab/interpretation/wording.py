"""Sentences on the effect of a weight on predictions, in the unit of the target."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from fmviz.engine.losses import Loss, get_loss
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.attributes import Attribute, Attributes
from fmviz.tables.scaling import Scaling
from fmviz.typography import typeset

# Labels that only affirm.
_BARE = ("1", "1.0", "True", "TRUE", "true")


@dataclass(frozen=True, eq=False)
class Wording:
    """Describes effects of a model with the units and names of a data set.

    Attributes
    ----------
    attributes : Attributes
        The attributes of the data.
    loss : str
        The loss of the fit; with the logistic loss, f is the log-odds.
    compared : bool
        Whether f is meaningful only relative to the scores of other classes.
    """

    attributes: Attributes
    loss: str
    compared: bool = False

    @property
    def dataset(self) -> Dataset:
        """The data."""
        return self.attributes.dataset

    @property
    def binary(self) -> bool:
        """Whether the target is one of two classes."""
        return self.dataset.task == "binary"

    @property
    def log_odds(self) -> bool:
        """Whether f is the log-odds of the second class."""
        return self.binary and not self.compared and self._loss.probability(np.zeros(1)) is not None

    @property
    def scaling(self) -> Scaling | None:
        """The scaling of the target, for data with one output."""
        scaling = self.dataset.target_scaling
        assert not isinstance(scaling, tuple), "requires a single output"
        return scaling

    @property
    def scale(self) -> float:
        """The factor from differences of f to differences of the target."""
        return 1.0 if self.scaling is None else self.scaling.scale

    @property
    def positive(self) -> str:
        """The label of the class with positive scores; the name of the target if the label is just 1."""
        labels = self.dataset.class_labels
        positive = labels[1] if labels else "+1"
        return self.dataset.target_name if positive in _BARE else positive

    @property
    def what(self) -> str:
        """A description of f."""
        if self.log_odds:
            return f"the log-odds of “{self.positive}”"
        if self.binary:
            return f"the score for “{self.positive}”"
        return "the logarithm of the prediction" if self.in_logarithms else "the prediction"

    @property
    def unit(self) -> str:
        """The unit of effects."""
        if self.log_odds:
            return "log-odds"
        if self.in_logarithms:
            return f"log {self.dataset.target_unit}"
        return "score" if self.binary else self.dataset.target_unit

    def prediction(self, f: float) -> float:
        """Return a value of f in the original unit of the target."""
        return self.decoded(float(self._loss.mean(np.array(f))))

    def decoded(self, y: float) -> float:
        """Return an encoded target in its original unit."""
        return y if self.scaling is None else float(self.scaling.decode(y))

    @property
    def log_link(self) -> bool:
        """Whether f is the logarithm of the mean of the target."""
        return self._loss.log_link

    @property
    def _loss(self) -> Loss:
        return get_loss(self.loss)

    @property
    def in_logarithms(self) -> bool:
        """Whether terms sum to the logarithm of the target or of its mean."""
        return self.log_link or (self.scaling is not None and self.scaling.logarithm)

    def added(self, f: float) -> float:
        """Return a value of f on the additive scale: the target, or its logarithm."""
        return f if self.scaling is None else self.scaling.added(f)

    def probability(self, f: float) -> float | None:
        """Return the probability of the second class, or None if f has none."""
        return float(expit(f)) if self.log_odds else None

    def why_no_probability(self) -> str:
        """Return why a binary model gives no probability."""
        if self.compared:
            return "Scores are meaningful only in comparison: the class with the largest score is predicted."
        return (
            f"The {self._loss.label.lower()} loss fits a score whose sign is the class, not a "
            "probability. The logistic loss fits probabilities."
        )

    # -------------------------------------------------------------------------------------------- pairs

    def pair(self, i: int, j: int, weight: float) -> str:
        """Describe the effect of the product of two features in a sentence."""
        if weight == 0:
            return "No change: the contributions of their factors cancel."
        first, second = self._attribute(i), self._attribute(j)
        numbers = [(a, column) for a, column in ((first, i), (second, j)) if a.is_line(column)]
        conditions = [a.condition(column) for a, column in ((first, i), (second, j)) if not a.is_line(column)]
        effect = weight * self.scale
        if len(conditions) == 2:
            if all(words.endswith(" is present") for words in conditions):
                return f"When {self._name(i)} and {self._name(j)} occur together, {self._moves(effect)}."
            return f"When {' and '.join(conditions)}, {self._moves(effect)}."
        if len(numbers) == 1:
            (attribute, column), (condition,) = numbers[0], conditions
            return (
                f"When {condition}, {self._moves(effect)} for each {self._unit(attribute)} of "
                f"{self._name(column)} above {self._zero(attribute)}."
            )
        each = [f"each {self._unit(a)} of {self._name(x)} above {self._zero(a)}" for a, x in numbers]
        return f"For {' and '.join(each)}, {self._moves(effect)}; with one above and one below, the opposite."

    def _attribute(self, column: int) -> Attribute:
        return self.attributes.all[self.attributes.of_column[column]]

    def _name(self, column: int) -> str:
        return self.dataset.feature_names[column]

    def _unit(self, attribute: Attribute) -> str:
        return "standard deviation" if attribute.scaling and attribute.scaling.deviations else "unit"

    def _zero(self, attribute: Attribute) -> str:
        scaling = attribute.scaling
        return "0" if scaling is None else "its mean" if scaling.deviations else f"{scaling.mean:g}"

    def _moves(self, effect: float) -> str:
        verb = ("rise" if effect > 0 else "fall") + "s" * (not self.log_odds)
        moves = f"{self.what} {verb} by {number(abs(effect))}"
        if not (self.log_odds or self.in_logarithms):
            return moves
        multiplied = "odds" if self.log_odds else "prediction"
        return f"{moves} ({multiplied} × {number(math.exp(min(effect, 700.0)))})"


def number(value: float) -> str:
    """Format a number with three digits."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    return f"{value:,.0f}".replace("-", "−") if 1e3 <= abs(value) < 1e6 else typeset(value)
