"""Stochastic solvers and the kernels of their steps."""
