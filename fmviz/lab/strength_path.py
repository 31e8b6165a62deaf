"""Programs copied from earlier versions import these names from here."""

from fmviz.lab.search.strength_path import PathPlan, path_table, trace

__all__ = ["PathPlan", "path_table", "trace"]
