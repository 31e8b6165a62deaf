"""Uploads: files read, their columns described, encoded as chosen, and kept under a name."""
