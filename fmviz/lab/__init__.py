"""Data sets, experiments, runs and papers, on top of the engine."""
