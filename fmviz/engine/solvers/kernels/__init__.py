"""Compiled sweeps over entries and rows of P, with special ones for dense X and matrix factorization."""
