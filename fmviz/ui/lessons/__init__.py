"""The page Lessons, and the lesson panel beside other pages."""
