"""Many fits: paths along λ, searches for a number of interactions, comparisons at equal sparsity, sweeps."""
