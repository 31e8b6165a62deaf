"""Data sets, experiments, runs and results of papers, on top of the engine."""
