"""Lessons: their steps, and the numbers in their texts."""
