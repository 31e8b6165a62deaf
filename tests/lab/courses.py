"""Made-up courses of objectives."""

from __future__ import annotations


def trace(panel, times, seeds=(0,)):
    """Every method comes down from 100 to 1, and is there at its time."""
    return [
        {"panel": panel, "method": method, "seed": seed, "epoch": epoch, "seconds": seconds, "objective": o}
        for method, time in times.items()
        for seed in seeds
        for epoch, seconds, o in ((0, 0.0, 100.0), (1, time / 2, 50.0), (2, time, 1.0))
    ]
