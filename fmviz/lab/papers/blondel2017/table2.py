"""Table 2 of blondel2017: machines on a shared basis against random starts, and against other classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from statistics import fmean

from fmviz.lab.papers.declared import declared, figure
from fmviz.lab.papers.protocols.class_machines import (
    KERNEL,
    LETTER,
    LINEAR,
    ONE_BY_ONE,
    PENALTIES,
    ROUNDS,
    VOWEL_TEST,
    VOWEL_TRAIN,
    both_layers,
    output_layer,
    published,
    random_start,
)
from fmviz.lab.papers.protocols.classes import (
    MUCH,
    as_printed,
    by_margin,
    cells,
    gaps,
    names,
    pairs_of,
    published_cells,
    scores,
    validated,
    within,
)
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables
from fmviz.lab.papers.statements import Said, by_majority, over, verdict

PRINTED = declared(__name__)["printed"]
L1 = "ℓ₁"
GROUPS = tuple(title for title in PENALTIES if title != L1)
# Of more than ten classes.
MANY = (VOWEL_TEST, VOWEL_TRAIN, LETTER)
METHODS = (
    *map(output_layer, PENALTIES),
    *map(both_layers, PENALTIES),
    *map(published, PENALTIES),
    *map(random_start, (*PENALTIES, "ℓ₂²")),
    LINEAR,
    KERNEL,
    ONE_BY_ONE,
)
Gaps = list[float]


def _run(repro: Reproduction) -> Iterator[str]:
    yield from validated(repro, METHODS, lambda method, grid: (0,))
    cells(repro, METHODS, PRINTED)


def _among(tables: Tables, settings: Settings, some: tuple[str, ...]) -> list[str]:
    """Return the data sets of some names that there are, else the first of them."""
    return [name for name in names(tables, settings) if name in some] or [some[0]]


def _groups(tables: Tables, settings: Settings) -> Iterator[tuple[str, Gaps]]:
    for name, title in product(_among(tables, settings, MANY), GROUPS):
        yield f"{name}, {title}", gaps(tables, name, output_layer(title), output_layer(L1))


def _catches_up(tables: Tables, settings: Settings) -> Iterator[tuple[str, tuple[Gaps, Gaps]]]:
    for name, title in product(_among(tables, settings, MANY), GROUPS):
        both = [gaps(tables, name, layers(title), layers(L1)) for layers in (output_layer, both_layers)]
        yield f"{name}, {title}", (both[0], both[1]) if all(both) else ()  # type: ignore[misc]


def _closer(both: tuple[Gaps, Gaps]) -> Said:
    before, after = map(fmean, both)
    words = f"ℓ₁ is behind by {before:.2f} points with output-layer refits, by {after:.2f} with full ones."
    if len(both[0]) < 3 or before <= 0.0:
        return "not settled", words
    return verdict(after < before), words


def _still(tables: Tables, settings: Settings) -> Iterator[tuple[str, Gaps]]:
    for name in _among(tables, settings, (VOWEL_TEST, VOWEL_TRAIN)):
        yield name, gaps(tables, name, both_layers("ℓ₁/ℓ₂"), both_layers(L1))


def _random(tables: Tables, settings: Settings) -> Iterator[tuple[str, dict[str, Gaps]]]:
    for title, layers in product(PENALTIES, (output_layer, both_layers)):
        found = {
            name: gaps(tables, name, layers(title), random_start(title)) for name in names(tables, settings)
        }
        yield layers(title), {name: one for name, one in found.items() if one}


def _mostly(found: dict[str, Gaps]) -> Said:
    said = {name: by_margin(one) for name, one in found.items()}
    wins = sum(held == "holds" for held, _ in said.values())
    told = "; ".join(f"{name}: {words[0].lower()}{words[1:-1]}" for name, (_, words) in said.items())
    words = f"Ahead on {wins} of {len(said)} data sets. {told[0].upper()}{told[1:]}."
    if all(held == "not settled" for held, _ in said.values()):
        return "not settled", words
    return by_majority(wins, len(said)), words


def _used(tables: Tables, settings: Settings) -> Iterator[tuple[str, tuple[float, float] | None]]:
    for name, title in product(names(tables, settings), PENALTIES):
        ours = [
            value
            for layers in (output_layer, both_layers)
            for value in scores(tables, name, layers(title), "used").values()
        ]
        theirs = list(scores(tables, name, random_start(title), "used").values())
        yield f"{name}, {title}", (fmean(ours), fmean(theirs)) if ours and theirs else None


def _sparser(used: tuple[float, float]) -> Said:
    ours, theirs = used
    # Substantially: by a fifth.
    return verdict(ours <= 0.8 * theirs), f"{ours:.0f} bases on average, from a random start {theirs:.0f}."


ARTEFACT = figure(
    __name__,
    _run,
    {
        "printed": over(as_printed, within),
        "groups": over(_groups, by_margin),
        "catches_up": over(_catches_up, _closer),
        "still_better": over(_still, partial(by_margin, least=MUCH)),
        "random": over(_random, _mostly),
        "sparser": over(_used, _sparser),
        "one_by_one": over(
            pairs_of(output_layer, lambda _: ONE_BY_ONE, PENALTIES), partial(by_margin, least=MUCH)
        ),
    },
    published=published_cells(PRINTED, "Table 2"),
    accuracy=1e-5,
    rounds=ROUNDS,
    much=MUCH,
)
