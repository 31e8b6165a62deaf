"""Programs copied from earlier versions import these names from here."""

from fmviz.lab.search.sweep_table import fits_table, main_metric, means_table

__all__ = ["fits_table", "main_metric", "means_table"]
