"""From counts to a verdict on a statement of a paper."""

from __future__ import annotations

from collections.abc import Sequence

from fmviz.lab.papers.base import Verdict


def by_majority(wins: int, total: int) -> Verdict:
    """Return "holds" from three wins in four on, "does not hold" up to one in two, else "not settled"."""
    if total and 4 * wins >= 3 * total:
        return "holds"
    return "does not hold" if total and 2 * wins <= total else "not settled"


def by_balance(gaps: Sequence[float], same: float) -> tuple[Verdict, int, int]:
    """Return the verdict on gaps that should be positive, and how many are positive and negative.

    Gaps of at most `same` are ties. Where more than half are ties nothing is settled; else see `by_majority`.
    """
    wins, losses = sum(gap > same for gap in gaps), sum(gap < -same for gap in gaps)
    if 2 * (wins + losses) < len(gaps):
        return "not settled", wins, losses
    return by_majority(wins, wins + losses), wins, losses
