"""What happens around a fit: its strengths, warm start, rows held out of it, features that no row has."""
