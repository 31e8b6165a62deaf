"""Linear algebra: symmetric matrices of low rank, spectral penalties, descent directions at P = 0."""
