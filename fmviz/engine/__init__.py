"""Models, losses, penalties, solvers and optimality certificates in numpy, scipy and numba."""
