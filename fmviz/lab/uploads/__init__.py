"""Data of one's own: files read, columns told apart, encoded as decided, and kept under a name."""
