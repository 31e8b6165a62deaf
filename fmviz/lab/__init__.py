"""Data sets, experiments, runs and papers, on top of the engine."""

from __future__ import annotations

import sys
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

MOVED: dict[str, dict[str, str]] = {
    "duel": {"duel": "search.equal_sparsity:at_equal_sparsity", "search": "search.equal_sparsity:search"},
    "own": {},
    "own.shelf": {"bring": "importing:import_file"},
    "strength_path": {name: f"search.strength_path:{name}" for name in ("PathPlan", "path_table", "trace")},
    "sweep_plan": {"SweepPlan": "search.sweep_plan:SweepPlan"},
    "sweep_run": {name: f"search.sweep_run:{name}" for name in ("carry_out", "cost")},
    "sweep_table": {
        name: f"search.sweep_table:{name}" for name in ("fits_table", "main_metric", "means_table")
    },
    "table_run": {"SavedModel": "saved_model:SavedModel"},
}
"""Modules that programs copied from earlier versions import, and where their names live now."""


class _Moved(ModuleType):
    """A module that is gone: its names are fetched from where they live when a program asks for them."""

    def __getattr__(self, name: str) -> Any:
        place = MOVED[self.__name__.removeprefix(f"{__name__}.")].get(name)
        if place is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return resolve_name(f"{__name__}.{place}")


sys.modules.update((f"{__name__}.{old}", _Moved(f"{__name__}.{old}")) for old in MOVED)
