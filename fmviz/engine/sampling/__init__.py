"""Gibbs sampling and posterior predictions of factorization machines."""
