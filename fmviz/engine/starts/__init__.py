"""Where runs begin: around P = 0, which is stationary for every factorization machine."""
