"""Table 4 of blondel2017: the squared hinge loss of several classes against the logistic loss."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import fmean

from fmviz.lab.papers.blondel2017 import table2
from fmviz.lab.papers.declared import declared, figure
from fmviz.lab.papers.protocols.class_machines import PENALTIES, both_layers, output_layer
from fmviz.lab.papers.protocols.classes import (
    SAME,
    as_printed,
    cells,
    gaps,
    names,
    published_cells,
    scores,
    standard_error,
    validated,
    within,
)
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables
from fmviz.lab.papers.statements import Said, over, verdict

LAYERS, HINGE = (output_layer, both_layers), "squared_hinge"
METHODS = tuple(
    layers(title, loss) for layers, title, loss in product(LAYERS, PENALTIES, ("logistic", HINGE))
)
PRINTED = {
    method: row
    for method, row in {**table2.PRINTED, **declared(__name__)["printed"]}.items()
    if method in METHODS
}
# How many times as fast is much faster.
_FASTER = 2.0


def _run(repro: Reproduction) -> Iterator[str]:
    yield from validated(repro, METHODS, lambda method, grid: (0,))
    cells(repro, METHODS, PRINTED)


def _pairs(tables: Tables, settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    for name, layers, title in product(names(tables, settings), LAYERS, PENALTIES):
        yield f"{name}, {layers(title)}", name, layers(title, HINGE), layers(title)


def _accuracies(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[float]]]:
    for case, name, hinge, logistic in _pairs(tables, settings):
        yield case, gaps(tables, name, hinge, logistic)


def _comparable(found: list[float]) -> Said:
    if len(found) < 3:
        return "not settled", f"{len(found)} splits tell nothing of their spread."
    mean, error = fmean(found), standard_error(found)
    return verdict(abs(mean) <= max(SAME, error)), f"Ahead by {mean:+.2f} ± {error:.2f} points."


def _times(tables: Tables, settings: Settings) -> Iterator[tuple[str, tuple[float, float] | None]]:
    for case, name, *pair in _pairs(tables, settings):
        hinge, logistic = (list(scores(tables, name, one, "seconds").values()) for one in pair)
        yield case, (fmean(hinge), fmean(logistic)) if hinge and logistic else None


def _faster(times: tuple[float, float]) -> Said:
    hinge, logistic = times
    return verdict(_FASTER * hinge <= logistic), (
        f"{hinge:.2g} s, logistic {logistic:.2g} s: {logistic / hinge:.1f} times as fast."
    )


ARTEFACT = figure(
    __name__,
    _run,
    {
        "printed": over(as_printed, within),
        "comparable": over(_accuracies, _comparable),
        "faster": over(_times, _faster),
    },
    published=published_cells(PRINTED, "Table 4"),
    same=SAME,
)
