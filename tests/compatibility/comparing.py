"""How far a number of today may be from one of commit bcea1f3."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

RUN = 1e-9
"""Of runs, relative. Rounding alone moves them by 1e-10 at most: `make_data` makes sure of that."""

PRINTED = 1e-6
"""Of what a program prints, relative; besides one unit in the last place that is printed."""

_NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d[\d,]*(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf)(?!\w)", re.IGNORECASE)


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text, as they are written; those that are parts of words are none."""
    return [found.replace("−", "-").replace(",", "") for found in _NUMBER.findall(text)]


def same_printed(found: str, then: str) -> str | None:
    """Return None where two texts hold the same numbers in the same order, else what differs."""
    now, old = numbers_in(found), numbers_in(then)
    if len(now) != len(old):
        return f"{len(now)} numbers, not {len(old)}:\n{found}\nand then\n{then}"
    for one, other in zip(now, old, strict=True):
        if not math.isclose(float(one), float(other), rel_tol=PRINTED, abs_tol=_last_place(other)):
            return f"{one}, not {other}:\n{found}\nand then\n{then}"
    return None


def _last_place(number: str) -> float:
    """Return one unit in the last decimal of a number as it is written, and 1e-12 at the least."""
    head, _, exponent = number.partition("e")
    decimals = len(head.partition(".")[2])
    # Sixteen digits are all that there is, and certificates are sums of as many roundings.
    return max(1e-12, 10.0 ** (int(exponent or 0) - decimals)) if decimals else 1e-12


def differences(found: Any, then: Any, where: str = "", relative: float = RUN) -> list[str]:
    """Return in what plain data differ from those of then; names may have been added.

    Numbers may differ by `relative` of the largest one of their list; certificates and steps, which are
    differences of numbers near 1 and small at the end of a run, by 1e-9 besides.
    """
    if isinstance(then, dict):
        lost = sorted(set(then) - set(found))
        inner = [
            one
            for name in then.keys() - set(lost)
            for one in differences(found[name], then[name], f"{where}/{name}", relative)
        ]
        return [f"{where}/{name} is missing" for name in lost] + inner
    if isinstance(then, list):
        if not isinstance(found, list) or len(found) != len(then):
            return [f"{where}: {found!r}, not {then!r}"]
        numeric = [one for one in then if isinstance(one, float) and math.isfinite(one)]
        scale = max(map(abs, numeric), default=0.0)
        return [
            one
            for i, (a, b) in enumerate(zip(found, then, strict=True))
            for one in _difference(a, b, f"{where}/{i}", relative, scale)
        ]
    return _difference(found, then, where, relative, 0.0)


def _difference(found: Any, then: Any, where: str, relative: float, scale: float) -> list[str]:
    if isinstance(then, dict | list):
        return differences(found, then, where, relative)
    if then != then:
        # JSON has no word for it but null.
        same = found is None or bool(found != found)
    elif isinstance(then, float) and isinstance(found, int | float):
        slack = relative * scale + (1e-9 if "certificate" in where or "change" in where else 1e-13)
        same = math.isclose(found, then, rel_tol=relative, abs_tol=slack)
    else:
        same = bool(found == then)
    return [] if same else [f"{where}: {found!r}, not {then!r}"]


def far_apart(found: np.ndarray, then: np.ndarray) -> float:
    """Return the largest difference of two arrays relative to the largest entry of the second."""
    if found.shape != then.shape:
        return math.inf
    if not then.size:
        return 0.0
    return float(np.abs(found - then).max() / (np.abs(then).max() or 1.0))
