"""The program that repeats what the page of operators shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .matrices import DISTRIBUTIONS
from .study import Variant


def python_source(
    variants: Sequence[Variant],
    exponent: int,
    *,
    d: int = 200,
    k: int = 30,
    distribution: str = "normal",
    seed: int = 0,
    P: np.ndarray | None = None,
) -> str:
    """Return a program that prints the counts at one λ.

    A given P is written out in full, or read from the download ``P.csv`` if it has over 600 entries.
    """
    if P is None:
        body = (
            f"d, k = {d}, {k}\nrng = np.random.default_rng({seed})\nP = {DISTRIBUTIONS[distribution].code}\n"
        )
    elif P.size > 600:
        body = 'P = np.loadtxt("P.csv", delimiter=",", ndmin=2)\n'
    else:
        rows = ",\n".join("    [" + ", ".join(repr(x) for x in row) + "]" for row in P.tolist())
        body = f"P = np.array([\n{rows},\n])\n"
    lines = [
        "import numpy as np",
        "",
        "import fmviz",
        "from fmviz.engine.counting import used_features, used_interactions",
        "",
        body + f"strength = 2.0**{exponent}",
        "for name, params in [",
        *(f'    ("{v.name}", {dict(v.params)!r}),' for v in variants),
        "]:",
        "    Q = fmviz.prox(name, P, strength, **params)",
        "    print(name, params, used_interactions(Q), used_features(Q),",
        "          fmviz.certificate(name, P, Q, strength, **params))",
    ]
    return "\n".join(lines) + "\n"
