"""The import path that ``papers/atarashi2021/fig6.py`` has until branch papers is merged."""

from .drawn import make_sparse_interactions

__all__ = ["make_sparse_interactions"]
