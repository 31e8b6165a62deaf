"""Programs copied from earlier versions import these names from here."""

from fmviz.lab.tables.fit import SavedModel

__all__ = ["SavedModel"]
