"""Figure 4 of atarashi2021: how sensitive recovery is to the strength of the sparse regularizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

from fmviz.lab.experiment import Experiment
from fmviz.lab.papers.checkpoints import fits
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols import recovery
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Cases, Said, listed, over, verdict
from fmviz.lab.runner import load_dataset

METHODS = ("TI", "CS", "L21", "L1")
METRICS = {
    "estimation_error": "Estimation error",
    "support_f1": "F1",
    "support_recovered": "PSSR",
}
ERROR, *SCORES = METRICS.values()
# Adequate: an error at most so much above, or a score of at least such a share of, the best mean of all.
_ABOVE, _SHARE = 0.1, 0.9
Widths = Mapping[str, int]


def _data(settings: Settings, seed: int) -> dict[str, Any]:
    kind = {name: settings[name] for name in ("d_true", "b", "d_noise")}
    return {**kind, "seed": seed, "n_samples": settings["N"]}


def fit_of(settings: Settings, method: str, exponent: int, seed: int, start: int) -> Experiment:
    """Return the fit of one data set from one start."""
    return recovery.experiment(
        recovery.METHODS[method],
        _data(settings, seed),
        settings["lambda_p"],
        2.0**exponent,
        start=start,
        rank=settings["k"],
        max_epochs=settings["epochs"],
        tol=settings["tol"],
    )


def _exponents(settings: Settings) -> range:
    return range(settings["log2_lambda"][0], settings["log2_lambda"][1] + 1)


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    # One data set after the other, so that all curves grow alike.
    seeds, starts = range(settings["data_sets"]), range(settings["starts"])
    cases = list(product(seeds, starts, _exponents(settings), METHODS))
    repro.total = len(cases)
    experiments = [fit_of(settings, m, exponent, seed, start) for seed, start, exponent, m in cases]
    if repro.should_stop():
        return
    yield "Readying the kernels"
    lost = 0
    seconds = settings["seconds"]
    with closing(fits(repro.memory, experiments, n_jobs=repro.n_jobs, seconds=seconds)) as results:
        for index, found in results:
            if repro.should_stop():
                return
            seed, start, exponent, method = cases[index]
            if f"seed {seed}" not in repro.data:
                data = load_dataset("synthetic", **_data(settings, seed))
                repro.use(f"seed {seed}", data.X, data.y)
            if failure := found.get("failure"):
                lost += 1
                repro.row("failures", method=method, log2_lambda=exponent, message=failure)
            else:
                for name, label in METRICS.items():
                    repro.row(
                        "scores",
                        panel=label,
                        method=method,
                        data=f"seed {seed}",
                        start=start,
                        lambda_sparse=2.0**exponent,
                        value=found["values"][name],
                        status=found["status"],
                    )
            repro.done += 1
            if repro.due() or repro.done == repro.total:
                of = settings["data_sets"]
                yield f"{method}, λ = {2.0**exponent:g}, data set {seed + 1} of {of}"
    if lost:
        repro.note(f"{lost} of {len(cases)} fits failed and are left out: see the table of failures.")


def _adequate(panels: Sequence[str]) -> Cases:
    """Return the cases of some metrics: at how many strengths every method is adequate."""

    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, Widths | None]]:
        for panel in panels:
            means: dict[tuple[str, float], list[float]] = {}
            for row in rows_where(tables, "scores", panel=panel):
                if row["value"] is not None:
                    means.setdefault((row["method"], row["lambda_sparse"]), []).append(row["value"])
            # Widths of curves that are still growing say nothing.
            whole = len(means) == len(METHODS) * len(_exponents(settings))
            widths = adequate({key: fmean(values) for key, values in means.items()}, panel) if whole else {}
            yield panel, widths if any(widths.values()) else None

    return cases


def adequate(means: Mapping[tuple[str, float], float], panel: str) -> Widths:
    """Return for every method at how many strengths it is adequate; see the declared differences."""
    best = (min if panel == ERROR else max)(means.values())

    def good(value: float) -> bool:
        return value <= best + _ABOVE if panel == ERROR else value > 0 and value >= _SHARE * best

    widths = dict.fromkeys(METHODS, 0)
    for (method, _), value in means.items():
        widths[method] += good(value)
    return widths


def _wider(name: str, others: Sequence[str], widths: Widths) -> Said:
    most = max(widths[other] for other in others)
    held = verdict(None if widths[name] == most else widths[name] > most)
    return held, f"Strengths λ, a factor of 2 apart, at which it is adequate: {listed(widths.items())}."


ARTEFACT = figure(
    __name__,
    _run,
    {
        "cs_widest": over(_adequate(list(METRICS.values())), partial(_wider, "CS", ("TI", "L21", "L1"))),
        "ti_next": over(_adequate(SCORES), partial(_wider, "TI", ("L21", "L1"))),
    },
    above=_ABOVE,
    share=_SHARE,
)
