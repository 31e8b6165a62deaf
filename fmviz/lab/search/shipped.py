"""The comparison at equal sparsity shipped with fmviz as the initial result of the page Compare."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.search.equal_sparsity import SearchFit

REGULARIZERS, TARGET, SEEDS = ("l1", "l21", "ti", "cs"), 360, 3
"""The default comparison, on the first data set; `make results` writes its fits."""
PATH = Path(__file__).parent / "equal_sparsity.json.gz"


def comparison_base(dataset: str, seed: int) -> Experiment:
    """Return the settings that all fits of a comparison share: those suggested for the data."""
    given = suggested(dataset).to_dict()
    shared = {name: value for name, value in given.items() if not name.startswith(("model_", "regularizer_"))}
    own = {"seed": seed, "model": "fm", "regularizer": "ti", "solver": "auto", "start": "warm"}
    return Experiment.from_dict({**shared, **own, "validation": given["validation"] or 0.2})


def shipped(experiment: Experiment, regularizers: Sequence[str], target: int, seeds: int) -> list[SearchFit]:
    """Return the fits of a comparison if all of them are shipped with fmviz, else none."""
    if target != TARGET:
        return []
    fits: dict[Experiment, Any] = {}
    for record in json.loads(gzip.decompress(PATH.read_bytes())):
        own, P = Experiment.from_json(record["experiment"]), np.array(record["parameters"])
        fits[replace(own, lambda_sparse=0.0)] = SearchFit(
            **{**record, "experiment": own, "parameters": Parameters(P, np.zeros(len(P)), 0.0)}
        )
    base = replace(experiment, lambda_sparse=0.0)
    each = [
        replace(base, seed=seed, regularizer=PENALTIES[name])
        for seed in range(base.seed, base.seed + seeds)
        for name in regularizers
    ]
    return [fits[own] for own in each] if fits.keys() >= set(each) else []
