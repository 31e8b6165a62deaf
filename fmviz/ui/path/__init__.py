"""The page λ-path."""
