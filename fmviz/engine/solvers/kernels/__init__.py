"""Compiled sweeps over entries and rows of P, with special versions for dense X and matrix factorization."""
