"""The parts of the page that reads a fitted model."""
