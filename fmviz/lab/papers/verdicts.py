"""Verdicts of a run's numbers on what a paper says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, Literal

Verdict = Literal["holds", "does not hold", "not settled"]
Said = tuple[Verdict | bool | None, str | Mapping[str, Any]]
"""A verdict, or whether a statement holds, and a sentence or the numbers in that of the statement."""
Finding = tuple[str, str, Said | None]
"""The key of a statement, a case of it, and what is said, or None where there are no numbers."""


def verdict(holds: Verdict | bool | None) -> Verdict:
    """Return the verdict on what holds, does not, or, with None, is not settled; or the one that is given."""
    if isinstance(holds, str):
        return holds
    return "not settled" if holds is None else "holds" if holds else "does not hold"


def by_majority(wins: int, total: int) -> Verdict:
    """Return "holds" from three wins in four on, "does not hold" up to one in two, else "not settled"."""
    if total and 4 * wins >= 3 * total:
        return "holds"
    return verdict(False if total and 2 * wins <= total else None)


def by_balance(gaps: Any, same: float) -> tuple[Verdict, int, int]:
    """Return the verdict on gaps that should be positive, and how many are positive and negative.

    Gaps of at most `same` are ties. Where more than half are ties nothing is settled; else see `by_majority`.
    """
    wins, losses = sum(gap > same for gap in gaps), sum(gap < -same for gap in gaps)
    if 2 * (wins + losses) < len(gaps):
        return "not settled", wins, losses
    return by_majority(wins, wins + losses), wins, losses


def by_margin(gaps: Sequence[float], least: float = 0.0, unit: str = " points") -> tuple[Verdict, str] | None:
    """Say whether gaps, one a split, are above `least` in the mean: by more than their standard error."""
    if len(gaps) == 0:
        return None
    if len(gaps) < 3:
        many = "One split tells" if len(gaps) == 1 else f"{len(gaps)} splits tell"
        return "not settled", f"{many} nothing of the spread."
    mean, error = fmean(gaps), stdev(gaps) / len(gaps) ** 0.5
    holds = None if abs(mean - least) <= error else mean > least
    return verdict(holds), f"Ahead by {mean:+.3g} ± {error:.2g}{unit}."


def agreed(answers: Iterable[bool]) -> Verdict:
    """Return the verdict on which all answers agree, else "not settled"."""
    different = set(answers)
    return verdict(different.pop() if len(different) == 1 else None)


def listed(values: Iterable[tuple[Any, ...]], form: str = "{} {}") -> str:
    """Return names and their values in one line: "TI 0.2, CS 0.3"."""
    return ", ".join(form.format(*pair) for pair in values)
