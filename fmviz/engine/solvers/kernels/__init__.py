"""Compiled sweeps: one over entries, one over rows, and two special ones over entries."""
