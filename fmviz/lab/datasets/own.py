"""Data sets of one's own among the others: found by their name, listed nowhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fmviz.engine.params import ParamSpec

from .base import Dataset, DatasetSpec

if TYPE_CHECKING:
    from fmviz.lab.own.shelf import OwnSet

NAME = re.compile(r"own_[0-9a-f]{20}")


def is_own(name: object) -> bool:
    """Return whether a name is that of a data set of one's own, be it here or not."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


class Registry(dict[str, DatasetSpec]):
    """The registered data sets, and behind their names, unlisted, those of one's own.

    ``registry[name]`` and ``name in registry`` know both; iterating gives the registered ones alone, so that
    nobody meets somebody else's data in a menu.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or is_own(name)

    def __missing__(self, name: str) -> DatasetSpec:
        if not is_own(name):
            raise KeyError(name)
        return _spec(name)


@dataclass(frozen=True)
class DatasetParam(ParamSpec):
    """A choice of a data set, which may be one's own."""

    def check(self, value: Any) -> Any:
        """Return the name of a data set, or raise ValueError."""
        return value if is_own(value) else super().check(value)


def _spec(name: str) -> DatasetSpec:
    # What reads tables takes a while to import, and most programs need none of it.
    from fmviz.lab.own import shelf

    found = shelf.find(name)
    return DatasetSpec(
        name=name,
        title="Somebody's own data" if found is None else found.title,
        description="" if found is None else _description(found),
        # Of data that are not here nothing is known; what is asked for them is refused for that alone.
        task="regression" if found is not None and found.task == "regression" else "binary",
        load=partial(_load, name),
        unavailable=partial(shelf.why_not, name),
        suggested={} if found is None else found.suggested,
    )


def _load(name: str) -> Dataset:
    from fmviz.lab.own import shelf

    return shelf.load(name)


def _description(found: OwnSet) -> str:
    return f"{found.rows:,} rows, {found.features:,} features; kept on this computer alone."
