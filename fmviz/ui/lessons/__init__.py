"""The page Lessons, and the panel above the pages that they are about."""
