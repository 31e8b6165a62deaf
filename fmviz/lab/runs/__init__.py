"""One run: its record, its history, what it was made from, and the program that repeats it."""
