"""What a paper says, and the verdict of a run's numbers on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fmviz.lab.papers.reproduction import Settings, Tables

Verdict = Literal["holds", "does not hold", "not settled"]
Finding = tuple[str, Verdict, str]
"""Of a statement: the case, the verdict, and a sentence with the numbers."""
Judge = Callable[[Tables, Settings], Iterable[Finding]]
Said = tuple[Verdict, str]
Cases = Callable[[Tables, Settings], Iterable[tuple[str, Any]]]


@dataclass(frozen=True)
class Statement:
    """Something that the paper says, which our run puts to the test.

    Attributes
    ----------
    key : str
        Its name within the artefact.
    text : str
        What is said, in a sentence.
    where : str
        The section of the paper.
    judge : callable
        ``judge(tables, settings)`` returns what the numbers of a run say to it, case by case; from the
        tables alone, full or not.
    """

    key: str
    text: str
    where: str
    judge: Judge


@dataclass(frozen=True)
class Check:
    """What our run says to a statement, in one case of it.

    Attributes
    ----------
    statement : str
        The key of the statement.
    case : str
        On what: a data set, a kernel, a scaling.
    verdict : {"holds", "does not hold", "not settled"}
        The last where the numbers do not decide, or are not there.
    measured : str
        A sentence with the numbers.
    """

    statement: str
    case: str
    verdict: Verdict
    measured: str


def judged(statements: Iterable[Statement], tables: Tables, settings: Settings) -> list[Check]:
    """Return what the numbers of a run say to each statement, case by case."""
    return [Check(one.key, *found) for one in statements for found in one.judge(tables, settings)]


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
