"""Optimality certificates recomputed from parameters, X and y: duality gaps and stationarity residuals."""
