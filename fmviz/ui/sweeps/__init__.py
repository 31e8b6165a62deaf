"""The page Sweeps."""
