"""Regularization paths over λ, cross-validation, and the search for a number of interactions."""

# Imports under an alias are internal to fmviz.
from .path import Order as Order
from .path import PathPoint, iterate_path, lambda_max, regularization_path
from .path import onwards as onwards
from .search import Probe, find_lambda
from .search import accepted_range as accepted_range
from .search import choose as choose
from .search import grid as grid
from .search import search_lambda as search_lambda
from .search import walk as walk
from .search import weakest as weakest
from .selection import HALVES as HALVES
from .selection import STARTS as STARTS
from .selection import frequency_table as frequency_table
from .selection import iterate_selection as iterate_selection
from .selection import selection_frequencies

__all__ = [
    "PathPoint",
    "Probe",
    "find_lambda",
    "iterate_path",
    "lambda_max",
    "regularization_path",
    "selection_frequencies",
]
