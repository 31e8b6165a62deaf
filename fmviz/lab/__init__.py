"""Experiments on the engine: data sets, runs, jobs."""
