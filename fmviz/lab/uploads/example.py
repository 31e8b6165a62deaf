"""The example table of the page Your data."""

from __future__ import annotations

from typing import NamedTuple

from fmviz.lab.datasets.readers import Files

__all__ = ["Example", "example"]


class Example(NamedTuple):
    """A file, its name, its target, and its numeric columns that are categories."""

    data: bytes
    name: str
    target: str
    words: tuple[str, ...]


def example() -> Example:
    """Return the sampled flights, or the diabetes data where the package is installed without them."""
    path = Files().find("flights.csv")
    if path is not None and path.suffix == ".csv":
        return Example(path.read_bytes(), path.name, "late", ("month", "day"))
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True, scaled=False).frame
    return Example(table.to_csv(index=False).encode(), "diabetes.csv", "target", ())
