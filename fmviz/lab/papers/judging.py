"""From the numbers of a run to a verdict on a statement of a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fmviz.lab.papers.base import Finding, Judge, Verdict
from fmviz.lab.papers.reproduction import Settings, Tables

Said = tuple[Verdict, str]
Cases = Callable[[Tables, Settings], Iterable[tuple[str, Any]]]


def over(cases: Cases, say: Callable[[Any], Said | None]) -> Judge:
    """Return the judge of a statement that is put to the test in several cases.

    Parameters
    ----------
    cases : callable
        ``cases(tables, settings)`` yields the name of every case and its numbers.
    say : callable
        ``say(numbers)`` returns a verdict, and a sentence with the numbers. It is not asked where the numbers
        are empty; there, and where it returns None, nothing is settled.
    """

    def judge(tables: Tables, settings: Settings) -> Iterator[Finding]:
        for case, numbers in cases(tables, settings):
            said = say(numbers) if numbers else None
            yield (case, *(said or ("not settled", "No numbers yet.")))

    return judge


def verdict(holds: bool | None) -> Verdict:
    """Return the verdict on what holds, does not, or, with None, is not settled."""
    return "not settled" if holds is None else "holds" if holds else "does not hold"


def by_majority(wins: int, total: int) -> Verdict:
    """Return "holds" from three wins in four on, "does not hold" up to one in two, else "not settled"."""
    if total and 4 * wins >= 3 * total:
        return "holds"
    return verdict(False if total and 2 * wins <= total else None)


def by_balance(gaps: Sequence[float], same: float) -> tuple[Verdict, int, int]:
    """Return the verdict on gaps that should be positive, and how many are positive and negative.

    Gaps of at most `same` are ties. Where more than half are ties nothing is settled; else see `by_majority`.
    """
    wins, losses = sum(gap > same for gap in gaps), sum(gap < -same for gap in gaps)
    if 2 * (wins + losses) < len(gaps):
        return "not settled", wins, losses
    return by_majority(wins, wins + losses), wins, losses


def agreed(answers: Iterable[bool]) -> Verdict:
    """Return the verdict on which all answers agree, else "not settled"."""
    different = set(answers)
    return verdict(different.pop() if len(different) == 1 else None)


def listed(values: Iterable[tuple[Any, ...]], form: str = "{} {}") -> str:
    """Return names and their values in one line: "TI 0.2, CS 0.3"."""
    return ", ".join(form.format(*pair) for pair in values)
