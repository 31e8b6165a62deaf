"""Samples of the posterior distribution of factorization machines."""
