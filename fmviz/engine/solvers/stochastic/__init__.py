"""Stochastic solvers (SGD, PSGD, Katyusha) and the kernels of their steps."""
