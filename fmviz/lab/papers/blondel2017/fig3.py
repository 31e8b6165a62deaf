"""Figure 3 of blondel2017: accuracy over the number of bases, by the penalty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean
from typing import NamedTuple

from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.class_machines import (
    KERNEL,
    LETTER,
    LINEAR,
    NYSTROEM,
    PENALTIES,
    SATIMAGE,
    SEGMENT,
    VOWEL_TEST,
    VOWEL_TRAIN,
    Grid,
    output_layer,
)
from fmviz.lab.papers.protocols.classes import MUCH, SAME, by_margin, gaps, names, scores, validated
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables
from fmviz.lab.papers.statements import Said, by_majority, over, verdict

MACHINES = tuple(map(output_layer, PENALTIES))
SHOWN = (*MACHINES, NYSTROEM, KERNEL, LINEAR)
# From how many bases on the groups are ahead, as printed.
FROM = {VOWEL_TEST: 20, VOWEL_TRAIN: 20, LETTER: 75}
# Very few: this share of the support vectors.
_FEW = 0.25


def sizes(method: str, grid: Grid) -> Sequence[int]:
    """Return the numbers of bases of the points of a method."""
    if method in (KERNEL, LINEAR):
        return (0,)
    return range(grid.bases, grid.units + 1, grid.bases)


def _run(repro: Reproduction) -> Iterator[str]:
    yield from validated(repro, SHOWN, sizes)


def _sizes_of(settings: Settings, data: str) -> Sequence[int]:
    return sizes(MACHINES[0], Grid.of(settings, data))


def _leads(tables: Tables, data: str, first: str, second: str, some: Sequence[int]) -> list[float]:
    """Return for every split by how much a method is ahead on average over numbers of bases."""
    each = [one for size in some if (one := gaps(tables, data, first, second, bases=size))]
    if len(set(map(len, each))) != 1:
        return []
    return [fmean(one) for one in zip(*each, strict=True)]


def _groups(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[float]]]:
    here = [name for name in names(tables, settings) if name in FROM] or list(FROM)[:1]
    for name, machine in product(here, MACHINES[1:]):
        some = [size for size in _sizes_of(settings, name) if size >= FROM[name]]
        yield f"{name}, {machine.split(',')[0]}", _leads(tables, name, machine, MACHINES[0], some)


def _similar(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[float]]]:
    here = [name for name in names(tables, settings) if name in (SEGMENT, SATIMAGE)]
    for name in here or [SEGMENT]:
        yield (
            name,
            [
                max(means) - min(means)
                for size in _sizes_of(settings, name)
                if len(means := _means(tables, name, size)) == len(MACHINES)
            ],
        )


def _means(tables: Tables, data: str, size: int) -> list[float]:
    found = [scores(tables, data, machine, bases=size).values() for machine in MACHINES]
    return [fmean(one) for one in found if one]


def _spread(found: list[float]) -> Said:
    near = sum(one <= SAME for one in found)
    return by_majority(near, len(found)), (
        f"For {near} of {len(found)} numbers of bases the three means lie within {SAME:g} point; at worst "
        f"within {max(found):.2f}."
    )


def _against_nystroem(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[float]]]:
    for name, machine in product(names(tables, settings), MACHINES):
        leads = _leads(tables, name, machine, NYSTROEM, _sizes_of(settings, name))
        yield f"{name}, {machine.split(',')[0]}", leads


class Reached(NamedTuple):
    """How many bases a kernel machine's accuracy takes, None for more than there are."""

    data: str
    goal: float
    vectors: float
    bases: int | None


def _needed(tables: Tables, settings: Settings) -> Iterator[tuple[str, Reached | None]]:
    for name in names(tables, settings):
        kernel = scores(tables, name, KERNEL).values()
        vectors = scores(tables, name, KERNEL, "used").values()
        if not kernel:
            yield name, None
            continue
        goal = fmean(kernel)
        enough = [
            size
            for size in _sizes_of(settings, name)
            if max(_means(tables, name, size), default=0.0) >= goal - SAME
        ]
        yield name, Reached(name, goal, fmean(vectors), min(enough, default=None))


def _few(found: Reached) -> Said:
    told = "more than there are" if found.bases is None else str(found.bases)
    words = (
        f"Within {SAME:g} point of its {found.goal:.1f}% with {told} bases, beside "
        f"{found.vectors:.0f} support vectors."
    )
    if found.data not in (*FROM, SATIMAGE):
        return "not settled", f"The paper says nothing of it. {words}"
    if found.data == LETTER:
        return verdict(found.bases is None or found.bases >= 100), words
    return verdict(found.bases is not None and found.bases <= _FEW * found.vectors), words


ARTEFACT = figure(
    __name__,
    _run,
    {
        "groups": over(_groups, by_margin),
        "similar": over(_similar, _spread),
        "nystroem": over(_against_nystroem, lambda found: by_margin(found, MUCH)),
        "kernel": over(_needed, _few),
    },
    accuracy=1e-5,
    same=SAME,
    much=MUCH,
)
