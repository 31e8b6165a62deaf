"""Lessons: their steps, and the numbers in them."""
