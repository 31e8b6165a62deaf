"""Figure 5 of atarashi2021: which methods make the ‖W‖₁-regularized objective small, and how fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import Any

from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.descent import SHARE, Race, racing
from fmviz.lab.papers.protocols.recovery import FEATURES, INTERACTIONS, planted
from fmviz.lab.papers.protocols.weights import (
    METHODS,
    OTHERS,
    PROPOSED,
    READING,
    ends,
    in_words,
    panel_of,
    race_of,
)
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables
from fmviz.lab.papers.statements import Cases, Said, by_balance, over, verdict

# Ends that differ by less, relative to the smaller, are equal; and the lead that is remarkable.
_SAME, _REMARKABLE = 1e-3, 0.1
# With all methods, and with those alone that minimise a bound of the objective or have it inexactly.
_READINGS = {"all methods": METHODS, "without SLQR": tuple(one for one in METHODS if one != "SLQR")}
_Ends = Mapping[str, Sequence[float]]


def _races(repro: Reproduction) -> list[Race]:
    settings = repro.settings
    return [
        race_of(
            partial(planted, setting, settings["N"], seed),
            panel=panel_of(setting, strength),
            seed=seed,
            data=f"{setting}, seed {seed}",
            lambda_p=settings["lambda_p"],
            lambda_sparse=strength,
            seconds=settings["seconds"],
            traced=seed < settings["drawn_sets"],
        )
        for seed, setting, strength in product(
            range(settings["data_sets"]), settings["settings"], settings["lambda"]
        )
    ]


def _in_readings(setting: str, *, largest: bool = False) -> Cases:
    """Return the cases of a setting: the ends by method, for the largest λ alone or for each."""

    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
        for strength in [max(settings["lambda"])] if largest else settings["lambda"]:
            found = ends(tables, panel_of(setting, strength), "objective")
            for words, methods in _READINGS.items():
                yield f"λ = {strength:g}, {words}", {name: found[name] for name in methods if found}

    return cases


def _settled(tables: Tables, settings: Settings) -> Iterator[tuple[str, _Ends]]:
    for strength in settings["lambda"]:
        yield f"λ = {strength:g}", ends(tables, panel_of(FEATURES, strength), "settled")


def _lowest(best: Sequence[str], found: _Ends) -> Said:
    others = [found[method] for method in found if method not in best]
    own = map(max, *(found[method] for method in best)) if len(best) > 1 else found[best[0]]
    gaps = [min(rest) / mine - 1.0 for mine, *rest in zip(own, *others, strict=True)]
    held, wins, _ = by_balance(gaps, _SAME)
    means = {method: fmean(values) for method, values in found.items()}
    ended = "TI ends" if len(best) == 1 else "TI and CS end"
    return held, f"{ended} below all others on {wins} of {len(gaps)} data sets. Mean ends: {in_words(means)}"


def _remarkable(found: _Ends) -> Said:
    means = {method: fmean(values) for method, values in found.items()}
    second = min((method for method in means if method != "TI"), key=means.__getitem__)
    lead = means[second] / means["TI"] - 1.0
    return verdict(lead >= _REMARKABLE), (
        f"The lowest mean end of the others, of {second}, lies {lead:+.1%} from that of TI."
    )


def _fastest(found: _Ends) -> Said:
    times = {method: median(found[method]) for method in METHODS}
    held = max(times[method] for method in PROPOSED) < min(times[method] for method in OTHERS)
    return verdict(held), f"Median seconds to within {SHARE:.0%} of the own end: {in_words(times, ' s')}"


ARTEFACT = figure(
    __name__,
    racing(_races),
    {
        "ti_lowest": over(_in_readings(INTERACTIONS), partial(_lowest, ("TI",))),
        "remarkable": over(_in_readings(INTERACTIONS, largest=True), _remarkable),
        "both_lowest": over(_in_readings(FEATURES), partial(_lowest, PROPOSED)),
        "both_fastest": over(_settled, _fastest),
    },
    reading=READING,
    same=_SAME,
    remarkable=_REMARKABLE,
    stay=SHARE,
)
