"""The protocol of the artefacts about robust_fm, and what their checks follow from."""

from __future__ import annotations

from itertools import product

import numpy as np

from papers import ARTEFACTS
from papers.robust_fm import LOSSES, NORMS, PLANTED, planted


def verdicts(name, tables):
    artefact = ARTEFACTS[f"robust_fm_{name}"]
    checks = artefact.judge(tables, artefact.configured("full"))
    return {(check.statement, check.case): check.verdict for check in checks}


def test_some_rows_are_wrong_and_the_truth_is_known():
    X, y, Z, wrong = planted(0, 20, n=200, d=5)
    clean = planted(0, 0, n=200, d=5)
    assert np.linalg.matrix_rank(Z) == 3
    assert wrong.mean() == 0.2
    same = (X == clean.X).all(axis=1) & (y == clean.y)
    assert same[~wrong].all()
    assert not same[wrong].any()


def test_losses_and_norms_are_judged_by_how_errors_grow():
    growth = {"squared": 3.0, "Huber": 1.5, "absolute": 1.3, "capped": 1.0}
    worse = dict(zip(NORMS, (1.1, 1.05, 1.0), strict=True))
    tables = {
        "test": [
            {
                "data": PLANTED, "loss": loss, "norm": norm, "percent": percent, "seed": seed,
                "score": worse[norm] * (1.0 + (growth[loss] - 1.0) * percent / 40 + 0.01 * seed),
            }
            for loss, norm, percent, seed in product(LOSSES, NORMS, (0, 20, 40), (0, 1))
        ]
    }  # fmt: skip
    result = verdicts("contamination", tables)
    assert set(result.values()) == {"holds"}
    assert len(result) == 3 * len(NORMS) + len(LOSSES)
    for row in tables["test"]:
        row["score"] = 2.0
    result = verdicts("contamination", tables)
    assert {key[0] for key, verdict in result.items() if verdict == "holds"} == {"immune"}
    assert set(verdicts("contamination", {}).values()) == {"not settled"}
