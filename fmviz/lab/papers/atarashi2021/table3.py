"""Table 3 of atarashi2021: real data, with about 1,000 interactions and without a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from fmviz.lab.papers.base import Published
from fmviz.lab.papers.declared import declared, figure
from fmviz.lab.papers.protocols import searched
from fmviz.lab.papers.protocols.benchmarks import A9A, FD, ML100K, RCV1
from fmviz.lab.papers.protocols.searched import FM, FREE, LIMITED
from fmviz.lab.papers.reproduction import Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Said, listed, over, verdict

OURS, THEIRS = ("TI", "CS"), ("L1", "L21", FM)
# Up to this difference of RMSE or AUC nothing is settled.
_SAME = 2e-4
# Absolute deviation of a score that is tolerated, and relative ones of counts.
_TOLERANCE, _COUNT = 0.003, {LIMITED: 0.046, FREE: 0.1}
_NOT_PRINTED: Said = "not settled", "Not a data set of the paper."

PRINTED_SETS = (ML100K, A9A, RCV1, FD)
PRINTED: dict[str, dict[str, list[list[float]]]] = declared(__name__)["printed"]


def _published() -> Iterator[Published]:
    for table, methods in PRINTED.items():
        for column, name in enumerate(PRINTED_SETS):
            for method, cells in methods.items():
                if cell := cells[column]:
                    of, source = {"data": name, "method": method}, f"Table {table[-2:]}"
                    yield Published(table, of, "score", cell[0], source, _TOLERANCE / cell[0])
                    yield Published(table, of, "used", cell[1], source, _COUNT[table])


# ------------------------------------------------------------------------------------------------ statements


@dataclass(frozen=True)
class OfSet:
    """The numbers of one data set in one of the two tables.

    Attributes
    ----------
    name, table : str
        Which.
    rows : mapping of str to dict
        The row of each method.
    fm : dict
        That of FM in Table 3b.
    data : dict
        The row of the table "data".
    """

    name: str
    table: str
    rows: Mapping[str, Row]
    fm: Row
    data: Row

    @property
    def scores(self) -> dict[str, float]:
        """The scores of the methods that have one."""
        return {m: row["score"] for m, row in self.rows.items() if row["score"] is not None}

    def printed(self, table: str) -> dict[str, float]:
        """Return the printed scores of the methods that have one, of a data set of the paper."""
        cells = {method: row[PRINTED_SETS.index(self.name)] for method, row in PRINTED[table].items()}
        return {method: cell[0] for method, cell in cells.items() if cell}

    @property
    def every(self) -> int:
        """The number of pairs of features of the training rows."""
        live = int(self.data["features_in_training"])
        return live * (live - 1) // 2


def _sets(tables: Tables, table: str) -> Iterator[OfSet]:
    for fm in rows_where(tables, FREE, method=FM):
        name = fm["data"]
        rows = {row["method"]: row for row in rows_where(tables, table, data=name)}
        yield OfSet(name, table, rows, fm, rows_where(tables, "data", data=name)[0])


def _all_tables(tables: Tables, settings: Settings) -> Iterator[tuple[str, OfSet | None]]:
    both = zip(_sets(tables, LIMITED), _sets(tables, FREE), strict=True)
    yield from _or_none([(f"{one.name}, {one.table[-2:]}", one) for pair in both for one in pair])


def _data_sets(tables: Tables, settings: Settings) -> Iterator[tuple[str, OfSet | None]]:
    yield from _or_none([(one.name, one) for one in _sets(tables, LIMITED)])


def _singles(tables: Tables, settings: Settings) -> Iterator[tuple[str, OfSet | None]]:
    found = list(_data_sets(tables, settings))
    yield from [one for one in found if one[0] in (ML100K, A9A)] or found[:1]


def _ours(tables: Tables, settings: Settings) -> Iterator[tuple[str, tuple[OfSet, str] | None]]:
    found = product(_sets(tables, FREE), OURS)
    yield from _or_none([(f"{one.name}, {method}", (one, method)) for one, method in found])


def _or_none(cases: list) -> list:
    return cases or [("all data", None)]


def _compared(first: Sequence[str], others: Sequence[str]) -> Callable[[OfSet], Said]:
    def say(one: OfSet) -> Said:
        scores, score = one.scores, one.data["score"]
        sign = 1.0 if score == "AUC" else -1.0
        words = f"{score}: {listed(scores.items(), '{} {:.5f}') or 'none'}."
        mine, theirs = ([sign * scores[m] for m in group if m in scores] for group in (first, others))
        if not mine or not theirs:
            return "not settled", f"Not both have a score. {words}"
        gap = max(mine) - max(theirs)
        return verdict(None if abs(gap) <= _SAME else gap > 0), f"Ahead by {gap:+.5f}. {words}"

    return say


def _margins(one: OfSet) -> Said:
    if one.name not in PRINTED_SETS:
        return _NOT_PRINTED
    gaps = [
        (method, score - one.fm["score"], one.printed(one.table)[method] - one.printed(FREE)[FM])
        for method, score in one.scores.items()
        if method != FM and method in one.printed(one.table)
    ]
    near = all(abs(ours - printed) <= _TOLERANCE for _, ours, printed in gaps)
    told = listed(gaps, "{} {:+.5f} ({:+.5f})")
    return verdict(near if gaps else None), f"Above FM, in brackets as printed: {told or 'none'}."


def _reaches(one: OfSet) -> Said:
    told = listed((m, f"{row['reached']} of {row['starts']}") for m, row in one.rows.items())
    words = f"Starts from which the range was reached: {told}."
    if one.name not in PRINTED_SETS:
        return "not settled", f"{_NOT_PRINTED[1]} {words}"
    return verdict(set(one.scores) == set(one.printed(one.table))), words


def _all_used(one: OfSet) -> Said:
    live, used = one.data["features_in_training"], one.fm["used"]
    wanted = 0 if one.name == RCV1 else one.every
    return verdict(used == wanted), (
        f"FM uses {used:,.1f} of the {one.every:,} pairs of the {live:,} features of the training rows."
    )


def _partial(given: tuple[OfSet, str]) -> Said:
    one, method = given
    used = one.rows[method]["used"]
    held = used == 0 if (one.name, method) == (FD, "CS") else 0 < used < one.every
    return verdict(held), f"It uses {used:,.1f} of {one.every:,} interactions."


ARTEFACT = figure(
    __name__,
    searched.run,
    {
        "proposed": over(_all_tables, _compared(OURS, THEIRS)),
        "ti": over(_singles, _compared(("TI",), ("CS", "L1", "L21"))),
        "margins": over(_all_tables, _margins),
        "reach": over(_data_sets, _reaches),
        "fm": over(_data_sets, _all_used),
        "partial": over(_ours, _partial),
    },
    settings={"grid": [10.0**e for e in range(-7, -1)]},
    budgets={"full": {key: [0.5 * 10.0**e for e in range(-7, -1)] for key in ("lambda_w", "lambda_p")}},
    published=tuple(_published()),
    tolerance=_TOLERANCE,
)
