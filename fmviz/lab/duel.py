"""Programs copied from earlier versions import these names from here."""

from fmviz.lab.search.equal_sparsity import duel, search

__all__ = ["duel", "search"]
