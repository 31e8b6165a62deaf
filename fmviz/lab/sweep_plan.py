"""Programs copied from earlier versions import these names from here."""

from fmviz.lab.search.sweep_plan import SweepPlan

__all__ = ["SweepPlan"]
