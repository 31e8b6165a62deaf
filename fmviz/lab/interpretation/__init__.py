"""What a fitted model says: its interactions, single predictions, and why a weight is zero."""
