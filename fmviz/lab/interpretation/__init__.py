"""Interpret a fitted model: its interactions, single predictions, and zero weights."""
