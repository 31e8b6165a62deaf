"""Linear algebra: symmetric matrices of low rank, spectral penalties, mixed precision."""
