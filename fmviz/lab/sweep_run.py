"""Programs copied from earlier versions import these names from here."""

from fmviz.lab.search.sweep_run import carry_out, cost

__all__ = ["carry_out", "cost"]
