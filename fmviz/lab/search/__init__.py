"""Many fits: regularization paths, searches for a number of interactions, and sweeps."""
