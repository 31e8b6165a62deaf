"""The page Interactions."""
