"""How far a fit is from its optimum, or from a stationary point, recomputed from its parameters, X and y."""
