"""The page Paper desk."""
